"""Look up printed numbers of papers by the names of this suite."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from svmbench.base import paper_folders, paths
from svmbench.base.errors import ConfigError
from svmbench.base.escape import line

_PREFIX = re.compile(r"(?P<base>.+)\[:(?P<size>\d+)\]")


@dataclass(frozen=True)
class PrintedNumber:
    """One printed number: a row of the CSV file."""

    table: str
    dataset: str
    kernel: str
    size: str
    solver: str
    metric: str
    value: float


#: Largest size of a CSV file in bytes; the largest shipped file has 60 kB.
MAX_PUBLISHED_BYTES = 1 << 23

_COLUMNS = ("table", "dataset", "kernel", "size", "solver", "metric", "value")


def numbers(paper: str) -> tuple[PrintedNumber, ...]:
    """Return all printed numbers of a paper; none if its tables are unavailable.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If a file can't be read, or a line has no number.
    """
    known = paper_folders.papers().get(paper)
    return _read(known.folder) if known else ()


@cache
def _read(folder: Path) -> tuple[PrintedNumber, ...]:
    return tuple(
        row for file in sorted((folder / "published").glob("*.csv")) for row in _rows(file)
    )


def _rows(path: Path) -> Iterator[PrintedNumber]:
    shown = line(path, 200)
    try:
        text = paths.read_regular(path, MAX_PUBLISHED_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"can't read {shown}: {why}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise ConfigError(f"{shown}: there is no column {', '.join(missing)}")
    try:
        for row in reader:
            if any(row[name] is None for name in _COLUMNS):
                raise ConfigError(f"{shown}, line {reader.line_num}: there are too few columns")
            texts = {name: row[name] for name in _COLUMNS[:-1]}
            yield PrintedNumber(**texts, value=_number(row["value"]))
    except (ValueError, csv.Error) as error:
        raise ConfigError(f"{shown}, line {reader.line_num}: {line(error, 200)}") from None


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value


def _names(paper: str) -> paper_folders.Printed:
    """Return the names that a paper uses."""
    known = paper_folders.papers().get(paper)
    return known.printed if known else paper_folders.Printed()


def has_table(paper: str, table: str) -> bool:
    """Return True if there are printed numbers of a table."""
    return any(row.table == table for row in numbers(paper))


def lookup(
    paper: str,
    table: str,
    dataset: str | None,
    metric: str,
    solver: str | None,
    kernel: str | None = None,
    *,
    dimensions: Mapping[str, Any] | None = None,
) -> float | None:
    """Return the printed number for the suite's names of data set, metric and solver.

    Parameters
    ----------
    paper, table : str
        Key of the paper (``alsvm`` …) and of the table in its CSV (``table2`` …).
    dataset, metric, solver : str or None
        Names in the suite. A table of facts has no solver. ``a9a[:6414]`` is a9a at size 6414.
    kernel : str, optional
        None matches any kernel if only one number matches.
    dimensions : mapping, optional
        The swept values: ``rows`` is a printed size. Any other parameter (``solver.epochs: 2``)
        selects a printed setting of the solver (``nl-sgd[epochs=2,…]``).

    Returns
    -------
    float or None
        None if the paper prints no number, or uses the suite's name for something else.
    """
    aliases = _names(paper)
    swept = dict(dimensions or {})
    located = _printed_dataset(aliases, dataset or "", swept.get("rows"))
    printed_solver = _printed_name(aliases.solvers, solver or "")
    if printed_solver is not None:
        printed_solver = _printed_setting(paper, table, printed_solver, swept)
    printed_metric = _printed_metric(aliases, table, metric)
    if located is None or printed_solver is None or printed_metric is None:
        return None
    printed_dataset, printed_size = located
    wanted = (table, printed_dataset, printed_solver, printed_metric)
    rows = [
        row
        for size_text in printed_size
        for row in _index(paper).get((*wanted, size_text), ())
        if not kernel or not row.kernel or row.kernel == kernel
    ]
    return rows[0].value if len(rows) == 1 else None


def printed_sweep(
    paper: str,
    table: str,
    dataset: str | None,
    metric: str,
    solver: str | None,
    kernel: str | None = None,
) -> list[tuple[int, float]]:
    """Return (size, printed number) for all printed sizes of a series, ascending.

    Parameters are the same as for `lookup`. The list is empty if the paper prints no sweep.
    """
    aliases = _names(paper)
    located = _printed_dataset(aliases, dataset or "", None)
    printed_solver = _printed_name(aliases.solvers, solver or "")
    printed_metric = _printed_metric(aliases, table, metric)
    if located is None or printed_solver is None or printed_metric is None:
        return []
    wanted = (table, located[0], printed_solver, printed_metric)
    return sorted(
        (int(row.size), row.value)
        for row in numbers(paper)
        if (row.table, row.dataset, row.solver, row.metric) == wanted
        and row.size
        and (not kernel or not row.kernel or row.kernel == kernel)
    )


def _printed_setting(
    paper: str, table: str, solver: str, dimensions: Mapping[str, Any]
) -> str | None:
    """Return the printed name of a solver with the given parameters."""
    swept = {
        name.rpartition(".")[2]: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in dimensions.items()
        if "." in name
    }
    if not swept:
        return solver
    for row in numbers(paper):
        name, _, settings = row.solver.removesuffix("]").partition("[")
        parts = [part.partition("=") for part in settings.split(",")]
        given = {parameter: value for parameter, _, value in parts}
        if (row.table, name, given) == (table, solver, swept):
            return row.solver
    # A number for a solver as a whole is no number for each of its settings.
    return None


def exponent(
    paper: str, table: str, dataset: str | None, solver: str | None, kernel: str | None = None
) -> float | None:
    """Return the printed exponent for the sweep of a data set.

    Parameters are the same as for `lookup`. The result is None if no exponent is printed.
    """
    aliases = _names(paper)
    located = _printed_dataset(aliases, dataset or "", None)
    printed_solver = _printed_name(aliases.solvers, solver or "")
    if located is None or printed_solver is None:
        return None
    values = [
        row.value
        for row in _index(paper).get(
            (table, located[0], printed_solver, "scaling_exponent", ""), ()
        )
        if not kernel or not row.kernel or row.kernel == kernel
    ]
    return values[0] if len(values) == 1 else None


def _index(paper: str) -> dict[tuple[str, ...], list[PrintedNumber]]:
    known = paper_folders.papers().get(paper)
    return _indexed(known.folder) if known else {}


@cache
def _indexed(folder: Path) -> dict[tuple[str, ...], list[PrintedNumber]]:
    index: dict[tuple[str, ...], list[PrintedNumber]] = {}
    for row in _read(folder):
        key = (row.table, row.dataset, row.solver, row.metric, row.size)
        index.setdefault(key, []).append(row)
    return index


def _printed_dataset(
    aliases: paper_folders.Printed, dataset: str, size: int | None
) -> tuple[str, tuple[str, ...]] | None:
    """Return the printed name of a data set, and its possible sizes as texts of the CSV file.

    A data set at full size has its size in a sweep, and no size in other tables.
    """
    prefix = _PREFIX.fullmatch(dataset)
    if prefix:
        dataset, size = prefix["base"], int(prefix["size"]) if size is None else size
    if dataset in aliases.subsets:
        printed, full_size = aliases.subsets[dataset]
        is_whole_set = dataset in aliases.datasets.get(printed, ())
        if size is None:
            return printed, (str(full_size), "") if is_whole_set else (str(full_size),)
        # A part of a smaller subset is not a printed subset.
        return (printed, (_printed_size(aliases, size),)) if is_whole_set else None
    printed_names = [printed for printed, ours in aliases.datasets.items() if dataset in ours]
    if not printed_names and dataset in aliases.datasets:
        return None
    return (printed_names[0] if printed_names else dataset), (_printed_size(aliases, size),)


def _printed_size(aliases: paper_folders.Printed, size: int | None) -> str:
    return "" if size is None else str(aliases.sizes.get(size, size))


def _printed_name(renamed: Mapping[str, str | tuple[str, ...]], ours: str) -> str | None:
    """Return the printed name of `ours`; None if the paper uses this name for something else."""
    for printed, names in renamed.items():
        if ours in (names if isinstance(names, tuple) else (names,)):
            return printed
    return None if ours in renamed else ours


def _printed_metric(aliases: paper_folders.Printed, table: str, metric: str) -> str | None:
    return _printed_name(aliases.metrics.get(table, {}), metric)
