"""Settings of a block: solvers, data sets, and settings that protocols share.

The settings of a protocol are a class in the protocol's file that inherits from one of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from svmbench.base.validation_messages import shown as printed
from svmbench.baselines import templates
from svmbench.experiment.settings.cells import DatasetChoice, NoveltyChoice, WrittenChoice
from svmbench.experiment.settings.values import (
    Features,
    Grid,
    MaxSamples,
    Model,
    Name,
    Params,
    Repeats,
    Scalar,
    Sizes,
    Sweep,
    count_of,
    dimension_values,
    values_of,
)

Scaler = Literal["minmax", "maxabs", "standard"]
TaskName = Literal["binary", "multiclass", "one-class"]


class SolverSpec(Model):
    """A solver with fixed parameters and a grid to search.

    Attributes
    ----------
    name : str
        The name that ``svmbench list solvers`` shows; for a foreign class (the key ``class``), its
        path; for a program (``program`` and ``predict``), its commands.
    label : str
        The name in tables; needed if a block has the same solver more than once.
    params : dict
        Fixed parameters.
    grid : dict
        Values to search, by parameter. In a tie, the earlier point wins.
    search : dict
        Parameters that replace those in `params` for the fits of a search, such as a looser
        tolerance or ``{stop: gap, gap: 1e-3}`` for csvc. The chosen point is fitted without them.
    kernel, paper : str
        The kernel and the reference of a foreign class or a program, for tables.
    task : str
        ``binary`` for a foreign class or a program that separates only two classes; data with more
        classes are then separated one-vs-one.
    problem, offset : str, str or float
        The problem that a foreign class solves, and its offset, as :func:`svmbench.certify` takes
        them: the models of races are certified. Both are part of the name.
    optional : bool
        Skipped, with its pairs, if its package is not installed.
    """

    #: Keys that replace the key ``name``.
    NAMED_BY: ClassVar[tuple[str, ...]] = ("class", "program", "predict")
    #: Keys of a class that say what it solves.
    SOLVES: ClassVar[tuple[str, str]] = ("problem", "offset")

    name: str
    label: Name = ""
    optional: bool = False
    kernel: Name = ""
    paper: str = ""
    task: Literal["binary", "multiclass", ""] = ""
    params: Params = {}
    grid: Grid = {}
    search: Params = {}

    @model_validator(mode="before")
    @classmethod
    def _from_class(cls, value: Any) -> Any:
        if isinstance(value, dict) and "class" in value:
            path = value["class"]
            if "name" in value:
                msg = "a solver has a name or a class, not both"
                raise ValueError(msg)
            if not (isinstance(path, str) and "." in path.strip(".")):
                msg = (
                    "a class is given by its dotted path, such as sklearn.svm.NuSVC:"
                    f" {printed(path)}"
                )
                raise ValueError(msg)
            rest = {k: setting for k, setting in value.items() if k not in ("class", *cls.SOLVES)}
            name = path + _ending(value)
            if cls.SOLVES[0] in value:
                name = _solving(name, value[cls.SOLVES[0]], value.get(cls.SOLVES[1]))
            elif cls.SOLVES[1] in value:
                msg = "an offset is declared together with a problem"
                raise ValueError(msg)
            return {"name": name, "label": path.rpartition(".")[2], **rest}
        return value

    @model_validator(mode="before")
    @classmethod
    def _from_program(cls, value: Any) -> Any:
        if not (isinstance(value, dict) and {"program", "predict"} & {*value}):
            return value
        if "name" in value:
            msg = "a solver has a name, a class or a program, not several of them"
            raise ValueError(msg)
        commands = {key: value.get(key, "") for key in ("program", "predict")}
        for key, command in commands.items():
            if not isinstance(command, str):
                msg = f"{key!r} is a command in one line of text: {printed(command)}"
                raise ValueError(msg)  # noqa: TRY004 - pydantic reports only ValueErrors
        parsed = templates.commands(**commands)
        rest = {key: each for key, each in value.items() if key not in ("program", "predict")}
        *_, kernel = templates.shipped_program(commands["program"]) or ("",)
        name = parsed.name + _ending(value)
        return {"name": name, "label": parsed.program, "kernel": kernel, **rest}

    @model_validator(mode="after")
    def _declares_itself(self) -> SolverSpec:
        if not (templates.is_program(self.name) or "." in self.name):
            for key in ("kernel", "paper", "task"):
                if getattr(self, key):
                    msg = (
                        f"{key!r} is for a class or a program; {printed(self.name)} declares its"
                        " own"
                    )
                    raise ValueError(msg)
        return self

    @field_validator("name")
    @classmethod
    def _whole_commands(cls, name: str) -> str:
        if templates.is_program(name):
            templates.read_template(name)
        return name

    @field_validator("label")
    @classmethod
    def _no_separators(cls, label: str) -> str:
        if any(mark in label for mark in ":|"):
            marks = "a label can't contain ':' or '|', which separate solvers in races"
            msg = f"{marks}: {printed(label)}"
            raise ValueError(msg)
        return label

    @property
    def shown(self) -> str:
        """The name that tables and records use."""
        return self.label or self.name

    @property
    def called(self) -> str:
        """The solver's key in profiles: its name, or the label of a program."""
        return self.shown if templates.is_program(self.name) else self.name

    def on(self, dataset: DatasetSpec) -> SolverSpec:
        """Return the solver with the parameters of a data set."""
        params = dataset.params.get(self.shown)
        return self.model_copy(update={"params": {**self.params, **params}}) if params else self

    def at(self, dimensions: dict[str, Any]) -> SolverSpec:
        """Return the solver with the parameters of one combination of swept values."""
        params = {
            name.removeprefix("solver."): value
            for name, value in dimensions.items()
            if name.startswith("solver.")
        }
        return self.model_copy(update={"params": {**self.params, **params}}) if params else self

    @property
    def n_grid_points(self) -> int:
        """The number of points of the grid, counted without listing them."""
        return math.prod(map(count_of, self.grid.values()))

    def grid_points(self) -> list[dict[str, Scalar]]:
        """Return all points of the grid; the last parameter varies fastest."""
        points: list[dict[str, Scalar]] = [{}]
        for name, values in self.grid.items():
            points = [{**point, name: value} for point in points for value in values_of(values)]
        return points


