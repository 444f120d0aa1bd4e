"""CVM and BVM: the L2-SVM as an enclosing ball of a core set of samples.

Problem
    Q_ij = y_i y_j (K_ij + 1) + delta_ij / C are the inner products of images psi(x_i) of one
    length, q = Q_ii = K(x, x) + 1 + 1/C. A ball has its centre c = sum_i alpha_i psi(x_i) with
    sum alpha = 1, alpha >= 0, and alpha 0 outside the core set. With g = Q alpha the squared
    distance of a sample from c is ||c||^2 - 2 g_i + q.
    CVM: the smallest ball around all images,  min_alpha alpha' Q alpha: up to scale the dual of
    1/2 (||w||^2 + b^2) + C/2 sum_i max(0, 1 - y_i f(x_i))^2. The SVM's multipliers are
    alpha / ||c||^2, and the value of its dual is 1 / (2 ||c||^2).
    BVM: a ball of given radius around all images,  ||c - psi(x_i)||^2 + ||c||^2 <= (1 + eps)^2 q.
    With eps = 0 these are the optimality conditions g_i >= ||c||^2 of CVM's problem.
Given
    X, y in {-1, +1}, C, the RBF kernel (Q's diagonal must be constant), eps.
Returned
    alpha / ||c||^2 once no sample is found outside the ball: CVM's is (1 + eps) R around c with
    R^2 = q - ||c||^2. For the dual value D then 1 - D(alpha)/D* <= (2 eps + eps^2) q / ||c||^2.
Reference
    CVM: Tsang, Kwok and Cheung 2005, Algorithm 1: while a sample is outside, the farthest of 59
    random ones joins the core set, and the ball of the core set is computed anew.
    BVM: Tsang, Kocsor and Kwok 2007, Algorithm 1: the centre moves towards a sample outside the
    ball until that lies on it, c <- psi + beta (c - psi), beta = r / distance.
Deviations
    - As the authors' programs: 60 draws, half of each class; where none is outside, they are
      repeated 7 (BVM: 10) times. CVM starts from 20 members, BVM from one. eps is halved from 0.1
      on. BVM measures distances in the extended space, with ||c||^2 added to the square, so that
      beta = sqrt(q / (||c - psi||^2 + ||c||^2)).
    - A set of no more samples than all draws together is searched whole.
    - CVM finds the ball of the core set by pair steps from the last ball, up to a tenth of what eps
      allows a sample to be outside.
    - In BVM the farthest member moves the centre first, as its distance is known; samples are drawn
      once no member is outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.member_inputs import MemberInputs, fill, member_inputs
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution
from svmbench.core.numeric.random import generator

#: Samples that are drawn at a time.
ROUND_DRAWS = 60

#: The first eps, and the factor from one eps to the next.
FIRST_EPS, EPS_FACTOR = 0.1, 0.5

#: Rounds of draws for which random numbers are made at a time.
ROUNDS_AT_A_TIME = 64

#: Members that there is room for at first.
FIRST_WIDTH = 256

#: Least curvature along a direction.
MIN_PAIR_CURVATURE = 1e-12

#: Share of what eps allows to which CVM solves its inner problem.
INNER_EPS_SHARE = 0.1

#: Entries of the counts.
MEMBERS, STEPS, VALUES, ROUND = range(4)

#: How a run ends.
INSIDE, NO_ROOM, NO_DRAWS, FULL, TIRED = range(5)


class Core(NamedTuple):
    """The core set; arrays of shape (width,) of which the first ``counts[MEMBERS]`` are filled."""

    sample: np.ndarray  # int
    alpha: np.ndarray  # weights of the centre
    g: np.ndarray  # ``Q alpha``
    y: np.ndarray  # labels
    signed: np.ndarray  # ``y alpha``
    Q: np.ndarray  # float32 (width, width): ``y_i y_j (K_ij + 1)``
    position: np.ndarray  # int (n_samples,): where a sample is; -1 outside
    counts: np.ndarray  # int: members, steps, kernel values, rounds of random numbers used
    square: np.ndarray  # (1,): ``||c||^2``


def make_core(n_samples: int, width: int, old: Core | None = None) -> Core:
    """Return a core set with room for `width` members, with the members of `old`."""
    core = Core(
        np.full(width, -1),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.empty((width, width), dtype=np.float32),
        np.full(n_samples, -1) if old is None else old.position,
        np.zeros(4, dtype=np.int64) if old is None else old.counts,
        np.zeros(1) if old is None else old.square,
    )
    if old is not None:
        w = len(old.sample)
        for new, before in zip(core[:5], old[:5], strict=True):
            new[:w] = before
        core.Q[:w, :w] = old.Q
    return core


class LabelledInputs(NamedTuple):
    """The training samples; arrays of shape (n_samples,) unless noted."""

    inputs: MemberInputs
    y: np.ndarray  # labels ±1
    positive: np.ndarray  # int: the samples of the class +1
    negative: np.ndarray  # int: the samples of the class -1
    row: np.ndarray  # float32: scratch


@compiled
def add_member(samples: LabelledInputs, core: Core, i: int) -> int:
    """Let a sample join with weight 0; return its position."""
    m, label, row = core.counts[MEMBERS], samples.y[i], samples.row
    fill(samples.inputs, i, core.sample, m, row)
    core.counts[VALUES] += m
    total = 0.0
    for s in range(m):
        value = np.float32(label * core.y[s] * (np.float64(row[s]) + 1.0))
        core.Q[m, s], core.Q[s, m] = value, value
        total += core.alpha[s] * np.float64(value)
    core.Q[m, m] = 2.0
    core.sample[m], core.y[m], core.alpha[m], core.signed[m] = i, label, 0.0, 0.0
    core.g[m], core.position[i] = total, m
    core.counts[MEMBERS] = m + 1
    return m


@compiled
def product_with_centre(samples: LabelledInputs, core: Core, i: int) -> float:
    """Return g of a sample: the product of its image with the centre."""
    position = core.position[i]
    if position >= 0:
        return core.g[position]
    m, row = core.counts[MEMBERS], samples.row
    fill(samples.inputs, i, core.sample, m, row)
    core.counts[VALUES] += m
    total = 0.0
    for s in range(m):
        total += core.signed[s] * (np.float64(row[s]) + 1.0)
    return samples.y[i] * total


@compiled
def farthest(
    samples: LabelledInputs,
    core: Core,
    uniform: np.ndarray,  # (n_repeats, ROUND_DRAWS): in [0, 1)
    nearest: float,  # the least product with the centre of a sample inside the ball
    by_all: bool,  # search all samples instead
) -> int:
    """Return a sample outside the core set whose g is below `nearest`; -1 if none was found."""
    best, at = nearest, -1
    if by_all:
        for i in range(len(core.position)):
            if core.position[i] < 0:
                g = product_with_centre(samples, core, i)
                if g < best:
                    best, at = g, i
        return at
    for r in range(len(uniform)):
        for k in range(uniform.shape[1]):
            of_class = samples.positive if k % 2 == 0 else samples.negative
            i = of_class[int(uniform[r, k] * len(of_class))]
            if core.position[i] < 0:
                g = product_with_centre(samples, core, i)
                if g < best:
                    best, at = g, i
        if at >= 0:
            return at
    return -1


@compiled
def refresh_weights(core: Core) -> None:
    """Compute signed weights and ||c||^2 anew from weights and products."""
    total = 0.0
    for s in range(core.counts[MEMBERS]):
        core.signed[s] = core.y[s] * core.alpha[s]
        total += core.alpha[s] * core.g[s]
    core.square[0] = total


@compiled
def smallest_ball(core: Core, C: float, tol: float, max_iter: int) -> bool:
    """Take CVM's pair steps until members' g differ by at most `tol` where weight can move.

    Returns whether that was reached before `max_iter` steps in all.
    """
    m = core.counts[MEMBERS]
    alpha, g, Q = core.alpha, core.g, core.Q
    while True:
        # Weight goes from the member with the largest g, if it has any, to the smallest g.
        i, j = 0, -1
        for s in range(m):
            if g[s] < g[i]:
                i = s
            if alpha[s] > 0.0 and (j < 0 or g[s] > g[j]):
                j = s
        if g[j] - g[i] <= tol:
            break
        if core.counts[STEPS] >= max_iter:
            refresh_weights(core)
            return False
        curvature = np.float64(Q[i, i]) + np.float64(Q[j, j]) - 2.0 * np.float64(Q[i, j]) + 2.0 / C
        t = min((g[j] - g[i]) / max(curvature, MIN_PAIR_CURVATURE), alpha[j])
        alpha[j] = 0.0 if t == alpha[j] else alpha[j] - t
        alpha[i] += t
        first, second = Q[i], Q[j]
        for s in range(m):
            g[s] += t * (np.float64(first[s]) - np.float64(second[s]))
        g[i] += t / C
        g[j] -= t / C
        core.counts[STEPS] += 1
    refresh_weights(core)
    return True


@compiled
def move_centre(core: Core, C: float, i: int) -> None:
    """Take BVM's step: move the centre towards member `i` until that lies on the ball."""
    m, q = core.counts[MEMBERS], 2.0 + 1.0 / C
    square, g = core.square[0], core.g
    # beta = r / distance, and the new ||c||^2, g and alpha of c <- psi + beta (c - psi).
    beta = np.sqrt(q / (2.0 * (square - g[i]) + q))
    rest = 1.0 - beta
    core.square[0] = beta * beta * square + 2.0 * beta * rest * g[i] + rest * rest * q
    row = core.Q[i]
    for s in range(m):
        g[s] = beta * g[s] + rest * np.float64(row[s])
        core.alpha[s] *= beta
        core.signed[s] *= beta
    g[i] += rest / C
    core.alpha[i] += rest
    core.signed[i] += rest * core.y[i]
    core.counts[STEPS] += 1


