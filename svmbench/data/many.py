"""Prepare several data sets, in one or several processes, with an outcome for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from svmbench.base.errors import DataError, DataUnavailableError
from svmbench.base.parallel_map import parallel_map
from svmbench.data import prepare
from svmbench.data.entries import shown_address
from svmbench.data.registry import entry, parse_name


@dataclass(frozen=True)
class FetchOutcome:
    """The outcome of preparing one data set.

    Attributes
    ----------
    name : str
    status : str
        ``"cached"`` (prepared before), ``"prepared"``, ``"unavailable"`` or ``"failed"`` (a damaged
        or unexpected file).
    reason : str
        One sentence if the data set isn't prepared now.
    url : str
        First official address of a missing file, if there is one.
    seconds : float
        Duration.
    facts : dict
        As :func:`svmbench.data.ensure` returns them; empty if the data set isn't prepared.
    """

    name: str
    status: str
    reason: str = ""
    url: str = ""
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if the data set is prepared now."""
        return self.status in ("cached", "prepared")

    @property
    def sentence(self) -> str:
        """The outcome in one line for the terminal."""
        if not self.ok:
            return self.reason
        facts = self.facts
        shape = f"{facts['n_samples']:,} × {facts['n_features']:,}"
        if facts["n_test"]:
            shape += f", {facts['n_test']:,} test rows"
        if self.status == "cached":
            return f"{self.name}: cached ({shape})"
        checked = (
            "counts checked, UNVERIFIED bytes"
            if facts["verified"] == "unverified"
            else ("all counts as expected")
        )
        return f"{self.name}: prepared in {self.seconds:.1f} s ({shape}; {checked})"


@dataclass(frozen=True)
class Event:
    """A progress report of :func:`fetch_many`.

    Attributes
    ----------
    kind : str
        ``"start"``, ``"bytes"`` (progress of a download; only with one job) or ``"done"``.
    name : str
        The data set.
    file : str
        With ``"bytes"``: the file.
    done, total : int, int or None
        With ``"bytes"``: bytes so far and total bytes.
    outcome : FetchOutcome or None
        With ``"done"``.
    """

    kind: str
    name: str
    file: str = ""
    done: int = 0
    total: int | None = None
    outcome: FetchOutcome | None = None


OnEvent = Callable[[Event], None]


def fetch_many(
    names: Iterable[str],
    mirror: str | None = None,
    *,
    official: bool | None = True,
    jobs: int = 1,
    on_done: Callable[[FetchOutcome], None] | None = None,
    on_event: OnEvent | None = None,
) -> list[FetchOutcome]:
    """Prepare data sets and return an outcome for each; a failure doesn't stop the others.

    Parameters
    ----------
    names : iterable of str
        Registered names; all are checked before the first download.
    mirror : str, optional
        Folder or URL; default ``SVMBENCH_MIRROR``.
    official : bool, default=True
        True to use official addresses after the mirror (None: as :func:`may_go_online` decides).
    jobs : int, default=1
        Number of processes that prepare data sets. Cached data sets need none.
    on_done : callable, optional
        Called in this process with each :class:`FetchOutcome` as soon as it is known; with several
        jobs, when all data sets of the same files are done.
    on_event : callable, optional
        Called in this process with an :class:`Event` at each step.

    Returns
    -------
    outcomes : list of FetchOutcome
        Outcomes in the order of `names`, each name once.

    Raises
    ------
    UnknownNameError
        If one of the names does not exist.
    """
    wanted = list(dict.fromkeys(parse_name(name).base for name in names))

    def notify(event: Event) -> None:
        if on_event is not None:
            on_event(event)
        if on_done is not None and event.outcome is not None:
            on_done(event.outcome)

    outcomes: dict[str, FetchOutcome] = {}
    todo = []
    for name in wanted:
        facts = prepare.cached_facts(entry(name))
        if facts is not None:
            outcomes[name] = FetchOutcome(name, "cached", facts=facts)
            notify(Event("done", name, outcome=outcomes[name]))
        else:
            todo.append(name)
    groups = _by_files(todo)
    if jobs > 1 and len(groups) > 1:
        prepared = partial(_all, mirror=mirror, official=official)
        for group in parallel_map(prepared, groups, jobs):
            for outcome in group:
                outcomes[outcome.name] = outcome
                notify(Event("done", outcome.name, outcome=outcome))
    else:
        for names in groups:
            for outcome in _each(names, mirror, official, notify):
                outcomes[outcome.name] = outcome
                notify(Event("done", outcome.name, outcome=outcome))
    return [outcomes[name] for name in wanted]


def _by_files(names: list[str]) -> list[list[str]]:
    """Group names by their files: data sets from the same files are prepared one after another."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        files = tuple(file.name for file in entry(name).files)
        groups.setdefault(files or (name,), []).append(name)
    return list(groups.values())


def _all(names: list[str], mirror: str | None, official: bool | None) -> list[FetchOutcome]:
    return list(_each(names, mirror, official, None))


def _each(
    names: list[str], mirror: str | None, official: bool | None, notify: OnEvent | None
) -> Iterator[FetchOutcome]:
    """Prepare data sets of the same files, which are read once."""
    files_read = prepare.FilesRead()
    for name in names:
        if notify is not None:
            notify(Event("start", name))
        yield _prepare(name, mirror, official, notify, files_read)


def _prepare(
    name: str,
    mirror: str | None,
    official: bool | None,
    notify: OnEvent | None,
    files_read: prepare.FilesRead,
) -> FetchOutcome:
    """Prepare one data set; return how that ended."""
    started = time.perf_counter()
    progress = None
    if notify is not None:

        def progress(file: str, done: int, total: int | None) -> None:
            notify(Event("bytes", name, file, done, total))

    url = next((shown_address(file.url) for file in entry(name).files if file.url), "")
    try:
        facts = prepare.ensure(name, mirror, official, progress, files_read)
    except DataUnavailableError as error:
        return FetchOutcome(name, "unavailable", str(error), url, time.perf_counter() - started)
    except DataError as error:
        return FetchOutcome(name, "failed", str(error), url, time.perf_counter() - started)
    return FetchOutcome(name, "prepared", seconds=time.perf_counter() - started, facts=facts)
