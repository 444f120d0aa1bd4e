"""Nyström's method and ICF: a linear SVM on the span of some of the training samples.

Problem
    min_w  1/2 ||w||^2 + C sum_i max(0, 1 - y_i f(x_i)),   f(x) = w'phi(x) without an offset,
    with w in the span of m basis samples J. With K_JJ = L L', the features of x are
    phi(x) = L^-1 k_J(x): their inner products are the kernel's projection on the span, and f is the
    expansion sum_j c_j K(x_j, x) over the basis with c = L^-T w. ||w||^2 and f are exact; only the
    span is smaller than the space of the exact SVM.
Given
    kernel blocks or columns, y in {-1, +1}, C, m, a seed, tol.
Returned
    f's coefficients over the basis, at the optimum of the linear problem within tol.
Reference
    CPSP paper, Section 5, for both forms with a linear L1-SVM (its programs are the SGD-LSSVM
    paper's "Nyström" and "ICF").
    Nyström: Williams and Seeger 2001; J is drawn at random.
    ICF: Fine and Scheinberg 2001, Figure 2: K ~ G G', where each pivot is the sample with the
    largest diagonal entry of K - G G'; the rows of G are the features.
Deviations
    - Nyström draws the basis without replacement; the authors' program takes rows of the file at
      equal distances.
    - Nyström's factorisation pivots, and drops basis samples whose pivot is rounding (duplicates,
      or more samples than dimensions), instead of adding to the diagonal: the features stay exact.
      A pivot is rounding if it is beside the sample's own diagonal entry.
    - ICF does not swap rows: pivots are positions. It ends early if the largest pivot left is
      rounding.
    - counters_["dropped_pivots"] counts the samples that are missing from the basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm, strsm
from scipy.linalg.lapack import dpstrf
from sklearn.utils import check_random_state

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.problems import HINGE
from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.basis import BasisClassifier
from svmbench.core.kernels.columns import columns_of, warm_up_columns
from svmbench.core.kernels.kernels import PIVOT_TOL, KernelSource
from svmbench.core.kernels.products import LARGEST_GAMMA
from svmbench.core.kernels.rows import float32_rows
from svmbench.core.linear.dcd import DescentParameters, coordinate_descent
from svmbench.core.models.kernel_base import KernelSolution

#: Tolerance at which columns have the precision of the features.
COLUMN_TOL = {np.float64: 0.0, np.float32: 1e-2}

#: Largest number of feature values in double precision.
FLOAT64_MAX_FEATURE_VALUES = 1 << 22


@dataclass
class FeatureMap:
    """Features of the training samples over a basis of some of them."""

    basis: np.ndarray  # int (n_basis,): samples
    # (n_basis, n_basis): lower triangular, ``L L'`` is the kernel matrix of the basis
    L: np.ndarray
    features: np.ndarray  # (n_samples, n_basis): row i is ``L^-1 k_J(x_i)``

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Return the expansion's coefficients over the basis, for weights of the features."""
        return np.asarray(solve_triangular(self.L, w, lower=True, trans="T"))


def precision_of(source: KernelSource, n_basis: int) -> tuple[Any, float]:
    """Return the type of the features, and the least pivot that is not rounding."""
    inputs = source.inputs()
    large = inputs is not None and inputs[1].gamma > LARGEST_GAMMA
    single = source.n_samples * n_basis > FLOAT64_MAX_FEATURE_VALUES and not large
    # Values of a given matrix may have been computed in single precision.
    least = PIVOT_TOL[np.float32 if single or inputs is None else np.float64]
    return np.float32 if single else np.float64, least


