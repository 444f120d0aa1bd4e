"""The production C-SVC: second-order pair steps on a matrix, or in blocks of rows made on demand.

Problem
    min_alpha  1/2 alpha' Q alpha - e'alpha,   0 <= alpha_i <= C,   y'alpha = 0,
    Q_ij = y_i y_j K(x_i, x_j);  f(x) = sum_j alpha_j y_j K(x_j, x) + b.
Given
    A kernel source, y in {-1, +1}, C, tol; perhaps a start.
Returned
    alpha and b, once max{-y_i G_i: i can go up} - min{-y_j G_j: j can go down} <= tol, with
    G = Q alpha - e: the same stopping rule as LIBSVM's eps.
Reference
    Fan, Chen and Lin 2005 (choice of the pair); Joachims 1999 (working sets, shrinking).
Which way
    - A kernel matrix that is given, and fits the budget, is solved on as it is (``row_smo``, and
      along C ``c_path``).
    - From inputs, up to 2,000 samples: on the whole matrix in float32 (``single_rows``).
    - More: by working sets of 512 or 1,024, with rows as they are needed (``block_smo``).
    Both of the last are checked in float64 before they count as converged, and go on in float64
    where float32 gets no further (``refine``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svmbench.core.arrays import raw
from svmbench.core.kernel import refine, row_smo
from svmbench.core.kernel.c_path import follow
from svmbench.core.kernel.crew import require_n_jobs
from svmbench.core.kernel_base import KernelClassifier, KernelSolution
from svmbench.core.kernels import KERNELS, KernelSource
from svmbench.core.registry import declare


def solution(
    y: np.ndarray, C: float, beta: np.ndarray, v: np.ndarray, steps: int, reason: int, values: int
) -> KernelSolution:
    """Return a finished state as a solution; `values` is the number of kernel evaluations."""
    return KernelSolution(
        alpha=np.abs(beta),
        b=float(row_smo.offset(y, C, beta, v)),
        n_iter=steps,
        stop_reason=row_smo.REASONS[reason],
        counters={"kernel_evaluations": values, "updates": steps},
    )


def solve_whole(
    K: np.ndarray,
    y: np.ndarray,
    *,
    C: float,
    tol: float,
    max_iter: int,
    start: np.ndarray | None = None,
) -> KernelSolution:
    """Solve on a kernel matrix in memory.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Float32 or float64, C-ordered.
    y : ndarray of shape (n,)
        Labels ±1.
    C, tol, max_iter : float, float, int
        Bound of the multipliers, tolerance of the gap, largest number of pair steps.
    start : ndarray of shape (n,), optional
        Feasible multipliers to start from.
    """
    K, y = raw(K), raw(y)
    if start is None:
        beta, v = np.zeros(len(y)), y.copy()
    else:
        beta = start * y
        v = row_smo.gradient(K, y, beta)
    diag = raw(K.diagonal().copy())
    steps, reason = row_smo.optimise(K, diag, y, C, tol, max_iter, beta, v)
    return solution(y, C, beta, v, steps, reason, K.size)


def solve_rows(
    source: KernelSource,
    y: np.ndarray,
    *,
    C: float,
    tol: float,
    max_iter: int,
    cache_mb: float,
    start: np.ndarray | None = None,
    n_jobs: int = 1,
) -> KernelSolution:
    """Solve on kernel rows computed when they are needed; parameters as :func:`refine.search`."""
    y, before = raw(y), source.kernel_evaluations
    state = refine.search(
        source,
        y,
        C=C,
        tol=tol,
        max_iter=max_iter,
        cache_mb=cache_mb,
        start=start,
        n_jobs=n_jobs,
    )
    values = source.kernel_evaluations - before + state.evaluations
    found = solution(y, C, state.beta, state.v, state.steps, state.reason, values)
    found.counters["checks"] = state.rounds
    return found


def solve_path(
    K: np.ndarray, y: np.ndarray, values: Sequence[float], *, tol: float, max_iter: int
) -> list[KernelSolution]:
    """Solve for each C of `values`, ascending; each solution starts the next.

    Once no multiplier is at its bound, the bound does not matter: the same multipliers are the
    solution for every larger C, and cost nothing.

    Parameters
    ----------
    K, y, tol, max_iter
        As for :func:`solve_whole`; `max_iter` holds for each C.
    values : sequence of float
    """
    n_values = len(values)
    betas, offsets = np.empty((n_values, len(y))), np.empty(n_values)
    steps, reasons = np.empty(n_values, dtype=np.int64), np.empty(n_values, dtype=np.int64)
    diag = raw(K.diagonal().copy())
    C = np.array(values, dtype=np.float64)
    follow(raw(K), diag, raw(y), C, tol, max_iter, betas, offsets, steps, reasons)
    np.abs(betas, out=betas)
    return [
        KernelSolution(
            alpha=betas[c],
            b=float(offsets[c]),
            n_iter=int(steps[c]),
            stop_reason=row_smo.REASONS[reasons[c]],
            counters={"kernel_evaluations": K.size if c == 0 else 0, "updates": int(steps[c])},
        )
        for c in range(n_values)
    ]


@declare(
    name="csvc",
    problem="hinge",
    summary="C-SVC for production: second-order pairs, blocks of kernel rows, warm starts along C",
    reference="Fan, Chen and Lin 2005; Joachims 1999",
    paper="",
    kernels=KERNELS,
)
class CSVC(KernelClassifier):
    """C-SVC with a free offset, as LIBSVM's, and faster.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed hinge losses; above 0.
    kernel : {"linear", "rbf", "poly", "sigmoid"}, default="rbf"
    gamma : float or "scale", default="scale"
        Width of the kernel; "scale" is 1 / (n_features * variance of X).
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        Largest violation of the optimality conditions (LIBSVM's eps).
    max_iter : int, default=10000000
        Largest number of pair steps.
    cache_mb : float, default=1024.0
        Memory for kernel rows, MiB; any amount will do, and more saves work. Beside it there are
        a copy of the inputs in float32, some 20 MiB of scratch and, while optimality is checked,
        a copy of the support vectors.
    n_jobs : int, default=1
        Threads that make kernel rows and update the gradient of problems of more than 2,000
        samples; -1: one a processor. The model is the same whatever their number. Sparse inputs
        of less than 3 % non-zeros that are not binary, and stored matrices, stay on one thread.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
    support_vectors_ : ndarray or csr_array of shape (n_support, n_features)
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``.
    intercept_ : ndarray of shape (1,)
    objective_, dual_objective_ : float
        Primal value at the offset, and dual value.
    n_iter_ : int
        Pair steps.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"`` (no step is left that float64 can see).
    counters_ : dict
        ``kernel_evaluations``, ``updates`` (pair steps), ``checks`` (of the gradient in float64),
        ``support_vectors``, ``bounded_support_vectors``.

    Examples
    --------
    >>> from svmbench.core.kernel.csvc import CSVC
    >>> CSVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = 10_000_000,
        cache_mb: float = 1024.0,
        n_jobs: int = 1,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_n_jobs(self.n_jobs)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call what only larger problems need, and problems of a given matrix."""
        refine.warm_up()
        y = np.array([1.0, -1.0])
        for dtype in (np.float32, np.float64):
            source = KernelSource.precomputed(np.eye(2, dtype=dtype))
            cls().solve(source, y, start=np.zeros(2))
            cls().solve_path(source, y, [1.0, 2.0])

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; see the base class."""
        C, tol, max_iter = float(self.C), float(self.tol), int(self.max_iter)
        if source.inputs() is None:
            K = source.whole(float(self.cache_mb))
            if K is not None:
                return solve_whole(K, y, C=C, tol=tol, max_iter=max_iter, start=start)
        return solve_rows(
            source,
            y,
            C=C,
            tol=tol,
            max_iter=max_iter,
            cache_mb=float(self.cache_mb),
            start=start,
            n_jobs=self.n_jobs,
        )

    def solve_path(
        self, source: KernelSource, y: np.ndarray, values: Sequence[float]
    ) -> list[KernelSolution]:
        """Return the solution at each C of `values` (ascending), each started from the last."""
        K = source.whole(float(self.cache_mb))
        if K is None:
            return super().solve_path(source, y, values)
        return solve_path(K, y, values, tol=float(self.tol), max_iter=int(self.max_iter))
