"""Sums of samples about a shift, and the least-squares SVM of them: see `statistics.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from svmbench.core.linear import least_squares

#: What `stop_reason_` says.
CLOSED_FORM = "closed form"
BY_CENTRED_SUMS = "closed form, of sums about the means"


@dataclass
class Sums:
    """Sums of some samples about a shift, and what they say of samples with a constant feature.

    Attributes
    ----------
    S : ndarray of shape (d + 1, d + 1)
        Symmetric.
    r : ndarray of shape (d + 1,)
        Sum of y z, for labels y of ±1.
    shift : ndarray of shape (d,)
    bias : float
        Value of the constant feature; 0 for none.
    """

    S: np.ndarray
    r: np.ndarray
    shift: np.ndarray
    bias: float

    @cached_property
    def T(self) -> np.ndarray:  # noqa: N802 (the letter of the formula)
        """The matrix that makes samples of z, shape (d or d + 1, d + 1)."""
        d = len(self.shift)
        T = np.eye(d + bool(self.bias), d + 1)
        T[:d, d] = self.shift
        T[d:, d] = self.bias
        return T

    @cached_property
    def A(self) -> np.ndarray:  # noqa: N802
        """Sum of outer products of the samples."""
        return self.T @ self.S @ self.T.T

    @cached_property
    def q(self) -> np.ndarray:
        """Sum of y times the sample."""
        return np.asarray(self.T @ self.r)

    def solve(self, nu: float) -> tuple[np.ndarray, str]:
        """Return the solution of ``(A + nu I) w = q`` and by what it was found.

        The weight of the constant feature is the last. By the sums themselves where no feature is
        shifted and they are well enough conditioned; else about the shift; else without the
        directions of which the sums know nothing.
        """
        if not self.shift.any():
            w = least_squares.solve_sums(self.A, self.q, nu)
            if w is not None:
                return w, CLOSED_FORM
        else:
            w = self._solve_shifted(nu)
            if w is not None:
                return w, BY_CENTRED_SUMS
        w, _ = least_squares.solve(self.A, self.q, nu)
        return w, least_squares.BY_POOR_SUMS

    def _solve_shifted(self, nu: float) -> np.ndarray | None:
        """Solve in the coordinates of z; None where S is too ill-conditioned.

        With ``v = T'w`` and ``u = (m, -1)`` the constant's weight is ``-u v / beta``, so that

            (K + nu / beta^2 u u') v = r,    K = S + nu diag(1, ..., 1, 0),

        where K knows of no offset, and its inverse with u is Sherman and Morrison's; without a
        constant feature it is the limit, ``u v = 0``.
        """
        d = len(self.shift)
        K = self.S.copy()
        K.flat[: -1 : d + 2] += nu
        scale = 1.0 / np.sqrt(np.diag(K))
        factor = least_squares.cholesky(K * np.outer(scale, scale), 0.0)
        if factor is None:
            return None
        u = np.append(self.shift, -1.0)
        a, g = solve_triangular(factor, np.column_stack([scale * self.r, scale * u]), lower=True).T
        loose = self.bias**2 / nu
        share = float(g @ a) / (loose + float(g @ g))
        v = scale * solve_triangular(factor, a - share * g, lower=True, trans="T")
        return np.append(v[:d], -share * loose / self.bias) if self.bias else v[:d]

    def loss(self, w: np.ndarray, b: float) -> float:
        """Return ``sum (1 - y f(x))^2`` of ``f(x) = w x + b`` over these samples."""
        v = np.append(w, b + float(w @ self.shift))
        return max(0.0, float(self.S[-1, -1] - 2.0 * (v @ self.r) + v @ self.S @ v))
