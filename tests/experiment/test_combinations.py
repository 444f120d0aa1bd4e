"""What every protocol does with every scaling, path and task: tiny data, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from runs import cells_in_process

from svmbench.experiment import folds

N = 36
SEED = 7
NAME = "tiny.csv"
LABELS = np.arange(N) % 2


def write_rows(path: Path, labels: np.ndarray) -> list[dict[str, str]]:
    """Write a data set whose first feature is the number of the row, and return its spec."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(labels), 2)) + labels[:, np.newaxis]
    lines = [
        f"{i},{a:.6f},{b:.6f},{'xyz'[c]}"
        for i, ((a, b), c) in enumerate(zip(noise, labels, strict=True))
    ]
    path.write_text("\n".join(lines) + "\n")
    return [{"file": str(path)}]


@pytest.fixture
def tiny(tmp_path: Path) -> list[dict[str, str]]:
    """Return a data set of two classes."""
    return write_rows(tmp_path / NAME, LABELS)


@dataclass
class Spy:
    """Which rows every scaler was fitted on, in the order of the fits."""

    fits: list[tuple[int, ...]] = field(default_factory=list)

    def rows(self) -> set[tuple[int, ...]]:
        """Return the different sets of rows."""
        return set(self.fits)


@pytest.fixture
def spy() -> Iterator[Spy]:
    """Watch the fits of the default scaler."""
    seen = Spy()
    real = folds.make_scaler

    def watched(kind: str, sparse: bool) -> Any:
        scaler = real(kind, sparse)
        fit = scaler.fit

        def spying(X: Any, y: Any = None) -> Any:
            seen.fits.append(tuple(sorted(np.asarray(X)[:, 0].astype(int).tolist())))
            return fit(X, y)

        scaler.fit = spying
        return scaler

    with mock.patch.object(folds, "make_scaler", watched):
        yield seen


def trainings(n_folds: int, *parts: object, within: np.ndarray | None = None) -> list[np.ndarray]:
    """Return the training rows of each fold of a stratified split, as row numbers."""
    rows = np.arange(N) if within is None else within
    seed = folds.derive_seed(SEED, NAME, *parts)
    return [rows[train] for train, _ in folds.outer_splits(LABELS[rows], n_folds, seed)]


def sets(arrays: list[np.ndarray]) -> set[tuple[int, ...]]:
    return {tuple(sorted(rows.tolist())) for rows in arrays}


GRID = {"C": [0.5, 1.0]}


@pytest.mark.parametrize("solver", ["alsvm", "alsvm-batch"])
def test_cv_scales_on_each_folds_training_rows(tiny: Any, spy: Spy, solver: str) -> None:
    block = {"protocol": "cv", "folds": 3}
    (cell,) = cells_in_process([{"name": solver, "grid": GRID}], block, datasets=tiny, seed=SEED)
    assert cell["metrics"]["accuracy_pct"] > 60
    assert spy.rows() == sets(trainings(3, "outer"))


@pytest.mark.parametrize("solver", ["nl-sgd", "kernel-pegasos", "mn-svm", "nn-isda", "csvc"])
@pytest.mark.parametrize("protocol", ["nested-cv", "cv", "holdout", "race", "nested-race"])
def test_a_grid_over_c_alone_runs(tiny: Any, solver: str, protocol: str) -> None:
    block = {"protocol": protocol, "outer_folds": 2, "inner_folds": 2, "folds": 2}
    if "race" in protocol:
        block |= {"repeats": 1, "tolerance": 10.0}
    entry = {"name": solver, "params": {"gamma": 0.5}, "grid": GRID}
    for cell in cells_in_process([entry], block, datasets=tiny, seed=SEED):
        assert cell["metrics"]["n_train"] > 0
