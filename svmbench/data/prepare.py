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
    """The content of the files that were read last: several data sets may be made of it.

    Attributes
    ----------
    of : tuple
        What the content depends on: where the files are looked for, and how an entry reads them.
    files : list of Fetched
    parts : tuple of LabelledRows, or None for no test part
        As :func:`read_entry_files` returns them.
    """

    of: tuple[Any, ...] = ()
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
        Of a table, the label's column: a name, a number from 1, ``"first"`` or ``"last"``. With a
        name, the table has a header and is read as ``svmbench try`` reads it. Default: the last
        column of a table without a header, or the column that OpenML names.
    text : {"one-hot", "ordinal"}, optional
        Encoding of the columns of words of a table with a header; default ``"one-hot"``.
    impute : bool, default=False
        True to fill in missing values of such a table instead of refusing them: numbers by the
        median of all rows, words by the most frequent one.
    sep, encoding, decimal : str, optional
        Separator, encoding and decimal sign of such a table, as of ``svmbench try``: ``"tab"`` or
        one character, by default from the file; default UTF-8; a point (default) or a comma.
    header : bool, default=True
        False if the first row of such a table is data; its columns are 1, 2, 3 …, and
        `label_column` is one of them as text, such as ``"3"``.
    drop : sequence of str, optional
        Columns of such a table to leave out. Errors name keywords as the command line does:
        ``--drop``.

    Warns
    -----
    DataWarning
        Of what was left out of a file, such as saved row names.

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
        given = TableForm.of(**form)
        return load_own(name, label_column, text=text, impute=impute, official=official, form=given)
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
    """Return True for OpenML, and for a file whose name is no registered one."""
    if name.startswith("openml:"):
        return True
    return name.split("+")[0].split("[")[0] not in registry() and paths.is_file(name)


def ensure(
    name: str,
    mirror: str | None = None,
    official: bool | None = None,
    progress: FileProgress | None = None,
    last: FilesRead | None = None,
) -> dict[str, Any]:
    """Prepare a data set if it isn't cached, and return its facts.

    Parameters
    ----------
    name : str
        A registered name, optionally with rows or parts.
    mirror : str, optional
        Folder (searched with its sub-folders) or URL that holds the files by name, plain or
        compressed; default ``SVMBENCH_MIRROR``.
    official : bool, optional
        True to use official addresses after the mirror. By default they are used only if no mirror
        is configured and ``SVMBENCH_OFFLINE`` is not set.
    progress : callable, optional
        Called with (file name, bytes so far, total bytes or None) during downloads.
    last : FilesRead, optional
        Is used if it holds this data set's files, and holds them afterwards.

    Raises
    ------
    UnknownNameError, DataUnavailableError, DataError
        As :func:`load`.
    """
    one = entry(parse_name(name).base)
    folder = _folder(one)
    held = store.map_arrays(folder)
    if held is None:
        return _prepared(one, folder, mirror, official, progress, last or FilesRead())
    return held[1]


def cached_facts(one: DatasetEntry) -> dict[str, Any] | None:
    """Return the facts of an entry if its arrays are prepared and unchanged, else None."""
    held = store.map_arrays(_folder(one))
    return None if held is None else held[1]


def is_cached(one: DatasetEntry) -> bool:
    """Return True if an entry's arrays are in the cache, by names and sizes of its files."""
    return store.read_facts(_folder(one)) is not None


