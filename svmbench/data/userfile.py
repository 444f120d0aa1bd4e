"""Load a user's file as a data set, with the checks of registered data sets."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.base import paths
from svmbench.base.errors import DataError, DataWarning
from svmbench.data import fetch, frames, libsvm, openml, parquet, store, tables
from svmbench.data.archives import decompressed, ending_of
from svmbench.data.dataset import Dataset, described, writing
from svmbench.data.derive import MAX_RANGES, LabelledRows, derive, ranges, why_not_scaled
from svmbench.data.entries import Derivation, Reading

#: Part of the key of a prepared file; raise it when files are read in another way.
FORMAT = "6"

#: A LIBSVM file with more columns is read without those that have no value, if these are at least
#: `MIN_EMPTY_SHARE` of all: solvers take up to 500 bytes for each column.
WIDE_FEATURES = 1 << 20
MIN_EMPTY_SHARE = 3 / 4


def load_file(
    path: str | Path,
    label_column: int | str | None = None,
    *,
    separator: str | None = None,
    header: bool | None = None,
    missing: str | None = None,
    incomplete: str = "refuse",
    positive: tuple[str, ...] = (),
    sort_indices: bool = False,
) -> Dataset:
    """Load a user's file as a data set.

    A name ending in .csv, .tsv or .data (before .xz, .bz2 or .gz) is a table, one in .parquet a
    Parquet file (``pip install '.[blocks]'``), anything else a LIBSVM file. With `label_column` or
    `separator`, a file of text is a table whatever its name. Every column of a table must hold
    numbers; :func:`svmbench.load` encodes columns of words. Row names that a program saved, such as
    the index of a frame of pandas, are left out with a warning, and so are columns without a value
    if a LIBSVM file has more than `WIDE_FEATURES` columns, most of them without a value.

    Parameters
    ----------
    path : str or Path
        The file, plain or compressed.
    label_column : int or str, optional
        A table's label: ``"first"``, ``"last"``, a number from 1 or a header's name. Default: last.
    separator : str, optional
        A character or ``"whitespace"``; by default derived from the ending of the name, or a comma.
    header : bool, optional
        True if the first row names the columns; by default True if `label_column` is a name.
    missing : str, optional
        The word that stands for a missing value.
    incomplete : {"refuse", "drop", "mean"}, default="refuse"
        Treatment of rows with missing values.
    positive : tuple of str, default=()
        Classes that become +1, all others −1.
    sort_indices : bool, default=False
        True to accept and sort indices of a LIBSVM file that are out of order.

    Raises
    ------
    DataError
        If the file is missing or malformed; with line and column.
    """
    file = Path(path)
    content = decompressed(fetch.read_regular_file(file), file.name)
    if ending_of(file) == ".parquet":
        derivation = Derivation(positive=positive)
        description = ["parquet", str(label_column), derivation.model_dump_json()]
        return _cached(
            path, content, description, derivation, lambda: _parquet_rows(file, label_column)
        )
    reading = reading_of(
        file,
        label_column,
        separator=separator,
        header=header,
        missing=missing,
        incomplete=incomplete,
        sort_indices=sort_indices,
    )
    derivation = Derivation(positive=positive)
    description = [reading.model_dump_json(), derivation.model_dump_json()]

    def read() -> LabelledRows:
        rows = parse_file(content, file.name, reading)
        return without_empty_columns(rows) if reading.format == "libsvm" else rows

    return _cached(path, content, description, derivation, read)


def without_empty_columns(rows: LabelledRows) -> LabelledRows:
    """Return CSR rows without the columns that have no value, if these are most of very many."""
    X = rows.X
    n_samples, n_features = X.shape
    if n_features <= WIDE_FEATURES:
        return rows
    occurring, columns = np.unique(X.indices, return_inverse=True)
    n_empty = n_features - len(occurring)
    if n_empty < MIN_EMPTY_SHARE * n_features:
        return rows
    columns = columns.astype(np.int32)
    narrow = sp.csr_array((X.data, columns, X.indptr), shape=(n_samples, len(occurring)))
    return LabelledRows(
        narrow,
        rows.labels,
        (f"{n_empty:,} of {n_features:,} columns, which have no value",),
        n_features,
    )


def _cached(
    path: str | Path,
    content: bytes,
    description: list[str],
    derivation: Derivation,
    read: Callable[[], LabelledRows],
    further_facts: dict[str, Any] | None = None,
) -> Dataset:
    """Return the prepared rows of a file's content; `description` identifies the way to read it."""
    name = Path(path).name
    digest = hashlib.sha256(content)
    sha256 = digest.hexdigest()
    digest.update("\n".join([str(store.CACHE_FORMAT), FORMAT, *description]).encode())
    folder = paths.cache_dir() / "prepared" / f"file-{digest.hexdigest()[:24]}"
    prepared = store.map_arrays(folder)
    if prepared is None:
        with writing(folder.name):
            if store.map_arrays(folder) is None:  # no other process has prepared it
                _prepare(name, read(), sha256, derivation, folder, further_facts or {})
        prepared = store.map_arrays(folder)
        assert prepared is not None
    derived, facts = prepared
    warn_of(name, frames.changes(facts))
    return Dataset(str(path), derived.X, derived.y, None, None, facts, facts["sha256"])


