"""Say in what a part's runs are smaller than the paper's protocol, and what the missing cells take.

A part with a smaller run has the scale *reduced*. Here are fewer folds, repeats, or values of a
grid or a sweep: a run's plan has its own counts and those of the config's full protocol, which is
the profile ``paper``. Fewer rows are in :mod:`svmbench.report.numbers.summary`. The second half
lists the cells that a full protocol lacks, and forecasts their time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svmbench.base.paper_folders import FULL_PROFILE, Paper, shipped_config
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import NOT_RUN_STATUSES, SMOKE_TEST_PROFILE, Evidence, Source
from svmbench.papers.judging.verdict import UNAVAILABLE_STATUSES, Part
from svmbench.report.numbers.cell_times import Forecaster, Work, whole_work_of, work_of
from svmbench.report.numbers.summary import cut_to
from svmbench.report.reading.records import VERSUS, CellResult, Run
from svmbench.schema.record import duration_text

#: The settings of a block that are counts, with the names of what they count.
_COUNTS = {
    "folds": "folds",
    "outer_folds": "outer folds",
    "inner_folds": "inner folds",
    "outer_repeats": "repeats of the outer folds",
    "run_folds": "outer folds",
    "repeats": "repeats",
    "samples": "samples",
}
#: Largest number of data sets named in a reason.
_MAX_NAMED_DATASETS = 3

_Settings = Mapping[str, Any]


def runs_by_key(claim: Claim, paper: Paper, evidence: Evidence) -> dict[str, Source]:
    """Return the run of each cell of a claim's paper, by the cell's key."""
    source_of: dict[str, Source] = {}
    for sources in evidence.sources.values():
        for source in sources:
            if source.run.paper == paper.key:
                is_of_claim = source.run.name in claim.configs
                source_of.update(
                    (cell.key, source)
                    for cell in source.cells
                    if is_of_claim or cell.key not in source_of
                )
    # A check may count a set's results from another run, if its own run has not finished the set.
    for source in {id(source): source for source in source_of.values()}.values():
        for cell in source.run.cells:
            source_of.setdefault(cell.key, source)
    return source_of


def mark_smoke_tests(parts: Sequence[Part], source_of: Mapping[str, Source]) -> list[Part]:
    """Return the parts; those with records of the smoke test are marked, and decide nothing.

    Parameters
    ----------
    parts : sequence of Part
    source_of : mapping of str to Source
        The run of each cell, by the cell's key.
    """
    smoke_tests = {key for key, source in source_of.items() if source.profile == SMOKE_TEST_PROFILE}
    return [
        replace(part, smoke_test=any(cell.key in smoke_tests for cell in part.cells))
        for part in parts
    ]


def with_cut(part: Part, source_of: Mapping[str, Source], *, names_datasets: bool) -> Part:
    """Return a part with a phrase on what its runs lack of the paper's protocol.

    The phrase names the cut data sets, then the cuts that the check itself names, and at the end
    the profiles of the runs. For a claim that names no data sets, the rows of the config's full
    protocol count as all rows.
    """
    pairs = [(cell, source_of[cell.key]) for cell in part.cells if cell.key in source_of]
    profiles = list(dict.fromkeys(source.profile for _, source in pairs))
    rows_of: dict[str, str] = {}  # of each cut data set, how many rows it has
    fewer: dict[str, None] = {}
    for source in {id(source): source for _, source in pairs}.values():
        cells = [cell for cell, run_of in pairs if run_of is source]
        fewer.update(dict.fromkeys(fewer_settings(source.run, cells)))
        fewer.update(dict.fromkeys(_cells_not_run(source, pairs)))
        if not names_datasets and source.profile == FULL_PROFILE:
            continue
        for dataset in dict.fromkeys(cell.dataset for cell in cells if cell.dataset):
            rows = cut_to(source.run, [cell for cell in cells if cell.dataset == dataset])
            if rows:
                rows_of[dataset] = rows
    phrases = [f"{name} {rows}" for name, rows in list(rows_of.items())[:_MAX_NAMED_DATASETS]]
    if len(rows_of) > _MAX_NAMED_DATASETS:
        phrases.append(f"{len(rows_of) - _MAX_NAMED_DATASETS} more")
    phrases += [part.cut] if part.cut else []
    phrases += fewer
    return replace(
        part, cut=f"{'; '.join(phrases)} (profile {', '.join(profiles)})" if phrases else ""
    )


def _cells_not_run(source: Source, pairs: Sequence[tuple[CellResult, Source]]) -> list[str]:
    """Return how many planned cells of a part are in none of its runs of the same plan.

    A part on one data set has the planned cells of its solvers and blocks on this set; a part that
    compares data sets has those on all sets.
    """
    plan = source.run.name, source.profile
    of_plan = [(cell, run) for cell, run in pairs if (run.run.name, run.profile) == plan]
    runs = {id(run): run for _, run in of_plan}
    cells = [cell for cell, _ in of_plan]
    datasets = {cell.dataset for cell in cells}
    of_part = {(cell.block, cell.solver) for cell in cells}
    is_missing: dict[tuple[object, ...], bool] = {}
    for cell in (cell for run in runs.values() for cell in run.cells):
        if (cell.block, cell.solver) in of_part and (len(datasets) > 1 or cell.dataset in datasets):
            name = (cell.block, *cell.identity, cell.fold)
            is_missing[name] = is_missing.get(name, True) and cell.status in NOT_RUN_STATUSES
    n_missing = sum(is_missing.values())
    return [f"{n_missing} of {len(is_missing)} cells not run"] if n_missing else []


def fewer_settings(run: Run, cells: Sequence[CellResult]) -> list[str]:
    """Return what cells lack of the full protocol, such as ``2 of 8 values of C``.

    Parameters
    ----------
    run : Run
        Its plan has the counts of the full protocol, if the config has one.
    cells : sequence of CellResult
    """
    if run.profile == FULL_PROFILE:
        return []
    if not run.counts:
        return [f"an unknown share of the protocol: the plan of {run.path.name} has no counts"]
    if not run.full_counts:  # the config has no full protocol
        return []
    sentences: dict[str, None] = {}
    for name in dict.fromkeys(cell.block for cell in cells):
        of_run, full = run.counts.get(name, {}), run.full_counts.get(name)
        if full is None:  # of an earlier form of the config, which may have had fewer values
            sentences[f"block {name}, which the config has no more"] = None
            continue
        sentences.update(dict.fromkeys(_fewer_counted(of_run, full)))
        solvers = {cell.solver for cell in cells if cell.block == name}
        for solver, grid in full.get("grids", {}).items():
            if solver in solvers:
                run_grid = of_run.get("grids", {}).get(solver, {})
                sentences.update(dict.fromkeys(_fewer_values(run_grid, grid)))
        sentences.update(
            dict.fromkeys(_fewer_values(of_run.get("sweep", {}), full.get("sweep", {})))
        )
        widths = [{"gamma": counts.get("gammas", 0)} for counts in (of_run, full)]
        sentences.update(dict.fromkeys(_fewer_values(*widths)))
    return list(sentences)


def _fewer_counted(of_run: _Settings, full: _Settings) -> list[str]:
    """Return the settings of a block with smaller numbers than in the full protocol."""
    sentences = []
    for key, what in _COUNTS.items():
        number, required = of_run.get(key), full.get(key)
        if key == "run_folds":  # 0 runs all of the outer ones
            required = required or full.get("outer_folds")
        if not number or required is None:
            continue
        if not required:
            sentences.append(f"{number} {what}")
        elif number < required:
            sentences.append(f"{number} of {required} {what}")
    return sentences


def _fewer_values(of_run: _Settings, full: _Settings) -> list[str]:
    """Return the parameters with fewer values than in the full protocol."""
    return [
        f"{of_run[name]} of {required} values of {name}"
        for name, required in full.items()
        if of_run.get(name, required) < required
    ]


def is_repeatable(run: Run) -> bool:
    """Return True if the config still has the run's profile, with the same note.

    A config that doesn't ship counts as unchanged.

    Parameters
    ----------
    run : Run
    """
    config = shipped_config(run.name)
    profiles = {FULL_PROFILE: {}, **config.get("profiles", {})}
    if not config:
        return True
    if run.profile not in profiles:
        return False
    return bool(run.profile_note == (profiles[run.profile] or {}).get("note", ""))


@dataclass(frozen=True)
class Missing:
    """Cells of the full protocol without a result that differ only in their fold or swept value.

    Attributes
    ----------
    work : Work
    number : float
        How many cells.
    timeout_s : float
        The time limit of each cell.
    """

    work: Work
    number: float
    timeout_s: float


def to_decide(
    parts: Sequence[Part], sources: Sequence[Source], forecaster: Forecaster
) -> tuple[str, int | None]:
    """Return which cells of an undecided claim's full protocol are missing, and their number.

    The text says how long they take; it is "" if no kept run has the counts of a full protocol. The
    number is None if no kept run tells it. The cells of a data set are those that a kept run plans.

    Parameters
    ----------
    parts : sequence of Part
        The parts of the claim. If there are any, cells of other blocks and solvers don't count.
    sources : sequence of Source
        The kept runs of its configs.
    forecaster : Forecaster
    """
    runs: dict[str, list[Run]] = {}
    for run in (source.run for source in sources):
        if run.full_counts:
            runs.setdefault(run.name, []).append(run)
    if not runs:
        return "", None
    where = f"{', '.join(runs)} at profile {FULL_PROFILE}"
    missing = [cells for of_config in runs.values() for cells in missing_work(of_config)]
    missing = of_parts(missing, parts)
    if not missing and _has_other_blocks(runs, parts):
        why = "whose blocks are others than the kept runs have: no record tells how long"
        return f"{where}, {why}", None
    if not missing:
        why = "it takes more repeats, more seeds or other data"
        return f"no cell of {where} is missing whose data are here: {why}", 0
    n_cells = max(1, round(sum(cells.number for cells in missing)))
    cells = f"{n_cells:,} missing {'cell' if n_cells == 1 else 'cells'} of {where}"
    return f"{cells}, {_time_text(missing, forecaster)}", n_cells


def missing_work(runs: Sequence[Run]) -> list[Missing]:
    """Return the cells of a config's full protocol without a result in its kept runs.

    Cells whose data are unavailable are left out. A cell with fewer rows, values or folds than in
    the full protocol counts as missing, with the full numbers.

    Parameters
    ----------
    runs : sequence of Run
        Of one config, with the counts of its full protocol.
    """
    full = runs[0].full_counts
    whole = [run for run in runs if run.profile == FULL_PROFILE]
    if whole:
        # Runs by different code have different keys of the same cell.
        cells = [
            ((cell.block, *cell.identity, cell.fold), run, cell)
            for run in whole
            for cell in run.cells
        ]
        without_result = (*NOT_RUN_STATUSES, *UNAVAILABLE_STATUSES)
        finished = {name for name, _, cell in cells if cell.status not in without_result}
        missing = {
            name: (run, cell)
            for name, run, cell in cells
            if cell.status in NOT_RUN_STATUSES and name not in finished
        }
        return [
            Missing(work_of(run, cell), 1.0, _timeout_s(full.get(cell.block, {})))
            for run, cell in missing.values()
        ]
    return [
        missing
        for name, counts in full.items()
        for missing in _missing_of_block(runs, name, counts)
    ]


def _missing_of_block(runs: Sequence[Run], block: str, full: _Settings) -> Iterator[Missing]:
    """Yield the missing cells of a block in the full protocol, from the cells of smaller runs."""
    cells: dict[tuple[object, ...], tuple[Run, CellResult, bool]] = {}
    for run in runs:
        for cell in {cell.key: cell for cell in run.cells}.values():
            if cell.block == block:
                identity = (*cell.identity, cell.fold)
                is_whole = cell.status not in NOT_RUN_STATUSES and not (
                    fewer_settings(run, [cell]) or cut_to(run, [cell])
                )
                cells[identity] = (
                    run,
                    cell,
                    is_whole or (identity in cells and cells[identity][2]),
                )
    if not cells:
        return
    present = dict.fromkeys(cell.dataset for _, cell, _ in cells.values())
    factor = 1.0
    for name, n_values in full.get("sweep", {}).items():
        swept = {str(cell.dimensions.get(name)) for _, cell, _ in cells.values()}
        factor *= max(1.0, n_values / len(swept))
    # A set without planned cells is taken to have as many cells as the other sets on average.
    others = [name for name in full.get("datasets", []) if name not in present]
    timeout_s = _timeout_s(full)
    for run, cell, is_whole in cells.values():
        number = factor - 1.0 if is_whole else factor
        if number and cell.status not in UNAVAILABLE_STATUSES:
            yield Missing(whole_work_of(run, cell), number, timeout_s)
        for name in others:
            cell_of_dataset = replace(cell, dataset=name, metrics={})
            yield Missing(whole_work_of(run, cell_of_dataset), factor / len(present), timeout_s)


def _timeout_s(counts: _Settings) -> float:
    """Return the time limit of a block's cells in seconds."""
    return float(counts.get("timeout_s", math.inf))


