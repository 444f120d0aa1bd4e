"""What a config file may say: one model a level, each value checked where it stands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from svmbench.specs import PlotSpec, TableSpec

Protocol = Literal["nested-cv", "cv", "holdout", "fit", "race", "nested-race", "facts"]
Scaling = Literal["outer-fold", "all-rows", "every-fold", "none"]
Scaler = Literal["minmax", "maxabs", "standard"]


def _plain(value: Any) -> Any:
    if isinstance(value, list | dict):
        msg = f"a value is a number, a word, true, false or null; got {value!r}"
        raise ValueError(msg)  # noqa: TRY004 - pydantic tells of ValueErrors alone
    return value


Scalar = Annotated[bool | int | float | str | None, BeforeValidator(_plain)]

#: Parameters that have a range of their own in every solver that has them.
POSITIVE = ("C", "gamma", "lam", "tol")


class Model(BaseModel):
    """Base of all config models: unknown keys are errors, values are not changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def sentence(error: Any) -> str:
    """Return what one of the errors of a `ValidationError` says, without pydantic's prefix."""
    return str(error["msg"]).removeprefix("Value error, ")


class ExponentRange(Model):
    """Exponents from `start` to `stop`, both included, every `step`."""

    start: int
    stop: int
    step: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _not_empty(self) -> ExponentRange:
        if self.stop < self.start:
            msg = f"an empty range: stop {self.stop} is below start {self.start}"
            raise ValueError(msg)
        return self


# What is wrong with a value is said of the form that it has, not of every form it might have.
_BY_FORM = Discriminator(lambda value: "mapping" if isinstance(value, dict | Model) else "list")


class PowerGrid(Model):
    """A geometric grid: `base` to the power of each exponent."""

    base: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    exponents: Annotated[
        Annotated[list[int], Tag("list")] | Annotated[ExponentRange, Tag("mapping")], _BY_FORM
    ]

    @model_validator(mode="after")
    def _representable(self) -> PowerGrid:
        given = self.exponents
        ends = [given.start, given.stop] if isinstance(given, ExponentRange) else given
        for exponent in ends:
            try:
                float(self.base) ** exponent
            except OverflowError as error:
                msg = f"{self.base:g} to the power of {exponent} is too large a number"
                raise ValueError(msg) from error
        return self

    def values(self) -> list[Scalar]:
        """Return the grid's values in ascending order of the exponent given."""
        exponents = self.exponents
        if isinstance(exponents, ExponentRange):
            exponents = list(range(exponents.start, exponents.stop + 1, exponents.step))
        return [float(self.base) ** e for e in exponents]


GridValues = Annotated[
    Annotated[list[Scalar], Field(min_length=1), Tag("list")]
    | Annotated[PowerGrid, Tag("mapping")],
    _BY_FORM,
]


def _check_positive(name: str, values: list[Any]) -> None:
    for value in values:
        if name not in POSITIVE or value is None or (name == "gamma" and value == "scale"):
            continue
        if isinstance(value, bool | str) or not 0 < value < math.inf:
            msg = f"{name} must be positive and finite, got {value!r}"
            raise ValueError(msg)


def _checked_params(params: dict[str, Scalar]) -> dict[str, Scalar]:
    for name, value in params.items():
        _check_positive(name, [value])
    return params


def _checked_grid(grid: dict[str, GridValues]) -> dict[str, GridValues]:
    for name, values in grid.items():
        _check_positive(name, values.values() if isinstance(values, PowerGrid) else values)
    return grid


def _checked_sizes(sizes: list[int | str]) -> list[int | str]:
    for size in sizes:
        if isinstance(size, int) and size > 0:
            continue
        text = str(size)
        if text.endswith("%") and text[:-1].isdigit() and 0 < int(text[:-1]) <= 100:
            continue
        msg = f"a size is a number of rows or a percentage such as '50%', got {size!r}"
        raise ValueError(msg)
    return sizes


