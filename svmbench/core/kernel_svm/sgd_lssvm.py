"""SGD-LSSVM: the kernel least-squares SVM, a few coordinates of the steepest slope at a time.

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
    SGD-LSSVM paper, Algorithm 2: B are the t largest |g_i|, and along g_B the exact minimum,
    theta = g_B'g_B / g_B'Q_BB g_B; f falls by theta g_B'g_B / 2 (Corollary 1).
Deviations
    - The loop keeps beta_i = y_i alpha_i and u_i = y_i g_i, in which the labels are gone.
    - The t largest are kept in a heap during the pass that changes the gradient: no sort. Of
      equal ones the first come first.
    - The columns may be of single precision. What that did to the gradient is then measured on a
      sample of rows; where it matters, the gradient is rebuilt and the rest done in double.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from time import process_time
from typing import Any, NamedTuple, Self

import numpy as np

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.steepest_steps import (
    PIECE,
    descend_by_blocks,
    descend_on_matrix,
    step_and_select,
    step_on,
)
from svmbench.core.kernels.columns import Columns, DoubleColumns, columns_of, warm_up_columns
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier

#: Bytes of kernel values that a block of columns takes at a time.
BLOCK_BYTES = 1 << 22

#: Rows on which the gradient is checked in double precision, and the share of the tolerance that
#: it may be wrong by there.
CHECKED, TRUSTED = 64, 0.1

#: Factor from one point of a trace to the next, in iterations.
TRACED = 1.1


class Point(NamedTuple):
    """A point of a trace."""

    seconds: float  # CPU time of the steps so far
    iterations: int
    objective: float  # f
    gradient: float  # the largest component of g


@dataclass
class Descent:
    """State of a descent, which `descend` changes."""

    beta: np.ndarray  # (n_samples,): ``y alpha``
    u: np.ndarray  # (n_samples,): ``y g``
    f: float = 0.0  # the value of the dual objective, summed up from the steps' decreases
    iterations: int = 0  # steps
    columns: int = 0  # kernel columns that they took
    largest: float = np.inf  # the largest component of the gradient
    trace: list[Point] = field(default_factory=list)

    @staticmethod
    def from_zero(y: np.ndarray) -> Descent:
        """Return the start ``alpha = 0``, ``g = -1``."""
        return Descent(beta=np.zeros(len(y)), u=-np.asarray(y, dtype=np.float64))


def descend(
    state: Descent,
    columns: Columns,
    C: float,  # weight of the summed losses
    t: int,  # columns an iteration, at most the number of samples
    tol: float,  # bound of the gradient's components; the paper's epsilon
    max_iter: int,  # largest number of iterations, those before this call included
    trace: bool = False,  # whether to keep points at iterations 1, 2, 3 … and later ones 10 % apart
) -> bool:  # whether it got there
    """Take steps from `state`, changing it, until the gradient is below `tol` everywhere."""
    nu = 1.0 / (2.0 * C)
    take = _single_steps(state, columns, nu, tol) if t == 1 else _blocks(state, columns, nu, tol, t)
    begin = process_time()
    seconds = state.trace[-1].seconds if state.trace else 0.0
    # Without a trace one call on a whole matrix takes all steps.
    due = state.iterations
    while state.iterations < max_iter:
        if trace and state.iterations >= due and np.isfinite(state.largest):
            passed = seconds + process_time() - begin
            state.trace.append(Point(passed, state.iterations, state.f, state.largest))
            due = max(state.iterations + 1, int(TRACED * state.iterations))
        if state.largest < tol:
            break
        before = state.iterations
        take(min(max_iter, due if trace and due > before else max_iter) - before)
        if state.iterations == before:
            break
    if trace and (not state.trace or state.trace[-1].iterations < state.iterations):
        passed = seconds + process_time() - begin
        state.trace.append(Point(passed, state.iterations, state.f, state.largest))
    return state.largest < tol


def _single_steps(state: Descent, columns: Columns, nu: float, tol: float) -> Callable[[int], None]:
    """Return a function that takes up to so many steps of one coordinate each."""
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
    state: Descent, columns: Columns, nu: float, tol: float, t: int
) -> Callable[[int], None]:
    """Return a function that takes up to so many steps of t coordinates each."""
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
    width = max(PIECE, BLOCK_BYTES // (t * np.dtype(columns.dtype).itemsize))
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


def exact_gradient(
    source: KernelSource, y: np.ndarray, C: float, beta: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return the signed gradient ``(K + 1 + nu) beta - y`` at some rows in double precision."""
    u = np.empty(len(rows))
    shift = float(np.sum(beta))
    height = max(1, BLOCK_BYTES // (8 * source.n_samples))
    for start in range(0, len(rows), height):
        some = slice(start, start + height)
        u[some] = source.rows(rows[some]) @ beta
    return u + shift + beta[rows] / (2.0 * C) - y[rows]


def minimise(
    source: KernelSource,
    y: np.ndarray,  # (n_samples,): labels ±1
    C: float,
    t: int,
    tol: float,
    max_iter: int,
    trace: bool = False,
) -> tuple[Descent, bool, bool]:
    """Descend from zero on a kernel matrix, wherever it comes from.

    Return the state, whether it converged, and whether single precision did not suffice, so that
    the gradient was rebuilt.
    """
    y = np.asarray(y, dtype=np.float64)
    columns = columns_of(source, tol, t)
    state = Descent.from_zero(y)
    done = descend(state, columns, C, t, tol, max_iter, trace)
    if columns.matrix is not None or columns.dtype is np.float64:
        return state, done, False
    n = source.n_samples
    some = np.unique(np.linspace(0, n - 1, CHECKED).astype(np.int64))
    error = exact_gradient(source, y, C, state.beta, some) - state.u[some]
    if np.max(np.abs(error)) <= TRUSTED * tol:
        return state, done, False
    state.u[:] = exact_gradient(source, y, C, state.beta, np.arange(n))
    done = descend(state, DoubleColumns(source), C, t, tol, max_iter, trace)
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
@dataclass(eq=False, repr=False)
class SGDLSSVM(KernelClassifier):
    """Kernel least-squares SVM with the offset absorbed: t kernel columns an iteration, no matrix.

    It takes few iterations where C is moderate, and very many where C is large and the kernel
    matrix nearly singular; an end at `max_iter` is said.
    `LSSVMCG` minimises the same by products with the whole
    matrix.

    Parameters
    ----------
    t : int
        Coordinates, and kernel columns, an iteration; all, where there are fewer.
    tol : float
        The paper's epsilon: the largest component of the gradient at the end.
    trace : bool
        Whether to record (CPU seconds, iterations, f) on the way.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
        Nearly all samples that were touched.
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

    C: float = 1.0
    _: KW_ONLY
    t: int = 1
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
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
        """Call what only more samples than a tiny problem has would call."""
        super().warm_up_rest()
        y = np.array([1.0, -1.0, 1.0, -1.0])
        for columns in warm_up_columns():
            for t in (1, 2):
                descend(Descent.from_zero(y), columns, 1.0, t, 0.1, 3)

    def solve(self, source: KernelSource, y: np.ndarray, start: Any = None) -> KernelSolution:
        """Descend on one kernel matrix; from zero, as printed, whatever the start."""
        return self._descend(source, y)[0]

    def _descend(self, source: KernelSource, y: np.ndarray) -> tuple[KernelSolution, Descent]:
        n = source.n_samples
        state, done, rebuilt = minimise(
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
        """Descend, and store the model."""
        n = data.X.shape[0]
        if int(self.t) > n:
            warnings.warn(
                f"t={self.t} is more than there are training samples: all {n} are used",
                UserWarning,
                stacklevel=3,
            )
        source = KernelSource.from_inputs(data.X, self.function)
        solution, state = self._descend(source, data.y)
        self.gradient_norm_ = state.largest
        # u = (K + 1) beta + nu beta - y, and f is the first of these.
        solution.decisions = state.u + data.y - state.beta / (2.0 * float(self.C))
        if self.trace:
            self.trace_ = [point[:3] for point in state.trace]
            self.gradient_trace_ = [point.gradient for point in state.trace]
        return self._store(solution, data)
