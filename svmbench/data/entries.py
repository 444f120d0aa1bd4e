"""What an entry of the registry may say: the model of each table of ``datasets.toml``."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from svmbench.base import paths


def is_web_address(text: str) -> bool:
    """Whether a text is an address behind http or https, without blanks or control characters."""
    return re.fullmatch(r"https?://[!-~]+", text) is not None


def file_name(url: str) -> str:
    """Return the file name that a URL's path ends in.

    It is the last part of the path once escapes are resolved; :func:`svmbench.base.paths.why_unfit`
    says whether it can be one.
    """
    try:
        path = urlsplit(url).path
    except ValueError:  # an address that isn't one, such as http://[
        return ""
    return unquote(path.rpartition("/")[2])


def shown_address(url: str) -> str:
    """Return an address as it may be shown and recorded: without user, password, query, fragment.

    What is no URL (a folder) is returned as it is; of a URL whose host is none, the scheme is left.
    """
    found = re.match(r"([a-z][a-z0-9+.-]*://)(?:[^/?#]*@)?([^/?#]*)([^?#]*)", url, re.IGNORECASE)
    if found is None:
        return url
    is_host = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(:\d*)?", found[2])
    return found[1] + (found[2] + found[3] if is_host else "…")


def _fit(name: str) -> str:
    why = paths.why_unfit(name)
    if why:
        raise ValueError(f"{name[: paths.LONGEST_NAME]!r} {why}")
    return name


class Strict(BaseModel):
    """A model that refuses keys it does not know, and numbers without measure."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Reading(Strict):
    """How a file's bytes become rows and labels.

    Attributes
    ----------
    format : str
        ``"libsvm"``, ``"table"`` (rows of columns) or ``"idx"`` (MNIST's binary arrays).
    separator : str
        Between columns: a character, or ``"whitespace"``.
    header : bool
        Whether the first row names the columns.
    label : str or int
        The label's column: ``"first"``, ``"last"``, a number from 1, or a header's name.
    label_strip : str
        Characters to strip from the end of a label (``adult.test`` ends its labels with a stop).
    skip_lines : int
        Lines before the first row that are no data.
    drop : list of str or int
        Columns that are no features: numbers from 1, or header names.
    encode : dict
        Per column (number from 1 or header name) the numbers for its words, ``"alphabetical"``
        (0, 1, 2 … in the words' sorted order over all files) or ``"one-hot"``.
    missing : str or None
        The word that stands for a missing value.
    incomplete : str
        Rows with missing values: ``"refuse"``, ``"drop"`` (complete cases), ``"mean"`` (of the
        column's known training values), or ``"category"`` (a word like any other; encoded columns).
    sort_indices : bool
        Whether a LIBSVM row's indices may be out of order (they are sorted) or are an error.
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
        # More than one would be a regular expression to the reader of tables.
        one = len(separator) == 1 and (separator.isprintable() or separator == "\t")
        if separator != "whitespace" and (not one or separator == '"'):
            raise ValueError(f"{separator[:80]!r} is neither one character nor 'whitespace'")
        return separator


class SourceFile(Strict):
    """One file of a data set and the places where it can be had.

    Attributes
    ----------
    name : str
        The file's own name, uncompressed; a mirror may hold it with .xz, .bz2 or .gz.
    part : str
        ``"train"`` or ``"test"``; files of one part are joined in order.
    role : str
        ``"samples"``, or ``"labels"`` where labels have a file of their own (idx).
    url : str or None
        The official address, compressed or not.
    member : str or None
        The file's path inside the archive that `url` names (zip).
    folder : str
        Where a mirror keeps it below its root; only a mirror behind a URL needs this.
    aliases : tuple of str
        Other names under which mirrors hold it.
    sha256 : tuple of str
        Accepted checksums of the uncompressed bytes.
    md5 : str or None
        Published md5 of the official file as served (compressed).
    max_bytes : int or None
        The most bytes that it may have, as served and unpacked; None for the ceiling that holds
        for every file (`archives.CEILING`).
    skip_lines : int
        Lines before this file's first row, beyond the reading's.
    rebuilt : str
        Why the mirror's copy is not the official bytes; its checksum then says nothing of them.
    reading : Reading or None
        How the *official* file reads where it is laid out differently from the mirror's copy.
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
            raise ValueError(f"{url[:80]!r} is no http or https address")
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
    """One class is normal (+1), all others abnormal (−1) and thinned at random.

    Attributes
    ----------
    normal : tuple of str
        The class or classes that are normal.
    ratio : float
        How many abnormal rows are kept for each normal one.
    seed : int
        Of the choice.
    """

    normal: tuple[str, ...]
    ratio: float = Field(gt=0)
    seed: int = 0


class Derivation(Strict):
    """What is done to the rows that were read, in this order.

    Attributes
    ----------
    select : tuple of str
        Classes to keep; empty keeps all.
    select_pair_of : int or None
        Keep the one pair of classes whose training rows add up to this number: how a paper's set
        is found when the paper prints its size and not the pair.
    drop_features : tuple of int
        Features to leave out, numbers from 1.
    rows : (int, int) or None
        Training rows to keep, from (0-based) and up to (exclusive).
    positive : tuple of str
        Classes that become +1, all others −1; empty keeps the classes as they are.
    novelty : Novelty or None
        The novelty protocol, in place of `positive`; drawn from the training part alone, the test
        part keeps all its rows.
    """

    select: tuple[str, ...] = ()
    select_pair_of: int | None = None
    drop_features: tuple[int, ...] = ()
    rows: tuple[int, int] | None = None
    positive: tuple[str, ...] = ()
    novelty: Novelty | None = None


class Statement(Strict):
    """What a paper prints of a data set, where that differs from what was verified and why.

    Attributes
    ----------
    published_as : str or None
        The paper's own name for it.
    stands_in_for : str or None
        The paper's data set that can't be had, in whose place this one is offered.
    parts : str
        ``"train"`` if the paper counts the training part, ``"all"`` if test rows too.
    n_samples, n_features : int or None
        As printed.
    counts : tuple of int or None
        As printed: negative and positive, or per class.
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


class Entry(Strict):
    """One data set.

    Attributes
    ----------
    name, title, task, homepage, licence, citation : str
        For people; `task` is ``"binary"`` or ``"multiclass"``.
    files : tuple of SourceFile
        Empty for what is generated or ships with scikit-learn.
    builtin : str or None
        Name of a function in :mod:`svmbench.data.synthetic`.
    parameters : dict
        Its arguments.
    reading, derivation : Reading, Derivation
        How the files become samples.
    n_samples, n_features : int
        Expected of the training part after the derivation; checked at the first preparation.
    density : float or None
        Expected share of training entries that are not zero; None where it was never seen.
    counts : tuple of int
        Expected rows of each class, in the order of `y`'s codes; empty where they were never seen.
    n_test : int
        Expected rows of the test part; 0 without one.
    test_counts : tuple of int
        Expected rows of each class of the test part.
    papers : dict
        The papers that use it, with what they print of it: what their folders say
        (:mod:`svmbench.base.paper_folders`), and for a set of one's own what its entry says.
    notes : tuple of str
        Traps and choices, each a sentence.
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
                f"{name[:80]!r} is no name of a data set: no blanks, brackets, '+' or '@', and no"
                " dot or dash at its beginning"
            )
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Entry:
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
            raise ValueError(f"task {self.task!r} does not fit {len(self.counts)} class counts")
        if any(f.part == "test" for f in self.files) != bool(self.n_test) and not self.builtin:
            raise ValueError("n_test and the files of part 'test' do not fit together")
        return self
