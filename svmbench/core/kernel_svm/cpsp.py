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
      a_i = 1/N sum_c alpha_c c_i in the whole space is lower by half the squared length of the
      residual that sum_i a_i y_i phi(x_i) leaves after its projection. If that is too much, the
      basis grows by the residual's pre-image, and the loop goes on. The authors' program extends
      each active cut instead.
    - A point in the span of the basis is refused (duplicate samples among them); nothing is added
      to the diagonal.
    - A cut is dropped once it has had no weight in 50 QPs in a row (``numeric/qp.py``); the
      authors' program drops it after 5.
    - CPSP(tr) takes the best of 59 samples of the cut's violators (with probability 0.95, one is
      among their best 5 %: Smola and Schölkopf 2000), where the paper draws from all training
      samples.
      Once the gap is small, the residual is measured on 59 samples, or on 256, drawn in proportion
      to their weights a_i in it (|g_i| in ``preimage``). CPSP(tr) takes the best of them, and CPSP
      starts from the best of them. A residual of few samples is measured on all of them.
    - If the basis may have as many points as there are samples, its points are samples for the
      RBF kernel: these span the solution, which as many free points need not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.basis import Basis, BasisClassifier
from svmbench.core.kernel_svm.preimage import (
    BEST_OF_DRAWS,
    CERTAIN_DRAWS,
    STARTS,
    NearSums,
    Probe,
    Residual,
    SampleValues,
    as_point,
    fixed_point,
    near_sums,
    probe,
    random_starts,
)
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.products import with_empty_columns
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.numeric.qp import STEPS_A_CUT, CutSet

#: Standard errors that are added to the estimated squared length of a residual.
SAFE_ERRORS = 2.0


#: Least squared distance of a point from the span, as a divisor.
MIN_SQUARED_DISTANCE = 1e-12


@dataclass
class Growth:
    """The growing basis: the source of the next point, and the work so far."""

    samples: SampleValues  # the training samples
    y: np.ndarray  # (n_samples,)
    basis: Basis
    # sums over samples near a free point, in float32 and in coordinates of its own: those of dense
    # inputs are shifted (``preimage``); None if the kernel isn't RBF, or if float32 can't hold the
    # inputs or gamma
    near: NearSums | None
    free: bool  # whether points need not be training samples ("free points")
    rng: Any
    # the samples that are points
    rows: list[int] = field(default_factory=list)
    # all points in the coordinates of `near`, none without it; there a new point z is `near_z`
    near_points: list[np.ndarray] = field(default_factory=list)
    fallbacks: int = 0
    sums: int = 0
    evaluations: int = 0

    @property
    def spans_all_samples(self) -> bool:
        """True if the basis has as many points as there are samples, all in the samples' span."""
        in_span = not self.free or self.basis.function.name == "linear"
        return in_span and self.basis.n >= len(self.y)

    def residual(
        self,
        members: np.ndarray,  # (n_samples,): each sample's weight m_i, 0 if it is no member
        coordinates: np.ndarray,  # (n_basis,): the projection's
    ) -> Residual:
        """Return ``sum_i m_i y_i phi(x_i)`` less its projection."""
        rows = np.flatnonzero(members)
        near = (
            np.array(self.near_points)
            if self.near_points
            else np.empty((0, self.samples.X.shape[1]))
        )
        weights = members[rows] * self.y[rows]
        coefficients = self.basis.coefficients(coordinates)
        return Residual(rows, weights, coefficients, self.basis.points, near)

    def extend(
        self,
        residual: Residual,
        measured: Probe | None = None,  # of the residual: the search starts from its best samples
    ) -> bool:
        """Let the pre-image of a residual join the basis; return whether the basis has grown."""
        function = self.basis.function
        if function.name == "linear" and self.free:
            z, scale = self._exact(residual)
            return self._add(z, None, scale)
        row = -1
        if measured is not None:
            row = int(measured.best(1)[0])
        elif self.near is None or not self.free:
            row = self.samples.best(residual, self.rng)
        if self.near is None or not self.free:
            return self._add_sample(row)
        drawn = random_starts(residual, self.rng) if measured is None else measured.best(STARTS)
        near_z, value, sums, fell_back = fixed_point(self.near, residual, function.gamma, drawn)
        z = self.near.to_points(near_z)
        self.sums += sums
        self.evaluations += sums * (len(residual.rows) + len(residual.points))
        if measured is not None and not fell_back:
            # A sample is taken instead if it removes more of the residual: <r, phi(z)>^2 over the
            # squared distance of z from the span.
            of_sample = np.abs(measured.values).max() ** 2
            gain = of_sample / max(self.basis.distance(self._point(row))[0], MIN_SQUARED_DISTANCE)
            fell_back = not value / max(self.basis.distance(z)[0], MIN_SQUARED_DISTANCE) > gain
        self.fallbacks += fell_back
        if fell_back and row >= 0:
            return self._add_sample(row)
        return self._add(z, near_z)

    def _exact(self, residual: Residual) -> tuple[np.ndarray, float]:
        """Return a linear residual at length 1, and the squared length before its projection."""
        z = as_point(self.samples.X, residual)
        whole = z + residual.coefficients @ residual.points
        length = float(np.linalg.norm(z))
        # At length 1 single precision holds its kernel values, however short the residual is.
        return (z / length, float(whole @ whole) / length**2) if length > 0.0 else (z, 1.0)

    def _point(self, row: int) -> np.ndarray:
        X = self.samples.X
        x = X[row] if isinstance(X, np.ndarray) else X[[row]].toarray().ravel()
        return np.asarray(x)

    def _add_sample(self, row: int) -> bool:
        near_z = None if self.near is None else self.near.point(row)
        grown = self._add(self._point(row), near_z)
        if grown:
            self.rows.append(row)
        return grown

    def _add(self, z: np.ndarray, near_z: np.ndarray | None, scale: float = 0.0) -> bool:
        if not self.basis.add(z, near_z, scale):
            return False
        self.evaluations += len(self.y) + self.basis.n
        if near_z is not None:
            self.near_points.append(near_z)
        return True

    def counters(self) -> dict[str, int]:
        """Return the work done."""
        return {
            "basis_vectors": self.basis.n,
            "refused_points": self.basis.refused,
            "preimage_sums": self.sums,
            "preimage_fallbacks": self.fallbacks,
            "kernel_evaluations": self.evaluations + self.samples.evaluations,
        }


