"""Pydantic models of a config file: blocks of declared protocols, tables, plots, profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union, get_args

from pydantic import Field, create_model

from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import Block, DatasetSpec, SolverSpec
from svmbench.experiment.settings.values import (
    MAX_RESOURCE_LIMIT,
    MAX_THREADS,
    ChosenDatasets,
    Features,
    Grid,
    Limit,
    MaxSamples,
    Model,
    Name,
    Params,
    Sizes,
    Sweep,
)
from svmbench.schema.specs import FILE_NAME, MAX_SPEC_NAME_CHARS, PlotSpec, TableSpec


def _any_block() -> Any:
    """Return the type of a block: the settings of the protocol that its key `protocol` names."""
    return Annotated[
        Union[tuple(declared.settings for declared in protocols().values())],  # noqa: UP007
        Field(discriminator="protocol"),
    ]


if TYPE_CHECKING:
    AnyBlock = Block
else:
    AnyBlock = _any_block()


#: Names of the protocols whose blocks `Config` accepts.
_KNOWN = set(protocols())

# The name becomes part of a folder's name.
ProfileName = Annotated[str, Field(pattern=FILE_NAME, max_length=MAX_SPEC_NAME_CHARS)]

#: Largest number of profiles of a config.
MAX_PROFILES = 50


class Profile(Model):
    """The settings that a profile changes; all other settings keep the config's values.

    In addition to these keys, a profile has the settings of every protocol (:func:`_profile`). They
    change all blocks that have them.

    Attributes
    ----------
    note : str
        A phrase on the difference from the full protocol, which verdicts quote. Default: empty.
    sizes, features : list or None
        Numbers of rows and of features for the data sets and blocks that sweep them.
    sweep : dict of str to list
        Values of other swept dimensions, by dimension.
    datasets : list of str, dict of str to list of str, or None
        The data sets to run, for all blocks or by block; an empty list leaves a block out. Default:
        all.
    grid : dict of str to list
        Values of parameters in the grids of all solvers that have them.
    params : dict of str to dict
        Fixed parameters, by the solver's name, or by the label of a program.
    timeout_s : float or None
        Time limit of a cell in seconds.
    max_samples : int or None
        Largest number of rows of a data set.
    """

    note: str = ""
    sizes: Sizes | None = None
    features: Features | None = None
    sweep: Sweep = {}
    datasets: ChosenDatasets | None = None
    grid: Grid = {}
    params: dict[str, Params] = {}
    timeout_s: Limit | None = None
    max_samples: MaxSamples | None = None

    def block_cuts(self) -> dict[str, Any]:
        """Return the values that the profile gives to settings of blocks, by setting."""
        names = ["max_samples", *(type(self).model_fields.keys() - Profile.model_fields.keys())]
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


def _profile() -> type[Profile]:
    """Return the type of a profile that may change the settings of every protocol."""
    types: dict[str, list[Any]] = {}
    for declared in protocols().values():
        for name in set(declared.setting_names) - Profile.model_fields.keys():
            info = declared.settings.model_fields[name]
            annotation = (
                Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
            )
            if annotation not in types.setdefault(name, []):
                types[name].append(annotation)
    fields: Any = {name: (Union[(*each, None)], None) for name, each in types.items()}
    return create_model("Profile", __base__=Profile, __doc__=Profile.__doc__, **fields)


if TYPE_CHECKING:
    AnyProfile = Profile
else:
    AnyProfile = _profile()


class Config(Model):
    """A whole experiment.

    Attributes
    ----------
    paper : str
        The key of the paper. Default: none.
    title : str
    seed : int, default 0
        Seed of all folds, subsets and solvers.
    timeout_s : float, default 3600
        Time limit of a cell in seconds.
    memory_gb : float, default 4
        Memory limit of a cell in GiB.
    scratch_gb : float, default 8
        Largest size in GiB of the arrays that cells share.
    threads : int, default 1
        Threads of a cell.
    blas_core : str or None
        OpenBLAS's core type for all cells; None for OpenBLAS's own choice.
    datasets : list of DatasetSpec
        The data sets of all blocks that have none of their own.
    solvers : list of SolverSpec
        The solvers of all blocks that have none of their own.
    blocks : list of Block
        At least one.
    tables : list of TableSpec
    plots : list of PlotSpec
    profiles : dict of str to Profile
        Named sizes of the experiment. Default: ``paper``, which changes nothing.
    """

    paper: Name = ""
    title: str
    seed: Annotated[int, Field(ge=0)] = 0
    timeout_s: Limit = 3600.0
    memory_gb: Limit = 4.0
    scratch_gb: Annotated[float, Field(ge=0, le=MAX_RESOURCE_LIMIT, allow_inf_nan=False)] = 8.0
    threads: Annotated[int, Field(ge=1, le=MAX_THREADS)] = 1
    blas_core: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")] | None = None
    datasets: list[DatasetSpec] = []
    solvers: list[SolverSpec] = []
    blocks: Annotated[list[AnyBlock], Field(min_length=1)]
    tables: list[TableSpec] = []
    plots: list[PlotSpec] = []
    profiles: Annotated[
        dict[ProfileName, AnyProfile], Field(min_length=1, max_length=MAX_PROFILES)
    ] = {"paper": AnyProfile()}

    @classmethod
    def know_protocols(cls) -> None:
        """Accept blocks of protocols that plug-ins have registered since the last call."""
        if set(protocols()) != _KNOWN:
            _KNOWN.update(protocols())
            blocks: Any = list[_any_block()]  # type: ignore[misc]
            cls.model_fields["blocks"].annotation = blocks
            profiles: Any = dict[ProfileName, _profile()]  # type: ignore[misc]
            cls.model_fields["profiles"].annotation = profiles
            cls.model_rebuild(force=True)

    @classmethod
    def profile_model(cls) -> type[Profile]:
        """Return the type of a profile, with the settings of every known protocol."""
        profile_type: type[Profile] = get_args(cls.model_fields["profiles"].annotation)[1]
        return profile_type

    def datasets_of(self, block: Block) -> list[DatasetSpec]:
        """Return the block's data sets, or the config's if the block has none."""
        return block.datasets or self.datasets

    def solvers_of(self, block: Block) -> list[SolverSpec]:
        """Return the block's solvers, or the config's if the block has none."""
        return getattr(block, "solvers", []) or self.solvers
