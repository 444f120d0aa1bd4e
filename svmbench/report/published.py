"""The papers' printed numbers, and the one table of what their names are called here."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from svmbench.base import paths


@dataclass(frozen=True)
class Aliases:
    """How a paper's printed names are spelt in this suite; a name not listed is the same in both.

    Attributes
    ----------
    datasets : dict of str to tuple of str
        Printed name to the suite's names for exactly that set.
    solvers : dict of str to str or tuple of str
        Printed name to the suite's: one name, or several settings of one solver.
    metrics : dict of (str, str) to str
        (Table, printed metric) to the suite's metric.
    subsets : dict of str to (str, int)
        A data set of the suite that is one size of a printed sweep: (printed name, printed size).
    sizes : dict of int to int
        Row counts of the suite's files that the paper prints differently.
    """

    datasets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    solvers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    metrics: Mapping[tuple[str, str], str] = field(default_factory=dict)
    subsets: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    sizes: Mapping[int, int] = field(default_factory=dict)


# Stand-ins (cod-rna-train, shuttle-1-2, poker-train-0-2) are deliberately in no list: they are
# other sets than the printed ones and get no printed number.
ALIASES: Mapping[str, Aliases] = {
    "alsvm": Aliases(
        datasets={
            "covertype": ("covtype",),
            "german": ("german.numer",),
            # The paper's rows before the site's scaling, which another min-max scaling undoes.
            "shuttle": ("shuttle", "shuttle-1-2"),
        },
        solvers={"liblinear": "liblinear-l1"},
    ),
    # The paper's "SVM-perf" is the kernel program, whose algorithm is CPSP; the suite's own
    # `svm-perf` is the linear cutting-plane solver and has no number there.
    "sgdlssvm": Aliases(
        datasets={"shuttle": ("shuttle", "shuttle-1-2")}, solvers={"svm-perf": "cpsp"}
    ),
    # Table III's CPU time is that of a whole nested cross-validation, not of one fit. The paper's
    # NL-SGD is another setting on each data set; ours stands beside it fixed, and so picked.
    "nlsgd": Aliases(
        solvers={
            "nl-sgd": ("nl-sgd", "nl-sgd-picked"),
            **{
                f"nl-sgd[epochs={epochs},output={output}]": f"nl-sgd-{epochs}-{output}"
                for epochs in (1, 2, 5)
                for output in ("last", "last-50", "last-25")
            },
        },
        datasets={
            "teach": ("teach", "tae"),
            "optdigits": ("optdigits", "optdigits+test"),
            "usps": ("usps+test", "usps"),
            "reuters": ("reuters+test", "reuters"),
        },
        metrics={
            ("table3", "cpu_time_s"): "nested_cv_cpu_time_s",
            ("fig6-10", "cpu_time_s"): "nested_cv_cpu_time_s",
        },
    ),
    "smo": Aliases(
        datasets={"adult": ("a9a",), "web": ("w8a",)},
        subsets={
            **{
                f"a{index}a": ("adult", size)
                for index, size in enumerate(
                    (1605, 2265, 3185, 4781, 6414, 11221, 16101, 22697, 32562), start=1
                )
            },
            **{
                f"w{index}a": ("web", size)
                for index, size in enumerate(
                    (2477, 3470, 4912, 7366, 9888, 17188, 24692, 49749), start=1
                )
            },
        },
        # The files in circulation have one row less than the paper counts.
        sizes={11220: 11221, 16100: 16101, 22696: 22697, 32561: 32562},
    ),
    "srbo": Aliases(),
}

_NO_ALIASES = Aliases()
_PREFIX = re.compile(r"(?P<base>.+)\[:(?P<size>\d+)\]")


@dataclass(frozen=True)
class Printed:
    """One printed number, as the CSV has it."""

    table: str
    dataset: str
    kernel: str
    size: str
    solver: str
    metric: str
    value: float


@cache
def numbers(paper: str) -> tuple[Printed, ...]:
    """Return every printed number of `paper`; none for a paper whose tables are not available."""
    path = paths.PACKAGE / "published" / f"{paper}.csv"
    if not path.exists():
        return ()
    with path.open(encoding="utf-8", newline="") as handle:
        return tuple(
            Printed(
                table=row["table"],
                dataset=row["dataset"],
                kernel=row["kernel"],
                size=row["size"],
                solver=row["solver"],
                metric=row["metric"],
                value=float(row["value"]),
            )
            for row in csv.DictReader(handle)
        )


def has_table(paper: str, table: str) -> bool:
    """Return whether there are printed numbers of `table`."""
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
    """Return the number that a paper prints for what the suite calls by these names.

    Parameters
    ----------
    paper, table : str
        Key of the paper (``alsvm`` …) and of the table in its CSV (``table2`` …).
    dataset, metric, solver : str or None
        The suite's names. A facts table has no solver. ``a9a[:6414]`` is a9a at size 6414.
    kernel : str, optional
        None matches any kernel, as long as that leaves one number.
    dimensions : mapping, optional
        What was swept: ``rows`` is a printed size; any other parameter (``solver.epochs: 2``)
        belongs to a setting of the solver that is printed as such (``nl-sgd[epochs=2,…]``).

    Returns
    -------
    float or None
        None where the paper prints nothing, or where the suite's name means something else than
        the printed one.
    """
    aliases = ALIASES.get(paper, _NO_ALIASES)
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
    found = [
        row
        for size_text in printed_size
        for row in _index(paper).get((*wanted, size_text), ())
        if not kernel or not row.kernel or row.kernel == kernel
    ]
    return found[0].value if len(found) == 1 else None


def sweep(
    paper: str,
    table: str,
    dataset: str | None,
    metric: str,
    solver: str | None,
    kernel: str | None = None,
) -> list[tuple[int, float]]:
    """Return (size, printed number) of every size that a paper prints for one series, ascending.

    Parameters are those of `lookup`; empty where the paper prints no sweep.
    """
    aliases = ALIASES.get(paper, _NO_ALIASES)
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
    """Return a printed solver with the printed parameters that are these; itself without any."""
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
    # What is printed of a solver as a whole is not printed of each of its settings.
    return None


def exponent(
    paper: str, table: str, dataset: str | None, solver: str | None, kernel: str | None = None
) -> float | None:
    """Return the exponent that a paper prints for the sweep that a data set is, or is part of.

    Parameters are those of `lookup`; None where it prints none.
    """
    aliases = ALIASES.get(paper, _NO_ALIASES)
    located = _printed_dataset(aliases, dataset or "", None)
    printed_solver = _printed_name(aliases.solvers, solver or "")
    if located is None or printed_solver is None:
        return None
    found = [
        row.value
        for row in _index(paper).get(
            (table, located[0], printed_solver, "scaling_exponent", ""), ()
        )
        if not kernel or not row.kernel or row.kernel == kernel
    ]
    return found[0] if len(found) == 1 else None


@cache
def _index(paper: str) -> dict[tuple[str, ...], list[Printed]]:
    index: dict[tuple[str, ...], list[Printed]] = {}
    for row in numbers(paper):
        key = (row.table, row.dataset, row.solver, row.metric, row.size)
        index.setdefault(key, []).append(row)
    return index


def _printed_dataset(
    aliases: Aliases, dataset: str, size: int | None
) -> tuple[str, tuple[str, ...]] | None:
    """Return a data set's printed name and the sizes, in the CSV's text, that it may stand under.

    A set at its full size is printed with its size in a sweep, and without one elsewhere.
    """
    prefix = _PREFIX.fullmatch(dataset)
    if prefix:
        dataset, size = prefix["base"], int(prefix["size"]) if size is None else size
    if dataset in aliases.subsets:
        printed, full_size = aliases.subsets[dataset]
        is_whole_set = dataset in aliases.datasets.get(printed, ())
        if size is None:
            return printed, (str(full_size), "") if is_whole_set else (str(full_size),)
        # A prefix of a smaller subset is none of the printed subsets.
        return (printed, (_printed_size(aliases, size),)) if is_whole_set else None
    named = [printed for printed, ours in aliases.datasets.items() if dataset in ours]
    if not named and dataset in aliases.datasets:
        return None
    return (named[0] if named else dataset), (_printed_size(aliases, size),)


def _printed_size(aliases: Aliases, size: int | None) -> str:
    return "" if size is None else str(aliases.sizes.get(size, size))


def _printed_name(renamed: Mapping[str, str | tuple[str, ...]], ours: str) -> str | None:
    """Return the printed name of `ours`; None if the paper uses that word for something else."""
    for printed, names in renamed.items():
        if ours in (names if isinstance(names, tuple) else (names,)):
            return printed
    return None if ours in renamed else ours


def _printed_metric(aliases: Aliases, table: str, metric: str) -> str | None:
    renamed = {
        printed: ours for (where, printed), ours in aliases.metrics.items() if where == table
    }
    return _printed_name(renamed, metric)
