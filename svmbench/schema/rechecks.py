"""Rechecks of kept results: the file ``rechecks.jsonl``, and the age of a result.

A kept result is *fresh* if its code, settings, data and packages are the present ones. If not, it
is *changed* if it was run again with the present code and disagreed. If not, it is *rechecked* if a
sample of its run was run again with the present code, the whole sample agreed, and the sample has
every solver on every data set and at least a twentieth of the cells. If not, it is *older*.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from svmbench.base.errors import ResultsError
from svmbench.base.files import open_file, open_to_append
from svmbench.schema.record import record_lines

RECHECKS = "rechecks.jsonl"
RECHECK_SCHEMA = 1
#: The file that marks the folder of a run that was added from a pack.
MANIFEST = "manifest.json"

FRESH, RECHECKED, CHANGED, OLDER = "fresh", "rechecked", "changed", "older"
#: The word of several results is the first of these that holds for one of them.
WORDS = (CHANGED, OLDER, RECHECKED, FRESH)
#: Share of a run's cells that a sample must hold.
SAMPLE_SHARE = 0.05


class Recheck(TypedDict):
    """A line of ``rechecks.jsonl``: one cell that was run again.

    `modules` and `code` are the modules that decide the cell and the hash of their code; `old` and
    `new` are status, metrics, counters and parameters; `differences` say what disagreed beyond
    what `arithmetic` (``equal`` or ``other``) allows; `n_equal` of `n_compared` numbers are equal
    (objectives and scores to 1e-9, relative); `times` has the ratio of each time to its
    former value, and whether the repeats of both overlap (null where the CPUs differ).
    """

    schema: int
    key: str
    cell: str
    solver: str
    dataset: str
    modules: list[str]
    code: str
    old: dict[str, Any]
    new: dict[str, Any]
    arithmetic: str
    n_compared: int
    n_equal: int
    differences: list[dict[str, Any]]
    times: dict[str, Any]
    environment: dict[str, Any]
    seed: int
    when: str


@dataclass(frozen=True)
class KeptResult:
    """The fields that decide a kept result's age."""

    key: str
    solver: str
    dataset: str
    is_fresh: bool


@dataclass(frozen=True)
class Ages:
    """The words of a run's results.

    Attributes
    ----------
    words : dict of str to str
        By key: ``fresh``, ``rechecked``, ``changed`` or ``older``.
    n_agreed : int
        How many cells were run again at the present code and agreed.
    changed : dict of str to str
        By key a cell that disagreed, and how, in a sentence without its end.
    is_sampled : bool
        Whether the cells that agreed are a sample as ``rechecked`` needs it, and none disagreed.
    """

    words: Mapping[str, str]
    n_agreed: int = 0
    changed: Mapping[str, str] = field(default_factory=dict)
    is_sampled: bool = False

    @property
    def word(self) -> str:
        """The word of the whole run; empty where it has no result."""
        return worst(self.words.values())

    def sentence(self) -> str:
        """Return the word of the whole run with its numbers."""
        n_results = len(self.words)
        if self.word == RECHECKED:
            return f"rechecked ({self.n_agreed} of {n_results} cells)"
        if self.word in {FRESH, ""}:
            return self.word
        count = sum(word == self.word for word in self.words.values())
        return f"{self.word} ({count} of {n_results} cells)"


def worst(words: Iterable[str]) -> str:
    """Return the word of several results."""
    present = set(words)
    return next((word for word in WORDS if word in present), "")


def ages(results: Collection[KeptResult], rechecks: Iterable[Recheck]) -> Ages:
    """Return the words of a run's results.

    Parameters
    ----------
    results : collection of KeptResult
        All results of the run.
    rechecks : iterable of Recheck
        Those at the present code, in the order in which they were made; the newest of a cell
        counts.
    """
    known = {result.key for result in results}
    newest = {
        comparison["key"]: comparison for comparison in rechecks if comparison["key"] in known
    }
    changed = {
        key: _said(comparison) for key, comparison in newest.items() if comparison["differences"]
    }
    agreed = newest.keys() - changed.keys()
    pairs = {(result.solver, result.dataset) for result in results if result.key in agreed}
    is_sampled = (
        bool(agreed)
        and not changed
        and len(agreed) >= SAMPLE_SHARE * len(known)
        and all((result.solver, result.dataset) in pairs for result in results)
    )
    otherwise = RECHECKED if is_sampled else OLDER
    words = {result.key: FRESH if result.is_fresh else otherwise for result in results}
    words |= dict.fromkeys(changed, CHANGED)
    return Ages(words, len(agreed), changed, is_sampled)


def _said(comparison: Recheck) -> str:
    moved = comparison["differences"][0]
    more = len(comparison["differences"]) - 1
    rest = f" and {more} more" if more else ""
    return f"{comparison['cell']}: {moved['what']} was {moved['base']}, is {moved['new']}{rest}"


def read_rechecks(folder: Path, is_present: Callable[[Recheck], bool]) -> list[Recheck]:
    """Return the rechecks of a run folder that are of the present code, in order.

    `is_present` says of a recheck whether it is (`present_code.has_present_code`). Damaged lines,
    and lines of another schema, are skipped.
    """
    try:
        with open_file(folder / RECHECKS) as stream:
            comparisons = [
                comparison
                for _, line in record_lines(stream)
                if (comparison := _parse(line)) is not None
            ]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultsError(f"can't read {folder / RECHECKS}: {error.strerror or error}") from error
    return [comparison for comparison in comparisons if is_present(comparison)]


def _parse(line: bytes) -> Recheck | None:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("schema") != RECHECK_SCHEMA:
        return None
    texts = [content.get(name) for name in ("key", "cell", "solver", "dataset", "code")]
    modules, differences = content.get("modules"), content.get("differences")
    if not (isinstance(modules, list) and isinstance(differences, list)):
        return None
    is_whole = all(isinstance(text, str) for text in (*texts, *modules)) and all(
        isinstance(moved, dict) and {"what", "base", "new"} <= moved.keys() for moved in differences
    )
    return content if is_whole else None  # type: ignore[return-value]


def append_recheck(folder: Path, recheck: Recheck) -> None:
    """Append a whole line: other writers wait, and an incomplete last line is cut off first.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If it can't be written; the earlier lines stay readable.
    """
    path = folder / RECHECKS
    line = (json.dumps(recheck, sort_keys=True, allow_nan=False) + "\n").encode()
    try:
        fd = open_to_append(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            start = _end_of_whole_lines(fd)
            os.ftruncate(fd, start)
            try:
                written = 0
                while written < len(line):
                    written += os.write(fd, line[written:])
                os.fsync(fd)
            except OSError:
                os.ftruncate(fd, start)
                raise
        finally:
            os.close(fd)
    except OSError as error:
        raise ResultsError(f"can't write {path}: {error.strerror or error}") from error


def _end_of_whole_lines(fd: int) -> int:
    """Return where the last newline of a file ends."""
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0).rfind(b"\n") + 1
