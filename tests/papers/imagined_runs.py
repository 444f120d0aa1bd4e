"""Records as a finished run of a config's full protocol would have them, with made-up numbers.

They have what the protocols report and nothing else: the metrics that they declare, the scores and
counters of the config, a spread where fits are repeated, and the sizes of the registered data sets.
The numbers differ widely between solvers, grow with the rows by powers of 0 to 2, and differ with
the seed, so that a rule that any run can decide is decided by some of them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from svmbench.base.paper_folders import FULL_PROFILE
from svmbench.base.paths import asset
from svmbench.data.registry import entry, parse_name
from svmbench.experiment.config.loader import apply_profile, load_config
from svmbench.experiment.config.requested_metrics import _metrics
from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.values import dimension_values
from svmbench.papers.judging.evidence import Source
from svmbench.report.reading.records import VERSUS, CellResult, Run
from svmbench.report.reading.wording import is_timing
from svmbench.schema.scores import SCORES

#: Metrics of a race that belong to a pair of solvers.
_OF_PAIRS = ("ratio", "objective_difference")
#: Protocols whose records have no spread: one round.
_ONE_ROUND = ("screening",)
#: Protocols that record each value of the grid as a point of its own.
_OF_STEPS = ("path", "simulate")
_OF_SCORES = {score.metric for score in SCORES.values()}


def planned_run(name: str, seed: int) -> Source:
    """Return a finished run of a config at the profile ``paper``."""
    config = apply_profile(load_config(asset("configs") / f"{name}.yaml"), FULL_PROFILE)
    cells = [cell for block in config.blocks for cell in _cells(name, config, block, seed)]
    blocks = {block.name: block.model_dump(mode="json") for block in config.blocks}
    run = Run(Path(name), name, config.paper, name, FULL_PROFILE, "", blocks, tuple(cells),
              (), (), {})  # fmt: skip
    return Source(run, tuple(cells), "")


def _cells(name: str, config: Any, block: Any, seed: int) -> Iterator[CellResult]:
    declared = protocols()[block.protocol]
    reported = _metrics(config, block) or []
    for dataset in config.datasets_of(block):
        n_rows, n_test, n_features = _sizes(dataset.name)
        without = _OF_SCORES if block.protocol == "fit" and not n_test else ()
        metrics = [one for one in reported if one not in without]
        swept = block.swept(dataset) if hasattr(block, "swept") else {}
        for values in itertools.product(*swept.values()):
            place = dict(zip(swept, values, strict=True))
            if "rows" in place:
                place["rows"] = _rows(place["rows"], n_rows)
            if place.get("rows", 0) > n_rows or place.get("features", 0) > n_features:
                continue
            most = getattr(block, "max_samples", 0) or n_rows
            known = {"n_train": min(place.get("rows", n_rows), most)}
            known["n_test"] = n_test or n_rows // 5
            for owners, dims, fold in _places(config, block, declared, dataset, place):
                at = dataset.name, dims, fold
                yield _cell((config.paper, name), block, owners, at, metrics, known, seed)


def _places(
    config: Any, block: Any, declared: Any, dataset: Any, place: dict[str, Any]
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], int | None]]:
    """Yield the solvers, the dimensions and the fold of each cell, races taken apart."""
    if declared.cell == "data set":
        yield (), place, None
        return
    solvers = [one.on(dataset) for one in config.solvers_of(block)]
    owners = [(one.shown,) for one in solvers]
    with_grid = {one.shown: one.grid for one in solvers if one.grid}
    if declared.cell == "all solvers":
        owners += [tuple(pair) for pair in block.pairs]
    for fold in declared.folds_to_run(block):
        for names in owners:
            steps: list[dict[str, Any]] = [{}]
            if block.protocol in _OF_STEPS and names[0] in with_grid:
                ((name, given),) = with_grid[names[0]].items()
                steps = [{f"solver.{name}": value} for value in dimension_values(given)]
            for step in steps:
                yield names, {**place, **step}, fold


def _cell(
    of: tuple[str, str], block: Any, owners: tuple[str, ...], at: tuple[Any, Any, int | None],
    metrics: list[str], known: dict[str, int], seed: int,
) -> CellResult:  # fmt: skip
    paper, config = of
    dataset, dims, fold = at
    solver = VERSUS.join(owners)
    is_pair = len(owners) == 2
    if len(protocols()[block.protocol].splits(block)) == 1 and fold is None:
        folds = protocols()[block.protocol].splits(block)[0]
    else:
        folds = 0
    own = [one for one in metrics if (one in _OF_PAIRS) == is_pair or not owners]
    number = _Numbers((seed, config, solver), (dataset, fold), dims, known["n_train"])
    found = {name: number(name) for name in own if name not in known}
    if block.protocol == "fit":  # shares of the rows of the test part
        n = known["n_test"]
        scored = {name: found[name] for name in _OF_SCORES & found.keys()}
        found |= {name: 100.0 * round(value / 100.0 * n) / n for name, value in scored.items()}
    found |= {name: value for name, value in known.items() if name in metrics}
    spread: dict[str, Any] = {}
    if block.protocol not in _ONE_ROUND:
        for name, value in found.items():
            if is_timing(name) or (folds and name in _OF_SCORES):
                low, high = sorted((0.99 * value, 1.01 * value))
                spread[name] = [low, high] if is_pair or len(owners) == 0 else 0.01 * abs(value)
    key = "/".join(map(str, (config, block.name, dataset, solver, sorted(dims.items()), fold)))
    return CellResult(
        key=key, block=block.name, protocol=block.protocol, paper=paper, dataset=dataset,
        kernel="", solver=solver, fold=fold, status="ok", dimensions=dims, metrics=found,
        spread=spread, folds=folds,
    )  # fmt: skip


class _Numbers:
    """Numbers that depend on a seed, a solver and where it is measured."""

    def __init__(
        self, of: tuple[Any, ...], place: tuple[str, int | None], dims: dict[str, Any], n: int
    ) -> None:
        self.of_solver, self.of_dataset, self.of_place = of, (*of, place[0]), (*of, *place)
        self.n = n
        self.swept = 1.0
        for name, value in dims.items():
            if isinstance(value, int | float) and name != "rows" and value > 0:
                self.swept *= value

    def __call__(self, name: str) -> float:
        wide, near = _share(*self.of_solver, name), _share(*self.of_place, name)
        if name.endswith("_pct"):
            # Below a level of the data set, which is reached as what is swept grows.
            level = 95.0 - 10.0 * _share(self.of_solver[0], self.of_dataset[-1], name)
            gap = 60.0 * wide**2 * _share(*self.of_dataset, name) / (1.0 + self.swept / 20.0)
            return level - gap + 0.1 * near
        if name in {"n_wrong", "objective_difference"}:
            return float(round(wide)) if name == "n_wrong" else 1e-9
        if name in {"ratio", "speedup"}:
            return 10.0 ** (4.0 * wide - 2.0) * (1.0 + 0.01 * near)
        powers = [round(2.0 * _share(*self.of_solver, name, one)) for one in ("n", "swept")]
        value = 10.0 ** (2.0 * wide) * (1.0 + 0.01 * near)
        value *= (self.n / 100.0) ** powers[0] * self.swept ** (powers[1] - 1)
        return value if is_timing(name) or name == "objective" else float(round(value) + 1)


def _share(*of: Any) -> float:
    """Return a number from 0 to 1 that looks random."""
    digest = hashlib.sha256(repr(of).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def _rows(size: int | str, n_rows: int) -> int:
    return size if isinstance(size, int) else round(n_rows * int(size[:-1]) / 100)


def _sizes(name: str) -> tuple[int, int, int]:
    """Return the training rows, the test rows and the features of a registered data set."""
    parts = parse_name(name)
    one = entry(parts.base)
    rows = one.n_samples + (one.n_test if parts.with_test else 0)
    rows = (parts.stop or rows) - (parts.start or 0)
    return rows, 0 if parts.with_test else one.n_test, one.n_features
