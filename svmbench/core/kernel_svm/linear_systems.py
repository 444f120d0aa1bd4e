"""Solve the systems of least-squares SVMs: one by a factor in single precision, many by iteration.

One system
----------
    A Cholesky factorisation in float32 takes half the time and memory of one in float64. Conjugate
    gradients in float64 with that factor as preconditioner restore the digits: two or three rounds
    for a well-conditioned matrix, more for others, each at the cost of two products.

One matrix with many shifts
---------------------------
Problem
    (K + c + nu_k I) beta_k = y   for k = 1 … m,   nu_k > 0: the least-squares SVM at m values of C.
Given
    K (n, n) positive semidefinite, c, y, the shifts nu_k, a residual to reach.
Returned
    beta_k with ||y - (K + c + nu_k I) beta_k|| <= residual ||y||, computed anew from beta_k, or
    as small as rounding allows; nothing for a system whose own factorisation is cheaper.
Reference
    Hestenes and Stiefel 1952, preconditioned by Nyström's approximation of K from some of its rows
    (Frangella, Tropp and Udell 2023, with sampled rows for their random projections):
        P_k = F'F + nu_k I,   F = L^-1 K_J,   L L' = K_JJ.
Shared work
    The rows J, F and F F' serve every shift. An iteration reads K and F once for all systems that
    are left: as products of matrices they cost hardly more than for one. The eigenvalues of RBF
    kernels fall fast, so that few iterations are needed unless nu_k is tiny.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dtrsm, strsv
from scipy.linalg.lapack import dpstrf, spotrf

from svmbench.core.kernels.kernels import PIVOT_TOL
from svmbench.core.numeric.conjugate_gradient import ConjugateGradients

#: Residual, relative to the right-hand side, at which a solution is accepted.
RELATIVE_RESIDUAL = 1e-10

#: Least diagonal shift, relative to the trace, that survives single precision.
LEAST_SHIFT = 0.5 * 2.0**-24

#: Largest number of rounds: as many cost as much as a factorisation in float64.
MAX_ROUNDS = 25

#: Factor from float64's rounding of the terms of a residual to the least residual to be expected:
#: a stable factorisation in double precision leaves no smaller one.
BACKWARD_ERROR = 16.0 * float(np.finfo(np.float64).eps)

#: Number of times that the residual may turn out larger than its recurrence says.
MAX_DRIFTS = 2

#: Rows that are multiplied at a time: in double precision they stay in the cache.
CACHED_ROWS = 32


def float64_product(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return ``K @ v`` in float64 for a matrix in float32 or float64."""
    if K.dtype == np.float64:
        return np.asarray(K @ v)
    out = np.empty(len(v))
    for start in range(0, len(K), CACHED_ROWS):
        out[start : start + CACHED_ROWS] = K[start : start + CACHED_ROWS].astype(np.float64) @ v
    return out


def is_worth_trying(K: np.ndarray, nu: float, constant: float) -> bool:
    """Return True if `nu` survives the rounding of ``K + constant`` to single precision."""
    return nu >= LEAST_SHIFT * (float(np.trace(K)) + constant * len(K))


