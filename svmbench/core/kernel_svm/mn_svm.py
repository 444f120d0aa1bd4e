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
    - All of g is kept, not that of the support vectors alone: a draw then costs no kernel value,
      and a step two rows of which one is new at most; where no sample is a violator, the search
      fails without a draw.
    - How many steps between extreme support vectors gsvm takes is not in its description: here one
      follows each violator, where it promises as much as a violator must.
    - The last eps is the one that was asked for, where halving would jump over it.
    - w^2 is recomputed from a and g whenever a search fails.
    - The start is half a unit of weight on the first sample of each class, or what was handed in.
    - The rule that ends it is gsvm's, and no certificate: eps sqrt(w^2 tau) is not small beside w^2
      where C or the inputs are large (classes 1 and 2 of iris, linear, C = 100: its dual value ends
      at 372, the optimum is 442). stop_reason_ says "no violator", never "converged". With `gap`,
      which gsvm lacks, eps is divided by GAP_STEP until the duality gap is small enough.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from svmbench.core.contract.base import require_positive
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.l2svm import MERCER, TINY, L2Classifier, outputs
from svmbench.core.kernel_svm.mn_svm_loop import (
    DRAWN,
    FAILED,
    HIGH,
    MAX_ITER,
    MISSING,
    NEXT,
    SQUARE,
    STALLED,
    STEPS,
    approach,
)
from svmbench.core.kernels.source_row_cache import SourceRowCache
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.random import generator

#: More than any inner product.
BIG = 1e300

#: The first eps.
FIRST_EPS = 0.5

#: What the ends of the loop are called.
REASONS = ("no violator", "max_iter", "stalled")

#: By what eps is divided while the duality gap is too large, and where that ends.
GAP_STEP, LEAST_EPS = 4.0, 1e-15


@dataclass(frozen=True)
class Rules:
    """Parameters of the steps."""

    C: float
    eps: float
    max_iter: int
    seed: int  # from 1 to 2^32 - 1: of the draws


@dataclass
class Descent:
    """State of a run, which the compiled loop changes in place."""

    a: np.ndarray
    g: np.ndarray
    idle: np.ndarray
    state: np.ndarray
    numbers: np.ndarray
    members: np.ndarray
    n_first: int

    @classmethod
    def start(
        cls, store: SourceRowCache, y: np.ndarray, rules: Rules, beta: np.ndarray, f: np.ndarray
    ) -> Descent:
        """Start from signed multipliers `beta` and their outputs `f`, or from a pair of samples."""
        # By their first samples, so that flipped labels draw the same ones.
        first, second = np.flatnonzero(y == y[0]), np.flatnonzero(y != y[0])
        if not beta.any():
            pair = np.array([first[0], second[0]])
            beta[pair] = 0.5 * y[pair]
            f[:] = outputs(store, beta)
        a = y * beta
        total = a.sum()
        a /= total
        g = y * f / total + a / rules.C
        idle = np.where(a > 0.0, 0.0, -np.inf).astype(np.float32)
        high, low = np.argmax(idle + g), np.argmax(idle - g)
        state = np.array([0, 0, 0, rules.seed, -1, 0, high, low])
        numbers = np.array([a @ g, max(FIRST_EPS, rules.eps), g.min()])
        return cls(a, g, idle, state, numbers, raw(np.concatenate([first, second])), len(first))


