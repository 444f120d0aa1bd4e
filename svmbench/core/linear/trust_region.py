"""Truncated Newton within a trust region, of a function that is known by its values alone.

Problem
    min_w  f(w), convex with a Lipschitz gradient g and a generalised Hessian H.
Given
    w -> (f, g) and (w, v) -> H(w) v, each of which may be a pass over data elsewhere; a norm of
    the gradient to reach.
Returned
    w with ||g(w)|| at most that.
Reference
    Lin, Weng and Keerthi 2008 (Trust region Newton method for large-scale logistic regression),
    Algorithms 1 and 2, with their constants; for the squared hinge see its section 5.
Deviations
    - The first region is no larger than the first step, as in LIBLINEAR's tron.cpp.
    - A step that promises less than the rounding of f is taken if it makes the gradient smaller:
      near the optimum f is constant to sixteen digits while g still has eight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Shares of the promised decrease (eta_0, eta_1, eta_2): above the first a step is taken; below the
#: second the region shrinks; above the third it grows.
TAKEN, POOR, GOOD = 1e-4, 0.25, 0.75
#: Factors of the radius (sigma_1, sigma_2, sigma_3).
SHRINK, MILD, GROW = 0.25, 0.5, 4.0

#: Conjugate gradients end at this share of the gradient's norm, or after this many products.
FORCING, MOST_PRODUCTS = 0.1, 250

#: A promised decrease below this share of f is rounding.
SMALLEST_PROMISE = 1e-14

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass
class TrustRegionResult:
    """Result of a descent."""

    w: np.ndarray  # (d,)
    g: np.ndarray  # (d,): the gradient
    f: float
    steps: int = 0  # tried
    products: int = 0  # with the Hessian
    stop_reason: str = "max_iter"  # or "converged" or "stalled"


def trust_region_newton(
    function: Function,
    product: Product,
    w: np.ndarray,  # (d,): where to start
    target: Callable[[float], float],  # from the norm of the first gradient to the one to reach
    most: int,  # largest number of steps
) -> TrustRegionResult:
    """Take steps from w until the gradient is small enough."""
    f, g = function(w)
    at = TrustRegionResult(w, g, f)
    size = float(np.linalg.norm(g))
    radius, enough = size, target(size)
    while size > enough and at.steps < most:
        s, r, n_products = within(lambda v: product(at.w, v), at.g, radius)
        at.steps, at.products = at.steps + 1, at.products + n_products
        length, slope = float(np.linalg.norm(s)), float(at.g @ s)
        promised = -0.5 * (slope - float(s @ r))
        new = at.w + s
        f, g = function(new)
        gained = at.f - f
        if at.steps == 1:
            radius = min(radius, length)
        is_rounding = promised <= SMALLEST_PROMISE * abs(at.f)
        if is_rounding and float(np.linalg.norm(g)) >= size:
            at.stop_reason = "stalled"
            break
        radius = region(radius, length, slope, gained, promised)
        if is_rounding or gained > TAKEN * promised:
            at.w, at.g, at.f = new, g, f
            size = float(np.linalg.norm(g))
    if size <= enough:
        at.stop_reason = "converged"
    return at


def within(
    product: Callable[[np.ndarray], np.ndarray], g: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return s with ``H s = -g`` approximately and ``||s|| <= radius``, ``r = -g - H s``, products.

    Algorithm 2; `product` maps v to H v.
    """
    s, r = np.zeros_like(g), -g
    d, rr = r.copy(), float(r @ r)
    enough = FORCING**2 * rr
    for done in range(MOST_PRODUCTS):
        if rr <= enough:
            return s, r, done
        Hd = product(d)
        step = rr / float(d @ Hd)
        if np.linalg.norm(s + step * d) > radius:
            # The positive root of ||s + step d|| = radius, in the form that does not cancel.
            sd, dd = float(s @ d), float(d @ d)
            room = radius * radius - float(s @ s)
            root = np.sqrt(sd * sd + dd * room)
            step = room / (sd + root) if sd >= 0.0 else (root - sd) / dd
            return s + step * d, r - step * Hd, done + 1
        s += step * d
        r -= step * Hd
        new = float(r @ r)
        d, rr = r + (new / rr) * d, new
    return s, r, MOST_PRODUCTS


def region(radius: float, length: float, slope: float, gained: float, promised: float) -> float:
    """Return the next radius (equation 14).

    `length` is the length of the step, `slope` the slope of f along it; `gained` and `promised` are
    the decreases of f and of its quadratic model.
    """
    # The minimum of the parabola through f, its slope and the new f, in steps.
    bend = -gained - slope
    best = GROW if bend <= 0.0 else max(SHRINK, -0.5 * slope / bend)
    if gained < TAKEN * promised:
        return min(max(best, SHRINK) * length, MILD * radius)
    if gained < POOR * promised:
        return max(SHRINK * radius, min(best * length, MILD * radius))
    if gained < GOOD * promised:
        return max(SHRINK * radius, min(best * length, GROW * radius))
    return max(radius, min(best * length, GROW * radius))
