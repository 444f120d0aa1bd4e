"""Cut a config to a profile."""

from __future__ import annotations

from typing import Any

from svmbench.base.errors import ConfigError, suggestion
from svmbench.experiment.config.capabilities import is_here
from svmbench.experiment.config.checks import all_solvers
from svmbench.experiment.config.models import Config
from svmbench.experiment.settings.blocks import (
    Block,
    DatasetSpec,
    RaceBlock,
    SolverSpec,
    TrainingBlock,
)

#: Keys that are short for a dimension of a sweep, with the dimension.
ALIASES = {"sizes": "rows", "features": "features"}


def apply_profile(config: Config, name: str) -> Config:
    """Return the config cut by a profile, without optional solvers that are not installed.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the config has no such profile, or the profile leaves out all of its blocks.
    """
    if name not in config.profiles:
        known = list(config.profiles)
        raise ConfigError(
            f"unknown profile {name!r}{suggestion(name, known)}"
            f" (this config has: {', '.join(known)})"
        )
    profile = config.profiles[name]
    cuts = profile.block_cuts()
    aliases: dict[str, Any] = {name: getattr(profile, alias) for alias, name in ALIASES.items()}

    def cut_solver(spec: SolverSpec) -> SolverSpec:
        grid = {k: profile.grid.get(k, v) for k, v in spec.grid.items()}
        params = {**spec.params, **profile.params.get(spec.called, {})}
        return spec.model_copy(update={"grid": grid, "params": params})

    def cut_dataset(spec: DatasetSpec) -> DatasetSpec:
        sweeps: dict[str, Any] = {}
        if profile.sizes is not None and spec.sizes:
            sweeps["sizes"] = profile.sizes
        if profile.features is not None and spec.features:
            sweeps["features"] = profile.features
        return spec.model_copy(update=sweeps)

    def chosen(specs: list[DatasetSpec], block: str = "") -> list[DatasetSpec]:
        keep = profile.datasets
        if isinstance(keep, dict):
            keep = keep.get(block)
        return [cut_dataset(s) for s in specs if keep is None or s.name in keep]

    def own_datasets(block: Block) -> list[DatasetSpec]:
        is_named = isinstance(profile.datasets, dict) and block.name in profile.datasets
        return config.datasets_of(block) if is_named else block.datasets

    def chosen_of(block: Block) -> list[DatasetSpec]:
        return chosen(own_datasets(block), block.name)

    def cut_block(block: Block) -> Block:
        known = type(block).model_fields
        update: dict[str, Any] = {name: value for name, value in cuts.items() if name in known}
        update["datasets"] = chosen_of(block)
        if isinstance(block, TrainingBlock):
            update["solvers"] = [cut_solver(s) for s in block.solvers]
            sweeps = {**{k: v for k, v in aliases.items() if v is not None}, **profile.sweep}
            update["sweep"] = {name: sweeps.get(name, v) for name, v in block.sweep.items()}
            for alias, name in ALIASES.items():
                if getattr(block, alias) and name in sweeps:
                    update[alias] = sweeps[name]
        return block.model_copy(update=update)

    update: dict[str, Any] = {
        "datasets": chosen(config.datasets),
        "solvers": [cut_solver(s) for s in config.solvers],
        # A block is dropped if the profile leaves none of its data sets; its tables say "no cells".
        "blocks": [cut_block(b) for b in config.blocks if not own_datasets(b) or chosen_of(b)],
    }
    if config.blocks and not update["blocks"]:
        raise ConfigError(f"profile {name!r}: its data sets leave out every block")
    if profile.timeout_s is not None:
        update["timeout_s"] = profile.timeout_s
    return _without_absent(config.model_copy(update=update))


def _without_absent(config: Config) -> Config:
    """Return the config without the optional solvers that are not installed here."""
    specs = all_solvers(config)
    if not any(spec.optional for spec in specs):
        return config
    absent = {spec.shown for spec in specs if spec.optional and not is_here(spec)}

    def installed(specs: list[SolverSpec]) -> list[SolverSpec]:
        return [spec for spec in specs if spec.shown not in absent]

    def cut_block(block: Block) -> Block:
        update: dict[str, Any] = {}
        if isinstance(block, TrainingBlock):
            update["solvers"] = installed(block.solvers)
        if isinstance(block, RaceBlock):
            update["pairs"] = [pair for pair in block.pairs if not absent.intersection(pair)]
        return block.model_copy(update=update)

    blocks = [cut_block(block) for block in config.blocks]
    return config.model_copy(update={"solvers": installed(config.solvers), "blocks": blocks})
