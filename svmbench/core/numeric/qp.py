"""A small quadratic program over a simplex, a subproblem of larger algorithms.

Problem
    min_a  1/2 a'H a - b'a   over the simplex  a >= 0, sum_i a_i = s.
Given
    H (n, n) positive semidefinite, b, s > 0, a feasible start, a gap.
Returned
    a with a'g - s min_i g_i <= gap, g = H a - b: an upper bound of how far its value is from the
    optimum (the Frank-Wolfe gap, which is also the duality gap).
Method
    Sequential minimal optimisation: move mass to the coordinate with the least gradient from the
    one with mass that promises the largest decrease (second-order choice, Fan, Chen, Lin 2005).
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled

#: Lower bound of a curvature, relative to the largest diagonal entry.
SMALLEST_CURVATURE = 1e-14


@compiled
def simplex_qp(
    H: np.ndarray, b: np.ndarray, s: float, a: np.ndarray, gap: float, max_iter: int
) -> tuple[int, float]:
    """Minimise in place from a feasible `a`, in at most `max_iter` steps; return steps and gap."""
    n = len(b)
    g = np.empty(n)
    flat = 0.0
    for i in range(n):
        total = -b[i]
        for j in range(n):
            total += H[i, j] * a[j]
        g[i] = total
        flat = max(flat, SMALLEST_CURVATURE * H[i, i])
    if flat == 0.0:
        flat = SMALLEST_CURVATURE
    reached = np.inf
    for step in range(max_iter + 1):
        i = 0
        weighted = 0.0
        for k in range(n):
            weighted += a[k] * g[k]
            if g[k] < g[i]:
                i = k
        reached = weighted - s * g[i]
        if reached <= gap or step == max_iter:
            return step, reached
        j, best = -1, 0.0
        for k in range(n):
            if a[k] > 0.0 and g[k] > g[i]:
                slope = g[k] - g[i]
                curvature = max(H[i, i] + H[k, k] - 2.0 * H[i, k], flat)
                # The mass a_k limits the step and its gain.
                t = min(slope / curvature, a[k])
                gain = t * (slope - 0.5 * t * curvature)
                if gain > best:
                    j, best = k, gain
        if j < 0:
            return step, reached
        curvature = max(H[i, i] + H[j, j] - 2.0 * H[i, j], flat)
        t = (g[j] - g[i]) / curvature
        if t >= a[j]:
            t = a[j]
            a[j] = 0.0
        else:
            a[j] -= t
        a[i] += t
        for k in range(n):
            g[k] += t * (H[i, k] - H[j, k])
    return max_iter, reached
