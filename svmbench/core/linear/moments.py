"""Sums of outer products, one per fold, in one pass over the samples.

The samples come without the constant feature: its row and column of the Gram matrix are the sums
of the features and the number of samples, so it costs no copy of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from svmbench.base.compiled import compiled
from svmbench.core.numeric.arrays import csr_parts, raw

#: Below this number of rows one plain product is as fast as anything.
FEW = 256

#: Rows of a dense block are chosen so that it takes about this many bytes: half an L2 cache.
BLOCK_BYTES = 512 * 1024

#: A CSR row with more than this share of nonzeros is cheaper as part of a dense block. Scattering
#: costs about 1 ns a product, BLAS about 1/16 of that for every product, zero or not.
DENSE_SHARE = 0.25


@compiled
def accumulate_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    y: np.ndarray,
    folds: np.ndarray,
    A: np.ndarray,
    sides: np.ndarray,
) -> None:
    """Add each row's outer product to the upper triangle of its fold's ``A``.

    ``A`` has shape (n_folds, d, d) with d at least n_features, and ``sides`` (n_folds, n_features,
    2) receives the sums of ``y x`` and of ``x``.

    Two rows of the triangle are filled at a time, so that each entry of the sample is read half as
    often; the unsigned indices spare the check for negative ones.
    """
    one, two = np.uint32(1), np.uint32(2)
    for i in range(len(y)):
        fold = np.uint32(folds[i])
        p, end = np.uint32(indptr[i]), np.uint32(indptr[i + 1])
        while p + one < end:
            x, j = data[p], np.uint32(indices[p])
            x2, j2 = data[p + one], np.uint32(indices[p + one])
            sides[fold, j, 0] += y[i] * x
            sides[fold, j, 1] += x
            sides[fold, j2, 0] += y[i] * x2
            sides[fold, j2, 1] += x2
            A[fold, j, j] += x * x
            for r in range(p + one, end):
                k = np.uint32(indices[r])
                A[fold, j, k] += x * data[r]
                A[fold, j2, k] += x2 * data[r]
            p += two
        if p < end:
            x, j = data[p], np.uint32(indices[p])
            sides[fold, j, 0] += y[i] * x
            sides[fold, j, 1] += x
            A[fold, j, j] += x * x


def fold_moments(
    X: Any, y: np.ndarray, folds: np.ndarray, n_folds: int, bias: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of outer products ``A`` and of ``y x`` of every fold.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Without the constant feature.
    y : ndarray of shape (n_samples,)
        Labels ±1.
    folds : ndarray of shape (n_samples,)
        Fold of each row, 0 … n_folds - 1.
    n_folds : int
    bias : float
        Value of the constant feature; 0 for none.

    Returns
    -------
    A : ndarray of shape (n_folds, d, d)
        Upper triangles, zeros below; d = n_features + 1 with a constant feature.
    q : ndarray of shape (n_folds, d)
    """
    n_samples, n_features = X.shape
    d = n_features + bool(bias)
    A = np.zeros((n_folds, d, d))
    sides = np.zeros((n_folds, n_features, 2))
    if sp.issparse(X) and X.nnz <= DENSE_SHARE * n_samples * n_features:
        accumulate_csr(*csr_parts(X), raw(y), raw(folds), A, sides)
    else:
        _accumulate_blocks(X, y, folds, A, sides)
    q = np.zeros((n_folds, d))
    q[:, :n_features] = sides[:, :, 0]
    if bias:
        q[:, -1] = bias * np.bincount(folds, weights=y, minlength=n_folds)
        A[:, :n_features, -1] = bias * sides[:, :, 1]
        A[:, -1, -1] = bias * bias * np.bincount(folds, minlength=n_folds)
    return A, q


def gram(X: Any) -> np.ndarray:
    """Return ``X' X`` of a dense or CSR matrix as a full symmetric array of shape (d, d)."""
    if X.shape[0] < FEW:
        product = X.T @ X
        return np.asarray(product.toarray() if sp.issparse(product) else product)
    n_samples = X.shape[0]
    A, _ = fold_moments(X, np.ones(n_samples), np.zeros(n_samples, dtype=np.int32), 1, 0.0)
    return A[0] + np.triu(A[0], 1).T


def _accumulate_blocks(
    X: Any, y: np.ndarray, folds: np.ndarray, A: np.ndarray, sides: np.ndarray
) -> None:
    """Do what :func:`accumulate_csr` does with BLAS-3 on blocks of rows that fit in the cache."""
    n_samples, n_features = X.shape
    n_folds = len(A)
    sums = [np.zeros((n_features, n_features), order="F") for _ in range(n_folds)]
    height = max(64, BLOCK_BYTES // (8 * max(1, n_features)))
    for start in range(0, n_samples, height):
        block = X[start : start + height]
        rows = np.ascontiguousarray(block.toarray() if sp.issparse(block) else block)
        labels = y[start : start + height]
        fold_of = folds[start : start + height]
        for fold in range(n_folds):
            if n_folds == 1:
                part, signs = rows, labels
            else:
                members = np.flatnonzero(fold_of == fold)
                part, signs = rows[members], labels[members]
            if len(signs):
                # The transpose of C-ordered rows is the Fortran matrix that BLAS wants: no copy.
                sums[fold] = dsyrk(1.0, part.T, beta=1.0, c=sums[fold], overwrite_c=1)
                # Two products with vectors: faster than one with a matrix of two columns.
                sides[fold, :, 0] += signs @ part
                sides[fold, :, 1] += np.ones(len(signs)) @ part
    for fold in range(n_folds):
        A[fold, :n_features, :n_features] = sums[fold]
