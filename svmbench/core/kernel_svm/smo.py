"""Sequential minimal optimisation, as it was first printed, with a free threshold and with none.

Problem
    min_alpha  1/2 alpha' Q alpha - e'alpha,   0 <= alpha_i <= C,   y'alpha = 0,
    Q_ij = y_i y_j K(x_i, x_j);  f(x) = sum_j alpha_j y_j K(x_j, x) - b.
    Where the threshold b is held at zero there is no equality constraint, and the optimum differs:
    a step then moves one multiplier, and needs no partner.
Given
    X (n_samples, d), dense or CSR; y in {-1, +1}; C; kernel; tol.
Returned
    alpha and the offset -b, once no example is further than tol from its side of the margin.
State
    Besides multipliers and errors, there are lists of the non-bound examples and of the support
    vectors: the cost of a step grows with the lengths of the lists, not with N.
Reference
    Platt 1998 (MSR-TR-98-14), section 2 with its pseudo-code: first choice by full sweeps that
    alternate with sweeps over the non-bound examples; second choice from the error cache, the
    least error where the first example's is positive and the greatest where it is negative, then
    all non-bound and all examples from random starts; equations 13-21; equation 22 keeps one
    weight vector for the linear kernel; equation 23 is the step with the threshold at zero.
Deviations
    - A tolerance below the report's 1e-3 is reached in stages, each a tenth of the one before:
      without them, many sweeps polish the non-bound examples far from the optimum.
    - The least relative step `eps`, for which the report has no number, is 1e-9. (At 1e-3, the
      report's tolerance, many searches find no good partner after trying every example.) If a full
      sweep changes nothing and the gap is still above 2 tol, eps is divided by 10, and the sweeps
      go on; the report leaves such examples.
    - The error cache is recomputed at each full sweep: increments carry their rounding errors.
    - With the linear kernel the cached errors come from the weight vector after each step: one
      product for each non-bound example, where increments would take two kernel values.
    - The final threshold is the middle of the interval that the examples allow if the last pair's
      threshold is outside (Keerthi et al. 2001 describe how that happens), or if no example is
      non-bound: then a whole interval is optimal.
    - A multiplier within 1e-12 C of a bound is put on it.
    - A random start goes through the non-bound examples in the order of their list.
    - Equation 23 prints alpha + y E / K; with E = f - y as everywhere else in the report it must
      be alpha - y E / K, clipped to [0, C]. Where K(x, x) <= 0, the multiplier goes to the bound
      that the slope points to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from svmbench.base.compiled import compiled, inlined
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.storage import (
    LINEAR,
    Storage,
    add_sample,
    clear_sample,
    kernel_values,
    of_product,
    product,
    require_storage,
    sparse_product,
    store,
    with_matrix,
)
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution
from svmbench.core.numeric.random import xorshift

#: The two lists: 0 < alpha < C, and alpha > 0.
FREE, SUPPORT = 0, 1

#: Share of C within which a multiplier is put on its bound.
BOUND_MARGIN = 1e-12

#: The work of a search: kernel values computed, steps, and sweeps.
COUNTERS = np.dtype([("evaluations", np.int64), ("steps", np.int64), ("sweeps", np.int64)])

#: The numbers that change during a search.
SEARCH = np.dtype(
    [
        ("b", np.float64),  # the threshold
        ("eps", np.float64),  # the least relative step
        ("seed", np.int64),  # of the random starts
        # of the present sweep: whether it tests all examples, its changes so far, the next example
        ("examine_all", np.bool_),
        ("n_changed", np.int64),
        ("next", np.int64),
        # of one call of compiled code: candidates of second choices in vain, and the most work
        ("n_tried", np.int64),
        ("max_work", np.int64),
    ],
    align=True,
)

#: Work of one call of compiled code, well within a second: only between calls can it be
#: interrupted. A kernel value of samples with d entries counts as 16 + d, one that is read as 16.
WORK_A_CALL = 1 << 25

#: The report's tolerance.
FIRST_TOL = 1e-3

#: The least relative step, eps: at first, and at the end.
FIRST_EPS, LEAST_EPS = 1e-9, 1e-14


class Examples(NamedTuple):
    """The changing arrays of one problem of n examples with d features."""

    y: np.ndarray  # (n,): labels ±1
    alpha: np.ndarray  # (n,): multipliers
    errors: np.ndarray  # (n,): f(x_i) - y_i where it is cached
    w: np.ndarray  # (d,): the weight vector, with the linear kernel
    members: np.ndarray  # int (2, n): the lists `FREE` and `SUPPORT`, in no order
    place: np.ndarray  # int (2, n): an example's position in each list; -1 if it is not there
    sizes: np.ndarray  # int (2,): lengths of the lists
    counters: np.ndarray  # `COUNTERS` (1,): the work so far
    second: np.ndarray  # (d,): the dense second example during the second choice; else zeros
    work: np.ndarray  # (d,): scratch, zeros between calls
    values: np.ndarray  # (n,): scratch


def at_zero(y: np.ndarray, n_features: int) -> Examples:
    """Return the state of alpha = 0, where f = 0 and every error is -y."""
    n = len(y)
    return Examples(
        y=np.array(y, dtype=np.float64),
        alpha=np.zeros(n),
        errors=-y,
        w=np.zeros(n_features),
        members=np.zeros((2, n), dtype=np.int64),
        place=np.full((2, n), -1, dtype=np.int64),
        sizes=np.zeros(2, dtype=np.int64),
        counters=np.zeros(1, dtype=COUNTERS),
        second=np.zeros(n_features),
        work=np.zeros(n_features),
        values=np.empty(n),
    )


@compiled
def enlist(v: Examples, which: int, i: int, belongs: bool) -> None:
    """Put example i on a list if it `belongs` there, or take it off."""
    p = v.place[which, i]
    if belongs and p < 0:
        size = v.sizes[which]
        v.members[which, size] = i
        v.place[which, i] = size
        v.sizes[which] = size + 1
    elif p >= 0 and not belongs:
        size = v.sizes[which] - 1
        last = v.members[which, size]
        v.members[which, p] = last
        v.place[which, last] = p
        v.place[which, i] = -1
        v.sizes[which] = size


@compiled
def set_multiplier(v: Examples, i: int, value: float, C: float) -> None:
    """Give example i its new multiplier, and update the lists."""
    v.alpha[i] = value
    enlist(v, FREE, i, 0.0 < value < C)
    enlist(v, SUPPORT, i, value > 0.0)


@compiled
def to_bound(value: float, C: float) -> float:
    """Return `value`, or the bound that it equals but for rounding."""
    if value < BOUND_MARGIN * C:
        return 0.0
    if value > C - BOUND_MARGIN * C:
        return C
    return value


@compiled
def summed_output(s: Storage, v: Examples, i: int) -> float:
    """Return sum_j alpha_j y_j K(x_j, x_i) over the support vectors."""
    support, n_support = v.members[SUPPORT], v.sizes[SUPPORT]
    kernel_values(s, i, support, n_support, v.work, v.values, v.counters)
    total = 0.0
    for m in range(n_support):
        j = support[m]
        total += v.alpha[j] * v.y[j] * v.values[m]
    return total


@inlined
def output(s: Storage, v: Examples, i: int) -> float:
    """Return sum_j alpha_j y_j K(x_j, x_i), from the weight vector if the kernel is linear."""
    if s.kind == LINEAR:
        v.counters[0]["evaluations"] += 1
        total = product(s, v.w, i)
    else:
        total = summed_output(s, v, i)
    return total


@compiled
def best_second(
    a2: float,  # the present value, returned if no other is better
    slope: float,  # y2 (E1 - E2): the descent along the line
    eta: float,  # the curvature along the line
    L: float,  # the ends of the line
    H: float,
    C: float,
    eps: float,
) -> float:
    """Return the second multiplier that minimises along the pair's line: equations 16-17, 19."""
    if eta > 0.0:
        best = min(max(a2 + slope / eta, L), H)
    else:
        # Without curvature the best is at an end: the objective there, less its present value.
        at_L = (L - a2) * (0.5 * eta * (L - a2) - slope)
        at_H = (H - a2) * (0.5 * eta * (H - a2) - slope)
        if at_L < at_H - eps:
            best = L
        elif at_H < at_L - eps:
            best = H
        else:
            return a2
    return to_bound(best, C)


