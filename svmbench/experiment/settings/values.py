"""Types of a config's values, with their checks: scalars, grids, sizes."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from svmbench.base.validation_messages import shown
from svmbench.schema.specs import MAX_SPEC_NAME_CHARS


def _plain(value: Any) -> Any:
    if isinstance(value, list | dict):
        msg = f"a value is a number, a word, true, false or null; got {shown(value)}"
        raise ValueError(msg)  # noqa: TRY004 - pydantic reports only ValueErrors
    return value


Scalar = Annotated[bool | int | float | str | None, BeforeValidator(_plain)]

#: Largest number of values of a range, checked before they are listed.
MAX_EXPONENTS = 1_000

#: Largest number of folds; enough to leave out each of a thousand rows.
MAX_FOLDS = 1_000

#: Largest number of rounds of a race, repeats of a measurement, copies of a file, samples of a
#: check.
MAX_BLOCK_REPEATS = 100_000

#: Largest number of threads of a cell.
MAX_THREADS = 1_024

#: Largest time limit in seconds (three years) and memory limit in GiB.
MAX_RESOURCE_LIMIT = 1e8

#: Parameters that must be positive in every solver.
POSITIVE_PARAMETERS = ("C", "gamma", "lam", "tol")


class Model(BaseModel):
    """Base of all config models: unknown keys are errors, instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _check_range(numbers: ExponentRange | NumberRange) -> None:
    """Raise a ValueError for a range that is empty or has too many values."""
    if numbers.stop < numbers.start:
        msg = f"an empty range: stop {numbers.stop} is below start {numbers.start}"
        raise ValueError(msg)
    if numbers.n_values > MAX_EXPONENTS:
        msg = f"a range of {numbers.n_values:,} values, more than the {MAX_EXPONENTS:,} of one"
        raise ValueError(msg)


class ExponentRange(Model):
    """Exponents from `start` to `stop`, inclusive, in steps of `step`."""

    start: int
    stop: int
    step: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _not_empty(self) -> ExponentRange:
        _check_range(self)
        return self

    @property
    def n_values(self) -> int:
        """Number of exponents."""
        return (self.stop - self.start) // self.step + 1


# An error of a value then names only the form that the value has, not all possible forms.
_BY_FORM = Discriminator(lambda value: "mapping" if isinstance(value, dict | Model) else "list")


#: Names of data sets for all blocks, or by the names of blocks; none leaves a block out.
ChosenDatasets = Annotated[
    Annotated[list[str], Field(min_length=1), Tag("list")]
    | Annotated[dict[str, list[str]], Tag("mapping")],
    _BY_FORM,
]


class PowerGrid(Model):
    """A geometric grid: `base` to the power of each exponent."""

    base: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    exponents: Annotated[
        Annotated[list[int], Tag("list")] | Annotated[ExponentRange, Tag("mapping")], _BY_FORM
    ]

    @model_validator(mode="after")
    def _representable(self) -> PowerGrid:
        exponents = self.exponents
        ends = (
            [exponents.start, exponents.stop] if isinstance(exponents, ExponentRange) else exponents
        )
        for exponent in ends:
            try:
                float(self.base) ** exponent
            except OverflowError as error:
                msg = f"{self.base:g} to the power of {exponent} is too large a number"
                raise ValueError(msg) from error
        return self

    @property
    def n_values(self) -> int:
        """The number of values, counted without listing them."""
        exponents = self.exponents
        return exponents.n_values if isinstance(exponents, ExponentRange) else len(exponents)

    def values(self) -> list[Scalar]:
        """Return the grid's values in the order of the exponents."""
        exponents = self.exponents
        if isinstance(exponents, ExponentRange):
            exponents = list(range(exponents.start, exponents.stop + 1, exponents.step))
        return [float(self.base) ** e for e in exponents]


