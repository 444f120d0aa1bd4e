"""What every protocol does with every scaling, path and task: tiny data, in this process.

The combinations are those of the registries. Each runs, with a check of which rows every scaler was
fitted on (the first feature is the number of the row), or is a config error that names it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import numpy as np
import pytest
import yaml
from runs import cells_in_process
from sklearn.preprocessing import MinMaxScaler

from svmbench.base.errors import ConfigError
from svmbench.base.paths import PACKAGE
from svmbench.baselines.catalogue import solver_class, solvers
from svmbench.experiment.config.loader import load_config
from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds, protocols
from svmbench.experiment.settings.blocks import TaskName
from svmbench.schema.scores import SCORES
from svmbench.schema.specs import PLOT_KINDS

N, SEED, NAME = 45, 7, "tiny.csv"
TASKS = get_args(TaskName)
SCALINGS = sorted({scaling for one in protocols().values() for scaling in one.scalings})
Rows = frozenset[int]


def labels_of(task: str) -> np.ndarray:
    """Return labels of a task; of the two of `one-class`, 1 is the normal one."""
    if task == "multiclass":
        return np.arange(N) % 3
    return np.where(np.arange(N) % 3 == 0, -1, 1)


def write_rows(path: Path, labels: np.ndarray) -> list[dict[str, str]]:
    """Write a data set whose first feature is the number of the row, and return its spec."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(N, 2)) + labels[:, np.newaxis]
    rows = zip(noise, labels, strict=True)
    lines = [f"{i},{a:.6f},{b:.6f},{label}" for i, ((a, b), label) in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return [{"file": str(path)}]


@dataclass
class Spy:
    """Which rows every scaler was fitted on."""

    fits: list[Rows] = field(default_factory=list)


@pytest.fixture
def spy() -> Iterator[Spy]:
    """Watch the fits of the default scaler, wherever it was made or copied."""
    seen = Spy()
    fit = MinMaxScaler.fit

    def spying(self: Any, X: Any, y: Any = None) -> Any:
        seen.fits.append(frozenset(np.asarray(X)[:, 0].astype(int).tolist()))
        return fit(self, X, y)

    with mock.patch.object(MinMaxScaler, "fit", spying):
        yield seen


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit once, and leave the garbage be: nothing is measured here."""
    monkeypatch.setattr(measure, "MIN_REPEATS", 1)
    monkeypatch.setattr(measure, "MIN_TOTAL_S", 0.0)
    monkeypatch.setattr(measure, "quiet", contextlib.nullcontext)


#: The file whose rows a test splits, once it is written.
WRITTEN: list[Path] = []


def content_name() -> str:
    """Return the name that seeds the folds of a user's own file: it has the file's checksum."""
    return "file " + hashlib.sha256(WRITTEN[-1].read_bytes()).hexdigest()[:16]


def trainings(y: np.ndarray, n_folds: int, *parts: object) -> list[np.ndarray]:
    """Return the training rows of each fold of a stratified split."""
    seed = folds.derive_seed(SEED, content_name(), *parts)
    return [train for train, _ in folds.outer_splits(y, n_folds, seed)]


def outer(y: np.ndarray) -> list[np.ndarray]:
    return trainings(y, 3, "outer")


def inner(y: np.ndarray) -> list[np.ndarray]:
    parts = [
        [train[rows] for rows in trainings(y[train], 2, "inner", fold)]
        for fold, train in enumerate(outer(y))
    ]
    return list(itertools.chain(*parts))


def kept(y: np.ndarray) -> list[np.ndarray]:
    return [folds.holdout_split(y, 0.2, folds.derive_seed(SEED, content_name(), "test"))[0]]


def everything(y: np.ndarray) -> list[np.ndarray]:
    return [np.arange(len(y))]


#: Settings of small runs, and the rows that scalers may see, by protocol and scaling.
SMALL: dict[str, dict[str, Any]] = {
    "nested-cv": {"outer_folds": 3, "inner_folds": 2},
    "cv": {"folds": 3},
    "chosen-cv": {"folds": 3},
    "race": {"repeats": 1, "tolerance": None},
    "scored-race": {"repeats": 1},
    "calls": {"repeats": 1},
    "simulate": {"repeats": 5},
    "nested-race": {"outer_folds": 3, "inner_folds": 2, "repeats": 1},
}
SEEN: dict[tuple[str, str], Any] = {
    ("nested-cv", "outer-fold"): outer,
    ("nested-cv", "every-fold"): lambda y: [*inner(y), *outer(y)],
    ("cv", "outer-fold"): outer,
    ("cv", "every-fold"): outer,
    ("chosen-cv", "outer-fold"): outer,
    ("chosen-cv", "every-fold"): outer,
    ("holdout", "outer-fold"): kept,
    ("sampled-holdout", "outer-fold"): kept,
    ("path", "outer-fold"): kept,
    ("fit", "outer-fold"): everything,
    ("race", "outer-fold"): everything,
    ("scored-race", "outer-fold"): kept,
    ("simulate", "outer-fold"): everything,
    ("nested-race", "outer-fold"): outer,
    ("check", "outer-fold"): everything,
    ("screening", "outer-fold"): kept,
    ("screening-sample", "outer-fold"): kept,
    ("calls", "outer-fold"): kept,
}
TRAINING = [name for name, one in protocols().items() if one.scalings]
#: Every path that a solver of two classes declares, and a solver without any.
PATHS = [
    ("alsvm", "C"),
    *(
        (name, over)
        for name, one in solvers().items()
        if one.task == "binary"
        for over in one.paths
    ),
]


#: The solver whose draws can be simulated.
DRAWS = {"name": "fosvm2", "grid": {"n_candidates": [2, 3]}}


def grid_of(protocol: str, over: str) -> dict[str, Any]:
    """Return a grid for a protocol, if it takes one."""
    takes = protocols()[protocol].grid != "none"
    return {"grid": {over: [0.25, 0.5]}} if takes else {}


def test_every_protocol_and_scaling_has_its_expected_rows_here() -> None:
    shared = {(name, scaling) for name in protocols() for scaling in ("all-rows", "none")}
    declared = {(name, s) for name, one in protocols().items() for s in one.scalings}
    assert declared - shared == set(SEEN)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("protocol", list(protocols()))
def test_every_scaling_runs_on_its_rows_or_is_refused(
    tmp_path: Path, spy: Spy, protocol: str, scaling: str
) -> None:
    y = labels_of("binary")
    datasets = write_rows(tmp_path / NAME, y)
    WRITTEN.append(tmp_path / NAME)
    declared = protocols()[protocol]
    block = {"protocol": protocol, "scaling": scaling, **SMALL.get(protocol, {})}
    entries: list[dict[str, Any]] = [
        {"name": "alsvm", "grid": {"C": [0.5, 1.0]}}
        if declared.grid != "none"
        else {"name": "alsvm"}
    ]
    detects = declared.tasks == ("one-class",)
    if detects:
        entries, block["task"] = [DRAWS], "one-class"
    if scaling not in declared.scalings:
        said = refusal(tmp_path, block, datasets, entries)
        assert "blocks[0].scaling" in said
        return
    for cell in cells_in_process(entries, block, datasets=datasets, seed=SEED):
        assert cell["metrics"]["n_train"] > 0
        assert metrics_of(cell) <= known_metrics(protocol)
    if scaling == "none":
        assert not spy.fits
        return
    rows = everything(y) if scaling == "all-rows" else SEEN[protocol, scaling](y)
    if detects and scaling != "all-rows":
        rows = [one[y[one] == 1] for one in rows]
    assert set(spy.fits) == {frozenset(one.tolist()) for one in rows}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("protocol", "scaling"), [(p, s) for p in TRAINING for s in protocols()[p].scalings]
)
def test_every_task_runs_with_every_scaling_or_is_refused(
    tmp_path: Path, spy: Spy, protocol: str, scaling: str, task: str
) -> None:
    y = labels_of(task)
    datasets = write_rows(tmp_path / NAME, y)
    WRITTEN.append(tmp_path / NAME)
    block = {"protocol": protocol, "task": task, "multiclass": "one-vs-one", "scaling": scaling}
    block |= SMALL.get(protocol, {})
    entries: list[dict[str, Any]] = [{"name": "alsvm", **grid_of(protocol, "C")}]
    if task not in protocols()[protocol].tasks:
        said = refusal(tmp_path, block, datasets, entries)
        assert f"blocks[0].task: protocol '{protocol}' can't do the task '{task}'" in said
        return
    if task == "one-class":
        entries = [{"class": "sklearn.svm.OneClassSVM", **grid_of(protocol, "nu")}]
        entries += [
            {"name": name, **grid_of(protocol, "nu")}
            for name, one in solvers().items()
            if one.task == task and "nu" in solver_class(name)._get_param_names()
        ]
        if protocols()[protocol].tasks == (task,):
            entries = [DRAWS]
    for cell in cells_in_process(entries, block, datasets=datasets, seed=SEED):
        assert cell["metrics"]["n_train"] > 0
        assert metrics_of(cell) <= known_metrics(protocol)
    if scaling == "none":
        assert not spy.fits
        return
    rows = everything(y) if scaling == "all-rows" else SEEN[protocol, scaling](y)
    if task == "one-class" and scaling != "all-rows":
        rows = [one[y[one] == 1] for one in rows]
    assert set(spy.fits) == {frozenset(one.tolist()) for one in rows}


@pytest.mark.parametrize(("solver", "over"), PATHS)
@pytest.mark.parametrize(
    ("protocol", "scaling"),
    [
        (p, s)
        for p in TRAINING
        for s in protocols()[p].scalings
        if protocols()[p].grid != "none" and "binary" in protocols()[p].tasks
    ],
)
def test_every_path_runs_under_every_protocol_and_scaling(
    tmp_path: Path, spy: Spy, solver: str, over: str, protocol: str, scaling: str
) -> None:
    y = labels_of("binary")
    datasets = write_rows(tmp_path / NAME, y)
    WRITTEN.append(tmp_path / NAME)
    block = {"protocol": protocol, "scaling": scaling, **SMALL.get(protocol, {})}
    kernel = {"gamma": 0.5} if "gamma" in solver_class(solver)._get_param_names() else {}
    entry = {"name": solver, "params": kernel, "grid": {over: [0.5, 1.0]}}
    for cell in cells_in_process([entry], block, datasets=datasets, seed=SEED):
        assert cell["metrics"]["n_train"] > 0
        assert metrics_of(cell) <= known_metrics(protocol)
    if scaling not in {"none", "all-rows"}:
        expected = {frozenset(one.tolist()) for one in SEEN[protocol, scaling](y)}
        assert set(spy.fits) == expected


def metrics_of(cell: dict[str, Any]) -> set[str]:
    """Return the names of a cell's metrics; in a race, without the racers'."""
    return {name.partition(":")[0] for name in cell["metrics"]}


def known_metrics(protocol: str) -> set[str]:
    """Return what a table may ask of a protocol's cells, whose score is the accuracy."""
    return {*(protocols()[protocol].metrics or ()), "accuracy_pct", "train_accuracy_pct"}


def refusal(
    folder: Path, block: dict[str, Any], datasets: Any, entries: list[dict[str, Any]]
) -> str:
    """Return the config error of a block."""
    config = {"title": "t", "datasets": datasets, "solvers": entries}
    path = folder / "c.yaml"
    path.write_text(yaml.safe_dump({**config, "blocks": [{"name": "main", **block}]}))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}:")
    return problem


def compares_with(names: set[str], source: str) -> list[int]:
    """Return the lines on which something is compared with one of some names."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            words = {
                part.value
                for side in (node.left, *node.comparators)
                for part in getattr(side, "elts", [side])
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
            if words & names:
                lines.append(node.lineno)
    return lines


#: Where a score stands in for "the usual one": shared searches and gates know of accuracy alone.
USUAL = {"experiment/protocols/nested_cv_on_kernels.py", "experiment/protocols/search.py"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (set(protocols()), set()),
        (set(PLOT_KINDS.names()) - {"scaling"}, set()),
        (set(SCORES), USUAL),
    ],
    ids=["protocols", "plot kinds", "scores"],
)
def test_nothing_declared_is_known_by_its_name_elsewhere(
    names: set[str], allowed: set[str]
) -> None:
    """A test of a name elsewhere is a fact in the wrong place.

    (A block has a key ``scaling``, which is no plot.)
    """
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in compares_with(names, path.read_text(encoding="utf-8"))
        if str(path.relative_to(PACKAGE)) not in allowed
    ]
    assert found == []
    name = min(names)
    for source in (f'spec["x"] == "{name}"', f'x in ("{name}", "other")', f'"{name}" != x.y'):
        assert compares_with(names, source)