@compiled
def update_errors(
    s: Storage,
    v: Examples,
    i1: int,
    t1: float,  # change of y alpha
    i2: int,
    t2: float,
    fall: float,  # the old threshold less the new one
    b: float,  # the new threshold
) -> None:
    """Bring the cached errors of all non-bound examples up to date after a step."""
    free, n_free = v.members[FREE], v.sizes[FREE]
    if s.kind == LINEAR:
        errors, y, w = v.errors, v.y, v.w
        data, indices, indptr = s.data, s.indices, s.indptr
        for m in range(n_free):
            k = free[m]
            if len(indptr):
                u = sparse_product(data, indices, indptr[k], indptr[k + 1], w)
            else:
                u = product(s, w, k)
            errors[k] = u - b - y[k]
        v.counters[0]["evaluations"] += n_free
        return
    kernel_values(s, i1, free, n_free, v.work, v.values, v.counters)
    for m in range(n_free):
        v.errors[free[m]] += t1 * v.values[m] + fall
    kernel_values(s, i2, free, n_free, v.work, v.values, v.counters)
    for m in range(n_free):
        v.errors[free[m]] += t2 * v.values[m]


@compiled
def take_step(
    s: Storage,
    v: Examples,
    i1: int,
    i2: int,
    E2: float,
    k11: float,
    k12: float,
    k22: float,
    new2: float,
    C: float,
    search: np.record,
) -> None:
    """Give the pair (i1, i2) its new multipliers, and update the threshold and the errors."""
    a1, a2, y1, y2 = v.alpha[i1], v.alpha[i2], v.y[i1], v.y[i2]
    # Equation 18.
    new1 = to_bound(a1 + y1 * y2 * (a2 - new2), C)
    t1, t2 = y1 * (new1 - a1), y2 * (new2 - a2)
    b = search.b
    # Equations 20 and 21: the threshold of a non-bound example, or halfway between both.
    b1 = v.errors[i1] + t1 * k11 + t2 * k12 + b
    b2 = E2 + t1 * k12 + t2 * k22 + b
    if 0.0 < new1 < C:
        new_b = b1
    elif 0.0 < new2 < C:
        new_b = b2
    else:
        new_b = 0.5 * (b1 + b2)
    search.b = new_b
    set_multiplier(v, i1, new1, C)
    set_multiplier(v, i2, new2, C)
    if s.kind == LINEAR:
        add_sample(s, v.w, i1, t1)
        add_sample(s, v.w, i2, t2)
    update_errors(s, v, i1, t1, i2, t2, b - new_b, new_b)
    # An example that has just left its bound had no cached error; both errors are known here.
    v.errors[i1] = b1 - new_b
    v.errors[i2] = b2 - new_b
    v.counters[0]["steps"] += 1


