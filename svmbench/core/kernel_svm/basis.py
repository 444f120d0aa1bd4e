"""A growing basis of free points, cuts projected on its span, and estimators over a basis.

With basis points b_1 … b_k and G = K(b, b) = L L', a vector of the span is kept by its coordinates
in the orthonormal basis L^-1 phi(b). The projection of delta has the coordinates
p = L^-1 (<phi(b_j), delta>)_j, the squared length p'p and the coefficients L^-T p. A new point adds
a row to L and one coordinate to every projection; the other coordinates stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.base.compiled import compiled_sums
from svmbench.core.contract.base import require_count, warn_user
from svmbench.core.kernel_svm.preimage import NearSums
from svmbench.core.kernels.kernels import PIVOT_TOL, KernelFunction
from svmbench.core.models.kernel_base import ClassifierWithC

#: Largest number of kernel values of basis points with samples in double precision.
FLOAT64_MAX_BASIS_VALUES = 1 << 22


@compiled_sums
def most_violated(
    values: np.ndarray,  # (n_samples, at least n_basis)
    n_basis: int,
    beta: np.ndarray,  # (n_basis,): coefficients, of the type of `values`
    y: np.ndarray,  # (n_samples,): labels ±1
    violated: np.ndarray,  # uint8 (n_samples,): written: 1 where y f < 1
    products: np.ndarray,  # (n_basis,): written: sum over violated samples of y K(b_j, x)
) -> tuple[int, float]:  # n_violated, loss (summed hinge losses)
    """Find the most violated cut at an expansion over the basis, in one pass."""
    for j in range(n_basis):
        products[j] = 0.0
    n_violated, loss = 0, 0.0
    for i in range(len(y)):
        row = values[i, :n_basis]
        f = values.dtype.type(0.0)
        for j in range(n_basis):
            f += row[j] * beta[j]
        margin = y[i] * np.float64(f)
        violated[i] = 0
        if margin < 1.0:
            violated[i] = 1
            n_violated += 1
            loss += 1.0 - margin
            label = y[i]
            for j in range(n_basis):
                products[j] += label * np.float64(row[j])
    return n_violated, loss


@compiled_sums
def forward(L: np.ndarray, k: int, x: np.ndarray) -> None:
    """Replace `x` (k,) by the solution of L x = …, for the first k rows of a triangle."""
    for i in range(k):
        total, row = x[i], L[i]
        for j in range(i):
            total -= row[j] * x[j]
        x[i] = total / row[i]


@compiled_sums
def backward(L: np.ndarray, k: int, x: np.ndarray) -> None:
    """Replace `x` (k,) by the solution of L' x = …, for the first k rows of a triangle."""
    for i in range(k - 1, -1, -1):
        row = L[i]
        x[i] /= row[i]
        value = x[i]
        for j in range(i):
            x[j] -= row[j] * value


@compiled_sums
def column_products(
    values: np.ndarray, j: int, y: np.ndarray, cuts: np.ndarray, out: np.ndarray
) -> None:
    """Write the sums over each cut's samples of y times their value with basis point `j`."""
    n = len(y)
    column = np.empty(n)
    for i in range(n):
        column[i] = y[i] * np.float64(values[i, j])
    for c in range(len(cuts)):
        total, cut = 0.0, cuts[c]
        for i in range(n):
            total += np.float64(cut[i]) * column[i]
        out[c] = total


