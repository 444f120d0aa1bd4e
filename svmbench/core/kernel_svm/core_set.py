"""Base of CVM and BVM: a growing core set, and the search for samples outside its ball.

Both see the L2-SVM as an enclosing ball of the images psi of the samples in the kernel

    Q_ij = y_i y_j (K_ij + 1) + delta_ij / C,   whose diagonal q = K(x, x) + 1 + 1/C is constant,

with a centre c = sum_i alpha_i psi(x_i), sum alpha = 1, alpha >= 0, alpha 0 outside the core set.
With g = Q alpha a sample's squared distance from the centre is ||c||^2 - 2 g_i + q. The SVM's
multipliers are alpha / ||c||^2, and the value of its dual is 1 / (2 ||c||^2).

Of the samples 60 are drawn at a time, half of them of each class, and the farthest is looked at;
where draws find none outside the ball as often as they are repeated, none is taken to be. A set of
no more samples than that makes is searched whole.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from svmbench.base.compiled import compiled
from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.kernels.member_rows import MemberInputs, fill, member_inputs
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier
from svmbench.core.numeric.random import generator

#: Samples that are drawn at a time.
DRAWS = 60

#: Precisions: the first, and by what it falls from one to the next.
FIRST, FALL = 0.1, 0.5

#: Rounds between two returns for random numbers, and members at first.
ROUNDS, WIDTH = 64, 256

#: Curvature of a direction that has none.
TINY = 1e-12

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
    """Return room for `width` members, with those of `old` in it."""
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


@compiled
def join(inputs: MemberInputs, core: Core, row: np.ndarray, i: int, label: float) -> int:
    """Let a sample join with weight 0; return its position. `row` is scratch."""
    m = core.counts[MEMBERS]
    fill(inputs, i, core.sample, m, row)
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
def product_with_centre(
    inputs: MemberInputs, core: Core, row: np.ndarray, i: int, label: float
) -> float:
    """Return g of a sample: the product of its image with the centre."""
    position = core.position[i]
    if position >= 0:
        return core.g[position]
    m = core.counts[MEMBERS]
    fill(inputs, i, core.sample, m, row)
    core.counts[VALUES] += m
    total = 0.0
    for s in range(m):
        total += core.signed[s] * (np.float64(row[s]) + 1.0)
    return label * total


@compiled
def farthest(
    inputs: MemberInputs,
    core: Core,
    row: np.ndarray,
    y: np.ndarray,  # (n_samples,)
    # positive, negative: int: the samples of each class
    positive: np.ndarray,
    negative: np.ndarray,
    uniform: np.ndarray,  # (n_repeats, DRAWS): in [0, 1)
    nearest: float,  # the least product with the centre of what is inside the ball
    by_all: bool,  # search all instead
) -> int:
    """Return a sample outside the core set whose g is below `nearest`; -1 if none was found."""
    best, at = nearest, -1
    if by_all:
        for i in range(len(y)):
            if core.position[i] < 0:
                g = product_with_centre(inputs, core, row, i, y[i])
                if g < best:
                    best, at = g, i
        return at
    for r in range(len(uniform)):
        for k in range(uniform.shape[1]):
            of_class = positive if k % 2 == 0 else negative
            i = of_class[int(uniform[r, k] * len(of_class))]
            if core.position[i] < 0:
                g = product_with_centre(inputs, core, row, i, y[i])
                if g < best:
                    best, at = g, i
        if at >= 0:
            return at
    return -1


@compiled
def settle(core: Core) -> None:
    """Compute signed weights and ||c||^2 anew from weights and products."""
    total = 0.0
    for s in range(core.counts[MEMBERS]):
        core.signed[s] = core.y[s] * core.alpha[s]
        total += core.alpha[s] * core.g[s]
    core.square[0] = total


def precisions(tol: float) -> list[float]:
    """Return the precisions that are worked through, from 0.1 by halves down to `tol`."""
    found = []
    eps = FIRST
    while eps > tol:
        found.append(eps)
        eps *= FALL
    return [*found, tol]


@dataclass(eq=False, repr=False)
class CoreSetMachine(KernelClassifier):
    """An L2-SVM over a core set; subclasses define `_advance`, `starts`, `repeats`.

    Parameters
    ----------
    C : float
        Weight of half the summed squared hinge losses: twice LIBLINEAR's C.
    n_basis : int
        Largest core set; None for no bound.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    stop_reason_ : str
        ``"converged"``, ``"n_basis"`` (the core set was full before) or ``"max_iter"``.
    """

    C: float = 1.0
    _: KW_ONLY
    n_basis: int | None = None
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-5
    max_iter: int = 10_000_000
    random_state: Any = 0

    treats_offset = "absorbed"
    #: Members at the start, and how often draws that find nothing are repeated.
    starts: ClassVar[int]
    repeats: ClassVar[int]

    optional = ("n_basis",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_basis is not None:
            require_count("n_basis", self.n_basis)

    def _advance(
        self,
        inputs: MemberInputs,
        core: Core,
        y: np.ndarray,
        eps: float,
        most: int,
        uniform: np.ndarray,
    ) -> int:
        """Go on at a precision until something is missing or nothing is outside; say which."""
        raise AssertionError("a core-set machine defines _advance")

    def _begin(self, inputs: MemberInputs, core: Core, y: np.ndarray, rng: Any) -> None:
        """Let the first members join: classes in turn, equal weights."""
        order = rng.permutation(len(y))
        classes = [order[y[order] > 0.0], order[y[order] < 0.0]]
        row = np.empty(len(y), dtype=np.float32)
        n = min(self.starts, len(core.sample))
        drawn = [int(classes[k % 2][k // 2]) for k in range(n) if k // 2 < len(classes[k % 2])]
        for i in drawn:
            join(inputs, core, row, i, float(y[i]))
        m = len(drawn)
        core.alpha[:m] = 1.0 / m
        core.g[:m] = core.Q[:m, :m].astype(np.float64) @ core.alpha[:m] + core.alpha[:m] / self.C
        settle(core)

    def train(self, data: TrainingData) -> Self:
        """Grow the core set until no sample is found outside the ball; store the expansion."""
        y, n = data.y, len(data.y)
        inputs, rng = member_inputs(data.X, self.function), generator(self.random_state)
        most = n if self.n_basis is None else min(n, int(self.n_basis))
        core = make_core(n, min(most, WIDTH))
        self._begin(inputs, core, y, rng)
        end = INSIDE
        for eps in precisions(float(self.tol)):
            end = NO_DRAWS
            while end in (NO_DRAWS, NO_ROOM):
                core.counts[ROUND] = 0
                uniform = rng.random((ROUNDS, self.repeats, DRAWS))
                end = self._advance(inputs, core, y, eps, most, uniform)
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
