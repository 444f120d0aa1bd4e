"""Protocol ``sampled-holdout``: as ``holdout``, with a search on a sample of the rows.

A solver trains once on all rows where it can't search a whole grid on them. Each solver, at each
value of a sweep, still chooses its own point of the grid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import PROTOCOLS, protocol
from svmbench.experiment.protocols.holdout import Holdout, holdout
from svmbench.experiment.protocols.search import SplitRows, search
from svmbench.experiment.protocols.task import Outcome, Task, inputs_of, testing_part
from svmbench.experiment.settings.cells import CellSpec
from svmbench.experiment.settings.values import MaxSamples


class SampledHoldout(Holdout):
    """Training, validation and test rows, with a search on some of them: one cell a solver.

    Attributes
    ----------
    choose_rows : int
        Largest number of training and validation rows of the search; 0 for all.
    """

    choose_rows: MaxSamples = 0


@protocol(
    "sampled-holdout",
    settings=SampledHoldout,
    caption="a validation split of a sample and a test part",
    scalings=PROTOCOLS["holdout"].scalings,
    tasks=PROTOCOLS["holdout"].tasks,
    metrics=PROTOCOLS["holdout"].metrics,
)
def sampled_holdout(task: Task) -> Outcome:
    """Search on the sampled rows of the validation split, refit on all rows, test once.

    The sampled rows are on the same side of the split, and scaled, as in ``holdout``. C is not
    changed for their smaller number.
    """
    inputs = inputs_of(task)
    kept, _, _ = testing_part(task, inputs)
    y = inputs.y[kept]
    sample = folds.subset_rows(
        y, task.protocol_settings["choose_rows"] or None, task.seed("choose")
    )
    split = folds.holdout_split(y, task.protocol_settings["validation"], task.seed("validation"))
    train, validation = (np.flatnonzero(np.isin(sample, part)) for part in split)
    X = folds.take(inputs.X, kept[sample])
    best, search_metrics = search(task, SplitRows(X, y[sample], [(train, validation)]))
    outcome = holdout(replace(task, spec=cast(CellSpec, {**task.spec, "grid": [best]})))
    outcome["metrics"] |= search_metrics
    return outcome
