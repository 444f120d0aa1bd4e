"""Growth of a basis: residuals of vectors, and points that represent them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from svmbench.core.kernel_svm.basis import Basis
from svmbench.core.kernel_svm.preimage import (
    STARTS,
    Probe,
    Residual,
    Samples,
    as_point,
    fixed_point,
    random_starts,
)
from svmbench.core.kernel_svm.preimage_inputs import NearSums

#: Squared distance of a point that is in the span.
TINY = 1e-12


@dataclass
class Growth:
    """The growing basis: the source of the next point, and the work so far."""

    samples: Samples  # the training samples
    y: np.ndarray  # (n_samples,)
    basis: Basis
    near: NearSums | None
    free: bool  # whether the points may be others than training samples
    rng: Any
    # the samples that the points are, where they are samples
    rows: list[int] = field(default_factory=list)
    near_points: list[np.ndarray] = field(default_factory=list)
    fallbacks: int = 0
    sums: int = 0
    evaluations: int = 0

    @property
    def is_whole(self) -> bool:
        """True if a full basis spans all samples: as many points, all of them in their span."""
        in_span = not self.free or self.basis.function.name == "linear"
        return in_span and self.basis.n_most >= len(self.y)

    def residual(
        self,
        members: np.ndarray,  # (n_samples,): weights m
        coordinates: np.ndarray,  # (n_basis,): the projection's
    ) -> Residual:
        """Return ``sum_i m_i y_i phi(x_i)`` less its projection."""
        rows = np.flatnonzero(members)
        near = (
            np.array(self.near_points)
            if self.near_points
            else np.empty((0, self.samples.X.shape[1]))
        )
        weights = members[rows] * self.y[rows]
        coefficients = self.basis.coefficients(coordinates)
        return Residual(rows, weights, coefficients, self.basis.points, near)

    def extend(
        self,
        residual: Residual,
        # of the residual: the search then starts from its best samples, and a sample is taken
        # where that is farther from the span, so that more of the residual goes
        measured: Probe | None = None,
    ) -> bool:
        """Let the pre-image of a residual join the basis; say whether the basis has grown."""
        function = self.basis.function
        if function.name == "linear" and self.free:
            z, scale = self._exact(residual)
            return self._add(z, None, scale)
        row = -1
        if measured is not None:
            row = int(measured.best(1)[0])
        elif self.near is None or not self.free:
            row = self.samples.best(residual, self.rng)
        if self.near is None or not self.free:
            return self._add_sample(row)
        drawn = random_starts(residual, self.rng) if measured is None else measured.best(STARTS)
        near_z, value, sums, fell_back = fixed_point(self.near, residual, function.gamma, drawn)
        z = self.near.to_points(near_z)
        self.sums += sums
        self.evaluations += sums * (len(residual.rows) + len(residual.points))
        if measured is not None and not fell_back:
            of_sample = np.abs(measured.values).max() ** 2
            gain = of_sample / max(self.basis.distance(self._point(row))[0], TINY)
            fell_back = not value / max(self.basis.distance(z)[0], TINY) > gain
        self.fallbacks += fell_back
        if fell_back and row >= 0:
            return self._add_sample(row)
        return self._add(z, near_z)

    def _exact(self, residual: Residual) -> tuple[np.ndarray, float]:
        """Return a linear residual, and the squared length of what it is left of, at length 1."""
        z = as_point(self.samples.X, residual)
        whole = z + residual.coefficients @ residual.points
        length = float(np.linalg.norm(z))
        # At length 1 single precision holds its kernel values, however little is left.
        return (z / length, float(whole @ whole) / length**2) if length > 0.0 else (z, 1.0)

    def _point(self, row: int) -> np.ndarray:
        X = self.samples.X
        x = X[row] if isinstance(X, np.ndarray) else X[[row]].toarray().ravel()
        return np.asarray(x)

    def _add_sample(self, row: int) -> bool:
        near_z = None if self.near is None else self.near.point(row)
        grown = self._add(self._point(row), near_z)
        if grown:
            self.rows.append(row)
        return grown

    def _add(self, z: np.ndarray, near_z: np.ndarray | None, scale: float = 0.0) -> bool:
        if not self.basis.add(z, near_z, scale):
            return False
        self.evaluations += len(self.y) + self.basis.n
        if near_z is not None:
            self.near_points.append(near_z)
        return True

    def counters(self) -> dict[str, int]:
        """Return the work done."""
        return {
            "basis_vectors": self.basis.n,
            "refused_points": self.basis.refused,
            "preimage_sums": self.sums,
            "preimage_fallbacks": self.fallbacks,
            "kernel_evaluations": self.evaluations + self.samples.evaluations,
        }
