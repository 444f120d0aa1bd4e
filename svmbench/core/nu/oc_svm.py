"""``oc-svm`` and ``srbo-oc-svm``: the one-class SVM on the same solvers, alone or along nu.

Problem
    min_alpha  1/2 alpha'K alpha,   e'alpha = 1,   0 <= alpha_i <= 1/(nu l).
Given
    A kernel source, nu (or several, ascending), an inner solver.
Returned
    alpha and rho; f(x) = <w, phi(x)> - rho.
Reference
    Table II of the SRBO paper; Schölkopf, Platt, Shawe-Taylor, Smola and Williamson 2001.
Deviations
    - The paper's box changes with nu; in the scale of ``box_qp`` it does not, and the problem is
      that of the ν-SVM with all labels 1. The screening is therefore the same, to the letter.
    - An absorbed offset would add a constant to the objective and nothing else: there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.registry import declare
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.models.kernel_base import KernelSolution
from svmbench.core.models.novelty_base import KernelDetector
from svmbench.core.nu import path
from svmbench.core.nu.box_qp import margin
from svmbench.core.nu.full_matrix import OWN_COUNTERS
from svmbench.core.nu.nu_svm import OnNuPath, solution_of
from svmbench.core.nu.path import PathSettings


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
            found = solution_of(step, np.ones(n), 1.0 / step.total, 0.0)
            found.rho = margin(step.point, step.total) / step.total
            found.b = -found.rho
            yield found


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
    >>> from svmbench.core.nu.oc_svm import OCSVM
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
