"""Evidence for claims: the runs found below some folders, by config, each on its own.

Runs of one config are never pooled. The main run is the full-protocol run with the most results. On
each data set, a block comes from the run that has finished the most blocks there; ties go to the
main run, then to another full-protocol run. If the main run has finished block 1 of a9a, and
another full-protocol run blocks 1 to 3, all three come from the other run. A run of another profile
supplies only blocks that the main run hasn't finished. If no full-protocol run has results, all
profiles are used, `quick` only if there is no other. Of several runs of another profile, the one
with the most results is used. Runs that aren't used are named. Within a run, only results of the
most frequent environment are used; the other results count as missing.

A machine is identified by its CPU model. Folders whose runs share a CPU model are judged together;
folders of other CPU models and runs added from packs are judged apart (`gather_by_machine`).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.base.files import read_text
from svmbench.base.paper_folders import FULL_PROFILE
from svmbench.report.numbers.cell_times import Forecaster, timed_cells
from svmbench.report.numbers.summary import without_values
from svmbench.report.reading.folders import folders_with_tables, is_contributed, runs_below
from svmbench.report.reading.newest import COMPRESSED_RECORDS, RECORDS
from svmbench.report.reading.records import (
    CellResult,
    Run,
    read_run,
    split_races,
    used_environments,
)

#: The profile that only shows that everything runs.
SMOKE_TEST_PROFILE = "quick"
#: The protocol of cells that are made from a paper's printed numbers.
PRINTED = "printed"


@dataclass(frozen=True)
class Source:
    """One run as evidence.

    Attributes
    ----------
    run : Run
    cells : tuple of CellResult
        Races taken apart; results of other environments as ``other environment``.
    environment_group : str
        The id of the first environment of the group whose results count.
    notes : tuple of str
        A sentence for each thing that was left out.
    alone : bool
        Whether no other run of its config counts.
    """

    run: Run
    cells: tuple[CellResult, ...]
    environment_group: str
    notes: tuple[str, ...] = ()
    alone: bool = True

    @property
    def is_printed(self) -> bool:
        """Whether these are the printed numbers of a paper."""
        return any(cell.protocol == PRINTED for cell in self.cells)

    @property
    def profile(self) -> str:
        """The profile of the run."""
        return self.run.profile

    @property
    def cpu(self) -> str:
        """The CPU model of the environment whose results count; "" where it isn't known."""
        return str(self.run.environments.get(self.environment_group, {}).get("cpu") or "")

    @property
    def environments(self) -> str:
        """The environments of the results that count, for example of one machine at two commits."""
        counts = Counter(cell.environment for cell in self.cells if cell.status == "ok")
        return ", ".join(name for name, _ in counts.most_common())

    def finished_cells(self, *blocks: str) -> list[CellResult]:
        """Return the cells of some blocks that have a result."""
        return [cell for cell in self.all_cells(*blocks) if cell.status == "ok"]

    def all_cells(self, *blocks: str) -> list[CellResult]:
        """Return all cells of some blocks, with a result or without."""
        return [cell for cell in self.cells if cell.block in blocks]

    def n_results(self) -> int:
        """Return the number of results."""
        return sum(cell.status == "ok" for cell in self.cells)


@dataclass(frozen=True)
class Evidence:
    """The kept runs below some folders.

    Attributes
    ----------
    sources : dict of str to list of Source
        By config; several where other runs fill in or replace the run of the full protocol.
    notes : dict of str to list of str
        By config, a sentence for each kept run or result that does not count.
    bare : dict of str to Path
        Folders with tables but without their records, by name.
    folders : tuple of Path
        The folders searched.
    runs : tuple of Run
        All runs that were found, whether they count or not.
    """

    sources: dict[str, list[Source]]
    notes: dict[str, list[str]] = field(default_factory=dict)
    bare: dict[str, Path] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    runs: tuple[Run, ...] = ()

    @cached_property
    def forecaster(self) -> Forecaster:
        """Forecasts from the recorded times of all kept runs."""
        return Forecaster(timed for run in self.runs for timed in timed_cells(run))

    def runs_that_count(self, config: str) -> list[Source]:
        """Return the runs of a config that count."""
        return self.sources.get(config, [])

    def runs_by_profile(self, config: str) -> list[Source]:
        """Return the runs of a config that count, those of one profile as one.

        For parts that count over data sets, each of which is in the run that counts for it. What is
        counted has to be comparable between runs, such as a ratio of times of one race.
        """
        joined: dict[str, Source] = {}
        for source in self.runs_that_count(config):
            before = joined.get(source.profile)
            joined[source.profile] = (
                source if before is None else replace(before, cells=(*before.cells, *source.cells))
            )
        return [replace(source, alone=len(joined) == 1) for source in joined.values()]

    def all_runs(self, config: str) -> list[Source]:
        """Return all runs of a config, also those in whose place another run counts."""
        return [_source(run) for run in self.runs if run.name == config]

    def why_none(self, configs: Sequence[str]) -> list[str]:
        """Return why configs have no evidence, in one or two sentences."""
        bare = [config for config in configs if any(_is_of(name, config) for name in self.bare)]
        none = [config for config in configs if config not in bare]
        sentences = [f"no run is kept of {', '.join(none)}"] if none else []
        if bare:
            sentences.append(f"only tables, no records, are kept of {', '.join(bare)}")
        return sentences

    def lines(self, file: str) -> list[dict[str, str]]:
        """Return the lines of a CSV file that a script of this suite writes beside runs."""
        for folder in self.folders:
            for path in sorted(folder.rglob(file)):
                try:
                    return list(csv.DictReader(io.StringIO(read_text(path))))
                except (OSError, UnicodeDecodeError, csv.Error) as error:
                    raise ResultsError(f"can't read {path}: {error}") from error
        return []


