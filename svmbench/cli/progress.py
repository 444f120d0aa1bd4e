"""Progress of a run for a person: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from svmbench.base import escape, interrupts
from svmbench.cli import terminal
from svmbench.cli.logs import LOG
from svmbench.schema.record import CELL_OVERHEAD_S

if TYPE_CHECKING:
    from svmbench.experiment.settings.cells import Cell
    from svmbench.schema.record import CellRecord


#: The time left is estimated once this share of a run's cells has ended.
SHARE_BEFORE_ESTIMATE = 0.1
#: A command that has printed nothing yet reports after so many seconds that a step is running.
FIRST_SIGN_S = 2.0
#: As `FIRST_SIGN_S`, for a command that has printed something.
NEXT_SIGN_S = 30.0
#: Seconds after which the next of many short steps is reported.
STEP_SIGN_S = 5.0
#: Each wait is this many times as long as the one before, so that hours make few lines of a log.
WAIT_FACTOR = 4.0
#: Each wait is at most this many seconds longer than the one before.
MAX_WAIT_GROWTH_S = 1800.0
#: The step before the first cell.
STARTING = (
    "starting a worker, which loads the solvers' loops (on a new machine they are compiled, which"
    " takes a minute or two)"
)


class Waiting:
    """A context that reports on standard error, at growing intervals, which step is still running.

    Parameters
    ----------
    step : str
        The first step.
    quiet : bool, default=False
        Report nothing.
    """

    def __init__(self, step: str, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._changed = threading.Condition()
        self._is_over = False
        self._last_sign = time.monotonic()
        self._turn(step, FIRST_SIGN_S)

    def turn_to(self, step: str, wait_s: float = FIRST_SIGN_S) -> None:
        """Begin another step, which is first reported after `wait_s` seconds."""
        with self._changed:
            self._turn(step, wait_s)
            self._changed.notify()

    def step(self, step: str) -> None:
        """Begin one of many steps, which is reported if nothing was for `STEP_SIGN_S` seconds."""
        with self._changed:
            if time.monotonic() - self._last_sign > STEP_SIGN_S and not self.quiet:
                terminal.print_stderr(step)
                self._last_sign = time.monotonic()
            self._turn(step, NEXT_SIGN_S)
            self._changed.notify()

    def _turn(self, step: str, wait_s: float) -> None:
        self._step, self._began, self._wait_s = step, time.monotonic(), wait_s

    def __enter__(self) -> Self:
        if not self.quiet and (began := interrupts.end_signs()) is not None:
            self._began = began  # nothing was printed before
        self._thread = threading.Thread(target=self._watch, daemon=True)
        if not self.quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if not self.quiet:
            self._thread.join()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over:
                seconds_left = self._began + self._wait_s - time.monotonic()
                if seconds_left > 0:
                    self._changed.wait(seconds_left)
                    continue
                terminal.print_stderr(f"{self._step}: {self._wait_s:.0f} s so far")
                longer = min(WAIT_FACTOR * self._wait_s, self._wait_s + MAX_WAIT_GROWTH_S)
                self._wait_s = max(longer, NEXT_SIGN_S)


def cell_name(cell: Cell) -> str:
    """Return a cell's name in one line: data set, size, solver, fold, block."""
    shown = cell.identity
    parts = [str(shown["dataset"])]
    if shown["size"] is not None:
        parts.append(f"n={shown['size']}")
    if shown["n_features_kept"] is not None:
        parts.append(f"d={shown['n_features_kept']}")
    if shown["solver"]:
        parts.append(str(shown["solver"]).replace("|", " / "))
    if shown["fold"] is not None:
        parts.append(f"fold {shown['fold'] + 1}")
    return escape.line(" · ".join([*parts, str(shown["block"])]))


class WithBar:
    """A context that shows a bar while it lasts, if it has one."""

    _bar: Progress | None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()