class NumberRange(Model):
    """Decimal numbers from `start` to at most `stop`, in steps of `step`.

    The values are exactly those of a list of decimals: 0.01, 0.011, 0.012 …
    """

    start: Annotated[float, Field(allow_inf_nan=False)]
    stop: Annotated[float, Field(allow_inf_nan=False)]
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _not_empty(self) -> NumberRange:
        _check_range(self)
        return self

    def _exact(self) -> tuple[Decimal, Decimal, Decimal]:
        """Return start, stop and step as decimals, as they were written."""
        return Decimal(repr(self.start)), Decimal(repr(self.stop)), Decimal(repr(self.step))

    @property
    def n_values(self) -> int:
        """The number of values, counted without listing them."""
        start, stop, step = self._exact()
        with localcontext(prec=700):  # the largest float has 309 digits, the smallest 324 zeros
            return int((stop - start) // step) + 1

    def values(self) -> list[Scalar]:
        """Return the values in ascending order."""
        start, _, step = self._exact()
        return [float(start + step * i) for i in range(self.n_values)]


def _form(value: Any) -> str:
    if isinstance(value, NumberRange):
        return "range"
    if isinstance(value, dict) and "base" not in value and "exponents" not in value:
        return "range" if {"start", "stop", "step"} & {*value} else "mapping"
    return "mapping" if isinstance(value, dict | Model) else "list"


GridValues = Annotated[
    Annotated[list[Scalar], Field(min_length=1), Tag("list")]
    | Annotated[PowerGrid, Tag("mapping")]
    | Annotated[NumberRange, Tag("range")],
    Discriminator(_form),
]


#: The type of an error of one key of a mapping; the error's context names the key.
OF_A_KEY = "of_a_key"


def _of_a_key(key: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(OF_A_KEY, "{message}", {"key": key, "message": message})


def _check_positive(name: str, values: list[Any], key: str) -> None:
    for value in values:
        is_rule = name == "gamma" and value in ("scale", "auto")
        if name not in POSITIVE_PARAMETERS or value is None or is_rule:
            continue
        if isinstance(value, bool | str) or not 0 < value < math.inf:
            raise _of_a_key(key, f"{name} must be positive and finite, got {shown(value)}")


def _checked_params(params: dict[str, Scalar]) -> dict[str, Scalar]:
    for name, value in params.items():
        _check_positive(name, [value], name)
    return params


def _checked_grid(grid: dict[str, GridValues]) -> dict[str, GridValues]:
    for name, values in grid.items():
        _check_positive(name, values_of(values), name)
    return grid


def _checked_sizes(sizes: list[Any]) -> list[Any]:
    for size in sizes:
        if isinstance(size, int) and size > 0:
            continue
        text = str(size)
        is_short = text.endswith("%") and text[:-1].isdecimal() and len(text) < 5
        if is_short and 0 < int(text[:-1]) <= 100:
            continue
        msg = f"a size is a number of rows or a percentage such as '50%', got {shown(size)}"
        raise ValueError(msg)
    return sizes


def values_of(grid: list[Scalar] | PowerGrid | NumberRange) -> list[Scalar]:
    """Return the values of a grid in any form."""
    return grid if isinstance(grid, list) else grid.values()


def count_of(grid: list[Scalar] | PowerGrid | NumberRange) -> int:
    """Count the values of a grid in any form."""
    return len(grid) if isinstance(grid, list) else grid.n_values


def dimension_values(grid: list[Scalar] | PowerGrid | NumberRange) -> list[Scalar]:
    """Return the values of a swept dimension; whole values of a power grid become integers."""
    if isinstance(grid, list):
        return grid
    return [
        int(value) if isinstance(value, float) and value.is_integer() and value < 2**53 else value
        for value in grid.values()
    ]


def _checked_sweep(sweep: dict[str, GridValues]) -> dict[str, GridValues]:
    for name, grid in sweep.items():
        values = dimension_values(grid)
        parameter = name.removeprefix("solver.")
        if name == "rows":
            try:
                _checked_sizes(values)
            except ValueError as error:
                raise _of_a_key(name, str(error)) from error
        elif name == "features":
            if any(isinstance(v, bool) or not isinstance(v, int) or v < 1 for v in values):
                wrong = ", ".join(map(shown, values))
                raise _of_a_key(name, f"numbers of features are integers of at least 1: {wrong}")
        elif parameter != name:
            _check_positive(parameter, values, name)
        else:
            message = f"a dimension is rows, features or solver.<parameter>, got {shown(name)}"
            raise _of_a_key(name, message)
    return sweep


# Profiles use the same types for the values of blocks, data sets and solvers that they change.
Params = Annotated[dict[str, Scalar], AfterValidator(_checked_params)]
Grid = Annotated[dict[str, GridValues], AfterValidator(_checked_grid)]
Sizes = Annotated[list[int | str], AfterValidator(_checked_sizes)]
Sweep = Annotated[dict[str, GridValues], AfterValidator(_checked_sweep)]
Features = list[Annotated[int, Field(ge=1)]]
Folds = Annotated[int, Field(ge=2, le=MAX_FOLDS)]
FoldRepeats = Annotated[int, Field(ge=1, le=MAX_FOLDS)]
RunFolds = Annotated[int, Field(ge=0, le=MAX_FOLDS)]
MaxSamples = Annotated[int, Field(ge=0)]
SampleCount = Annotated[int, Field(ge=0, le=MAX_BLOCK_REPEATS)]
Repeats = Annotated[int, Field(ge=1, le=MAX_BLOCK_REPEATS)]
Limit = Annotated[float, Field(gt=0, le=MAX_RESOURCE_LIMIT, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=MAX_SPEC_NAME_CHARS)]