def gather_evidence(folders: Sequence[Path], *, only_kept: bool = False) -> Evidence:
    """Read every run below some folders, except runs that were added from packs.

    Parameters
    ----------
    folders : sequence of Path
        Run folders, or folders that contain some at any depth.
    only_kept : bool, default False
        Leave out folders with uncompressed records, which runs have just written, so that a page of
        kept results is the same on every machine.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If a folder is not there or a run can't be read.
    """
    runs = _read(folders, only_kept=only_kept)
    return _evidence([run for run in runs.values() if not is_contributed(run.path)], folders)


def gather_by_machine(folders: Sequence[Path]) -> dict[str, Evidence]:
    """Return the evidence of each machine, by its CPU models; runs from packs come last.

    Parameters
    ----------
    folders : sequence of Path
        As for :func:`gather_evidence`, whose errors are raised.
    """
    groups: list[_Machine] = []
    without_cpus: list[_Machine] = []
    contributed: dict[str, list[Run]] = {}
    seen: set[Path] = set()
    for folder in folders:
        runs = [run for path, run in _read([folder]).items() if path not in seen]
        seen |= {run.path.resolve() for run in runs}
        machine = _Machine([folder])
        for run in runs:
            if is_contributed(run.path):
                contributed.setdefault(", ".join(sorted(_cpus(run))), []).append(run)
            else:
                machine.runs.append(run)
                machine.cpus |= _cpus(run)
        for other in [other for other in groups if other.cpus & machine.cpus]:
            machine = _Machine(
                [*other.folders, *machine.folders],
                [*other.runs, *machine.runs],
                other.cpus | machine.cpus,
            )
            groups.remove(other)
        (groups if machine.cpus else without_cpus).append(machine)
    # Folders without results have no CPU model: their missing cells count with the first machine.
    machines = groups or [_Machine([])]
    for machine in without_cpus:
        machines[0].folders += machine.folders
        machines[0].runs += machine.runs
    by_name = {
        ", ".join(sorted(machine.cpus)): _evidence(machine.runs, machine.folders)
        for machine in machines
        if machine.runs or not contributed
    }
    for cpus, runs in contributed.items():
        by_name[f"{cpus} (contributed)"] = _evidence(runs, ())
    return by_name


@dataclass
class _Machine:
    """Folders whose runs share a CPU model, and the runs and models that they have in all."""

    folders: list[Path]
    runs: list[Run] = field(default_factory=list)
    cpus: set[str] = field(default_factory=set)


def _cpus(run: Run) -> set[str]:
    """Return the CPU models that a run's results come from."""
    environments = used_environments([cell for cell in run.cells if cell.status == "ok"])
    return {
        str(run.environments.get(name, {}).get("cpu") or "unknown CPU") for name in environments
    }


def _read(folders: Sequence[Path], *, only_kept: bool = False) -> dict[Path, Run]:
    """Read the runs below some folders, each once, by their resolved folders."""
    return {
        resolved: read_run(folder)
        for resolved, folder in runs_below(folders).items()
        if not (only_kept and (folder / RECORDS).exists())
    }


def _evidence(runs: Sequence[Run], folders: Sequence[Path]) -> Evidence:
    """Return some runs, by config, and the folders that hold tables alone."""
    bare = {
        path.name: path
        for folder in folders
        for path in folders_with_tables(folder)
        if not any((path / name).is_file() for name in (RECORDS, COMPRESSED_RECORDS))
    }
    by_config: dict[str, list[Source]] = {}
    for run in runs:
        by_config.setdefault(run.name, []).append(_source(run))
    chosen = {name: _runs_that_count(sources) for name, sources in by_config.items()}
    return Evidence(
        sources={name: sources for name, (sources, _) in chosen.items()},
        notes={name: sentences for name, (_, sentences) in chosen.items() if sentences},
        bare=bare,
        folders=tuple(folders),
        runs=tuple(runs),
    )


