"""Models of the tables in ``datasets.toml``: the entries of the registry and their parts."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from svmbench.base import paths


def is_web_address(text: str) -> bool:
    """Return True for an http or https address without blanks or control characters."""
    return re.fullmatch(r"https?://[!-~]+", text) is not None


def file_name(url: str) -> str:
    """Return the last part of a URL's path, with escapes resolved.

    :func:`svmbench.base.paths.why_unfit` checks that it is usable as a file name.
    """
    try:
        path = urlsplit(url).path
    except ValueError:  # a malformed address, such as http://[
        return ""
    return unquote(path.rpartition("/")[2])


def shown_address(url: str) -> str:
    """Return an address for display and records, without user, password, query and fragment.

    A folder is returned unchanged. A URL with a malformed host is reduced to its scheme.
    """
    match = re.match(r"([a-z][a-z0-9+.-]*://)(?:[^/?#]*@)?([^/?#]*)([^?#]*)", url, re.IGNORECASE)
    if match is None:
        return url
    is_host = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(:\d*)?", match[2])
    return match[1] + (match[2] + match[3] if is_host else "…")


def _fit(name: str) -> str:
    reason = paths.why_unfit(name)
    if reason:
        raise ValueError(f"{name[: paths.MAX_FILE_NAME_BYTES]!r} {reason}")
    return name


class Strict(BaseModel):
    """A model that refuses unknown keys and non-finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Reading(Strict):
    """The format of a file: the steps from bytes to rows and labels.

    Attributes
    ----------
    format : str
        ``"libsvm"``, ``"table"`` (rows of columns) or ``"idx"`` (MNIST's binary arrays).
    separator : str
        Separator of columns: a character, or ``"whitespace"``.
    header : bool
        True if the first row names the columns.
    label : str or int
        The label's column: ``"first"``, ``"last"``, a number from 1, or a header's name.
    label_strip : str
        Characters to strip from the end of a label (labels in ``adult.test`` end with a full stop).
    skip_lines : int
        Number of lines to skip before the first row.
    drop : list of str or int
        Columns to leave out: numbers from 1, or header names.
    encode : dict
        Encoding of each column of words (number from 1 or header name): a number for each word,
        ``"alphabetical"`` (0, 1, 2 … in the sorted order of the words in all files) or
        ``"one-hot"``.
    missing : str or None
        The word that stands for a missing value.
    incomplete : str
        Rows with missing values: ``"refuse"``, ``"drop"`` (complete cases), ``"mean"`` (replace the
        value by the column's training mean), or ``"category"`` (treat the missing value as a word;
        encoded columns only).
    sort_indices : bool
        True to sort indices of a LIBSVM row that are out of order; else they are an error.
    """

    format: Literal["libsvm", "table", "idx"] = "libsvm"
    separator: str = ","
    header: bool = False
    label: int | str = "last"
    label_strip: str = ""
    skip_lines: int = Field(default=0, ge=0)
    drop: tuple[int | str, ...] = ()
    encode: dict[str, Literal["alphabetical", "one-hot"] | dict[str, float]] = {}
    missing: str | None = None
    incomplete: Literal["refuse", "drop", "mean", "category"] = "refuse"
    sort_indices: bool = False

    @field_validator("separator")
    @classmethod
    def _is_one_character(cls, separator: str) -> str:
        # pandas takes a longer separator for a regular expression.
        is_character = len(separator) == 1 and (separator.isprintable() or separator == "\t")
        if separator != "whitespace" and (not is_character or separator == '"'):
            raise ValueError(f"{separator[:80]!r} is neither one character nor 'whitespace'")
        return separator


class SourceFile(Strict):
    """One file of a data set, with its sources.

    Attributes
    ----------
    name : str
        Name of the uncompressed file; a mirror may have it with .xz, .bz2 or .gz.
    part : str
        ``"train"`` or ``"test"``; the files of one part are concatenated in order.
    role : str
        ``"samples"``, or ``"labels"`` for a separate file of labels (idx).
    url : str or None
        The official address, compressed or not.
    member : str or None
        Path of the file inside the zip archive at `url`.
    folder : str
        Folder of the file below the mirror's root; only needed for a mirror with a URL.
    aliases : tuple of str
        Other names of the file on mirrors.
    sha256 : tuple of str
        Accepted checksums of the uncompressed bytes.
    md5 : str or None
        Published md5 of the official file as downloaded (compressed).
    max_bytes : int or None
        Largest size in bytes, as downloaded and unpacked; None for the limit of all files
        (`archives.MAX_UNPACKED_BYTES`).
    skip_lines : int
        Lines to skip in this file, in addition to those of the reading.
    rebuilt : str
        Reason why the mirror's copy differs from the official file; the checksum belongs to the
        copy.
    reading : Reading or None
        Format of the *official* file, if it differs from the format of the mirror's copy.
    """

    name: str
    part: Literal["train", "test"] = "train"
    role: Literal["samples", "labels"] = "samples"
    url: str | None = None
    member: str | None = None
    folder: str = ""
    aliases: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()
    md5: str | None = None
    max_bytes: int | None = Field(default=None, gt=0)
    skip_lines: int = Field(default=0, ge=0)
    rebuilt: str = ""
    reading: Reading | None = None

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        return _fit(name)

    @field_validator("aliases")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_fit, names))

    @field_validator("folder")
    @classmethod
    def _is_below_the_root(cls, folder: str) -> str:
        for part in folder.split("/") if folder else ():
            _fit(part)
        return folder

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if not is_web_address(url):
            raise ValueError(f"{url[:80]!r} is not an http or https address")
        _fit(file_name(url))
        return url

    @field_validator("sha256")
    @classmethod
    def _hexadecimal(cls, hashes: tuple[str, ...]) -> tuple[str, ...]:
        for value in hashes:
            if not re.fullmatch(r"[0-9a-f]{64}", value):
                raise ValueError(f"{value[:80]!r} is not a sha256 in lower-case hexadecimal")
        return hashes


