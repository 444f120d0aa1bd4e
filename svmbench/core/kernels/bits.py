"""Samples of two values, 0 and one other, as machine words: inner products by counting bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.compiled import JIT_DISABLED, compiled, wide_vectors
from svmbench.core.numeric.arrays import csr_parts, raw

#: Counts that are made at a time: they stay in the first-level cache.
COUNTS_WIDTH = 512

#: Samples of more features than this are not kept as bits.
BITS_MAX_FEATURES = 1024

#: Rows that are brought into bits at a time.
PACK_ROWS = 4096


def common_value(X: Any) -> float | None:
    """Return the one value other than 0 that a dense or CSR matrix holds; None if there are more.

    A matrix without any such value has 1.
    """
    values = (X.data if sp.issparse(X) else X).reshape(-1)
    # Almost all inputs of more values show it in their first ones.
    for some in (values[:64], values):
        others = some[some != 0.0]
        if len(others) and not np.all(others == others[0]):
            return None
    return float(others[0]) if len(others) else 1.0


def is_binary(X: Any) -> bool:
    """Return True if all values of a dense or CSR matrix are 0 or 1."""
    return common_value(X) == 1.0


def pack(X: Any) -> np.ndarray:
    """Mark the values of each row that are not 0, in words: feature 64 w + k is bit k of word w.

    X is dense, or CSR without duplicates; the words have the shape (n_samples, at least 1).
    """
    n_samples, n_features = X.shape
    words = np.zeros((n_samples, max(1, -(-n_features // 64))), dtype=np.uint64)
    if sp.issparse(X):
        _pack_sparse(*csr_parts(X), words)
        return words
    for top in range(0, n_samples, PACK_ROWS):
        rows = slice(top, top + PACK_ROWS)
        is_set = np.zeros((len(words[rows]), 64 * words.shape[1]), dtype=bool)
        np.not_equal(X[rows], 0.0, out=is_set[:, :n_features])
        words[rows] = np.packbits(is_set, axis=1, bitorder="little").view("<u8")
    return words


@compiled
def _pack_sparse(
    data: np.ndarray, indices: np.ndarray, starts: np.ndarray, words: np.ndarray
) -> None:
    for i in range(len(words)):
        for p in range(starts[i], starts[i + 1]):
            if data[p] != 0.0:
                bit = np.uint64(indices[p])
                words[i, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


def _python_ones(word: int) -> int:
    """Return the number of bits of a word that are set."""
    return int(word).bit_count()


def _make_ones() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def ones(typing_context: Any, word: Any) -> Any:
        """Return the number of bits of a 64-bit word that are set."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.uint64(types.uint64), emit

    return ones


ones: Any = _python_ones if JIT_DISABLED else _make_ones()


@compiled
def count_pieces(
    A: np.ndarray,  # uint64 (m, n_words): words of samples
    B: np.ndarray,  # uint64 (n_words, n): of others, word by word
    start: int,  # the others from `start` to before `stop`
    stop: int,
    differing: bool,  # count the bits that are set in one of the two; else those set in both
    table: np.ndarray,  # float32 or float64 (n_bits + 1,)
    out: np.ndarray,  # row i goes to ``out[at[i], left : left + stop - start]``
    at: np.ndarray,
    left: int,
) -> None:
    """Write a table's value at the number of bits that two samples differ in, or share."""
    wide_vectors()
    n_words = len(B)
    counts = np.empty(COUNTS_WIDTH, dtype=np.uint64)
    for first in range(start, stop, COUNTS_WIDTH):
        end = min(first + COUNTS_WIDTH, stop)
        for i in range(len(A)):
            for k in range(end - first):
                counts[k] = 0
            for w in range(n_words):
                word, others = A[i, w], B[w, first:end]
                if differing:
                    for k in range(len(others)):
                        counts[k] += ones(word ^ others[k])
                else:
                    for k in range(len(others)):
                        counts[k] += ones(word & others[k])
            target = out[at[i], left + first - start : left + end - start]
            for k in range(len(target)):
                target[k] = table[counts[k]]


def table_of(
    function: Any,
    n_features: int,
    value: float = 1.0,  # what a set bit stands for
) -> np.ndarray:
    """Return the kernel's value at every count: of differing bits for RBF, else of shared ones."""
    products = value**2 * np.arange(n_features + 1, dtype=np.float64)
    is_rbf = function.name == "rbf"
    return raw(np.exp(-function.gamma * products) if is_rbf else function.of_products(products))
