"""The training set of a sequential ALSVM: exact sums, and fingerprints of the samples in the model.

The sums ``A = sum x x'`` and ``q = sum y x`` measure the drift of the sequential inverse, which is
rebuilt from them. If they are too ill-conditioned, samples are kept beside them. By
the fingerprints (eight bytes a sample) ``remove`` refuses a sample that was never added, instead of
returning the model of another problem.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from svmbench.core.linear import least_squares
from svmbench.core.linear.least_squares import gram

#: A sum of squares with a larger relative error has lost too much to removals.
MAX_SUM_ERROR = 1e-8

#: Labels count as sorted if repeats are this many standard deviations above the number by chance.
SORTED_MIN_DEVIATIONS = 6.0

#: Labels of a single class count as sorted from this number on.
SORTED_MIN_LABELS = 50

#: Odd constants that mix the bits of fingerprints.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class TrainingSet:
    """Sums and fingerprints of the samples in a model.

    If the sums don't determine the weights in float64, the samples of the batch that made it so
    and of all later batches are kept beside the sums.
    """

    def __init__(
        self,
        X: Any,  # (n_samples, d): with the constant feature, if there is one
        y: np.ndarray,  # (n_samples,): labels ±1
        *,
        keeps: bool = False,
    ) -> None:
        self._initial = fingerprints(X, y)
        self._counts: Counter[int] | None = None
        # X (n_kept, d), y: samples that are kept. A (d, d), q (d,): sums of the others.
        self.X: Any = X if keeps else None
        self.y: np.ndarray | None = y if keeps else None
        left = slice(0, 0 if keeps else None)
        self.A, self.q = gram(X[left]), np.asarray(X[left].T @ y[left]).ravel()
        self._largest = np.zeros(len(self.q))

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._initial) if self._counts is None else self._counts.total()

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of all samples."""
        if self.X is None:
            return self.A.copy(), self.q.copy()
        return self.A + gram(self.X), self.q + np.asarray(self.X.T @ self.y).ravel()

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return ``q - A w`` of all samples; kept samples enter by their residuals."""
        found = self.q - self.A @ w
        if self.X is not None:
            found += np.asarray(self.X.T @ (self.y - np.asarray(self.X @ w).ravel())).ravel()
        return found

    def add(self, X: Any, y: np.ndarray) -> None:
        """Add samples; keep them if others are kept."""
        self._present().update(fingerprints(X, y).tolist())
        if self.X is not None:
            self._keep(X, y)
            return
        self.A += gram(X)
        self.q += np.asarray(X.T @ y).ravel()

    def keep_latest(self, A: np.ndarray, q: np.ndarray, X: Any, y: np.ndarray) -> None:
        """Keep the samples that were added last, beside the sums before them."""
        if self.X is None:
            self.A, self.q = A, q
            self._keep(X, y)

    def drop_kept(self) -> None:
        """Keep only sums, since they determine the weights again."""
        self.A, self.q = self.sums()
        self.X = self.y = None

    def triangle(self) -> tuple[np.ndarray, np.ndarray]:
        """Return R and c with ``R'R = A`` and ``R'c = q`` of all samples, if some are kept."""
        assert self.y is not None, "there are samples that are kept"
        # The principal axes of the sums represent the samples that are not kept.
        eigenvalues, V = eigh(self.A)
        seen = eigenvalues > len(self.q) * np.finfo(float).eps * max(eigenvalues[-1], 0.0)
        roots = np.sqrt(eigenvalues[seen])
        axes, targets = roots[:, np.newaxis] * V[:, seen].T, V[:, seen].T @ self.q / roots
        both = least_squares.stacked(np.column_stack([axes, targets]), self.X, self.y, 0.0)
        return both[: len(self.q), :-1], both[: len(self.q), -1]

    def has_lost_digits(self, nu: float) -> bool:
        """Return True if removed samples were so much larger than the rest that digits are lost."""
        left = np.diag(self.A) + nu
        return bool(np.any(np.finfo(float).eps * self._largest > MAX_SUM_ERROR * left))

    def _keep(self, X: Any, y: np.ndarray) -> None:
        if self.X is None or self.y is None:
            self.X, self.y = X, y
            return
        parts, stack = (self.X, X), np.vstack
        if any(sp.issparse(part) for part in parts):
            parts, stack = tuple(sp.csr_array(part) for part in parts), sp.vstack
        self.X, self.y = stack(parts), np.concatenate([self.y, y])

    def require(self, X: Any, y: np.ndarray) -> None:
        """Raise ValueError unless the model contains every sample, with its label."""
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
        """Remove samples, all of them present."""
        present, marks = self._present(), fingerprints(X, y).tolist()
        for mark in marks:
            present[mark] -= 1
            if not present[mark]:
                del present[mark]
        if self.X is not None and self.y is not None:
            struck = Counter(marks)
            kept = fingerprints(self.X, self.y).tolist()
            stays = [k for k, mark in enumerate(kept) if not _taken(struck, mark)]
            self.X, self.y = self.X[stays], self.y[stays]
            # The samples that were not kept are in the sums.
            rest = [k for k, mark in enumerate(marks) if _taken(struck, mark)]
            X, y = X[rest], y[rest]
        self._largest = np.maximum(self._largest, np.diag(self.A))
        self.A -= gram(X)
        self.q -= np.asarray(X.T @ y).ravel()

    def _present(self) -> Counter[int]:
        # Counting half a million marks takes a second: it is done by the first `add` or `remove`.
        if self._counts is None:
            self._counts = Counter(self._initial.tolist())
        return self._counts


class LabelOrder:
    """Test whether labels come class by class: it counts how often a label follows itself."""

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()
        self._repeats, self._last = 0, np.empty(0)

    def see(self, labels: np.ndarray) -> None:
        """Count labels in the order in which they come."""
        values, numbers = np.unique(labels, return_counts=True)
        self._counts.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
        self._repeats += int(np.sum(labels[1:] == labels[:-1]) + np.sum(self._last == labels[:1]))
        self._last = labels[-1:]

    def is_sorted(self) -> bool:
        """Return True if labels repeat far more often than in random order."""
        n = self._counts.total()
        if len(self._counts) < 2:
            return n >= SORTED_MIN_LABELS
        share = sum((count / n) ** 2 for count in self._counts.values())
        deviation = np.sqrt((n - 1) * share * (1.0 - share))
        return bool(self._repeats - (n - 1) * share > SORTED_MIN_DEVIATIONS * deviation)


def _taken(counts: Counter[int], mark: int) -> bool:
    """Return True if a mark is counted; lower its count by 1."""
    if not counts[mark]:
        return False
    counts[mark] -= 1
    return True


def fingerprints(X: Any, y: np.ndarray, *, block: int = 4096) -> np.ndarray:
    """Return a 64-bit mark of every row with its label, the same for dense and CSR rows."""
    # A mark is the sum of mixes of column and bits: order and explicit zeros don't matter.
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