@compiled
def enclose_members(core: Core, C: float, room: float, max_iter: int) -> bool:
    """Take BVM's steps until no member's g is below ``||c||^2 - room``.

    Returns whether that was reached before `max_iter` steps in all.
    """
    while True:
        i = 0
        for s in range(core.counts[MEMBERS]):
            if core.g[s] < core.g[i]:
                i = s
        if core.g[i] >= core.square[0] - room:
            break
        if core.counts[STEPS] >= max_iter:
            return False
        move_centre(core, C, i)
    refresh_weights(core)
    return True


@compiled
def grow_core_set(
    samples: LabelledInputs,
    core: Core,
    uniform: np.ndarray,  # (n_rounds, n_repeats, ROUND_DRAWS): in [0, 1)
    C: float,
    eps: float,
    most: int,  # members at which to stop
    max_iter: int,
    fixed_radius: bool,  # BVM's ball in place of CVM's
) -> int:
    """Enclose the members, then let the farthest sample outside join, until none is found."""
    q = 2.0 + 1.0 / C
    slack = eps + 0.5 * eps * eps
    by_all = len(samples.y) <= uniform.shape[1] * uniform.shape[2]
    while True:
        # A sample is outside where its g is below ||c||^2 by more than `room`, from
        # CVM: ||c||^2 - 2 g + q > (1 + eps)^2 (q - ||c||^2),
        # BVM: 2 ||c||^2 - 2 g + q > (1 + eps)^2 q.
        if fixed_radius:
            room = slack * q
            enclosed = enclose_members(core, C, room, max_iter)
        else:
            tol = INNER_EPS_SHARE * slack * (q - core.square[0])
            enclosed = smallest_ball(core, C, tol, max_iter)
            room = slack * (q - core.square[0])
        if not enclosed:
            return TIRED
        if core.counts[MEMBERS] >= most:
            return FULL
        if core.counts[MEMBERS] == len(core.sample):
            return NO_ROOM
        if core.counts[ROUND] == len(uniform):
            return NO_DRAWS
        draws = uniform[core.counts[ROUND]]
        core.counts[ROUND] += 1
        nearest = core.square[0] - room
        i = farthest(samples, core, draws, nearest, by_all)
        if i < 0:
            return INSIDE
        if fixed_radius and core.counts[STEPS] >= max_iter:
            return TIRED
        member = add_member(samples, core, i)
        if fixed_radius:
            move_centre(core, C, member)


