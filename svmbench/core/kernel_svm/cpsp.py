"""CPSP: cutting planes on the span of a few basis points, which need be no training samples.

Problem
    min_{w, xi}  1/2 ||w||^2 + C' xi   over xi >= 0 and, for every c in {0, 1}^N,
        <w, delta_c> >= Delta_c - xi,
    delta_c = 1/N sum_i c_i y_i phi(x_i),  Delta_c = 1/N sum_i c_i,  f without an offset.
    With C' = N C this is the hinge problem with sum of losses and the same w.
Given
    X (N, d), y in {-1, +1}, C, eps (mean hinge loss), k_max basis points, RBF or linear kernel.
Returned
    w = sum_j beta_j phi(b_j), at most N C eps above the optimum in the span of its basis; where
    the basis did not fill up, above the optimum of the whole problem.
Reference
    Joachims and Yu 2009, Algorithm 3: each new cut is projected on the span of the basis, which
    first grows by the pre-image of what the projection leaves out (Sections 4.1 and 4.2).
Deviations
    - Projections are kept by their coordinates in an orthonormal basis (``basis.py``), so that a
      new point adds one coordinate to each and changes none.
    - The cut c = 0 (xi >= 0) is always in the working set, and the loop stops at the duality gap,
      as in the linear solver of the same problem (``linear/cutting_plane.py``).
    - Once the gap is small but the basis not full, the dual value of the multipliers
      a_i = 1/N sum_c alpha_c c_i in the whole space is lower by half the squared length of what
      the projection of sum_i a_i y_i phi(x_i) leaves out. Where that is too much, the basis grows
      by its pre-image, and the loop goes on. The authors' program extends each active cut instead.
    - A point that is in the span already is refused (doubles of samples among them): nothing is
      added to the diagonal.
    - A cut is dropped once it has had no weight in 50 QPs in a row (``one_slack.py``); the authors'
      program drops it after 5.
    - CPSP(tr) takes the best of 59 samples of the cut's violators, where the paper draws from all
      training samples. Once the gap is small, its points and CPSP's starts are the best of 59
      draws, or of up to 256, weighted by |g_i|, with which the residual was measured; all samples
      are asked where the residual has few.
    - Where the basis may have as many points as there are samples, its points are samples for the
      RBF kernel: these span the solution, which as many free points need not.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from svmbench.core.contract.base import TrainingData, require_count
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.basis import Basis
from svmbench.core.kernel_svm.growth import Growth
from svmbench.core.kernel_svm.one_slack import STEPS_A_CUT, WorkingSet
from svmbench.core.kernel_svm.preimage import CERTAIN, DRAWS, Probe, Residual, Samples, probe
from svmbench.core.kernel_svm.preimage_inputs import near_sums
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.member_rows import MEMBER_KERNELS
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.kernel_classifier import KernelClassifier

#: Each QP is solved to this share of the gap that is left.
QP_SHARE = 0.1

#: Standard errors that are added to the estimated length of what a basis leaves out.
SURE = 2.0


def grow(growth: Growth, cuts: WorkingSet, left: Residual, measured: Probe | None = None) -> bool:
    """Extend the basis by a residual's pre-image, and every projection by a coordinate.

    Returns whether there was a point to add.
    """
    if not growth.extend(left, measured):
        return False
    cuts.lengthen(growth.basis.last_coordinates(growth.y, cuts.members, cuts.P))
    if growth.basis.is_full:
        cuts.forget_members()
    return True


def left_out(
    growth: Growth,
    cuts: WorkingSet,
    w: np.ndarray,  # (n_basis,): coordinates
    room: float,  # what is lost may be so much: then it is measured on more samples
) -> tuple[Residual, Probe, float]:
    """Measure what the basis leaves out of the multipliers' own vector, of which w is the shadow.

    The third value is by how much the dual value is lower in the whole space.
    """
    left = growth.residual(cuts.alpha @ cuts.members / len(growth.y), w)
    measured = probe(growth.samples, left, DRAWS, growth.rng)
    if 0.5 * measured.square <= room and measured.error > 0.0:
        measured = probe(growth.samples, left, CERTAIN, growth.rng)
    return left, measured, 0.5 * (measured.square + SURE * measured.error)


def subspace_pursuit(
    growth: Growth,  # with an empty basis
    *,
    C: float,  # weight of the summed losses; the 1-slack problem's is N C
    eps: float,  # precision in units of the mean hinge loss
    # largest number of cuts; `STEPS_A_CUT` times it is the largest number of pair steps
    max_iter: int,
) -> tuple[np.ndarray, int, str, dict[str, int], float]:
    """Solve the 1-slack problem over a basis that grows with the cuts.

    Return the coefficients over the basis points, the number of cuts, the stop reason ("basis full"
    where the gap is small in the span of the basis alone), the counters, and a lower bound of the
    optimum in the span of the basis.
    """
    y, basis = growth.y, growth.basis
    N = len(y)
    total = N * C
    cuts = WorkingSet(N, total)
    violated = np.empty(N, dtype=np.uint8)
    n_cuts, n_steps, n_passes, complete = 0, 0, 0, False
    most_steps = STEPS_A_CUT * max_iter

    while True:
        w = cuts.w
        products, n_violated, loss = basis.scan(w, y, violated)
        n_passes += 1
        gap = 0.5 * float(w @ w) + C * loss - cuts.dual()
        if gap <= total * eps:
            # As many samples as there are span the optimum; other points need not.
            is_exact = not basis.is_full or growth.is_whole
            reason = "converged" if is_exact else "basis full"
            if basis.is_full or complete:
                break
            left, measured, lost = left_out(growth, cuts, w, total * eps - gap)
            if gap + lost <= total * eps:
                break
            if lost > 0.5 * total * eps:
                # A basis that no sample can be added to spans what can be told apart from it.
                complete = not grow(growth, cuts, left, measured)
                n_steps += cuts.optimise(QP_SHARE * gap, most_steps - n_steps)
                continue
        if n_cuts >= max_iter or n_steps >= most_steps:
            reason = "max_iter"
            break
        if not n_violated:
            # Nothing to cut: it is the program over the cuts that has not been solved well enough.
            done = cuts.optimise(QP_SHARE * gap, most_steps - n_steps)
            n_steps += done
            if not done:
                reason = "stalled"
                break
            continue
        n_cuts += 1
        p = basis.coordinates(products / N)
        cuts.add(p, n_violated / N, None if basis.is_full else violated)
        if not basis.is_full:
            grow(growth, cuts, growth.residual(violated / N, p))
        n_steps += cuts.optimise(QP_SHARE * gap, most_steps - n_steps)
    counters = {
        "cuts": n_cuts,
        "active_cuts": int(np.count_nonzero(cuts.alpha[1:])),
        "dropped": cuts.n_dropped,
        "qp_steps": n_steps,
        "passes": n_passes,
        **growth.counters(),
    }
    return basis.coefficients(cuts.w), n_cuts, reason, counters, cuts.dual()


#: What both solvers count beside the words that tables know.
COUNTED = ("active_cuts", "preimage_fallbacks", "preimage_sums", "refused_points")


@dataclass(eq=False, repr=False)
class SubspacePursuit(KernelClassifier):
    """CPSP or CPSP(tr): cuts over a basis of points that grows with them.

    Parameters
    ----------
    C : float
        Weight of the summed hinge losses (N times this weighs the one slack).
    tol : float
        eps: precision in units of the mean hinge loss; the objective ends at most N C eps above
        its optimum, in the span of the basis where that is full.
    max_iter : int
        Largest number of cuts.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (n_used, n_features)
        The basis points.
    dual_coef_ : ndarray of shape (1, n_used)
        Coefficients of the expansion.
    objective_, dual_objective_ : float
        The exact problem's primal value at this model, and -inf.
    n_iter_ : int
        Cuts.
    stop_reason_ : str
        ``"converged"``; ``"basis full"`` (converged in the span of the basis, and no more is known
        of the whole problem); ``"max_iter"``; or ``"stalled"`` (no example violates any more, and
        the program over the cuts can't be solved better in float64).
    counters_ : dict
        ``cuts``, ``active_cuts`` at the end, ``dropped`` ones, ``qp_steps``, ``passes`` over the
        kernel values, ``basis_vectors``, ``refused_points`` (in the span already),
        ``preimage_sums`` (points tried), ``preimage_fallbacks`` (a training sample was as good),
        ``kernel_evaluations``.
    """

    C: float = 1.0
    _: KW_ONLY
    n_basis: int = 200
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    max_iter: int = 5000
    random_state: Any = 0

    treats_offset = "none"
    # In double precision, and with a basis point for each cut.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"kernel": "linear"})
    #: Whether basis points may be others than training samples.
    has_free_points: ClassVar[bool] = True

    #: The dual value in the span of the basis.
    _dual = -np.inf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_basis", self.n_basis)

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call the loops in single precision."""
        super().warm_up_rest()
        X, y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0])
        basis = Basis(X, KernelFunction("rbf", 1.0), None, 2)
        basis.dtype, basis.values = np.float32, basis.values.astype(np.float32)
        violated = np.ones(3, dtype=np.uint8)
        for i, z in enumerate(X[:2]):
            basis.add(z, None, 0.0)
            basis.last_coordinates(y, violated[np.newaxis], np.zeros((1, i)))
        basis.scan(np.zeros(2), y, violated)
        for form in (X, sp.csr_array(np.pad(X, ((0, 0), (0, 99))))):
            near = near_sums(form, 1.0)
            assert near is not None
            Samples(form, basis.function, True)
            near.column(near.point(0), np.empty(3, dtype=np.float32))
            near.select(np.arange(3), np.ones(3)).sums(np.stack([near.point(0)] * 5))

    def lower_bound(self) -> float:
        """Return the dual value of the cuts: a bound of the optimum in the span."""
        return self._dual

    def train(self, data: TrainingData) -> Self:
        """Add cuts and basis points until the duality gap is small enough; store the expansion."""
        n = data.X.shape[0]
        if int(self.n_basis) > n:
            warnings.warn(
                f"n_basis={self.n_basis} is more than there are training samples: the basis is"
                f" these {n}",
                UserWarning,
                stacklevel=3,
            )
        function = self.function
        near = near_sums(data.X, self.gamma_) if self.kernel == "rbf" else None
        basis = Basis(data.X, function, near, min(int(self.n_basis), n))
        samples = Samples(data.X, function, basis.dtype is np.float32)
        rng = check_random_state(self.random_state)
        # All samples span the solution of the whole problem; as many free points need not, but for
        # the linear kernel, whose points are in the span of the samples.
        is_free = self.has_free_points and (int(self.n_basis) < n or self.kernel == "linear")
        growth = Growth(samples, data.y, basis, near, is_free, rng)
        beta, n_cuts, reason, counters, self._dual = subspace_pursuit(
            growth, C=float(self.C), eps=float(self.tol), max_iter=int(self.max_iter)
        )
        if not self.has_free_points:
            self.basis_ = np.array(growth.rows, dtype=np.int64)
        return self._store(
            KernelSolution(beta, 0.0, n_cuts, reason, counters, points=basis.points), data
        )


