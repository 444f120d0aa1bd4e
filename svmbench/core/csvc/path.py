"""All values of C one after another, each solution the start of the next, as one compiled function.

Problem
    The C-SVC with a free offset, for C_1 < C_2 < …
Given
    K (n, n), y, the values of C.
Returned
    A solution for each C.
Reference
    Warm starts along C: Chu et al. 2015 (scaling a solution by the ratio of two values of C).
    Hastie, Rosset, Tibshirani and Zhu 2004: between two changes of what is at its bound, solutions
    move on a line as C grows.
Deviations
    - The factor is the best one for the new objective, not always the ratio.
    - Where few multipliers are at their bound (samples that contradict each other, and those near
      them), the others hardly change, and a solution goes along the line instead, if that gains
      more. Of the free multipliers only those that feel the bounded ones go along.
    - Once no multiplier is at its bound, the bound does not matter: the same multipliers are the
      solution for every larger C, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.csvc.problem import label_bounds, threshold
from svmbench.core.csvc.smo import (
    CONVERGED,
    NO_LIMIT,
    REASONS,
    SHRINK_MIN_SAMPLES,
    TINY,
    gather,
    shrinking_steps,
)
from svmbench.core.kernels.row_store import subtract_rows
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import leading_product

#: Few bounded multipliers: at most this share of all.
LINE_MAX_BOUNDED = 0.125

#: How fast a gradient must change with C for its multiplier to go along, and how many may.
FELT, MOST = 0.05, 512

#: The squared residual of the line's equations, beside that of its start, that counts as none.
SOLVED = 1e-20


@compiled
def stretch(y: np.ndarray, before: float, C: float, beta: np.ndarray, v: np.ndarray) -> None:
    """Scale the solution at C = `before` towards a larger C, in place, by the best factor.

    Scaling keeps ``e'beta = 0``, and the new gradient needs no kernel values. If most multipliers
    are at their bound it is nearly the next solution; if none is, the best factor is 1.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels ±1.
    before, C : float
        The present bound and the next.
    beta, v : ndarray of shape (n,)
        Signed multipliers and gradient ``y - K @ beta``.
    """
    linear, square = 0.0, 0.0
    for k in range(len(beta)):
        linear += y[k] * beta[k]
        square += beta[k] * (y[k] - v[k])
    largest = C / before
    factor = min(largest, max(1.0, linear / square)) if square > 0.0 else largest
    for k in range(len(beta)):
        at_bound = abs(beta[k]) >= before
        beta[k] *= factor
        if at_bound and factor == largest:
            beta[k] = C * y[k]
        v[k] += (1.0 - factor) * (y[k] - v[k])


@compiled
def balanced(A: np.ndarray, g: np.ndarray, total: float) -> np.ndarray:
    """Return what minimises ``1/2 x'Ax + g'x`` among the x of a given sum.

    By conjugate gradients, up to rounding or singularity.

    Parameters
    ----------
    A : ndarray of shape (m, m)
        Symmetric, positive semidefinite.
    g : ndarray of shape (m,)
    total : float
        The sum of x.
    """
    m = len(g)
    x, product = np.full(m, total / m), np.empty(m)
    leading_product(A, m, x, product)
    r = -(g + product)
    r -= r.mean()
    p = r.copy()
    square = r @ r
    first = square
    for _ in range(m):
        leading_product(A, m, p, product)
        curvature = p @ product
        if square <= SOLVED * first or curvature <= TINY * (p @ p):
            break
        x += (square / curvature) * p
        r -= (square / curvature) * (product - product.mean())
        before, square = square, r @ r
        p = r + (square / before) * p
    return x


@compiled
def tangent(
    K: np.ndarray, y: np.ndarray, bound: float, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much a solution changes for each unit of C, and the kernel matrix times that.

    What is at its bound moves with it. The free multipliers that feel this move so that their
    gradients stay equal and the sum stays 0. All zeros where that is not worth its cost: where no
    multiplier is at its bound or many are, or where many free ones feel them.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    y : ndarray of shape (n,)
        Labels ±1.
    bound : float
        The present C.
    beta : ndarray of shape (n,)
        The solution there.
    """
    n = len(y)
    nothing, change, moved = np.zeros(n), np.zeros(n), np.zeros(n)
    size = np.abs(beta)
    bounded = np.flatnonzero(size >= bound)
    if not 0 < len(bounded) <= LINE_MAX_BOUNDED * n:
        return nothing, nothing
    change[bounded] = y[bounded]
    subtract_rows(K, bounded, -change[bounded], moved, 0, n)
    felt = np.flatnonzero((size > 0.0) & (size < bound) & (np.abs(moved) > FELT))
    if not 0 < len(felt) <= MOST:
        return nothing, nothing
    x = balanced(gather(K, felt, felt), moved[felt], -change.sum())
    change[felt] = x
    subtract_rows(K, felt, -x, moved, 0, n)
    return change, moved


