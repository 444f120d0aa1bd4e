"""Prepare a data set: fetch and read its files, derive its arrays, check them, and cache them.

Arrays enter the cache only if checksums, rows, features and class counts agree.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import scipy.sparse as sp

from svmbench.base import paths
from svmbench.base.errors import DataError, DataUnavailableError, suggestion
from svmbench.data import fetch, idx, libsvm, store, synthetic, tables
from svmbench.data.dataset import Dataset, described, writing
from svmbench.data.derive import Derived, LabelledRows, derive
from svmbench.data.entries import DatasetEntry, Reading
from svmbench.data.frames import FORM_KEYWORDS, FormKeywords, TableForm
from svmbench.data.registry import NameParts, entry, parse_name, registry
from svmbench.data.userfile import load_own


@dataclass
class FilesRead:
    """The content of the files that were read last, from which several data sets may be made.

    Attributes
    ----------
    inputs : tuple
        Everything that the content depends on: the sources, and the entry's settings for reading.
    files : list of Fetched
    parts : tuple of (LabelledRows, LabelledRows or None), or None
        The training and the test part; see :func:`read_entry_files`. None before files were read.
    """

    inputs: tuple[Any, ...] = ()
    files: list[fetch.Fetched] = field(default_factory=list)
    parts: tuple[LabelledRows, LabelledRows | None] | None = None


#: Largest difference from the registry's density, which has four digits.
DENSITY_TOLERANCE = 1e-4

#: ``progress(file name, bytes so far, total bytes or None)``.
FileProgress = Callable[[str, int, int | None], None]


def load(
    name: str | Path,
    *,
    mirror: str | None = None,
    official: bool | None = None,
    label_column: int | str | None = None,
    text: str | None = None,
    impute: bool = False,
    **form: Unpack[FormKeywords],
) -> Dataset:
    """Return a data set, or a file; prepare it first if it isn't cached.

    Parameters
    ----------
    name : str or Path
        A registered name, with ``+test`` to join the test part's rows and ``[start:stop]`` to
        take a range of the training rows; or the path of a file in LIBSVM's format or of a table;
        or ``openml:NUMBER`` for a data set of OpenML, with ``@SHA256`` to state the checksum of
        its ARFF file.
    mirror, official
        As for :func:`ensure`.
    label_column : str or int, optional
        The label's column of a table: a name, a number from 1, ``"first"`` or ``"last"``. With a
        name, the table has a header and is read like a table by ``svmbench try``. Default: the last
        column of a table without a header, or the column that OpenML names.
    text : {"one-hot", "ordinal"}, optional
        Encoding of the columns of words of a table with a header; default ``"one-hot"``.
    impute : bool, default=False
        True to fill in missing values of such a table instead of refusing them: numbers by the
        median of all rows, words by the most frequent one.
    sep, encoding, decimal : str, optional
        Separator, encoding and decimal sign of such a table, as in ``svmbench try``. The separator
        is ``"tab"`` or one character, by default derived from the file. The default encoding is
        UTF-8. The decimal sign is a point (default) or a comma.
    header : bool, default=True
        False if the first row of such a table is data; its columns are 1, 2, 3 …, and
        `label_column` is one of them as text, such as ``"3"``.
    drop, na_values : sequence of str, optional
        Columns of such a table to leave out, and further marks of missing values. Errors name
        keywords as the command line does: ``--drop``.

    Warns
    -----
    DataWarning
        About columns of a file that were left out, such as saved row names.

    Raises
    ------
    UnknownNameError
        If there is no such data set.
    DataUnavailableError
        If a file is unavailable.
    DataError
        If a file has wrong content.
    """
    if isinstance(name, Path) or label_column is not None or _is_own_file(name):
        table_form = TableForm.of(**form)
        return load_own(
            name, label_column, text=text, impute=impute, official=official, form=table_form
        )
    if text is not None or impute or form:
        raise DataError(
            f"'text', 'impute', {', '.join(map(repr, FORM_KEYWORDS))} are for tables; give the"
            " table's label_column"
        )
    selection = parse_name(name)
    derived, facts = _opened(selection, mirror, official)
    start, stop = selection.start or 0, selection.stop
    if start or stop is not None:
        stop = stop if stop is not None else len(derived.y)
        y = derived.y[start:stop]
        X = store.row_range(derived.X, start, stop)
        derived = Derived(X, y, derived.X_test, derived.y_test, derived.classes)
        rows = f"{facts['sha256']}[{start}:{stop}]"
        facts = described(derived, {**facts, "sha256": hashlib.sha256(rows.encode()).hexdigest()})
    return Dataset(
        name, derived.X, derived.y, derived.X_test, derived.y_test, facts, facts["sha256"]
    )


def _is_own_file(name: str) -> bool:
    """Return True for a data set of OpenML, and for a file whose name isn't registered."""
    if name.startswith("openml:"):
        return True
    return name.split("+")[0].split("[")[0] not in registry() and paths.is_file(name)