def of_parts(missing: Sequence[Missing], parts: Sequence[Part]) -> list[Missing]:
    """Return the missing cells of the blocks and solvers that the parts of a claim use.

    Parameters
    ----------
    missing : sequence of Missing
    parts : sequence of Part
    """
    used: dict[str, set[str]] = {}
    for cell in (cell for part in parts for cell in part.cells):
        used.setdefault(cell.block, set()).update(str(cell.solver).split(VERSUS))
    used_cells = [
        cells
        for cells in missing
        if used.get(cells.work.block, set()) & set(cells.work.solver.split("|"))
    ]
    return used_cells if used else list(missing)


def _has_other_blocks(configs: Mapping[str, Sequence[Run]], parts: Sequence[Part]) -> bool:
    """Return True if parts rest on a block that the full protocol of none of the configs has."""
    blocks = {cell.block for part in parts for cell in part.cells}
    return bool(blocks - {block for runs in configs.values() for block in runs[0].full_counts})


def _time_text(missing: Sequence[Missing], forecaster: Forecaster) -> str:
    """Return how long some cells take, and which solver takes most of it."""
    seconds: dict[str, float] = {}
    unknown = too_long = 0.0
    for cells in missing:
        forecast = forecaster.seconds(cells.work)
        if forecast is None:
            unknown += cells.number
        elif forecast >= cells.timeout_s:
            too_long += cells.number
        else:
            of_solver = seconds.get(cells.work.solver, 0.0)
            seconds[cells.work.solver] = of_solver + cells.number * forecast
    phrases = []
    if seconds:
        phrases.append(duration_text(sum(seconds.values())))
        slowest = max(seconds, key=lambda solver: seconds[solver])
        if len(seconds) > 1 and seconds[slowest] > sum(seconds.values()) / 2.0:
            phrases[-1] += f", most of it {slowest.replace('|', ' / ')}"
    if too_long:
        phrases.append(f"{too_long:,.0f} of them would end at their time limit and decide nothing")
    if unknown:
        phrases.append(f"no record tells how long {unknown:,.0f} of them take")
    return "; ".join(phrases)