@compiled
def partner(v: Examples, E2: float) -> int:
    """Return the non-bound example whose error is farthest on E2's other side; -1 without any."""
    # Section 2.2: the least error if E2 is positive, the greatest if it is negative.
    i1, sign = -1, 1.0 if E2 > 0.0 else -1.0
    least = np.inf
    for m in range(v.sizes[FREE]):
        k = v.members[FREE, m]
        if sign * v.errors[k] < least:
            i1, least = k, sign * v.errors[k]
    return i1


@compiled
def step_with_a_partner(
    s: Storage, v: Examples, i2: int, E2: float, C: float, search: np.record
) -> bool:
    """Try partners of example i2, which `v.second` holds, until a step changes something."""
    N, n_free = len(v.alpha), v.sizes[FREE]
    best, eps, b = partner(v, E2), search.eps, search.b
    # Taken out of the tuples once: each access inside the loop would count two references.
    y, alpha, errors, diagonal = v.y, v.alpha, v.errors, s.diagonal
    members, place = v.members[FREE], v.place[FREE]
    data, indices, indptr, w, second = s.data, s.indices, s.indptr, v.w, v.second
    linear, sparse, stored = s.kind == LINEAR, len(indptr) > 0, len(s.K) > 0
    a2, y2, k22 = alpha[i2], y[i2], diagonal[i2]
    n_values = 0
    # Section 2.2's hierarchy: the best partner by its error, all non-bound examples, all others.
    for hierarchy in range(3):
        n_candidates = (1 if best >= 0 else 0, n_free, N)[hierarchy]
        start = 0
        if hierarchy > 0 and n_candidates > 0:
            seed = xorshift(search.seed)
            search.seed, start = seed, (seed * n_candidates) >> 32
        for m in range(n_candidates):
            i1 = (start + m) % n_candidates
            if hierarchy == 0:
                i1 = best
            elif hierarchy == 1:
                i1 = members[i1]
            elif place[i1] >= 0:
                continue
            # Equations 13 and 14: the ends of the line.
            sign, a1 = y[i1] * y2, alpha[i1]
            L = max(0.0, a2 - a1) if sign < 0.0 else max(0.0, a1 + a2 - C)
            H = min(C, C + a2 - a1) if sign < 0.0 else min(C, a1 + a2)
            if i1 == i2 or L >= H:
                continue
            if linear and sparse:
                start1, end1 = indptr[i1], indptr[i1 + 1]
                if hierarchy == 2:
                    errors[i1] = sparse_product(data, indices, start1, end1, w) - b - y[i1]
                k12 = sparse_product(data, indices, start1, end1, second)
                n_values += 2 if hierarchy == 2 else 1
            else:
                if hierarchy == 2:
                    errors[i1] = output(s, v, i1) - b - y[i1]
                if stored:
                    k12 = s.K[i1, i2]
                else:
                    k12 = of_product(s, product(s, second, i1), i1, i2)
                    n_values += 1
            k11 = diagonal[i1]
            slope = y2 * (errors[i1] - E2)
            new2 = best_second(a2, slope, k11 + k22 - 2.0 * k12, L, H, C, eps)
            if abs(new2 - a2) >= eps * (new2 + a2 + eps):
                v.counters[0]["evaluations"] += n_values
                take_step(s, v, i1, i2, E2, k11, k12, k22, new2, C, search)
                return True
    v.counters[0]["evaluations"] += n_values
    search.n_tried += N
    return False