def ensure(
    name: str,
    mirror: str | None = None,
    official: bool | None = None,
    progress: FileProgress | None = None,
    files_read: FilesRead | None = None,
) -> dict[str, Any]:
    """Prepare a data set if it isn't cached, and return its facts.

    Parameters
    ----------
    name : str
        A registered name, optionally with rows or parts.
    mirror : str, optional
        Folder (searched with its sub-folders) or URL that has the files by name, plain or
        compressed; default ``SVMBENCH_MIRROR``.
    official : bool, optional
        True to use official addresses after the mirror. By default they are used only if no mirror
        is configured and ``SVMBENCH_OFFLINE`` is not set.
    progress : callable, optional
        Called with (file name, bytes so far, total bytes or None) during downloads.
    files_read : FilesRead, optional
        Used if it has this data set's files; it has them afterwards.

    Raises
    ------
    UnknownNameError, DataUnavailableError, DataError
        As :func:`load`.
    """
    dataset = entry(parse_name(name).base)
    folder = _folder(dataset)
    prepared = store.map_arrays(folder)
    if prepared is None:
        return _prepared(dataset, folder, mirror, official, progress, files_read or FilesRead())
    return prepared[1]


def cached_facts(dataset: DatasetEntry) -> dict[str, Any] | None:
    """Return the facts of an entry if its arrays are prepared and unchanged, else None."""
    prepared = store.map_arrays(_folder(dataset))
    return None if prepared is None else prepared[1]


def is_cached(dataset: DatasetEntry) -> bool:
    """Return True if an entry's arrays are in the cache, by names and sizes of its files."""
    return store.read_facts(_folder(dataset)) is not None


