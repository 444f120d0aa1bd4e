"""Settings of a block: solvers, data sets, and settings that protocols share.

A protocol's own settings are a class derived from one of these, in the protocol's file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from svmbench.base.validation_messages import shown as said
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
        As ``svmbench list solvers`` shows it; of a class of others (the key ``class``), its path;
        of a program (``program`` and ``predict``), its commands.
    label : str
        What tables call it, where one solver stands in a block more than once.
    params : dict
        Fixed parameters.
    grid : dict
        Parameter → values to search, in the order in which ties are broken (first wins).
    search : dict
        Parameters that the fits of a search have instead: ``{stop: gap, gap: 1e-3}`` of csvc, or a
        looser tolerance. The chosen point is fitted without them.
    kernel, paper : str
        The kernel of a foreign class or a program, and who describes it, for tables.
    task : str
        ``binary`` for a foreign class or a program that separates two classes only, so that data of
        more classes are separated one-vs-one.
    problem, offset : str, str or float
        The problem that a foreign class solves, and its offset, as :func:`svmbench.certify` takes
        them: the models of races are certified. Both are part of the name.
    optional : bool
        Skipped, with its pairs, if its package is not installed.
    """

    #: Keys that give the name in other ways.
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
                    f"a class is given by its dotted path, such as sklearn.svm.NuSVC: {said(path)}"
                )
                raise ValueError(msg)
            rest = {k: given for k, given in value.items() if k not in ("class", *cls.SOLVES)}
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
        given = {key: value.get(key, "") for key in ("program", "predict")}
        for key, command in given.items():
            if not isinstance(command, str):
                msg = f"{key!r} is a command in one line of text: {said(command)}"
                raise ValueError(msg)  # noqa: TRY004 - what pydantic takes for a finding
        made = templates.commands(**given)
        rest = {key: given for key, given in value.items() if key not in ("program", "predict")}
        *_, kernel = templates.shipped_program(given["program"]) or ("",)
        name = made.name + _ending(value)
        return {"name": name, "label": made.program, "kernel": kernel, **rest}

    @model_validator(mode="after")
    def _declares_itself(self) -> SolverSpec:
        if not (templates.is_program(self.name) or "." in self.name):
            for key in ("kernel", "paper", "task"):
                if getattr(self, key):
                    msg = f"{key!r} is for a class or a program; {said(self.name)} declares its own"
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
            marks = "a label holds no ':' and no '|', which separate solvers in races"
            msg = f"{marks}: {said(label)}"
            raise ValueError(msg)
        return label

    @property
    def shown(self) -> str:
        """The name that tables and records use."""
        return self.label or self.name

    @property
    def called(self) -> str:
        """The solver's name in profiles: its own, or the label of a program."""
        return self.shown if templates.is_program(self.name) else self.name

    def on(self, dataset: DatasetSpec) -> SolverSpec:
        """Return the solver as it is set for one data set."""
        own = dataset.params.get(self.shown)
        return self.model_copy(update={"params": {**self.params, **own}}) if own else self

    def at(self, dimensions: dict[str, Any]) -> SolverSpec:
        """Return the solver as it is set at one place of a sweep."""
        own = {
            name.removeprefix("solver."): value
            for name, value in dimensions.items()
            if name.startswith("solver.")
        }
        return self.model_copy(update={"params": {**self.params, **own}}) if own else self

    @property
    def n_grid_points(self) -> int:
        """Number of combinations of the grid, of which no list is made."""
        return math.prod(map(count_of, self.grid.values()))

    def grid_points(self) -> list[dict[str, Scalar]]:
        """Return every combination of the grid, the last parameter varying fastest."""
        points: list[dict[str, Scalar]] = [{}]
        for name, given in self.grid.items():
            points = [{**point, name: value} for point in points for value in values_of(given)]
        return points


def _ending(given: dict[str, Any]) -> str:
    """Return the end of the name of a class or a program, from its task."""
    return templates.BINARY if given.get("task") == "binary" else ""


def _solving(name: str, problem: Any, offset: Any) -> str:
    """Return the name of a class with its problem and offset, after a check of both."""
    from svmbench.baselines.catalogue import with_problem
    from svmbench.core.contract.problems import PROBLEMS

    if problem not in PROBLEMS:
        msg = f"there is no problem {said(problem)}; there are {', '.join(sorted(PROBLEMS))}"
        raise ValueError(msg)
    is_number = isinstance(offset, int | float) and not isinstance(offset, bool)
    if not (offset in (None, "free", "none") or (is_number and 0 < offset < math.inf)):
        msg = f"an offset is free, none or the value of the constant feature: {said(offset)}"
        raise ValueError(msg)
    return with_problem(name, problem, offset)


class NoveltySpec(Model):
    """Settings that turn any data set into one for novelty detection.

    Attributes
    ----------
    normal : list of str
        The class or classes, as the data names them, that are normal (+1); by default the class
        that is +1 already.
    ratio : float
        How many abnormal rows are kept for each normal one.
    seed : int
        Of their choice.
    """

    normal: list[Annotated[str, BeforeValidator(str)]] = []
    ratio: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0)] = 0