@compiled
def advance(
    K: np.ndarray, y: np.ndarray, before: float, C: float, beta: np.ndarray, v: np.ndarray
) -> None:
    """Make of the solution at C = `before` a start for a larger C, in place.

    By :func:`stretch`; or by :func:`tangent`, where that gains more and there are at least
    `SHRINK_MIN_SAMPLES` samples.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    y, before, C, beta, v
        As for :func:`stretch`.
    """
    if len(y) >= SHRINK_MIN_SAMPLES:
        change, moved = tangent(K, y, before, beta)
        # As far as all stay within the new bounds.
        most = C - before
        for k in range(len(y)):
            if change[k] != 0.0 and abs(beta[k]) < before:
                end = C if change[k] * y[k] > 0.0 else 0.0
                most = min(most, (end - abs(beta[k])) / abs(change[k]) * np.sign(change[k] * y[k]))
        step, gain = best_step(v @ change, change @ moved, most)
        if gain > best_step(v @ beta, beta @ (y - v), C / before - 1.0)[1]:
            reaches = step >= C - before
            for k in range(len(y)):
                size = (
                    C if reaches and abs(beta[k]) >= before else y[k] * (beta[k] + step * change[k])
                )
                beta[k] = y[k] * min(max(size, 0.0), C)
                v[k] -= step * moved[k]
            return
    stretch(y, before, C, beta, v)


@compiled
def best_step(slope: float, curvature: float, most: float) -> tuple[float, float]:
    """Return the best step along a direction, from 0 to `most`, and what the objective gains."""
    step = most
    if curvature > 0.0:
        step = min(most, slope / curvature)
    step = max(0.0, step)
    return step, step * (slope - 0.5 * curvature * step)


@compiled
def follow(
    K: np.ndarray,
    diag: np.ndarray,
    y: np.ndarray,
    values: np.ndarray,
    ends: tuple[float, int, float],
    found: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Solve for every value of C, ascending, and write what was found to the last four.

    Parameters
    ----------
    K, diag : ndarray of shape (n, n), (n,)
        Kernel matrix and its diagonal, of one type.
    y : ndarray of shape (n,)
        Labels ±1.
    values : ndarray of shape (n_values,)
        C, ascending.
    ends : (float, int, float)
        Tolerance of the violation, largest number of steps for each C, and the share of C n at
        which the duality gap ends a fit (``narrowing.NO_LIMIT`` for none).
    found : (ndarray of shape (n_values, n), and three of shape (n_values,))
        Signed multipliers; b, pair steps, and why they ended: positions in
        ``whole_matrix.REASONS``.
    """
    n = len(y)
    tol, max_iter, share = ends
    betas, offsets, steps, reasons = found
    beta, v = np.zeros(n), y.copy()
    settled = False
    for c in range(len(values)):
        C = values[c]
        if settled:
            steps[c], reasons[c], offsets[c] = 0, CONVERGED, offsets[c - 1]
        else:
            if c > 0:
                advance(K, y, values[c - 1], C, beta, v)
            low, high = label_bounds(y, C)
            criteria = tol, max_iter, share * C * n
            steps[c], reasons[c] = shrinking_steps(K, diag, (low, high), criteria, beta, v)
            offsets[c] = threshold(low, high, beta, v)
            settled = reasons[c] == CONVERGED
            for k in range(n):
                settled = settled and abs(beta[k]) < C
        betas[c] = beta


def along_c(
    K: np.ndarray,
    y: np.ndarray,
    values: Sequence[float],
    *,
    tol: float,
    max_iter: int,
    gap: float | None = None,
) -> list[KernelSolution]:
    """Solve on a kernel matrix for each C of `values`, ascending; each solution starts the next.

    Once no multiplier is at its bound, the bound does not matter: the same multipliers are the
    solution for every larger C, and cost nothing.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Float32 or float64, C-ordered.
    y : ndarray of shape (n,)
        Labels ±1.
    values : sequence of float
    tol, max_iter : float, int
        Tolerance of the violation, largest number of pair steps for each C.
    gap : float, optional
        Share of C n at which the duality gap ends a fit.
    """
    n_values = len(values)
    betas, offsets = np.empty((n_values, len(y))), np.empty(n_values)
    steps, reasons = np.empty(n_values, dtype=np.int64), np.empty(n_values, dtype=np.int64)
    diag = raw(K.diagonal().copy())
    C = np.array(values, dtype=np.float64)
    found = betas, offsets, steps, reasons
    ends = tol, max_iter, NO_LIMIT if gap is None else gap
    follow(raw(K), diag, raw(y), C, ends, found)
    return [
        KernelSolution(
            coefficients=betas[c],
            b=float(offsets[c]),
            n_iter=int(steps[c]),
            stop_reason=REASONS[reasons[c]],
            counters={"kernel_evaluations": K.size if c == 0 else 0, "updates": int(steps[c])},
        )
        for c in range(n_values)
    ]
