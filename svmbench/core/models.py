"""The model of every kernel solver: an expansion over points.

    f(x) = sum_j beta_j K(z_j, x) + b

The points z_j are training rows, by their positions, or free: computed points that are no rows,
as a reduced basis has them. The coefficients beta_j are signed: alpha_i y_i where there are
multipliers and labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.arrays import csr_parts
from svmbench.core.compiled import compiled
from svmbench.core.kernels import KernelFunction, gauss_double, squared_lengths

#: Kernel values held in memory at a time when a model is evaluated.
BLOCK_VALUES = 1 << 23

#: The same where they are made in one go: they stay in the second-level cache.
CACHED_VALUES = 1 << 15

#: Above this share of non-zeros a product of dense matrices is faster than one over these alone.
FEW = 0.2


@compiled
def products_of_sparse(
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    first: int,
    others: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write inner products of CSR rows, from `first` on, with dense points.

    Parameters
    ----------
    data, indices, starts : ndarray
        Of the CSR matrix.
    first : int
    others : ndarray of shape (n_features, n_points)
        The points, a column each: a non-zero meets all of them in one run.
    out : ndarray of shape (n_rows, n_points)
    """
    for i in range(len(out)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for p in range(np.uint32(starts[first + i]), np.uint32(starts[first + i + 1])):
            value, other = data[p], others[np.uint32(indices[p])]
            for j in range(len(row)):
                row[j] += value * other[j]


@dataclass(frozen=True)
class Expansion:
    """A function over points, with a kernel.

    Attributes
    ----------
    function : KernelFunction
    points : ndarray or csr_array of shape (n_points, n_features)
    coefficients : ndarray of shape (n_points,)
        Signed.
    b : float
        Offset.
    rows : ndarray of int of shape (n_points,) or None
        Positions of the points in the training samples; None where they are no rows.
    square : float or None
        ``||w||^2 = coefficients' K(points, points) coefficients`` once somebody has evaluated it.
    rho : float
        The margin of nu-svc and one-class, the squared radius of svdd; else 0.
    """

    function: KernelFunction
    points: Any
    coefficients: np.ndarray
    b: float
    rows: np.ndarray | None = None
    square: float | None = None
    rho: float = 0.0

    @staticmethod
    def over_rows(
        function: KernelFunction, X: Any, coefficients: np.ndarray, b: float, rho: float = 0.0
    ) -> Expansion:
        """Return the expansion over those training rows whose coefficient is not 0.

        Parameters
        ----------
        function : KernelFunction
        X : ndarray or csr_array of shape (n_samples, n_features)
        coefficients : ndarray of shape (n_samples,)
        b, rho : float
            As the class has them.
        """
        rows = np.flatnonzero(coefficients)
        return Expansion(
            function, function.take(X, rows), coefficients[rows], b, rows=rows, rho=rho
        )

    @property
    def dual_coef(self) -> np.ndarray:
        """The coefficients, shape (1, n_points)."""
        return self.coefficients.reshape(1, -1)

    @property
    def intercept(self) -> np.ndarray:
        """The offset, shape (1,)."""
        return np.array([self.b])

    def normals(self) -> np.ndarray:
        """Return the normal vector of a linear kernel, shape (1, n_features)."""
        return np.asarray(self.coefficients @ self.points).reshape(1, -1)

    def decide(self, X: Any) -> np.ndarray:
        """Return f of each row of `X` (dense or CSR), shape (len(X),)."""
        values = np.full(X.shape[0], self.b)
        n_points = len(self.coefficients)
        few = sp.issparse(X) and X.nnz < FEW * X.shape[0] * X.shape[1]
        if n_points and few and self.function.name == "rbf" and not sp.issparse(self.points):
            return values + self._decide_sparse(X)
        height = max(1, BLOCK_VALUES // max(1, n_points))
        for start in range(0, X.shape[0] if n_points else 0, height):
            rows = slice(start, start + height)
            values[rows] += self.function.between(X[rows], self.points) @ self.coefficients
        return values

    def _decide_sparse(self, X: sp.csr_array) -> np.ndarray:
        """Return f - b of sparse rows over dense points: RBF values are read in the cache."""
        parts, others = csr_parts(X), np.ascontiguousarray(self.points.T)
        own, lengths = squared_lengths(X), squared_lengths(self.points)
        n_points = len(lengths)
        height = max(1, CACHED_VALUES // n_points)
        values, P = np.empty(X.shape[0]), np.empty((min(height, X.shape[0]), n_points))
        for start in range(0, len(values), height):
            rows = slice(start, start + height)
            block = P[: len(values[rows])]
            products_of_sparse(*parts, start, others, block)
            gauss_double(block, own[rows], lengths, self.function.gamma)
            np.matmul(block, self.coefficients, out=values[rows])
        return values

    def squared_norm(self) -> float:
        """Return ``||w||^2``: what is known of it, or evaluated on the points by blocks."""
        if self.square is not None:
            return self.square
        f = Expansion(self.function, self.points, self.coefficients, 0.0).decide(self.points)
        return float(self.coefficients @ f)
