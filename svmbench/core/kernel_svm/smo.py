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
    alternate with sweeps over the non-bound examples; second choice from the error cache, the
    least error where the first example's is positive and the greatest where it is negative, then
    all non-bound and all examples from random starts; equations 13-21; equation 22 keeps one
    weight vector for the linear kernel.
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
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.smo_common import (
    FREE,
    Examples,
    PlattClassifier,
    output,
    set_multiplier,
    solution,
    to_bound,
)
from svmbench.core.kernels.storage import (
    LINEAR,
    Storage,
    add_sample,
    clear_sample,
    kernel_values,
    of_product,
    product,
    sparse_product,
)
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.numeric.random import below

#: Entries of the array of changing numbers.
B, SEED, EPS = 0, 1, 2

#: The report's tolerance.
FIRST_TOL = 1e-3

#: The least relative step, eps: at first, and at the end.
FIRST_EPS, LEAST_EPS = 1e-9, 1e-14


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
    state: np.ndarray,
) -> None:
    """Give the pair (i1, i2) its new multipliers, and update the threshold and the errors."""
    a1, a2, y1, y2 = v.alpha[i1], v.alpha[i2], v.y[i1], v.y[i2]
    # Equation 18.
    new1 = to_bound(a1 + y1 * y2 * (a2 - new2), C)
    t1, t2 = y1 * (new1 - a1), y2 * (new2 - a2)
    b = state[B]
    # Equations 20 and 21: the threshold of a non-bound example, or halfway between both.
    b1 = v.errors[i1] + t1 * k11 + t2 * k12 + b
    b2 = E2 + t1 * k12 + t2 * k22 + b
    if 0.0 < new1 < C:
        new_b = b1
    elif 0.0 < new2 < C:
        new_b = b2
    else:
        new_b = 0.5 * (b1 + b2)
    state[B] = new_b
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
    s: Storage, v: Examples, i2: int, E2: float, C: float, state: np.ndarray
) -> bool:
    """Try partners of example i2, which `v.second` holds, until a step changes something."""
    N, n_free = len(v.alpha), v.sizes[FREE]
    best, eps, b = partner(v, E2), state[EPS], state[B]
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
        start = below(state, SEED, n_candidates) if hierarchy > 0 and n_candidates > 0 else 0
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
                take_step(s, v, i1, i2, E2, k11, k12, k22, new2, C, state)
                return True
    v.counters[0]["evaluations"] += n_values
    return False


@compiled
def examine_example(
    s: Storage, v: Examples, i2: int, C: float, tol: float, state: np.ndarray, refresh: bool
) -> bool:
    """Look for a partner of example i2 if it violates the conditions; return whether it moved."""
    a2 = v.alpha[i2]
    if refresh or v.place[FREE, i2] < 0:
        v.errors[i2] = output(s, v, i2) - state[B] - v.y[i2]
    E2 = v.errors[i2]
    r2 = E2 * v.y[i2]
    if not ((r2 < -tol and a2 < C) or (r2 > tol and a2 > 0.0)):
        return False
    add_sample(s, v.second, i2, 1.0)
    moved = step_with_a_partner(s, v, i2, E2, C, state)
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
def sweep_pairs(
    s: Storage, v: Examples, C: float, tol: float, max_iter: int, state: np.ndarray
) -> tuple[float, float]:
    """Sweep until all examples keep the conditions; return the limits of the thresholds.

    The lower limit minus the upper one is the gap.
    """
    N = len(v.alpha)
    while True:
        # The literal True would have Numba compile everything below for it, and again for a bool.
        examine_all, changed = N > 0, 0
        while (changed > 0 or examine_all) and v.counters[0]["sweeps"] < max_iter:
            changed = 0
            for i in range(N):
                if examine_all or v.place[FREE, i] >= 0:
                    changed += examine_example(s, v, i, C, tol, state, examine_all)
            v.counters[0]["sweeps"] += 1
            if examine_all:
                examine_all = False
            elif changed == 0:
                examine_all = True
        if changed > 0 or v.counters[0]["sweeps"] >= max_iter:
            # Otherwise a full sweep has just computed every error, and nothing has moved since.
            for i in range(N):
                v.errors[i] = output(s, v, i) - state[B] - v.y[i]
        lower, upper = threshold_limits(v, C, state[B])
        if (
            lower - upper <= 2.0 * tol
            or v.counters[0]["sweeps"] >= max_iter
            or state[EPS] < LEAST_EPS
        ):
            return lower, upper
        state[EPS] *= 0.1
        # The next first sweep tests every example against a threshold that is in the middle.
        middle = 0.5 * (lower + upper)
        for m in range(N):
            v.errors[m] += state[B] - middle
        state[B] = middle


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
        state = np.array([0.0, 1.0, FIRST_EPS])
        lower, upper = sweep_pairs(s, v, C, stage, self.max_iter, state)
        while stage > tol and v.counters[0]["sweeps"] < self.max_iter:
            stage = max(tol, 0.1 * stage)
            lower, upper = sweep_pairs(s, v, C, stage, self.max_iter, state)
        b = float(state[B])
        if v.sizes[FREE] == 0 or not lower - tol <= b <= upper + tol:
            b = 0.5 * (lower + upper)
        reason = "max_iter" if v.counters[0]["sweeps"] >= self.max_iter else "stalled"
        return solution(v, -b, "converged" if lower - upper <= 2.0 * tol else reason)