def _folder(dataset: DatasetEntry, joined: bool = False) -> Path:
    """Return the cache folder of an entry; its key covers sources, derivation and format."""
    sources = dataset.model_dump(
        mode="json",
        include={
            "files",
            "builtin",
            "parameters",
            "reading",
            "derivation",
            "n_samples",
            "n_features",
            "density",
            "counts",
            "n_test",
            "test_counts",
        },
    )
    for file in sources["files"]:
        # The source of a file matters only if no checksum identifies the file.
        address_fields = ("url", "folder", "aliases") if file["sha256"] else ()
        for attribute in (*address_fields, "rebuilt", "max_bytes"):
            del file[attribute]
    key = json.dumps([store.CACHE_FORMAT, sources, joined], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return paths.cache_dir() / "prepared" / f"{dataset.name}{'+test' if joined else ''}-{digest}"


def _opened(
    selection: NameParts, mirror: str | None, official: bool | None
) -> tuple[Derived, dict[str, Any]]:
    dataset = entry(selection.base)
    folder = _folder(dataset)
    prepared = store.map_arrays(folder)
    if prepared is None:
        _prepared(dataset, folder, mirror, official, None, FilesRead())
        prepared = store.map_arrays(folder)
        if prepared is None:
            raise DataError(f"{dataset.name}: the prepared arrays in {folder} can't be read back")
    if not selection.with_test:
        return prepared
    joined_folder = _folder(dataset, joined=True)
    joined = store.map_arrays(joined_folder)
    if joined is None:
        with writing(dataset.name):
            joined = store.map_arrays(joined_folder)
            if joined is None:
                derived, facts = prepared
                joined_parts = _with_test_rows(derived)
                store.write(joined_folder, joined_parts, described(joined_parts, facts))
                joined = store.map_arrays(joined_folder)
    assert joined is not None
    return joined


def _with_test_rows(derived: Derived) -> Derived:
    assert derived.y_test is not None
    if sp.issparse(derived.X) or sp.issparse(derived.X_test):
        both = [sp.csr_array(derived.X), sp.csr_array(derived.X_test)]
        X: Any = sp.csr_array(sp.vstack(both, format="csr"))
    else:
        X = np.vstack([derived.X, derived.X_test])
    return Derived(X, np.concatenate([derived.y, derived.y_test]), None, None, derived.classes)


def _prepared(
    dataset: DatasetEntry,
    folder: Path,
    mirror: str | None,
    official: bool | None,
    progress: FileProgress | None,
    files_read: FilesRead,
) -> dict[str, Any]:
    """Prepare an entry under its lock, unless another process has prepared it meanwhile."""
    with writing(dataset.name):
        prepared = store.map_arrays(folder)
        if prepared is not None:
            return prepared[1]
        if folder.exists():
            warnings.warn(
                f"{dataset.name}: the prepared copy was damaged and is prepared again", stacklevel=3
            )
        fetched_files: list[fetch.Fetched] = []
        if dataset.builtin:
            train, test = _generated(dataset)
        else:
            _read_files(dataset, mirror, official, progress, files_read)
            assert files_read.parts is not None
            fetched_files, (train, test) = files_read.files, files_read.parts
        derived = derive(dataset.name, train, test, dataset.derivation)
        facts = described(derived, _origin(dataset, fetched_files))
        check_entry_counts(dataset, facts)
        for fetched in fetched_files:
            fetch.record(fetched)
        return store.write(folder, derived, facts)


def _generated(dataset: DatasetEntry) -> tuple[LabelledRows, LabelledRows | None]:
    """Call the builtin function of an entry, and return the training and test part."""
    assert dataset.builtin is not None
    make = synthetic.BUILTINS.get(dataset.builtin)
    if make is None:
        near = suggestion(dataset.builtin, list(synthetic.BUILTINS))
        raise DataError(f"{dataset.name}: unknown builtin {dataset.builtin!r}{near}")
    try:
        synthetic.refuse_large(dataset.parameters)
        return make(**dataset.parameters)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{dataset.name}: {dataset.builtin} can't use its parameters: {reason}"
        ) from error


def _read_files(
    dataset: DatasetEntry,
    mirror: str | None,
    official: bool | None,
    progress: FileProgress | None,
    files_read: FilesRead,
) -> None:
    """Read the files of an entry into `files_read`, unless it has them already."""
    dropped = set(dataset.derivation.drop_features)
    inputs = (mirror, official, dataset.files, dataset.reading, dataset.n_features, dropped)
    if files_read.parts is None or files_read.inputs != inputs:
        # Free the memory before reading.
        files_read.inputs, files_read.files, files_read.parts = (), [], None
        files_read.files = _fetched(dataset, mirror, official, progress)
        files_read.parts = read_entry_files(dataset, files_read.files)
        files_read.inputs = inputs


