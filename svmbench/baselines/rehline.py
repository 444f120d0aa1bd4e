"""ReHLine's hinge-loss SVM by dual coordinate descent, if ReHLine is installed.

The package is optional (``pip install '.[peers]'``).

Problem
    Hinge loss; the constant feature that `prepare` appends is regularised.
Given
    The samples, dense or CSR; `train` calls ``ReHLine_solver``.
Reference
    Dai and Qiu 2023 (ReHLine).
Deviations
    - Its problem is sum_i max(0, u_i w'x_i + v_i) + 1/2 ||w||^2: ours with u_i = -C y_i, v_i = C.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.contract.registry import declare
from svmbench.core.numeric.arrays import append_bias

#: This module declares a solver only if the package is installed; completion reads the name.
REHLINE_REQUIREMENT = "rehline"


@dataclass(eq=False, repr=False, kw_only=True)
class RehlineBaseline(LinearClassifierWithC):
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("max_iter", self.max_iter)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and append the constant feature."""
        data = self._validate(X, y)
        native = append_bias(data.X, self.bias)
        data.native = sp.csr_matrix(native) if sp.issparse(native) else native
        return data

    def train(self, data: TrainingData) -> Self:
        """Call ReHLine's solver."""
        from rehline import ReHLine_solver

        C = float(self.C)
        factors, constants = -C * data.y[None, :], np.full((1, len(data.y)), C)
        with warnings.catch_warnings():
            # `_store` warns about the iteration limit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = ReHLine_solver(
                data.native,
                factors,
                constants,
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                verbose=0,
            )
        w, n_iter = np.ravel(found.beta).astype(np.float64), int(found.niter)
        return self._store_with_bias(
            w,
            n_iter=max(1, n_iter),
            stop_reason="max_iter" if n_iter >= self.max_iter else "converged",
            counters={"passes": n_iter},
        )


if find_spec(REHLINE_REQUIREMENT) is not None:
    declare(
        name="rehline-l1",
        problem="hinge",
        summary="ReHLine's hinge-loss SVM by dual coordinate descent (optional)",
        reference="Dai and Qiu 2023, rehline.ReHLine_solver",
    )(RehlineBaseline)
