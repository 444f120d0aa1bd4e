"""Run one small cell of each solver and of each protocol; print which modules ran uncovered.

`test_key_sizes.py` runs this in a process whose loops Numba does not compile: the functions of
compiled loops would not be seen.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from svmbench.base.errors import SvmbenchError
from svmbench.base.paths import PACKAGE
from svmbench.baselines.catalogue import solver_class, solvers
from svmbench.experiment.config.models import Config
from svmbench.experiment.measuring import measure
from svmbench.experiment.plan import keys
from svmbench.experiment.plan.keys import modules_of
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.protocols import function_of, protocols
from svmbench.experiment.protocols.task import Task

N_ROWS = 24

#: Settings of small runs by protocol.
SMALL: dict[str, dict[str, Any]] = {
    "nested-cv": {"outer_folds": 2, "run_folds": 1, "inner_folds": 2},
    "cv": {"folds": 2},
    "race": {"repeats": 1, "tolerance": None},
    "scored-race": {"repeats": 1},
    "calls": {"repeats": 1},
    "simulate": {"repeats": 2},
    "nested-race": {"outer_folds": 2, "run_folds": 1, "inner_folds": 2, "repeats": 1},
}

#: The solvers that run under every protocol; `fosvm2` alone has draws to simulate.
EVERYWHERE = ("alsvm-batch", "csvc", "fosvm2", "pegasos", "srbo-nu-svm")

#: The protocols that search on kernel matrices, over C and gamma.
ON_KERNELS = ("nested-cv", "nested-race")

#: What a grid is over, by solver; C elsewhere.
GRID = {"fosvm2": ("n_candidates", [2, 3]), "srbo-nu-svm": ("nu", [0.3, 0.4])}


def write_rows(folder: Path, n_classes: int, kind: str) -> dict[str, Any]:
    """Write rows of three features, dense or nearly empty; return the set's entry in a config."""
    rng = np.random.default_rng(0)
    classes = np.arange(N_ROWS) % n_classes
    labels = np.where(classes == 0, -1, 1) if n_classes == 2 else classes
    X = rng.normal(size=(N_ROWS, 3)) + labels[:, np.newaxis]
    path = folder / f"{kind}{n_classes}.svm"
    step = 30 if kind == "sparse" else 1
    path.write_text(
        "".join(
            f"{label} 1:{a:.6f} {1 + step}:{b:.6f} {1 + 2 * step}:{c:.6f}\n"
            for label, (a, b, c) in zip(labels, X, strict=True)
        )
    )
    return {"file": str(path)}


def cells(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield what each cell is, and the cell."""
    sets = {kind: write_rows(folder, 2, kind) for kind in ("dense", "sparse")}
    several = write_rows(folder, 3, "dense")
    for name, declared in solvers().items():
        kind = "sparse" if declared.sparse else "dense"
        yield from planned("fit", name, sets[kind], declared.task)
        if declared.task == "binary":
            yield from planned("fit", name, several, "multiclass")
    for protocol, one in protocols().items():
        for name in EVERYWHERE:
            task = solvers()[name].task
            if task in one.tasks:
                yield from planned(protocol, name, sets["dense"], task)
            if "blocks" in one.reads and "blocks" in solvers()[name].reads:
                yield from planned(protocol, name, {**sets["dense"], "read": "blocks"}, task)


def planned(
    protocol: str, name: str, dataset: dict[str, Any], task: str
) -> Iterator[tuple[str, Any]]:
    """Yield the cells of one solver and protocol, those that can be done."""
    declared = protocols()[protocol]
    entry: dict[str, Any] = {"name": name}
    if "max_iter" in solver_class(name)._get_param_names():
        entry["params"] = {"max_iter": 200}
    if declared.grid != "none":
        over, values = GRID.get(name, ("C", [0.5, 1.0]))
        entry["grid"] = {over: values}
        if "gamma" in solver_class(name)._get_param_names() and protocol in ON_KERNELS:
            entry["grid"]["gamma"] = [0.5]
    block = {"name": "main", "protocol": protocol, **SMALL.get(protocol, {})}
    if "task" in declared.settings.model_fields:
        block |= {"task": task, "multiclass": "one-vs-one"}
    if "read" in dataset and "scaling" in declared.settings.model_fields:
        block["scaling"] = "none"
    content = {"title": "t", "datasets": [dataset], "solvers": [entry], "blocks": [block]}
    if declared.cell == "data set":
        del content["solvers"]
    try:
        plan = make_plan(Config.model_validate(content), "t", "paper")
    except (SvmbenchError, ValueError) as error:
        print(f"{protocol} {name} {task}: {error}", file=sys.stderr)
        return
    for cell in plan.cells:
        if cell.status == "planned":
            how = " in blocks" if "read" in dataset else ""
            yield f"{protocol} {name} {task}{how}", cell


def modules_run(cell: Any) -> set[str]:
    """Run a cell; return the modules of the package whose functions ran."""
    files: set[str] = set()
    own, task, function = f"{PACKAGE}/", Task(cell.spec), function_of(cell.spec)

    def see(frame: FrameType, event: str, _value: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(see)
    try:
        function(task)
    finally:
        sys.setprofile(None)
    inside = (Path(file).relative_to(PACKAGE.parent) for file in files if file.startswith(own))
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in inside}


def main() -> None:
    """Print as JSON, by cell, the modules that ran and those of them that its key lacks."""
    # Nothing is measured here: one fit is enough, and garbage may stay.
    measure.MIN_REPEATS, measure.MIN_TOTAL_S = 1, 0.0
    measure.quiet = contextlib.nullcontext  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what, cell in cells(Path(folder)):
            ran = modules_run(cell)
            covered = keys.closure(*modules_of(cell.spec))
            lacking = {module for module in ran - covered if keys.decides(module)}
            found[what] = {"ran": sorted(ran), "lacking": sorted(lacking)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