@compiled
def examine_example(
    s: Storage, v: Examples, i2: int, C: float, tol: float, search: np.record, refresh: bool
) -> bool:
    """Look for a partner of example i2 if it violates the conditions; return whether it moved."""
    a2 = v.alpha[i2]
    if refresh or v.place[FREE, i2] < 0:
        v.errors[i2] = output(s, v, i2) - search.b - v.y[i2]
    E2 = v.errors[i2]
    r2 = E2 * v.y[i2]
    if not ((r2 < -tol and a2 < C) or (r2 > tol and a2 > 0.0)):
        return False
    add_sample(s, v.second, i2, 1.0)
    moved = step_with_a_partner(s, v, i2, E2, C, search)
    clear_sample(s, v.second, i2)
    return moved


@compiled
def threshold_limits(v: Examples, C: float, b: float) -> tuple[float, float]:
    """Return the limits of the thresholds that the examples allow, from the errors at `b`."""
    # y f(x) >= 1 must hold where alpha < C, and y f(x) <= 1 where alpha > 0.
    lower, upper = -np.inf, np.inf
    for i in range(len(v.alpha)):
        u = v.errors[i] + b
        if (v.y[i] > 0.0 and v.alpha[i] < C) or (v.y[i] < 0.0 and v.alpha[i] > 0.0):
            upper = min(upper, u)
        if (v.y[i] > 0.0 and v.alpha[i] > 0.0) or (v.y[i] < 0.0 and v.alpha[i] < C):
            lower = max(lower, u)
    return lower, upper


@compiled
def minimise_along(s: Storage, v: Examples, i: int, C: float, tol: float, refresh: bool) -> bool:
    """Minimise over the multiplier of example i if it violates; return whether it has moved."""
    # With the linear kernel an error is one inner product, so none is cached.
    if refresh or s.kind == LINEAR or v.place[FREE, i] < 0:
        v.errors[i] = output(s, v, i) - v.y[i]
    slope, a = v.errors[i] * v.y[i], v.alpha[i]
    if not ((slope < -tol and a < C) or (slope > tol and a > 0.0)):
        return False
    # Equation 23: alpha - y E / K, clipped to [0, C].
    k = s.diagonal[i]
    bound = 0.0 if slope > 0.0 else C
    new = to_bound(min(max(a - slope / k, 0.0), C), C) if k > 0.0 else bound
    if new == a:
        return False
    t = v.y[i] * (new - a)
    set_multiplier(v, i, new, C)
    if s.kind == LINEAR:
        add_sample(s, v.w, i, t)
    else:
        free, n_free = v.members[FREE], v.sizes[FREE]
        kernel_values(s, i, free, n_free, v.work, v.values, v.counters)
        for m in range(n_free):
            # The list has example i if it has just left its bound: its error is known.
            v.errors[free[m]] += t * v.values[m]
    v.counters[0]["steps"] += 1
    return True


