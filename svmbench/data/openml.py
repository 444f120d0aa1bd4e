"""Data sets of OpenML by number, fetched by scikit-learn and verified by a checksum.

A data set is named ``openml:NUMBER``, or ``openml:NUMBER@SHA256`` to state the checksum of its
ARFF file. The answers of the server are cached in ``openml/NUMBER`` of the cache, in the form that
:func:`sklearn.datasets.fetch_openml` reads again. The checksum of the first download is cached
beside them.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import socket
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from uuid import uuid4

from svmbench.base import paths
from svmbench.base.errors import DataError, DataUnavailableError
from svmbench.base.escape import line
from svmbench.data import fetch, frames
from svmbench.data.archives import decompressed
from svmbench.data.dataset import writing
from svmbench.data.download import network_reason

_REFERENCE = re.compile(r"openml:([1-9][0-9]{0,8})(?:@([0-9a-f]{64}))?", re.ASCII)
#: File beside the cached answers with the first checksums, as `CachedAnswers` has them.
_CHECKSUM_FILE = "sha256"
#: scikit-learn's parser of ARFF files. With pandas 3, its faster one fails on nominal values that
#: are numbers, such as the classes 0 and 1 (seen with scikit-learn 1.9.1 and pandas 3.1.1).
PARSER = "liac-arff"
#: Seconds without a byte from the server after which a download is given up.
MAX_SILENCE_S = 60.0
#: scikit-learn warns of these before the error that is raised here.
_OWN_WARNINGS = r"A network error occurred|Invalid cache|Downloaded file"


@dataclass(frozen=True)
class Reference:
    """A data set of OpenML: its number, and the expected checksum of its ARFF file if any."""

    number: int
    sha256: str = ""

    @property
    def name(self) -> str:
        """The name in tables and errors."""
        return f"openml:{self.number}"

    def __str__(self) -> str:
        return f"{self.name}@{self.sha256}" if self.sha256 else self.name


@dataclass(frozen=True)
class CachedAnswers:
    """The cached answers of OpenML.

    Attributes
    ----------
    folder : Path
        Folder for scikit-learn.
    content : bytes
        The ARFF file.
    sha256 : str
        Its checksum.
    described : str
        Checksum of the other answers, which name the columns, their types and the label.
    bunch : Bunch or None
        The data set as scikit-learn returned it, if it was downloaded now.
    """

    folder: Path
    content: bytes
    sha256: str
    described: str
    bunch: Any = None


def reference(name: str | Path) -> Reference | None:
    """Return the data set that a name means, or None if it doesn't begin with ``openml:``.

    Raises
    ------
    DataError
        If the number or the checksum is malformed.
    """
    text = str(name)
    if not text.startswith("openml:"):
        return None
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise DataError(
            f"{line(text, 100)} names no data set of OpenML: write openml:NUMBER, or"
            " openml:NUMBER@SHA256 with 64 lower-case hexadecimal digits"
        )
    return Reference(int(match[1]), match[2] or "")


def cached_answers(wanted: Reference, *, official: bool | None = None) -> CachedAnswers:
    """Return the cached answers of a data set; download them first if there are none.

    Parameters
    ----------
    wanted : Reference
    official : bool, optional
        False to forbid the download; by default ``SVMBENCH_OFFLINE`` decides. OpenML has no
        mirror.

    Raises
    ------
    DataUnavailableError
        If it isn't cached and can't be downloaded.
    DataError
        If the checksum is another one, or the answers are damaged. Nothing is cached then.
    """
    folder = paths.cache_dir() / "openml" / str(wanted.number)
    answers = _read(folder)
    if answers is None:
        if official is False or (official is None and os.environ.get("SVMBENCH_OFFLINE")):
            raise DataUnavailableError(
                f"{wanted.name}: no whole copy is kept here, and downloads are not allowed; run"
                f" 'svmbench describe {wanted.name}' where OpenML can be reached"
            )
        with writing(f"openml-{wanted.number}"):
            answers = _read(folder) or _download(wanted, folder)
    if wanted.sha256 not in ("", answers.sha256):
        raise _other_checksum(wanted, answers.sha256)
    return answers


def _read(folder: Path) -> CachedAnswers | None:
    """Return the answers cached in a folder, or None if they are missing or damaged."""
    try:
        checksums = paths.read_regular(folder / _CHECKSUM_FILE, 1000).decode().split()
        answers = _answers(folder)
    except (OSError, ValueError, DataError):
        return None
    return answers if [answers.sha256, answers.described] == checksums else None


def _answers(folder: Path) -> CachedAnswers:
    """Return the answers in a folder of scikit-learn; raise DataError without an ARFF file."""
    other_answers = hashlib.sha256()
    arff = None
    for file in sorted(folder.rglob("*.gz")):
        content = decompressed(fetch.read_regular_file(file), file.name)
        if "api" in file.relative_to(folder).parts:
            other_answers.update(content)
        else:
            arff = content
    if arff is None:  # the server named a file outside the folder
        raise DataError(f"{folder} has no ARFF file")
    return CachedAnswers(folder, arff, hashlib.sha256(arff).hexdigest(), other_answers.hexdigest())


def _download(wanted: Reference, folder: Path) -> CachedAnswers:
    """Download a data set into a temporary folder, verify it, and move it to its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for unfinished in folder.parent.glob(f".{folder.name}-*"):  # left by a killed process
        shutil.rmtree(unfinished, ignore_errors=True)
    temporary = folder.with_name(f".{folder.name}-{os.getpid()}-{uuid4().hex[:8]}")
    try:
        bunch = fetch_bunch(wanted, temporary)
        try:
            answers = _answers(temporary)
        except DataError as error:
            raise _damaged(wanted, error) from error
        if wanted.sha256 not in ("", answers.sha256):
            raise _other_checksum(wanted, answers.sha256)
        (temporary / _CHECKSUM_FILE).write_text(f"{answers.sha256} {answers.described}\n")
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return replace(answers, folder=folder, bunch=bunch)


