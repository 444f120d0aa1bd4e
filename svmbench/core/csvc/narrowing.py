"""Steps on a kernel matrix in memory, with the samples left out that seem to be settled.

Problem
    That of ``box`` with one kept sum.
Given
    K (n, n), a start inside the bounds with its gradient v = p - K beta, and what ends the search.
Returned
    beta and v in place, once the conditions hold within tol for all samples; or once the duality
    gap is at most a limit, where there is one.
Reference
    Joachims 1999 (shrinking); Chang and Lin 2011, section 5.1, for which samples are left out.
    Steinwart, Hush and Scovel 2011: the duality gap as what ends a search (liquidSVM stops at
    1e-3 C n).
Deviations
    - The kernel values of the samples that stay are copied next to each other, once the steps have
      spent on the others what the copy costs.
    - The gradient of the samples left out is brought up to date where they are looked at again, by
      the rows of what has moved meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled, compiled_sums, wide_vectors
from svmbench.core.csvc.passes import extremes, larger
from svmbench.core.csvc.whole_matrix import GAP, MAX_ITER, UNKNOWN, pair_steps
from svmbench.core.csvc.working_sets import gather
from svmbench.core.kernels.row_store import subtract_rows

#: Below so many samples all of them take part throughout: a step costs little beside a copy.
NARROWED = 1000

#: Steps between two looks at the gap, and at what may be left out; …
LOOK = 100

#: … and below `NARROWED` samples, whose fits are shorter.
SOON = 50

#: At most this share of the samples that take part may stay, or leaving out is not worth a copy.
STAY = 0.7

#: What bringing one gradient up to date by one kernel value costs, beside copying a value.
CATCH_UP = 0.3

#: In place of a limit of the duality gap: it ends nothing.
NO_LIMIT = -1.0


class Part(NamedTuple):
    """The samples that take part, side by side.

    Attributes
    ----------
    members : ndarray of int of shape (m,)
        Their positions in the problem.
    low, high, beta, v : ndarray of shape (m,)
        Bounds, variables and gradient.
    """

    members: np.ndarray
    low: np.ndarray
    high: np.ndarray
    beta: np.ndarray
    v: np.ndarray


@compiled
def look_after(n: int) -> int:
    """Return the steps between two looks at a problem of n samples."""
    return LOOK if n >= NARROWED else SOON


@compiled
def staying(part: Part) -> np.ndarray:
    """Return which samples are free, or at a bound that their gradient may not hold them to."""
    wide_vectors()
    low, high, beta, v = part.low, part.high, part.beta, part.v
    top, bottom = extremes(low, high, beta, v)
    stays = np.empty(len(v), dtype=np.bool_)
    for k in range(len(v)):
        rises, falls = beta[k] < high[k], beta[k] > low[k]
        stays[k] = (rises & falls) | (rises & (v[k] >= bottom)) | (falls & (v[k] <= top))
    return stays


@compiled_sums
def gap_so_far(low: np.ndarray, high: np.ndarray, beta: np.ndarray, v: np.ndarray) -> float:
    """Return ``box.duality_gap`` at ``box.threshold``, but for rounding.

    It is looked at often, so its loops are written to vectorise.
    """
    wide_vectors()
    total, free = 0.0, 0.0
    for k in range(len(v)):
        is_free = (beta[k] < high[k]) & (beta[k] > low[k])
        total += v[k] if is_free else 0.0
        free += 1.0 if is_free else 0.0
    if free > 0.0:
        b = total / free
    else:
        top, bottom = extremes(low, high, beta, v)
        b = top if bottom == np.inf else bottom if top == -np.inf else 0.5 * (top + bottom)
    gap = 0.0
    for k in range(len(v)):
        u = v[k] - b
        gap += larger(low[k] * u, high[k] * u) - beta[k] * u
    return gap


@compiled
def take(part: Part, kept: np.ndarray) -> Part:
    """Return some of the samples, by their positions in the part, with values of their own."""
    low, high, beta, v = part.low[kept], part.high[kept], part.beta[kept], part.v[kept]
    return Part(part.members[kept], low, high, beta, v)


@compiled
def write_back(part: Part, beta: np.ndarray, v: np.ndarray) -> None:
    """Write the variables and the gradient of a part to where those of all samples are."""
    for k in range(len(part.members)):
        beta[part.members[k]] = part.beta[k]
        v[part.members[k]] = part.v[k]


@compiled
def catch_up(
    K: np.ndarray, members: np.ndarray, before: np.ndarray, beta: np.ndarray, v: np.ndarray
) -> None:
    """Bring the gradient of what was left out up to date.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Of all samples.
    members : ndarray of int
        The samples that took part, whose gradient is right.
    before : ndarray of shape (n,)
        The variables that the gradient of the others is of; `beta` is written to it.
    beta, v : ndarray of shape (n,)
        Variables of all samples, and their gradient, which is changed in place.
    """
    right = v[members]
    moved = np.flatnonzero(beta != before)
    subtract_rows(K, moved, beta[moved] - before[moved], v, 0, len(v))
    v[members] = right
    before[:] = beta


@compiled
def narrowing_steps(
    K: np.ndarray,
    diag: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    ends: tuple[float, int, float],
    beta: np.ndarray,
    v: np.ndarray,
) -> tuple[int, int]:
    """Take the steps of pairs, above `NARROWED` samples on those that are not settled.

    Parameters
    ----------
    bounds : (ndarray, ndarray)
        Lower and upper.
    ends : (float, int, float)
        Tolerance of the violation, largest number of steps, and the duality gap at which the
        search ends (`NO_LIMIT` for none).
    K, diag, beta, v
        As for :func:`~svmbench.core.csvc.whole_matrix.pair_steps`, which also says what is
        returned.
    """
    low, high = bounds
    tol, max_iter, limit = ends
    n, steps, idle = len(beta), 0, 0.0
    look = look_after(n) if limit >= 0.0 or n >= NARROWED else max_iter
    # All of them, and these are no copies: steps on them act on beta and v.
    whole = Part(np.arange(n), low, high, beta, v)
    part, values, own, is_whole, before = whole, K, diag, True, beta.copy()
    while True:
        reason = UNKNOWN
        if limit >= 0.0:
            if not is_whole:
                write_back(part, beta, v)
            if gap_so_far(low, high, beta, v) <= limit:
                reason = GAP
        if reason != GAP:
            most = min(look, max_iter - steps)
            taken, reason = pair_steps(
                values, own, part.low, part.high, tol, most, part.beta, part.v
            )
            steps += taken
        if reason != MAX_ITER or steps >= max_iter:
            if is_whole:
                return steps, reason
            # It is so among those that take part, and has to be seen among all.
            write_back(part, beta, v)
            catch_up(K, part.members, before, beta, v)
            part, values, own, is_whole, idle = whole, K, diag, True, 0.0
        elif n >= NARROWED:
            stays = staying(part)
            m = np.count_nonzero(stays)
            idle += taken * (len(stays) - m)
            if m <= STAY * len(stays) and idle >= m * (m + CATCH_UP * n):
                if not is_whole:
                    write_back(part, beta, v)
                    catch_up(K, part.members, before, beta, v)
                before[:] = beta
                kept = np.flatnonzero(stays)
                part, values, own = take(part, kept), gather(values, kept, kept), own[kept]
                is_whole, idle = False, 0.0