@compiled
def some_sweeps(
    s: Storage, v: Examples, C: float, tol: float, max_iter: int, search: np.record, alone: bool
) -> bool:
    """Sweep over examples, `alone` or in pairs; return False if the call ends before the sweeps.

    They end once a sweep over all examples changes nothing, or after `max_iter` of them.
    """
    # Taken out of the tuples once: each access inside the loop would count two references.
    N, stored, free, sizes, counters = (
        len(v.alpha),
        len(s.K) > 0,
        v.place[FREE],
        v.sizes,
        v.counters,
    )
    most = counters[0]["evaluations"] + search.max_work
    examine_all, changed, first = search.examine_all, search.n_changed, search.next
    work, search.n_tried = 0, 0
    while (first > 0 or changed > 0 or examine_all) and counters[0]["sweeps"] < max_iter:
        changed = changed if first > 0 else 0
        for i in range(first, N):
            if examine_all or free[i] >= 0:
                if alone:
                    moved = minimise_along(s, v, i, C, tol, examine_all)
                else:
                    moved = examine_example(s, v, i, C, tol, search, examine_all)
                changed += moved
                work += 1 + (sizes[SUPPORT] if stored and (examine_all or moved) else 0)
                if counters[0]["evaluations"] + work + search.n_tried > most:
                    search.examine_all, search.n_changed, search.next = examine_all, changed, i + 1
                    return False
        first = 0
        counters[0]["sweeps"] += 1
        examine_all = not examine_all and changed == 0
    search.examine_all, search.n_changed, search.next = examine_all, changed, 0
    return True


@compiled
def refresh_errors(s: Storage, v: Examples, start: int, end: int, b: float) -> None:
    """Compute the errors of a range of examples anew."""
    for i in range(start, end):
        v.errors[i] = output(s, v, i) - b - v.y[i]


def first_search(s: Storage) -> np.record:
    """Return the numbers of a search at its start, a record of `SEARCH`."""
    N = len(s.diagonal)
    d = 0 if len(s.K) else s.data.size // max(N, 1) if len(s.indptr) else s.X.shape[1]
    search: np.record = np.zeros(1, dtype=SEARCH).view(np.recarray)[0]
    search.seed, search.eps, search.max_work = 1, FIRST_EPS, WORK_A_CALL // (16 + d)
    return search


def sweep(
    s: Storage, v: Examples, C: float, tol: float, max_iter: int, search: np.record, alone: bool
) -> None:
    """Sweep over examples, `alone` or in pairs, until all keep the conditions.

    All errors are up to date on return.
    """
    N = len(v.alpha)
    search.examine_all, search.n_changed, search.next = N > 0, 0, 0
    while not some_sweeps(s, v, C, tol, max_iter, search, alone):
        pass
    if search.n_changed > 0 or search.examine_all:
        # Otherwise a full sweep has just computed every error, and nothing has moved since.
        step = 1 + search.max_work // N
        for start in range(0, N, step):
            refresh_errors(s, v, start, min(start + step, N), search.b)


def sweep_pairs(
    s: Storage, v: Examples, C: float, tol: float, max_iter: int, search: np.record
) -> tuple[float, float]:
    """Sweep until all examples keep the conditions; return the limits of the thresholds.

    The lower limit minus the upper one is the gap.
    """
    while True:
        sweep(s, v, C, tol, max_iter, search, False)
        lower, upper = threshold_limits(v, C, search.b)
        if (
            lower - upper <= 2.0 * tol
            or v.counters[0]["sweeps"] >= max_iter
            or search.eps < LEAST_EPS
        ):
            return lower, upper
        search.eps *= 0.1
        # The next first sweep tests every example against a threshold that is in the middle.
        middle = 0.5 * (lower + upper)
        v.errors[:] += search.b - middle
        search.b = middle


def solution(v: Examples, b: float, stop_reason: str) -> KernelSolution:
    """Return the solution, with the offset `b` of f = sum + b."""
    return KernelSolution(
        coefficients=v.alpha * v.y,
        b=b,
        n_iter=int(v.counters[0]["sweeps"]),
        stop_reason=stop_reason,
        counters={
            "kernel_evaluations": int(v.counters[0]["evaluations"]),
            "updates": int(v.counters[0]["steps"]),
            "sweeps": int(v.counters[0]["sweeps"]),
        },
    )


