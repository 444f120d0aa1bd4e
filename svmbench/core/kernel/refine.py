"""From single-precision rows to a solution whose optimality holds in double precision.

Rows in float32 carry errors of some 1e-7, and a gradient summed from them one of some 1e-5. So a
solution that was found with them is checked with kernel values in float64, and the search goes on
from there while the true gap exceeds the tolerance: each round's error is in proportion to what
the round still changed. Only samples near the gap are checked. A sample that is further from it
than ten times the largest error found among those can't matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmbench.core.arrays import raw
from svmbench.core.compiled import compiled
from svmbench.core.kernel import row_smo
from svmbench.core.kernel.block_smo import Active, BlockSearch
from svmbench.core.kernel.crew import Crew
from svmbench.core.kernel.single_rows import BitRows, DenseRows, Rows, SourceRows, single_rows
from svmbench.core.kernels import MIB, KernelFunction, KernelSource

#: Up to so many samples the whole matrix is computed: choosing rows would cost more than they do.
WHOLE = 2000

#: A round must bring the true gap down to this share, or the search goes on in float64 alone.
PROGRESS = 0.5

#: Samples within so many tolerances of the gap are checked at first.
NEAR = 3.0

#: Kernel values above this are not for float32.
LARGEST = 1e30

#: Exact kernel values held in memory at a time.
AT_ONCE = 1 << 21

#: Rows of a symmetric matrix that are computed from the diagonal on.
STRIP = 256

#: Safety factor of the error that was found.
SAFETY = 10.0


@compiled
def limits(beta: np.ndarray, v: np.ndarray, y: np.ndarray, C: float) -> tuple[float, float]:
    """Return the largest gradient of what can go up and the smallest of what can go down."""
    top, bottom = -np.inf, np.inf
    for k in range(len(v)):
        if beta[k] < max(0.0, C * y[k]):
            top = max(top, v[k])
        if beta[k] > min(0.0, C * y[k]):
            bottom = min(bottom, v[k])
    return top, bottom


@compiled
def near_gap(beta: np.ndarray, v: np.ndarray, y: np.ndarray, C: float, width: float) -> np.ndarray:
    """Return which samples could be part of a violation if gradients were wrong by `width`."""
    top, bottom = limits(beta, v, y, C)
    lower, upper = min(top, bottom) - width, max(top, bottom) + width
    near = np.empty(len(v), dtype=np.bool_)
    for k in range(len(v)):
        rises = beta[k] < max(0.0, C * y[k]) and v[k] >= lower
        near[k] = rises or (beta[k] > min(0.0, C * y[k]) and v[k] <= upper)
    return near


def exact_gradient(
    source: KernelSource, y: np.ndarray, beta: np.ndarray, samples: np.ndarray
) -> np.ndarray:
    """Return ``(y - K beta)[samples]`` in float64; `samples` are different and ascend."""
    support, v = np.flatnonzero(beta), y.copy()
    own = np.intersect1d(samples, support, assume_unique=True)
    others = np.setdiff1d(support, own, assume_unique=True)
    for rows, columns in ((np.setdiff1d(samples, own, assume_unique=True), support), (own, others)):
        height = max(1, AT_ONCE // max(1, len(columns)))
        for top in range(0, len(rows), height):
            part = rows[top : top + height]
            v[part] -= source.block(part, columns) @ beta[columns]
    # Among the samples with a multiplier each value serves for both of its pair.
    height = max(1, min(STRIP, AT_ONCE // max(1, len(own))))
    for top in range(0, len(own), height):
        part, later = own[top : top + height], own[top + height :]
        K = source.block(part, own[top:])
        v[part] -= K @ beta[own[top:]]
        v[later] -= beta[part] @ K[:, len(part) :]
    return v[samples]


def correct(
    source: KernelSource, beta: np.ndarray, v: np.ndarray, y: np.ndarray, C: float, tol: float
) -> tuple[float, np.ndarray]:
    """Replace the gradient near the gap by its value in float64; return the true gap.

    Parameters
    ----------
    source : KernelSource
    beta, v, y : ndarray of shape (n_samples,)
        Signed multipliers, gradient (changed in place) and labels.
    C, tol : float

    Returns
    -------
    gap : float
    checked : ndarray of int
        The samples whose gradient is exact now.
    """
    done = np.zeros(len(y), dtype=bool)
    width, error = NEAR * tol, 0.0
    while True:
        wanted = np.flatnonzero(near_gap(beta, v, y, C, width) & ~done)
        if len(wanted):
            found = exact_gradient(source, y, beta, wanted)
            error = max(error, float(np.max(np.abs(found - v[wanted]))))
            v[wanted] = found
            done[wanted] = True
        if width >= SAFETY * error:
            top, bottom = limits(beta, v, y, C)
            return top - bottom, np.flatnonzero(done)
        width = 2.0 * SAFETY * error


@dataclass
class State:
    """Where a search stands.

    Attributes
    ----------
    beta, v : ndarray of shape (n_samples,)
        Signed multipliers and gradient.
    steps, rounds : int
        Pair steps, and checks in float64.
    reason : int
        Position in ``row_smo.REASONS``.
    evaluations : int
        Kernel values that the source does not count.
    """

    beta: np.ndarray
    v: np.ndarray
    steps: int = 0
    rounds: int = 0
    reason: int = row_smo.CONVERGED
    evaluations: int = 0


def search(
    source: KernelSource,
    y: np.ndarray,
    *,
    C: float,
    tol: float,
    max_iter: int,
    cache_mb: float,
    start: np.ndarray | None = None,
    n_jobs: int = 1,
) -> State:
    """Solve on inputs: in float32 with checks, and if that gets no further, in float64.

    Parameters
    ----------
    source : KernelSource
    y : ndarray of shape (n_samples,)
        Labels ±1.
    C, tol, max_iter : float, float, int
        Bound of the multipliers, tolerance of the true gap, largest number of pair steps.
    cache_mb : float
        Memory for kernel values, MiB.
    start : ndarray of shape (n_samples,), optional
        Feasible multipliers to start from.
    n_jobs : int, default=1
        Threads.
    """
    with Crew(n_jobs) as crew:
        return _search(source, y, start, crew, C=C, tol=tol, max_iter=max_iter, cache_mb=cache_mb)


def _search(
    source: KernelSource,
    y: np.ndarray,
    start: np.ndarray | None,
    crew: Crew,
    *,
    C: float,
    tol: float,
    max_iter: int,
    cache_mb: float,
) -> State:
    state = State(np.zeros(len(y)), y.copy())
    if start is not None:
        state.beta = start * y
        state.v = exact_gradient(source, y, state.beta, np.arange(len(y)))
    everyone = members = np.arange(len(y))
    rows: Rows = SourceRows(source, np.float64)
    if float(np.max(np.abs(rows.diagonal))) <= LARGEST:
        rows = single_rows(source)
    fits = rows.n_samples <= WHOLE and rows.n_samples**2 * rows.diagonal.itemsize <= cache_mb * MIB
    K = rows.whole() if fits else None
    before = np.inf
    while True:
        _run(rows, K, members, state, y, crew, C=C, tol=tol, max_iter=max_iter, cache_mb=cache_mb)
        if state.reason == row_smo.MAX_ITER:
            break
        if rows.dtype == np.float64:
            # What was dropped on the way may be part of a violation after all.
            top, bottom = limits(state.beta, state.v, y, C)
            if state.reason == row_smo.STALLED or top - bottom <= tol:
                break
            continue
        gap, members = correct(source, state.beta, state.v, y, C, tol)
        state.rounds += 1
        if gap <= tol:
            state.reason = row_smo.CONVERGED
            break
        if gap > PROGRESS * before or state.reason == row_smo.STALLED:
            state.evaluations += rows.evaluations
            rows, K, members = SourceRows(source, np.float64), source.whole(cache_mb), everyone
            state.v = exact_gradient(source, y, state.beta, everyone)
        before = gap
    state.evaluations += rows.evaluations
    return state


def _run(
    rows: Rows,
    K: np.ndarray | None,
    members: np.ndarray,
    state: State,
    y: np.ndarray,
    crew: Crew,
    *,
    C: float,
    tol: float,
    max_iter: int,
    cache_mb: float,
) -> None:
    """Search on the whole matrix, where there is one, or among `members` by blocks."""
    left = max_iter - state.steps
    if K is not None:
        diag = np.ascontiguousarray(K.diagonal())
        steps, state.reason = row_smo.optimise(
            raw(K), raw(diag), raw(y), C, tol, left, state.beta, state.v
        )
        state.steps += steps
        return
    active = Active(members, y, C, state.beta, state.v)
    blocks = BlockSearch(rows, active, C=C, tol=tol, cache_mb=cache_mb, crew=crew)
    state.reason = blocks.run(left)
    state.steps += blocks.steps
    active.finish(rows, crew)


def warm_up() -> None:
    """Run every maker of rows through a search by blocks, and a cut, on a few samples."""
    X = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    y = raw(np.array([1.0, 1.0, -1.0, -1.0]))
    source = KernelSource.from_inputs(X, KernelFunction("rbf", 1.0))
    crew = Crew(1)
    makers: list[Rows] = [
        BitRows(X, KernelFunction("rbf", 1.0)),
        DenseRows(X, KernelFunction("rbf", 1.0)),
        SourceRows(source, np.float32),
        SourceRows(source, np.float64),
    ]
    for rows in makers:
        state = State(np.zeros(4), y.copy())
        # Once among all samples and once among some, of which one more is dropped on the way.
        for members in (np.arange(4), np.array([0, 2, 3])):
            active = Active(members, y, 1.0, state.beta, state.v)
            blocks = BlockSearch(rows, active, C=1.0, tol=1e-3, cache_mb=1.0, crew=crew)
            blocks.run(100)
            blocks.drop(np.arange(len(members)) > 0)
            active.finish(rows, crew)
        correct(source, state.beta, state.v, y, 1.0, 1e-3)
        settings = {"C": 1.0, "tol": 1e-3, "cache_mb": 1.0}
        _run(rows, rows.whole(), np.arange(4), state, y, crew, max_iter=9, **settings)
