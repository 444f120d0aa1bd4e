"""Limits on the number of cells and grid points of a config, checked before cells are listed.

A config of a few hundred bytes can describe more cells than fit into memory: a thousand values
times a thousand folds times a thousand solvers.
"""

from __future__ import annotations

from collections.abc import Sequence

from svmbench.base.errors import ConfigError
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.models import Config
from svmbench.experiment.config.partial_parse import PLACEHOLDER_BLOCK, Draft
from svmbench.experiment.config.profiles import apply_profile
from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import Block, DatasetSpec, SolverSpec, TrainingBlock

#: Largest number of cells of a config; the largest shipped config has 780.
MAX_CONFIG_CELLS = 50_000

#: Largest number of grid points in all cells of a config; the largest shipped config has 102,856
#: (``srbo_table5``, nu in steps of 0.001).
MAX_CONFIG_POINTS = 2_000_000


def check_counts(draft: Draft, findings: Findings) -> bool:
    """Return True if a config is within the limits, without a profile and with each profile.

    Parameters
    ----------
    draft : Draft
        The draft of a config; its `config` is not None.
    findings : Findings
        Collects the blocks that exceed the limits, added to the blocks before them.
    """
    config = draft.config
    assert config is not None
    before = len(findings)
    _check(config, "", draft, findings)
    for name in config.profiles if len(findings) == before else ():
        try:
            cut = apply_profile(config, name)
        except ConfigError:  # other checks report it
            continue
        _check(cut, f" with the profile {name!r}", draft, findings)
    return len(findings) == before


def _check(config: Config, cut: str, draft: Draft, findings: Findings) -> None:
    names = [block.name for block in draft.config.blocks] if draft.config else []
    cells = points = 0
    for block in config.blocks:
        if block.name == PLACEHOLDER_BLOCK:
            continue
        n_cells, n_points = _count_block(config, block)
        cells, points = cells + n_cells, points + n_points
        for number, limit, unit in (
            (
                cells,
                MAX_CONFIG_CELLS,
                "cells (data sets, solvers, folds and swept values multiplied)",
            ),
            (points, MAX_CONFIG_POINTS, "grid points in all cells"),
        ):
            if number > limit:
                place = draft.place(("blocks", names.index(block.name)))
                message = f"up to here there are {number:,} {unit}{cut}, more than {limit:,}"
                findings.add(place, message, place)
                return


def _count_block(config: Config, block: Block) -> tuple[int, int]:
    """Return the number of cells of a block and the number of their grid points."""
    datasets = config.datasets_of(block)
    if not isinstance(block, TrainingBlock):
        return len(datasets), 0
    declared = protocols()[block.protocol]
    per_solver = _n_swept(block, datasets) * len(declared.folds_to_run(block))
    solvers: Sequence[SolverSpec] = config.solvers_of(block)
    n_points = per_solver * sum(spec.n_grid_points for spec in solvers)
    return per_solver * (len(solvers) if declared.cell == "solver" else 1), n_points


def _n_swept(block: TrainingBlock, datasets: Sequence[DatasetSpec]) -> int:
    """Return the number of combinations of swept values, summed over the data sets."""
    counts: dict[tuple[int, int], int] = {}
    total = 0
    for dataset in datasets:
        kind = len(dataset.sizes), len(dataset.features)
        if kind not in counts:
            counts[kind] = block.n_swept(dataset)
        total += counts[kind]
    return total