class Basis:
    """Basis points with their Cholesky factor and their kernel values with all samples."""

    def __init__(
        self,
        X: Any,  # (n_samples, n_features)
        function: KernelFunction,
        near: NearSums | None,  # maker of kernel values in single precision
        max_points: int,  # largest number of points
    ) -> None:
        self._X, self.function, self.max_points = X, function, max_points
        single = near is not None and X.shape[0] * max_points > FLOAT64_MAX_BASIS_VALUES
        self._near = near if single else None
        self.dtype: Any = np.float32 if single else np.float64
        # (n_samples, max_points): kernel values, of which the first `n` columns are filled
        self.values = np.empty((X.shape[0], max_points), dtype=self.dtype)
        self._L = np.zeros((max_points, max_points))
        self._points = np.empty((0, X.shape[1]))
        self.n = 0  # points so far
        self.refused = 0  # points that were in the span already

    @property
    def points(self) -> np.ndarray:
        """The points, float64 of shape (n, n_features)."""
        return self._points[: self.n]

    @property
    def is_full(self) -> bool:
        """True if there is no room for another point."""
        return self.n == self.max_points

    def coordinates(self, products: np.ndarray) -> np.ndarray:
        """Return L^-1 times the products of a vector with the basis points."""
        solved = np.array(products)
        forward(self._L, self.n, solved)
        return solved

    def coefficients(self, coordinates: np.ndarray) -> np.ndarray:
        """Return L^-T times coordinates: the coefficients of the expansion over the points."""
        solved = np.array(coordinates)
        backward(self._L, self.n, solved)
        return solved

    def distance(self, z: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return a point's squared distance from the span, K(z, z), and its coordinates there."""
        row_of_z = z[np.newaxis]
        square = float(self.function.diagonal(row_of_z)[0])
        with_others = self.function.between(row_of_z, self.points)[0] if self.n else np.empty(0)
        row = self.coordinates(with_others)
        return square - float(row @ row), square, row

    def add(
        self,
        z: np.ndarray,  # (n_features,)
        near_z: np.ndarray | None,  # the point in the coordinates of `near`
        scale: float,  # at least K(z, z): the distance from the span is relative to it
    ) -> bool:
        """Add a point unless it is in the span; return whether it was added."""
        k = self.n
        pivot, square, row = self.distance(z)
        if not pivot > PIVOT_TOL[self.dtype] * max(scale, square):
            self.refused += 1
            return False
        if self._near is None or near_z is None:
            self.values[:, k] = self.function.between(z[np.newaxis], self._X)[0]
        else:
            column = np.empty(len(self.values), dtype=np.float32)
            self._near.column(near_z, column)
            self.values[:, k] = column
        if k == len(self._points):
            longer = np.empty((min(self.max_points, max(16, 2 * k)), len(z)))
            longer[:k] = self._points
            self._points = longer
        self._points[k] = z
        self._L[k, :k], self._L[k, k] = row, np.sqrt(pivot)
        self.n = k + 1
        return True

    def scan(
        self, coordinates: np.ndarray, y: np.ndarray, violated: np.ndarray
    ) -> tuple[np.ndarray, int, float]:
        """Find the most violated cut at a vector of the span.

        Return its sums of y_i K(b_j, x_i) for each point, its number of samples, and the loss.
        """
        beta = self.coefficients(coordinates).astype(self.dtype)
        products = np.empty(self.n)
        n_violated, loss = most_violated(self.values, self.n, beta, y, violated, products)
        return products, n_violated, loss

    def last_coordinates(
        self,
        y: np.ndarray,  # (n_samples,)
        cuts: np.ndarray,  # uint8 (n_cuts, n_samples)
        # (n_cuts, n - 1): of the cuts' sums divided by the number of samples
        coordinates: np.ndarray,
    ) -> np.ndarray:
        """Return the newest coordinate of projections from their others, shape (n_cuts,)."""
        j = self.n - 1
        products = np.empty(len(cuts))
        column_products(self.values, j, y, cuts, products)
        row = self._L[j, :j]
        return (products / len(y) - coordinates @ row) / self._L[j, j]


@dataclass(eq=False, repr=False, kw_only=True)
class BasisClassifier(ClassifierWithC):
    """A kernel SVM without an offset, as an expansion over at most `n_basis` points.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (n_used, n_features)
        The basis points.
    dual_coef_ : ndarray of shape (1, n_used)
        Coefficients of the expansion.
    objective_, dual_objective_ : float
        The exact problem's primal value at this model, and a lower bound of its optimum in the
        span of the basis.
    """

    n_basis: int
    tol: float
    max_iter: int
    random_state: Any = 0

    treats_offset = "none"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_basis", self.n_basis)

    def _warn_of_few(self, n_samples: int) -> None:
        if int(self.n_basis) > n_samples:
            warn_user(
                f"n_basis={self.n_basis} is more than there are training samples: all {n_samples} "
                "are used",
                UserWarning,
            )
