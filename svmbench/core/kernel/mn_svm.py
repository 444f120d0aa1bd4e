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
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.arrays import raw
from svmbench.core.compiled import compiled
from svmbench.core.kernel.csvc.passes import larger
from svmbench.core.kernel.fetched_rows import FetchedRows
from svmbench.core.kernel.l2svm import MERCER, TINY, L2Classifier, outputs
from svmbench.core.registry import declare
from svmbench.core.seeded import generator

#: More than any inner product.
BIG = 1e300

#: Draws of a full search, and the first eps.
DRAWS, FIRST_EPS = 600, 0.5

#: How a run of the loop can end, and what that is called.
CONVERGED, MAX_ITER, STALLED, MISSING = 0, 1, 2, 3
REASONS = ("converged", "max_iter", "stalled")

#: Entries of the integers that change: steps, draws, searches that failed, the state of the random
#: numbers, the violator to be used next (-1: to be drawn) and whether it was drawn, the support
#: vectors with the largest and the smallest g.
STEPS, DRAWN, FAILED, SEED, NEXT, FRESH, HIGH, LOW = range(8)

#: Entries of the other numbers that change: w^2, the present eps, the smallest g of all samples.
SQUARE, EPS, LEAST = range(3)

#: Samples between two looks at the extremes so far: an extreme is searched in one piece.
PIECE = 256


@compiled
def below(state: np.ndarray, n: int) -> int:
    """Return a number below `n` at random (32-bit xorshift, the same without compiled code)."""
    seed = int(state[SEED])
    seed ^= (seed << 13) & 0xFFFFFFFF
    seed ^= seed >> 17
    seed ^= (seed << 5) & 0xFFFFFFFF
    state[SEED] = seed
    return (seed * n) >> 32


@compiled
def draw_violator(
    members: np.ndarray, n_first: int, g: np.ndarray, limit: float, state: np.ndarray
) -> int:
    """Return the first drawn sample with ``g < limit``, or -1 after a full search.

    Parameters
    ----------
    members : ndarray of int of shape (n,)
        The `n_first` samples of one class, then those of the other.
    g : ndarray of shape (n,)
    limit : float
    state : ndarray of int
    """
    for _ in range(DRAWS):
        state[DRAWN] += 1
        if below(state, 2) == 0:
            v = members[below(state, n_first)]
        else:
            v = members[n_first + below(state, len(members) - n_first)]
        if g[v] < limit:
            return v
    return -1


@compiled
def add_and_find_extremes(
    g: np.ndarray,
    y: np.ndarray,
    row_u: np.ndarray,
    row_v: np.ndarray,
    fro: float,
    to: float,
    idle: np.ndarray,
) -> tuple[int, int, float]:
    """Take a step out of g; find the support vectors where it is largest and smallest now.

    Parameters
    ----------
    g, y : ndarray of shape (n,)
        Gradient, changed in place, and labels.
    row_u, row_v : ndarray of shape (n,)
        Kernel values of the two samples that moved.
    fro, to : float
        The weight that moved, times the label of u and of v.
    idle : ndarray of float32 of shape (n,)
        0 for support vectors, else -inf.

    Returns
    -------
    high, low : int
        The two support vectors.
    least : float
        The smallest g of all samples.
    """
    n, most = len(g), -np.inf
    high, high_piece, low, low_piece = -np.inf, 0, -np.inf, 0
    for start in range(0, n, PIECE):
        values, labels = g[start : start + PIECE], y[start : start + PIECE]
        first, second = row_u[start : start + PIECE], row_v[start : start + PIECE]
        penalty = idle[start : start + PIECE]
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
    while i < n - 1 and np.float64(idle[i]) + g[i] != high:
        i += 1
    while j < n - 1 and np.float64(idle[j]) - g[j] != low:
        j += 1
    return i, j, -most


