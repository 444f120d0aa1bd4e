"""The specifications of tables and plots, for the config and the report.

Rows, columns, series and axes are *fields* of a cell: its data set, kernel or solver, or a swept
dimension (``rows``, ``features``, ``solver.nu`` …; ``size`` and ``n_features_kept`` are older names
of the first two).
"""

from __future__ import annotations

import re
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
from svmbench.base.module_registry import ModuleRegistry
from svmbench.base.validation_messages import none_of, shown
from svmbench.schema.record import IDENTITY, canonical

#: Dimensions that are not parameters.
_PLAIN = ("rows", "features", "point")

#: The kinds of plot, each a `svmbench.report.plots.kinds.Kind`, imported on demand: a kind
#: imports the report.
PLOT_KINDS: ModuleRegistry[Any] = ModuleRegistry("kind of plot", "report.plots.kinds", "KIND")


def is_dimension(name: str) -> bool:
    """Return True for the name of a dimension: a plain name, or a dotted one (``solver.nu``)."""
    return canonical(name) in _PLAIN or re.fullmatch(r"[a-z]\w*(\.\w+)+", name) is not None


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
    known = PLOT_KINDS.names()
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
#: Largest number of characters of the name of a table, plot, block, solver, data set or profile.
MAX_SPEC_NAME_CHARS = 200
#: A pattern of names that may be part of a file name.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_FileName = Annotated[str, Field(pattern=FILE_NAME, max_length=MAX_SPEC_NAME_CHARS)]
_Kind = Annotated[
    str, AfterValidator(_kind), WithJsonSchema({"enum": PLOT_KINDS.names(), "type": "string"})
]


class Spec(BaseModel):
    """Base class of specifications: unknown keys are errors, and values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class TableSpec(Spec):
    """A table of one block.

    Attributes
    ----------
    name : str
        Name of its files, without endings.
    title : str
        Heading; by default the name.
    block : str
        The block with the cells of the table.
    rows, columns : str or list of str
        Fields. With ``columns: metric``, only the metrics are columns. A field in neither that
        varies within the block becomes a field of the rows, so that different cells are never
        averaged.
    metrics : list of str
        Metrics or counters, which are shown under each column.
    published : str or None
        The table of the paper whose numbers are shown beside the results.
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
    """A plot of one block, or of two.

    Attributes
    ----------
    name, title, block : str
        As for a table.
    beside : str or None
        A second block, whose series stand beside those of the first, with its name in parentheses.
        Of the kinds ``scaling``, ``curve``, ``bars`` and ``race``.
    kind : str
        Kind of plot: a module of ``svmbench/report/plots/kinds``.
    dataset : str or None
        The data set to show; by default all data sets of the block, with a panel each.
    x : str or None
        A field, ``params.<name>`` or a metric; by default set by the kind.
    y : str or None
        A metric; by default set by the kind.
    series : str or None
        The field that distinguishes the curves.
    published : str or None
        The paper's table whose points and exponents are shown beside the results.
    crossing : list of two str or None
        Two series whose crossing is marked.
    across : str or None
        A field along which each curve runs, instead of one panel for each value. Use ``dataset`` if
        the data sets of the block are the sizes of one sweep.
    """

    name: _FileName
    kind: _Kind = "scaling"
    title: str = ""
    block: str
    beside: str | None = None
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
            msg = f"a crossing needs two series, not {len(pair)}"
            raise ValueError(msg)
        return pair

    @property
    def heading(self) -> str:
        """Title, or name."""
        return self.title or self.name


def _names(given: Any) -> tuple[str, ...]:
    return tuple(canonical(name) for name in ([given] if isinstance(given, str) else given))
