"""The values of a config, each checked at its place: scalars, grids, sizes."""

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
from svmbench.schema.specs import LONGEST_SPEC_NAME


def _plain(value: Any) -> Any:
    if isinstance(value, list | dict):
        msg = f"a value is a number, a word, true, false or null; got {shown(value)}"
        raise ValueError(msg)  # noqa: TRY004 - pydantic tells of ValueErrors alone
    return value


Scalar = Annotated[bool | int | float | str | None, BeforeValidator(_plain)]

#: Largest number of values in a range, checked before the list is made.
MAX_EXPONENTS = 1_000

#: Largest number of folds; a thousand rows can be left out one by one.
MOST_FOLDS = 1_000

#: Largest number of rounds of a race, repeats of a measurement, copies of a file, samples of a
#: check.
MOST_REPEATS = 100_000

#: Largest number of threads of a cell.
MOST_THREADS = 1_024

#: Largest time limit in seconds (three years) and memory limit in GiB.
MAX_RESOURCE_LIMIT = 1e8

#: Parameters that must be positive in every solver.
POSITIVE_PARAMETERS = ("C", "gamma", "lam", "tol")


class Model(BaseModel):
    """Base of all config models: unknown keys are errors, values are not changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _check_range(given: ExponentRange | NumberRange) -> None:
    """Raise a ValueError for a range without values, or with too many."""
    if given.stop < given.start:
        msg = f"an empty range: stop {given.stop} is below start {given.start}"
        raise ValueError(msg)
    if given.n_values > MAX_EXPONENTS:
        msg = f"a range of {given.n_values:,} values, more than the {MAX_EXPONENTS:,} of one"
        raise ValueError(msg)


class ExponentRange(Model):
    """Exponents from `start` to `stop`, both included, every `step`."""

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

    @property
    def n_values(self) -> int:
        """Number of values, of which no list is made."""
        given = self.exponents
        return given.n_values if isinstance(given, ExponentRange) else len(given)

    def values(self) -> list[Scalar]:
        """Return the grid's values in ascending order of the exponent given."""
        exponents = self.exponents
        if isinstance(exponents, ExponentRange):
            exponents = list(range(exponents.start, exponents.stop + 1, exponents.step))
        return [float(self.base) ** e for e in exponents]


class NumberRange(Model):
    """Decimal numbers from `start` to at most `stop`, every `step`.

    The values are those that a list of the decimals would have: 0.01, 0.011, 0.012 …
    """

    start: Annotated[float, Field(allow_inf_nan=False)]
    stop: Annotated[float, Field(allow_inf_nan=False)]
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _not_empty(self) -> NumberRange:
        _check_range(self)
        return self

    def _exact(self) -> tuple[Decimal, Decimal, Decimal]:
        """Return start, stop and step as the decimals that they were written as."""
        return Decimal(repr(self.start)), Decimal(repr(self.stop)), Decimal(repr(self.step))

    @property
    def n_values(self) -> int:
        """Number of values, of which no list is made."""
        start, stop, step = self._exact()
        with localcontext(prec=700):  # the largest float has 309 digits, the smallest 324 zeros
            return int((stop - start) // step) + 1

    def values(self) -> list[Scalar]:
        """Return the values, which ascend."""
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


#: The type of an error that is of one key of a mapping, which its context names.
OF_A_KEY = "of_a_key"


def _of_a_key(key: str, said: str) -> PydanticCustomError:
    return PydanticCustomError(OF_A_KEY, "{said}", {"key": key, "said": said})


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


def values_of(given: list[Scalar] | PowerGrid | NumberRange) -> list[Scalar]:
    """Return the values of a grid in any form."""
    return given if isinstance(given, list) else given.values()


def count_of(given: list[Scalar] | PowerGrid | NumberRange) -> int:
    """Count the values of a grid in any form."""
    return len(given) if isinstance(given, list) else given.n_values


def dimension_values(given: list[Scalar] | PowerGrid | NumberRange) -> list[Scalar]:
    """Return the values of a swept dimension; whole powers are integers, as numbers of rows are."""
    if isinstance(given, list):
        return given
    return [
        int(value) if isinstance(value, float) and value.is_integer() and value < 2**53 else value
        for value in given.values()
    ]


def _checked_sweep(sweep: dict[str, GridValues]) -> dict[str, GridValues]:
    for name, given in sweep.items():
        values = dimension_values(given)
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
            said = f"a dimension is rows, features or solver.<parameter>, got {shown(name)}"
            raise _of_a_key(name, said)
    return sweep


# What stands in a block, a data set or a solver, a profile may change: the same types hold there.
Params = Annotated[dict[str, Scalar], AfterValidator(_checked_params)]
Grid = Annotated[dict[str, GridValues], AfterValidator(_checked_grid)]
Sizes = Annotated[list[int | str], AfterValidator(_checked_sizes)]
Sweep = Annotated[dict[str, GridValues], AfterValidator(_checked_sweep)]
Features = list[Annotated[int, Field(ge=1)]]
Folds = Annotated[int, Field(ge=2, le=MOST_FOLDS)]
RunFolds = Annotated[int, Field(ge=0, le=MOST_FOLDS)]
MaxSamples = Annotated[int, Field(ge=0)]
SampleCount = Annotated[int, Field(ge=0, le=MOST_REPEATS)]
Repeats = Annotated[int, Field(ge=1, le=MOST_REPEATS)]
Limit = Annotated[float, Field(gt=0, le=MAX_RESOURCE_LIMIT, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=LONGEST_SPEC_NAME)]
