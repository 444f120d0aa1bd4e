"""The errors a person at the terminal sees: one sentence each, and the exit code they end with."""

from __future__ import annotations

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


class DamagedResultsError(ResultsError):
    """A file of a results folder that is not what it should be."""

    exit_code = EXIT_USAGE


def suggestion(name: str, known: list[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name nearest to `name`, or nothing."""
    from difflib import get_close_matches

    spelt = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), list(spelt), n=1, cutoff=0.6)
    return f"; did you mean {spelt[near[0]]!r}?" if near else ""
