"""``nu-svm``, ``oc-svm`` and their SRBO forms: the ν-SVM and the one-class SVM of the SRBO paper.

Problem of the ν-SVM, whose offset is absorbed or left out
    min_alpha  1/2 alpha'Q alpha,   e'alpha >= nu,   0 <= alpha_i <= 1/l,
    Q_ij = y_i y_j (K(x_i, x_j) + s^2): the dual of 1/2 ||w||^2 - nu rho + 1/l sum_i xi_i with
    y_i <w, phi(x_i)> >= rho - xi_i, rho >= 0, where w has the offset in it.
Problem of the one-class SVM
    min_alpha  1/2 alpha'K alpha,   e'alpha = 1,   0 <= alpha_i <= 1/(nu l).
Given
    A kernel source, y in {-1, +1} of the ν-SVM, nu (or several, ascending), an inner solver.
Returned
    alpha, rho and the offset: ``s^2 sum_i alpha_i y_i``; of one class f(x) = <w, phi(x)> - rho.
Reference
    Problems (2) and (4), algorithm 1, table II, corollaries 3 and 4 of the SRBO paper; Schölkopf,
    Platt, Shawe-Taylor, Smola and Williamson 2001.
Deviations
    - See the modules: ``screening`` (margin), ``path`` (delta), ``pairwise`` (DCDM).
    - The sum of the multipliers is fixed where the paper bounds it below: a solution with a larger
      sum can be scaled down, and stays one.
    - The paper's text absorbs the offset; its program appends the constant before the kernel is
      taken, which leaves an RBF kernel without one: ``fit_intercept=False``. With one class an
      absorbed offset would add a constant to the objective and nothing else: there is none.
    - The paper's box of the one-class SVM changes with nu; in the scale of ``box_qp`` it does not,
      and the problem is that of the ν-SVM with all labels 1: the screening is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from svmbench.core.contract.base import NO_MARGIN, TrainingData
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KERNEL_PARAMETERS, KernelClassifier, KernelSolution
from svmbench.core.models.novelty_base import KernelDetector, require_share
from svmbench.core.nu import path
from svmbench.core.nu.box_qp import margin
from svmbench.core.nu.full_matrix import OWN_COUNTERS, OnFullMatrix, ScreenedSolution
from svmbench.core.nu.nu_problem import no_margin, useful_nu
from svmbench.core.nu.path import SCREENING_RULES, PathSettings, PathStep


def solution_of(
    step: PathStep,
    y: np.ndarray,  # (n,): labels ±1
    # what a multiplier of 1 is in that scale: 1/l of the ν-SVM, 1/(nu l) of the OC-SVM
    scale: float,
    s_squared: float,  # what the absorbed offset adds to the kernel
) -> ScreenedSolution:
    """Return a step of a path as a solution in its paper's scale."""
    point = step.point
    coefficients = scale * point.a * y
    squared_norm = -(scale**2) * float(point.a @ point.v)
    solution = step.solution(coefficients, s_squared * float(coefficients.sum()), squared_norm)
    # The margin can't be negative, and where it is 0 so is w.
    solution.rho = max(0.0, scale * margin(point, step.total))
    return solution


@dataclass(eq=False, repr=False)
class OnNuPath(OnFullMatrix):
    """A solver on the full matrix with the parameter `nu`, which its path follows."""

    needs_parameters: ClassVar[tuple[str, ...]] = ("nu", *KERNEL_PARAMETERS)
    along: ClassVar[str] = "nu"

    nu: float = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("nu", self.nu)
        screen = getattr(self, "screen", "none")
        if screen not in SCREENING_RULES:
            msg = f"screen must be one of {', '.join(SCREENING_RULES)}, got screen={screen!r}"
            raise ValueError(msg)

    def _ascend(self, values: Sequence[Any]) -> bool:
        ascends = super()._ascend(values)
        if not ascends and hasattr(self, "screen"):
            raise ValueError("the values of nu must ascend: each solution screens the next")
        return ascends

    def _problem_parameter(self, data: TrainingData) -> float:
        return float(self.nu)

    def beside_reference(
        self, data: TrainingData, values: Sequence[float], accuracy: float
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the problem at each nu, an accurate solution without screening, and the path's own.

        For checks of screening; `accuracy` is the relative duality gap of the first solution.
        """
        return path.beside_reference(self._matrix_of(data), values, PathSettings.of(self), accuracy)


@dataclass(eq=False, repr=False)
class _NuSVM(OnNuPath, KernelClassifier):
    """A solver of the ν-SVM whose offset is absorbed or left out.

    Parameters
    ----------
    nu : float
        Upper bound of the share of margin errors, lower bound of the share of support vectors;
        above 0 and at most 1.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``; alpha_i is at most 1/l. The C-SVC of the same ``f / rho`` has alpha / rho,
        and C = 1 / (l rho).
    intercept_ : ndarray of shape (1,)
        ``sum_i alpha_i y_i``, or 0.
    expansion_ : Expansion
        The model; its `rho` is the margin.
    objective_, dual_objective_ : float
        Primal value at the offset and rho, and dual value.
    stop_reason_ : str
        ``"converged"``, ``"max_iter"``, ``"stalled"``, or ``"no margin"``: nu is too small for the
        data, and the model is w = 0; a warning names one that has a margin.
    """

    treats_offset: ClassVar[str] = "absorbed"

    _: KW_ONLY
    fit_intercept: bool = True

    def no_margin_warning(self, data: TrainingData) -> str:
        """Return what a warning says after the solver's name if there is no margin, else ""."""
        if self.stop_reason_ != NO_MARGIN:
            return ""
        source = KernelSource.precomputed(self._matrix_of(data))
        return no_margin(self.nu, useful_nu(source, data.y, is_signed=True))

    def follow(
        self, Q: np.ndarray, y: np.ndarray, values: Sequence[float]
    ) -> Iterator[KernelSolution]:
        """Yield the solution at each nu."""
        n = len(y)
        for step in path.follow_nu(Q, [value * n for value in values], PathSettings.of(self)):
            yield solution_of(step, y, 1.0 / n, self.s_squared)


@declare(
    name="nu-svm",
    problem="nu-svc",
    promise="gap relative to the objective",
    summary="ν-SVM without an equality constraint: pairwise DCDM, DCDM as printed, or a QP library",
    reference="Yang, Chen, Zhang, Xu, Shi and Zhao, problems (2) and (4), algorithm 2",
    paper="srbo",
    kernels=KERNELS,
    paths=("nu",),
    counters=OWN_COUNTERS,
)
class NuSVM(_NuSVM):
    """The ν-SVM whose offset is absorbed or left out ("bounded"), by an inner solver of choice.

    Unlike ``nu-svc``, whose offset is free, any nu in (0, 1] is feasible; where the classes overlap
    by more than nu allows, the margin rho and w are 0: see "The smallest useful nu" in
    :mod:`svmbench.core.nu.nu_problem`, which holds for f without a free offset as well.

    Raises
    ------
    ValueError
        If the matrix does not fit `cache_mb`, or a library is not installed.

    Examples
    --------
    >>> from svmbench.core.nu.nu_svm import NuSVM
    >>> model = NuSVM(nu=0.5, kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.predict([[9]])
    array([1])
    """

    warm_with: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"solver": "dcdm"})


