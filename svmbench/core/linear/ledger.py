"""What ALSVM remembers of its samples: their exact sums, and which ones are in the model.

The sums ``A = sum x x'`` and ``q = sum y x`` are what the drift of the sequential inverse is
measured against and what it is rebuilt from. The fingerprints (eight bytes a sample) are what
makes ``remove`` refuse a sample that was never added, instead of quietly returning the model of
another problem.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.core.linear.moments import gram

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class SampleLedger:
    """Sums and fingerprints of the samples that a model stands on.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Samples with the constant feature, if there is one.
    y : ndarray of shape (n_samples,)
        Labels ±1.
    """

    def __init__(self, X: Any, y: np.ndarray) -> None:
        self.A = gram(X)
        self.q = np.asarray(X.T @ y).ravel()
        self._initial = fingerprints(X, y)
        self._counts: Counter[int] | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._initial) if self._counts is None else self._counts.total()

    def add(self, X: Any, y: np.ndarray) -> None:
        """Enter samples."""
        self._present().update(fingerprints(X, y).tolist())
        self.A += gram(X)
        self.q += np.asarray(X.T @ y).ravel()

    def require(self, X: Any, y: np.ndarray) -> None:
        """Raise ValueError unless every sample (this row with this label) is there."""
        present = self._present()
        wanted = Counter(fingerprints(X, y).tolist())
        missing = sum(max(0, n - present[mark]) for mark, n in wanted.items())
        if missing:
            msg = (
                f"{missing} of the {len(y)} samples to remove are not in the model with that "
                "label: they were never added (or not accepted), or have been removed already"
            )
            raise ValueError(msg)

    def remove(self, X: Any, y: np.ndarray) -> None:
        """Strike samples out that are there."""
        present = self._present()
        for mark in fingerprints(X, y).tolist():
            present[mark] -= 1
            if not present[mark]:
                del present[mark]
        self.A -= gram(X)
        self.q -= np.asarray(X.T @ y).ravel()

    def _present(self) -> Counter[int]:
        # Counting half a million marks takes a second: only whoever adds or removes pays for it.
        if self._counts is None:
            self._counts = Counter(self._initial.tolist())
        return self._counts


def fingerprints(X: Any, y: np.ndarray, *, block: int = 4096) -> np.ndarray:
    """Return a 64-bit mark of every row with its label, the same for dense and CSR rows.

    Each nonzero contributes a mix of its column and its bits; the marks are added, so neither the
    order nor explicit zeros matter.
    """
    marks = np.empty(len(y), dtype=np.uint64)
    for start in range(0, len(y), block):
        rows = sp.csr_array(X[start : start + block])
        bits = rows.data.view(np.uint64) ^ ((rows.indices.astype(np.uint64) + np.uint64(1)) * _ODD)
        bits = (bits ^ (bits >> np.uint64(31))) * _MIX
        bits ^= bits >> np.uint64(29)
        bits[rows.data == 0.0] = 0
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits, dtype=np.uint64)])
        marks[start : start + block] = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return marks ^ np.where(y > 0, _ODD, np.uint64(0))
