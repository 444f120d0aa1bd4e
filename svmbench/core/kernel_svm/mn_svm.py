"""MN-SVM: the point of least norm in a convex hull, by moving weight between two samples.

Problem
    min_a  w^2 = a' Q a,   a >= 0,   e'a = 1,   Q_ij = y_i y_j (K_ij + 1) + delta_ij / C.
    alpha = a / w^2 solves the L2-SVM's dual 1/2 alpha' Q alpha - e'alpha over alpha >= 0, whose
    value is -1 / (2 w^2);   f(x) = sum_j alpha_j y_j (K(x_j, x) + 1).
Given
    a kernel matrix, y in {-1, +1}, C, eps.
Returned
    alpha, once no v is found with g_v < w^2 - eps sqrt(w^2 tau), g = Q a, tau = max_i Q_ii.
Reference
    Strack 2013 (dissertation) and his program gsvm, with which Melki and Kecman 2016 compare:
    - a violator v is the first of up to 600 draws, from both classes alike, that has
      g_v < w^2 - eps sqrt(w^2 tau); eps starts at 1/2 and is halved whenever a full search fails;
      when it fails at the smallest eps, that is the end;
    - weight (g_u - g_v) / (Q_uu + Q_vv - 2 Q_uv), but no more than there is, goes to v from the
      support vector u with the largest g (Mitchell, Demyanov, Malozemov);
    - after it come steps of the same kind between the two extreme support vectors.
Deviations
    - g is kept for all samples, not for the support vectors alone: a draw then costs no kernel
      value, and a step reads two rows, at most one of them new; where no sample is a violator, the
      search fails without a draw.
    - How many steps between extreme support vectors gsvm takes is not in its description: here one
      follows each violator, if the support vector with the smallest g is a violator too.
    - The last eps is `tol` itself, where halving would go below it.
    - w^2 is recomputed from a and g whenever a search fails.
    - The start is half a unit of weight on the first sample of each class, or given multipliers.
    - gsvm's stopping rule certifies nothing: eps sqrt(w^2 tau) is not small beside w^2
      where C or the inputs are large (classes 1 and 2 of iris, linear, C = 100: its dual value ends
      at 372, the optimum is 442). stop_reason_ says "no violator", never "converged". With `gap`,
      which gsvm lacks, eps is divided by GAP_STEP until the duality gap is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import require_positive
from svmbench.core.contract.registry import declare
from svmbench.core.csvc.problem import larger
from svmbench.core.kernel_svm.l2svm import (
    EXTREME_PIECE,
    MERCER,
    MIN_CURVATURE,
    L2Classifier,
    L2State,
    RowSlots,
)
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.random import below, generator

#: More than any inner product.
INFINITE_PRODUCT = 1e300

#: Draws of a full search.
SEARCH_DRAWS = 600

#: The first eps.
FIRST_EPS = 0.5

#: Divisor of eps while the duality gap is too large, and the eps at which that ends.
GAP_STEP, LEAST_EPS = 4.0, 1e-15

#: How the loop can end, and the stop reasons of the first three.
CONVERGED, MAX_ITER, STALLED, MISSING = range(4)
MN_STOP_REASONS = ("no violator", "max_iter", "stalled")

#: Entries of the integers that change: steps, draws, searches that failed, the state of the random
#: numbers, the next violator (-1: to be drawn) and whether it was drawn, the support vectors with
#: the largest and the smallest g.
STEPS, DRAWN, FAILED, SEED, NEXT, FRESH, HIGH, LOW = range(8)

#: Entries of the other numbers that change: w^2, the present eps, the smallest g of all samples.
SQUARE, EPS, LEAST = range(3)


@dataclass(frozen=True)
class DrawRules:
    """Parameters of the steps."""

    eps: float
    max_iter: int
    seed: int  # from 1 to 2^32 - 1: of the draws


class Hull(NamedTuple):
    """A problem and a point of the hull, which the steps move; arrays of shape (n,)."""

    y: np.ndarray  # labels ±1
    curvature: np.ndarray  # Q_ii
    members: np.ndarray  # int: the `n_first` samples of one class, then the other class
    n_first: int
    C: float
    a: np.ndarray  # weights
    g: np.ndarray  # Q a
    support_penalty: np.ndarray  # float32: 0 for support vectors, else -inf
    counts: np.ndarray  # int (8,): the integers that change
    numbers: np.ndarray  # (3,): the other numbers that change


@compiled
def draw_violator(hull: Hull, limit: float) -> int:
    """Return the first drawn sample with ``g < limit``, or -1 after a full search."""
    members, n_first, g, counts = hull.members, hull.n_first, hull.g, hull.counts
    for _ in range(SEARCH_DRAWS):
        counts[DRAWN] += 1
        if below(counts, SEED, 2) == 0:
            v = members[below(counts, SEED, n_first)]
        else:
            v = members[n_first + below(counts, SEED, len(members) - n_first)]
        if g[v] < limit:
            return v
    return -1


@compiled
def add_and_find_extremes(
    g: np.ndarray,
    y: np.ndarray,
    row_u: np.ndarray,  # (n,): kernel values of the sample that lost weight
    row_v: np.ndarray,  # (n,): kernel values of the sample that gained it
    fro: float,  # the weight that moved, times the label of u
    to: float,  # the same, times the label of v
    support_penalty: np.ndarray,
) -> tuple[int, int, float]:
    """Update g; return the support vectors of its largest and smallest value, and its minimum."""
    n, most = len(g), -np.inf
    high, high_piece, low, low_piece = -np.inf, 0, -np.inf, 0
    for start in range(0, n, EXTREME_PIECE):
        values, labels = g[start : start + EXTREME_PIECE], y[start : start + EXTREME_PIECE]
        first, second = row_u[start : start + EXTREME_PIECE], row_v[start : start + EXTREME_PIECE]
        penalty = support_penalty[start : start + EXTREME_PIECE]
        up, down, deepest = -np.inf, -np.inf, -np.inf
        for k in range(len(values)):
            change = to * (np.float64(second[k]) + 1.0) - fro * (np.float64(first[k]) + 1.0)
            w = values[k] + labels[k] * change
            values[k] = w
            up = larger(up, np.float64(penalty[k]) + w)
            down = larger(down, np.float64(penalty[k]) - w)
            deepest = larger(deepest, -w)
        most = max(most, deepest)
        if up > high:
            high, high_piece = up, start
        if down > low:
            low, low_piece = down, start
    i, j = high_piece, low_piece
    while i < n - 1 and np.float64(support_penalty[i]) + g[i] != high:
        i += 1
    while j < n - 1 and np.float64(support_penalty[j]) - g[j] != low:
        j += 1
    return i, j, -most


@compiled
def transfer_weight(hull: Hull, row_u: np.ndarray, row_v: np.ndarray, u: int, v: int) -> bool:
    """Move the best weight from u to v; return whether there was any to move."""
    y, curvature, C = hull.y, hull.curvature, hull.C
    a, g, support_penalty, numbers = hull.a, hull.g, hull.support_penalty, hull.numbers
    # t = (g_u - g_v) / (Q_uu + Q_vv - 2 Q_uv), at most a_u (Mitchell, Demyanov, Malozemov).
    between = y[u] * y[v] * (np.float64(row_u[v]) + 1.0)
    eta = max(curvature[u] + curvature[v] - 2.0 * between, MIN_CURVATURE)
    slope = g[u] - g[v]
    t = slope / eta
    if t >= a[u]:
        t = a[u]
        a[u] = 0.0
        support_penalty[u] = -np.inf
    else:
        a[u] -= t
    if t <= 0.0 or a[v] + t == a[v]:
        return False
    a[v] += t
    support_penalty[v] = 0.0
    # w^2 along the step: w^2 - 2 t (g_u - g_v) + t^2 eta.
    numbers[SQUARE] += t * (t * eta - 2.0 * slope)
    g[u] -= t / C
    g[v] += t / C
    high, low, least = add_and_find_extremes(
        g, y, row_u, row_v, t * y[u], t * y[v], support_penalty
    )
    hull.counts[HIGH], hull.counts[LOW], numbers[LEAST] = high, low, least
    hull.counts[STEPS] += 1
    return True


@compiled
def approach(rows: RowSlots, hull: Hull, eps: float, max_iter: int) -> int:
    """Take steps until the last search fails or a row is missing; return how it ended."""
    values, slots, last_use = rows.values, rows.slots, rows.last_use
    a, g, counts, numbers = hull.a, hull.g, hull.counts, hull.numbers
    widest = hull.curvature.max()
    while True:
        square = numbers[SQUARE]
        limit = square - numbers[EPS] * np.sqrt(square * widest)
        if counts[NEXT] < 0:
            # The search for a violator; where it fails, eps is halved.
            v = -1
            if numbers[LEAST] < limit:
                v = draw_violator(hull, limit)
            if v < 0:
                counts[FAILED] += 1
                numbers[SQUARE] = np.dot(a, g)
                if numbers[EPS] <= eps:
                    return CONVERGED
                numbers[EPS] = max(0.5 * numbers[EPS], eps)
                continue
            counts[NEXT], counts[FRESH] = v, 1
        if counts[STEPS] >= max_iter:
            return MAX_ITER
        u, v = counts[HIGH], counts[NEXT]
        if slots[u] < 0 or slots[v] < 0:
            return MISSING
        last_use[slots[u]] = last_use[slots[v]] = rows.clock + counts[STEPS]
        if not transfer_weight(hull, values[slots[u]], values[slots[v]], u, v):
            return STALLED
        square = numbers[SQUARE]
        limit = square - numbers[EPS] * np.sqrt(square * widest)
        # A step between support vectors follows one with a drawn violator.
        counts[NEXT] = counts[LOW] if counts[FRESH] and g[counts[LOW]] < limit else -1
        counts[FRESH] = 0


def hull_of(state: L2State, rules: DrawRules) -> Hull:
    """Return the hull's point at the present multipliers.

    Without multipliers, it has half a unit of weight on the first sample of each class.
    """
    y, C = state.y, state.C
    # The class of the first sample comes first, so that flipped labels draw the same samples.
    first, second = np.flatnonzero(y == y[0]), np.flatnonzero(y != y[0])
    if not state.beta.any():
        pair = np.array([first[0], second[0]])
        state.beta[pair] = 0.5 * y[pair]
        state.rebuild()
    a = y * state.beta
    total = a.sum()
    a /= total
    g = y * state.f / total + a / C
    support_penalty = np.where(a > 0.0, 0.0, -np.inf).astype(np.float32)
    counts = np.array(
        [0, 0, 0, rules.seed, -1, 0, np.argmax(support_penalty + g), np.argmax(support_penalty - g)]
    )
    numbers = np.array([a @ g, max(FIRST_EPS, rules.eps), g.min()])
    members = raw(np.concatenate([first, second]))
    curvature = raw(state.curvature)
    return Hull(raw(y), curvature, members, len(first), C, a, g, support_penalty, counts, numbers)


def approach_origin(state: L2State, rules: DrawRules) -> tuple[int, dict[str, int]]:
    """Solve from the present multipliers, in place; return how it ended, and the counters."""
    store, hull = state.store, hull_of(state, rules)
    g, counts = hull.g, hull.counts
    while True:
        end = int(approach(state.rows, hull, rules.eps, rules.max_iter))
        if end != MISSING:
            break
        store.clock += int(counts[STEPS])
        # Compute rows of other violators along: some of these will be drawn.
        is_stored = INFINITE_PRODUCT * (store.slots >= 0)
        farthest = np.argpartition(g + is_stored, store.batch - 1)[: store.batch]
        wanted = np.array([counts[HIGH], counts[NEXT]])
        others = farthest[(store.slots[farthest] < 0) & (g[farthest] < g[counts[NEXT]])]
        store.bring(np.unique(np.concatenate([wanted, others[: store.batch - 2]])))
    # The multipliers are the weights over w^2.
    square = hull.numbers[SQUARE]
    state.beta[:] = hull.y * hull.a / square
    state.f[:] = hull.y * (g - hull.a / hull.C) / square
    return end, {
        "updates": int(counts[STEPS]),
        "draws": int(counts[DRAWN]),
        "searches_failed": int(counts[FAILED]),
    }


def approach_to_gap(state: L2State, rules: DrawRules, gap: float) -> tuple[str, dict[str, int]]:
    """Solve until the relative duality gap is at most `gap`; return stop reason and counters.

    The reason is "stalled" where no eps that float64 can tell from 0 leads there.
    """
    end, counters = approach_origin(state, rules)
    while end != MAX_ITER and relative_gap(state) > gap:
        left = rules.max_iter - counters["updates"]
        if left < 1:
            return "max_iter", counters
        if end == STALLED or rules.eps < LEAST_EPS:
            return "stalled", counters
        # Other draws: the same ones would miss the same violators.
        rules = replace(rules, eps=rules.eps / GAP_STEP, seed=rules.seed % (2**32 - 1) + 1)
        end, more = approach_origin(state, replace(rules, max_iter=left))
        counters = {name: counters[name] + more[name] for name in counters}
    return "max_iter" if end == MAX_ITER else "converged", counters


def relative_gap(state: L2State) -> float:
    """Return the duality gap as a share of the primal value."""
    y, C, beta, f = state.y, state.C, state.beta, state.f
    square = float(beta @ f)
    primal = 0.5 * square + 0.5 * C * float(np.sum(np.maximum(0.0, 1.0 - y * f) ** 2))
    dual = float(np.abs(beta).sum()) - 0.5 * (square + float(beta @ beta) / C)
    return (primal - dual) / primal


@declare(
    name="mn-svm",
    problem="half-squared-hinge",
    promise="gap relative to the objective",
    promised_by="gap",
    summary="minimal norm point of the L2-SVM's hull, by steps on drawn violators",
    reference="Strack 2013 (gsvm), as in Melki and Kecman 2016",
    paper="nlsgd",
    kernels=MERCER,
    paths=("C",),
)
@dataclass(eq=False, repr=False, kw_only=True)
class MNSVM(L2Classifier):
    """L2-SVM with the offset absorbed, as the point of a convex hull that is nearest to the origin.

    Same problem as :class:`~svmbench.core.kernel_svm.nn_isda.NNISDA`; a random search decides which
    sample is next and when to stop.

    Parameters
    ----------
    tol : float
        The last eps: how far below w^2 an inner product with w may be, in units of
        ``sqrt(w^2 tau)``.
    gap : float or None
        Relative duality gap at which to stop, above 0; None leaves the end to gsvm's rule, by
        `tol` alone, which says nothing of the gap.

    Attributes
    ----------
    objective_, dual_objective_ : float
        Primal and dual value; the latter is 1 / (2 w^2).
    stop_reason_ : str
        ``"no violator"`` (the search found none at the last eps), ``"max_iter"``, ``"stalled"`` (no
        step is left that float64 can see); with `gap`, ``"converged"`` where it was reached.
    counters_ : dict
        ``updates`` (steps), ``draws``, ``searches_failed``, ``kernel_rows`` (computed; all, of a
        matrix that was there), ``kernel_evaluations``, ``support_vectors``,
        ``bounded_support_vectors`` (0).

    Examples
    --------
    >>> from svmbench.core.kernel_svm.mn_svm import MNSVM
    >>> MNSVM(gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    gap: float | None = None
    random_state: Any = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.gap is not None:
            require_positive("gap", self.gap)

    def _takes_single(self) -> bool:
        # A gap on rounded kernel values certifies nothing about the problem itself.
        return self.gap is None and super()._takes_single()

    def _minimise(self, state: L2State, tol: float) -> tuple[str, dict[str, int]]:
        before = state.store.n_computed if state.store.K is None else 0
        seed = 1 + int(generator(self.random_state).random() * 2**31)
        # `self.tol` even on rounded rows: a random search does not resolve a tenth of eps.
        rules = DrawRules(float(self.tol), int(self.max_iter), seed)
        if self.gap is None:
            end, counters = approach_origin(state, rules)
            reason = MN_STOP_REASONS[end]
        else:
            reason, counters = approach_to_gap(state, rules, float(self.gap))
        counters["kernel_rows"] = state.store.n_computed - before
        return reason, counters

    def _margin_tolerance(self, state: L2State) -> float:
        # g_v >= w^2 - eps sqrt(w^2 tau), divided by w^2 = 1 / sum_i alpha_i.
        tau = state.diag.max() + 1.0 + 1.0 / state.C
        return float(self.tol) * np.sqrt(tau * np.abs(state.beta).sum())