def _ending(settings: dict[str, Any]) -> str:
    """Return the suffix of the name of a class or a program for its task."""
    return templates.BINARY if settings.get("task") == "binary" else ""


def _solving(name: str, problem: Any, offset: Any) -> str:
    """Return the name of a class with its problem and offset, after a check of both."""
    from svmbench.baselines.catalogue import with_problem
    from svmbench.core.contract.problems import PROBLEMS

    if problem not in PROBLEMS:
        msg = f"there is no problem {printed(problem)}; there are {', '.join(sorted(PROBLEMS))}"
        raise ValueError(msg)
    is_number = isinstance(offset, int | float) and not isinstance(offset, bool)
    if not (offset in (None, "free", "none") or (is_number and 0 < offset < math.inf)):
        msg = f"an offset is free, none or the value of the constant feature: {printed(offset)}"
        raise ValueError(msg)
    return with_problem(name, problem, offset)


class NoveltySpec(Model):
    """Settings that turn a data set into one for novelty detection.

    Attributes
    ----------
    normal : list of str
        The normal classes (+1), by their labels in the data. Default: the class +1.
    ratio : float
        Number of abnormal rows that are kept for each normal row.
    seed : int
        Seed for the choice of abnormal rows.
    """

    normal: list[Annotated[str, BeforeValidator(str)]] = []
    ratio: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0)] = 0


class WrittenSpec(Model):
    """A file to which a registered data set is written, untimed, and from which blocks are read.

    Attributes
    ----------
    format : str
        ``libsvm``, ``csv`` or ``parquet`` (which needs ``'.[blocks]'``).
    copies : int
        Number of copies of the rows in the file, one after another.
    repeats : int
        Number of times that the file is read in each way.
    """

    format: Literal["libsvm", "csv", "parquet"]
    copies: Repeats = 1
    repeats: Repeats = 5