@compiled
def move(
    row_u: np.ndarray,
    row_v: np.ndarray,
    u: int,
    v: int,
    y: np.ndarray,
    curvature: np.ndarray,
    C: float,
    a: np.ndarray,
    g: np.ndarray,
    idle: np.ndarray,
    state: np.ndarray,
    numbers: np.ndarray,
) -> bool:
    """Move the best weight from u to v; return whether there was any to move."""
    between = y[u] * y[v] * (np.float64(row_u[v]) + 1.0)
    eta = max(curvature[u] + curvature[v] - 2.0 * between, TINY)
    slope = g[u] - g[v]
    t = slope / eta
    if t >= a[u]:
        t = a[u]
        a[u] = 0.0
        idle[u] = -np.inf
    else:
        a[u] -= t
    if t <= 0.0 or a[v] + t == a[v]:
        return False
    a[v] += t
    idle[v] = 0.0
    numbers[SQUARE] += t * (t * eta - 2.0 * slope)
    g[u] -= t / C
    g[v] += t / C
    high, low, least = add_and_find_extremes(g, y, row_u, row_v, t * y[u], t * y[v], idle)
    state[HIGH], state[LOW], numbers[LEAST] = high, low, least
    state[STEPS] += 1
    return True


@compiled
def approach(
    values: np.ndarray,
    slots: np.ndarray,
    last_use: np.ndarray,
    clock: int,
    curvature: np.ndarray,
    y: np.ndarray,
    members: np.ndarray,
    n_first: int,
    C: float,
    eps: float,
    max_iter: int,
    a: np.ndarray,
    g: np.ndarray,
    idle: np.ndarray,
    state: np.ndarray,
    numbers: np.ndarray,
) -> int:
    """Take steps until the last search fails or a row is missing; return how it ended.

    Parameters
    ----------
    values, slots, last_use, clock
        Rows, as :class:`~svmbench.core.kernel.fetched_rows.FetchedRows` has them.
    curvature : ndarray of shape (n,)
        Q_ii.
    y : ndarray of shape (n,)
        Labels ±1.
    members, n_first
        As :func:`draw_violator` has them.
    C, eps, max_iter
        As :class:`MNSVM` has them; `eps` is its `tol`.
    a, g : ndarray of shape (n,)
        Weights and gradient, changed in place.
    idle : ndarray of float32 of shape (n,)
        0 for support vectors, else -inf; changed in place.
    state, numbers : ndarray of shape (8,), (3,)
        What changes, as the entries' names say.
    """
    widest = curvature.max()
    while True:
        square = numbers[SQUARE]
        limit = square - numbers[EPS] * np.sqrt(square * widest)
        if state[NEXT] < 0:
            v = -1
            if numbers[LEAST] < limit:
                v = draw_violator(members, n_first, g, limit, state)
            if v < 0:
                state[FAILED] += 1
                numbers[SQUARE] = np.dot(a, g)
                if numbers[EPS] <= eps:
                    return CONVERGED
                numbers[EPS] = max(0.5 * numbers[EPS], eps)
                continue
            state[NEXT], state[FRESH] = v, 1
        if state[STEPS] >= max_iter:
            return MAX_ITER
        u, v = state[HIGH], state[NEXT]
        if slots[u] < 0 or slots[v] < 0:
            return MISSING
        last_use[slots[u]] = last_use[slots[v]] = clock + state[STEPS]
        rows = values[slots[u]], values[slots[v]]
        if not move(*rows, u, v, y, curvature, C, a, g, idle, state, numbers):
            return STALLED
        square = numbers[SQUARE]
        limit = square - numbers[EPS] * np.sqrt(square * widest)
        # A step between support vectors follows one with a drawn violator.
        state[NEXT] = state[LOW] if state[FRESH] and g[state[LOW]] < limit else -1
        state[FRESH] = 0