def _other_checksum(wanted: Reference, actual: str) -> DataError:
    return DataError(
        f"{wanted.name}: its ARFF file has the sha256 {actual[:12]}… instead of"
        f" {wanted.sha256[:12]}…: it is damaged or another version"
    )


def fetch_bunch(wanted: Reference, folder: Path) -> Any:
    """Return the Bunch of scikit-learn, from the answers in a folder or else from OpenML.

    Raises
    ------
    DataUnavailableError
        If OpenML has no such data set or can't be reached.
    DataError
        If an answer is damaged.
    """
    from sklearn.datasets import fetch_openml

    limit = socket.getdefaulttimeout()
    socket.setdefaulttimeout(MAX_SILENCE_S)  # scikit-learn would wait for ever
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_OWN_WARNINGS)
            return fetch_openml(
                data_id=wanted.number, data_home=folder, as_frame="auto", parser=PARSER
            )
    except (URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        if isinstance(error, HTTPError):
            reason = f"the server answered {error.code}"
        else:
            reason = network_reason(error)
        raise DataUnavailableError(f"{wanted.name} can't be downloaded: {reason}") from error
    except OSError as error:
        if error.errno is not None:  # the disk's
            raise
        raise _damaged(wanted, error) from error
    except Exception as error:  # a parser raises errors of many types
        if str(error) == f"Dataset with data_id {wanted.number} not found.":
            raise DataUnavailableError(f"OpenML has no data set {wanted.number}") from error
        raise _damaged(wanted, error) from error
    finally:
        socket.setdefaulttimeout(limit)


def columns_of(bunch: Any, label: str | int | None, name: str) -> tuple[Any, Any]:
    """Return the columns and the labels of a data set, as :func:`frames.read_frame` does.

    Parameters
    ----------
    bunch : Bunch
    label : str, int or None
        The label's column; None for the one that OpenML names.
    name : str

    Raises
    ------
    DataError
        If the data set is sparse or has no such column, or a label is missing.
    """
    if bunch.frame is None:
        raise DataError(f"{name} is sparse: it has no columns of words, and OpenML names its label")
    if label is None:
        if len(bunch.target_names) != 1:
            listed = frames.listed([str(column) for column in bunch.frame.columns])
            raise DataError(
                f"{name}: OpenML names {len(bunch.target_names)} label columns; name one with"
                f" --label or label_column (it has {listed})"
            )
        label = str(bunch.target_names[0])
    return frames.labelled(bunch.frame, label, name, first_line=None)


def _damaged(wanted: Reference, error: Exception) -> DataError:
    reason = line(f"{type(error).__name__}: {error}", 150)
    return DataError(f"{wanted.name}: OpenML's answer is damaged or can't be read ({reason})")


__all__ = ["CachedAnswers", "Reference", "cached_answers", "columns_of", "fetch_bunch", "reference"]