@dataclass(eq=False, repr=False, kw_only=True)
class PlattClassifier(ClassifierWithC):
    """A solver that works on the inputs themselves, example by example.

    Subclasses define `optimise`.

    Parameters
    ----------
    tol : float
        Largest distance of an example from its side of the margin, in units of f. The gap m - M at
        the end is at most twice that (LIBSVM's eps bounds the gap).
    cache_mb : float
        Memory for kernel values, MiB: if it holds the whole matrix, that is computed once.
    storage : {"sparse", "dense"}
        How inputs are kept, whatever they came as; the report measures both.

    Attributes
    ----------
    n_iter_ : int
        Sweeps over all or over the non-bound examples.
    counters_ : dict
        ``kernel_evaluations`` (inner products, with the linear kernel), ``updates`` (steps),
        ``sweeps``, ``support_vectors``, ``bounded_support_vectors``.
    """

    tol: float = 1e-3
    max_iter: int = 100_000
    cache_mb: float = 0.0
    storage: str = "sparse"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_storage(self.storage)

    def _convert(self, data: TrainingData) -> TrainingData:
        """Settle gamma, and bring the inputs into the chosen storage."""
        data = super()._convert(data)
        data.native = store(data.native, self.function, self.storage)
        return data

    def train(self, data: TrainingData) -> Self:
        """Sweep until no example violates the optimality conditions by more than `tol`."""
        s = with_matrix(data.native, data.X, self.function, float(self.cache_mb))
        v = at_zero(data.y, s.X.shape[1])
        v.counters[0]["evaluations"] = s.K.size
        return self._store(self.optimise(s, v), data)

    def optimise(self, s: Storage, v: Examples) -> KernelSolution:
        """Solve from `v`, which is at alpha = 0, with the estimator's own parameters."""
        raise AssertionError("a subclass defines optimise")


@declare(
    name="smo",
    problem="hinge",
    promise="violation",
    summary="sequential minimal optimisation as first printed, with its error cache",
    reference="Platt 1998, section 2 and equations 13-22",
    paper="smo",
    kernels=KERNELS,
)
class SMO(PlattClassifier):
    """Platt's SMO: one pair of multipliers at a time, chosen by his two heuristics.

    By default it caches no kernel values, so that its memory is linear in the number of samples.
    With the linear kernel it works on one weight vector.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.smo import SMO
    >>> SMO(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).intercept_
    array([-2.])
    """

    def optimise(self, s: Storage, v: Examples) -> KernelSolution:
        """Sweep over pairs; the threshold is free."""
        C, tol = float(self.C), float(self.tol)
        stage = max(tol, FIRST_TOL)
        search = first_search(s)
        lower, upper = sweep_pairs(s, v, C, stage, self.max_iter, search)
        while stage > tol and v.counters[0]["sweeps"] < self.max_iter:
            stage = max(tol, 0.1 * stage)
            lower, upper = sweep_pairs(s, v, C, stage, self.max_iter, search)
        b = float(search.b)
        if v.sizes[FREE] == 0 or not lower - tol <= b <= upper + tol:
            b = 0.5 * (lower + upper)
        reason = "max_iter" if v.counters[0]["sweeps"] >= self.max_iter else "stalled"
        return solution(v, -b, "converged" if lower - upper <= 2.0 * tol else reason)


@declare(
    name="smo-fixed-threshold",
    problem="hinge-no-offset",
    promise="violation",
    summary="Platt's SMO without a threshold: one multiplier at a time",
    reference="Platt 1998, equation 23",
    paper="smo",
    kernels=KERNELS,
)
class FixedThresholdSMO(PlattClassifier):
    """Platt's SMO for a threshold that is fixed at zero.

    It solves another problem than :class:`SMO`, the one without an offset, by coordinate descent: a
    step needs no partner, and so no second choice.

    Parameters
    ----------
    tol : float
        Largest distance of an example from its side of the margin, in units of f.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        Zero.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.smo import FixedThresholdSMO
    >>> FixedThresholdSMO(kernel="linear").fit([[-2.0], [2.0], [4.0]], [0, 1, 1]).dual_coef_
    array([[-0.25]])
    """

    treats_offset: ClassVar[str] = "none"

    def optimise(self, s: Storage, v: Examples) -> KernelSolution:
        """Sweep over single examples."""
        C, tol = float(self.C), float(self.tol)
        sweep(s, v, C, tol, self.max_iter, first_search(s), True)
        slope = v.errors * v.y
        worst = max(
            np.max(-slope, where=v.alpha < C, initial=0.0),
            np.max(slope, where=v.alpha > 0.0, initial=0.0),
        )
        reason = "max_iter" if v.counters[0]["sweeps"] >= self.max_iter else "stalled"
        return solution(v, 0.0, "converged" if worst <= tol else reason)
