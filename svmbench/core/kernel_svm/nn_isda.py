"""NN-ISDA: one multiplier at a time on the L2-SVM's dual, where only signs are constrained.

Problem
    min_alpha  1/2 alpha' Q alpha - e'alpha,   alpha >= 0,
    Q_ij = y_i y_j (K_ij + 1) + delta_ij / C;   f(x) = sum_j alpha_j y_j (K(x_j, x) + 1):
    the dual of 1/2 (||w||^2 + b^2) + C/2 sum_i max(0, 1 - y_i f(x_i))^2 (C is twice LIBLINEAR's).
Given
    a kernel matrix, y in {-1, +1}, C, tol.
Returned
    alpha, once every component of the projected gradient is at most tol:
    |g_i| where alpha_i > 0, -g_i where alpha_i = 0, with g = Q alpha - e.
Reference
    Kecman and Zigic 2014 (non-negative iterative single data algorithm), with which Melki and
    Kecman 2016 compare: the worst violator i takes alpha_i <- max(0, alpha_i - g_i / Q_ii).
Deviations
    - The authors' program was not found: this is what its name and the papers' text say.
    - The loop keeps beta_i = y_i alpha_i and u_i = y_i g_i, which change by a kernel row without
      the labels.
    - Where rows are computed, samples at 0 whose gradient is larger than the worst violation are
      left out; at the end all are checked again, and stay in (shrinking, as LIBSVM does it).
    - Along a path of C the start is the best point of the last solution's ray, or zero where that
      takes fewer steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.problem import larger
from svmbench.core.kernel_svm.l2svm import (
    EXTREME_PIECE,
    MERCER,
    L2Classifier,
    L2State,
    RowSlots,
    add_weighted_rows,
)
from svmbench.core.kernels.source_row_cache import SourceRowCache

#: A solution starts the next C of a path if it took at most this number of steps a sample, and if
#: at least this share of the samples are support vectors.
RESTART_MAX_STEPS, RESTART_MIN_SUPPORT = 4.0, 0.5

#: Steps between two attempts to shrink, and the largest share of samples that may be left then.
SHRINK_EVERY_STEPS, SHRUNK_MAX_SHARE = 1000, 0.5

#: How the loop can end, and the stop reasons of the first three.
CONVERGED, MAX_ITER, STALLED, MISSING, PAUSED = range(5)
ISDA_STOP_REASONS = ("converged", "max_iter", "stalled")

#: Entries of the array of changing numbers: steps taken, and the sample of the next one.
STEPS, NEXT = 0, 1


@compiled
def step_and_find_worst(
    u: np.ndarray,  # (n,): gradient for beta, changed in place
    row: np.ndarray,  # (n,): kernel values of the sample that moved by t
    t: float,
    # down, up float32 (n,): 0 where beta can be lowered (raised), else -inf
    down: np.ndarray,
    up: np.ndarray,
) -> tuple[int, float]:
    """Add ``t (row + 1)`` to the gradient; return the worst violator and its violation."""
    n = len(u)
    worst, piece = -np.inf, 0
    for start in range(0, n, EXTREME_PIECE):
        values, kernel = u[start : start + EXTREME_PIECE], row[start : start + EXTREME_PIECE]
        lowered, raised = down[start : start + EXTREME_PIECE], up[start : start + EXTREME_PIECE]
        best = -np.inf
        for k in range(len(values)):
            w = values[k] + t * (np.float64(kernel[k]) + 1.0)
            values[k] = w
            best = larger(best, larger(np.float64(lowered[k]) + w, np.float64(raised[k]) - w))
        if best > worst:
            worst, piece = best, start
    i = piece
    while i < n - 1 and max(np.float64(down[i]) + u[i], np.float64(up[i]) - u[i]) != worst:
        i += 1
    return i, worst


class Positions(NamedTuple):
    """Variables of the loop by position in the store; arrays of shape (n,)."""

    curvature: np.ndarray  # Q_ii
    y: np.ndarray  # labels ±1
    beta: np.ndarray  # signed multipliers
    u: np.ndarray  # their gradient
    down: np.ndarray  # float32
    up: np.ndarray  # float32

    def first(self, n: int) -> Positions:
        """Return views of the first n."""
        return Positions(*(array[:n] for array in self))

    def violations(self) -> np.ndarray:
        """Return by how much each sample violates its condition; negative where it does not."""
        return np.maximum(self.down + self.u, self.up - self.u)


@compiled
def correct_worst(
    rows: RowSlots,
    active: Positions,
    C: float,
    tol: float,
    max_iter: int,
    pause: int,  # number of steps at which to return and shrink
    state: np.ndarray,  # int (2,): steps taken; the worst violator
) -> int:
    """Take steps until the conditions hold or a row is missing; return how it ended."""
    values, slots, last_use, clock = rows
    curvature, y, beta, u, down, up = active
    steps, i = state[STEPS], state[NEXT]
    violation = max(np.float64(down[i]) + u[i], np.float64(up[i]) - u[i])
    end = CONVERGED
    while violation > tol:
        if steps >= max_iter:
            end = MAX_ITER
            break
        if steps >= pause:
            end = PAUSED
            break
        slot = slots[i]
        if slot < 0:
            end = MISSING
            break
        # alpha_i <- max(0, alpha_i - g_i / Q_ii).
        new = beta[i] - u[i] / curvature[i]
        if new * y[i] <= 0.0:
            new = 0.0
        t = new - beta[i]
        if t == 0.0:
            end = STALLED
            break
        beta[i] = new
        u[i] += t / C
        down[i] = 0.0 if new != 0.0 or y[i] < 0.0 else -np.inf
        up[i] = 0.0 if new != 0.0 or y[i] > 0.0 else -np.inf
        steps += 1
        last_use[slot] = clock + steps
        i, violation = step_and_find_worst(u, values[slot], t, down, up)
    state[STEPS], state[NEXT] = steps, i
    return end


def bring_violators(
    store: SourceRowCache, samples: Positions, state: np.ndarray, tol: float
) -> None:
    """Compute the row of the next step, and the rows of the other worst violators."""
    violation = samples.violations()
    violation[store.slots[: store.n_active] >= 0] = -np.inf
    violation[state[NEXT]] = np.inf
    n, m = len(violation), min(store.batch, len(violation))
    wanted = np.argpartition(violation, n - m)[n - m :]
    store.clock += int(state[STEPS])
    store.bring(wanted[violation[wanted] > tol])


def shrink(store: SourceRowCache, samples: Positions, state: np.ndarray) -> None:
    """Leave out samples at 0 whose gradient exceeds the worst violation, if they are many."""
    n = store.n_active
    active = samples.first(n)
    violation = active.violations()
    kept = (active.beta != 0.0) | (violation >= -violation.max())
    if np.count_nonzero(kept) > SHRUNK_MAX_SHARE * n:
        return
    moved = store.shrink(kept)
    for array in active:
        array[:] = array[moved]
    state[NEXT] = np.argmax(violation[moved[: store.n_active]])


def unshrink(store: SourceRowCache, samples: Positions, state: np.ndarray) -> None:
    """Take all samples in again; compute the gradient of the samples that were left out."""
    n = store.n_active
    f = np.zeros(len(samples.y) - n)
    support = np.flatnonzero(samples.beta)
    for start in range(0, len(support), store.batch):
        rows = support[start : start + store.batch]
        store.complete(rows)
        add_weighted_rows(store.values, store.slots, rows, samples.beta, n, f)
    samples.u[n:] = f - samples.y[n:]
    store.unshrink()
    state[NEXT] = np.argmax(samples.violations())


def descend_by_signs(state: L2State, tol: float, max_iter: int) -> tuple[int, int]:
    """Solve from the present multipliers, in place; return the number of steps and the end."""
    store, y, beta, C = state.store, state.y, state.beta, state.C
    free = beta != 0.0
    down = np.where(free | (y < 0.0), 0.0, -np.inf).astype(np.float32)
    up = np.where(free | (y > 0.0), 0.0, -np.inf).astype(np.float32)
    samples = Positions(state.curvature, y.copy(), beta, state.f + beta / C - y, down, up)
    # Only computed rows come to stand in another order.
    place = store.order if store.K is None else slice(None)
    samples = Positions(*(array[place] for array in samples))
    counts = np.array([0, np.argmax(samples.violations())])
    pause = SHRINK_EVERY_STEPS if store.K is None else max_iter
    while True:
        active = samples.first(store.n_active)
        end = correct_worst(state.rows, active, C, tol, max_iter, pause, counts)
        if end == MISSING:
            bring_violators(store, active, counts, tol)
        elif end == PAUSED:
            pause = int(counts[STEPS]) + SHRINK_EVERY_STEPS
            shrink(store, samples, counts)
        elif store.n_active < len(y):
            unshrink(store, samples, counts)
            # No more shrinking from here on, or the same samples could leave again and again.
            pause = max_iter
        else:
            break
    place = store.order if store.K is None else slice(None)
    beta[place] = samples.beta
    state.f[place] = samples.u + samples.y - samples.beta / C
    return int(counts[STEPS]), end


@declare(
    name="nn-isda",
    problem="half-squared-hinge",
    promise="violation",
    summary="non-negative coordinate descent on the L2-SVM's dual, the worst violator first",
    reference="Kecman and Zigic 2014, as in Melki and Kecman 2016",
    paper="nlsgd",
    kernels=MERCER,
    paths=("C",),
)
@dataclass(eq=False, repr=False, kw_only=True)
class NNISDA(L2Classifier):
    """L2-SVM with the offset absorbed, by exact steps on the multiplier that violates most.

    One coordinate at a time is slow where the kernel matrix is nearly singular and the ridge 1/C
    small; see ``stop_reason_`` for an end at `max_iter`.

    Parameters
    ----------
    tol : float
        Largest component of the projected gradient, in units of the margin.

    Attributes
    ----------
    counters_ : dict
        ``updates`` (steps), ``kernel_rows`` (computed; all, of a matrix that was there),
        ``kernel_evaluations``, ``support_vectors``, ``bounded_support_vectors`` (0).

    Examples
    --------
    >>> from svmbench.core.kernel_svm.nn_isda import NNISDA
    >>> NNISDA(gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    def _minimise(self, state: L2State, tol: float) -> tuple[str, dict[str, int]]:
        before = state.store.n_computed if state.store.K is None else 0
        steps, end = descend_by_signs(state, tol, int(self.max_iter))
        rows = state.store.n_computed - before
        return ISDA_STOP_REASONS[end], {"updates": steps, "kernel_rows": rows}

    def _restart(self, state: L2State, steps: int) -> None:
        """Scale the solution for the new C, or return to zero.

        If the solution took few steps, and most samples are support vectors, the start is the point
        of its ray that is best for the new C. Otherwise it is zero: single steps unlearn a wrong
        support more slowly than they find the right one (small gamma, large C: twice the steps).
        """
        y, beta, f = state.y, state.beta, state.f
        n, square = len(y), float(beta @ f + beta @ beta / state.C)
        is_close = np.count_nonzero(beta) >= RESTART_MIN_SUPPORT * n
        few = steps <= RESTART_MAX_STEPS * n and is_close
        # Outputs scale with the multipliers: no kernel value is needed.
        factor = float(y @ beta) / square if few and square > 0.0 else 0.0
        beta *= factor
        f *= factor

    def _margin_tolerance(self, state: L2State) -> float:
        return float(self.tol)
