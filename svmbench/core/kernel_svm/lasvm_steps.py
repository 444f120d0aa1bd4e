"""The steps of LASVM: what is kept, PROCESS, REPROCESS, the choice of a sample, finishing.

See ``lasvm.py`` for the problem and the paper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.kernels.kernels import MIB
from svmbench.core.kernels.member_rows import MemberInputs, fill, own_value

#: Curvature of a direction that has none; distance from a bound, in units of C, that is none.
TINY, ROUNDING = 1e-12, 1e-12

#: Rows that are always there.
LEAST_ROWS = 8

#: Entries of the counts.
HIGH, ALIVE, CLOCK, ROWS, VALUES, STEPS, NEXT, FREE = range(8)

#: How a run of the loop ends.
DONE, NO_PLACE, ENOUGH = 0, 1, 2


class Kept(NamedTuple):
    """The samples that are kept, by place, and rows of their kernel values with each other."""

    sample: np.ndarray  # int (width,): the sample at a place; -1 where there is none
    alpha: np.ndarray  # (width,): signed multipliers
    g: np.ndarray  # (width,): gradients
    y: np.ndarray  # (width,): labels
    slot: np.ndarray  # int (width,): row of `K` that a place has; -1 if none
    free: np.ndarray  # int (width,): the first ``counts[FREE]`` are places that were given up
    K: np.ndarray  # float32 or float64 (n_slots, width)
    # owner, last_use int (n_slots,): the place whose row it is, and when it was used last; -1
    # where free
    owner: np.ndarray
    last_use: np.ndarray
    is_kept: np.ndarray  # bool (n_samples,)
    # int: places ever used, samples kept, clock, rows ever used, values computed, pair steps,
    # position in the epoch, free places
    counts: np.ndarray


def make_room(
    n_samples: int, width: int, cache_mb: float, old: Kept | None = None, dtype: Any = np.float32
) -> Kept:
    """Return places for `width` samples, with those of `old` in them, and what rows fit.

    Kernel values are of `dtype`, or of that of `old`.
    """
    dtype = np.dtype(dtype) if old is None else old.K.dtype
    n_slots = min(width, max(LEAST_ROWS, int(cache_mb * MIB // (dtype.itemsize * width))))
    kept = Kept(
        np.full(width, -1),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.full(width, -1),
        np.zeros(width, dtype=np.int64),
        np.empty((n_slots, width), dtype=dtype),
        np.full(n_slots, -1),
        np.full(n_slots, -1),
        np.zeros(n_samples, dtype=np.bool_) if old is None else old.is_kept,
        np.zeros(8, dtype=np.int64),
    )
    if old is not None:
        w = len(old.sample)
        for new, before in zip(kept[:6], old[:6], strict=True):
            new[:w] = before
        n = min(n_slots, int(old.counts[ROWS]))
        kept.K[:n, :w] = old.K[:n]
        kept.owner[:n], kept.last_use[:n] = old.owner[:n], old.last_use[:n]
        kept.slot[kept.slot >= n] = -1
        kept.counts[:] = old.counts
        kept.counts[ROWS] = n
    return kept


@compiled
def take_slot(kept: Kept, place: int) -> int:
    """Return a row for a place: a new one, or the one that has not been used for longest."""
    counts = kept.counts
    if counts[ROWS] < len(kept.K):
        r = counts[ROWS]
        counts[ROWS] += 1
    else:
        r = np.argmin(kept.last_use)
        if kept.owner[r] >= 0:
            kept.slot[kept.owner[r]] = -1
    counts[CLOCK] += 1
    kept.owner[r], kept.last_use[r], kept.slot[place] = place, counts[CLOCK], r
    return r


@compiled
def row_of(inputs: MemberInputs, kept: Kept, place: int) -> int:
    """Return the slot of a place's row, which is computed if it is not there."""
    r = kept.slot[place]
    if r < 0:
        r = take_slot(kept, place)
        fill(inputs, kept.sample[place], kept.sample, kept.counts[HIGH], kept.K[r])
        kept.counts[VALUES] += kept.counts[HIGH]
    kept.counts[CLOCK] += 1
    kept.last_use[r] = kept.counts[CLOCK]
    return r


@compiled
def insert(inputs: MemberInputs, kept: Kept, i: int, label: float) -> int:
    """Keep a sample with multiplier 0 and its gradient; return its place."""
    counts = kept.counts
    if counts[FREE] > 0:
        counts[FREE] -= 1
        place = kept.free[counts[FREE]]
    else:
        place = counts[HIGH]
        counts[HIGH] += 1
    kept.sample[place], kept.y[place], kept.alpha[place] = i, label, 0.0
    counts[ALIVE] += 1
    kept.is_kept[i] = True
    r = take_slot(kept, place)
    row, n = kept.K[r], counts[HIGH]
    fill(inputs, i, kept.sample, n, row)
    counts[VALUES] += n
    f = 0.0
    for s in range(n):
        f += kept.alpha[s] * np.float64(row[s])
    kept.g[place] = label - f
    for q in range(counts[ROWS]):
        if kept.owner[q] >= 0:
            kept.K[q, place] = row[kept.owner[q]]
    return place


@compiled
def extremes(kept: Kept, C: float) -> tuple[int, int]:
    """Return the places i of the largest g that can rise, and j of the smallest that can fall."""
    i, j, largest, smallest = -1, -1, -np.inf, np.inf
    for s in range(kept.counts[HIGH]):
        if kept.sample[s] >= 0:
            g = kept.g[s]
            if g > largest and kept.alpha[s] < max(0.0, C * kept.y[s]):
                i, largest = s, g
            if g < smallest and kept.alpha[s] > min(0.0, C * kept.y[s]):
                j, smallest = s, g
    return i, j


