"""Kernel values of one sample with a list of others, for compiled loops that keep no matrix.

The inputs stand in one of three forms: CSR, dense, or, where the caller's memory budget holds it,
the kernel matrix itself. The arrays of the other forms are empty. Inputs far from zero are moved
near it before products are taken (`moved`, `moved_if_far`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import compiled, compiled_sums, inlined
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernels.kernels import MIB, KernelFunction
from svmbench.core.kernels.products import (
    gauss_double,
    squared_lengths,
)
from svmbench.core.numeric.arrays import canonical_csr, central_row, csr_parts, raw

LINEAR, RBF, POLY, SIGMOID = (KERNELS.index(k) for k in ("linear", "rbf", "poly", "sigmoid"))

#: Up to so many exponentials are taken one by one.
EXP_CALLS_MAX = 8


def moved(X: Any, function: KernelFunction) -> Any:
    """Return inputs that products tell the RBF distances of, where those of `X` lose digits.

    They are moved by a sample, which changes no distance; sparse ones along the features that every
    sample has an entry of. Others come back as they are.
    """
    lengths = squared_lengths(X)
    if function.name != "rbf" or not function.cancels(lengths, lengths):
        return X
    return _move(X)[0]


def moved_if_far(X: Any) -> tuple[Any, np.ndarray]:
    """Return inputs, moved if that makes them shorter by a factor of 4, and the move or zeros.

    The linear kernel then keeps the digits of differences. Moving changes no dual value where the
    signed multipliers sum to 0.
    """
    apart, place = _move(X)
    is_far = np.max(squared_lengths(X)) > 16.0 * np.max(squared_lengths(apart))
    return (apart, place) if is_far else (X, np.zeros(X.shape[1]))


def _move(X: Any) -> tuple[Any, np.ndarray]:
    """Return inputs moved by a sample, and by what; sparse ones along their full features."""
    if not sp.issparse(X):
        place = central_row(X)
        return X - place, place
    X = canonical_csr(X).copy()
    is_full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    place = np.where(is_full, X[[0]].toarray()[0], 0.0)
    X.data -= place[X.indices]
    return X, place


class Storage(NamedTuple):
    """Inputs of one kernel problem as read-only arrays."""

    K: np.ndarray  # (n, n) or (0, 0): the kernel matrix, where it is stored
    X: np.ndarray  # (n, d) or (0, d): dense inputs, where they are stored so
    # data, indices, indptr: CSR inputs, where they are stored so; else empty
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    squares: np.ndarray  # (n,): squared lengths of the samples
    diagonal: np.ndarray  # (n,): K(x_i, x_i)
    kind: int  # position of the kernel's name in ``KERNELS``
    gamma: float
    degree: float
    coef0: float


def require_storage(value: Any) -> None:
    """Raise ValueError unless `value` names a form of storage."""
    if value not in ("sparse", "dense"):
        msg = f"storage must be 'sparse' or 'dense', got storage={value!r}"
        raise ValueError(msg)


def stored(X: Any, storage: str) -> Any:
    """Return inputs as canonical CSR ("sparse") or as a C-ordered array ("dense")."""
    if storage == "sparse":
        return canonical_csr(X)
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)


def store(
    X: Any,  # ndarray or csr_array of shape (n_samples, n_features)
    function: KernelFunction,
    storage: str,  # {"sparse", "dense"}
) -> Storage:
    """Bring inputs into the wanted form."""
    d = X.shape[1]
    dense, parts = np.empty((0, d)), (np.empty(0), np.empty(0, np.int32), np.empty(0, np.int32))
    X = stored(moved(X, function), storage)
    if storage == "sparse":
        parts = csr_parts(X)
    else:
        dense = X
    return Storage(
        raw(np.empty((0, 0))),
        raw(dense),
        raw(parts[0]),
        raw(parts[1]),
        raw(parts[2]),
        raw(squared_lengths(X)),
        raw(function.diagonal(X)),
        KERNELS.index(function.name),
        float(function.gamma),
        float(function.degree),
        float(function.coef0),
    )


def with_matrix(s: Storage, X: Any, function: KernelFunction, cache_mb: float) -> Storage:
    """Return `s` with the whole kernel matrix of `X` (float64) where `cache_mb` MiB hold it.

    The linear kernel needs none: there is one weight vector.
    """
    if s.kind == LINEAR or X.shape[0] ** 2 * 8 > cache_mb * MIB:
        return s
    return s._replace(K=raw(function.between(X, X)))


@compiled
def sparse_product(
    data: np.ndarray, indices: np.ndarray, start: int, end: int, v: np.ndarray
) -> float:
    """Return the inner product of one CSR row with the dense vector `v`."""
    total = 0.0
    for q in range(start, end):
        total += data[q] * v[np.uint32(indices[q])]
    return total


@compiled_sums
def dense_product(x: np.ndarray, v: np.ndarray) -> float:
    """Return the inner product of two dense vectors."""
    total = 0.0
    for j in range(len(v)):
        total += x[j] * v[j]
    return total


@inlined
def product(s: Storage, v: np.ndarray, i: int) -> float:
    """Return the inner product of sample i with the dense vector `v`."""
    if len(s.indptr):
        return sparse_product(s.data, s.indices, s.indptr[i], s.indptr[i + 1], v)
    return dense_product(s.X[i], v)


@compiled
def add_sample(s: Storage, v: np.ndarray, i: int, factor: float) -> None:
    """Add `factor` times sample i to the dense vector `v`."""
    if len(s.indptr):
        for q in range(s.indptr[i], s.indptr[i + 1]):
            v[np.uint32(s.indices[q])] += factor * s.data[q]
    else:
        x = s.X[i]
        for j in range(len(v)):
            v[j] += factor * x[j]


@compiled
def clear_sample(s: Storage, v: np.ndarray, i: int) -> None:
    """Put zeros where sample i has entries."""
    if len(s.indptr):
        for q in range(s.indptr[i], s.indptr[i + 1]):
            v[s.indices[q]] = 0.0
    else:
        v[:] = 0.0


@inlined
def of_product(s: Storage, p: float, i: int, j: int) -> float:
    """Return K(x_i, x_j) of the samples' inner product `p`."""
    if s.kind == RBF:
        return np.exp(-s.gamma * max(0.0, s.squares[i] + s.squares[j] - 2.0 * p))
    if s.kind == POLY:
        return (s.gamma * p + s.coef0) ** s.degree
    if s.kind == SIGMOID:
        return np.tanh(s.gamma * p + s.coef0)
    return p


