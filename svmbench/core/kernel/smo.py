"""Sequential minimal optimisation, as it was first printed.

Problem
    min_alpha  1/2 alpha' Q alpha - e'alpha,   0 <= alpha_i <= C,   y'alpha = 0,
    Q_ij = y_i y_j K(x_i, x_j);  f(x) = sum_j alpha_j y_j K(x_j, x) - b.
Given
    X (n_samples, d), dense or CSR; y in {-1, +1}; C; kernel; tol.
Returned
    alpha and the offset -b, once no example is further than tol from its side of the margin.
Reference
    Platt 1998 (MSR-TR-98-14), section 2 with its pseudo-code: first choice by full sweeps that
    alternate with sweeps over the non-bound examples, second choice by the largest |E1 - E2| of
    the error cache, then all non-bound and all examples from random starts; equations 13-21;
    equation 22 keeps one weight vector for the linear kernel.
Deviations
    - The least relative step `eps` is min(1e-3, tol). When a full sweep changes nothing and the
      gap is still above 2 tol, eps is divided by 10 and the sweeps go on (the report leaves such
      examples behind).
    - The error cache is recomputed at each full sweep: increments carry their rounding errors.
    - The final threshold is the middle of what the examples allow, where the last pair's is not
      among that (Keerthi et al. 2001 describe how it can come to be outside).
    - A multiplier within 1e-12 C of a bound is put on it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from svmbench.core.base import TrainingData, declare
from svmbench.core.compiled import compiled
from svmbench.core.kernel.storage import (
    EVALUATIONS,
    LINEAR,
    STEPS,
    SWEEPS,
    Storage,
    add_sample,
    kernel_values,
    of_product,
    product,
    store,
    with_matrix,
)
from svmbench.core.kernel_base import KernelClassifier, KernelSolution
from svmbench.core.kernels import KERNELS

#: Entries of the array of changing numbers.
B, SEED, EPS = 0, 1, 2

#: The least `eps` that is tried.
LEAST_EPS = 1e-14

#: Share of C within which a multiplier counts as at a bound.
AT_BOUND = 1e-12


@compiled
def random_start(state: np.ndarray, n: int) -> int:
    """Return a number below `n` at random (32-bit xorshift, the same without compiled code)."""
    seed = int(state[SEED])
    seed ^= (seed << 13) & 0xFFFFFFFF
    seed ^= seed >> 17
    seed ^= (seed << 5) & 0xFFFFFFFF
    state[SEED] = seed
    return (seed * n) >> 32


@compiled
def output(
    s: Storage,
    i: int,
    y: np.ndarray,
    alpha: np.ndarray,
    w: np.ndarray,
    work: np.ndarray,
    others: np.ndarray,
    values: np.ndarray,
    counters: np.ndarray,
) -> float:
    """Return sum_j alpha_j y_j K(x_j, x_i): from the weight vector, or over support vectors."""
    if s.kind == LINEAR:
        counters[EVALUATIONS] += 1
        return product(s, w, i)
    n_others = 0
    for j in range(len(alpha)):
        if alpha[j] > 0.0:
            others[n_others] = j
            n_others += 1
    kernel_values(s, i, others, n_others, work, values, counters)
    total = 0.0
    for m in range(n_others):
        total += alpha[others[m]] * y[others[m]] * values[m]
    return total


@compiled
def take_step(
    s: Storage,
    i1: int,
    i2: int,
    E1: float,
    E2: float,
    y: np.ndarray,
    C: float,
    alpha: np.ndarray,
    w: np.ndarray,
    errors: np.ndarray,
    state: np.ndarray,
    work: np.ndarray,
    others: np.ndarray,
    values: np.ndarray,
    counters: np.ndarray,
) -> bool:
    """Optimise the pair (i1, i2) jointly; return whether anything changed."""
    if i1 == i2:
        return False
    a1, a2, y1, y2 = alpha[i1], alpha[i2], y[i1], y[i2]
    sign = y1 * y2
    if sign < 0.0:
        L, H = max(0.0, a2 - a1), min(C, C + a2 - a1)
    else:
        L, H = max(0.0, a1 + a2 - C), min(C, a1 + a2)
    if L >= H:
        return False
    others[0] = i2
    kernel_values(s, i1, others, 1, work, values, counters)
    k12 = values[0]
    k11 = of_product(s, s.squares[i1], i1, i1)
    k22 = of_product(s, s.squares[i2], i2, i2)
    eta = k11 + k22 - 2.0 * k12
    slope = y2 * (E1 - E2)
    eps = state[EPS]
    if eta > 0.0:
        new2 = min(max(a2 + slope / eta, L), H)
    else:
        # Without curvature the best is at an end: the objective there, less its present value.
        at_L = (L - a2) * (0.5 * eta * (L - a2) - slope)
        at_H = (H - a2) * (0.5 * eta * (H - a2) - slope)
        if at_L < at_H - eps:
            new2 = L
        elif at_H < at_L - eps:
            new2 = H
        else:
            return False
    if new2 < AT_BOUND * C:
        new2 = 0.0
    elif new2 > C - AT_BOUND * C:
        new2 = C
    if abs(new2 - a2) < eps * (new2 + a2 + eps):
        return False
    new1 = a1 + sign * (a2 - new2)
    if new1 < AT_BOUND * C:
        new1 = 0.0
    elif new1 > C - AT_BOUND * C:
        new1 = C
    t1, t2 = y1 * (new1 - a1), y2 * (new2 - a2)
    b = state[B]
    b1 = E1 + t1 * k11 + t2 * k12 + b
    b2 = E2 + t1 * k12 + t2 * k22 + b
    if 0.0 < new1 < C:
        new_b = b1
    elif 0.0 < new2 < C:
        new_b = b2
    else:
        new_b = 0.5 * (b1 + b2)
    alpha[i1], alpha[i2] = new1, new2
    state[B] = new_b
    n_others = 0
    for k in range(len(alpha)):
        if 0.0 < alpha[k] < C:
            others[n_others] = k
            n_others += 1
    if s.kind == LINEAR:
        add_sample(s, w, i1, t1)
        add_sample(s, w, i2, t2)
        for m in range(n_others):
            k = others[m]
            errors[k] = product(s, w, k) - new_b - y[k]
        counters[EVALUATIONS] += n_others
    else:
        for k in (i1, i2):
            t = t1 if k == i1 else t2
            kernel_values(s, k, others, n_others, work, values, counters)
            for m in range(n_others):
                errors[others[m]] += t * values[m]
        for m in range(n_others):
            errors[others[m]] += b - new_b
        # An example that has just left its bound had no cached error.
        for k in (i1, i2):
            E, u, v = (E1, k11, k12) if k == i1 else (E2, k12, k22)
            errors[k] = E + t1 * u + t2 * v + b - new_b
    counters[STEPS] += 1
    return True


@compiled
def examine(
    s: Storage,
    i2: int,
    y: np.ndarray,
    C: float,
    tol: float,
    alpha: np.ndarray,
    w: np.ndarray,
    errors: np.ndarray,
    state: np.ndarray,
    work: np.ndarray,
    others: np.ndarray,
    values: np.ndarray,
    counters: np.ndarray,
    refresh: bool,
) -> bool:
    """Look for a partner of example i2 if it violates the conditions; return whether one moved."""
    N = len(alpha)
    a2 = alpha[i2]
    if refresh or not 0.0 < a2 < C:
        f = output(s, i2, y, alpha, w, work, others, values, counters)
        errors[i2] = f - state[B] - y[i2]
    E2 = errors[i2]
    r2 = E2 * y[i2]
    if not ((r2 < -tol and a2 < C) or (r2 > tol and a2 > 0.0)):
        return False
    i1, widest = -1, 0.0
    for k in range(N):
        if 0.0 < alpha[k] < C and abs(errors[k] - E2) > widest:
            i1, widest = k, abs(errors[k] - E2)
    if i1 >= 0 and take_step(
        s, i1, i2, errors[i1], E2, y, C, alpha, w, errors, state, work, others, values, counters
    ):
        return True
    for only_non_bound in (True, False):
        start = random_start(state, N)
        for m in range(N):
            i1 = (start + m) % N
            non_bound = 0.0 < alpha[i1] < C
            if non_bound != only_non_bound:
                continue
            if not non_bound:
                f = output(s, i1, y, alpha, w, work, others, values, counters)
                errors[i1] = f - state[B] - y[i1]
            if take_step(
                s,
                i1,
                i2,
                errors[i1],
                E2,
                y,
                C,
                alpha,
                w,
                errors,
                state,
                work,
                others,
                values,
                counters,
            ):
                return True
    return False


@compiled
def sweeps(
    s: Storage,
    y: np.ndarray,
    C: float,
    tol: float,
    max_iter: int,
    alpha: np.ndarray,
    w: np.ndarray,
    errors: np.ndarray,
    state: np.ndarray,
    counters: np.ndarray,
) -> tuple[float, float]:
    """Sweep until all examples keep the conditions, changing `alpha`, `w` and `state` in place.

    Returns
    -------
    lower, upper : float
        The limits of the thresholds that the examples allow; ``lower - upper`` is the gap.
    """
    N = len(alpha)
    work, values = np.zeros(len(w)), np.empty(N + 2)
    others = np.empty(N + 2, dtype=np.int64)
    while True:
        examine_all, changed = True, 0
        while (changed > 0 or examine_all) and counters[SWEEPS] < max_iter:
            changed = 0
            for i in range(N):
                if examine_all or 0.0 < alpha[i] < C:
                    changed += examine(
                        s,
                        i,
                        y,
                        C,
                        tol,
                        alpha,
                        w,
                        errors,
                        state,
                        work,
                        others,
                        values,
                        counters,
                        examine_all,
                    )
            counters[SWEEPS] += 1
            if examine_all:
                examine_all = False
            elif changed == 0:
                examine_all = True
        # b may be anything between the largest u - y of those that want f larger at most, and
        # the least of those that want it smaller: y f(x) >= 1 where alpha < C, <= 1 where > 0.
        lower, upper = -np.inf, np.inf
        for i in range(N):
            u = output(s, i, y, alpha, w, work, others, values, counters) - y[i]
            if (y[i] > 0.0 and alpha[i] < C) or (y[i] < 0.0 and alpha[i] > 0.0):
                upper = min(upper, u)
            if (y[i] > 0.0 and alpha[i] > 0.0) or (y[i] < 0.0 and alpha[i] < C):
                lower = max(lower, u)
        if lower - upper <= 2.0 * tol or counters[SWEEPS] >= max_iter or state[EPS] < LEAST_EPS:
            return lower, upper
        state[EPS] *= 0.1
        # The next first sweep tests every example against a threshold that is in the middle.
        errors += state[B] - 0.5 * (lower + upper)
        state[B] = 0.5 * (lower + upper)


def optimise(
    X: Any, y: np.ndarray, s: Storage, *, C: float, tol: float, max_iter: int
) -> KernelSolution:
    """Solve the dual with a free threshold.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels ±1.
    s : Storage
        The same inputs as `store` returns them.
    C, tol, max_iter
        Upper bound of the multipliers, tolerance of the conditions, largest number of sweeps.
    """
    N, d = X.shape
    alpha, w, errors = np.zeros(N), np.zeros(d), -y
    state = np.array([0.0, 1.0, min(1e-3, tol)])
    counters = np.zeros(3, dtype=np.int64)
    if len(s.K):
        counters[EVALUATIONS] = N * N
    lower, upper = sweeps(s, y, C, tol, max_iter, alpha, w, errors, state, counters)
    b = float(state[B])
    if not lower - tol <= b <= upper + tol:
        b = 0.5 * (lower + upper)
    reason = "max_iter" if counters[SWEEPS] >= max_iter else "stalled"
    return KernelSolution(
        alpha=alpha,
        b=-b,
        n_iter=int(counters[SWEEPS]),
        stop_reason="converged" if lower - upper <= 2.0 * tol else reason,
        counters={
            "kernel_evaluations": int(counters[EVALUATIONS]),
            "updates": int(counters[STEPS]),
            "sweeps": int(counters[SWEEPS]),
        },
    )


@declare(
    name="smo",
    problem="hinge",
    summary="sequential minimal optimisation as first printed, with its error cache",
    reference="Platt 1998, section 2 and equations 13-22",
    paper="smo",
    kernels=KERNELS,
)
class SMO(KernelClassifier):
    """Platt's SMO: one pair of multipliers at a time, chosen by his two heuristics.

    It keeps no kernel values, so its memory is linear in the number of samples; a production
    solver would. With the linear kernel it works on one weight vector.

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
        How far f may be from where the conditions want it; the gap at the end is at most twice
        that (LIBSVM's eps bounds the gap).
    max_iter : int, default=100000
        Largest number of sweeps over all or over the non-bound examples.
    cache_mb : float, default=0.0
        Memory for kernel values, MiB: where it holds the whole matrix, that is computed once.
    storage : {"sparse", "dense"}, default="sparse"
        How inputs are kept, whatever they came as; the report measures both.

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
        Sweeps.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"`` (no step is left that float64 can see).
    counters_ : dict
        ``kernel_evaluations`` (inner products, with the linear kernel), ``updates`` (pair steps),
        ``sweeps``, ``support_vectors``, ``bounded_support_vectors``.

    Examples
    --------
    >>> from svmbench.core.kernel.smo import SMO
    >>> SMO(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
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
        max_iter: int = 100_000,
        cache_mb: float = 0.0,
        storage: str = "sparse",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.storage = storage

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.storage not in ("sparse", "dense"):
            msg = f"storage must be 'sparse' or 'dense', got storage={self.storage!r}"
            raise ValueError(msg)

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Validate, and bring the inputs into the chosen storage."""
        data = super().prepare(X, y)
        data.native = store(data.X, self.function, self.storage)
        return data

    def train(self, data: TrainingData) -> Self:
        """Sweep until no example violates the optimality conditions by more than `tol`."""
        solution = optimise(
            data.X,
            data.y,
            with_matrix(data.native, data.X, self.function, float(self.cache_mb)),
            C=float(self.C),
            tol=float(self.tol),
            max_iter=self.max_iter,
        )
        return self._store(solution, data)
