"""The passes of SGD-LSSVM over all samples: a change of the gradient, and the search in one.

``sgd_lssvm.py`` says what u, beta and nu are.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.problem import larger

#: Samples whose gradient changes before their largest is looked for: one piece of the cache.
PIECE = 256


@compiled
def step_and_find_largest(
    u: np.ndarray,  # (n,): gradient, changed in place
    # (n,): kernel values, or their weighted sums, in single or double precision
    column: np.ndarray,
    shift: float,
    s: float,
) -> tuple[int, float]:  # i (the first sample with the largest ``|u_i|``), largest
    """Take ``s (column + shift)`` off the gradient; return where it is largest, and how large."""
    n = len(u)
    top, piece = -1.0, 0
    for start in range(0, n, PIECE):
        values, kernel = u[start : start + PIECE], column[start : start + PIECE]
        best = -1.0
        for k in range(len(values)):
            w = values[k] - s * (np.float64(kernel[k]) + shift)
            values[k] = w
            best = larger(best, abs(w))
        if best > top:
            top, piece = best, start
    i = piece
    while i < n - 1 and abs(u[i]) != top:
        i += 1
    return i, top


@compiled
def step_on(
    i: int,
    column: np.ndarray,  # (n,)
    nu: float,
    # beta, u (n,): signed multipliers and gradient, changed in place
    beta: np.ndarray,
    u: np.ndarray,
) -> tuple[int, float, float]:
    """Take the exact step on coordinate `i`, whose kernel column is given.

    Return where the gradient is largest now, how large, and the decrease of f.
    """
    s = u[i] / (np.float64(column[i]) + 1.0 + nu)
    decrease = 0.5 * u[i] * s
    beta[i] -= s
    u[i] -= nu * s
    i, largest = step_and_find_largest(u, column, 1.0, s)
    return i, largest, decrease


@compiled
def step_and_select(
    u: np.ndarray,  # (n,): gradient, changed in place
    a: np.ndarray,  # (n,)
    shift: float,
    s: float,
    # int (t,): receives the t samples with the largest ``|u_i|``, the first of equal ones, as a
    # heap
    chosen: np.ndarray,
    size: np.ndarray,  # (t,): receives their ``|u_i|``
) -> float:  # the largest of all
    """Take ``s (a + shift)`` off the gradient; select the samples where it is largest."""
    n, t = len(u), len(chosen)
    filled = 0
    for start in range(0, n, PIECE):
        values, sums = u[start : start + PIECE], a[start : start + PIECE]
        best = -1.0
        for k in range(len(values)):
            w = values[k] - s * (sums[k] + shift)
            values[k] = w
            best = larger(best, abs(w))
        if filled == t and not best > size[0]:
            continue
        for k in range(len(values)):
            new, i = abs(values[k]), start + k
            if filled < t:
                # Up from the end of the heap, whose root is the smallest, and the last of these.
                place = filled
                filled += 1
                while place > 0:
                    above = (place - 1) // 2
                    if new > size[above]:
                        break
                    size[place], chosen[place] = size[above], chosen[above]
                    place = above
            elif new > size[0]:
                place = 0
                while True:
                    below = 2 * place + 1
                    if below >= t:
                        break
                    right = below + 1
                    if right < t and (
                        size[right] < size[below]
                        or (size[right] == size[below] and chosen[right] > chosen[below])
                    ):
                        below = right
                    # The new one comes last of its equals: it stays above them.
                    if size[below] >= new:
                        break
                    size[place], chosen[place] = size[below], chosen[below]
                    place = below
            else:
                continue
            size[place], chosen[place] = new, i
    largest = 0.0
    for k in range(t):
        largest = max(largest, size[k])
    return largest


@compiled
def descend_on_matrix(
    K: np.ndarray,  # (n, n)
    nu: float,
    tol: float,
    n_steps: int,
    # beta, u (n,): signed multipliers and gradient, changed in place
    beta: np.ndarray,
    u: np.ndarray,
    i: int,  # where the gradient is largest
    largest: float,  # how large
) -> tuple[int, int, float, float]:  # steps (taken); i, largest; decrease (of f)
    """Take at most `n_steps` steps of one coordinate on a matrix that is there."""
    decrease = 0.0
    for step in range(n_steps):
        if largest < tol:
            return step, i, largest, decrease
        i, largest, gain = step_on(i, K[i], nu, beta, u)
        decrease += gain
    return n_steps, i, largest, decrease


@compiled
def descend_by_blocks(
    K: np.ndarray,  # (n, n)
    nu: float,
    tol: float,
    n_steps: int,
    # beta, u (n,): signed multipliers and gradient, changed in place
    beta: np.ndarray,
    u: np.ndarray,
    # chosen, size (t,): from `step_and_select`, which they go to
    chosen: np.ndarray,
    size: np.ndarray,
    largest: float,  # the largest component of the gradient
) -> tuple[int, float, float]:  # steps (taken), largest, decrease (of f)
    """Take at most `n_steps` steps of t coordinates on a matrix that is there."""
    a, decrease = np.empty(len(u)), 0.0
    for step in range(n_steps):
        if largest < tol:
            return step, largest, decrease
        a[:] = 0.0
        gg = gKg = 0.0
        B = np.sort(chosen)
        for i in B:
            gg += u[i] * u[i]
            weight, row = u[i], K[i]
            for k in range(len(a)):
                # The constant first: weights times tiny kernel values would be denormal, and slow.
                a[k] += weight * (np.float64(row[k]) + 1.0)
        for i in B:
            gKg += u[i] * a[i]
        theta = gg / (nu * gg + gKg)
        decrease += 0.5 * theta * gg
        for i in B:
            beta[i] -= theta * u[i]
            u[i] -= nu * theta * u[i]
        largest = step_and_select(u, a, 0.0, theta, chosen, size)
    return n_steps, largest, decrease
