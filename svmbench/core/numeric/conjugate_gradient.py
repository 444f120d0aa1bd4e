"""Preconditioned conjugate gradients (Hestenes and Stiefel 1952) for ``H x = right``.

H is positive definite and given by its products with vectors. The projected form for a quadratic
program with a box is in ``kernel_svm/projected_gradient.py``; the form for many shifts of one
matrix, which shares products of matrices, is in ``kernel_svm/linear_systems.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: From a vector of shape (d,) to another one.
Linear = Callable[[np.ndarray], np.ndarray]


class ConjugateGradients:
    """The state of the method, for callers that take its steps one by one."""

    def __init__(
        self,
        product: Linear,  # from p to H p
        right: np.ndarray,  # (d,), float64
        precondition: Linear | None = None,  # from r to about H^-1 r; the identity by default
        *,
        # directions by Polak and Ribière's formula, if the preconditioner varies by rounding or
        # the caller replaces the residual
        flexible: bool = False,
    ) -> None:
        self._product, self._precondition, self._flexible = product, precondition, flexible
        # The solution so far, and its residual by the recurrence.
        self.x, self.r = np.zeros_like(right), right
        self._before = right
        self._p = right if precondition is None else precondition(right)
        # r'z for the preconditioned residual z: the squared length of r in that norm.
        self.slope = float(self.r @ self._p)

    def step(self) -> bool:
        """Minimise along the direction; return False, with no step, where it has no curvature."""
        Hp = self._product(self._p)
        curvature = float(self._p @ Hp)
        # Rounding can make a nearly singular matrix indefinite; further steps would be noise.
        if not curvature > 0.0:
            return False
        length = self.slope / curvature
        self.x += length * self._p
        self._before, self.r = self.r, self.r - length * Hp
        return True

    def turn(self) -> None:
        """Take the next direction, conjugate to those so far."""
        z = self.r if self._precondition is None else self._precondition(self.r)
        slope = float(self.r @ z)
        fresh = float(z @ (self.r - self._before)) if self._flexible else slope
        self._p = z + (fresh / self.slope) * self._p
        self.slope = slope


def conjugate_gradients(
    product: Linear,
    right: np.ndarray,
    max_steps: int,
    *,
    residual: float = 0.0,
    length: float = 0.0,
    precondition: Linear | None = None,
) -> tuple[np.ndarray, int, bool]:
    """Return about ``H^-1 right``, the number of products with H, and whether it converged.

    It stops at a residual of at most `residual` times `right`, or at most `length`, both in the
    preconditioner's norm.
    """
    state, steps = ConjugateGradients(product, right, precondition), 0
    enough = max(residual**2 * state.slope, length * length)
    while state.slope > enough and steps < max_steps:
        if not state.step():
            return state.x, steps, False
        state.turn()
        steps += 1
    return state.x, steps, state.slope <= enough