class Watcher(WithBar):
    """A listener for a run.

    Parameters
    ----------
    console : rich.console.Console
        Where to write; its ``is_terminal`` decides between bar and lines.
    cells : list of Cell
        The cells that will run.
    quiet : bool
        Print failures and notes only.
    """

    def __init__(self, console: Console, cells: list[Cell], *, quiet: bool = False) -> None:
        self.console = console
        self.total = len(cells)
        self.quiet = quiet
        self.done = 0
        self._work = sum(c.cost for c in cells) or 1.0
        self._work_done = 0.0
        self._start = time.monotonic()
        self._bar = None
        if console.is_terminal and not quiet and cells:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task(
                "starting (a new machine compiles first)", total=self.total, left=""
            )
        self._waiting = Waiting(STARTING, quiet=quiet or self._bar is not None or not cells)

    def __enter__(self) -> Self:
        self._waiting.__enter__()
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._waiting.__exit__()

    def started(self, cell: Cell) -> None:
        """Show the cell that begins."""
        LOG.info("start: %s", cell_name(cell))
        self._waiting.turn_to(cell_name(cell), NEXT_SIGN_S if self.done else FIRST_SIGN_S)
        if self._bar:
            self._bar.update(self._task, description=cell_name(cell))

    def finished(self, cell: Cell, record: CellRecord) -> None:
        """Count the cell; print it if there is no bar or if it failed."""
        self.done += 1
        self._work_done += cell.cost
        self._waiting.turn_to(f"after {self.done} of {self.total} cells", NEXT_SIGN_S)
        what = record["reason"] or _result(record)
        LOG.info("%s: %s: %s", record["status"], cell_name(cell), what)
        if self._bar:
            self._bar.update(self._task, completed=self.done, left=self._time_left())
        if record["status"] != "ok":
            self._print(f"{record['status']}: {cell_name(cell)}: {record['reason']}")
        elif not self._bar and not self.quiet:
            self._print(f"[{self.done}/{self.total}] {cell_name(cell)}: {_result(record)}")

    def note(self, text: str) -> None:
        """Print a sentence."""
        LOG.info("%s", text)
        self._print(text)

    def _print(self, text: str) -> None:
        terminal.print_on(self.console, text)

    def _time_left(self) -> str:
        """Estimate the time left from the work done so far; small cells run first."""
        if self.done < max(3.0, self.total * SHARE_BEFORE_ESTIMATE):
            return ""
        spent = max(1e-3, time.monotonic() - self._start - CELL_OVERHEAD_S * self.done)
        share = self._work_done / self._work
        seconds = (self.total - self.done) * CELL_OVERHEAD_S + spent * (1 - share) / max(
            share, 1e-6
        )
        return (
            f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"
        )


class Narrator:
    """Printer of the steps of a run.

    Parameters
    ----------
    console : rich.console.Console
    quiet : bool
        Print failures and notes only.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console, self.quiet = console, quiet
        self._printed: set[str] = set()

    def note(self, text: str) -> None:
        """Print a sentence even if the run is quiet."""
        terminal.print_on(self.console, text)

    def print_line(self, text: str) -> None:
        """Log a step, and print it unless the run is quiet; print a sentence on a data set once."""
        LOG.info("%s", text)
        is_of_data = text.startswith("preparing ") or any(
            reason in text
            for reason in (
                ": not available: ",
                "t be downloaded: ",
                ": there is no official address",
            )
        )
        is_known = is_of_data and text in self._printed
        self._printed.add(text)
        if not (self.quiet or is_known):
            self.note(text)

    def watch(self, cells: list[Cell]) -> Watcher:
        """Return a listener for some cells that will run."""
        return Watcher(self.console, cells, quiet=self.quiet)


def _result(record: CellRecord) -> str:
    metrics = record.get("metrics", {})
    parts = []
    if metrics.get("train_time_s") is not None:
        parts.append(f"{metrics['train_time_s']:.3g} s")
    if metrics.get("accuracy_pct") is not None:
        parts.append(f"{metrics['accuracy_pct']:.2f} %")
    # A ratio has no value if a solver never reached the accuracy that was timed.
    ratios = {k: v for k, v in metrics.items() if k.startswith("ratio:") and v is not None}
    parts += [f"{k.removeprefix('ratio:')} {v:.3g}×" for k, v in ratios.items()]
    return ", ".join(parts) or "ok"
