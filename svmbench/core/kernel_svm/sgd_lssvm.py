"""SGD-LSSVM: the kernel least-squares SVM by descent along the t coordinates of steepest slope.

Problem
    min_alpha  f(alpha) = 1/2 alpha'Q alpha - e'alpha,   alpha free,
    Q_ij = y_i y_j (K_ij + 1) + nu delta_ij,   nu = 1 / (2C)   ("bias absorbed"):
    the dual of 1/2 (||w||^2 + b^2) + C sum_i (1 - y_i f(x_i))^2;
    its solution is Q alpha = e, and f(x) = sum_j alpha_j y_j (K(x_j, x) + 1).
Given
    kernel columns, y in {-1, +1}, C, t, tol (the paper's epsilon), max_iter.
Returned
    alpha, once the largest component of the gradient g = Q alpha - e is below tol.
Reference
    SGD-LSSVM paper, Algorithm 2: B holds the t largest |g_i|. The step -theta g_B on alpha_B,
    theta = g_B'g_B / g_B'Q_BB g_B, minimises f, which falls by theta g_B'g_B / 2 (Corollary 1).
Deviations
    - The loop keeps beta_i = y_i alpha_i and u_i = y_i g_i, so that it needs no labels.
    - The pass that changes the gradient also selects the t largest |g_i|, in a heap: there is no
      sort. Ties go to the sample with the smaller index.
    - The columns may be in single precision. The error of the gradient is then measured on a
      sample of rows; if it matters, the gradient is rebuilt, and the search goes on in double
      precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time
from typing import Any, NamedTuple, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import TrainingData, require_count, warn_user
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.problem import larger
from svmbench.core.kernels.columns import Columns, DoubleColumns, columns_of, warm_up_columns
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution

#: Samples whose gradient is updated, and then searched for its largest entry while in the cache.
GRADIENT_PIECE = 256

#: Largest number of bytes of a block of kernel columns.
COLUMN_BLOCK_BYTES = 1 << 22

#: The gradient is checked in double precision on CHECKED_ROWS rows. Its error may be at most
#: CHECKED_TOL_SHARE times the tolerance.
CHECKED_ROWS, CHECKED_TOL_SHARE = 64, 0.1

#: Ratio of the numbers of iterations of consecutive points of a trace.
TRACE_FACTOR = 1.1


@compiled
def step_and_find_largest(
    u: np.ndarray,  # (n,): gradient, changed in place
    column: np.ndarray,  # (n,): kernel values
    s: float,
) -> tuple[int, float]:
    """Subtract ``s (column + 1)`` from u; return the first i with the largest |u_i|, and |u_i|."""
    n = len(u)
    top, piece = -1.0, 0
    for start in range(0, n, GRADIENT_PIECE):
        values, kernel = u[start : start + GRADIENT_PIECE], column[start : start + GRADIENT_PIECE]
        best = -1.0
        for k in range(len(values)):
            w = values[k] - s * (np.float64(kernel[k]) + 1.0)
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
    beta: np.ndarray,
    u: np.ndarray,
) -> tuple[int, float, float]:
    """Take the exact step on coordinate `i`; return the next i, its |u_i|, the decrease of f."""
    # Along one coordinate the step is g_i / Q_ii, and f falls by half of g_i times it.
    s = u[i] / (np.float64(column[i]) + 1.0 + nu)
    decrease = 0.5 * u[i] * s
    beta[i] -= s
    u[i] -= nu * s
    i, largest = step_and_find_largest(u, column, s)
    return i, largest, decrease


@compiled
def step_and_select(
    u: np.ndarray,  # (n,): gradient, changed in place
    a: np.ndarray,  # (n,): with `shift` added, the products of K + 1 with the step's direction
    shift: float,  # the sum of that direction if `a` has the products of K, 0 if of K + 1
    s: float,
    chosen: np.ndarray,  # int (t,): written: the first t samples with the largest |u_i|, as a heap
    size: np.ndarray,  # (t,): written: their |u_i|
) -> float:
    """Subtract ``s (a + shift)`` from u; select the t samples with the largest |u_i|.

    The root of the heap is the smallest selected value; of equal values, the one with the largest
    index. Return the largest value.
    """
    n, t = len(u), len(chosen)
    filled = 0
    for start in range(0, n, GRADIENT_PIECE):
        values, sums = u[start : start + GRADIENT_PIECE], a[start : start + GRADIENT_PIECE]
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
                # Sift up from the end of the heap.
                place = filled
                filled += 1
                while place > 0:
                    above = (place - 1) // 2
                    if new > size[above]:
                        break
                    size[place], chosen[place] = size[above], chosen[above]
                    place = above
            elif new > size[0]:
                # Replace the root, and sift down.
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
                    # Of equal values, the new sample has the largest index, and stays above.
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
    beta: np.ndarray,
    u: np.ndarray,
    i: int,
    largest: float,
) -> tuple[int, int, float, float]:
    """Take up to `n_steps` steps of one coordinate; return their number, i, |u_i|, f's decrease."""
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
    beta: np.ndarray,
    u: np.ndarray,
    chosen: np.ndarray,  # (t,): as `step_and_select` writes it
    size: np.ndarray,  # the same
    largest: float,
) -> tuple[int, float, float]:
    """Take up to `n_steps` steps of t coordinates; return their number, max |u_i|, f's decrease."""
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
                # Add 1 first: a weight times a tiny kernel value could be denormal, which is slow.
                a[k] += weight * (np.float64(row[k]) + 1.0)
        for i in B:
            gKg += u[i] * a[i]
        # theta = g_B'g_B / g_B'Q_BB g_B, and f falls by theta g_B'g_B / 2 (Corollary 1).
        theta = gg / (nu * gg + gKg)
        decrease += 0.5 * theta * gg
        for i in B:
            beta[i] -= theta * u[i]
            u[i] -= nu * theta * u[i]
        largest = step_and_select(u, a, 0.0, theta, chosen, size)
    return n_steps, largest, decrease


