"""Base of the baselines that call another package's linear classifier without an offset."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.linear_base import LinearClassifierWithC
from svmbench.core.numeric.arrays import append_bias


@dataclass(eq=False, repr=False, kw_only=True)
class LinearPeer(LinearClassifierWithC):
    """A linear classifier of another package; subclasses define `call`.

    The constant feature is appended here, and regularised with the others.
    """

    max_iter: int = 1000
    #: The counter that has the number of iterations.
    counter: ClassVar[str] = "passes"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("max_iter", self.max_iter)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and append the constant feature."""
        data = self._validate(X, y)
        native = append_bias(data.X, self.bias)
        # Some packages accept only SciPy's older class of sparse matrices.
        data.native = sp.csr_matrix(native) if sp.issparse(native) else native
        return data

    def train(self, data: TrainingData) -> Self:
        """Call the package on the prepared samples, and store the weights."""
        with warnings.catch_warnings():
            # `_store` warns about the iteration limit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            w, n_iter = self.call(data)
        return self._store_with_bias(
            np.ravel(w).astype(np.float64),
            n_iter=max(1, n_iter),
            stop_reason="max_iter" if n_iter >= self.max_iter else "converged",
            counters={self.counter: n_iter},
        )

    def call(self, data: TrainingData) -> tuple[np.ndarray, int]:
        """Train; return the weights, and the number of iterations."""
        raise AssertionError("a subclass defines call")
