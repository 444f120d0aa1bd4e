"""Running a plan: a process a cell, hard limits, and every result on disk before the next.

The parent alone writes the records. A hang, a crash or a cell without end costs that cell and
nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from svmbench.experiment import answers, environment, processes, worker
from svmbench.experiment.cells import Cell, Limits, SharedArrays
from svmbench.experiment.plan import Plan
from svmbench.experiment.processes import Work
from svmbench.experiment.records import RunFolder, artifact_of
from svmbench.record import SCHEMA, Answer, CellRecord, parse

#: Statuses by what ``--retry`` calls them.
RETRY = {
    "none": set(),
    "failed": {"failed", "crashed", "memory"},
    "timeout": {"timeout"},
    "all": {"failed", "crashed", "memory", "timeout"},
}
#: How often the parent looks for streamed points, in seconds.
POLL_S = 0.25
#: How often a cell is run whose shared arrays are removed under it.
MOST_TRIES = 3


class Listener(Protocol):
    """What is told of a run's progress (the command line's progress bar, or nothing)."""

    def started(self, cell: Cell) -> None:
        """Tell that a cell was handed to a worker."""

    def finished(self, cell: Cell, record: CellRecord) -> None:
        """Tell that a cell's record is on disk."""

    def note(self, text: str) -> None:
        """Tell something in a sentence."""


class Silent:
    """A listener that does nothing."""

    def started(self, cell: Cell) -> None:
        """Ignore it."""

    def finished(self, cell: Cell, record: CellRecord) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


@dataclass
class Options:
    """How to run, apart from what.

    Attributes
    ----------
    jobs : int
        Cells at a time; above one, times are marked as contended.
    timeout_s, memory_gb, scratch_gb : float
        Limits of a cell, and of the arrays that cells share on disk.
    retry : str
        Which unfinished results of an earlier run to try again: a key of `RETRY`.
    budget_s : float
        Start no new cell after so many seconds; the rest is marked ``not run``.
    """

    jobs: int = 1
    timeout_s: float = 3600.0
    memory_gb: float = 4.0
    scratch_gb: float = 8.0
    retry: str = "none"
    budget_s: float = float("inf")


@dataclass
class Summary:
    """How a run ended: cells by status, and whether it was interrupted."""

    counts: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def failed(self) -> int:
        """How many cells have no result though they were run."""
        return sum(self.counts.get(s, 0) for s in ("failed", "crashed", "memory", "timeout"))


def execute(
    plan: Plan,
    cells: list[Cell],
    folder: RunFolder,
    options: Options,
    listener: Listener | None = None,
) -> Summary:
    """Run the cells that have no result yet; return how all of the plan's cells stand.

    Parameters
    ----------
    plan : Plan
    cells : list of Cell
        Those of the plan to run now (``--only``).
    folder : RunFolder
        Open for writing.
    options : Options
    listener : Listener, optional
    """
    run = _Run(plan, folder, options, listener or Silent())
    wanted = due(cells, folder, options.retry)
    interrupted = False
    if wanted:
        try:
            with _terminate_as_interrupt():
                run.all(sorted(wanted, key=lambda c: c.cost))
        except KeyboardInterrupt:
            interrupted = True
    counts: dict[str, int] = {}
    for cell in plan.cells:
        status = cell.status
        if status == "planned":
            status = _recorded(folder, cell) or "not run"
        counts[status] = counts.get(status, 0) + 1
    if not interrupted and not counts.get("not run"):
        shutil.rmtree(folder.scratch / "shared", ignore_errors=True)
    return Summary(counts=counts, interrupted=interrupted)


def _recorded(folder: RunFolder, cell: Cell) -> str | None:
    """Return the status of a cell's newest record, if it has one."""
    record = folder.cells.get(cell.key)
    return None if record is None else record["status"]


def due(cells: list[Cell], folder: RunFolder, retry: str = "none") -> list[Cell]:
    """Return the cells that have no result yet, or one that is to be tried again.

    Two blocks may ask for the same work: cells of one key are run once.

    Parameters
    ----------
    cells : list of Cell
    folder : RunFolder
        With the records so far.
    retry : str
        A key of `RETRY`.
    """
    again = {None, "not run"} | RETRY[retry]
    chosen: dict[str, Cell] = {}
    for cell in cells:
        if cell.status == "planned" and _recorded(folder, cell) in again:
            chosen.setdefault(cell.key, cell)
    return list(chosen.values())