class DatasetSpec(Model):
    """A data set by its registered name, a user's own file, or a data set of OpenML.

    Attributes
    ----------
    name : str
        The name that ``svmbench list datasets`` shows; for a file or a data set of OpenML, its name
        in tables.
    file : str
        Path of a user's LIBSVM, CSV or Parquet file, instead of a registered data set.
    openml : int or None
        Number of a data set of OpenML, instead of a registered one. It is read like a table by
        ``svmbench try``.
    sha256 : str
        Required checksum of the uncompressed file, or of OpenML's ARFF file.
    label_column : str
        Column of the classes in a CSV or Parquet file. For OpenML, it replaces the column that
        OpenML names.
    text : str
        Encoding of text columns, ``one-hot`` or ``ordinal``. The CSV file is then read, with a
        header, like a table by ``svmbench try``.
    impute : bool
        Whether to fill in missing values, from all rows, including test rows. The CSV file is then
        read like a table by ``svmbench try``.
    read : str
        ``arrays``: all rows are in memory. ``blocks``: one block of rows at a time is in memory,
        for solvers that read blocks. ``auto``: blocks if the arrays would not fit into the config's
        ``memory_gb``.
    written : dict or None
        Write a registered data set to a file (`WrittenSpec`) and read it in blocks, to compare the
        cost of training with that of reading alone.
    sizes : list of int or str
        Sizes to sweep for this data set, instead of the block's.
    features : list of int
        Numbers of features to sweep for this data set, instead of the block's.
    params : dict of str to dict
        Fixed parameters for this data set, by the solver's label or name.
    novelty : dict or None
        Settings for novelty detection (`NoveltySpec`), instead of those in the registry.
    """

    name: Name
    file: str = ""
    openml: Annotated[int, Field(ge=1, lt=10**9)] | None = None
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    label_column: str = ""
    text: Literal["", "one-hot", "ordinal"] = ""
    impute: bool = False
    read: Literal["auto", "arrays", "blocks"] = "auto"
    written: WrittenSpec | None = None
    sizes: Sizes = []
    features: Features = []
    params: dict[str, Params] = {}
    novelty: NoveltySpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and "file" in value and "name" not in value:
            return {**value, "name": Path(str(value["file"])).name}
        if isinstance(value, dict) and "openml" in value and "name" not in value:
            return {**value, "name": f"openml:{value['openml']}"}
        return value

    @model_validator(mode="after")
    def _encoding_is_of_a_table(self) -> DatasetSpec:
        if self.openml is not None and self.file:
            msg = "'openml' and 'file' exclude each other"
            raise ValueError(msg)
        if self.sha256 and not self.is_own:
            msg = (
                "'sha256' is for a 'file' or 'openml'; a registered data set has its own checksums"
            )
            raise ValueError(msg)
        if self.openml is not None and (self.read != "auto" or self.written is not None):
            msg = "a data set of OpenML is read whole: leave out 'read' and 'written'"
            raise ValueError(msg)
        if self.openml is None and self.as_frame and not (self.file and self.label_column):
            msg = (
                "'text' and 'impute' are options for a table: give its 'file' and its"
                " 'label_column'"
            )
            raise ValueError(msg)
        if self.as_frame and self.in_blocks:
            msg = "'text' and 'impute' need all rows, so they can't be used with rows in blocks"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _blocks_are_of_whole_sets(self) -> DatasetSpec:
        if self.written is not None and self.file:
            msg = (
                "'written' writes a registered data set to a file; leave it out if 'file' is given"
            )
            raise ValueError(msg)
        if self.in_blocks and self.novelty is not None:
            msg = "'novelty' draws rows, so it can't be used with rows in blocks"
            raise ValueError(msg)
        return self

    @property
    def in_blocks(self) -> bool:
        """True if its rows are read in blocks."""
        return self.read == "blocks" or self.written is not None

    @property
    def as_frame(self) -> bool:
        """True if its columns are encoded as ``svmbench try`` encodes them."""
        return bool(self.text) or self.impute or self.openml is not None

    @property
    def is_own(self) -> bool:
        """True for a user's file and for a data set of OpenML, which the registry doesn't have."""
        return bool(self.file) or self.openml is not None

    @property
    def choice(self) -> DatasetChoice:
        """The description from which a cell opens the data set."""
        chosen: DatasetChoice = {
            "name": self.name,
            "file": self.file if self.openml is None else f"openml:{self.openml}",
            "label_column": self.label_column,
        }
        if self.text:
            chosen["text"] = self.text
        if self.impute or self.openml is not None:
            chosen["impute"] = self.impute
        if self.novelty is not None:
            chosen["novelty"] = cast(NoveltyChoice, self.novelty.model_dump(mode="json"))
        if self.in_blocks:
            chosen["read"] = "blocks"
        if self.written is not None:
            chosen["written"] = cast(WrittenChoice, self.written.model_dump(mode="json"))
        return chosen