def _folder(one: DatasetEntry, joined: bool = False) -> Path:
    """Return the cache folder of an entry; its key covers sources, derivation and format."""
    said = one.model_dump(
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
    for file in said["files"]:
        # The source of a file matters only if no checksum identifies the file.
        where = ("url", "folder", "aliases") if file["sha256"] else ()
        for attribute in (*where, "rebuilt", "max_bytes"):
            del file[attribute]
    key = json.dumps([store.CACHE_FORMAT, said, joined], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return paths.cache_dir() / "prepared" / f"{one.name}{'+test' if joined else ''}-{digest}"


def _opened(
    selection: NameParts, mirror: str | None, official: bool | None
) -> tuple[Derived, dict[str, Any]]:
    one = entry(selection.base)
    folder = _folder(one)
    held = store.map_arrays(folder)
    if held is None:
        _prepared(one, folder, mirror, official, None, FilesRead())
        held = store.map_arrays(folder)
        if held is None:
            raise DataError(f"{one.name}: the prepared arrays in {folder} can't be read back")
    if not selection.with_test:
        return held
    joined_folder = _folder(one, joined=True)
    joined = store.map_arrays(joined_folder)
    if joined is None:
        with writing(one.name):
            joined = store.map_arrays(joined_folder)
            if joined is None:
                derived, facts = held
                whole = _joined(derived)
                store.write(joined_folder, whole, described(whole, facts))
                joined = store.map_arrays(joined_folder)
    assert joined is not None
    return joined


def _joined(derived: Derived) -> Derived:
    assert derived.y_test is not None
    if sp.issparse(derived.X) or sp.issparse(derived.X_test):
        both = [sp.csr_array(derived.X), sp.csr_array(derived.X_test)]
        X: Any = sp.csr_array(sp.vstack(both, format="csr"))
    else:
        X = np.vstack([derived.X, derived.X_test])
    return Derived(X, np.concatenate([derived.y, derived.y_test]), None, None, derived.classes)


def _prepared(
    one: DatasetEntry,
    folder: Path,
    mirror: str | None,
    official: bool | None,
    progress: FileProgress | None,
    last: FilesRead,
) -> dict[str, Any]:
    """Prepare an entry under its lock, unless another process has prepared it meanwhile."""
    with writing(one.name):
        held = store.map_arrays(folder)
        if held is not None:
            return held[1]
        if folder.exists():
            warnings.warn(
                f"{one.name}: the prepared copy was damaged and is prepared again", stacklevel=3
            )
        got: list[fetch.Fetched] = []
        if one.builtin:
            train, test = _generated(one)
        else:
            _read_files(one, mirror, official, progress, last)
            assert last.parts is not None
            got, (train, test) = last.files, last.parts
        derived = derive(one.name, train, test, one.derivation)
        facts = described(derived, _origin(one, got))
        check_entry_counts(one, facts)
        for fetched in got:
            fetch.record(fetched)
        return store.write(folder, derived, facts)


def _generated(one: DatasetEntry) -> tuple[LabelledRows, LabelledRows | None]:
    """Call the builtin function of an entry, and return the training and test part."""
    assert one.builtin is not None
    make = synthetic.BUILTINS.get(one.builtin)
    if make is None:
        near = suggestion(one.builtin, list(synthetic.BUILTINS))
        raise DataError(f"{one.name}: unknown builtin {one.builtin!r}{near}")
    try:
        synthetic.refuse_large(one.parameters)
        return make(**one.parameters)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{one.name}: {one.builtin} can't use its parameters: {said}") from error


def _read_files(
    one: DatasetEntry,
    mirror: str | None,
    official: bool | None,
    progress: FileProgress | None,
    last: FilesRead,
) -> None:
    """Have `last` hold the files of an entry."""
    dropped = set(one.derivation.drop_features)
    of = (mirror, official, one.files, one.reading, one.n_features, dropped)
    if last.parts is None or last.of != of:
        last.of, last.files, last.parts = (), [], None  # one content at a time is in the memory
        last.files = _fetched(one, mirror, official, progress)
        last.parts = read_entry_files(one, last.files)
        last.of = of


def _fetched(
    one: DatasetEntry, mirror: str | None, official: bool | None, progress: FileProgress | None
) -> list[fetch.Fetched]:
    got = []
    for file in one.files:
        report = None
        if progress is not None:

            def report(
                done: int, total: int | None, name: str = file.name, to: FileProgress = progress
            ) -> None:
                to(name, done, total)

        got.append(fetch.get(one, file, mirror=mirror, official=official, progress=report))
    return got


def _origin(one: DatasetEntry, got: list[fetch.Fetched]) -> dict[str, Any]:
    """Return the facts about the source and the verification of the files."""
    if not got:
        return {
            "task": one.task,
            "source": "scikit-learn" if one.builtin.startswith("sklearn") else "generated",  # type: ignore[union-attr]
            "verified": "generated",
            "files": {},
        }
    kinds = {fetched.verified for fetched in got}
    weakest = next(kind for kind in ("unverified", "md5", "sha256") if kind in kinds)
    return {
        "task": one.task,
        "source": got[0].source,
        "verified": weakest,
        "files": {fetched.file.name: fetched.sha256 for fetched in got},
    }


def check_entry_counts(one: DatasetEntry, facts: dict[str, Any]) -> None:
    """Compare rows, features and class counts of a data set with those of its entry.

    Raises
    ------
    DataError
        If a count differs; the message names every such count.
    """
    wrong = []
    for what, expected in (
        ("n_samples", one.n_samples),
        ("n_features", one.n_features),
        ("counts", list(one.counts) or facts["counts"]),
        ("n_test", one.n_test),
        ("test_counts", list(one.test_counts) or facts.get("test_counts", [])),
    ):
        found = facts.get(what, [])
        if found != expected:
            wrong.append(f"{what} is {found} instead of {expected}")
    if one.density is not None and abs(facts["density"] - one.density) > DENSITY_TOLERANCE:
        wrong.append(f"density is {facts['density']} instead of {one.density}")
    if wrong:
        raise DataError(f"{one.name}: {'; '.join(wrong)}")


def read_entry_files(
    one: DatasetEntry, got: list[fetch.Fetched]
) -> tuple[LabelledRows, LabelledRows | None]:
    """Read the files of an entry; return the training and the test part.

    Parameters
    ----------
    one : Entry
        The entry, with the format of its files.
    got : list of Fetched
        Bytes of the files, in the order of the entry.

    Raises
    ------
    DataError
        If a file is malformed; with file, line and column.
    """
    readings = [
        fetched.file.reading
        if fetched.source == "official" and fetched.file.reading is not None
        else one.reading
        for fetched in got
    ]
    formats = {reading.format for reading in readings}
    if formats == {"idx"}:
        return _images(one, got)
    if formats == {"libsvm"}:
        pieces = [
            _rows(one, fetched, reading) for fetched, reading in zip(got, readings, strict=True)
        ]
    elif len(set(map(id, readings))) == 1:
        pieces = _encoded_together(got, readings[0])
    else:
        pieces = [
            _encoded_together([fetched], reading)[0]
            for fetched, reading in zip(got, readings, strict=True)
        ]
    parts: dict[str, list[LabelledRows]] = {"train": [], "test": []}
    for fetched, piece in zip(got, pieces, strict=True):
        parts[fetched.file.part].append(piece)
    return _stacked(parts["train"]), _stacked(parts["test"]) if parts["test"] else None


def _rows(one: DatasetEntry, fetched: fetch.Fetched, reading: Reading) -> LabelledRows:
    X, labels = libsvm.parse_libsvm(
        fetched.content, fetched.file.name, sort_indices=reading.sort_indices
    )
    # A LIBSVM file doesn't state the number of features; the entry does, without dropped ones.
    n_features = one.n_features + len(set(one.derivation.drop_features))
    if X.shape[1] > n_features:
        raise DataError(
            f"{one.name}: {fetched.file.name} has the index {X.shape[1]} "
            f"but {n_features} features are expected"
        )
    return LabelledRows(
        sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)), labels
    )