# What stands in a block, a data set or a solver, a profile may change: the same types hold there.
Params = Annotated[dict[str, Scalar], AfterValidator(_checked_params)]
Grid = Annotated[dict[str, GridValues], AfterValidator(_checked_grid)]
Sizes = Annotated[list[int | str], AfterValidator(_checked_sizes)]
Features = list[Annotated[int, Field(ge=1)]]
Folds = Annotated[int, Field(ge=2)]
RunFolds = Annotated[int, Field(ge=0)]
MaxSamples = Annotated[int, Field(ge=0)]
Repeats = Annotated[int, Field(ge=1)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SolverSpec(Model):
    """A solver with fixed parameters and a grid to search.

    Attributes
    ----------
    name : str
        As ``svmbench list solvers`` shows it.
    label : str
        What tables call it, where one solver stands in a block more than once.
    params : dict
        Fixed parameters.
    grid : dict
        Parameter → values to search, in the order in which ties are broken (first wins).
    optional : bool
        Left out, with the pairs that name it, where the package that it needs is not installed.
    """

    name: str
    label: str = ""
    optional: bool = False
    params: Params = {}
    grid: Grid = {}

    @field_validator("label")
    @classmethod
    def _no_separators(cls, label: str) -> str:
        if any(mark in label for mark in ":|"):
            msg = f"a label holds no ':' and no '|', which separate solvers in races: {label!r}"
            raise ValueError(msg)
        return label

    @property
    def shown(self) -> str:
        """The name that tables and records use."""
        return self.label or self.name

    def on(self, dataset: DatasetSpec) -> SolverSpec:
        """Return the solver as it is set for one data set."""
        own = dataset.params.get(self.shown)
        return self.model_copy(update={"params": {**self.params, **own}}) if own else self

    def grid_points(self) -> list[dict[str, Scalar]]:
        """Return every combination of the grid, the last parameter varying fastest."""
        points: list[dict[str, Scalar]] = [{}]
        for name, given in self.grid.items():
            values = given.values() if isinstance(given, PowerGrid) else given
            points = [{**point, name: value} for point in points for value in values]
        return points


class DatasetSpec(Model):
    """A data set by its registered name, or a user's own file.

    Attributes
    ----------
    name : str
        As ``svmbench list datasets`` shows it; for a file, what tables call it.
    file : str
        Path of a LIBSVM or CSV file instead of a registered set.
    label_column : str
        Column of a CSV file that holds the class.
    sizes : list of int or str
        Sizes to sweep for this set, instead of the block's.
    features : list of int
        Numbers of features to sweep for this set, instead of the block's.
    params : dict of str to dict
        Fixed parameters of some solvers (by the name that tables show) on this set alone.
    """

    name: str
    file: str = ""
    label_column: str = ""
    sizes: Sizes = []
    features: Features = []
    params: dict[str, Params] = {}

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and "file" in value and "name" not in value:
            return {**value, "name": Path(str(value["file"])).name}
        return value


class Block(Model):
    """One protocol over data sets and solvers.

    Attributes
    ----------
    name : str
        What tables and plots refer to.
    protocol : str
        ``nested-cv``, ``cv``, ``holdout``, ``fit``, ``race``, ``nested-race`` or ``facts``.
    outer_folds, inner_folds : int
        For ``nested-cv`` and ``nested-race``.
    run_folds : int
        How many of the outer folds are really run; 0 for all.
    folds : int
        For ``cv``.
    validation, test : float
        Shares of the rows for ``holdout``; `test` is not used where the set has a test part.
    scaling : str
        Which rows the scaler is fitted on: ``outer-fold`` (the training rows of the outer fold; of
        ``cv``, of each of its folds), ``all-rows``, ``every-fold`` (each inner fold anew), or
        ``none``.
    scaler : str
        ``minmax`` (to [0, 1]), ``maxabs`` or ``standard``.
    multiclass : str
        What happens where a data set has more than two classes and a solver separates two:
        ``skip`` the cell, or ``one-vs-one`` (every pair of classes, and a vote).
    inputs : str
        ``as-stored`` (sparse where the data set is), or ``dense`` arrays for every solver.
    precision : str
        Of the distances and kernel values that fits share in a search of ``nested-cv``: ``single``
        (a kernel value is off by at most some 2e-7), or ``double`` for models that are to be
        certified beyond that.
    subset : str
        Which rows a size keeps: ``stratified`` (drawn, every class in proportion) or ``first``
        (the first rows of the file, as several papers' subsets are).
    sizes, features : list
        Rows and numbers of features to sweep; empty for all.
    max_samples : int
        At most so many rows of each set, drawn by class; 0 for all.
    repeats : int
        Rounds of a ``race``.
    tolerance : float
        Relative difference of objectives that counts as equal in a ``race``; null to compare
        solvers at the settings they are given.
    pairs : list of [str, str]
        The ratios that a ``race`` reports: cost of the second over cost of the first.
    datasets, solvers : list
        Instead of the config's own.
    """

    name: str
    title: str = ""
    protocol: Protocol
    outer_folds: Folds = 5
    inner_folds: Folds = 5
    run_folds: RunFolds = 0
    folds: Folds = 5
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    test: Annotated[float, Field(gt=0, lt=1)] = 0.2
    scaling: Scaling = "outer-fold"
    scaler: Scaler = "minmax"
    multiclass: Literal["skip", "one-vs-one"] = "skip"
    inputs: Literal["as-stored", "dense"] = "as-stored"
    precision: Literal["single", "double"] = "single"
    subset: Literal["stratified", "first"] = "stratified"
    sizes: Sizes = []
    features: Features = []
    max_samples: MaxSamples = 0
    repeats: Repeats = 5
    tolerance: Limit | None = 1e-3
    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []
    datasets: list[DatasetSpec] = []
    solvers: list[SolverSpec] = []


class Profile(Model):
    """What a named budget cuts; whatever is not set stays as the config has it."""

    note: str = ""
    max_samples: MaxSamples | None = None
    outer_folds: Folds | None = None
    inner_folds: Folds | None = None
    run_folds: RunFolds | None = None
    folds: Folds | None = None
    repeats: Repeats | None = None
    sizes: Sizes | None = None
    features: Features | None = None
    datasets: Annotated[list[str], Field(min_length=1)] | None = None
    grid: Grid = {}
    params: dict[str, Params] = {}
    timeout_s: Limit | None = None


class Config(Model):
    """A whole experiment."""

    paper: str = ""
    title: str
    seed: Annotated[int, Field(ge=0)] = 0
    timeout_s: Limit = 3600.0
    memory_gb: Limit = 4.0
    scratch_gb: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 8.0
    threads: Annotated[int, Field(ge=1)] = 1
    datasets: list[DatasetSpec] = []
    solvers: list[SolverSpec] = []
    blocks: Annotated[list[Block], Field(min_length=1)]
    tables: list[TableSpec] = []
    plots: list[PlotSpec] = []
    profiles: dict[str, Profile] = {"paper": Profile()}

    def datasets_of(self, block: Block) -> list[DatasetSpec]:
        """Return the block's own data sets, or the config's."""
        return block.datasets or self.datasets

    def solvers_of(self, block: Block) -> list[SolverSpec]:
        """Return the block's own solvers, or the config's."""
        return block.solvers or self.solvers