def minimise(
    store: FetchedRows,
    diag: np.ndarray,
    y: np.ndarray,
    C: float,
    eps: float,
    max_iter: int,
    seed: int,
    beta: np.ndarray,
    f: np.ndarray,
) -> tuple[int, dict[str, int]]:
    """Solve from `beta`, whose outputs are `f`, changing both in place.

    Parameters
    ----------
    store : FetchedRows
    diag : ndarray of shape (n,)
        Of the kernel matrix.
    y : ndarray of shape (n,)
        Labels ±1.
    C, eps, max_iter
        As :class:`MNSVM` has them; `eps` is its `tol`.
    seed : int
        From 1 to 2^32 - 1.
    beta, f : ndarray of shape (n,)
        Signed multipliers ``y alpha``, and ``(K + 1) beta``.

    Returns
    -------
    end : int
        Position in `REASONS`.
    counters : dict of str to int
    """
    # By their first samples, so that flipped labels draw the same ones.
    first, second = np.flatnonzero(y == y[0]), np.flatnonzero(y != y[0])
    if not beta.any():
        pair = np.array([first[0], second[0]])
        beta[pair] = 0.5 * y[pair]
        f[:] = outputs(store, beta)
    a = y * beta
    total = a.sum()
    a /= total
    g = y * f / total + a / C
    idle = np.where(a > 0.0, 0.0, -np.inf).astype(np.float32)
    high, low = np.argmax(idle + g), np.argmax(idle - g)
    state = np.array([0, 0, 0, seed, -1, 0, high, low])
    numbers = np.array([a @ g, max(FIRST_EPS, eps), g.min()])
    curvature = raw(np.maximum(diag + (1.0 + 1.0 / C), TINY))
    members = raw(np.concatenate([first, second]))
    while True:
        end = approach(
            store.values,
            store.slots,
            store.last_use,
            store.clock,
            curvature,
            raw(y),
            members,
            len(first),
            C,
            eps,
            max_iter,
            a,
            g,
            idle,
            state,
            numbers,
        )
        if end != MISSING:
            break
        store.clock += int(state[STEPS])
        # With what is missing come the rows of other violators: some of them will be drawn.
        farthest = np.argpartition(g + BIG * (store.slots >= 0), store.batch - 1)[: store.batch]
        wanted = np.array([state[HIGH], state[NEXT]])
        others = farthest[(store.slots[farthest] < 0) & (g[farthest] < g[state[NEXT]])]
        store.bring(np.unique(np.concatenate([wanted, others[: store.batch - 2]])))
    square = numbers[SQUARE]
    beta[:] = y * a / square
    f[:] = y * (g - a / C) / square
    return end, {
        "updates": int(state[STEPS]),
        "draws": int(state[DRAWN]),
        "searches_failed": int(state[FAILED]),
    }


@declare(
    name="mn-svm",
    problem="half-squared-hinge",
    summary="minimal norm point of the L2-SVM's hull, by steps on drawn violators",
    reference="Strack 2013 (gsvm), as in Melki and Kecman 2016",
    paper="nlsgd",
    kernels=MERCER,
    paths=("C",),
)
class MNSVM(L2Classifier):
    """L2-SVM with the offset absorbed, as the point of a convex hull that is nearest to the origin.

    Same problem as :class:`~svmbench.core.kernel.nn_isda.NNISDA`; a random search decides which
    sample is next and when to stop.

    Parameters
    ----------
    C : float, default=1.0
        Weight of half the summed squared hinge losses, above 0: twice LIBLINEAR's C.
    kernel : {"linear", "rbf", "poly"}, default="rbf"
    gamma : float or "scale", default="scale"
        Width of the kernel; "scale" is 1 / (n_features * variance of X).
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Of the polynomial kernel.
    tol : float, default=1e-3
        The last eps: how far below w^2 an inner product with w may be, in units of
        ``sqrt(w^2 tau)``.
    max_iter : int, default=10000000
        Largest number of steps.
    cache_mb : float, default=1024.0
        Memory for kernel rows, MiB.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_support,)
    support_vectors_ : ndarray or csr_array of shape (n_support, n_features)
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``.
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    objective_, dual_objective_ : float
        Primal and dual value; the latter is 1 / (2 w^2).
    n_iter_ : int
        Steps.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"`` or ``"stalled"`` (no step is left that float64 can see).
    counters_ : dict
        ``updates`` (steps), ``draws``, ``searches_failed``, ``kernel_rows`` (computed; all, of a
        matrix that was there), ``kernel_evaluations``, ``support_vectors``,
        ``bounded_support_vectors`` (0).

    Examples
    --------
    >>> from svmbench.core.kernel.mn_svm import MNSVM
    >>> MNSVM(gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
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
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.random_state = random_state

    def _minimise(
        self,
        store: FetchedRows,
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
        eps, max_iter = float(self.tol), int(self.max_iter)
        end, counters = minimise(store, diag, y, C, eps, max_iter, seed, beta, f)
        counters["kernel_rows"] = store.n_computed - before
        return REASONS[end], counters

    def _margin_tolerance(self, diag: np.ndarray, C: float, beta: np.ndarray) -> float:
        # g_v >= w^2 - eps sqrt(w^2 tau), divided by w^2 = 1 / sum_i alpha_i.
        return float(self.tol) * np.sqrt((diag.max() + 1.0 + 1.0 / C) * np.abs(beta).sum())
