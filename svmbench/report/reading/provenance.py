"""Describe the provenance of tables and plots: environments, missing and undefined values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from svmbench.report.reading.records import CellResult, Run
from svmbench.report.reading.wording import label_of, status_word


def describe_environment(run: Run, name: str) -> str:
    """Describe an environment in one line: id, CPU, memory, threads and versions."""
    content = run.environments.get(name)
    if not content:
        return f"{name} (its file environment-{name}.json is missing or unreadable)"
    parts = [_cpu(content)]
    if isinstance(content.get("ram_gb"), (int, float)):
        parts.append(f"{content['ram_gb']:g} GiB RAM")
    if content.get("blas"):
        parts.append(f"BLAS {_text(content['blas'])}")
    if content.get("threads") is not None:
        threads = _text(content["threads"])
        parts.append(f"{threads} {'thread' if threads == '1' else 'threads'}")
    parts += [f"{name} {content[name]}" for name in ("svmbench", "python") if content.get(name)]
    git = content.get("git")
    if isinstance(git, Mapping) and git.get("commit"):
        parts.append(f"commit {git['commit']}" + (" with changes" if git.get("modified") else ""))
    packages = content.get("packages")
    if isinstance(packages, Mapping):
        parts += [f"{package} {version}" for package, version in packages.items()]
    described = ", ".join(part for part in parts if part)
    return f"{name} ({described})" if described else name


def describe_cpu(run: Run, name: str) -> str:
    """Return the id and the CPU of an environment, for the footer of a plot."""
    cpu = _cpu(run.environments.get(name) or {})
    return f"{name} ({cpu})" if cpu else name


def _cpu(content: Mapping[str, Any]) -> str:
    cpu, cores = content.get("cpu") or "", content.get("cores")
    return f"{cpu} × {cores}" if cpu and cores else str(cpu)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_text(entry)}" for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(_text(entry) for entry in value)
    return str(value)


def was_run(cell: CellResult) -> bool:
    """Return False if a cell was not tried."""
    return status_word(cell.status) != "not run"


def missing(cells: Sequence[CellResult]) -> list[str]:
    """Return a line with the reason for each group of cells without results.

    Solvers with the same data set, folds, status and reason share a line, so that an unavailable
    data set has one line for all solvers; data sets share a line if all else is the same. If all
    cells have the same status and reason, there is one line for all of them. Folds count from 1.
    """
    states = {(cell.status, cell.reason) for cell in cells}
    if len(cells) > 1 and len(states) == 1 and cells[0].status != "ok":
        return [
            f"all {len(cells):,} cells: {_state(status_word(cells[0].status), cells[0].reason)}"
        ]
    return _lines_of(
        cells,
        lambda cell: None if cell.status == "ok" else (status_word(cell.status), cell.reason),
    )


def _state(status: str, reason: str) -> str:
    return status + (f" ({reason})" if reason else "")


def undefined(run: Run, cells: Sequence[CellResult], metrics: Iterable[str]) -> list[str]:
    """Return a line for each group of finished cells with an undefined metric."""
    return [
        line
        for metric in metrics
        for line in _lines_of(
            cells,
            lambda cell, metric=metric: (  # type: ignore[misc]
                (f"no {run.label(metric)}", cell.undefined[metric])
                if cell.status == "ok" and metric in cell.undefined
                else None
            ),
        )
    ]


def _lines_of(
    cells: Sequence[CellResult], state_of: Callable[[CellResult], tuple[str, str] | None]
) -> list[str]:
    """Return a line for each group of cells with the same status and reason.

    Data sets that share all else share a line.
    """
    several_kernels = len({cell.kernel for cell in cells}) > 1
    all_solvers = list(dict.fromkeys(cell.solver for cell in cells))
    all_folds: dict[tuple[Any, ...], list[int | None]] = {}
    troubled: dict[tuple[Any, ...], dict[tuple[str, str], list[int | None]]] = {}
    for cell in cells:
        all_folds.setdefault(cell.identity, []).append(cell.fold)
        if (state := state_of(cell)) is not None:
            states = troubled.setdefault(cell.identity, {})
            states.setdefault(state, []).append(cell.fold)
    solvers: dict[tuple[Any, ...], list[str | None]] = {}
    for identity, states in troubled.items():
        *condition, solver = identity
        for (status, reason), folds in states.items():
            few = tuple(folds) if len(folds) < len(all_folds[identity]) else ()
            solvers.setdefault((*condition, few, status, reason), []).append(solver)
    datasets: dict[tuple[Any, ...], list[str | None]] = {}
    for (dataset, *key), names in solvers.items():
        datasets.setdefault((*key, tuple(names)), []).append(dataset)
    return [
        _missing_line(names, key, all_solvers, several_kernels=several_kernels)
        for key, names in datasets.items()
    ]


def _missing_line(
    datasets: Sequence[str | None],
    key: tuple[Any, ...],
    all_solvers: Sequence[str | None],
    *,
    several_kernels: bool,
) -> str:
    kernel, swept, folds, status, reason, solvers = key
    where = [dataset for dataset in datasets if dataset]
    where += [f"{kernel} kernel"] if kernel and several_kernels else []
    where += [dimension_text(name, value) for name, value in swept]
    # A race is one cell with several solvers.
    names = [solver.replace("|", ", ") for solver in solvers if solver]
    if len(all_solvers) > 1 and len(solvers) == len(all_solvers):
        where.append("every solver")
    elif names:
        where.append(" and ".join([", ".join(names[:-1]), names[-1]]) if names[1:] else names[0])
    if folds:
        numbers = ", ".join(str((fold or 0) + 1) for fold in folds)
        where.append(f"fold{'s' if len(folds) > 1 else ''} {numbers}")
    return f"{', '.join(where)}: {_state(status, reason)}"


def dimension_text(name: str, value: Any) -> str:
    """Describe the value of a dimension."""
    is_count = name in {"rows", "features"} and isinstance(value, int | float)
    return f"{value:,} {name}" if is_count else f"{label_of(name)} {value}"


def missing_short(cells: Sequence[CellResult]) -> str:
    """Name the data sets or solvers without results, for the footer of a plot."""
    counts: dict[str | None, int] = {}
    troubled: dict[str | None, dict[str, dict[str | None, None]]] = {}
    for cell in cells:
        counts[cell.dataset] = counts.get(cell.dataset, 0) + 1
        if cell.status != "ok":
            states = troubled.setdefault(cell.dataset, {})
            states.setdefault(status_word(cell.status), {})[cell.solver] = None
    lost = {
        dataset: sum(cell.dataset == dataset and cell.status != "ok" for cell in cells)
        for dataset in troubled
    }
    by_state: dict[str, list[str]] = {}
    for dataset, states in troubled.items():
        for state, solvers in states.items():
            whole = len(states) == 1 and lost[dataset] == counts[dataset]
            names = [solver for solver in solvers if solver]
            inside = "" if whole or not names else f" ({', '.join(names)})"
            by_state.setdefault(state, []).append(f"{dataset}{inside}")
    return "; ".join(f"{state}: {', '.join(places)}" for state, places in by_state.items())
