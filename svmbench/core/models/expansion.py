"""The model of every kernel solver: an expansion over points.

    f(x) = sum_j beta_j K(z_j, x) + b

The points z_j are training rows with their positions, or computed points, such as a reduced basis.
The coefficients beta_j are signed: alpha_i y_i if there are multipliers and labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.prediction import weighted_sums


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
        Positions of the points in the training samples; None for computed points.
    square : float or None
        ``||w||^2 = coefficients' K(points, points) coefficients``; None until it is evaluated.
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
        """Return the expansion over the rows of X with a coefficient other than 0."""
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

    def decide(self, X: Any, *, precision: str = "double", n_jobs: int = 1) -> np.ndarray:
        """Return f of each row of `X`, shape (n_samples,).

        Options are those of :func:`~svmbench.core.kernels.prediction.weighted_sums`.
        """
        values = weighted_sums(
            self.function, self.points, self.coefficients, X, precision=precision, n_jobs=n_jobs
        )
        values += self.b
        return values

    def squared_norm(self) -> float:
        """Return ``||w||^2``, evaluated on the points by blocks unless it is known."""
        if self.square is not None:
            return self.square
        f = Expansion(self.function, self.points, self.coefficients, 0.0).decide(self.points)
        return float(self.coefficients @ f)