@compiled
def of_products(s: Storage, i: int, others: np.ndarray, n_others: int, out: np.ndarray) -> None:
    """Turn the inner products of sample i with others into kernel values, in place."""
    if s.kind == RBF and n_others > EXP_CALLS_MAX:
        squares = s.squares[others[:n_others]]
        gauss_double(out[:n_others].reshape(1, n_others), s.squares[i : i + 1], squares, s.gamma)
    else:
        for m in range(n_others):
            out[m] = of_product(s, out[m], i, others[m])


@compiled
def kernel_values(
    s: Storage,
    i: int,
    others: np.ndarray,
    n_others: int,
    work: np.ndarray,  # (d,): zeros, before and after
    out: np.ndarray,
    counters: np.ndarray,  # record (1,): ``evaluations`` grows by the number of values computed
) -> None:
    """Write K(x_i, x_k) for the first `n_others` entries k of `others` to `out`."""
    if len(s.K):
        for m in range(n_others):
            out[m] = s.K[i, others[m]]
        return
    counters[0]["evaluations"] += n_others
    # One sample is spread out once, so that each of the others is read in its own order.
    add_sample(s, work, i, 1.0)
    data, indices, indptr = s.data, s.indices, s.indptr
    if len(indptr):
        for m in range(n_others):
            k = others[m]
            out[m] = sparse_product(data, indices, indptr[k], indptr[k + 1], work)
    else:
        for m in range(n_others):
            out[m] = dense_product(s.X[others[m]], work)
    of_products(s, i, others, n_others, out)
    clear_sample(s, work, i)