class _Run:
    """The state of one call of `execute`."""

    def __init__(self, plan: Plan, folder: RunFolder, options: Options, listener: Listener) -> None:
        self.plan = plan
        self.folder = folder
        self.options = options
        self.listener = listener
        self.limits: Limits = {"memory_gb": options.memory_gb, "threads": plan.config.threads}
        self.points = folder.scratch / "points"
        self.environment = environment.describe(plan.config.threads)
        self.offsets: dict[str, int] = {}
        self.contended: set[str] = set()
        self.running: dict[Work, tuple[Cell, str]] = {}
        self.making: dict[Work, str] = {}
        self.waiting: deque[Cell] = deque()
        self.tries: dict[str, int] = {}
        self.server_deaths = 0

    def all(self, cells: list[Cell]) -> None:
        """Run nodes and cells, each cell as soon as its node is there."""
        self.points.mkdir(parents=True, exist_ok=True)
        for cell in cells:
            # A worker that was killed may have left half a line: what is whole is recorded now,
            # and the next worker of this cell starts a file of its own.
            self._collect_points(cell.key)
            self._forget_points(cell.key)
        self._write_environment()
        deadline = time.monotonic() + self.options.budget_s
        with (
            processes.warm_server(self.plan.config.threads, _solvers_of(cells)),
            self._stopped_with_its_workers(),
        ):
            try:
                self._loop(cells, deadline)
            finally:
                for work in [*self.running, *self.making]:
                    work.stop()
                for cell, _ in self.running.values():
                    self._collect_points(cell.key)
        self._write_environment()

    def _loop(self, cells: list[Cell], deadline: float) -> None:
        self.waiting = waiting = deque(cells)
        nodes = self._nodes(cells)
        running, making = self.running, self.making
        absence = processes.Absence()
        while waiting or running or making:
            if time.monotonic() > deadline and waiting:
                self._give_up(list(waiting))
                waiting.clear()
            try:
                self._start_what_can(nodes)
            except processes.ServerDiedError as error:
                self._start_server_again(error)
                continue
            if len(running) + len(making) > 1:
                self.contended |= {cell.key for cell, _ in running.values()}
            if not running and not making:
                continue
            ended = processes.wait_for([*running, *making], POLL_S, absence)
            for cell, _ in running.values():
                self._collect_points(cell.key)
            for work in ended:
                try:
                    self._finish(work, nodes)
                except processes.ServerDiedError as error:
                    self._start_server_again(error)
                    break

    def _start_what_can(self, nodes: dict[str, SharedArrays]) -> None:
        """Start nodes and cells until there are as many as may run at a time."""
        while self.waiting and len(self.running) + len(self.making) < self.options.jobs:
            cell = self.waiting[0]
            node = nodes.get(cell.shared.key) if cell.shared else None
            if node is None or self._is_made(node):
                self.running[self._start(cell, node)] = (cell, _now())
                self.waiting.popleft()
            elif node.key not in self.making.values():
                self.making[self._start_node(node)] = node.key
            else:
                return

    def _finish(self, work: Work, nodes: dict[str, SharedArrays]) -> None:
        """Record how a cell's process ended; or note that a node is made."""
        if work in self.making:
            key = self.making.pop(work)
            # Made or not, its cells go on: without it they scale for themselves.
            if not self._is_made(nodes[key]):
                nodes.pop(key)
            _result(work, self.options)
            return
        cell, started = self.running[work]
        result = _result(work, self.options)
        del self.running[work]
        if result["status"] == worker.AGAIN:
            self.tries[cell.key] = self.tries.get(cell.key, 0) + 1
            self.folder.check()
            self._collect_points(cell.key)
            self._forget_points(cell.key)
            if self.tries[cell.key] < MOST_TRIES:
                self.points.mkdir(parents=True, exist_ok=True)
                self.waiting.appendleft(cell)
                return
            result = {"status": "crashed", "reason": result["reason"]}
        self._record(cell, started, result)

    def _start_server_again(self, error: processes.ServerDiedError) -> None:
        """Replace the server of workers once, and have what ran begin again."""
        self.server_deaths += 1
        for work in [*self.running, *self.making]:
            work.stop()
        for cell, _ in self.running.values():
            self._collect_points(cell.key)
            self._forget_points(cell.key)
            self.waiting.appendleft(cell)
        self.running.clear()
        self.making.clear()
        if self.server_deaths > 1:
            raise processes.ServerDiedError(
                f"{error} a second time (was it killed, or is the memory full?);"
                " everything recorded before is safe, and the same command goes on from there"
            ) from error
        self.listener.note(f"{error}; it is started again, and the cells that ran begin again")
        processes.start_server_again()

    @contextmanager
    def _stopped_with_its_workers(self) -> Iterator[None]:
        """Have Ctrl-Z stop the workers, too, which a terminal does not reach in their sessions.

        Their wall time went on meanwhile, so it is marked as times are that others disturbed.
        """

        def stop(_number: int, _frame: FrameType | None) -> None:
            works = [*self.running, *self.making]
            self.contended |= {cell.key for cell, _ in self.running.values()}
            for work in works:
                work.stop_for_now()
            os.kill(os.getpid(), signal.SIGSTOP)
            for work in works:
                work.go_on()

        with _handled(signal.SIGTSTP, stop):
            yield

    def _nodes(self, cells: list[Cell]) -> dict[str, SharedArrays]:
        """Return the shared arrays worth making: used by several cells, within the disk budget."""
        uses: dict[str, int] = {}
        for cell in cells:
            if cell.shared:
                uses[cell.shared.key] = uses.get(cell.shared.key, 0) + 1
        room = self.options.scratch_gb * 2**30
        nodes: dict[str, SharedArrays] = {}
        for cell in cells:
            node = cell.shared
            if node is None or node.key in nodes or uses[node.key] < 2 or node.bytes > room:
                continue
            nodes[node.key] = node
            room -= node.bytes
        return nodes

    def _is_made(self, node: SharedArrays) -> bool:
        return (node.folder(self.folder.scratch) / "meta.json").exists()

    def _start_node(self, node: SharedArrays) -> Work:
        target = str(node.folder(self.folder.scratch))
        return processes.start(
            worker.run_node, (node.spec, target, self.limits), self.options.timeout_s
        )

    def _start(self, cell: Cell, node: SharedArrays | None) -> Work:
        self.listener.started(cell)
        done = self.folder.points.get(cell.key, {})
        shared = str(node.folder(self.folder.scratch)) if node else None
        points = str(self._points_file(cell.key))
        artifact = str(artifact_of(self.folder.path, cell.key))
        return processes.start(
            worker.run_cell,
            (cell.spec, shared, points, done, self.limits, artifact),
            self.options.timeout_s,
        )

    def _record(self, cell: Cell, started: str, result: Answer) -> None:
        self._collect_points(cell.key)
        self.folder.append(
            {
                "kind": "cell",
                "key": cell.key,
                **cell.shown,
                **result,
                "contended": cell.key in self.contended,
                "environment": self.environment["id"],
                "data_sha256": cell.spec["data_sha256"],
                "started": started,
            }
        )
        self._forget_points(cell.key)
        self.listener.finished(cell, self.folder.cells[cell.key])

    def _give_up(self, cells: list[Cell]) -> None:
        minutes = self.options.budget_s / 60
        for cell in cells:
            self.folder.append(
                {
                    "kind": "cell",
                    "key": cell.key,
                    **cell.shown,
                    "status": "not run",
                    "reason": f"budget of {minutes:g} minutes",
                    "environment": self.environment["id"],
                }
            )
        self.listener.note(
            f"the budget of {minutes:g} minutes is spent: {len(cells)} cells not run"
        )

    def _points_file(self, key: str) -> Path:
        return self.points / f"{key}.jsonl"

    def _forget_points(self, key: str) -> None:
        self._points_file(key).unlink(missing_ok=True)
        shutil.rmtree(worker.files_of(self._points_file(key)), ignore_errors=True)
        self.offsets.pop(key, None)

    def _collect_points(self, key: str) -> None:
        """Append what a worker has streamed since the last look to the records."""
        try:
            new = _read_on(self._points_file(key), self.offsets.get(key, 0))
        except OSError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self.offsets[key] = self.offsets.get(key, 0) + len(whole)
        known = self.folder.points.get(key, {})
        for line in whole.splitlines():
            try:
                said = {"schema": SCHEMA, "kind": "point", "key": key, **json.loads(line)}
                # What a record may hold is checked in one place, for who writes and who reads it.
                point = parse(json.dumps(said, allow_nan=False).encode())
            except (ValueError, TypeError, RecursionError):
                continue
            if point is None or point["kind"] != "point" or point["key"] != key:
                continue
            if point["point"] not in known:
                self.folder.append(point)

    def _write_environment(self) -> None:
        """Write what this run was measured on, and the load before and after it."""
        name = f"environment-{self.environment['id']}.json"
        path = self.folder.path / name
        content = dict(self.environment)
        content["seed"] = self.plan.config.seed
        try:
            sessions = json.loads(path.read_text(encoding="utf-8"))["load"]
        except (OSError, ValueError, KeyError):
            sessions = []
        content["load"] = [*sessions, {"at": _now(), "average": environment.load_average()}]
        self.folder.write_file(name, json.dumps(content, indent=1) + "\n")


def _read_on(path: Path, start: int) -> bytes:
    """Return what was appended to a file since; a solver may have put anything in its place."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        stream.seek(start)
        return stream.read(4 * answers.MOST_BYTES)


def _result(work: Work, options: Options) -> Answer:
    """Turn how a worker ended into the status and reason of its cell."""
    try:
        return work.result()
    except processes.TimedOutError:
        return {"status": "timeout", "reason": f"stopped after {options.timeout_s:g} s"}
    except answers.BadAnswerError as error:
        return {"status": "failed", "reason": str(error)}
    except processes.DiedError as error:
        return {"status": "crashed", "reason": str(error)}


def _solvers_of(cells: list[Cell]) -> list[str]:
    """Return the names of the solvers that the cells use."""
    names = {cell.spec["name"] for cell in cells if "name" in cell.spec}
    return sorted(names | {r["name"] for cell in cells for r in cell.spec.get("racers", [])})


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: records kept, workers gone."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(signal.SIGTERM, interrupt):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Callable[[int, FrameType | None], None]) -> Any:
    """Handle a signal, unless this is not the main thread: then it is someone else's business."""
    try:
        before = signal.signal(number, handler)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
