"""The progress of the command ``fetch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from svmbench.base import escape
from svmbench.cli import terminal
from svmbench.cli.logs import LOG
from svmbench.cli.progress import WithBar

if TYPE_CHECKING:
    from svmbench.data import Event, FetchOutcome


def why_missing(outcome: Any) -> str:
    """Return the line of a data set in the list of failures."""
    return f"{outcome.name}: {outcome.reason.removeprefix(f'{outcome.name}: ')}"


class Fetching(WithBar):
    """Progress of fetching data sets: one line each, and a bar of a download.

    Parameters
    ----------
    console : rich.console.Console
        Where to write; only a terminal gets a bar.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar = None
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("", total=None, visible=False)

    def event(self, event: Event) -> None:
        """Show a step of :func:`svmbench.data.fetch_many`."""
        if event.kind != "bytes":
            LOG.info("%s", fetched(event.outcome) if event.outcome else f"{event.name}: preparing")
        if event.outcome is not None:
            if self._bar:
                self._bar.update(self._task, visible=False)
            terminal.print_on(self.console, fetched(event.outcome))
        elif self._bar and event.kind == "start":
            self._bar.reset(
                self._task,
                description=escape.line(f"{event.name}: preparing"),
                total=None,
                visible=True,
            )
        elif self._bar and event.kind == "bytes":
            self._bar.update(
                self._task,
                description=escape.line(f"{event.name}: {event.file}"),
                completed=event.done,
                total=event.total,
                visible=True,
            )


def fetched(outcome: FetchOutcome) -> str:
    """Return the result for a data set in one line."""
    if not outcome.ok:
        reason = outcome.reason.removeprefix(f"{outcome.name}: ")
        return f"{outcome.name}: not available: {reason}"
    facts = outcome.facts
    checked = {
        "sha256": "sha256 verified",
        "md5": "md5 verified",
        "generated": f"{facts['source']}, counts checked",
    }.get(facts["verified"], "counts checked, bytes unverified")
    test = f" + {facts['n_test']:,} test rows" if facts["n_test"] else ""
    shape = f"{facts['n_samples']:,} × {facts['n_features']:,}{test}"
    return f"{outcome.name}: ready ({shape}, {checked})"
