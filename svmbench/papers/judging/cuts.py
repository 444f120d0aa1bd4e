"""Parts whose records are of less than the paper's protocol, and count at a reduced scale.

:mod:`svmbench.report.summary` finds fewer rows. This module finds fewer folds, repeats, or values
of a grid or a sweep: it compares the kept profile of a run with the profile ``paper`` of its
config, which is the full protocol.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from svmbench.base.files import read_bytes
from svmbench.base.paper_folders import FULL_PROFILE, Paper
from svmbench.base.paths import asset
from svmbench.papers.judging.checks import CHECKS
from svmbench.papers.judging.entries import Claim
from svmbench.papers.judging.evidence import NOT_RUN, SMOKE_TEST_PROFILE, Evidence, Source
from svmbench.papers.judging.verdict import Part
from svmbench.report.records import CellResult, Run
from svmbench.report.summary import cut_to

#: Settings of a block that count something, and what they count.
_COUNTS = {
    "folds": "folds",
    "outer_folds": "outer folds",
    "inner_folds": "inner folds",
    "run_folds": "outer folds",
    "repeats": "repeats",
    "samples": "samples",
}
#: Default time limit of a cell in seconds.
_TIMEOUT_S = 3600.0
#: Largest number of data sets named in a reason.
_MOST_NAMED_DATASETS = 3

_Settings = Mapping[str, Any]


def with_cuts(parts: Sequence[Part], claim: Claim, paper: Paper, kept: Evidence) -> list[Part]:
    """Return parts that say what their records have less of than the paper.

    Parameters
    ----------
    parts : sequence of Part
    claim : Claim
    paper : Paper
        Whose claim it is.
    kept : Evidence
    """
    of_cell: dict[str, Source] = {}
    for found in kept.sources.values():
        for source in found:
            if source.run.paper == paper.key:
                named = source.run.name in claim.configs
                of_cell.update(
                    (cell.key, source) for cell in source.cells if named or cell.key not in of_cell
                )
    # A check may count results on a set that its run has not finished, and another one lends.
    for source in {id(one): one for one in of_cell.values()}.values():
        for cell in source.run.cells:
            of_cell.setdefault(cell.key, source)
    return [_with_cut(part, of_cell, named=bool(CHECKS[claim.id].datasets)) for part in parts]


def _with_cut(part: Part, of_cell: dict[str, Source], *, named: bool) -> Part:
    """Return a part that names its cut data sets, each with the profile that cut it.

    Of a claim that names no data sets the rows of the config's full protocol are all rows.
    """
    pairs = [(cell, of_cell[cell.key]) for cell in part.cells if cell.key in of_cell]
    profiles = list(dict.fromkeys(source.profile for _, source in pairs))
    if SMOKE_TEST_PROFILE in profiles:
        return replace(part, smoke_test=True)
    cut: dict[str, str] = {}
    fewer: dict[str, None] = {}
    for source in {id(source): source for _, source in pairs}.values():
        own = [cell for cell, of in pairs if of is source]
        fewer.update(dict.fromkeys(fewer_settings(source.run, own)))
        fewer.update(dict.fromkeys(_unfinished(source, own)))
        if not named and source.profile == FULL_PROFILE:
            continue
        for dataset in dict.fromkeys(cell.dataset for cell in own if cell.dataset):
            rows = cut_to(source.run, [cell for cell in own if cell.dataset == dataset])
            if rows:
                cut[dataset] = rows
    said = [f"{name} {rows}" for name, rows in list(cut.items())[:_MOST_NAMED_DATASETS]]
    if len(cut) > _MOST_NAMED_DATASETS:
        said.append(f"{len(cut) - _MOST_NAMED_DATASETS} more")
    said += fewer
    return replace(part, cut=f"{'; '.join(said)} (profile {', '.join(profiles)})" if said else "")


def _unfinished(source: Source, cells: Sequence[CellResult]) -> list[str]:
    """Return how many of a part's planned cells are not run.

    Of a part that compares data sets these are all of its solvers in its blocks, of another those
    on its data set.
    """
    datasets = {cell.dataset for cell in cells}
    of_part = {(cell.block, cell.solver) for cell in cells}
    planned = [
        cell
        for cell in source.cells
        if (cell.block, cell.solver) in of_part and (len(datasets) > 1 or cell.dataset in datasets)
    ]
    left = sum(cell.status in NOT_RUN for cell in planned)
    return [f"{left} of {len(planned)} cells not run"] if left else []


def fewer_settings(run: Run, cells: Sequence[CellResult]) -> list[str]:
    """Return of what cells have less than the full protocol, such as ``2 of 8 values of C``.

    Parameters
    ----------
    run : Run
        Of a config that ships: of any other nobody knows the full protocol.
    cells : sequence of Cell
    """
    config = shipped_config(run.name)
    profiles = config.get("profiles", {})
    cut, full = profiles.get(run.profile) or {}, profiles.get(FULL_PROFILE) or {}
    if run.profile == FULL_PROFILE or not config:
        return []
    # An older run was cut by another profile of this name: nobody knows by how much.
    known = run.profile_note == cut.get("note", "")
    blocks = {str(block.get("name")): block for block in config.get("blocks", [])}
    said: dict[str, None] = {}
    for name in dict.fromkeys(cell.block for cell in cells):
        if name not in blocks:  # of an earlier form of the config, which may have had fewer values
            said[f"block {name}, which the config has no more"] = None
            continue
        block = blocks[name]
        said.update(dict.fromkeys(_fewer_counted(run.blocks.get(name, {}), block, cut, full)))
        solvers = {cell.solver for cell in cells if cell.block == name}
        for solver in block.get("solvers") or config.get("solvers", []):
            if solver.get("label", solver.get("name")) in solvers:
                grids = [one.get("grid", {}) for one in (solver, cut, full)]
                said.update(dict.fromkeys(_fewer_values(*grids, known=known)))
        sweeps = [one.get("sweep", {}) for one in (block, cut, full)]
        said.update(dict.fromkeys(_fewer_values(*sweeps, known=known)))
        if "gammas" in block:
            widths = [
                {"gamma": one["gammas"]} if "gammas" in one else {} for one in (block, cut, full)
            ]
            said.update(dict.fromkeys(_fewer_values(*widths, known=known)))
    return list(said)


def to_decide(claim: Claim, sources: Sequence[Source]) -> str:
    """Return the number of cells in an open claim's full protocol, and the time they need.

    The cells of a data set are those that a kept run plans; each ends at its time limit. "" where
    no run of a config that ships is kept.
    """
    counts: dict[str, int] = {}
    for run in (source.run for source in sources):
        n_own = sum(_n_planned(run, block) for block in shipped_config(run.name).get("blocks", []))
        counts[run.name] = max(n_own, counts.get(run.name, 0))
    counts = {name: n_own for name, n_own in counts.items() if n_own}
    if not counts:
        return ""
    seconds = sum(
        n * shipped_config(name).get("timeout_s", _TIMEOUT_S) for name, n in counts.items()
    )
    return (
        f"about {sum(counts.values()):,} cells of {', '.join(counts)} at profile {FULL_PROFILE}, "
        f"at most {math.ceil(seconds / 3600.0):,} hours"
    )


def _n_planned(run: Run, block: _Settings) -> int:
    """Return the number of cells of a block in the full protocol, from those of a kept run."""
    own = {(cell.key, cell.dataset) for cell in run.cells if cell.block == block.get("name")}
    names = {dataset for _, dataset in own}
    config = shipped_config(run.name)
    wanted = block.get("datasets") or config.get("datasets", [])
    if not names:
        # Of an earlier form of the config, nothing tells how many cells a data set has.
        known = {one.get("name") for one in config.get("blocks", [])}
        return 0 if known >= run.blocks.keys() else len(wanted)
    n_cells = len({key for key, _ in own}) * max(1.0, len(wanted) / len(names))
    for name, values in block.get("sweep", {}).items():
        swept = {str(cell.dimensions[name]) for cell in run.cells if name in cell.dimensions}
        n_cells *= max(1.0, _n_values(values) / len(swept)) if swept else 1.0
    return round(n_cells)


def _fewer_counted(kept: _Settings, block: _Settings, cut: _Settings, full: _Settings) -> list[str]:
    """Return the numbers of a kept block that are below those of the full protocol."""
    said = []
    for key, what in _COUNTS.items():
        own, wanted = kept.get(key), full.get(key, block.get(key))
        if key == "run_folds":  # 0 runs all of the outer ones
            wanted = wanted or full.get("outer_folds", block.get("outer_folds"))
        if not own or not (wanted or key in cut):
            continue
        if not wanted:
            said.append(f"{own} {what}")
        elif own < wanted:
            said.append(f"{own} of {wanted} {what}")
    return said


def _fewer_values(grid: _Settings, cut: _Settings, full: _Settings, *, known: bool) -> list[str]:
    """Return of which parameters a profile has fewer values than the full protocol."""
    said = []
    for name in (name for name in grid if name in cut):
        own, wanted = _n_values(cut[name]), _n_values(full.get(name, grid[name]))
        if own < wanted:
            said.append(f"{own if known else 'few'} of {wanted} values of {name}")
    return said


def _n_values(given: Any) -> int:
    """Return the number of values in a config's list, range of powers or range of numbers."""
    if isinstance(given, Mapping) and "step" not in given:
        given = given.get("exponents", [])
    if isinstance(given, Mapping):
        step = given.get("step", 1)
        return int((given["stop"] - given["start"]) / step + 1e-9) + 1
    return len(given) if isinstance(given, Sequence) else 1


@cache
def shipped_config(name: str) -> _Settings:
    """Return a config that ships, as its file has it; empty for any other name."""
    import yaml

    path = asset("configs") / f"{name}.yaml"
    if path.name != f"{name}.yaml" or not path.is_file():
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(read_bytes(path), loader)
    return content if isinstance(content, Mapping) else {}
