"""A fit on rows that are read in blocks, with its cost beside the cost of reading them."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench import data
from svmbench.core.numeric.arrays import as_block
from svmbench.data import export
from svmbench.experiment.measuring import measure
from svmbench.experiment.protocols import folds, outcomes
from svmbench.experiment.protocols.declare import variant
from svmbench.experiment.protocols.task import Outcome, Task, open_dataset
from svmbench.schema.scores import contract as scores


@variant("fit", "blocks")
def fit_in_blocks(task: Task) -> Outcome:
    """Fit the cell's solver on blocks of rows, and compare the fit with reading the file alone.

    One pass over the rows fits the solver, another one scores it. If the config asks for a written
    file (`written`), a registered set is written to a file, which is then read ``repeats`` times in
    turn: block by block, into whole arrays, and in a fit. The rate of the fit is reported in
    percent of the rate of each way of reading (rows for a second of CPU time).
    """
    estimator = task.build()
    timing = measure.Timing()
    times: dict[str, list[float]] = {"read": [], "arrays": [], "fit": []}
    n_rows: list[int] = []
    with _blocks(task) as (blocks, tested), measure.quiet():
        written = task.spec["dataset"].get("written")
        before = measure.reset_peak()
        _timed(lambda: estimator.fit_blocks(blocks), timing, times["fit"])
        timing.peak_memory = measure.peak_since(before)
        if written is not None:
            timing, times["fit"] = measure.Timing(peak_memory=timing.peak_memory), []
            for _ in range(written["repeats"]):
                _timed(lambda: n_rows.append(_count_rows(blocks)), measure.Timing(), times["read"])
                if (
                    not data.does_not_fit(blocks.path, task.memory_gb)
                    or written["format"] == "parquet"
                ):
                    _timed(
                        lambda: _as_arrays(blocks, n_rows[-1]), measure.Timing(), times["arrays"]
                    )
                _timed(lambda: estimator.fit_blocks(blocks), timing, times["fit"])
        outcome = outcomes.outcome_of(estimator, [timing], {})
        if isinstance(blocks, data.FileBlocks):
            outcome["metrics"]["file_mb"] = blocks.path.stat().st_size / 2**20
        for name in ("read", "arrays"):
            if times[name]:
                _compare(name, times[name], times["fit"], outcome)
        metrics, undefined, rows = _scored(task, estimator, blocks)
        outcome["metrics"] |= {f"train_{name}": value for name, value in metrics.items()}
        outcome["metrics"] |= {"n_train": rows, "scaling_time_s": 0.0}
        outcome["undefined"] = {f"train_{name}": reason for name, reason in undefined.items()}
        if tested is not None:
            metrics, undefined, _ = _scored(task, estimator, tested)
            outcome["metrics"] |= metrics
            outcome["undefined"] |= undefined
    return outcome


@contextmanager
def _blocks(task: Task) -> Iterator[tuple[Any, Any]]:
    """Open the rows of a cell and its test part, if it has one; write a file if the cell asks.

    The file is in a temporary folder, which is deleted at the end.
    """
    chosen = task.spec["dataset"]
    written = chosen.get("written")
    if chosen["file"]:
        column = chosen["label_column"] or None
        yield data.open_blocks(chosen["file"], label_column=column), None
        return
    source = open_dataset(task.spec)
    if written is None:
        tested = source.X_test is not None
        yield (
            data.ArrayBlocks(source.X, source.y),
            data.ArrayBlocks(source.X_test, source.y_test) if tested else None,
        )
        return
    with tempfile.TemporaryDirectory(prefix="svmbench-blocks-") as folder:
        path = Path(folder) / f"rows{export.EXPORT_ENDINGS[written['format']]}"
        X = folds.take(source.X, np.arange(source.X.shape[0]))
        export.export_rows(path, X, np.asarray(source.y), written["copies"])
        del X
        yield data.open_blocks(path), None


def _timed(do: Callable[[], Any], timing: measure.Timing, cpu_s: list[float]) -> None:
    start = measure.now()
    do()
    wall, cpu = measure.since(start)
    timing.wall.append(wall)
    timing.cpu.append(cpu)
    cpu_s.append(cpu)


def _count_rows(blocks: data.FileBlocks) -> int:
    return sum(len(y) for _, y in blocks)


def _as_arrays(blocks: Iterable[tuple[Any, np.ndarray]], n_rows: int) -> tuple[Any, np.ndarray]:
    """Return the content of all blocks as arrays; dense rows are in memory once."""
    X, parts, labels, start = None, [], [], 0
    for part, y in blocks:
        labels.append(y)
        if not isinstance(part, np.ndarray):
            parts.append(sp.csr_array(part))
            continue
        if X is None:
            X = np.empty((n_rows, part.shape[1]), dtype=part.dtype)
        X[start : start + len(y)] = part
        start += len(y)
    if X is not None:
        return X, np.concatenate(labels)
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize(part.shape[0], width)
    return sp.vstack(parts, format="csr"), np.concatenate(labels)


def _compare(name: str, alone: list[float], fitted: list[float], outcome: Outcome) -> None:
    """Enter the CPU time of reading alone, and the fit's rate in percent of the rate of reading."""
    rates = [100.0 * read_s / fit_s for read_s, fit_s in zip(alone, fitted, strict=True)]
    outcome["metrics"] |= {
        f"{name}_cpu_time_s": statistics.median(alone),
        f"{name}_rate_pct": statistics.median(rates),
    }
    spread = measure.Timing().spread(rates)
    if spread is not None:
        outcome["spread"][f"{name}_rate_pct"] = spread


def _scored(
    task: Task, estimator: Any, blocks: Any
) -> tuple[dict[str, float], dict[str, str], int]:
    """Return the scores from one more pass, the reasons of those without a value, and the rows."""
    decisions, labels = [], []
    for X, y in blocks:
        rows = as_block(X, estimator.n_features_in_)
        decisions.append(scores.values_of_models([estimator], rows)[0])
        labels.append(y)
    y = np.concatenate(labels)
    evaluation = scores.Evaluation(estimator, None, y).set_decisions(np.concatenate(decisions))
    return *scores.compute_scores(task.spec["scores"], evaluation), len(y)