def features_over(source: KernelSource, basis: np.ndarray, L: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the features of all samples, C-ordered of shape (n_samples, n_basis)."""
    n, everyone = source.n_samples, np.arange(source.n_samples)
    features = np.empty((n, len(basis)), dtype=dtype)
    if dtype is np.float32:
        rows = float32_rows(source)
        rows.fill(everyone, rows.columns(basis), 0, len(basis), features, everyone)
    else:
        features[:] = source.block(everyone, basis)
    # The transpose of C-ordered rows is a Fortran matrix, which is solved for in place.
    solve = strsm if dtype is np.float32 else dtrsm
    solved = solve(1.0, L.astype(dtype), features.T, lower=1, overwrite_b=1)
    return np.asarray(solved).T


def nystrom_map(
    source: KernelSource,
    drawn: np.ndarray,  # int (m,): different samples
) -> FeatureMap:
    """Return the feature map over the independent samples among the drawn ones."""
    dtype, least = precision_of(source, len(drawn))
    K = source.block(drawn, drawn)
    # Rounding may leave a sample at a distance from itself.
    np.fill_diagonal(K, source.diag()[drawn])
    # With 1 on the diagonal a pivot is judged beside its own entry, not beside the largest one.
    lengths = np.sqrt(np.diag(K))
    lengths[lengths == 0.0] = 1.0
    factor, order, rank, _ = dpstrf(K / np.outer(lengths, lengths), lower=1, tol=least)
    order = order[:rank] - 1
    basis = drawn[order]
    L = np.tril(factor[:rank, :rank]) * lengths[order, np.newaxis]
    return FeatureMap(basis, L, features_over(source, basis, L, dtype))


def icf_map(source: KernelSource, m: int) -> FeatureMap:
    """Return the feature map over at most m pivots."""
    dtype, least = precision_of(source, m)
    n = source.n_samples
    columns = columns_of(source, COLUMN_TOL[dtype])
    column = np.empty(n, dtype=columns.dtype)
    left = source.diag()
    least_left = least * left
    # G is stored transposed, so that a column of it is contiguous.
    G = np.empty((m, n), dtype=dtype)
    pivots = np.empty(m, dtype=np.int64)
    rank = m
    for k in range(m):
        p = int(np.argmax(left))
        if left[p] <= least_left[p]:
            rank = k
            break
        # Figure 2: the column of K - G G' at the pivot, over the root of the pivot.
        columns.column(p, column)
        pivots[k] = p
        np.subtract(column, G[:k, p] @ G[:k], out=G[k], casting="same_kind")
        G[k] /= dtype(np.sqrt(left[p]))
        left -= np.square(G[k], dtype=np.float64)
        # A residual that is rounding beside its own diagonal entry is zero, as those of the pivots.
        left[left <= least_left] = 0.0
        left[pivots[: k + 1]] = 0.0
    pivots = pivots[:rank]
    L = np.tril(G[:rank, pivots].T).astype(np.float64)
    return FeatureMap(pivots, L, np.ascontiguousarray(G[:rank].T))


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureMapSVM(BasisClassifier):
    """A linear SVM on the features of Nyström's method or of ICF.

    Parameters
    ----------
    tol : float
        Largest difference of two projected gradients of the linear SVM at the end.

    Attributes
    ----------
    basis_ : ndarray of int of shape (n_used,)
        The basis samples that the model uses.
    support_vectors_ : ndarray or csr_array of shape (n_used, n_features)
        Inputs of the basis samples.
    n_iter_ : int
        Passes of the linear solver.
    counters_ : dict
        ``basis_vectors``, ``dropped_pivots``, ``kernel_evaluations``, and the linear solver's
        ``passes``, ``visits``, ``updates``.
    """

    n_basis: int = 1000
    tol: float = 0.1
    max_iter: int = 1000

    @classmethod
    def warm_up_rest(cls) -> None:
        """Call the linear solver in single precision, and all makers of kernel values."""
        super().warm_up_rest()
        warm_up_columns()
        X, y = np.eye(2, dtype=np.float32), np.array([1.0, -1.0])
        coordinate_descent(
            X, y, HINGE, DescentParameters(C=1.0, eps=0.1, max_iter=2, bias=0.0, seed=1)
        )

    def _map(self, source: KernelSource, m: int) -> FeatureMap:
        """Return the feature map over at most m samples."""
        raise AssertionError("a feature-map solver defines _map")

    def solve(
        self, source: KernelSource, y: np.ndarray, start: np.ndarray | None = None
    ) -> KernelSolution:
        """Map the samples, and train the linear SVM there; coefficients are 0 outside the basis."""
        made, m = self._map(source, min(int(self.n_basis), source.n_samples)), int(self.n_basis)
        seed = int(check_random_state(self.random_state).randint(1, 2**31 - 1))
        parameters = DescentParameters(
            C=float(self.C),
            eps=float(self.tol),
            max_iter=int(self.max_iter),
            bias=0.0,
            seed=seed,
        )
        solution, _ = coordinate_descent(made.features, y, HINGE, parameters)
        coefficients = np.zeros(source.n_samples)
        coefficients[made.basis] = made.coefficients(solution.w)
        counters = {
            **solution.counters,
            "basis_vectors": len(made.basis),
            "dropped_pivots": min(m, source.n_samples) - len(made.basis),
            "kernel_evaluations": source.n_samples * len(made.basis),
        }
        self._dual = solution.dual
        return KernelSolution(coefficients, 0.0, solution.n_iter, solution.stop_reason, counters)

    def train(self, data: TrainingData) -> Self:
        """Map, solve, and store the expansion over the basis."""
        self._warn_of_few(data.X.shape[0])
        solution = self.solve(KernelSource.from_inputs(data.X, self.function), data.y)
        self.basis_ = np.flatnonzero(solution.coefficients)
        solution.points = data.X[self.basis_]
        solution.coefficients = solution.coefficients[self.basis_]
        return self._store(solution, data)


@declare(
    name="nystrom",
    problem="hinge-no-offset",
    promise="violation",
    paper="sgdlssvm",
    summary="linear SVM on the span of random samples (Nyström)",
    reference="Williams and Seeger 2001; CPSP paper, Section 5",
    kernels=("linear", "rbf", "poly"),
)
class Nystrom(FeatureMapSVM):
    """Kernel SVM without an offset, restricted to the span of `n_basis` random training samples.

    `ICF` chooses the samples greedily instead.

    Parameters
    ----------
    n_basis : int
        Basis samples, the papers' m; at most the number of samples.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.feature_map import Nystrom
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> Nystrom(n_basis=3, gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    def _map(self, source: KernelSource, m: int) -> FeatureMap:
        drawn = check_random_state(self.random_state).permutation(source.n_samples)[:m]
        return nystrom_map(source, np.sort(drawn))


@declare(
    name="icf",
    problem="hinge-no-offset",
    promise="violation",
    paper="sgdlssvm",
    summary="linear SVM on the span of greedily chosen samples (incomplete Cholesky)",
    reference="Fine and Scheinberg 2001; CPSP paper, Section 5",
    kernels=("linear", "rbf", "poly"),
)
class ICF(FeatureMapSVM):
    """Kernel SVM without an offset, restricted to the span of `n_basis` samples chosen greedily.

    The choice does not look at the labels: each next sample is the one that the span of the samples
    before it represents worst. `Nystrom` draws them at random, which is cheaper.

    Parameters
    ----------
    n_basis : int
        Pivots, the papers' m; at most the number of samples.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.feature_map import ICF
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> ICF(n_basis=3, gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    def _map(self, source: KernelSource, m: int) -> FeatureMap:
        return icf_map(source, m)
