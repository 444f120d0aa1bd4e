"""Nyström's method: a linear SVM on the span of samples drawn at random.

Problem
    min_w  1/2 ||w||^2 + C sum_i max(0, 1 - y_i f(x_i)),   f without an offset,
    with w in the span of the m basis samples.
Given
    kernel blocks, y in {-1, +1}, C, m, a seed, tol.
Returned
    f's coefficients over the basis, at the optimum of the linear problem within tol.
Reference
    Williams and Seeger 2001; the form with the basis samples' Cholesky factor and a linear
    L1-SVM as in the CPSP paper, Section 5 (its program is the SGD-LSSVM paper's "Nyström").
Deviations
    - The basis is drawn without replacement; the authors' program takes every so many-th row of
      the file.
    - The factorisation pivots, and drops basis samples whose pivot is rounding (doubles, or more
      samples than dimensions), instead of adding to the diagonal: the rest are exact, and how
      many were dropped is counted.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf
from sklearn.utils import check_random_state

from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.feature_map import FeatureMap, FeatureMapSVM, precision_of, project
from svmbench.core.kernels.kernels import KernelSource


def nystrom_map(
    source: KernelSource,
    drawn: np.ndarray,  # int (m,): different samples
) -> FeatureMap:
    """Return the feature map over those of the drawn samples that are independent."""
    dtype, least = precision_of(source, len(drawn))
    K = source.block(drawn, drawn)
    # A distance of a sample to itself may come out as rounding instead of zero.
    np.fill_diagonal(K, source.diag()[drawn])
    factor, order, rank, _ = dpstrf(K, lower=1, tol=least * float(np.max(np.diag(K))))
    basis = drawn[order[:rank] - 1]
    L = np.tril(factor[:rank, :rank])
    return FeatureMap(basis, L, project(source, basis, L, dtype))


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

    :class:`~svmbench.core.kernel_svm.icf.ICF` chooses the samples greedily instead.

    Parameters
    ----------
    n_basis : int
        Basis samples, the papers' m; all, where there are fewer.
    random_state : int, RandomState or None
        Seed of the draw, and of the order of the passes.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.nystrom import Nystrom
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> Nystrom(n_basis=3, gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    def _map(self, source: KernelSource, m: int) -> FeatureMap:
        drawn = check_random_state(self.random_state).permutation(source.n_samples)[:m]
        return nystrom_map(source, np.sort(drawn))