class Novelty(Strict):
    """Labels for novelty detection: normal classes (+1) and a sample of the others (−1).

    Attributes
    ----------
    normal : tuple of str
        The normal classes.
    ratio : float
        Number of abnormal rows for each normal row.
    seed : int
        Seed of the random sample.
    """

    normal: tuple[str, ...]
    ratio: float = Field(gt=0)
    seed: int = 0


class Derivation(Strict):
    """Changes of the rows that were read, in the order of the attributes below.

    Attributes
    ----------
    rows : (int, int) or None
        Range of training rows to keep: first row (0-based) and end (exclusive).
    select : tuple of str
        Classes to keep; empty keeps all.
    select_pair_of : int or None
        Keep the only pair of classes whose training rows add up to this number. It identifies a
        paper's data set if the paper prints the size but not the pair.
    drop_features : tuple of int
        Features to leave out, numbered from 1.
    positive : tuple of str
        Classes that become +1, all others −1; empty keeps the classes as they are.
    novelty : Novelty or None
        The novelty protocol instead of `positive`. Only the training part is sampled; the test part
        keeps all rows.
    """

    select: tuple[str, ...] = ()
    select_pair_of: int | None = None
    drop_features: tuple[int, ...] = ()
    rows: tuple[int, int] | None = None
    positive: tuple[str, ...] = ()
    novelty: Novelty | None = None


class Statement(Strict):
    """Counts that a paper prints for a data set, with the reason for a difference.

    Attributes
    ----------
    published_as : str or None
        The paper's name for the data set.
    stands_in_for : str or None
        Name of the paper's unavailable data set that this data set replaces.
    parts : str
        ``"train"`` if the paper counts the training part only, ``"all"`` with test rows.
    n_samples, n_features : int or None
        As printed.
    counts : tuple of int or None
        As printed: negative and positive rows, or rows of each class.
    why : str
        The reason for a difference.
    """

    published_as: str | None = None
    stands_in_for: str | None = None
    parts: Literal["train", "all"] = "train"
    n_samples: int | None = None
    n_features: int | None = None
    counts: tuple[int, ...] | None = None
    why: str = ""


class DatasetEntry(Strict):
    """The registry entry of one data set.

    Attributes
    ----------
    name, title, task, homepage, licence, citation : str
        Descriptions; `task` is ``"binary"`` or ``"multiclass"``.
    files : tuple of SourceFile
        Empty for a data set that is generated or ships with scikit-learn.
    builtin : str or None
        Name of a function in :mod:`svmbench.data.synthetic`.
    parameters : dict
        Arguments of the builtin function.
    reading, derivation : Reading, Derivation
        Format of the files, and changes of their rows.
    n_samples, n_features : int
        Expected shape of the training part after the derivation; checked at the first preparation.
    density : float or None
        Expected share of non-zero training values; None if it is unknown.
    counts : tuple of int
        Expected rows of each class, in the order of the codes in `y`; empty if they are unknown.
    n_test : int
        Expected rows of the test part; 0 without a test part.
    test_counts : tuple of int
        Expected rows of each class of the test part.
    papers : dict
        The papers that use the data set, with their printed counts. They come from the papers'
        folders (:mod:`svmbench.base.paper_folders`) or, for a user's data set, from its entry.
    notes : tuple of str
        Remarks on the data and on choices, each a sentence.
    """

    name: str
    title: str
    task: Literal["binary", "multiclass"]
    homepage: str
    licence: str
    citation: str
    files: tuple[SourceFile, ...] = ()
    builtin: str | None = None
    parameters: dict[str, Any] = {}
    reading: Reading = Reading()
    derivation: Derivation = Derivation()
    n_samples: int = Field(gt=0)
    n_features: int = Field(gt=0, lt=2**31)
    density: float | None = None
    counts: tuple[int, ...] = ()
    n_test: int = Field(default=0, ge=0)
    test_counts: tuple[int, ...] = ()
    papers: dict[str, Statement] = {}
    notes: tuple[str, ...] = ()

    @field_validator("name")
    @classmethod
    def _can_be_selected(cls, name: str) -> str:
        _fit(name)
        if re.search(r"[\[\]+@\s]", name) or name.startswith((".", "-")):
            raise ValueError(
                f"{name[:80]!r} can't name a data set: a name has no blanks, brackets, '+' or '@',"
                " and doesn't begin with a dot or a dash"
            )
        return name

    @model_validator(mode="after")
    def _consistent(self) -> DatasetEntry:
        if bool(self.files) == bool(self.builtin):
            raise ValueError("an entry has either files or a builtin")
        if self.counts and sum(self.counts) != self.n_samples:
            raise ValueError(
                f"counts add up to {sum(self.counts)}, not to n_samples = {self.n_samples}"
            )
        if self.test_counts and sum(self.test_counts) != self.n_test:
            raise ValueError(
                f"test_counts add up to {sum(self.test_counts)}, not to n_test = {self.n_test}"
            )
        if self.counts and (self.task == "binary") != (len(self.counts) == 2):
            raise ValueError(f"task {self.task!r} doesn't match {len(self.counts)} class counts")
        if any(f.part == "test" for f in self.files) != bool(self.n_test) and not self.builtin:
            raise ValueError("n_test and the files of part 'test' don't match")
        return self