@declare(
    name="srbo-nu-svm",
    problem="nu-svc",
    promise="gap relative to the objective",
    summary="ν-SVM along ascending nu, with safe screening between one solution and the next",
    reference="Yang, Chen, Zhang, Xu, Shi and Zhao, algorithm 1, corollaries 1 to 4",
    paper="srbo",
    kernels=KERNELS,
    paths=("nu",),
    counters=OWN_COUNTERS,
)
@dataclass(eq=False, repr=False)
class SRBONuSVM(_NuSVM):
    """``nu-svm`` along a path of nu, where each solution settles multipliers of the next.

    Use its `path`, or :class:`svmbench.NuPath`. A single fit has no earlier solution to screen
    with, and is that of ``nu-svm``.

    Examples
    --------
    >>> from svmbench.core.nu.nu_svm import SRBONuSVM
    >>> model = SRBONuSVM(kernel="linear")
    >>> data = model.prepare([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> path = model.path(data, None, "nu", [0.3, 0.6])
    >>> [round(float(abs(point.solution.dual_coef_).sum()), 6) for point in path]
    [0.3, 0.6]
    """

    _: KW_ONLY
    screen: str = "srbo"

    @classmethod
    def warm_up_rest(cls) -> None:
        """Run the compiled code that only a path needs."""
        super().warm_up_rest()
        for screen in ("srbo", "srbo-descent"):
            model = cls(screen=screen, gamma=1.0)
            data = model.prepare([[0.0], [1.0], [2.0], [4.0], [5.0]], [0, 0, 1, 1, 1])
            for _ in model.path(data, None, "nu", [0.3, 0.5, 0.6, 0.7]):
                pass


class _OCSVM(OnNuPath, KernelDetector):
    """A solver of the one-class SVM without an offset in f."""

    treats_offset: ClassVar[str] = "none"

    def solve(
        self, source: KernelSource, y: np.ndarray | None = None, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; labels and `start` are ignored."""
        return super().solve(source, np.ones(source.n_samples))

    def follow(
        self, Q: np.ndarray, y: np.ndarray, values: Sequence[float]
    ) -> Iterator[KernelSolution]:
        """Yield the solution at each nu."""
        n = len(Q)
        for step in path.follow_nu(Q, [value * n for value in values], PathSettings.of(self)):
            solution = solution_of(step, np.ones(n), 1.0 / step.total, 0.0)
            solution.rho = margin(step.point, step.total) / step.total
            solution.b = -solution.rho
            yield solution


@declare(
    name="oc-svm",
    problem="one-class",
    promise="gap relative to the objective",
    summary="one-class SVM by pairwise DCDM, DCDM as printed, or a QP library",
    reference="Yang, Chen, Zhang, Xu, Shi and Zhao, table II",
    paper="srbo",
    kernels=KERNELS,
    task="one-class",
    paths=("nu",),
    counters=OWN_COUNTERS,
)
class OCSVM(_OCSVM):
    """The one-class SVM in its paper's scale, by an inner solver of choice.

    :class:`~svmbench.core.oneclass.one_class.OneClass` is the one for production: it needs no whole
    matrix. This one reaches duality gaps of 1e-8, and takes the solvers of the SRBO paper.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        alpha; they sum up to 1, and none is above 1/(nu l).

    Examples
    --------
    >>> from svmbench.core.nu.nu_svm import OCSVM
    >>> OCSVM(nu=0.5, gamma=1.0).fit([[0.0], [0.1], [0.2], [5.0]]).predict([[0.1], [9.0]])
    array([ 1, -1])
    """


@declare(
    name="srbo-oc-svm",
    problem="one-class",
    promise="gap relative to the objective",
    summary="one-class SVM along ascending nu, with safe screening between the solutions",
    reference="Yang, Chen, Zhang, Xu, Shi and Zhao, table II and algorithm 1",
    paper="srbo",
    kernels=KERNELS,
    task="one-class",
    paths=("nu",),
    counters=OWN_COUNTERS,
)
@dataclass(eq=False, repr=False)
class SRBOOCSVM(_OCSVM):
    """``oc-svm`` along a path of nu, where each solution settles multipliers of the next."""

    _: KW_ONLY
    screen: str = "srbo"
