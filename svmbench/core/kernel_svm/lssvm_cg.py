"""LSSVM-CG: the kernel least-squares SVM by conjugate gradients.

Problem
    (K + 1 1' + nu I) beta = y,   nu = 1 / (2C),   f(x) = sum_j beta_j (K(x_j, x) + 1):
    the optimality conditions of 1/2 (||w||^2 + b^2) + C sum_i (1 - y_i f(x_i))^2
    ("bias absorbed"), in beta_i = y_i alpha_i.
Given
    products with the kernel matrix, y in {-1, +1}, C, tol, max_iter.
Returned
    beta, once the length of the residual is at most tol times the length of y.
Reference
    Suykens, Lukas, Van Dooren, De Moor and Vandewalle 1999: Hestenes and Stiefel's conjugate
    gradients for LS-SVMs. The SGD-LSSVM paper contrasts its method with this one.
Deviations
    - The offset is absorbed, so that one system is solved instead of two.
    - Products are in single precision. Below a tolerance of 1e-4, or where rounding of products may
      be as large as the tolerance (large multipliers: a large C), the residual is computed anew in
      double precision after every solution and corrected by another (iterative refinement), until
      it is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmbench.core.contract.registry import declare
from svmbench.core.kernels import columns
from svmbench.core.kernels.columns import KernelProduct
from svmbench.core.kernels.kernels import KernelSource
from svmbench.core.kernels.products import LARGEST_GAMMA
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution
from svmbench.core.numeric.conjugate_gradient import conjugate_gradients

#: Tolerance from which residuals need no check in double precision.
UNCHECKED_MIN_TOL = 1e-4

#: Rounding of a product in single precision, as a share of the largest kernel value times the
#: length of the multipliers, with room for sums of unlike terms.
PRODUCT_ROUNDING = 10.0 * float(np.finfo(np.float32).eps)

#: Factor by which one solution in single precision reduces the residual, and the largest number of
#: solutions.
REFINEMENT_FACTOR, MAX_REFINEMENTS = 1e-4, 12


def solve_system(
    source: KernelSource,
    y: np.ndarray,  # (n_samples,): labels ±1
    C: float,
    tol: float,
    max_iter: int,  # largest number of products in single precision
    cache_mb: float,  # budget for kernel values, MiB
) -> tuple[np.ndarray, int, str, dict[str, int]]:
    """Return beta, the number of iterations, the stop reason and the counters."""
    nu = 1.0 / (2.0 * C)
    inputs = source.inputs()
    single = inputs is not None and inputs[1].gamma <= LARGEST_GAMMA
    fast = KernelProduct(source, cache_mb, np.float32 if single else np.float64)
    exact = KernelProduct(source, 0.0, np.float64) if single and tol < UNCHECKED_MIN_TOL else None

    def times(product: KernelProduct, v: np.ndarray) -> np.ndarray:
        return product.times(v) + np.sum(v) + nu * v

    target = tol * float(np.linalg.norm(y))
    beta, residual, steps, reason = np.zeros(len(y)), y.astype(np.float64), 0, "max_iter"
    for _ in range(MAX_REFINEMENTS):
        length = float(np.linalg.norm(residual))
        if length <= target:
            reason = "converged"
            break
        inner = max(0.5 * target, REFINEMENT_FACTOR * length) if exact else target
        change, n_iter, ended = conjugate_gradients(
            lambda v: times(fast, v), residual, max_iter - steps, length=inner
        )
        beta += change
        steps += n_iter
        if exact is None and single:
            largest = float(np.max(source.diag()))
            if PRODUCT_ROUNDING * largest * float(np.linalg.norm(beta)) > tol:
                exact = KernelProduct(source, 0.0, np.float64)
        if exact is None:
            reason = "converged" if ended else "max_iter" if steps >= max_iter else "stalled"
            break
        before, residual = length, y - times(exact, beta)
        if not np.linalg.norm(residual) < 0.5 * before and steps < max_iter:
            reason = "stalled" if np.linalg.norm(residual) > target else "converged"
            break
        if steps >= max_iter:
            break
    if np.linalg.norm(residual) <= target and exact is not None:
        reason = "converged"
    products = fast.products + (exact.products if exact else 0)
    made = fast.values_made + (exact.values_made if exact else 0)
    return beta, steps, reason, {"products": products, "kernel_evaluations": made}


@declare(
    name="lssvm-cg",
    problem="least-squares",
    promise="residual",
    paper="sgdlssvm",
    summary="kernel least-squares SVM by conjugate gradients",
    reference="Suykens et al. 1999 (Hestenes and Stiefel), as in the SGD-LSSVM paper, Section 2",
    kernels=("linear", "rbf", "poly"),
)
@dataclass(eq=False, repr=False, kw_only=True)
class LSSVMCG(ClassifierWithC):
    """Kernel least-squares SVM with the offset absorbed, by conjugate gradients.

    Each iteration is one product with the kernel matrix, of which as much is kept as `cache_mb`
    allows. `SGDLSSVM` needs a few columns an iteration and no matrix.

    Parameters
    ----------
    tol : float
        Length of the residual at the end, relative to the length of the right-hand side.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``; alpha has both signs.
    intercept_ : ndarray of shape (1,)
        The sum of ``dual_coef_``.
    counters_ : dict
        ``products`` with the kernel matrix, ``kernel_evaluations``.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.lssvm_cg import LSSVMCG
    >>> LSSVMCG(gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    tol: float = 1e-3
    max_iter: int = 10000
    cache_mb: float = 1024.0

    treats_offset = "absorbed"

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call the makers of kernel values that a tiny problem does not choose."""
        super().warm_up_rest()
        columns.warm_up_columns()

    def solve(self, source: KernelSource, y: np.ndarray, start: Any = None) -> KernelSolution:
        """Solve the system on one kernel matrix."""
        beta, steps, reason, counters = solve_system(
            source, y, float(self.C), float(self.tol), int(self.max_iter), float(self.cache_mb)
        )
        return KernelSolution(beta, float(np.sum(beta)), steps, reason, counters)
