"""A prepared data set, the facts that describe it, and the lock that guards its writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from filelock import FileLock

from svmbench.base import paths
from svmbench.base.errors import CacheError
from svmbench.data import store
from svmbench.data.derive import Derived, density


@dataclass(frozen=True)
class Dataset:
    """A prepared data set, with read-only arrays mapped from the cache.

    Attributes
    ----------
    name : str
        The requested name, with rows and parts.
    X : ndarray or csr_array of shape (n_samples, n_features)
        float64, C order or canonical CSR (int32 indices where they fit).
    y : ndarray of shape (n_samples,)
        int64: −1 and +1 for two classes, else 0 … k−1.
    X_test, y_test : as `X` and `y`, or None
        The test part, if there is one.
    facts : dict
        n_samples, n_features, n_test, task, classes (names in the order of the codes), counts,
        test_counts, density, storage, verified, source; values that JSON can have.
    sha256 : str
        The identity of the arrays' content.
    """

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray | None
    facts: dict[str, Any]
    sha256: str


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Hold the lock for writing the prepared arrays of a data set.

    Parameters
    ----------
    name : str
        Name of the data set.

    Raises
    ------
    CacheError
        If the lock or the files can't be written.
    """
    cache = paths.cache_dir()
    lock = cache / "locks" / f"{name}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CacheError(f"can't write to {cache}: {reason}{store.CACHE_HINT}") from error


def described(derived: Derived, facts: dict[str, Any]) -> dict[str, Any]:
    """Return `facts` with the facts of the arrays: rows, classes, counts, density."""
    all_facts = {
        **facts,
        "n_samples": int(derived.X.shape[0]),
        "n_features": int(derived.X.shape[1]),
        "n_test": 0 if derived.y_test is None else len(derived.y_test),
        "classes": derived.classes,
        "counts": _counts(derived.y, len(derived.classes)),
        "density": round(density(derived.X), 6),
        "storage": "csr" if sp.issparse(derived.X) else "dense",
    }
    if derived.y_test is not None:
        all_facts["test_counts"] = _counts(derived.y_test, len(derived.classes))
    else:
        all_facts.pop("test_counts", None)
    return all_facts


def _counts(y: np.ndarray, n_classes: int) -> list[int]:
    """Return the number of rows of each class, in one pass."""
    codes = (y + 1) // 2 if n_classes == 2 else y
    return [int(count) for count in np.bincount(codes, minlength=n_classes)]
