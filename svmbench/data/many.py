"""Preparing several data sets, in one process or in some, with one outcome for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from svmbench.base.errors import DataError, DataUnavailableError
from svmbench.base.parallel_map import parallel_map
from svmbench.data import prepare
from svmbench.data.entries import shown_address
from svmbench.data.registry import entry, parse_name


@dataclass(frozen=True)
class Outcome:
    """What became of one data set.

    Attributes
    ----------
    name : str
    status : str
        ``"cached"`` (it was there), ``"prepared"``, ``"unavailable"`` or ``"failed"`` (a damaged
        or unexpected file).
    reason : str
        One sentence if it is not there now.
    url : str
        The first official address of what is missing, if it has one.
    seconds : float
        How long it took.
    facts : dict
        As :func:`svmbench.data.ensure` returns them; empty if it is not there.
    """

    name: str
    status: str
    reason: str = ""
    url: str = ""
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the data set is prepared now."""
        return self.status in ("cached", "prepared")

    @property
    def sentence(self) -> str:
        """What became of it, in one line for the terminal."""
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
    """What :func:`fetch_many` tells while it works.

    Attributes
    ----------
    kind : str
        ``"start"``, ``"bytes"`` (a download goes on; only with one job) or ``"done"``.
    name : str
        The data set.
    file : str
        With ``"bytes"``: the file.
    done, total : int, int or None
        With ``"bytes"``: bytes so far and in all.
    outcome : Outcome or None
        With ``"done"``.
    """

    kind: str
    name: str
    file: str = ""
    done: int = 0
    total: int | None = None
    outcome: Outcome | None = None


OnEvent = Callable[[Event], None]


def fetch_many(
    names: Iterable[str],
    mirror: str | None = None,
    *,
    official: bool | None = True,
    jobs: int = 1,
    on_done: Callable[[Outcome], None] | None = None,
    on_event: OnEvent | None = None,
) -> list[Outcome]:
    """Prepare data sets and say what became of each; one that fails stops none of the others.

    Parameters
    ----------
    names : iterable of str
        Registered names; checked before anything is fetched.
    mirror : str, optional
        Folder or URL; default ``SVMBENCH_MIRROR``.
    official : bool, default=True
        Whether official addresses may be asked after the mirror (None: the rule of a run).
    jobs : int, default=1
        Processes that read and derive. What is cached is found without any.
    on_done : callable, optional
        Called with each :class:`Outcome` as soon as there is one, in this process.
    on_event : callable, optional
        Called with an :class:`Event` at each step, in this process.

    Returns
    -------
    outcomes : list of Outcome
        In the order of `names`, each name once.

    Raises
    ------
    UnknownNameError
        If one of the names does not exist.
    """
    wanted = list(dict.fromkeys(parse_name(name).base for name in names))

    def tell(event: Event) -> None:
        if on_event is not None:
            on_event(event)
        if on_done is not None and event.outcome is not None:
            on_done(event.outcome)

    outcomes: dict[str, Outcome] = {}
    todo = []
    for name in wanted:
        facts = prepare.cached_facts(entry(name))
        if facts is not None:
            outcomes[name] = Outcome(name, "cached", facts=facts)
            tell(Event("done", name, outcome=outcomes[name]))
        else:
            todo.append(name)
    if jobs > 1 and len(todo) > 1:
        prepared = partial(_one, mirror=mirror, official=official)
        for outcome in parallel_map(prepared, todo, jobs):
            outcomes[outcome.name] = outcome
            tell(Event("done", outcome.name, outcome=outcome))
    else:
        for name in todo:
            tell(Event("start", name))
            outcomes[name] = _one(name, mirror, official, tell)
            tell(Event("done", name, outcome=outcomes[name]))
    return [outcomes[name] for name in wanted]


def _one(
    name: str, mirror: str | None, official: bool | None, tell: OnEvent | None = None
) -> Outcome:
    started = time.perf_counter()
    progress = None
    if tell is not None:

        def progress(file: str, done: int, total: int | None) -> None:
            tell(Event("bytes", name, file, done, total))

    url = next((shown_address(file.url) for file in entry(name).files if file.url), "")
    try:
        facts = prepare.ensure(name, mirror, official, progress)
    except DataUnavailableError as error:
        return Outcome(name, "unavailable", str(error), url, time.perf_counter() - started)
    except DataError as error:
        return Outcome(name, "failed", str(error), url, time.perf_counter() - started)
    return Outcome(name, "prepared", seconds=time.perf_counter() - started, facts=facts)
