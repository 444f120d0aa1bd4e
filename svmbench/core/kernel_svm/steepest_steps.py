"""The passes of SGD-LSSVM over all samples: a change of the gradient, and the search in one.

``sgd_lssvm.py`` says what u, beta and nu are.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.passes import larger

#: Samples whose gradient changes before their largest is looked for: one piece of the cache.
PIECE = 256


@compiled
def step_and_find_largest(
    u: np.ndarray, column: np.ndarray, shift: float, s: float
) -> tuple[int, float]:
    """Take ``s (column + shift)`` off the gradient; return where it is largest, and how large.

    Parameters
    ----------
    u : ndarray of shape (n,)
        Gradient, changed in place.
    column : ndarray of shape (n,)
        Kernel values, or their weighted sums, in single or double precision.
    shift, s : float

    Returns
    -------
    i : int
        The first sample with the largest ``|u_i|``.
    largest : float
    """
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
    i: int, column: np.ndarray, nu: float, beta: np.ndarray, u: np.ndarray
) -> tuple[int, float, float]:
    """Take the exact step on coordinate `i`, whose kernel column is given.

    Parameters
    ----------
    i : int
    column : ndarray of shape (n,)
    nu : float
    beta, u : ndarray of shape (n,)
        Signed multipliers and gradient, changed in place.

    Returns
    -------
    i, largest : int, float
        Where the gradient is largest now, and how large.
    decrease : float
        Of f.
    """
    s = u[i] / (np.float64(column[i]) + 1.0 + nu)
    decrease = 0.5 * u[i] * s
    beta[i] -= s
    u[i] -= nu * s
    i, largest = step_and_find_largest(u, column, 1.0, s)
    return i, largest, decrease


@compiled
def step_and_select(
    u: np.ndarray, a: np.ndarray, shift: float, s: float, chosen: np.ndarray, size: np.ndarray
) -> float:
    """Take ``s (a + shift)`` off the gradient; select the samples where it is largest.

    Parameters
    ----------
    u : ndarray of shape (n,)
        Gradient, changed in place.
    a : ndarray of shape (n,)
    shift, s : float
    chosen : ndarray of int of shape (t,)
        Receives the t samples with the largest ``|u_i|``, the first of equal ones, as a heap.
    size : ndarray of shape (t,)
        Receives their ``|u_i|``.

    Returns
    -------
    float
        The largest of all.
    """
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
    K: np.ndarray,
    nu: float,
    tol: float,
    n_steps: int,
    beta: np.ndarray,
    u: np.ndarray,
    i: int,
    largest: float,
) -> tuple[int, int, float, float]:
    """Take at most `n_steps` steps of one coordinate on a matrix that is there.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    nu, tol : float
    n_steps : int
    beta, u : ndarray of shape (n,)
        Signed multipliers and gradient, changed in place.
    i, largest : int, float
        Where the gradient is largest, and how large.

    Returns
    -------
    steps : int
        Taken.
    i, largest : int, float
        As they are now.
    decrease : float
        Of f.
    """
    decrease = 0.0
    for step in range(n_steps):
        if largest < tol:
            return step, i, largest, decrease
        i, largest, gain = step_on(i, K[i], nu, beta, u)
        decrease += gain
    return n_steps, i, largest, decrease


@compiled
def descend_by_blocks(
    K: np.ndarray,
    nu: float,
    tol: float,
    n_steps: int,
    beta: np.ndarray,
    u: np.ndarray,
    chosen: np.ndarray,
    size: np.ndarray,
    largest: float,
) -> tuple[int, float, float]:
    """Take at most `n_steps` steps of t coordinates on a matrix that is there.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    nu, tol : float
    n_steps : int
    beta, u : ndarray of shape (n,)
        Signed multipliers and gradient, changed in place.
    chosen, size : ndarray of shape (t,)
        From :func:`step_and_select`, which they go to.
    largest : float
        The largest component of the gradient.

    Returns
    -------
    steps : int
        Taken.
    largest : float
        As it is now.
    decrease : float
        Of f.
    """
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