def solve_refined(
    K: np.ndarray,  # (n, n): symmetric, float32 or float64; not changed
    y: np.ndarray,  # (n,)
    nu: float,
    constant: float,
) -> tuple[np.ndarray, int, bool] | None:
    """Solve ``(K + constant + nu I) beta = y``; None where single precision does not suffice.

    Return beta, the number of rounds, and whether the residual is at most 1e-10 of `y`; otherwise
    the residual is as small as rounding in float64 allows.
    """
    # Of a symmetric matrix rows are columns: LAPACK's order costs no transposition.
    A = np.array(K.T, dtype=np.float32, order="F")
    A += np.float32(constant)
    A.flat[:: len(A) + 1] += np.float32(nu)
    factor, info = spotrf(A, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None

    def approximate(r: np.ndarray) -> np.ndarray:
        # Scale tiny residuals into the range where float32 has all of its digits.
        size = float(np.abs(r).max()) or 1.0
        # One right-hand side: LAPACK's solver for many takes five times as long.
        solved = strsv(factor, (r / size).astype(np.float32), lower=1, overwrite_x=1)
        solved = strsv(factor, solved, lower=1, trans=1, overwrite_x=1)
        return size * np.asarray(solved, dtype=np.float64)

    def multiply(v: np.ndarray) -> np.ndarray:
        return np.asarray(float64_product(K, v) + constant * float(v.sum()) + nu * v)

    length, drifts = float(np.linalg.norm(y)), 0
    # ||A 1|| / ||1|| is near the norm of a matrix without large negative entries.
    target, norm = (
        RELATIVE_RESIDUAL * length,
        float(np.linalg.norm(multiply(np.ones(len(y))))) / len(y) ** 0.5,
    )
    state = ConjugateGradients(multiply, y.astype(np.float64), approximate, flexible=True)
    for n_rounds in range(1, MAX_ROUNDS + 1):
        if not state.step():
            return None
        if np.linalg.norm(state.r) <= target:
            # The recurrence drifts from the residual: compute that anew.
            state.r = y - multiply(state.x)
            rest = float(np.linalg.norm(state.r))
            if rest <= max(
                target, BACKWARD_ERROR * (norm * float(np.linalg.norm(state.x)) + length)
            ):
                return state.x, n_rounds, rest <= target
            drifts += 1
            if drifts > MAX_DRIFTS:
                return None
        state.turn()
        if not state.slope > 0.0:
            return None
    return None


#: Share of the rows that the preconditioner is made of, and their largest number.
SAMPLED_SHARE, SAMPLED_MAX_ROWS = 0.1, 1024

#: Iterations before the first forecast, and from one forecast to the next.
FORECAST_ITERATIONS = 6

#: Iterations, for each row of the matrix, that cost as much as a factorisation.
FACTOR_WORTH = 1.0 / 200.0


class Shifted(NamedTuple):
    """The solution for one shift."""

    beta: np.ndarray | None = None  # (n,): the solution; None if a factorisation is cheaper
    steps: int = 0  # iterations, with or without a solution
    certified: bool = False  # whether the residual was reached; if not, rounding allows no less


class Preconditioner:
    """Nyström's approximation of a matrix plus any shift, inverted."""

    def __init__(
        self,
        K: np.ndarray,  # (n, n): float64
        constant: float,  # added to every entry
        least: float,  # smallest pivot, relative to the largest
    ) -> None:
        n = len(K)
        m = min(SAMPLED_MAX_ROWS, max(1, int(SAMPLED_SHARE * n)))
        J = np.sort(np.random.default_rng(0).permutation(n)[:m])
        K_J = K[J] + constant
        chosen = K_J[:, J]
        L, order, rank, _ = dpstrf(chosen, lower=1, tol=least * float(np.max(np.diag(chosen))))
        # The transpose of C-ordered rows is a Fortran matrix, which is solved for in place.
        rows = K_J[order[:rank] - 1].T
        factor = np.tril(L[:rank, :rank])
        self._F = dtrsm(1.0, factor, rows, side=1, lower=1, trans_a=1, overwrite_b=1).T
        self._square = self._F @ self._F.T

    def at(self, nu: np.ndarray) -> None:
        """Factorise for some shifts; right-hand sides come in their order from now on."""
        self._nu, self._factors = nu[:, np.newaxis], []
        for each in nu:
            shifted = self._square.copy()
            shifted.flat[:: len(shifted) + 1] += each
            self._factors.append(cho_factor(shifted, lower=True, overwrite_a=True)[0])

    def keep(self, some: np.ndarray) -> None:
        """Keep only the shifts that are marked in `some`."""
        self._nu = self._nu[some]
        self._factors = [L for L, wanted in zip(self._factors, some, strict=True) if wanted]

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return ``P_k^-1 R_k`` for each row of `R`, by Sherman, Morrison and Woodbury."""
        inner = R @ self._F.T
        for k, factor in enumerate(self._factors):
            inner[k] = cho_solve((factor, True), inner[k], check_finite=False)
        return np.asarray((R - inner @ self._F) / self._nu)


def solve_shifted(
    K: np.ndarray,  # (n, n): symmetric, float32 or float64; not changed
    y: np.ndarray,  # (n,)
    nu: np.ndarray,  # (m,): above 0
    constant: float,  # added to every entry
    residual: float,  # length of the residual to reach, relative to the length of `y`
) -> list[Shifted]:
    """Return the solutions of ``(K + constant + nu_k I) beta_k = y`` that are worth it."""
    least = PIVOT_TOL[K.dtype.type]
    K = np.asarray(K, dtype=np.float64)
    solutions = [Shifted() for _ in nu]
    preconditioner = Preconditioner(K, constant, least)
    preconditioner.at(nu)
    length_y = float(np.linalg.norm(y))
    target, worth = residual * length_y, FACTOR_WORTH * len(y)

    # ||A 1|| / ||1|| is near the norm of a matrix without large negative entries.
    norm = (
        float(np.linalg.norm(_multiply(K, constant, np.ones((1, len(y))), nu[:1]))) / len(y) ** 0.5
    )
    # Places in `nu` of the systems that are left: the rows of all arrays below.
    left = np.arange(len(nu))
    R = np.tile(np.asarray(y, dtype=np.float64), (len(nu), 1))
    B = np.zeros_like(R)
    P = preconditioner.solve(R)
    slope, step = _dots(R, P), 0
    drifts = np.zeros(len(nu), dtype=np.int64)
    while len(left):
        step += 1
        AP = _multiply(K, constant, P, nu[left])
        a = slope / _dots(P, AP)
        B += a * P
        before, R = R, R - a * AP
        length = np.sqrt(_dots(R, R)[:, 0])
        keep = np.isfinite(length)
        again = np.flatnonzero(length <= target)
        if len(again):
            # The recurrence drifts from the residual: compute that anew.
            R[again] = y - _multiply(K, constant, B[again], nu[left[again]])
            length[again] = np.sqrt(_dots(R[again], R[again])[:, 0])
            sizes = np.sqrt(_dots(B[again], B[again])[:, 0])
            near = length[again] <= np.maximum(target, BACKWARD_ERROR * (norm * sizes + length_y))
            for k in again[near]:
                solutions[left[k]] = Shifted(B[k].copy(), step, bool(length[k] <= target))
            drifts[left[again]] += 1
            keep[again] &= ~near & (drifts[left[again]] <= MAX_DRIFTS)
        if step % FORECAST_ITERATIONS == 0:
            keep &= _worthwhile(length / length_y, residual, step, worth, keep)
        for k in left[~keep]:
            solutions[k] = solutions[k]._replace(steps=step)
        if not keep.all():
            left, R, before, B, P = left[keep], R[keep], before[keep], B[keep], P[keep]
            slope = slope[keep]
            preconditioner.keep(keep)
        if len(left):
            Z = preconditioner.solve(R)
            # Polak and Ribiere's form: a residual computed anew may have jumped.
            P = Z + _dots(Z, R - before) / slope * P
            slope = _dots(R, Z)
    return solutions


def _multiply(K: np.ndarray, constant: float, V: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Return ``(K + constant + nu_k I) v_k`` for each row of `V`."""
    AV = V @ K
    AV += constant * V.sum(axis=1, keepdims=True)
    AV += nu[:, np.newaxis] * V
    return np.asarray(AV)


def _dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the inner products of rows, shape (k, 1)."""
    return np.einsum("ij,ij->i", A, B)[:, np.newaxis]


def _worthwhile(
    lengths: np.ndarray,  # (k,): relative lengths of the residuals
    residual: float,  # to be reached
    step: int,  # iterations so far
    worth: float,  # iterations that cost as much as a factorisation
    left: np.ndarray,  # bool (k,): the systems that take part
) -> np.ndarray:
    """Return True for each system that ends before factorisations of all that are left would."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.log(lengths) / step
        ahead = np.where(rate < 0.0, np.log(residual / lengths) / rate, np.inf)
    keep = left.copy()
    # The hardest go first: without them, less is shared by the others.
    for k in np.argsort(-ahead):
        if keep[k] and ahead[k] > worth * np.count_nonzero(keep):
            keep[k] = False
    return keep