def _fetched(
    dataset: DatasetEntry, mirror: str | None, official: bool | None, progress: FileProgress | None
) -> list[fetch.Fetched]:
    fetched_files = []
    for file in dataset.files:
        report = None
        if progress is not None:

            def report(
                done: int, total: int | None, name: str = file.name, to: FileProgress = progress
            ) -> None:
                to(name, done, total)

        fetched_files.append(
            fetch.get(dataset, file, mirror=mirror, official=official, progress=report)
        )
    return fetched_files


def _origin(dataset: DatasetEntry, fetched_files: list[fetch.Fetched]) -> dict[str, Any]:
    """Return the facts about the source and the verification of the files."""
    if not fetched_files:
        return {
            "task": dataset.task,
            "source": "scikit-learn" if dataset.builtin.startswith("sklearn") else "generated",  # type: ignore[union-attr]
            "verified": "generated",
            "files": {},
        }
    kinds = {fetched.verified for fetched in fetched_files}
    weakest = next(kind for kind in ("unverified", "md5", "sha256") if kind in kinds)
    return {
        "task": dataset.task,
        "source": fetched_files[0].source,
        "verified": weakest,
        "files": {fetched.file.name: fetched.sha256 for fetched in fetched_files},
    }


def check_entry_counts(dataset: DatasetEntry, facts: dict[str, Any]) -> None:
    """Compare rows, features and class counts of a data set with those of its entry.

    Raises
    ------
    DataError
        If a count differs; the message names every such count.
    """
    wrong = []
    for name, expected in (
        ("n_samples", dataset.n_samples),
        ("n_features", dataset.n_features),
        ("counts", list(dataset.counts) or facts["counts"]),
        ("n_test", dataset.n_test),
        ("test_counts", list(dataset.test_counts) or facts.get("test_counts", [])),
    ):
        counted = facts.get(name, [])
        if counted != expected:
            wrong.append(f"{name} is {counted} instead of {expected}")
    if dataset.density is not None and abs(facts["density"] - dataset.density) > DENSITY_TOLERANCE:
        wrong.append(f"density is {facts['density']} instead of {dataset.density}")
    if wrong:
        raise DataError(f"{dataset.name}: {'; '.join(wrong)}")


def read_entry_files(
    dataset: DatasetEntry, fetched_files: list[fetch.Fetched]
) -> tuple[LabelledRows, LabelledRows | None]:
    """Read the files of an entry; return the training and the test part.

    Parameters
    ----------
    dataset : DatasetEntry
        The entry, with the format of its files.
    fetched_files : list of Fetched
        Bytes of the files, in the order of the entry.

    Raises
    ------
    DataError
        If a file is malformed; with file, line and column.
    """
    readings = [
        fetched.file.reading
        if fetched.source == "official" and fetched.file.reading is not None
        else dataset.reading
        for fetched in fetched_files
    ]
    formats = {reading.format for reading in readings}
    if formats == {"idx"}:
        return _images(dataset, fetched_files)
    if formats == {"libsvm"}:
        pieces = [
            _rows(dataset, fetched, reading)
            for fetched, reading in zip(fetched_files, readings, strict=True)
        ]
    elif len(set(map(id, readings))) == 1:
        pieces = _encoded_together(fetched_files, readings[0])
    else:
        pieces = [
            _encoded_together([fetched], reading)[0]
            for fetched, reading in zip(fetched_files, readings, strict=True)
        ]
    parts: dict[str, list[LabelledRows]] = {"train": [], "test": []}
    for fetched, piece in zip(fetched_files, pieces, strict=True):
        parts[fetched.file.part].append(piece)
    return _stacked(parts["train"]), _stacked(parts["test"]) if parts["test"] else None