def _encoded_together(got: list[fetch.Fetched], reading: Reading) -> list[LabelledRows]:
    frames = []
    for fetched in got:
        skip = reading.skip_lines + fetched.file.skip_lines
        own = reading.model_copy(update={"skip_lines": skip})
        frames.append(tables.read_table(fetched.content, fetched.file.name, own))
    return [
        LabelledRows(X, labels)
        for X, labels in tables.samples(frames, [fetched.file.name for fetched in got], reading)
    ]


def _images(
    one: DatasetEntry, got: list[fetch.Fetched]
) -> tuple[LabelledRows, LabelledRows | None]:
    found: dict[str, LabelledRows] = {}
    for part in ("train", "test"):
        held = {
            f.file.role: idx.read_idx(f.content, f.file.name) for f in got if f.file.part == part
        }
        if not held:
            continue
        images, labels = held["samples"], held["labels"]
        if labels.ndim != 1 or len(images) != len(labels):
            raise DataError(
                f"{one.name}: {len(images):,} images don't match {labels.size:,} labels"
            )
        rows = sp.csr_array(images.reshape(len(images), -1))
        found[part] = LabelledRows(rows.astype(np.float64), labels)
    return found["train"], found.get("test")


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
    one = entry(parse_name(name).base)
    if one.builtin or is_cached(one) or fetch.may_go_online(mirror, official):
        return ""
    where = fetch.configured_mirror(mirror)
    if where is not None and fetch.is_url(where):
        return ""
    for file in one.files:
        said = ""
        if where is not None:
            try:
                if fetch.on_mirror(file, where):
                    continue
                said = f"the mirror has no {file.name}"
            except DataUnavailableError as error:
                said = str(error)
        return f"{one.name}: {fetch.missing_reason(one, file, said)}"
    return ""


def status(name: str, mirror: str | None = None) -> str:
    """Return the source of a data set: the first place that has all its files.

    Returns
    -------
    status : str
        ``"cached"``, ``"built-in"`` (generated, or shipped with scikit-learn), ``"mirror"``,
        ``"official"`` (official addresses only) or ``"nowhere"`` (neither mirror nor address).
    """
    one = entry(parse_name(name).base)
    if is_cached(one):
        return "cached"
    if one.builtin:
        return "built-in"
    where = fetch.configured_mirror(mirror)
    if where is not None:
        try:
            if fetch.is_url(where) or all(fetch.on_mirror(file, where) for file in one.files):
                return "mirror"
        except DataUnavailableError:
            pass
    return "official" if all(file.url for file in one.files) else "nowhere"