def precisions(tol: float) -> list[float]:
    """Return the precisions that are worked through, from 0.1 by halves down to `tol`."""
    values = []
    eps = FIRST_EPS
    while eps > tol:
        values.append(eps)
        eps *= EPS_FACTOR
    return [*values, tol]


@dataclass(eq=False, repr=False, kw_only=True)
class CoreSetMachine(ClassifierWithC):
    """An L2-SVM over a core set; subclasses define `fixed_radius`, `starts`, `repeats`.

    Parameters
    ----------
    C : float
        Weight of half the summed squared hinge losses: twice LIBLINEAR's C.
    n_basis : int
        Largest core set; None for no bound.
    tol : float
        eps: no sample is found outside the ball of 1 + eps times the radius.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    stop_reason_ : str
        ``"converged"``, ``"n_basis"`` (the core set was full before) or ``"max_iter"``.
    counters_ : dict
        ``core_set``, ``updates`` (``n_iter_``), ``kernel_evaluations``, ``support_vectors``.
    """

    n_basis: int | None = None
    tol: float = 1e-5
    max_iter: int = 10_000_000
    random_state: Any = 0

    treats_offset = "absorbed"
    #: Whether the ball is BVM's, and not CVM's.
    fixed_radius: ClassVar[bool]
    #: Members at the start, and how often draws that find nothing are repeated.
    starts: ClassVar[int]
    repeats: ClassVar[int]

    optional = ("n_basis",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_basis is not None:
            require_count("n_basis", self.n_basis)

    def _begin(self, samples: LabelledInputs, core: Core, rng: Any) -> None:
        """Let the first members join: classes in turn, equal weights."""
        y = samples.y
        order = rng.permutation(len(y))
        classes = [order[y[order] > 0.0], order[y[order] < 0.0]]
        n = min(self.starts, len(core.sample))
        drawn = [int(classes[k % 2][k // 2]) for k in range(n) if k // 2 < len(classes[k % 2])]
        for i in drawn:
            add_member(samples, core, i)
        m = len(drawn)
        core.alpha[:m] = 1.0 / m
        core.g[:m] = core.Q[:m, :m].astype(np.float64) @ core.alpha[:m] + core.alpha[:m] / self.C
        refresh_weights(core)

    def train(self, data: TrainingData) -> Self:
        """Grow the core set until no sample is found outside the ball; store the expansion."""
        y, n, C = data.y, len(data.y), float(self.C)
        rng = generator(self.random_state)
        samples = LabelledInputs(
            member_inputs(data.native, self.function),
            y,
            np.flatnonzero(y > 0.0),
            np.flatnonzero(y < 0.0),
            np.empty(n, dtype=np.float32),
        )
        most = n if self.n_basis is None else min(n, int(self.n_basis))
        core = make_core(n, min(most, FIRST_WIDTH))
        self._begin(samples, core, rng)
        end = INSIDE
        for eps in precisions(float(self.tol)):
            end = NO_DRAWS
            while end in (NO_DRAWS, NO_ROOM):
                core.counts[ROUND] = 0
                uniform = rng.random((ROUNDS_AT_A_TIME, self.repeats, ROUND_DRAWS))
                end = grow_core_set(
                    samples, core, uniform, C, eps, most, int(self.max_iter), self.fixed_radius
                )
                if end == NO_ROOM:
                    core = make_core(n, min(most, 2 * len(core.sample)), core)
            if end == TIRED:
                break
        m = int(core.counts[MEMBERS])
        beta = np.zeros(n)
        beta[core.sample[:m]] = core.signed[:m] / core.square[0]
        counters = {
            "core_set": m,
            "updates": int(core.counts[STEPS]),
            "kernel_evaluations": int(core.counts[VALUES]),
        }
        reason = (
            "max_iter" if end == TIRED else "n_basis" if end == FULL and most < n else "converged"
        )
        steps = max(1, int(core.counts[STEPS]))
        return self._store(KernelSolution(beta, float(beta.sum()), steps, reason, counters), data)


@declare(
    name="cvm",
    problem="half-squared-hinge",
    paper="cpsp",
    summary="smallest enclosing ball of a core set (core vector machine)",
    reference="Tsang, Kwok and Cheung 2005, Algorithm 1",
    kernels=("rbf",),
    counters=("core_set",),
)
class CVM(CoreSetMachine):
    """L2-SVM with the offset absorbed, by the smallest ball around a core set.

    Attributes
    ----------
    n_iter_ : int
        Pair steps.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.core_set import CVM
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> CVM(gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    fixed_radius, starts, repeats = False, 20, 7


@declare(
    name="bvm",
    problem="half-squared-hinge",
    paper="cpsp",
    summary="enclosing ball of fixed radius (ball vector machine)",
    reference="Tsang, Kocsor and Kwok 2007, Algorithm 1",
    kernels=("rbf",),
    counters=("core_set",),
)
class BVM(CoreSetMachine):
    """L2-SVM with the offset absorbed, by moving a ball of fixed radius; see also ``cvm``.

    Attributes
    ----------
    n_iter_ : int
        Moves.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.core_set import BVM
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> BVM(gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    fixed_radius, starts, repeats = True, 1, 10