def _source(run: Run) -> Source:
    """Return a run with the results of one environment alone."""
    counts = Counter(cell.environment_group for cell in run.cells if cell.status == "ok")
    notes = list(run.notes)
    group = max(counts, key=lambda name: counts[name]) if counts else ""
    others = sorted(set(counts) - {group})
    if others:
        left_out = sum(counts[name] for name in others)
        notes.append(
            f"{left_out} of {counts.total()} results come from another environment "
            f"({', '.join(others)}) than the others ({group}) and are left out."
        )
    cells = [
        without_values(cell) if cell.environment_group in others else cell for cell in run.cells
    ]
    return Source(run, tuple(_with_races_apart(cells)), group, tuple(notes))


#: What a race's record says once for all its solvers.
_SHARED = ("n_train", "n_test")


def _with_races_apart(cells: list[CellResult]) -> list[CellResult]:
    """Return the cells with races taken apart; each part has the metrics that its race shares."""
    metrics_of = {
        cell.key: {name: cell.metrics[name] for name in _SHARED if name in cell.metrics}
        for cell in cells
        if cell.is_race
    }
    return [
        replace(part, metrics={**metrics_of[part.key], **part.metrics})
        if metrics_of.get(part.key)
        else part
        for part in split_races(cells)
    ]


def _runs_that_count(sources: Iterable[Source]) -> tuple[list[Source], list[str]]:
    """Return the runs of a config that count, and a sentence on each of the other runs.

    The module's docstring has the rule. A run of the smoke test is selected if there is no other,
    and decides nothing.
    """
    by_results = sorted(sources, key=Source.n_results, reverse=True)
    best: dict[str, Source] = {}
    for source in by_results:
        best.setdefault(source.profile, source)
    others = [best[name] for name in sorted(best) if name not in {FULL_PROFILE, SMOKE_TEST_PROFILE}]
    if FULL_PROFILE in best and best[FULL_PROFILE].n_results():
        main_run, *more = (source for source in by_results if source.profile == FULL_PROFILE)
        chosen = _filled_in(main_run, [*more, *others])
    else:
        chosen = [*others, *(best[name] for name in (FULL_PROFILE,) if name in best)] or [
            best[SMOKE_TEST_PROFILE]
        ]
    counted = [replace(source, alone=len(chosen) == 1) for source in chosen]
    notes = [
        f"{source.run.path.name} (profile {source.profile}, {source.n_results()} results) is kept, "
        "too, and does not count here."
        for source in by_results
        if not any(source.run is counted.run for counted in chosen)
    ]
    return counted, notes


#: Statuses of a cell without a result in the environment that counts.
NOT_RUN_STATUSES = ("planned", "not run", "other environment")


def _filled_in(main_run: Source, others: Sequence[Source]) -> list[Source]:
    """Return the main run, and the other runs with the blocks that they supply.

    The module's docstring has the rule. A block is finished on a data set as a whole, so that
    solvers are compared within one run, and claims that compare blocks find them in one run.
    Another run of the main run's profile has finished a block if it has as many cells there as the
    main run plans: it may be of an earlier form of the config, which had fewer. Among equals, the
    order is that of `others`.
    """
    done, planned = set(_finished(main_run)), _n_cells(main_run)
    finished = [(main_run, block) for block in done]
    for other in others:
        n_cells, has_main_profile = _n_cells(other), other.profile == main_run.profile
        finished += [
            (other, block)
            for block in _finished(other)
            if (n_cells[block] >= planned[block] if has_main_profile else block not in done)
        ]
    # Blocks are named with their data set: (block, data set).
    n_finished = Counter((id(run), block[1]) for run, block in finished if block in planned)
    finished.sort(key=lambda of_run: -n_finished[id(of_run[0]), of_run[1][1]])
    source_of_block: dict[tuple[str, str | None], Source] = {}
    for run, block in finished:
        source_of_block.setdefault(block, run)
    supplied = [
        (other, {block for block, run in source_of_block.items() if run is other})
        for other in others
    ]
    of_others = {block for _, blocks in supplied for block in blocks}
    return [
        _restricted_to(main_run, planned.keys() - of_others),
        *(_restricted_to(other, blocks) for other, blocks in supplied if blocks),
    ]


def _finished(source: Source) -> Iterator[tuple[str, str | None]]:
    """Return each block and data set whose cells have all been run, at least one with a result."""
    states: dict[tuple[str, str | None], set[str]] = {}
    for cell in source.cells:
        states.setdefault(_block_and_set(cell), set()).add(cell.status)
    return (
        identity
        for identity, statuses in states.items()
        if "ok" in statuses and not statuses & set(NOT_RUN_STATUSES)
    )


def _n_cells(source: Source) -> Counter[tuple[str, str | None]]:
    """Return the number of planned cells of each block and data set."""
    return Counter(_block_and_set(cell) for cell in source.cells)


def _restricted_to(source: Source, pairs: Collection[tuple[str, str | None]]) -> Source:
    return replace(
        source, cells=tuple(cell for cell in source.cells if _block_and_set(cell) in pairs)
    )


def _block_and_set(cell: CellResult) -> tuple[str, str | None]:
    return cell.block, cell.dataset


def _is_of(folder: str, config: str) -> bool:
    return folder == config or folder.startswith(f"{config}-")
