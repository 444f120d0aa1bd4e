"""Kernel values: the formula, the parameters `kernel` and `gamma`, and blocks and rows for solvers.

`KernelFunction` is the formula. `KernelSource` is the type that a solver reads: rows and blocks of
one kernel matrix by position, from inputs or precomputed, and a count of the
values that were asked for. Makers of many rows, and rows that stay in memory, are in ``rows.py``.
`ThreadPool` is a number of threads that share one job.

A kernel can be handed in: ``kernel="precomputed"``, or a function of two sets of samples. Both come
down to a matrix of kernel values: all training samples against themselves, and later new samples
against the training samples. A support vector is then known by its position.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from svmbench.core.contract.declaration import KERNELS
from svmbench.core.kernels.products import (
    BITS_MAX_FEATURES,
    SparseProducts,
    count_pieces,
    gauss_double,
    gauss_single,
    inner_products,
    is_binary,
    minus_half_distances,
    pack,
    squared_lengths,
    without_empty_columns,
)
from svmbench.core.numeric.arrays import raw
from svmbench.core.numeric.submatrix import Workspace, gather

#: Rows of a distance matrix that are computed at a time.
DISTANCE_ROWS = 512

#: The largest change of an RBF value by the rounding of inner products: if it may be larger,
#: differences are squared instead.
RBF_MAX_ROUNDING = 1e-9

#: A variance below this share of the mean square has lost half of its digits to cancellation.
VARIANCE_MIN_SHARE = 1e-8

#: The words that `gamma` may be, as in scikit-learn.
GAMMA_RULES = ("scale", "auto")

PRECOMPUTED = "precomputed"

#: The named kernel whose matrix need not be positive semidefinite.
INDEFINITE = "sigmoid"

#: Bytes.
MIB = 1 << 20

#: Pivots of a factor of a kernel matrix below this, relative to the largest kernel value of a point
#: with itself, are rounding, for kernel values of each precision.
PIVOT_TOL = {np.float64: 1e-10, np.float32: 1e-6}

#: Parts of a job for each thread.
SHARES = 4


def squared_distances(
    X: Any,  # dense, or CSR without duplicates
    out: np.ndarray | None = None,  # (n_samples, n_samples): where to write; may be memory-mapped
    dtype: Any = np.float32,  # without `out`; float64 for kernel values that are to be exact
) -> np.ndarray:
    """Return the squared distances of all pairs of rows, symmetric, with a zero diagonal.

    Computed in float64 by blocks and rounded once, so that float32 costs a kernel value at most
    about 1e-7; counted, where all inputs are 0 or 1.
    """
    n = X.shape[0]
    distances = np.empty((n, n), dtype=dtype) if out is None else out
    if X.shape[1] <= BITS_MAX_FEATURES and is_binary(X):
        words, table = pack(X), np.arange(X.shape[1] + 1, dtype=distances.dtype)
        others, everyone = np.ascontiguousarray(words.T), np.arange(n)
        counted = raw(table), np.asarray(distances), everyone, 0
        count_pieces(words, others, 0, n, True, *counted)
        return distances
    lengths = squared_lengths(X)
    for start in range(0, n, DISTANCE_ROWS):
        rows = slice(start, start + DISTANCE_ROWS)
        P = inner_products(X[rows], X[start:])
        P *= -2.0
        P += lengths[rows, np.newaxis]
        P += lengths[start:]
        np.maximum(P, 0.0, out=P)
        between_same = P[:, : P.shape[0]]
        np.minimum(between_same, between_same.T.copy(), out=between_same)
        np.fill_diagonal(between_same, 0.0)
        distances[rows, start:] = P
        distances[start:, rows] = P.T
    return distances


def gauss_of_distances(
    distances: np.ndarray, gamma: float, out: np.ndarray | None = None
) -> np.ndarray:
    """Return exp(-gamma * distances), of the precision and the shape (m, n) of `distances`.

    It is written to `out`, C-ordered, if that is given.
    """
    m, n = distances.shape
    K = np.empty((m, n), dtype=distances.dtype) if out is None else out
    if distances.dtype == np.float64:
        np.multiply(distances, -0.5, out=K)
        gauss_double(K, np.zeros(m), np.zeros(n), gamma)
        return K
    halves = np.empty((min(m, DISTANCE_ROWS), n), dtype=np.float32)
    zeros = np.zeros(max(m, n), dtype=np.float32)
    places = np.arange(len(halves))
    for start in range(0, m, DISTANCE_ROWS):
        rows = slice(start, start + DISTANCE_ROWS)
        part = halves[: len(distances[rows])]
        np.multiply(distances[rows], np.float32(-0.5), out=part)
        gauss_single(part, zeros[: len(part)], zeros[:n], gamma, K[rows], places)
    return K


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with its parameters.

    Attributes
    ----------
    name : {"linear", "rbf", "poly", "sigmoid"}
        x'z; exp(-gamma ||x - z||^2); (gamma x'z + coef0)^degree; tanh(gamma x'z + coef0).
    gamma, degree, coef0 : float, int, float
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def take(self, X: Any, rows: np.ndarray) -> Any:
        """Return the rows of some training samples, for `between`."""
        return X[rows]

    def between(self, A: Any, B: Any) -> np.ndarray:
        """Return the kernel values of all pairs, float64 of shape (len(A), len(B))."""
        A, B = without_empty_columns(A, B)
        if self.name != "rbf":
            return self.of_products(inner_products(A, B))
        a, b = squared_lengths(A), squared_lengths(B)
        if self.cancels(a, b):
            halves = minus_half_distances(A, B)
            return self.of_lengths(halves, np.zeros_like(a), np.zeros_like(b))
        return self.of_lengths(inner_products(A, B), a, b)

    def cancels(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Return True if RBF values by products of rows of these squared lengths lose digits."""
        longest = max(float(np.max(each, initial=0.0)) for each in (a, b))
        return 2.0 * self.gamma * longest * float(np.finfo(float).eps) > RBF_MAX_ROUNDING

    def of_lengths(self, P: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Turn inner products (m, n) into values of the RBF kernel, by squared lengths a and b."""
        gauss_double(P, a, b, self.gamma)
        return P

    def of_products(self, P: np.ndarray) -> np.ndarray:
        """Turn inner products into values of a kernel that needs nothing else (not RBF)."""
        if self.name == "linear":
            return P
        P *= P.dtype.type(self.gamma)
        P += P.dtype.type(self.coef0)
        return P**self.degree if self.name == "poly" else np.tanh(P, out=P)

    def diagonal(self, A: Any) -> np.ndarray:
        """Return K(x, x) of each row, float64 of shape (len(A),)."""
        if self.name == "rbf":
            return np.ones(A.shape[0])
        return self.of_products(np.array(squared_lengths(A), dtype=np.float64))


@dataclass(frozen=True)
class GivenKernel(KernelFunction):
    """A kernel whose values with all training samples are what is known of a sample."""

    name: str = PRECOMPUTED

    def take(self, X: Any, rows: np.ndarray) -> Any:
        """Return the positions of these training samples, for `between`."""
        return rows

    def between(self, A: Any, B: Any) -> np.ndarray:
        """Return the values of samples (m, n_train) with training samples at positions B."""
        return np.ascontiguousarray(A[:, B])

    def diagonal(self, A: Any) -> np.ndarray:
        """Return nothing: a sample's value with itself is not among those with others."""
        raise AssertionError("a given kernel has no diagonal")


class KernelSource:
    """One kernel matrix, by rows and blocks, with a count of the values computed.

    Made by `from_inputs` or `precomputed`; never an N x N matrix of its own.
    """

    def __init__(self, n_samples: int, counter: list[int] | None = None) -> None:
        self.n_samples = n_samples
        self._counter = [0] if counter is None else counter

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values handed out so far, by this source and its subsets."""
        return self._counter[0]

    @staticmethod
    def from_inputs(X: Any, function: KernelFunction) -> KernelSource:
        """Return a source that computes from inputs, ndarray or CSR (n_samples, n_features).

        Far more columns than entries cost nothing: those without an entry are left out.
        """
        (X,) = without_empty_columns(X)
        return _Inputs(X, function)

    @staticmethod
    def precomputed(K: np.ndarray, workspace: Workspace | None = None) -> KernelSource:
        """Return a source over a kernel matrix (n, n), which may be memory-mapped.

        The whole matrix of a subset is put into `workspace`, if there is one; see `whole`.
        """
        return _Matrix(K, workspace=workspace)

    def rows(self, I: Any) -> np.ndarray:  # noqa: E741
        """Return the rows at positions `I`, float64 of shape (len(I), n_samples)."""
        return self.block(I, slice(None))

    def block(self, I: Any, J: Any) -> np.ndarray:  # noqa: E741
        """Return the values of positions `I` with positions `J`, float64 (len(I), len(J))."""
        raise AssertionError("a source defines block")

    def whole(self, budget_mb: float) -> np.ndarray | None:
        """Return the whole matrix (n, n), C-ordered, if `budget_mb` MiB hold it; else None.

        It is in float64, or in float32 where a matrix of that precision was handed in, and not to
        be written to. Of a source with a workspace it is valid until the next one of any subset is
        asked for.
        """
        itemsize = np.dtype(self._stored).itemsize
        if self.n_samples**2 * itemsize > budget_mb * MIB:
            return None
        return self._whole()

    #: Precision of `whole`.
    _stored: Any = np.float64

    #: Whether values are looked up; if not, each one costs its computation.
    is_stored: bool = False

    def _whole(self) -> np.ndarray:
        return self.rows(np.arange(self.n_samples))

    def inputs(self) -> tuple[Any, KernelFunction] | None:
        """Return the samples (ndarray or CSR) and their kernel; None where only values are kept."""
        return None

    def diag(self) -> np.ndarray:
        """Return the diagonal, float64 of shape (n_samples,)."""
        raise AssertionError("a source defines diag")

    def subset(self, indices: np.ndarray) -> KernelSource:
        """Return a source over the samples at `indices`, in that order; it shares the counter."""
        raise AssertionError("a source defines subset")

    def _count(self, values: np.ndarray) -> np.ndarray:
        self._counter[0] += values.size
        return values


def _positions(indices: Any, n: int) -> np.ndarray:
    """Return positions among `n` as int64, from these, a slice or a mask."""
    if isinstance(indices, slice):
        return np.arange(*indices.indices(n))
    indices = np.asarray(indices)
    return np.flatnonzero(indices) if indices.dtype == np.bool_ else indices.astype(np.int64)


class _Inputs(KernelSource):
    def __init__(self, X: Any, function: KernelFunction, counter: list[int] | None = None) -> None:
        super().__init__(X.shape[0], counter)
        self.X, self.function = X, function
        self._products: SparseProducts | None = None

    def block(self, I: Any, J: Any) -> np.ndarray:  # noqa: E741
        if sp.issparse(self.X):
            few = self._few_values(I, J)
            if few is not None:
                return self._count(few)
        others = self.X if isinstance(J, slice) and slice(None) == J else self.X[J]
        return self._count(self.function.between(self.X[I], others))

    def _few_values(self, I: Any, J: Any) -> np.ndarray | None:  # noqa: E741
        """Return a block of CSR samples without making matrices; None where these are better."""
        if self._products is None:
            self._products = SparseProducts(self.X)
        products = self._products
        rows, others = (_positions(each, self.n_samples) for each in (I, J))
        if not products.pays_for(len(rows), len(others)):
            return None
        if self.function.name != "rbf":
            return self.function.of_products(products.between(rows, others))
        a, b = products.squared_lengths(rows), products.squared_lengths(others)
        if self.function.cancels(a, b):
            return None
        return self.function.of_lengths(products.between(rows, others), a, b)

    def inputs(self) -> tuple[Any, KernelFunction] | None:
        return self.X, self.function

    def diag(self) -> np.ndarray:
        return self._count(self.function.diagonal(self.X))

    def subset(self, indices: np.ndarray) -> KernelSource:
        return _Inputs(self.X[indices], self.function, self._counter)


class _Matrix(KernelSource):
    """Over a stored matrix of kernel values."""

    is_stored = True

    def __init__(
        self,
        matrix: np.ndarray,
        indices: np.ndarray | None = None,
        counter: list[int] | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            msg = f"a kernel matrix must be square, got shape {matrix.shape}"
            raise ValueError(msg)
        self.indices = np.arange(matrix.shape[0]) if indices is None else indices
        super().__init__(len(self.indices), counter)
        self.matrix, self.is_all, self.workspace = matrix, indices is None, workspace
        if matrix.dtype == np.float32:
            self._stored = np.float32

    def _whole(self) -> np.ndarray:
        if not self.matrix.flags.c_contiguous:
            K = self.matrix[np.ix_(self.indices, self.indices)].astype(self._stored, copy=False)
        elif self.is_all:
            K = self.matrix.astype(self._stored, copy=False)
        else:
            K = gather(self.matrix, self.indices, self.indices, self._stored, self.workspace)
        return self._count(K)

    def block(self, I: Any, J: Any) -> np.ndarray:  # noqa: E741
        rows, columns = self.indices[I], self.indices[J]
        if self.matrix.flags.c_contiguous:
            return self._count(gather(self.matrix, rows, columns, np.float64))
        return self._count(np.array(self.matrix[np.ix_(rows, columns)], dtype=np.float64))

    def diag(self) -> np.ndarray:
        return self._count(np.array(self.matrix[self.indices, self.indices], dtype=np.float64))

    def subset(self, indices: np.ndarray) -> KernelSource:
        return _Matrix(self.matrix, self.indices[indices], self._counter, self.workspace)


def is_given(kernel: Any) -> bool:
    """Return True if a parameter `kernel` is a function or ``"precomputed"``."""
    return callable(kernel) or (isinstance(kernel, str) and kernel == PRECOMPUTED)


def require_kernel(solver: str, taken: Sequence[str], kernel: Any) -> None:
    """Raise ValueError unless the parameter `kernel` of a solver is one that it takes."""
    if kernel in taken:
        return
    if kernel not in KERNELS:
        msg = f"kernel must be one of {', '.join(KERNELS)}, got kernel={kernel!r}"
    elif set(taken) == set(KERNELS) - {INDEFINITE}:
        msg = (
            f"{solver} needs a positive semidefinite kernel, one of {', '.join(taken)}; "
            f"got kernel={kernel!r}"
        )
    else:
        msg = f"{solver} takes the kernel{'s'[: len(taken) - 1]} {' and '.join(taken)}"
        msg += f"; got kernel={kernel!r}"
    raise ValueError(msg)


def values_with(kernel: Callable[[Any, Any], Any], X: Any, others: Any) -> np.ndarray:
    """Return the float64 values of a kernel function; ValueError unless (len(X), len(others))."""
    product = kernel(X, others)
    # A product of sparse samples is sparse.
    values = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)
    expected = (_length(X), _length(others))
    if values.shape != expected:
        msg = f"kernel returned values of shape {values.shape}, and there are {expected} samples"
        raise ValueError(msg)
    return values


def square_kernel(K: Any) -> Any:
    """Return a kernel matrix of training samples; TypeError if sparse, ValueError if not square."""
    if sp.issparse(K):
        msg = "Sparse precomputed kernels are not supported."
        raise TypeError(msg)
    if np.ndim(K) == 2 and np.shape(K)[0] != np.shape(K)[1]:
        n, m = np.shape(K)
        msg = f"Precomputed matrix must be a square matrix. Input is a {n}x{m} matrix."
        raise ValueError(msg)
    return K


def _length(samples: Any) -> int:
    return int(samples.shape[0]) if hasattr(samples, "shape") else len(samples)


def gamma_value(gamma: Any, X: Any) -> float:
    """Return the number of a parameter `gamma` on some inputs; "auto" is 1 / n_features."""
    if isinstance(gamma, str):
        return gamma_scale(X) if gamma == "scale" else 1.0 / X.shape[1]
    return float(gamma)


def gamma_scale(X: Any) -> float:
    """Return the gamma called ``"scale"``: 1 / (n_features * variance of X); 1 if flat."""
    # Summed over the same numbers in the same order, dense or sparse: a last bit of gamma can fork
    # a solver's way.
    values = X.data if sp.issparse(X) else X.ravel()
    values = values[values != 0.0]
    size = X.shape[0] * X.shape[1]
    mean, square = values.sum() / size, values @ values / size
    variance = float(square - mean**2)
    if variance < VARIANCE_MIN_SHARE * square:
        variance = _variance_by_deviations(values, size)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _variance_by_deviations(values: np.ndarray, size: int) -> float:
    """Return the variance of some nonzero values among zeros, `size` numbers in all."""
    # The mean of squared deviations does not cancel. Deviations from the first value are exactly 0
    # where all numbers are the same.
    n_zeros = size - len(values)
    deviations, of_zeros = values - values[0], -values[0] if n_zeros else 0.0
    mean = (deviations.sum() + n_zeros * of_zeros) / size
    deviations -= mean
    return float((deviations @ deviations + n_zeros * (of_zeros - mean) ** 2) / size)


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Counter:
    """A count that several threads add to."""

    def __init__(self) -> None:
        self.total = 0
        self._lock = threading.Lock()

    def add(self, n: int) -> None:
        """Add `n`."""
        with self._lock:
            self.total += n


class ThreadPool:
    """The calling thread and its helpers; a context manager that joins them at its end."""

    def __init__(
        self,
        n_jobs: int,  # threads in all; -1: one a processor that this process may use
    ) -> None:
        self.size = processors() if n_jobs == -1 else int(n_jobs)
        self._helpers = ThreadPoolExecutor(self.size - 1) if self.size > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._helpers:
            self._helpers.shutdown()

    def share(
        self,
        n: int,
        multiple: int,  # parts start at multiples of this, whatever the number of threads
        task: Callable[[int, int], None],  # must not touch what another part does
    ) -> None:
        """Call ``task(start, stop)`` for parts of ``range(n)``, some a thread, and wait for all."""
        pieces = -(-n // multiple)
        share = -(-pieces // (SHARES * self.size)) * multiple
        if self._helpers is None or n <= share:
            task(0, n)
            return
        starts = iter(range(0, n, share))

        def work() -> None:
            # Each thread takes what is next: one that begins late, or is held up, does less.
            for start in starts:
                task(start, min(start + share, n))

        others = [self._helpers.submit(work) for _ in range(self.size - 1)]
        work()
        for other in others:
            other.result()