def grow(growth: Growth, cuts: CutSet, residual: Residual, measured: Probe | None = None) -> bool:
    """Extend the basis by a residual's pre-image; return whether there was a point to add."""
    if not growth.extend(residual, measured):
        return False
    # Each projection gets the coordinate of the new point.
    cuts.lengthen(growth.basis.last_coordinates(growth.y, cuts.members, cuts.P))
    if growth.basis.is_full:
        cuts.forget_members()
    return True


def measure_residual(
    growth: Growth,
    cuts: CutSet,
    w: np.ndarray,  # (n_basis,): coordinates of the projection
    # the dual value that may be lost: if no more seems to be, measure more samples to be sure
    room: float,
) -> tuple[Residual, Probe, float]:
    """Measure the residual of sum_i a_i y_i phi(x_i), and the dual value lost outside the span.

    The lost value is half the squared length of the residual, with a safety margin.
    """
    residual = growth.residual(cuts.alpha @ cuts.members / len(growth.y), w)
    measured = probe(growth.samples, residual, BEST_OF_DRAWS, growth.rng)
    if 0.5 * measured.square <= room and measured.error > 0.0:
        measured = probe(growth.samples, residual, CERTAIN_DRAWS, growth.rng)
    return residual, measured, 0.5 * (measured.square + SAFE_ERRORS * measured.error)


def subspace_pursuit(
    growth: Growth,  # with an empty basis
    *,
    C: float,  # weight of the summed losses; the 1-slack problem's is N C
    eps: float,  # precision in units of the mean hinge loss
    # largest number of cuts; `STEPS_A_CUT` times it is the largest number of pair steps
    max_iter: int,
) -> tuple[np.ndarray, int, str, dict[str, int], float]:
    """Solve the 1-slack problem over a basis that grows with the cuts.

    Return the coefficients over the basis points, the number of cuts, the stop reason, the
    counters, and a lower bound of the optimum in the span of the basis.
    """
    y, basis = growth.y, growth.basis
    N = len(y)
    total = N * C
    cuts = CutSet(total, n_samples=N)
    violated = np.empty(N, dtype=np.uint8)
    n_cuts, n_steps, n_passes = 0, 0, 0
    no_point_left = False  # True once the residual's pre-image was in the span already
    most_steps = STEPS_A_CUT * max_iter

    while True:
        # The most violated cut at w with the summed hinge loss, and the duality gap in the span of
        # the basis.
        w = cuts.w
        products, n_violated, loss = basis.scan(w, y, violated)
        n_passes += 1
        gap = 0.5 * float(w @ w) + C * loss - cuts.dual()
        if gap <= total * eps:
            # w is optimal in the span of the basis. It is optimal in the whole space, too, if the
            # span has all samples, if no point is left that would widen it, or if the dual value
            # that is lost outside it is small.
            if basis.is_full:
                reason = "converged" if growth.spans_all_samples else "basis full"
                break
            if no_point_left:
                reason = "converged"
                break
            residual, measured, lost = measure_residual(growth, cuts, w, total * eps - gap)
            if gap + lost <= total * eps:
                reason = "converged"
                break
            if lost > 0.5 * total * eps:
                # The dual value outside the span is over half of the allowed gap: grow the basis.
                # Otherwise go on with the next cut, whose residual also grows the basis.
                no_point_left = not grow(growth, cuts, residual, measured)
                n_steps += cuts.optimise(gap, most_steps - n_steps)
                continue
        if n_cuts >= max_iter or n_steps >= most_steps:
            reason = "max_iter"
            break
        if not n_violated:
            # Without a violator the gap is due to the QP: solve it further.
            done = cuts.optimise(gap, most_steps - n_steps)
            n_steps += done
            if not done:
                reason = "stalled"
                break
            continue
        # Algorithm 3 grows the basis by the cut's residual, and adds the cut. Here the cut is
        # added first: `grow` then gives each cut, this one too, its new coordinate.
        n_cuts += 1
        p = basis.coordinates(products / N)
        cuts.add(p, n_violated / N, None if basis.is_full else violated)
        if not basis.is_full:
            grow(growth, cuts, growth.residual(violated / N, p))
        n_steps += cuts.optimise(gap, most_steps - n_steps)
    counters = {
        "cuts": n_cuts,
        "active_cuts": int(np.count_nonzero(cuts.alpha[1:])),
        "dropped": cuts.n_dropped,
        "qp_steps": n_steps,
        "passes": n_passes,
        **growth.counters(),
    }
    return basis.coefficients(cuts.w), n_cuts, reason, counters, cuts.dual()