@compiled
def pair_step(inputs: MemberInputs, kept: Kept, C: float, i: int, j: int) -> None:
    """Move multiplier from j to i as far as that helps and the box allows."""
    a, b = row_of(inputs, kept, i), row_of(inputs, kept, j)
    first, second = kept.K[a], kept.K[b]
    curvature = own_value(inputs, kept.sample[i]) + own_value(inputs, kept.sample[j])
    curvature -= 2.0 * np.float64(first[j])
    up, down = max(0.0, C * kept.y[i]), min(0.0, C * kept.y[j])
    step = (kept.g[i] - kept.g[j]) / max(curvature, TINY)
    at_up, at_down = up - kept.alpha[i], kept.alpha[j] - down
    step = min(step, at_up, at_down)
    # What rounding leaves between a multiplier and its bound is no room for another step.
    room = ROUNDING * C
    kept.alpha[i] = up if at_up - step <= room else kept.alpha[i] + step
    kept.alpha[j] = down if at_down - step <= room else kept.alpha[j] - step
    for s in (i, j):
        if abs(kept.alpha[s]) <= room:
            kept.alpha[s] = 0.0
    for s in range(kept.counts[HIGH]):
        kept.g[s] -= step * (np.float64(first[s]) - np.float64(second[s]))
    kept.counts[STEPS] += 1


@compiled
def process(inputs: MemberInputs, kept: Kept, C: float, tau: float, i: int, label: float) -> None:
    """Keep a sample, and take a step with it if it violates the conditions (LASVM PROCESS)."""
    place = insert(inputs, kept, i, label)
    up, down = extremes(kept, C)
    if label > 0.0:
        up = place
    else:
        down = place
    if up >= 0 and down >= 0 and kept.g[up] - kept.g[down] > tau:
        pair_step(inputs, kept, C, up, down)


@compiled
def reprocess(inputs: MemberInputs, kept: Kept, C: float, tau: float) -> float:
    """Step on the extreme pair, drop what is of no use, return the gap (LASVM REPROCESS)."""
    i, j = extremes(kept, C)
    if i < 0 or j < 0:
        return 0.0
    if kept.g[i] - kept.g[j] > tau:
        pair_step(inputs, kept, C, i, j)
        i, j = extremes(kept, C)
        if i < 0 or j < 0:
            return 0.0
    largest, smallest = kept.g[i], kept.g[j]
    for s in range(kept.counts[HIGH]):
        useless = kept.g[s] >= largest if kept.y[s] < 0.0 else kept.g[s] <= smallest
        if kept.sample[s] >= 0 and kept.alpha[s] == 0.0 and useless:
            drop(kept, s)
    return largest - smallest


@compiled
def drop(kept: Kept, place: int) -> None:
    """Give up a place and its row."""
    r = kept.slot[place]
    if r >= 0:
        kept.owner[r], kept.last_use[r], kept.slot[place] = -1, -1, -1
    kept.is_kept[kept.sample[place]] = False
    kept.sample[place] = -1
    kept.free[kept.counts[FREE]] = place
    kept.counts[FREE] += 1
    kept.counts[ALIVE] -= 1


@compiled
def choose(
    inputs: MemberInputs,
    kept: Kept,
    y: np.ndarray,
    C: float,
    order: np.ndarray,
    first: int,
    uniform: np.ndarray,
    by_margin: bool,
) -> None:
    """Bring the best of some random samples that are left to position `first` of the order.

    By gradient that is the sample with the smallest y f, by margin the one with the smallest |f|.
    """
    i, j = extremes(kept, C)
    b = 0.5 * (kept.g[i] + kept.g[j]) if i >= 0 and j >= 0 else 0.0
    n, left = kept.counts[HIGH], len(order) - first
    row = np.empty(n, dtype=kept.K.dtype)
    best, at = np.inf, first
    for c in range(min(len(uniform), left)):
        position = first + int(uniform[c] * left)
        candidate = order[position]
        fill(inputs, candidate, kept.sample, n, row)
        kept.counts[VALUES] += n
        f = b
        for s in range(n):
            f += kept.alpha[s] * np.float64(row[s])
        score = abs(f) if by_margin else y[candidate] * f
        if score < best:
            best, at = score, position
    order[first], order[at] = order[at], order[first]


@compiled
def learn(
    inputs: MemberInputs,
    kept: Kept,
    y: np.ndarray,  # (n_samples,)
    C: float,
    tau: float,
    order: np.ndarray,  # int (n_samples,): what comes next; changed where there is a choice
    # stop, most: position to stop at; number of kept samples to stop at
    stop: int,
    most: int,
    # (stop - start, n_candidates): in [0, 1); no candidates where the order is random
    uniform: np.ndarray,
    by_margin: bool,  # the rule of choice
) -> int:
    """Process and reprocess samples of the order up to `stop`; return how it ended."""
    counts = kept.counts
    start = counts[NEXT]
    for t in range(start, stop):
        if counts[ALIVE] >= most:
            return ENOUGH
        if counts[FREE] == 0 and counts[HIGH] == len(kept.sample):
            return NO_PLACE
        if uniform.shape[1] > 0:
            choose(inputs, kept, y, C, order, t, uniform[t - start], by_margin)
        i = order[t]
        counts[NEXT] = t + 1
        if not kept.is_kept[i]:
            process(inputs, kept, C, tau, i, y[i])
        reprocess(inputs, kept, C, tau)
    return DONE


@compiled
def finish(inputs: MemberInputs, kept: Kept, C: float, tau: float, max_iter: int) -> float:
    """Reprocess until the gap is at most tau; return the gap."""
    gap = np.inf
    for _ in range(max_iter):
        gap = reprocess(inputs, kept, C, tau)
        if gap <= tau:
            break
    return gap
