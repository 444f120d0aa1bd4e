"""Load a user's file as a data set, with the checks of registered data sets."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from svmbench.base import paths
from svmbench.base.errors import DataError
from svmbench.data import fetch, libsvm, store, tables
from svmbench.data.archives import COMPRESSION_SUFFIXES, decompressed
from svmbench.data.derive import LabelledRows, derive
from svmbench.data.entries import Derivation, Reading
from svmbench.data.prepare import Dataset, described, writing

_TABLE_ENDINGS = {".csv": ",", ".tsv": "\t", ".data": ","}


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

    A name ending in .csv, .tsv or .data (before .xz, .bz2 or .gz) is a table, anything else a
    LIBSVM file. With `label_column` or `separator`, the file is a table whatever its name.

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
    place = Path(path)
    content = decompressed(fetch.regular(place), place.name)
    reading = reading_of(
        place,
        label_column,
        separator=separator,
        header=header,
        missing=missing,
        incomplete=incomplete,
        sort_indices=sort_indices,
    )
    what = Derivation(positive=positive)
    said = [store.CACHE_FORMAT, reading.model_dump_json(), what.model_dump_json()]
    digest = hashlib.sha256(content)
    sha256 = digest.hexdigest()
    digest.update("\n".join(map(str, said)).encode())
    folder = paths.cache_dir() / "prepared" / f"file-{digest.hexdigest()[:24]}"
    held = store.map_arrays(folder)
    if held is None:
        with writing(folder.name):
            _prepared(place.name, content, sha256, reading, what, folder)
        held = store.map_arrays(folder)
        assert held is not None
    derived, facts = held
    return Dataset(str(path), derived.X, derived.y, None, None, facts, facts["sha256"])


def ending_of(place: Path) -> str:
    """Return the ending of a file's name without the ending of its compression: ``".csv"``."""
    return place.with_suffix("").suffix if place.suffix in COMPRESSION_SUFFIXES else place.suffix


def reading_of(
    place: Path,
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
    ending = ending_of(place)
    as_table = label_column is not None or separator is not None or ending in _TABLE_ENDINGS
    named = isinstance(label_column, str) and label_column not in ("first", "last")
    return Reading(
        format="table" if as_table else "libsvm",
        separator=separator or _TABLE_ENDINGS.get(ending, ","),
        header=named if header is None else header,
        label="last" if label_column is None else label_column,
        missing=missing,
        incomplete=incomplete,  # type: ignore[arg-type]
        sort_indices=sort_indices,
    )


def _prepared(
    name: str, content: bytes, sha256: str, reading: Reading, what: Derivation, folder: Path
) -> None:
    if store.map_arrays(folder) is not None:  # another process has prepared it
        return
    derived = derive(name, parse_file(content, name, reading), None, what)
    facts: dict[str, Any] = {
        "task": "binary" if len(derived.classes) == 2 else "multiclass",
        "source": "file",
        "verified": "user's own",
        "files": {name: sha256},
    }
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
    return LabelledRows(X, labels)


__all__ = ["ending_of", "load_file", "parse_file", "reading_of"]
