"""Steps on a kernel matrix of which a row is made when a step first needs it.

Problem, given, returned
    Those of ``whole_matrix``, with one kept sum and an RBF kernel of few features.
Reference
    None: what is fast where was measured. Where few samples become support vectors, most rows are
    never looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.csvc.box import Box
from svmbench.core.csvc.whole_matrix import UNKNOWN, steps_on_rows
from svmbench.core.kernels.difference_rows import DifferenceRows, points_of
from svmbench.core.kernels.float32_rows import DenseRows, Rows
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.numeric.arrays import raw

#: A row alone costs more than it does among many. So at most this share of all, and not fewer than
#: this number, is made one by one; who asks for more gets the rest at once.
SHARE, LEAST = 0.125, 120

#: With more features than the first a row alone is dearer still, and the share less; with more than
#: the second nobody makes one.
FEW, MOST_FEATURES = 24, 128


def can_grow(X: Any, function: KernelFunction, rows: Rows) -> bool:
    """Return whether single rows of a matrix can be made here: RBF, few features, no bits."""
    made_so = isinstance(rows, DenseRows | DifferenceRows)
    return made_so and function.name == "rbf" and X.shape[1] <= MOST_FEATURES


class GrowingMatrix:
    """A kernel matrix that is filled as a search asks for its rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    function : KernelFunction
        RBF.
    rows : Rows
        What makes all rows that are left, once too many have been asked for.
    """

    def __init__(self, X: Any, function: KernelFunction, rows: Rows) -> None:
        n, self.gamma, self.rows = rows.n_samples, function.gamma, rows
        points = rows.X if isinstance(rows, DifferenceRows) else points_of(X)
        self.columns = np.ascontiguousarray(points.T)
        self.most = max(LEAST, int(SHARE * n * min(1.0, FEW / len(self.columns))))
        self.K, self.known = np.empty((n, n), dtype=np.float32), np.zeros(n, dtype=bool)
        self.made = 0
        # A first row that is there keeps what memory happens to hold out of the sums.
        first = np.zeros(1, dtype=np.int64)
        rows.fill(first, rows.columns(None), 0, n, self.K, first)
        self.known[0] = True

    @property
    def evaluations(self) -> int:
        """Values made one row at a time."""
        return self.made * len(self.K)

    def optimise(
        self, box: Box, tol: float, max_iter: int, beta: np.ndarray, v: np.ndarray
    ) -> tuple[int, int]:
        """Take steps until the conditions hold within `tol`.

        Parameters are those of :func:`~svmbench.core.csvc.whole_matrix.optimise`, which
        also says what is returned.
        """
        bounds, taken = (box.low, box.high), 0
        while True:
            before = int(np.count_nonzero(self.known))
            maker = self.K, self.columns, self.gamma
            ends = tol, max_iter - taken, max(0, self.most - before)
            steps, reason = steps_on_rows(
                raw(self.K), raw(self.rows.diagonal), self.known, maker, bounds, ends, beta, v
            )
            taken += steps
            self.made += int(np.count_nonzero(self.known)) - before
            if reason != UNKNOWN:
                return taken, reason
            self.K, self.known[:] = self.rows.whole(), True