def minimise(
    store: SourceRowCache,
    diag: np.ndarray,  # (n,): of the kernel matrix
    y: np.ndarray,  # (n,): labels ±1
    rules: Rules,
    # beta, f (n,): signed multipliers ``y alpha``, and ``(K + 1) beta``
    beta: np.ndarray,
    f: np.ndarray,
) -> tuple[int, dict[str, int]]:  # end (position in `REASONS`), counters
    """Solve from `beta`, whose outputs are `f`, changing both in place."""
    run = Descent.start(store, y, rules, beta, f)
    a, g, state, C = run.a, run.g, run.state, rules.C
    curvature = raw(np.maximum(diag + (1.0 + 1.0 / C), TINY))
    while True:
        end = approach(
            store.values,
            store.slots,
            store.last_use,
            store.clock,
            curvature,
            raw(y),
            run.members,
            run.n_first,
            C,
            rules.eps,
            rules.max_iter,
            a,
            g,
            run.idle,
            state,
            run.numbers,
        )
        if end != MISSING:
            break
        store.clock += int(state[STEPS])
        # With what is missing come the rows of other violators: some of them will be drawn.
        farthest = np.argpartition(g + BIG * (store.slots >= 0), store.batch - 1)[: store.batch]
        wanted = np.array([state[HIGH], state[NEXT]])
        others = farthest[(store.slots[farthest] < 0) & (g[farthest] < g[state[NEXT]])]
        store.bring(np.unique(np.concatenate([wanted, others[: store.batch - 2]])))
    square = run.numbers[SQUARE]
    beta[:] = y * a / square
    f[:] = y * (g - a / C) / square
    return end, {
        "updates": int(state[STEPS]),
        "draws": int(state[DRAWN]),
        "searches_failed": int(state[FAILED]),
    }


def minimise_to_gap(
    store: SourceRowCache,
    diag: np.ndarray,
    y: np.ndarray,
    rules: Rules,
    beta: np.ndarray,
    f: np.ndarray,
    gap: float,
) -> tuple[str, dict[str, int]]:
    """Do what :func:`minimise` does until the relative duality gap is at most `gap`.

    Return the stop reason (``"stalled"`` where no eps that float64 can tell from 0 leads there) and
    the counters of all runs.
    """
    end, counters = minimise(store, diag, y, rules, beta, f)
    while end != MAX_ITER and duality_gap(y, rules.C, beta, f) > gap:
        left = rules.max_iter - counters["updates"]
        if left < 1:
            return "max_iter", counters
        if end == STALLED or rules.eps < LEAST_EPS:
            return "stalled", counters
        # Other draws: the same ones would miss the same violators.
        rules = replace(rules, eps=rules.eps / GAP_STEP, seed=rules.seed % (2**32 - 1) + 1)
        end, more = minimise(store, diag, y, replace(rules, max_iter=left), beta, f)
        counters = {name: counters[name] + more[name] for name in counters}
    return "max_iter" if end == MAX_ITER else "converged", counters


def duality_gap(
    y: np.ndarray,  # (n,): labels ±1
    C: float,
    # beta, f (n,): signed multipliers and ``(K + 1) beta``
    beta: np.ndarray,
    f: np.ndarray,
) -> float:
    """Return the duality gap as a share of the primal value."""
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
@dataclass(eq=False, repr=False)
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

    C: float = 1.0
    _: KW_ONLY
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    gap: float | None = None
    max_iter: int = 10_000_000
    cache_mb: float = 1024.0
    random_state: Any = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.gap is not None:
            require_positive("gap", self.gap)

    def _takes_single(self) -> bool:
        # A certificate is of the problem as it is, not of rounded kernel values.
        return self.gap is None and super()._takes_single()

    def _minimise(
        self,
        store: SourceRowCache,
        diag: np.ndarray,
        y: np.ndarray,
        C: float,
        tol: float,
        beta: np.ndarray,
        f: np.ndarray,
    ) -> tuple[str, dict[str, int]]:
        before = store.n_computed if store.K is None else 0
        seed = 1 + int(generator(self.random_state).random() * 2**31)
        # Its own eps even on rounded rows: a random search says nothing to a tenth of it.
        rules = Rules(C, float(self.tol), int(self.max_iter), seed)
        if self.gap is None:
            end, counters = minimise(store, diag, y, rules, beta, f)
            reason = REASONS[end]
        else:
            reason, counters = minimise_to_gap(store, diag, y, rules, beta, f, float(self.gap))
        counters["kernel_rows"] = store.n_computed - before
        return reason, counters

    def _margin_tolerance(self, diag: np.ndarray, C: float, beta: np.ndarray) -> float:
        # g_v >= w^2 - eps sqrt(w^2 tau), divided by w^2 = 1 / sum_i alpha_i.
        return float(self.tol) * np.sqrt((diag.max() + 1.0 + 1.0 / C) * np.abs(beta).sum())
