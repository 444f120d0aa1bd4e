"""A data set for novelty detection: some classes are normal, the others abnormal and thinned.

A registry's entry may say so (``derivation.novelty``), and so may a config for any data set; which
rows are kept is decided in one place, :func:`svmbench.data.derive.thinned`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from svmbench.base.errors import DataError
from svmbench.data.derive import Derived, coded, thinned
from svmbench.data.entries import Novelty
from svmbench.data.prepare import Dataset, described


def as_novelty(
    source: Dataset, *, normal: Sequence[str] = (), ratio: float, seed: int = 0
) -> Dataset:
    """Return a data set whose normal rows have the label +1 and whose others are thinned.

    The rows of a test part are all kept.

    Parameters
    ----------
    source : Dataset
    normal : sequence of str
        The normal classes, as the data name them; if none is given, that of the label +1 (of more
        than two classes, the last).
    ratio : float
        How many abnormal rows are kept for each normal one; all, where there are fewer.
    seed : int, default=0
        Of their choice.

    Raises
    ------
    DataError
        If a class that is named is not there, or none is left to be abnormal.
    ValueError
        If the ratio is not a positive number.
    """
    names = [str(name) for name in source.facts["classes"]]
    what = Novelty(normal=tuple(normal) or (names[-1],), ratio=ratio, seed=seed)
    missing = [name for name in what.normal if name not in names]
    if missing:
        known = ", ".join(names[:12])
        raise DataError(f"{source.name} has no class {missing[0]!r}; its classes are {known}")
    if set(what.normal) == set(names):
        raise DataError(f"{source.name}: every class is normal, and none is left to be abnormal")
    words = _words(np.asarray(source.y), names)
    keep = np.flatnonzero(thinned(np.isin(words, what.normal), what))
    classes, y = coded(source.name, words[keep], what.normal)
    X_test, y_test = source.X_test, None
    if source.y_test is not None:
        is_normal = np.isin(_words(np.asarray(source.y_test), names), what.normal)
        y_test = np.where(is_normal, np.int64(1), np.int64(-1))
    said = f"{source.sha256} {what.model_dump_json()}"
    identity = hashlib.sha256(said.encode()).hexdigest()
    derived = Derived(source.X[keep], y, X_test, y_test, classes)
    facts = described(derived, {**source.facts, "sha256": identity})
    return replace(
        source, X=derived.X, y=y, X_test=X_test, y_test=y_test, facts=facts, sha256=identity
    )


def _words(y: np.ndarray, names: list[str]) -> np.ndarray:
    """Return the class's name of each row."""
    return np.array(names, dtype=object)[(y > 0).astype(np.intp) if len(names) == 2 else y]
