"""Counts of the cells and fits of a config, taken before a list of them is made.

A config of a few hundred bytes can stand for more cells than fit into memory: a thousand values
times a thousand folds times a thousand solvers.
"""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.base.errors import ConfigError
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.models import Config
from svmbench.experiment.config.partial_parse import STAND_IN, Draft
from svmbench.experiment.config.profiles import apply_profile
from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import Block, DatasetSpec, SolverSpec, TrainingBlock

#: Largest number of cells of a config; the largest shipped config has 780.
MAX_CONFIG_CELLS = 50_000

#: Largest number of grid points in all cells of a config; the largest shipped config has 102,856
#: (``srbo_table5``, nu in steps of 0.001).
MAX_CONFIG_POINTS = 2_000_000


def check_counts(draft: Draft, findings: Findings) -> bool:
    """Return True if a config is within the limits, whole and with each profile applied.

    Parameters
    ----------
    draft : Draft
        Of a config that could be read.
    findings : Findings
        Gets the blocks by which there are too many cells or grid points.
    """
    config = draft.config
    assert config is not None
    before = len(findings)
    _check(config, "", draft, findings)
    for name in config.profiles if len(findings) == before else ():
        try:
            cut = apply_profile(config, name)
        except ConfigError:  # said elsewhere
            continue
        _check(cut, f" with the profile {name!r}", draft, findings)
    return len(findings) == before


def _check(config: Config, cut: str, draft: Draft, findings: Findings) -> None:
    names = [block.name for block in draft.config.blocks] if draft.config else []
    cells = points = 0
    for block in config.blocks:
        if block.name == STAND_IN:
            continue
        n_cells, n_points = _of_block(config, block)
        cells, points = cells + n_cells, points + n_points
        for number, most, what in (
            (
                cells,
                MAX_CONFIG_CELLS,
                "cells (data sets, solvers, folds and swept values multiplied)",
            ),
            (points, MAX_CONFIG_POINTS, "grid points in all cells"),
        ):
            if number > most:
                place = draft.place(("blocks", names.index(block.name)))
                said = f"up to here there are {number:,} {what}{cut}, more than {most:,}"
                findings.add(place, said, place)
                return


def _of_block(config: Config, block: Block) -> tuple[int, int]:
    """Return the numbers of cells of a block and of their grid points."""
    datasets = config.datasets_of(block)
    if not isinstance(block, TrainingBlock):
        return len(datasets), 0
    declared = protocols()[block.protocol]
    per_solver = _n_places(block, datasets) * len(declared.outer_folds(block))
    solvers: Sequence[SolverSpec] = config.solvers_of(block)
    n_points = per_solver * sum(spec.n_grid_points for spec in solvers)
    return per_solver * (len(solvers) if declared.cell == "solver" else 1), n_points


def _n_places(block: TrainingBlock, datasets: Sequence[DatasetSpec]) -> int:
    """Return at how many places all data sets are swept together."""
    alike: dict[tuple[int, int], int] = {}
    total = 0
    for dataset in datasets:
        kind = len(dataset.sizes), len(dataset.features)
        if kind not in alike:
            alike[kind] = block.n_swept(dataset)
        total += alike[kind]
    return total
