"""Errors for users: each is one sentence with an exit code."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice, pairwise

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_FAILED_CELLS = 3
EXIT_REGRESSION = 4
EXIT_INTERRUPTED = 130


class SvmbenchError(Exception):
    """An error that the user can fix; its text is the whole message, without a traceback."""

    exit_code = EXIT_ERROR


class ConfigError(SvmbenchError):
    """A config file or a command-line value that cannot be used.

    Parameters
    ----------
    problems : list of str
        One line for each problem, beginning with file, line and column if they are known.
    """

    exit_code = EXIT_USAGE

    def __init__(self, problems: list[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class UnknownNameError(ConfigError):
    """An unknown name of a solver, data set or the like; the text suggests a similar known name."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}{suggestion(name, known)}")


class DataError(SvmbenchError):
    """A data file or data set with wrong content."""

    exit_code = EXIT_USAGE


class DataUnavailableError(DataError):
    """A data set that is not available: not cached, not in the mirror, and not downloadable."""

    exit_code = EXIT_ERROR


class DataWarning(UserWarning):
    """A warning, one sentence, about columns of a file that were left out."""


class CacheError(DataError):
    """The cache folder can't be written, for example because the disk is full."""

    exit_code = EXIT_ERROR


class BudgetError(SvmbenchError):
    """A memory budget that is too small for a solver; the text says how much it needs."""


class MissingPackageError(SvmbenchError, ValueError):
    """A parameter that needs a package that is not installed; the text says how to install it."""


class ProgramError(SvmbenchError):
    """An external program that is missing, failed, or did not write the expected output."""


class ResultsError(SvmbenchError):
    """A results folder that can't be read or written."""


class NotComparableError(ResultsError):
    """Two results folders with different data, configs, profiles, seeds or settings."""

    exit_code = EXIT_USAGE


class DamagedResultsError(ResultsError):
    """A file of a results folder with wrong content."""

    exit_code = EXIT_USAGE


#: Number of leading characters by which names are compared.
COMPARED_CHARACTERS = 40

#: Largest number of known names that are compared.
MAX_KNOWN_NAMES = 500

#: Number of known names that are compared letter by letter: those that share the most letter pairs.
COMPARED_NAMES = 5


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the most similar known name, or an empty text."""
    near = nearest(name, known, 0.6)
    return f"; did you mean {near!r}?" if near else ""


def nearest(name: str, known: Iterable[str], least: float = 0.0) -> str:
    """Return the known name that is most similar to a name; empty if none is similar enough.

    The time per known name is a few microseconds, however long the names are, because an untrusted
    file may have hundreds of misspelt names.

    Parameters
    ----------
    name : str
    known : iterable of str
    least : float, default=0.0
        Smallest similarity, from 0 to 1: ``difflib.SequenceMatcher.ratio``.
    """
    from difflib import get_close_matches

    spelt = {each[:COMPARED_CHARACTERS].casefold(): each for each in islice(known, MAX_KNOWN_NAMES)}
    wanted = name[:COMPARED_CHARACTERS].casefold()
    pairs = _letter_pairs(wanted)

    def shared_pairs(each: str) -> float:
        pairs_of_each = _letter_pairs(each)
        return len(pairs & pairs_of_each) / (len(pairs) + len(pairs_of_each))

    likely = heapq.nlargest(COMPARED_NAMES, spelt, key=shared_pairs)
    near = get_close_matches(wanted, likely, n=1, cutoff=least)
    return spelt[near[0]] if near else ""


@lru_cache(maxsize=1 << 13)
def _letter_pairs(name: str) -> frozenset[str]:
    """Return the letters of a name and its pairs of adjacent letters, with a space at each end."""
    return frozenset(name).union(a + b for a, b in pairwise(f" {name} "))
