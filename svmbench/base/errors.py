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
    """Something the user can act on; its text is the whole message, without a traceback."""

    exit_code = EXIT_ERROR


class ConfigError(SvmbenchError):
    """A config file or a command-line value that cannot be used.

    Parameters
    ----------
    problems : list of str
        One line a problem, each with file, line and column where they are known.
    """

    exit_code = EXIT_USAGE

    def __init__(self, problems: list[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class UnknownNameError(ConfigError):
    """A solver, data set, config or paper that does not exist, with the nearest that does."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}{suggestion(name, known)}")


class DataError(SvmbenchError):
    """A data file or data set that is not what it should be."""

    exit_code = EXIT_USAGE


class DataUnavailableError(DataError):
    """A data set that can't be had here: neither cached, nor in the mirror, nor downloadable."""

    exit_code = EXIT_ERROR


class DataWarning(UserWarning):
    """A sentence on what was left out of a file; the command line prints it as one."""


class CacheError(DataError):
    """The cache folder can't be written (a full disk, a read-only folder): no data set's fault."""

    exit_code = EXIT_ERROR


class BudgetError(SvmbenchError):
    """A memory budget that does not hold what a solver needs; its text says how much would."""


class MissingPackageError(SvmbenchError, ValueError):
    """A parameter that asks for a package that is not installed; its text says how to get it."""


class ProgramError(SvmbenchError):
    """Somebody's program that is missing, failed, or did not write what it should have."""


class ResultsError(SvmbenchError):
    """A results folder that can't be read or written."""


class NotComparableError(ResultsError):
    """Two results folders of other data, or of another config, profile or seed."""

    exit_code = EXIT_USAGE


class DamagedResultsError(ResultsError):
    """A file of a results folder that is not what it should be."""

    exit_code = EXIT_USAGE


#: Number of characters of a name that are compared with other names.
COMPARED_CHARACTERS = 40

#: Largest number of known names that are compared.
MOST_KNOWN_NAMES = 500

#: Number of known names, with most pairs of letters in common, that are compared letter by letter.
COMPARED_NAMES = 5


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name nearest to `name`, or nothing."""
    near = nearest(name, known, 0.6)
    return f"; did you mean {near!r}?" if near else ""


def nearest(name: str, known: Iterable[str], least: float = 0.0) -> str:
    """Return the known name that is most like another; empty if none is like it enough.

    Takes some microseconds a known name, however long the names are: a file of other people's
    making may hold hundreds of names, each of them misspelt.

    Parameters
    ----------
    name : str
    known : iterable of str
    least : float, default=0.0
        Likeness at least, from 0 to 1, as ``difflib.SequenceMatcher.ratio`` has it.
    """
    from difflib import get_close_matches

    spelt = {
        each[:COMPARED_CHARACTERS].casefold(): each for each in islice(known, MOST_KNOWN_NAMES)
    }
    wanted = name[:COMPARED_CHARACTERS].casefold()
    pairs = _letter_pairs(wanted)

    def in_common(each: str) -> float:
        own = _letter_pairs(each)
        return len(pairs & own) / (len(pairs) + len(own))

    likely = heapq.nlargest(COMPARED_NAMES, spelt, key=in_common)
    near = get_close_matches(wanted, likely, n=1, cutoff=least)
    return spelt[near[0]] if near else ""


@lru_cache(maxsize=1 << 13)
def _letter_pairs(name: str) -> frozenset[str]:
    """Return the letters of a name and its pairs of neighbours, its two ends among them."""
    return frozenset(name).union(a + b for a, b in pairwise(f" {name} "))
