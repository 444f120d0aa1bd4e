"""Counts of a config's blocks in ``plan.json``: data sets, folds, repeats, values of grids."""

from __future__ import annotations

from typing import Any

from svmbench.experiment.config.models import Config
from svmbench.experiment.settings.blocks import Block, TrainingBlock
from svmbench.experiment.settings.values import count_of


def counts_by_block(config: Config) -> dict[str, dict[str, Any]]:
    """Return the counts of each block of a config, as the report reads them.

    Parameters
    ----------
    config : Config
        Cut by a profile.

    Returns
    -------
    dict of str to dict
        By the block's name: every setting that is a whole number (such as ``folds``), the number of
        values of every setting that is a list of numbers (such as ``gammas``), the ``draws`` of a
        sample and the ``neighbour_pairs`` of a path by the rows from which they are taken, the
        solvers that don't search their grids themselves (``choose_with``), the names of the
        ``datasets``, the limit ``timeout_s`` of a cell, and the numbers of values in its ``sweep``
        by dimension and in the ``grids`` of its solvers by parameter.
    """
    return {block.name: _count(config, block) for block in config.blocks}


def _count(config: Config, block: Block) -> dict[str, Any]:
    settings = block.model_dump(mode="json", exclude={"name", "title", "datasets", "solvers"})
    counts: dict[str, Any] = {
        "datasets": [dataset.name for dataset in config.datasets_of(block)],
        "timeout_s": config.timeout_s,
    }
    for name, value in settings.items():
        if isinstance(value, int) and not isinstance(value, bool):
            counts[name] = value
        elif isinstance(value, list) and value and all(isinstance(x, int | float) for x in value):
            counts[name] = len(value)
        elif name in ("draws", "neighbour_pairs"):
            counts[name] = value
        elif name == "choose_with" and value:
            counts[name] = list(value)
    if isinstance(block, TrainingBlock):
        counts["sweep"] = {name: count_of(values) for name, values in block.sweep.items()}
        counts["grids"] = {
            solver.shown: {name: count_of(values) for name, values in solver.grid.items()}
            for solver in config.solvers_of(block)
        }
    return counts
