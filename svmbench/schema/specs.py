"""What a table and a plot may ask for: said once, for the config and for the report.

Rows, columns, series and axes are named by *fields* of a cell: its data set, kernel or solver, or a
dimension along which the block sweeps (``rows``, ``features``, ``solver.nu`` …; ``size`` and
``n_features_kept`` are older names of the first two).
"""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    field_validator,
)

from svmbench.base.errors import suggestion
from svmbench.base.paths import PACKAGE
from svmbench.base.validation_messages import none_of, shown
from svmbench.schema.record import IDENTITY, canonical

#: Dimensions that are no parameter of anything.
_PLAIN = ("rows", "features", "point")

#: A plot's kind is a module of this folder; its name is the module's.
_KINDS = PACKAGE / "report" / "kinds"


def is_dimension(name: str) -> bool:
    """Return whether a name can be that of a dimension: a plain one, or dotted (``solver.nu``)."""
    return canonical(name) in _PLAIN or re.fullmatch(r"[a-z]\w*(\.\w+)+", name) is not None


#: The kinds that plug-ins declare (`svmbench.report.kinds.declare_kind`).
OTHER_KINDS: dict[str, Any] = {}


def plot_kinds() -> list[str]:
    """Return the names of the kinds that a plot may have."""
    own = [module.name for module in pkgutil.iter_modules([str(_KINDS)])]
    return sorted({*own, *OTHER_KINDS})


def own_axes(kind: str) -> tuple[str, ...] | None:
    """Return what x may be of a kind of plot that collects its own points; None of any other.

    The kind's own module says so: it reads records and draws, and is imported when asked for.
    """
    found = OTHER_KINDS.get(kind)
    if found is None:
        found = import_module(f"svmbench.report.kinds.{kind}").KIND
    axes = found.axes
    return None if axes is None else tuple(axes)


def _field(name: str) -> str:
    if canonical(name) in IDENTITY or is_dimension(name):
        return name
    known = [*IDENTITY, *_PLAIN]
    msg = (
        f"a field of a cell is {', '.join(known)} or a swept parameter such as solver.nu, "
        f"not {shown(name)}{suggestion(name, known)}"
    )
    raise ValueError(msg)


def _column(name: str) -> str:
    return name if name == "metric" else _field(name)


def _kind(name: str) -> str:
    known = plot_kinds()
    if name not in known:
        raise ValueError(none_of(name, known))
    return name


_BY_FORM = Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "name")
_FieldName = Annotated[str, AfterValidator(_field)]
_ColumnName = Annotated[str, AfterValidator(_column)]
_Fields = Annotated[
    Annotated[_FieldName, Tag("name")] | Annotated[list[_FieldName], Tag("list")], _BY_FORM
]
_Columns = Annotated[
    Annotated[_ColumnName, Tag("name")] | Annotated[list[_ColumnName], Tag("list")], _BY_FORM
]
#: Characters of a name: of a table, a plot, a block, a solver, a data set, a profile.
LONGEST_NAME = 200
#: What may become a part of a file's name.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_FileName = Annotated[str, Field(pattern=FILE_NAME, max_length=LONGEST_NAME)]
_Kind = Annotated[
    str, AfterValidator(_kind), WithJsonSchema({"enum": plot_kinds(), "type": "string"})
]


class Spec(BaseModel):
    """Base of both: unknown keys are errors, values are not changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class TableSpec(Spec):
    """A table of one block, laid out as the paper lays it out.

    Attributes
    ----------
    name : str
        Of its files, without their endings.
    title : str
        Its heading; its name by default.
    block : str
        The block whose cells it shows.
    rows, columns : str or list of str
        Fields; ``columns: metric`` says that the metrics alone are the columns. A field in neither
        that varies within the block becomes rows, so that different things are never averaged.
    metrics : list of str
        Metrics or counters, side by side under every column.
    published : str or None
        The table of the paper whose numbers stand beside.
    """

    name: _FileName
    title: str = ""
    block: str
    rows: _Fields = "dataset"
    columns: _Columns = "solver"
    metrics: Annotated[list[str], Field(min_length=1)] = ["train_time_s", "accuracy_pct"]
    published: str | None = None

    @property
    def heading(self) -> str:
        """Title, or name."""
        return self.title or self.name

    @property
    def row_fields(self) -> tuple[str, ...]:
        """Present names of the fields of the rows."""
        return _names(self.rows)

    @property
    def column_fields(self) -> tuple[str, ...]:
        """Present names of the fields of the columns; none for a table of metrics."""
        return tuple(name for name in _names(self.columns) if name != "metric")


class PlotSpec(Spec):
    """A plot of one block.

    Attributes
    ----------
    name, title, block : str
        As of a table.
    kind : str
        What is drawn and how: a module of ``svmbench/report/kinds``.
    dataset : str or None
        The only data set that is shown; all of the block's by default, a panel each.
    x : str or None
        A field, ``params.<name>`` or a metric; what is usual for the kind by default.
    y : str or None
        A metric; what is usual for the kind by default.
    series : str or None
        The field that tells curves apart.
    published : str or None
        The paper's table whose points and exponents stand beside.
    crossing : list of two str or None
        Two series whose crossing is to be found.
    across : str or None
        A field along which a curve runs, instead of a panel for each of its values: ``dataset``,
        where the data sets of the block are the sizes of one sweep.
    """

    name: _FileName
    kind: _Kind = "scaling"
    title: str = ""
    block: str
    dataset: str | None = None
    x: str | None = None
    y: str | None = None
    series: _FieldName | None = "solver"
    published: str | None = None
    crossing: list[str] | None = None
    across: _FieldName | None = None

    @field_validator("crossing")
    @classmethod
    def _two(cls, pair: list[str] | None) -> list[str] | None:
        if pair is not None and len(pair) != 2:
            msg = f"a crossing is of two series, not of {len(pair)}"
            raise ValueError(msg)
        return pair

    @property
    def heading(self) -> str:
        """Title, or name."""
        return self.title or self.name


def _names(given: Any) -> tuple[str, ...]:
    return tuple(canonical(name) for name in ([given] if isinstance(given, str) else given))