def warn_of(name: str, changes: Sequence[str]) -> None:
    """Warn about columns that aren't used as the file has them, at the package's caller."""
    if not changes:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("svmbench."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{name}: {'; '.join(changes)}", DataWarning, stacklevel=level)


def _parquet_rows(path: Path, label_column: int | str | None) -> LabelledRows:
    blocks = list(parquet.blocks(path, label_column, None, None))
    labels = np.concatenate([labels for _, labels in blocks])
    X = np.vstack([X for X, _ in blocks])
    return LabelledRows(X, labels, parquet.left_out_of(path, label_column))


def load_own(
    path: str | Path,
    label_column: int | str | None = None,
    *,
    text: str | None = None,
    impute: bool = False,
    official: bool | None = None,
    form: frames.TableForm | None = None,
) -> Dataset:
    """Load a file or a data set of OpenML with the options of ``svmbench try``.

    With the name of a label's column, a file is read as a table with a header. Without it, the file
    is read by :func:`load_file` with its defaults. The encoding and the values that are filled in
    are computed from all rows, including those that later become test rows.

    Raises
    ------
    DataError
        See :func:`load_file`; also for `text`, `impute` or `form` without the name of the label.
    """
    is_openml = openml.reference(path) is not None
    if form is not None and is_openml:
        raise DataError(f"{path}: {', '.join(frames.FORM_KEYWORDS)} are options for files")
    if not _is_named(label_column) and not is_openml:
        if text is not None or impute or form is not None:
            raise DataError(
                f"{path}: columns of words and missing values are read from a table with a header,"
                " and so are separators, encodings and decimal commas; name its label's column"
            )
        return load_file(path, label_column)
    return Table(path, label_column, official=official, form=form).dataset(text, impute=impute)


class Table:
    """A table with a header, or a data set of OpenML (``openml:NUMBER``), read once.

    Parameters
    ----------
    path : str or Path
    label : str, int or None
        The label's column. Default: the last column, or the one that OpenML names.
    official : bool, optional
        See :func:`svmbench.data.openml.cached_answers`.
    form : TableForm, optional
        The form of the text in a file.

    Attributes
    ----------
    name : str
        The name in errors and tables.
    openml : openml.Reference or None
        The data set of OpenML; None for a file.

    Raises
    ------
    DataError
        If the file can't be read.
    """

    def __init__(
        self,
        path: str | Path,
        label: str | int | None = None,
        *,
        official: bool | None = None,
        form: frames.TableForm | None = None,
    ) -> None:
        self.openml = openml.reference(path)
        self._label = label
        self.form = form or frames.TableForm()
        self._path = Path(path)
        self._description = ["frame", str(label)]
        self._answers: openml.CachedAnswers | None = None
        if self.openml is None:
            self.name = str(path)
            self._content = decompressed(fetch.read_regular_file(self._path), self._path.name)
            self._description += [frames.separator_of(self._path), repr(self.form)]
        else:
            self._answers = openml.cached_answers(self.openml, official=official)
            self.name = self.openml.name
            self._content = self._answers.content
            self._description.append(self._answers.described)

    @cached_property
    def bunch(self) -> Any:
        """The data set of OpenML as scikit-learn returns it."""
        assert self.openml is not None
        assert self._answers is not None
        return self._answers.bunch or openml.fetch_bunch(self.openml, self._answers.folder)

    @cached_property
    def is_sparse(self) -> bool:
        """True for a data set of OpenML whose features are a sparse matrix of numbers."""
        return self.openml is not None and self.bunch.frame is None

    @property
    def reader(self) -> str:
        """The call of pandas that reads another file of this form, named new."""
        n_columns = self.columns[0].shape[1] + 1
        new = Path(f"new{ending_of(self._path)}")
        if new.suffix == ".parquet":
            return f"pandas.read_parquet({str(new)!r})"
        return self.form.reader(self._content, new, n_columns)

    @cached_property
    def columns(self) -> tuple[Any, Any]:
        """The features, a DataFrame, and the labels, a Series of str.

        Raises
        ------
        DataError
            As :func:`svmbench.data.frames.read_frame`, and for a sparse data set.
        """
        if self.openml is None:
            return frames.read_frame(self._path, self._label, self._content, self.form)
        return openml.columns_of(self.bunch, self._label, self.name)

    def dataset(self, text: str | None = None, *, impute: bool = False) -> Dataset:
        """Return the encoded rows; `text` and `impute` are as for :func:`load_own`."""
        text = frames.DEFAULT_TEXT if text is None else text
        if text not in ("one-hot", "ordinal"):
            raise DataError(f"text must be 'one-hot' or 'ordinal', not {text!r}")
        description = [*self._description, text, str(impute)]
        facts = {} if self.openml is None else {"source": "openml", "verified": "md5"}
        return _cached(
            self.name,
            self._content,
            description,
            Derivation(),
            lambda: self._rows(text, impute),
            facts,
        )

    def _rows(self, text: str, impute: bool) -> LabelledRows:
        if self.is_sparse and self._label is None:
            X = sp.csr_array(self.bunch.data, dtype=np.float64)
            X.sort_indices()
            missing = np.isnan(X.data).any() or any(v != v or v is None for v in self.bunch.target)
            if missing:
                raise DataError(f"{self.name}: values are missing, and the data set is sparse")
            X = self._without_nominal_codes(X, text)
            return LabelledRows(X, np.asarray(self.bunch.target).astype(str).astype(object))
        X, y = self.columns
        transformer, _ = frames.encoder(X, text=text, impute=impute, scale=False)
        encoded = transformer.fit_transform(X)
        inputs = (
            sp.csr_array(encoded, dtype=np.float64)
            if sp.issparse(encoded)
            else np.ascontiguousarray(encoded, dtype=np.float64)
        )
        left_out, read_as = (tuple(X.attrs.get(k, ())) for k in (frames.LEFT_OUT, frames.READ_AS))
        return LabelledRows(inputs, y.to_numpy(dtype=object), left_out, read_as=read_as)

    def _without_nominal_codes(self, X: sp.csr_array, text: str) -> sp.csr_array:
        """Return sparse inputs with encoded words instead of their places in the declaration."""
        import pandas as pd

        categories = self.bunch.categories or {}
        names = [str(name) for name in self.bunch.feature_names]
        nominal = [j for j, name in enumerate(names) if name in categories]
        if not nominal:
            return X
        codes = X[:, nominal].toarray().astype(np.intp)
        words = pd.DataFrame(
            {
                names[j]: np.array(categories[names[j]], dtype=object)[codes[:, position]]
                for position, j in enumerate(nominal)
            },
            dtype=object,
        )
        transformer, _ = frames.encoder(words, text=text, scale=False)
        numbers = X[:, np.setdiff1d(np.arange(X.shape[1]), nominal)]
        encoded = sp.csr_array(transformer.fit_transform(words), dtype=np.float64)
        return sp.csr_array(sp.hstack([numbers, encoded], format="csr"))


def _is_named(label_column: int | str | None) -> bool:
    """Return True if a label's column is given by its name in the header."""
    return isinstance(label_column, str) and label_column not in ("first", "last")


def reading_of(
    path: Path,
    label_column: int | str | None = None,
    *,
    separator: str | None = None,
    header: bool | None = None,
    missing: str | None = None,
    incomplete: str = "refuse",
    sort_indices: bool = False,
) -> Reading:
    """Return the format of a user's file from the arguments of :func:`load_file`.

    Raises
    ------
    DataError
        If `incomplete` is not an allowed word.
    """
    if incomplete not in ("refuse", "drop", "mean"):
        raise DataError(f"incomplete must be 'refuse', 'drop' or 'mean', not {incomplete!r}")
    is_table = ending_of(path) in frames.TABLE_SEPARATORS
    as_table = label_column is not None or separator is not None or is_table
    return Reading(
        format="table" if as_table else "libsvm",
        separator=separator or frames.separator_of(path),
        header=_is_named(label_column) if header is None else header,
        label="last" if label_column is None else label_column,
        missing=missing,
        incomplete=incomplete,  # type: ignore[arg-type]
        sort_indices=sort_indices,
    )


def _prepare(
    name: str,
    rows: LabelledRows,
    sha256: str,
    derivation: Derivation,
    folder: Path,
    further_facts: dict[str, Any],
) -> None:
    derived = derive(name, rows, None, derivation)
    facts: dict[str, Any] = {
        "task": "binary" if len(derived.classes) == 2 else "multiclass",
        "source": "file",
        "verified": "user's own",
        "files": {name: sha256},
        **further_facts,
        **({"left_out": list(rows.left_out)} if rows.left_out else {}),
        **({"read_as": list(rows.read_as)} if rows.read_as else {}),
        **({"n_columns": rows.n_columns} if rows.n_columns else {}),
    }
    has_all_features = derived.X.shape[1] <= MAX_RANGES
    if reason := why_not_scaled(*ranges(derived.X), named=has_all_features):
        facts["unscalable"] = f"{name}: {reason}"
    store.write(folder, derived, described(derived, facts))


def parse_file(content: bytes, name: str, reading: Reading) -> LabelledRows:
    """Return the rows and labels of one file's bytes.

    Raises
    ------
    DataError
        If the file is malformed; with line and column.
    """
    if reading.format == "libsvm":
        X, labels = libsvm.parse_libsvm(content, name, sort_indices=reading.sort_indices)
        if X.shape[1] == 0:
            raise DataError(f"{name} has labels but no features")
        return LabelledRows(X, labels)
    frame = tables.read_table(content, name, reading)
    (X, labels), *_ = tables.samples([frame], [name], reading)
    label = tables.column_of(frame, reading.label, name)
    saved = tables.saved_row_names(frame.columns, label, reading)
    return LabelledRows(X, labels, (frames.ROW_NAMES,) if saved else ())


__all__ = ["Table", "load_file", "load_own", "parse_file", "reading_of"]