@declare(
    name="cpsp",
    problem="hinge-no-offset",
    promise="gap relative to C n",
    paper="cpsp",
    summary="cutting planes on a basis of free points (cutting-plane subspace pursuit)",
    reference="Joachims and Yu 2009, Algorithm 3",
    kernels=MEMBER_KERNELS,
    counters=COUNTED,
)
class CPSP(SubspacePursuit):
    """Kernel SVM without an offset on at most `n_basis` points, which need be no training samples.

    Prediction costs `n_basis` kernel values a row, however many support vectors the exact machine
    has. :class:`CPSPTr` takes its points from the training samples.

    Parameters
    ----------
    n_basis : int
        Basis points, the paper's k_max. With as many as there are training samples, or more, the
        solution is that of the whole problem, and with the RBF kernel the points are samples.
    random_state : int, RandomState or None
        Seed of the draws that searches for basis points start from.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.cpsp import CPSP
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> CPSP(n_basis=2, gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """


@declare(
    name="cpsp-tr",
    problem="hinge-no-offset",
    promise="gap relative to C n",
    paper="cpsp",
    summary="cutting planes on a basis of training samples",
    reference="Joachims and Yu 2009, Algorithm 3 with the search of Section 4.2's end",
    kernels=MEMBER_KERNELS,
    counters=COUNTED,
)
class CPSPTr(SubspacePursuit):
    """CPSP whose basis points are training samples, each the best of 59 drawn at random.

    Parameters
    ----------
    n_basis : int
        Basis points, the paper's k_max.

    Attributes
    ----------
    basis_ : ndarray of int of shape (n_used,)
        The training samples that are basis points.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.cpsp import CPSPTr
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> CPSPTr(n_basis=2, gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    has_free_points = False