class TracePoint(NamedTuple):
    """A point of a trace."""

    seconds: float  # CPU time of the steps so far
    iterations: int
    objective: float  # f
    gradient: float  # the largest component of g


@dataclass
class SteepestDescent:
    """State of a descent, which `descend_steepest` changes."""

    beta: np.ndarray  # (n_samples,): ``y alpha``
    u: np.ndarray  # (n_samples,): ``y g``
    f: float = 0.0  # the dual objective, from the decreases of the steps
    iterations: int = 0  # steps
    columns: int = 0  # kernel columns used
    largest: float = np.inf  # the largest component of the gradient
    trace: list[TracePoint] = field(default_factory=list)

    @staticmethod
    def from_zero(y: np.ndarray) -> SteepestDescent:
        """Return the start ``alpha = 0``, ``g = -1``."""
        return SteepestDescent(beta=np.zeros(len(y)), u=-np.asarray(y, dtype=np.float64))


def descend_steepest(
    state: SteepestDescent,
    columns: Columns,
    C: float,  # weight of the summed losses
    t: int,  # columns an iteration, at most the number of samples
    tol: float,  # bound of the gradient's components; the paper's epsilon
    max_iter: int,  # largest number of iterations, those before this call included
    trace: bool = False,  # whether to keep points at iterations 0, 1, 2 … and later ones 10 % apart
) -> bool:
    """Take steps until the gradient is below `tol` everywhere; return whether it is."""
    nu = 1.0 / (2.0 * C)
    take = _single_steps(state, columns, nu, tol) if t == 1 else _blocks(state, columns, nu, tol, t)
    begin = process_time()
    seconds = state.trace[-1].seconds if state.trace else 0.0
    # Each call of `take` goes to the next point of the trace; without one, to `max_iter`.
    due = state.iterations
    while state.iterations < max_iter:
        if trace and state.iterations >= due and np.isfinite(state.largest):
            passed = seconds + process_time() - begin
            state.trace.append(TracePoint(passed, state.iterations, state.f, state.largest))
            due = max(state.iterations + 1, int(TRACE_FACTOR * state.iterations))
        if state.largest < tol:
            break
        before = state.iterations
        take(min(max_iter, due if trace and due > before else max_iter) - before)
        if state.iterations == before:
            break
    if trace and (not state.trace or state.trace[-1].iterations < state.iterations):
        passed = seconds + process_time() - begin
        state.trace.append(TracePoint(passed, state.iterations, state.f, state.largest))
    return state.largest < tol


