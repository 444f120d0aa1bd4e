"""Base of the baselines that call another package's linear classifier without an offset."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifierWithC


@dataclass(eq=False, repr=False, kw_only=True)
class LinearPeer(LinearClassifierWithC):
    """A linear classifier of another package; subclasses define `fit_native`.

    The constant feature is appended here, and regularised with the others.
    """

    max_iter: int = 1000
    #: The counter that has the number of iterations.
    iteration_counter: ClassVar[str] = "passes"

    def _convert(self, data: TrainingData) -> TrainingData:
        """Append the constant feature."""
        data = super()._convert(data)
        if sp.issparse(data.native):
            # Some packages accept only SciPy's older class of sparse matrices.
            data.native = sp.csr_matrix(data.native)
        return data

    def train(self, data: TrainingData) -> Self:
        """Call the package on the prepared samples, and store the weights."""
        with warnings.catch_warnings():
            # `_store` warns about the iteration limit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            w, n_iter = self.fit_native(data)
        return self._store_with_bias(
            np.ravel(w).astype(np.float64),
            n_iter=max(1, n_iter),
            stop_reason="max_iter" if n_iter >= self.max_iter else "converged",
            counters={self.iteration_counter: n_iter},
        )

    def fit_native(self, data: TrainingData) -> tuple[np.ndarray, int]:
        """Train; return the weights, the constant feature's last, and the number of iterations."""
        raise AssertionError("a subclass defines fit_native")
