"""Dual coordinate descent for linear SVMs with the hinge and the squared hinge loss.

Problem
    min_alpha  1/2 alpha' Q' alpha - e'alpha,   0 <= alpha_i <= U,   Q' = Q + D,
    Q_ij = y_i y_j x_i'x_j over samples x with a constant feature ("bias absorbed");
    L1 loss: U = C, D = 0;  L2 loss: U = infinity, D_ii = 1 / (2C).
Given
    X (n_samples, d), y in {-1, +1}, C, eps.
Returned
    alpha, w = sum_i alpha_i y_i x_i, once the largest and the smallest projected gradient of a
    pass over all samples differ by less than eps, and still do at the end of that pass.
Reference
    Hsieh, Chang, Lin, Keerthi and Sundararajan 2008, Algorithms 1 and 3 (shrinking).
Deviations
    - The active samples are shuffled before a pass (one multiply and one shift a draw, from a
      32-bit xorshift generator, the same with and without compiled code), not while it runs: the
      next rows are then known, and prefetched.
    - alpha_i, 1 / Q'_ii and y_i lie next to each other: one cache line a sample instead of three.
    - Samples may have weights v_i: C is C v_i. Without them the loop is compiled without them.
    - Samples that shrink are left out until all come back, instead of being kept at the end of the
      array.
    - Stopping is eps on the absolute difference, as in LIBLINEAR; eps = 0.1 is its default.
    - A pass evaluates each projected gradient when its sample's turn comes. Later steps of the pass
      change it; the step of a long row changes it by much. So after the last pass all are evaluated
      again, at the final w, and 0 counts as one of them; if they differ by more than eps, passes go
      on.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_sums, prefetch
from svmbench.core.contract.base import ClassWeight, TrainingData, Weighted
from svmbench.core.contract.linear_base import LinearClassifierWithC, LinearSolution
from svmbench.core.contract.problems import HINGE, SQUARED_HINGE, LossProblem, Values, linear
from svmbench.core.contract.registry import declare
from svmbench.core.numeric.arrays import csr_parts, raw
from svmbench.core.numeric.random import generator, xorshift

#: Columns of `records`, and the number of its columns: the fourth is empty, for alignment.
ALPHA, INVERSE_DIAGONAL, LABEL = 0, 1, 2
RECORD_WIDTH = 4

#: Positions in `state`, an array that carries numbers from one call of compiled code to the next.
N_ACTIVE, SEED, CONVERGED, PASSES, STEPS, VISITS = 0, 1, 2, 3, 4, 5
STATE_SIZE = 6

#: Entries of `limits`: the largest and smallest projected gradient of the last pass, for shrinking.
LARGEST, SMALLEST = 0, 1

#: Memory is prefetched for samples this many places ahead: a row's values, and its address.
VALUES_AHEAD, ADDRESS_AHEAD = 4, 12

#: A projected gradient at most this large moves no multiplier, as in LIBLINEAR.
SMALLEST_GRADIENT = 1e-12

#: One call of compiled code reads about so many values of X, within a tenth of a second: only
#: between calls can it be interrupted.
VALUES_A_CALL = 1 << 25


@compiled
def shuffle(active: np.ndarray, n_active: int, seed: int) -> int:
    """Permute the first `n_active` entries at random, in place; return the next seed."""
    for s in range(n_active):
        seed = xorshift(seed)
        r = s + ((seed * (n_active - s)) >> 32)
        i = active[r]
        active[r] = active[s]
        active[s] = i
    return seed


@compiled
def next_pass(
    active: np.ndarray,
    kept: int,
    PG_max: float,
    PG_min: float,
    eps: float,
    limits: np.ndarray,
    state: np.ndarray,
) -> int:
    """Set the limits of the next pass, or CONVERGED; return its number of samples."""
    N = len(active)
    state[PASSES] += 1
    if PG_max - PG_min <= eps:
        if kept == N:
            state[CONVERGED] = 1
            return N
        # Converged on the active samples: all samples become active again (Algorithm 3).
        for i in range(N):
            active[i] = i
        limits[LARGEST], limits[SMALLEST] = np.inf, -np.inf
        return N
    limits[LARGEST] = PG_max if PG_max > 0.0 else np.inf
    limits[SMALLEST] = PG_min if PG_min < 0.0 else -np.inf
    return kept


@compiled
def projected_gradient(
    G: float, alpha: float, U: float, M_bar: float, m_bar: float
) -> tuple[float, bool]:
    """Return the projected gradient of one multiplier, and True if it shrinks (Algorithm 3)."""
    if alpha <= 0.0:
        return min(G, 0.0), M_bar < G
    if alpha >= U:
        return max(G, 0.0), m_bar > G
    return G, False


@compiled
def csr_squared_lengths(data: np.ndarray, indptr: np.ndarray, lengths: np.ndarray) -> None:
    """Set `lengths` to the squared length of each CSR row."""
    for i in range(len(lengths)):
        total = 0.0
        for q in range(indptr[i], indptr[i + 1]):
            total += data[q] * data[q]
        lengths[i] = total


@compiled
def passes_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    records: np.ndarray,
    D: float,
    U: float,
    weights: np.ndarray | None,
    eps: float,
    n_passes: int,
    w: np.ndarray,
    active: np.ndarray,
    limits: np.ndarray,
    state: np.ndarray,
) -> None:
    """Run at most `n_passes` passes on CSR rows, all in place; see :func:`coordinate_descent`."""
    n_active, seed = state[N_ACTIVE], state[SEED]
    steps, visits = 0, 0
    for _ in range(n_passes):
        seed = shuffle(active, n_active, seed)
        PG_max, PG_min = -np.inf, np.inf
        M_bar, m_bar = limits[LARGEST], limits[SMALLEST]
        kept = 0
        for s in range(n_active):
            if s + ADDRESS_AHEAD < n_active:
                prefetch(indptr, active[s + ADDRESS_AHEAD])
                prefetch(records, RECORD_WIDTH * active[s + ADDRESS_AHEAD])
            if s + VALUES_AHEAD < n_active:
                ahead = active[s + VALUES_AHEAD]
                for line in range(indptr[ahead], indptr[ahead + 1], 8):
                    prefetch(data, line)
                    prefetch(indices, line)
            i = active[s]
            y = records[i, LABEL]
            alpha = records[i, ALPHA]
            U_i, D_ii = U, D
            if weights is not None:
                U_i, D_ii = U * weights[i], D / weights[i]
            start, end = np.uint32(indptr[i]), np.uint32(indptr[i + 1])
            # Four sums at a time: one alone would wait for its own last addition.
            f, f1, f2, f3 = 0.0, 0.0, 0.0, 0.0
            q: Any = start
            while q + np.uint32(3) < end:
                f += w[np.uint32(indices[q])] * data[q]
                f1 += w[np.uint32(indices[q + np.uint32(1)])] * data[q + np.uint32(1)]
                f2 += w[np.uint32(indices[q + np.uint32(2)])] * data[q + np.uint32(2)]
                f3 += w[np.uint32(indices[q + np.uint32(3)])] * data[q + np.uint32(3)]
                q += np.uint32(4)
            while q < end:
                f += w[np.uint32(indices[q])] * data[q]
                q += np.uint32(1)
            # G = y_i w'x_i - 1 + D_ii alpha_i
            G = y * ((f + f1) + (f2 + f3)) - 1.0 + D_ii * alpha
            visits += 1
            PG, shrinks = projected_gradient(G, alpha, U_i, M_bar, m_bar)
            if shrinks:
                continue
            active[kept] = i
            kept += 1
            PG_max = max(PG_max, PG)
            PG_min = min(PG_min, PG)
            if abs(PG) > SMALLEST_GRADIENT:
                new = min(max(alpha - G * records[i, INVERSE_DIAGONAL], 0.0), U_i)
                records[i, ALPHA] = new
                change = (new - alpha) * y
                for entry in range(start, end):
                    w[np.uint32(indices[entry])] += change * data[entry]
                steps += 1
        n_active = next_pass(active, kept, PG_max, PG_min, eps, limits, state)
        if state[CONVERGED]:
            break
    state[N_ACTIVE], state[SEED] = n_active, seed
    state[STEPS] += steps
    state[VISITS] += visits


@compiled_sums
def passes_dense(
    X: np.ndarray,
    records: np.ndarray,
    D: float,
    U: float,
    weights: np.ndarray | None,
    eps: float,
    n_passes: int,
    w: np.ndarray,
    active: np.ndarray,
    limits: np.ndarray,
    state: np.ndarray,
) -> None:
    """Run at most `n_passes` passes on dense rows, all in place; see :func:`coordinate_descent`."""
    d = X.shape[1]
    n_active, seed = state[N_ACTIVE], state[SEED]
    steps, visits = 0, 0
    for _ in range(n_passes):
        seed = shuffle(active, n_active, seed)
        PG_max, PG_min = -np.inf, np.inf
        M_bar, m_bar = limits[LARGEST], limits[SMALLEST]
        kept = 0
        for s in range(n_active):
            if s + VALUES_AHEAD < n_active:
                ahead = active[s + VALUES_AHEAD]
                prefetch(records, RECORD_WIDTH * ahead)
                for line in range(0, d, 8):
                    prefetch(X, d * ahead + line)
            i = active[s]
            y = records[i, LABEL]
            alpha = records[i, ALPHA]
            U_i, D_ii = U, D
            if weights is not None:
                U_i, D_ii = U * weights[i], D / weights[i]
            f = 0.0
            for j in range(d):
                f += w[j] * X[i, j]
            G = y * f - 1.0 + D_ii * alpha
            visits += 1
            PG, shrinks = projected_gradient(G, alpha, U_i, M_bar, m_bar)
            if shrinks:
                continue
            active[kept] = i
            kept += 1
            PG_max = max(PG_max, PG)
            PG_min = min(PG_min, PG)
            if abs(PG) > SMALLEST_GRADIENT:
                new = min(max(alpha - G * records[i, INVERSE_DIAGONAL], 0.0), U_i)
                records[i, ALPHA] = new
                change = (new - alpha) * y
                for j in range(d):
                    w[j] += change * X[i, j]
                steps += 1
        n_active = next_pass(active, kept, PG_max, PG_min, eps, limits, state)
        if state[CONVERGED]:
            break
    state[N_ACTIVE], state[SEED] = n_active, seed
    state[STEPS] += steps
    state[VISITS] += visits


@compiled
def is_optimal(
    f: np.ndarray,
    records: np.ndarray,
    D: float,
    U: float,
    weights: np.ndarray | None,
    eps: float,
) -> bool:
    """Return True if all projected gradients where X w = `f`, and 0, differ by at most `eps`."""
    most, least = 0.0, 0.0
    for i in range(len(f)):
        alpha, U_i, D_ii = records[i, ALPHA], U, D
        if weights is not None:
            U_i, D_ii = U * weights[i], D / weights[i]
        G = records[i, LABEL] * f[i] - 1.0 + D_ii * alpha
        if alpha > 0.0:
            most = max(most, G)
        if alpha < U_i:
            least = min(least, G)
    return most - least <= eps


@dataclass(frozen=True)
class DescentParameters:
    """Parameters of a descent."""

    C: float  # weight of the losses
    eps: float  # stopping tolerance
    max_iter: int  # largest number of passes
    bias: float  # value of the constant feature that samples carry; 0 for none
    seed: int  # in [1, 2^32): of the order of the passes
    # whether to record (seconds, passes, primal value) after each pass; these seconds leave out the
    # evaluation
    trace: bool = False


def coordinate_descent(
    X: Any,  # (n_samples, d)
    y: np.ndarray,  # (n_samples,): labels ±1
    problem: LossProblem,  # the hinge or the squared hinge
    parameters: DescentParameters,
    # (n_samples,): what multiplies C, of each sample; above 0, 1 each by default
    weights: np.ndarray | None = None,
) -> tuple[LinearSolution, np.ndarray]:  # solution, alpha
    """Minimise the dual of `problem` on samples that carry the constant feature."""
    N, d = X.shape
    begin = process_time()
    C, max_iter, bias = parameters.C, parameters.max_iter, parameters.bias
    U = problem.upper(C)
    D = 0.0 if np.isfinite(U) else 1.0 / (2.0 * C)
    w = np.zeros(d)
    # Unsigned: compiled code needn't look for negative indices.
    active = np.arange(N, dtype=np.uint32)
    limits = np.array([np.inf, -np.inf])
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    state[N_ACTIVE], state[SEED] = N, parameters.seed
    records = np.zeros((N, RECORD_WIDTH))
    records[:, LABEL] = y
    parts: tuple[np.ndarray, ...]
    if sp.issparse(X):
        parts = csr_parts(X)
        lengths = np.empty(N)
        csr_squared_lengths(parts[0], parts[2], lengths)
    else:
        parts = (raw(X),)
        lengths = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    # The gradient of a sample of zeros is -1: its multiplier goes to its bound in one step.
    diagonal = np.maximum(lengths + (D if weights is None else D / weights), np.finfo(float).tiny)
    records[:, INVERSE_DIAGONAL] = 1.0 / diagonal
    run = passes_csr if sp.issparse(X) else passes_dense
    passes_a_call = 1 if parameters.trace else 1 + VALUES_A_CALL // (N + parts[0].size)
    points: list[tuple[float, int, float]] = []
    seconds = process_time() - begin
    while not state[CONVERGED] and state[PASSES] < max_iter:
        start = process_time()
        n_passes = min(passes_a_call, max_iter - int(state[PASSES]))
        run(*parts, records, D, U, weights, parameters.eps, n_passes, w, active, limits, state)
        if state[CONVERGED] and not is_optimal(X @ w, records, D, U, weights, parameters.eps):
            state[CONVERGED] = 0
            limits[LARGEST], limits[SMALLEST] = np.inf, -np.inf
        seconds += process_time() - start
        if parameters.trace:
            # `linear` returns the values of the linear model w: it is no kernel.
            value = problem.primal(linear(X, w, 0.0, y, weights=weights), C)
            points.append((seconds, int(state[PASSES]), value))
    alpha = records[:, ALPHA].copy()
    # The dual value needs no decision values: `y` takes their place.
    values = Values(f=y, square=float(w @ w), y=y, alpha=alpha, weights=weights)
    solution = LinearSolution(
        w=w[:-1] if bias else w,
        b=float(w[-1] * bias) if bias else 0.0,
        n_iter=int(state[PASSES]),
        stop_reason="converged" if state[CONVERGED] else "max_iter",
        counters={
            "passes": int(state[PASSES]),
            "visits": int(state[VISITS]),
            "updates": int(state[STEPS]),
        },
        trace=points,
        dual=problem.dual(values, C),
    )
    return solution, alpha


@dataclass(eq=False, repr=False, kw_only=True)
class _DualCoordinateDescent(Weighted, LinearClassifierWithC):
    """Dual coordinate descent for one of two losses.

    Parameters
    ----------
    tol : float
        Largest difference of two projected gradients at the end, LIBLINEAR's eps.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_samples,)
        Multipliers: the dual solution.
    n_iter_ : int
        Passes.
    counters_ : dict
        ``passes``, ``visits`` (gradients computed in passes) and ``updates`` (multipliers moved).
    """

    tol: float = 0.1
    max_iter: int = 1000
    random_state: Any = 0
    trace: bool = False
    class_weight: ClassWeight = None

    balances_weights = True
    warm_with = ({}, {"class_weight": "balanced"})

    _loss: ClassVar[LossProblem]

    def _fit_several(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one class against the rest, for each class, on inputs converted once."""
        native = self._convert(TrainingData(X=X, y=y)).native
        models = []
        for label in self.classes_:
            weights = self._weigh_against_rest(y, label, sample_weight)
            signs = np.where(y == label, 1.0, -1.0)
            data = TrainingData(X=X, y=signs, native=native, weights=weights)
            model = self._alone()
            model.classes_, model.n_features_in_ = np.array([-1, 1]), X.shape[1]
            models.append(model.train(data).finish_fit(data))
        self.objective_ = float(sum(model.objective_ for model in models))
        return self._join(models)

    def train(self, data: TrainingData) -> Self:
        """Descend until the projected gradients agree within `tol`."""
        parameters = DescentParameters(
            C=float(self.C),
            eps=float(self.tol),
            max_iter=self.max_iter,
            bias=self.bias,
            seed=1 + int(2**31 * generator(self.random_state).random()),
            trace=self.trace,
        )
        if data.weights is None:
            solution, self.alpha_ = coordinate_descent(data.native, data.y, self._loss, parameters)
            return self._store(solution)
        # A sample of weight 0 has no part in the problem.
        rows = np.flatnonzero(data.weights)
        parts = (data.native[rows], data.y[rows])
        solution, alpha = coordinate_descent(*parts, self._loss, parameters, data.weights[rows])
        self.alpha_ = np.zeros(len(data.y))
        self.alpha_[rows] = alpha
        return self._store(solution)


@declare(
    name="dcd-l1",
    problem="hinge",
    promise="violation",
    summary="dual coordinate descent with shrinking, hinge loss",
    reference="Hsieh et al. 2008, Algorithm 3",
)
class DCDL1(_DualCoordinateDescent):
    """Dual coordinate descent for the hinge loss: LIBLINEAR's -s 3 written anew.

    Examples
    --------
    >>> from svmbench.core.linear.dcd import DCDL1
    >>> DCDL1().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[4.0]])
    array([1])
    """

    _loss = HINGE


@declare(
    name="dcd-l2",
    problem="squared-hinge",
    promise="violation",
    summary="dual coordinate descent with shrinking, squared hinge loss",
    reference="Hsieh et al. 2008, Algorithm 3",
    suits="thousands of sparse features; up to about a thousand newton-l2 is faster "
    "(the race newton-l2 of perf_linear, to within 0.1 % of the optimum)",
)
class DCDL2(_DualCoordinateDescent):
    """Dual coordinate descent for the squared hinge loss: LIBLINEAR's -s 1 written anew."""

    _loss = SQUARED_HINGE
