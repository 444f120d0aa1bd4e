"""Protocol ``chosen-cv``: cross-validation at the grid point that another, fast solver chooses.

Which C and gamma are best belongs to the problem, not to the program that solves it: an exact
solver of the same problem searches the grid, and the compared solver is then trained and scored at
the chosen point, on all rows of the same folds. ``chosen_cv_on_kernels.py`` has the search.
"""

from __future__ import annotations

from svmbench.experiment.protocols.cv import cv
from svmbench.experiment.protocols.declare import PROTOCOLS, protocol
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.experiment.settings.values import Folds, MaxSamples, Params


class ChosenCV(TrainingBlock):
    """Plain cross-validation at a point that another solver chooses: one cell a solver.

    Attributes
    ----------
    folds : int
    choose_with : dict of str to str
        The solver that chooses the point, by the name of the compared solver in tables. A solver
        without an entry searches the grid itself, as with ``cv``.
    choose_params : dict of str to dict
        Fixed parameters of the choosing solvers, by their names.
    choose_rows : int
        Largest number of rows of the search; 0 for all.
    """

    folds: Folds = 5
    choose_with: dict[str, str] = {}
    choose_params: dict[str, Params] = {}
    choose_rows: MaxSamples = 0


# A solver for which no other one chooses searches the grid itself, as with ``cv``.
protocol(
    "chosen-cv",
    settings=ChosenCV,
    caption="plain cross-validation at points that exact solvers choose",
    scalings=PROTOCOLS["cv"].scalings,
    splits=PROTOCOLS["cv"].splits,
    tasks=("binary", "multiclass"),
    metrics=(*(PROTOCOLS["cv"].metrics or ()), "chosen_C", "chosen_gamma"),
)(cv)
