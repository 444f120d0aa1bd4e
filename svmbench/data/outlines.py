"""Data sets of the registry without their values, to plan runs before the data are here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base.errors import DataError
from svmbench.data.dataset import Dataset
from svmbench.data.derive import is_stored_dense
from svmbench.data.registry import entry, parse_name


def outline(name: str, abnormal_ratio: float | None = None) -> Dataset:
    """Return a data set that has the sizes of its entry, but no values; nothing is read.

    Its classes have as many rows as the entry states, or equally many where it states none, in a
    random order. All values of `X` are 0, and dense arrays take no memory.

    Parameters
    ----------
    name : str
        A registered name, with parts and rows.
    abnormal_ratio : float, optional
        Number of abnormal rows for each normal row, as :func:`svmbench.data.as_novelty` keeps them.
        The largest class counts as normal.

    Raises
    ------
    DataError
        If the name is not that of a registered data set.
    """
    parts = parse_name(name)
    stated = entry(parts.base)
    counts = list(stated.counts) or _halves(stated.n_samples)
    if parts.with_test:
        more = list(stated.test_counts) or _halves(stated.n_test)
        if len(more) != len(counts):
            raise DataError(f"{name}: its parts differ in the number of classes")
        counts = [a + b for a, b in zip(counts, more, strict=True)]
    y = _labels(counts)[parts.start : parts.stop]
    classes = [str(number) for number in range(len(counts))]
    if abnormal_ratio is not None:
        n_normal = max(counts) * len(y) // sum(counts)
        n_abnormal = min(len(y) - n_normal, round(abnormal_ratio * n_normal))
        y, classes = _labels([n_abnormal, n_normal]), ["abnormal", "normal"]
    has_test = bool(stated.n_test) and not parts.with_test
    shape, density = (len(y), stated.n_features), stated.density or 0.0
    return Dataset(
        name=name,
        X=_zeros(shape, density),
        y=y,
        X_test=_zeros((stated.n_test, stated.n_features), density) if has_test else None,
        y_test=_labels(_halves(stated.n_test)) if has_test else None,
        facts={"classes": classes, "files": {}},
        sha256="",
    )


def _halves(n_rows: int) -> list[int]:
    return [n_rows // 2, n_rows - n_rows // 2]


def _labels(counts: Sequence[int]) -> np.ndarray:
    """Return the codes of so many rows of each class, in a random order."""
    codes = [-1, 1] if len(counts) == 2 else list(range(len(counts)))
    return np.random.default_rng(0).permutation(np.repeat(np.array(codes, dtype=np.int64), counts))


def _zeros(shape: tuple[int, int], density: float) -> Any:
    """Return zeros in the format in which data of a shape and a density are stored."""
    if is_stored_dense(shape, density):
        return np.broadcast_to(np.float64(0.0), shape)
    return sp.csr_array(shape, dtype=np.float64)
