"""Pydantic models of a config file: blocks of declared protocols, tables, plots, profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import Block, DatasetSpec, SolverSpec
from svmbench.experiment.settings.values import (
    MAX_RESOURCE_LIMIT,
    MOST_THREADS,
    Features,
    Folds,
    Grid,
    Limit,
    MaxSamples,
    Model,
    Name,
    Params,
    Repeats,
    RunFolds,
    SampleCount,
    Sizes,
    Sweep,
)
from svmbench.schema.specs import FILE_NAME, LONGEST_SPEC_NAME, PlotSpec, TableSpec


def _any_block() -> Any:
    """Return the type of a block: its keys are those of the protocol that its `protocol` names."""
    return Annotated[
        Union[tuple(one.settings for one in protocols().values())],  # noqa: UP007
        Field(discriminator="protocol"),
    ]


if TYPE_CHECKING:
    AnyBlock = Block
else:
    AnyBlock = _any_block()


#: The protocols that `AnyBlock` has.
_KNOWN = set(protocols())

# It becomes a part of a folder's name.
ProfileName = Annotated[str, Field(pattern=FILE_NAME, max_length=LONGEST_SPEC_NAME)]

#: Largest number of profiles of a config.
MOST_PROFILES = 50


class BlockCuts(Model):
    """The settings of blocks that a profile may change, where a block has them."""

    max_samples: MaxSamples | None = None
    outer_folds: Folds | None = None
    inner_folds: Folds | None = None
    run_folds: RunFolds | None = None
    folds: Folds | None = None
    repeats: Repeats | None = None
    gammas: list[Annotated[float, Field(gt=0)]] | None = None
    samples: SampleCount | None = None
    sample_rows: Annotated[int, Field(ge=4)] | None = None


class Profile(BlockCuts):
    """The cuts of a named budget; a setting that is not given stays as the config has it."""

    note: str = ""
    sizes: Sizes | None = None
    features: Features | None = None
    sweep: Sweep = {}
    datasets: Annotated[list[str], Field(min_length=1)] | None = None
    grid: Grid = {}
    params: dict[str, Params] = {}
    timeout_s: Limit | None = None


class Config(Model):
    """A whole experiment."""

    paper: Name = ""
    title: str
    seed: Annotated[int, Field(ge=0)] = 0
    timeout_s: Limit = 3600.0
    memory_gb: Limit = 4.0
    scratch_gb: Annotated[float, Field(ge=0, le=MAX_RESOURCE_LIMIT, allow_inf_nan=False)] = 8.0
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] = 1
    #: OpenBLAS's core type that all cells compute under; None for the one that it chooses itself.
    blas_core: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")] | None = None
    datasets: list[DatasetSpec] = []
    solvers: list[SolverSpec] = []
    blocks: Annotated[list[AnyBlock], Field(min_length=1)]
    tables: list[TableSpec] = []
    plots: list[PlotSpec] = []
    profiles: Annotated[
        dict[ProfileName, Profile], Field(min_length=1, max_length=MOST_PROFILES)
    ] = {"paper": Profile()}

    @classmethod
    def know_protocols(cls) -> None:
        """Let blocks be of every protocol that there is by now: a plug-in may have brought one."""
        if set(protocols()) != _KNOWN:
            _KNOWN.update(protocols())
            blocks: Any = list[_any_block()]  # type: ignore[misc]
            cls.model_fields["blocks"].annotation = blocks
            cls.model_rebuild(force=True)

    def datasets_of(self, block: Block) -> list[DatasetSpec]:
        """Return the block's own data sets, or the config's."""
        return block.datasets or self.datasets

    def solvers_of(self, block: Block) -> list[SolverSpec]:
        """Return the block's own solvers, or the config's."""
        return getattr(block, "solvers", []) or self.solvers