class Block(Model):
    """One protocol over data sets.

    Attributes
    ----------
    name : str
        The name by which tables and plots refer to the block.
    title : str
    protocol : str
        The name of a declared protocol; the block has its settings.
    datasets : list
        Data sets, instead of the config's.
    """

    #: Settings that decide which cells there are, but not their results.
    plan_only: ClassVar[tuple[str, ...]] = ()

    name: Name
    title: str = ""
    protocol: str
    datasets: list[DatasetSpec] = []


class TrainingBlock(Block):
    """One protocol over data sets and solvers.

    Attributes
    ----------
    scaling : str
        The rows on which the scaler is fitted: ``outer-fold`` (the training rows of the outer fold;
        for ``cv``, of each fold), ``all-rows``, ``every-fold`` (the training rows of each inner
        fold), or ``none``. A protocol supports some of these.
    scaler : str
        ``minmax`` (to [0, 1]), ``maxabs`` or ``standard``.
    task : str or None
        ``binary``, ``multiclass`` or ``one-class`` (train on rows of the normal class, +1, without
        labels; test on rows of both classes). None: decided by the number of classes.
    multiclass : str
        For solvers that separate only two classes, on data sets with more: ``skip`` the cell, or
        ``one-vs-one`` (train on each pair of classes, and vote).
    scores : list of str
        Scores of the models on test rows.
    select_by : str
        The score by which a search chooses a point of the grid.
    inputs : str
        ``as-stored`` (sparse if the data set is), or ``dense`` arrays for all solvers.
    subset : str
        The rows of a subset: ``stratified`` (random rows, with the proportions of the classes) or
        ``first`` (the first rows of the file, as in several papers).
    sweep : dict
        Values of the dimensions to sweep: ``rows`` (numbers or percentages), ``features``
        (numbers), ``solver.<parameter>`` (a parameter that all solvers of the block have).
    sizes, features : list
        The same as ``sweep: {rows: …, features: …}``.
    max_samples : int
        Largest number of rows of each data set; more rows are cut to a subset. 0 for no limit.
    solvers : list
        Solvers, instead of the config's.
    """

    scaling: str = "none"
    scaler: Scaler = "minmax"
    task: TaskName | None = None
    multiclass: Literal["skip", "one-vs-one"] = "skip"
    scores: Annotated[list[str], Field(min_length=1)] = ["accuracy"]
    select_by: str = "accuracy"
    inputs: Literal["as-stored", "dense"] = "as-stored"
    subset: Literal["stratified", "first"] = "stratified"
    sweep: Sweep = {}
    sizes: Sizes = []
    features: Features = []
    max_samples: MaxSamples = 0
    solvers: list[SolverSpec] = []

    @model_validator(mode="after")
    def _one_name_a_dimension(self) -> TrainingBlock:
        for alias, name in (("sizes", "rows"), ("features", "features")):
            if getattr(self, alias) and name in self.sweep:
                msg = f"'{alias}' and 'sweep.{name}' are the same; give one of them"
                raise ValueError(msg)
        return self

    def swept(self, dataset: DatasetSpec) -> dict[str, list[Any]]:
        """Return the values of each dimension swept on a data set, the slowest dimension first."""
        sweeps = {name: dimension_values(values) for name, values in self.sweep.items()}
        rows = dataset.sizes or self.sizes or sweeps.pop("rows", [])
        features = dataset.features or self.features or sweeps.pop("features", [])
        sweeps = {name: values for name, values in sweeps.items() if name.startswith("solver.")}
        sizes = {"rows": [*rows], "features": [*features]}
        return {**{name: values for name, values in sizes.items() if values}, **sweeps}

    def n_swept(self, dataset: DatasetSpec) -> int:
        """Return the number of combinations of swept values of a data set, without listing them."""
        counts = {name: count_of(values) for name, values in self.sweep.items()}
        for name in ("rows", "features"):
            alias = "sizes" if name == "rows" else name
            n_values = len(getattr(dataset, alias)) or len(getattr(self, alias))
            counts[name] = n_values or counts.get(name, 1)
        return math.prod(counts.values())


class RaceBlock(TrainingBlock):
    """One protocol whose cells run all solvers in turns.

    Attributes
    ----------
    pairs : list of [str, str]
        Pairs of solvers whose cost ratio is reported: cost of the second over cost of the first.
    """

    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the place and the name of each solver that settings of the block name."""
        for j, pair in enumerate(self.pairs):
            for name in pair:
                yield ("pairs", j), name
