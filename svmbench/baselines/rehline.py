"""ReHLine's hinge-loss SVM by dual coordinate descent, if ReHLine is installed.

The package is optional (``pip install '.[peers]'``).

Problem
    Hinge loss; the constant feature that `prepare` appends is regularised.
Given
    The samples, dense or CSR; `fit_native` calls ``ReHLine_solver``.
Reference
    Dai and Qiu 2023 (ReHLine).
Deviations
    - Its problem is sum_i max(0, u_i w'x_i + v_i) + 1/2 ||w||^2: ours with u_i = -C y_i, v_i = C.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from svmbench.baselines.linear_peer import LinearPeer
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.registry import declare

#: This module declares a solver only if the package is installed; completion reads the name.
REHLINE_REQUIREMENT = "rehline"


@dataclass(eq=False, repr=False, kw_only=True)
class RehlineBaseline(LinearPeer):
    """ReHLine's solver with hinge loss, on one thread.

    Parameters
    ----------
    tol : float
        Relative duality gap at which ReHLine stops.
    max_iter : int
        Passes over the samples at most.

    Attributes
    ----------
    n_iter_ : int
        Passes over the samples.
    """

    tol: float = 1e-3
    max_iter: int = 10_000

    def fit_native(self, data: TrainingData) -> tuple[np.ndarray, int]:
        """Call ReHLine's solver."""
        from rehline import ReHLine_solver

        C = float(self.C)
        result = ReHLine_solver(
            data.native,
            -C * data.y[None, :],
            np.full((1, len(data.y)), C),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            verbose=0,
        )
        return result.beta, int(result.niter)


if find_spec(REHLINE_REQUIREMENT) is not None:
    declare(
        name="rehline-l1",
        problem="hinge",
        summary="ReHLine's hinge-loss SVM by dual coordinate descent (optional)",
        reference="Dai and Qiu 2023, rehline.ReHLine_solver",
    )(RehlineBaseline)
