"""The kernel least-squares SVM by a direct solve.

Problem
    min_{w,b}  1/2 (||w||^2 + (b/s)^2) + C sum_i (1 - y_i f(x_i))^2,   f(x) = w'phi(x) + b:
    the offset is absorbed as a constant feature of value s.
Given
    A kernel matrix K (n, n), y in {-1, +1}, C; nu = 1 / (2C).
Returned
    Signed coefficients beta with  (K + s^2 + nu I) beta = y  and  b = s^2 sum_i beta_i;
    the multipliers beta_i y_i may have any sign, and none is 0 but by chance.
Reference
    Suykens and Vandewalle 1999, with the offset absorbed as in the SGD-LSSVM paper, Section 2
    (there Q alpha = e with Q_ij = y_i y_j K_ij + nu delta_ij and s^2 in K).
Deviations
    - Above a thousand samples the factorisation is in single precision, and conjugate gradients in
      double precision correct the solution to a residual of 1e-10 (``linear_systems.py``); where
      they fail, the factorisation is repeated in double precision. counters_["refinements"] counts
      their rounds.
    - On a path over C, values that need few iterations are solved together, without a
      factorisation, to the same residual (``linear_systems.py``); counters_["shared_steps"] counts
      the iterations.
    - Every residual is computed anew from the solution. If rounding keeps it above 1e-10 (nu small
      beside the rounding of K), counters_["uncertified"] is 1.
    - If rounding has left the matrix without a Cholesky factor (duplicate samples at huge C), an
      eigendecomposition takes its place, without the directions whose eigenvalues are rounding:
      f has no part in them. counters_["fallbacks"] counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

from svmbench.base.errors import BudgetError
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.l2svm import MERCER
from svmbench.core.kernel_svm.linear_systems import (
    RELATIVE_RESIDUAL,
    Shifted,
    float64_product,
    is_worth_trying,
    solve_refined,
    solve_shifted,
)
from svmbench.core.kernels.columns import dense_source
from svmbench.core.kernels.kernels import MIB, KernelSource
from svmbench.core.models.kernel_base import ClassifierWithC, KernelSolution

#: Samples from which a factorisation in single precision is tried first.
REFINED_MIN_SAMPLES = 1000

#: Bytes for each value of the matrix that LAPACK's fast eigendecomposition takes: the matrix, the
#: eigenvectors and two matrices of scratch.
FAST_EIGH_BYTES = 4 * 8


class Solved(NamedTuple):
    """A solution, with the work done."""

    beta: np.ndarray  # (n,)
    factorisations: int = 1
    refinements: int = 0  # rounds of conjugate gradients in float64
    fell_back: bool = False  # whether an eigendecomposition took the place of a factor
    certified: bool = True  # whether the residual is at most 1e-10 of the right-hand side


def solve_directly(
    K: np.ndarray,  # (n, n): symmetric, float32 or float64; not changed
    y: np.ndarray,  # (n,)
    nu: float,  # above 0
    constant: float,  # added to every entry
    roomy: bool = True,  # whether the fast eigendecomposition may be used
) -> Solved:
    """Return the solution of ``(K + constant + nu I) beta = y``."""
    tried = 0
    if len(y) >= REFINED_MIN_SAMPLES and is_worth_trying(K, nu, constant):
        refined = solve_refined(K, y, nu, constant)
        if refined is not None:
            beta, rounds, certified = refined
            return Solved(beta, refinements=rounds, certified=certified)
        tried = 1
    # Of a symmetric matrix rows are columns: LAPACK's order costs no transposition.
    A = np.array(K.T, dtype=np.float64, order="F")
    A += constant
    A.flat[:: len(A) + 1] += nu
    factor, info = dpotrf(A, lower=1, overwrite_a=1, clean=0)

    def residual(beta: np.ndarray) -> np.ndarray:
        return np.asarray(y - float64_product(K, beta) - constant * beta.sum() - nu * beta)

    target = RELATIVE_RESIDUAL * float(np.linalg.norm(y))
    if info == 0:
        beta, _ = dpotrs(factor, y, lower=1)
        rest = residual(beta)
        if not np.linalg.norm(rest) <= target:
            # One step of iterative refinement.
            beta += dpotrs(factor, rest, lower=1)[0]
            rest = residual(beta)
        certified = bool(np.linalg.norm(rest) <= target)
        return Solved(beta, factorisations=tried + 1, certified=certified)
    # No Cholesky factor: solve along the eigenvectors whose eigenvalues are not rounding.
    A[:] = K.T
    A += constant
    eigenvalues, V = eigh(A, driver="evd" if roomy else "ev", overwrite_a=True, check_finite=False)
    significant = eigenvalues > len(A) * np.finfo(float).eps * eigenvalues[-1]
    along = np.zeros(len(y))
    np.divide(V.T @ y, eigenvalues + nu, out=along, where=significant)
    beta = V @ along
    certified = bool(np.linalg.norm(residual(beta)) <= target)
    return Solved(beta, factorisations=tried + 1, fell_back=True, certified=certified)


@declare(
    name="lssvm",
    problem="least-squares",
    promise="rounding",
    summary="the kernel least-squares SVM by one Cholesky factorisation",
    reference="Suykens and Vandewalle 1999; SGD-LSSVM paper, Section 2",
    paper="sgdlssvm",
    kernels=MERCER,
    paths=("C",),
    counters=("shared_steps", "uncertified"),
)
@dataclass(eq=False, repr=False, kw_only=True)
class LSSVM(ClassifierWithC):
    """Least-squares SVM with the offset absorbed, by solving its linear system.

    Exact, in O(n^3) operations on a matrix of n^2 values. With the linear kernel the model is that
    of :class:`~svmbench.core.linear.alsvm.ALSVM`.

    Parameters
    ----------
    cache_mb : float
        Memory for the kernel matrix and its factor, MiB; a problem that needs more is refused.
    fit_intercept : bool
        Whether f has an offset.
    intercept_scaling : float
        Value s of the constant feature that absorbs it.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        ``alpha_i y_i``; alpha may be negative.
    n_iter_ : int
        1.
    counters_ : dict
        ``kernel_evaluations``, ``factorisations``, ``refinements`` (rounds in double precision),
        ``shared_steps`` (iterations side by side with other values of C), ``fallbacks`` to an
        eigendecomposition, ``uncertified`` (1 where rounding keeps the residual above 1e-10),
        ``support_vectors``, ``bounded_support_vectors`` (0).

    Examples
    --------
    >>> from svmbench.core.kernel_svm.lssvm import LSSVM
    >>> LSSVM(gamma=1.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """

    cache_mb: float = 4096.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0

    treats_offset: ClassVar[str] = "absorbed"

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Solve on one kernel matrix; there is nothing to start from."""
        return self._solve_at_each(source, y, [self.C])[0]

    def solve_along(
        self, source: KernelSource, y: np.ndarray, over: str, values: Sequence[Any]
    ) -> Iterable[KernelSolution]:
        """Along C every solution is on one matrix in memory; the first counts its values."""
        if over != "C":
            return super().solve_along(source, y, over, values)
        return self._solve_at_each(source, y, values)

    def _solve_at_each(
        self, source: KernelSource, y: np.ndarray, values: Sequence[float]
    ) -> list[KernelSolution]:
        K = self._matrix(source)
        constant = self.offset.value**2
        nu = 1.0 / (2.0 * np.array(values, dtype=np.float64))
        roomy = FAST_EIGH_BYTES * K.size / MIB <= float(self.cache_mb)
        shared = [Shifted() for _ in nu]
        if len(nu) > 1 and len(y) >= REFINED_MIN_SAMPLES:
            shared = solve_shifted(K, y, nu, constant, RELATIVE_RESIDUAL)
        solutions: list[KernelSolution] = []
        for each, (beta, n_steps, certified) in zip(nu, shared, strict=True):
            solved = (
                solve_directly(K, y, float(each), constant, roomy)
                if beta is None
                else Solved(beta, factorisations=0, certified=certified)
            )
            solutions.append(
                KernelSolution(
                    coefficients=solved.beta,
                    b=constant * float(solved.beta.sum()),
                    n_iter=1,
                    stop_reason="closed form",
                    counters={
                        "kernel_evaluations": 0 if solutions else K.size,
                        "factorisations": solved.factorisations,
                        "refinements": solved.refinements,
                        "shared_steps": n_steps,
                        "fallbacks": int(solved.fell_back),
                        "uncertified": int(not solved.certified),
                    },
                )
            )
        return solutions

    def _matrix(self, source: KernelSource) -> np.ndarray:
        """Return the kernel matrix; before any work, raise BudgetError if it does not fit."""
        # The values, and the factor in float64.
        needed, budget = 2 * 8 * source.n_samples**2 / MIB, float(self.cache_mb)
        K = dense_source(source).whole(budget / 2.0) if needed <= budget else None
        if K is None:
            msg = (
                f"lssvm needs {needed:.0f} MiB for the kernel matrix of {source.n_samples} samples "
                f"and its factor, and cache_mb is {budget:g}"
            )
            raise BudgetError(msg)
        return K
