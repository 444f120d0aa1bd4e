"""Data sets for novelty detection, with normal classes and a sample of the abnormal rows.

An entry of the registry (``derivation.novelty``) or a config may ask for it.
:func:`svmbench.data.derive.thinned` selects the rows in both cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from svmbench.base.errors import DataError
from svmbench.data.dataset import Dataset, described
from svmbench.data.derive import Derived, coded, thinned
from svmbench.data.entries import Novelty


def as_novelty(
    source: Dataset, *, normal: Sequence[str] = (), ratio: float, seed: int = 0
) -> Dataset:
    """Return a data set with the label +1 for normal rows, and a sample of the abnormal rows.

    A test part keeps all rows.

    Parameters
    ----------
    source : Dataset
    normal : sequence of str
        Names of the normal classes. By default, the class with the label +1, or the last of more
        than two classes.
    ratio : float
        Number of abnormal rows for each normal row; if there are fewer, all are kept.
    seed : int, default=0
        Seed of the random sample.

    Raises
    ------
    DataError
        If a named class doesn't exist, or if no abnormal class is left.
    ValueError
        If the ratio is not a positive number.
    """
    names = [str(name) for name in source.facts["classes"]]
    novelty = Novelty(normal=tuple(normal) or (names[-1],), ratio=ratio, seed=seed)
    missing = [name for name in novelty.normal if name not in names]
    if missing:
        known = ", ".join(names[:12])
        raise DataError(f"{source.name} has no class {missing[0]!r}; its classes are {known}")
    if set(novelty.normal) == set(names):
        raise DataError(f"{source.name}: every class is normal; at least one must be abnormal")
    words = _words(np.asarray(source.y), names)
    keep = np.flatnonzero(thinned(np.isin(words, novelty.normal), novelty))
    classes, y = coded(source.name, words[keep], novelty.normal)
    X_test, y_test = source.X_test, None
    if source.y_test is not None:
        is_normal = np.isin(_words(np.asarray(source.y_test), names), novelty.normal)
        y_test = np.where(is_normal, np.int64(1), np.int64(-1))
    description = f"{source.sha256} {novelty.model_dump_json()}"
    identity = hashlib.sha256(description.encode()).hexdigest()
    derived = Derived(source.X[keep], y, X_test, y_test, classes)
    facts = described(derived, {**source.facts, "sha256": identity})
    return replace(
        source, X=derived.X, y=y, X_test=X_test, y_test=y_test, facts=facts, sha256=identity
    )


def _words(y: np.ndarray, names: list[str]) -> np.ndarray:
    """Return the name of the class of each row."""
    return np.array(names, dtype=object)[(y > 0).astype(np.intp) if len(names) == 2 else y]