def _single_steps(
    state: SteepestDescent, columns: Columns, nu: float, tol: float
) -> Callable[[int], None]:
    """Return a function of n_steps that takes at most n_steps steps of one coordinate each."""
    n, u, beta = columns.n_samples, state.u, state.beta
    place = int(np.argmax(np.abs(u)))
    state.largest = float(np.abs(u[place]))
    if columns.matrix is not None:
        K = columns.matrix

        def on_matrix(n_steps: int) -> None:
            nonlocal place
            taken, place, state.largest, decrease = descend_on_matrix(
                K, nu, tol, n_steps, beta, u, place, state.largest
            )
            state.f -= decrease
            state.iterations += taken
            state.columns += taken

        return on_matrix
    column = np.empty(n, dtype=columns.dtype)

    def on_columns(n_steps: int) -> None:
        nonlocal place
        for _ in range(n_steps):
            if state.largest < tol:
                return
            columns.column(place, column)
            place, state.largest, decrease = step_on(place, column, nu, beta, u)
            state.f -= decrease
            state.iterations += 1
            state.columns += 1

    return on_columns


def _blocks(
    state: SteepestDescent, columns: Columns, nu: float, tol: float, t: int
) -> Callable[[int], None]:
    """Return a function of n_steps that takes at most n_steps steps of t coordinates each."""
    n, u, beta = columns.n_samples, state.u, state.beta
    chosen, size = np.empty(t, dtype=np.int64), np.empty(t)
    a = np.zeros(n)
    state.largest = step_and_select(u, a, 0.0, 0.0, chosen, size)
    if columns.matrix is not None:
        K = columns.matrix

        def on_matrix(n_steps: int) -> None:
            taken, state.largest, decrease = descend_by_blocks(
                K, nu, tol, n_steps, beta, u, chosen, size, state.largest
            )
            state.f -= decrease
            state.iterations += taken
            state.columns += taken * t

        return on_matrix
    width = max(GRADIENT_PIECE, COLUMN_BLOCK_BYTES // (t * np.dtype(columns.dtype).itemsize))
    width = min(n, width) if columns.in_pieces else n
    scratch = np.empty(t * width, dtype=columns.dtype)

    def take(n_steps: int) -> None:
        for _ in range(n_steps):
            if state.largest < tol:
                return
            B = np.sort(chosen)
            g_B = u[B]
            weights = g_B.astype(columns.dtype)
            for start in range(0, n, width):
                stop = min(start + width, n)
                block = scratch[: t * (stop - start)].reshape(t, stop - start)
                columns.block(B, start, stop, block)
                a[start:stop] = weights @ block
            shift = float(np.sum(g_B))
            gg = float(g_B @ g_B)
            theta = gg / (nu * gg + float(g_B @ (a[B] + shift)))
            state.f -= 0.5 * theta * gg
            beta[B] -= theta * g_B
            u[B] -= nu * theta * g_B
            state.largest = step_and_select(u, a, shift, theta, chosen, size)
            state.iterations += 1
            state.columns += t

    return take


def gradient_in_double(
    source: KernelSource, y: np.ndarray, C: float, beta: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return the signed gradient ``(K + 1 + nu) beta - y`` at some rows in double precision."""
    u = np.empty(len(rows))
    shift = float(np.sum(beta))
    height = max(1, COLUMN_BLOCK_BYTES // (8 * source.n_samples))
    for start in range(0, len(rows), height):
        some = slice(start, start + height)
        u[some] = source.rows(rows[some]) @ beta
    return u + shift + beta[rows] / (2.0 * C) - y[rows]


def descend_and_check(
    source: KernelSource,
    y: np.ndarray,  # (n_samples,): labels ±1
    C: float,
    t: int,
    tol: float,
    max_iter: int,
    trace: bool = False,
) -> tuple[SteepestDescent, bool, bool]:
    """Descend from zero; return the state, whether it converged, whether u was rebuilt.

    The gradient u is rebuilt if single precision does not suffice.
    """
    y = np.asarray(y, dtype=np.float64)
    columns = columns_of(source, tol, t)
    state = SteepestDescent.from_zero(y)
    done = descend_steepest(state, columns, C, t, tol, max_iter, trace)
    if columns.matrix is not None or columns.dtype is np.float64:
        return state, done, False
    n = source.n_samples
    some = np.unique(np.linspace(0, n - 1, CHECKED_ROWS).astype(np.int64))
    error = gradient_in_double(source, y, C, state.beta, some) - state.u[some]
    if np.max(np.abs(error)) <= CHECKED_TOL_SHARE * tol:
        return state, done, False
    state.u[:] = gradient_in_double(source, y, C, state.beta, np.arange(n))
    done = descend_steepest(state, DoubleColumns(source), C, t, tol, max_iter, trace)
    return state, done, True


@declare(
    name="sgd-lssvm",
    problem="least-squares",
    promise="violation",
    paper="sgdlssvm",
    summary="kernel least-squares SVM by steepest sub-gradient descent",
    reference="SGD-LSSVM paper, Algorithm 2",
    kernels=("linear", "rbf", "poly"),
)
@dataclass(eq=False, repr=False, kw_only=True)
class SGDLSSVM(ClassifierWithC):
    """Kernel least-squares SVM with the offset absorbed; an iteration computes t kernel columns.

    It takes few iterations if C is moderate, and very many if C is large and the kernel matrix
    nearly singular. `LSSVMCG` minimises the same function by products with the whole matrix.

    Parameters
    ----------
    t : int
        Coordinates that an iteration changes, at one kernel column each; at most n_samples.
    tol : float
        The paper's epsilon: the largest component of the gradient at the end.
    trace : bool
        Whether to record (CPU seconds, iterations, f) on the way.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
        Samples with a nonzero coefficient: nearly all that an iteration has changed.
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``; alpha has both signs.
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    objective_, dual_objective_ : float
        Primal and dual value; f is minus the dual value.
    gradient_norm_ : float
        The largest component of the gradient.
    trace_ : list of (float, int, float)
        CPU seconds, iterations, f.
    gradient_trace_ : list of float
        The largest component of the gradient at these points.
    counters_ : dict
        ``columns`` (kernel columns), ``kernel_evaluations``, ``rebuilt`` (1 where single precision
        did not suffice).

    Examples
    --------
    >>> from svmbench.core.kernel_svm.sgd_lssvm import SGDLSSVM
    >>> SGDLSSVM(gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    t: int = 1
    tol: float = 0.01
    max_iter: int = 1_000_000
    trace: bool = False

    treats_offset = "absorbed"
    warm_with = ({}, {"t": 2}, {"trace": True})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("t", self.t)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Compile the functions that a tiny training problem does not call."""
        super().warm_up_rest()
        y = np.array([1.0, -1.0, 1.0, -1.0])
        for columns in warm_up_columns():
            for t in (1, 2):
                descend_steepest(SteepestDescent.from_zero(y), columns, 1.0, t, 0.1, 3)

    def solve(self, source: KernelSource, y: np.ndarray, start: Any = None) -> KernelSolution:
        """Descend on one kernel matrix. `start` is ignored: the paper's method starts from zero."""
        return self._descend(source, y)[0]

    def _descend(
        self, source: KernelSource, y: np.ndarray
    ) -> tuple[KernelSolution, SteepestDescent]:
        n = source.n_samples
        state, done, rebuilt = descend_and_check(
            source,
            y,
            float(self.C),
            min(int(self.t), n),
            float(self.tol),
            int(self.max_iter),
            bool(self.trace),
        )
        counters = {
            "columns": state.columns,
            "kernel_evaluations": state.columns * n,
            "rebuilt": int(rebuilt),
        }
        reason = "converged" if done else "max_iter"
        beta = state.beta
        return KernelSolution(beta, float(np.sum(beta)), state.iterations, reason, counters), state

    def train(self, data: TrainingData) -> Self:
        """Descend, and store the model.

        Unlike `solve` alone, it keeps the gradient, the decision values and the trace. Since it
        reads the inputs, ``kernel="precomputed"`` is refused.
        """
        n = data.X.shape[0]
        if int(self.t) > n:
            warn_user(
                f"t={self.t} is more than there are training samples: all {n} are used",
                UserWarning,
            )
        source = KernelSource.from_inputs(data.X, self.function)
        solution, state = self._descend(source, data.y)
        self.gradient_norm_ = state.largest
        # u = (K + 1) beta + nu beta - y, of which (K + 1) beta are the decision values.
        solution.decisions = state.u + data.y - state.beta / (2.0 * float(self.C))
        if self.trace:
            self.trace_ = [point[:3] for point in state.trace]
            self.gradient_trace_ = [point.gradient for point in state.trace]
        return self._store(solution, data)