def _rows(dataset: DatasetEntry, fetched: fetch.Fetched, reading: Reading) -> LabelledRows:
    X, labels = libsvm.parse_libsvm(
        fetched.content, fetched.file.name, sort_indices=reading.sort_indices
    )
    # A LIBSVM file doesn't state the number of features; the entry does, without dropped ones.
    n_features = dataset.n_features + len(set(dataset.derivation.drop_features))
    if X.shape[1] > n_features:
        raise DataError(
            f"{dataset.name}: {fetched.file.name} has the index {X.shape[1]} "
            f"but {n_features} features are expected"
        )
    return LabelledRows(
        sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)), labels
    )


def _encoded_together(fetched_files: list[fetch.Fetched], reading: Reading) -> list[LabelledRows]:
    frames = []
    for fetched in fetched_files:
        skip = reading.skip_lines + fetched.file.skip_lines
        reading_of_file = reading.model_copy(update={"skip_lines": skip})
        frames.append(tables.read_table(fetched.content, fetched.file.name, reading_of_file))
    return [
        LabelledRows(X, labels)
        for X, labels in tables.samples(
            frames, [fetched.file.name for fetched in fetched_files], reading
        )
    ]


def _images(
    dataset: DatasetEntry, fetched_files: list[fetch.Fetched]
) -> tuple[LabelledRows, LabelledRows | None]:
    parts: dict[str, LabelledRows] = {}
    for part in ("train", "test"):
        arrays = {
            f.file.role: idx.read_idx(f.content, f.file.name)
            for f in fetched_files
            if f.file.part == part
        }
        if not arrays:
            continue
        images, labels = arrays["samples"], arrays["labels"]
        if labels.ndim != 1 or len(images) != len(labels):
            raise DataError(
                f"{dataset.name}: {len(images):,} images don't match {labels.size:,} labels"
            )
        rows = sp.csr_array(images.reshape(len(images), -1))
        parts[part] = LabelledRows(rows.astype(np.float64), labels)
    return parts["train"], parts.get("test")


def _stacked(pieces: list[LabelledRows]) -> LabelledRows:
    if len(pieces) == 1:
        return pieces[0]
    labels = np.concatenate([piece.labels for piece in pieces])
    if sp.issparse(pieces[0].X):
        return LabelledRows(sp.csr_array(sp.vstack([p.X for p in pieces], format="csr")), labels)
    return LabelledRows(np.vstack([piece.X for piece in pieces]), labels)


def why_unavailable(name: str, mirror: str | None = None, official: bool | None = None) -> str:
    """Return why a data set is unavailable, in one sentence, or "" if it may be available.

    No file is read: a file on the mirror counts as available, whatever its content.
    """
    dataset = entry(parse_name(name).base)
    if dataset.builtin or is_cached(dataset) or fetch.may_go_online(mirror, official):
        return ""
    mirror_used = fetch.configured_mirror(mirror)
    if mirror_used is not None and fetch.is_url(mirror_used):
        return ""
    for file in dataset.files:
        reason = ""
        if mirror_used is not None:
            try:
                if fetch.on_mirror(file, mirror_used):
                    continue
                reason = f"the mirror has no {file.name}"
            except DataUnavailableError as error:
                reason = str(error)
        return f"{dataset.name}: {fetch.missing_reason(dataset, file, reason)}"
    return ""


def status(name: str, mirror: str | None = None) -> str:
    """Return the source of a data set: the first place that has all its files.

    Returns
    -------
    status : str
        ``"cached"``, ``"built-in"`` (generated, or shipped with scikit-learn), ``"mirror"``,
        ``"official"`` (official addresses only) or ``"nowhere"`` (neither mirror nor address).
    """
    dataset = entry(parse_name(name).base)
    if is_cached(dataset):
        return "cached"
    if dataset.builtin:
        return "built-in"
    mirror_used = fetch.configured_mirror(mirror)
    if mirror_used is not None:
        try:
            if fetch.is_url(mirror_used) or all(
                fetch.on_mirror(file, mirror_used) for file in dataset.files
            ):
                return "mirror"
        except DataUnavailableError:
            pass
    return "official" if all(file.url for file in dataset.files) else "nowhere"