#: Counters of both solvers that tables show under their own name.
CPSP_COUNTERS = ("active_cuts", "preimage_fallbacks", "preimage_sums", "refused_points")


@dataclass(eq=False, repr=False, kw_only=True)
class SubspacePursuit(BasisClassifier):
    """CPSP or CPSP(tr): cuts over a basis of points that grows with them.

    Parameters
    ----------
    C : float
        Weight of the summed hinge losses (N times this weighs the one slack).
    tol : float
        eps: precision in units of the mean hinge loss; the objective ends at most N C eps above
        its optimum, in the span of the basis where that is full.

    Attributes
    ----------
    n_iter_ : int
        Cuts.
    stop_reason_ : str
        ``"converged"``; ``"basis full"`` (converged in the span of the basis, with nothing known of
        the whole problem); ``"max_iter"``; or ``"stalled"`` (no example violates a cut, and the QP
        over the cuts can't be solved better in float64).
    counters_ : dict
        ``cuts``, ``active_cuts`` at the end, ``dropped`` ones, ``qp_steps``, ``passes`` over the
        kernel values, ``basis_vectors``, ``refused_points`` (in the span already),
        ``preimage_sums`` (points tried), ``preimage_fallbacks`` (a training sample was as good),
        ``kernel_evaluations``.
    """

    n_basis: int = 200
    tol: float = 1e-3
    max_iter: int = 5000

    # In double precision, and with a basis point for each cut.
    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"kernel": "linear"})
    #: Whether basis points may be others than training samples.
    has_free_points: ClassVar[bool] = True

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
            SampleValues(form, basis.function, True)
            near.column(near.point(0), np.empty(3, dtype=np.float32))
            near.select(np.arange(3), np.ones(3)).sums(np.stack([near.point(0)] * 5))

    def train(self, data: TrainingData) -> Self:
        """Add cuts and basis points until the duality gap is small enough; store the expansion."""
        X, n = data.native, len(data.y)
        self._warn_of_few(n)
        function = self.function
        near = near_sums(X, self.gamma_) if self.kernel == "rbf" else None
        basis = Basis(X, function, near, min(int(self.n_basis), n))
        samples = SampleValues(X, function, basis.dtype is np.float32)
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
        points = with_empty_columns(basis.points, data.X)
        return self._store(KernelSolution(beta, 0.0, n_cuts, reason, counters, points=points), data)


@declare(
    name="cpsp",
    problem="hinge-no-offset",
    promise="gap relative to C n",
    paper="cpsp",
    summary="cutting planes on a basis of free points (cutting-plane subspace pursuit)",
    reference="Joachims and Yu 2009, Algorithm 3",
    kernels=("linear", "rbf"),
    counters=CPSP_COUNTERS,
)
class CPSP(SubspacePursuit):
    """Kernel SVM without an offset on at most `n_basis` points, which need be no training samples.

    Prediction costs `n_basis` kernel values a row, however many support vectors the exact machine
    has. :class:`CPSPTr` takes its points from the training samples.

    Parameters
    ----------
    n_basis : int
        Basis points, the paper's k_max. With as many as there are training samples, or more, the
        solution solves the whole problem, and with the RBF kernel the points are samples.

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
    kernels=("linear", "rbf"),
    counters=CPSP_COUNTERS,
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
