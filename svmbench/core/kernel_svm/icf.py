"""Incomplete Cholesky factorisation: a linear SVM on the span of samples chosen greedily.

Problem
    min_w  1/2 ||w||^2 + C sum_i max(0, 1 - y_i f(x_i)),   f without an offset,
    with w in the span of the m pivots.
Given
    kernel columns, y in {-1, +1}, C, m, tol.
Returned
    f's coefficients over the pivots, at the optimum of the linear problem within tol.
Reference
    Fine and Scheinberg 2001, Figure 2: K ~ G G', where each pivot is the sample with the largest
    diagonal entry of K - G G'; then a linear L1-SVM on the rows of G as in the CPSP paper,
    Section 5 (its program is the SGD-LSSVM paper's "ICF").
Deviations
    - Rows are not swapped: pivots are positions.
    - It ends early where the largest pivot left is rounding; how many are missing is counted.
"""

from __future__ import annotations

import numpy as np

from svmbench.core.contract.registry import declare
from svmbench.core.kernel_svm.feature_map import FeatureMap, FeatureMapSVM, precision_of
from svmbench.core.kernels.columns import columns_of
from svmbench.core.kernels.kernels import KernelSource

#: The tolerance that columns are asked for: single precision where features are kept in it.
TOLERANCE = {np.float64: 0.0, np.float32: 1e-2}


def icf_map(source: KernelSource, m: int) -> FeatureMap:
    """Return the feature map over at most m pivots."""
    dtype, least = precision_of(source, m)
    n = source.n_samples
    columns = columns_of(source, TOLERANCE[dtype])
    column = np.empty(n, dtype=columns.dtype)
    left = source.diag()
    least *= float(np.max(left))
    # The transpose of G: a column of it is written as one piece.
    G = np.empty((m, n), dtype=dtype)
    pivots = np.empty(m, dtype=np.int64)
    rank = m
    for k in range(m):
        p = int(np.argmax(left))
        if left[p] <= least:
            rank = k
            break
        columns.column(p, column)
        pivots[k] = p
        np.subtract(column, G[:k, p] @ G[:k], out=G[k], casting="same_kind")
        G[k] /= dtype(np.sqrt(left[p]))
        left -= np.square(G[k], dtype=np.float64)
        # Its own residual is zero; that of earlier pivots is rounding.
        left[pivots[: k + 1]] = 0.0
    pivots = pivots[:rank]
    L = np.tril(G[:rank, pivots].T).astype(np.float64)
    return FeatureMap(pivots, L, np.ascontiguousarray(G[:rank].T))


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

    The choice is blind to the labels: each next sample is the one that the span of those before
    represents worst. `Nystrom` draws them at random, which is
    cheaper.

    Parameters
    ----------
    n_basis : int
        Pivots, the papers' m; all samples, where there are fewer.
    random_state : int, RandomState or None
        Seed of the order of the passes.

    Examples
    --------
    >>> from svmbench.core.kernel_svm.icf import ICF
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> ICF(n_basis=3, gamma=1.0, C=10.0).fit(X, y).predict([[3.5]])
    array([1])
    """

    def _map(self, source: KernelSource, m: int) -> FeatureMap:
        return icf_map(source, m)