class WrittenSpec(Model):
    """A file that a registered set is written to, outside the clock, and read in blocks from.

    Attributes
    ----------
    format : str
        ``libsvm``, ``csv`` or ``parquet`` (which needs ``'.[blocks]'``).
    copies : int
        How many times the rows are written, one time after the other.
    repeats : int
        How many times the file is read in each way.
    """

    format: Literal["libsvm", "csv", "parquet"]
    copies: Repeats = 1
    repeats: Repeats = 5


class DatasetSpec(Model):
    """A data set by its registered name, a user's own file, or a data set of OpenML.

    Attributes
    ----------
    name : str
        As ``svmbench list datasets`` shows it; for a file or a set of OpenML, what tables call it.
    file : str
        Path of a LIBSVM or CSV file instead of a registered set.
    openml : int or None
        Number of a data set of OpenML instead of a registered set. It is read as ``svmbench try``
        reads a table.
    sha256 : str
        Checksum that the uncompressed file, or OpenML's ARFF file, must have.
    label_column : str
        Column of a CSV or Parquet file that holds the class; for OpenML, instead of the one that
        it names.
    text : str
        ``one-hot`` or ``ordinal``: read the CSV file as ``svmbench try`` does, with a header, and
        encode columns of words so.
    impute : bool
        True to read the CSV file so, and to fill in missing values from all rows, those of test
        parts too.
    read : str
        How the rows reach a solver: as ``arrays``; in ``blocks``, of which one at a time is in
        memory, by solvers that read these; ``auto`` for blocks where the arrays would not fit into
        the config's ``memory_gb``.
    written : dict or None
        Write a registered set to a file (`WrittenSpec`) and read that in blocks, to see what it
        costs beside reading alone.
    sizes : list of int or str
        Sizes to sweep for this set, instead of the block's.
    features : list of int
        Numbers of features to sweep for this set, instead of the block's.
    params : dict of str to dict
        Fixed parameters of some solvers (by the name that tables show) on this set alone.
    novelty : dict or None
        Which classes are normal and how many of the others are kept, instead of what the registry's
        entry says.
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
            msg = "'sha256' is of a 'file' or of 'openml'; a registered data set has its own"
            raise ValueError(msg)
        if self.openml is not None and (self.read != "auto" or self.written is not None):
            msg = "a data set of OpenML is read whole: leave out 'read' and 'written'"
            raise ValueError(msg)
        if self.openml is None and self.as_frame and not (self.file and self.label_column):
            msg = "'text' and 'impute' are of a table: give its 'file' and its 'label_column'"
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
        """The description from which a cell opens it."""
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
        What tables and plots refer to.
    title : str
    protocol : str
        The name of a declared protocol, whose settings this block has.
    datasets : list
        Instead of the config's own.
    """

    #: Settings that say which cells there are, and decide nothing inside one.
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
        Which rows the scaler is fitted on, as far as the protocol can do it: ``outer-fold`` (the
        training rows of the outer fold; of ``cv``, of each of its folds), ``all-rows``,
        ``every-fold`` (each inner fold anew), or ``none``.
    scaler : str
        ``minmax`` (to [0, 1]), ``maxabs`` or ``standard``.
    task : str or None
        ``binary``, ``multiclass`` or ``one-class`` (training rows of the normal class, +1, without
        labels; test rows of both); None for what the labels say.
    multiclass : str
        What happens where a data set has more than two classes and a solver separates two:
        ``skip`` the cell, or ``one-vs-one`` (every pair of classes, and a vote).
    scores : list of str
        What models are scored by, on rows that they have not seen.
    select_by : str
        The score that chooses a point of the grid.
    inputs : str
        ``as-stored`` (sparse where the data set is), or ``dense`` arrays for every solver.
    subset : str
        Which rows a size keeps: ``stratified`` (drawn, every class in proportion) or ``first``
        (the first rows of the file, as several papers' subsets are).
    sweep : dict
        Dimensions to sweep, with their values: ``rows`` (numbers or percentages), ``features``
        (numbers), ``solver.<parameter>`` (of every solver of the block).
    sizes, features : list
        The same as ``sweep: {rows: …, features: …}``.
    max_samples : int
        At most so many rows of each set, drawn by class; 0 for all.
    solvers : list
        Instead of the config's own.
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
        """Return the values of every dimension that is swept on a data set, the slowest first."""
        given = {name: dimension_values(values) for name, values in self.sweep.items()}
        rows = dataset.sizes or self.sizes or given.pop("rows", [])
        features = dataset.features or self.features or given.pop("features", [])
        given = {name: values for name, values in given.items() if name.startswith("solver.")}
        both = {"rows": [*rows], "features": [*features]}
        return {**{name: values for name, values in both.items() if values}, **given}

    def n_swept(self, dataset: DatasetSpec) -> int:
        """Return at how many places a data set is swept, without a list of them."""
        counts = {name: count_of(values) for name, values in self.sweep.items()}
        for name in ("rows", "features"):
            alias = "sizes" if name == "rows" else name
            own = len(getattr(dataset, alias)) or len(getattr(self, alias))
            counts[name] = own or counts.get(name, 1)
        return math.prod(counts.values())


class RaceBlock(TrainingBlock):
    """One protocol whose cells are all solvers in turn.

    Attributes
    ----------
    pairs : list of [str, str]
        The ratios that are reported: cost of the second over cost of the first.
    """

    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []

    def named(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the solvers that settings name, by what tables call them, and where they stand."""
        for j, pair in enumerate(self.pairs):
            for name in pair:
                yield ("pairs", j), name
