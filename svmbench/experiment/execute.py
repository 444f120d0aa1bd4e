"""Running a plan: a process a cell, hard limits, and every result on disk before the next.

The parent alone writes the records. A hang, a crash or a cell without end costs that cell and
nothing else.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from svmbench.experiment import environment, processes, worker
from svmbench.experiment.folds import SharedArrays
from svmbench.experiment.plan import Cell, Plan
from svmbench.experiment.processes import Work
from svmbench.experiment.records import RunFolder

#: Statuses by what ``--retry`` calls them.
RETRY = {
    "none": set(),
    "failed": {"failed", "crashed", "memory"},
    "timeout": {"timeout"},
    "all": {"failed", "crashed", "memory", "timeout"},
}
#: How often the parent looks for streamed points, in seconds.
POLL_S = 0.25


class Listener(Protocol):
    """What is told of a run's progress (the command line's progress bar, or nothing)."""

    def started(self, cell: Cell) -> None:
        """Tell that a cell was handed to a worker."""

    def finished(self, cell: Cell, record: dict[str, Any]) -> None:
        """Tell that a cell's record is on disk."""

    def note(self, text: str) -> None:
        """Tell something in a sentence."""


class Silent:
    """A listener that does nothing."""

    def started(self, cell: Cell) -> None:
        """Ignore it."""

    def finished(self, cell: Cell, record: dict[str, Any]) -> None:
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
            status = folder.cells.get(cell.key, {}).get("status", "not run")
        counts[status] = counts.get(status, 0) + 1
    if not interrupted and not counts.get("not run"):
        shutil.rmtree(folder.scratch / "shared", ignore_errors=True)
    return Summary(counts=counts, interrupted=interrupted)


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
        if cell.status == "planned" and folder.cells.get(cell.key, {}).get("status") in again:
            chosen.setdefault(cell.key, cell)
    return list(chosen.values())


class _Run:
    """The state of one call of `execute`."""

    def __init__(self, plan: Plan, folder: RunFolder, options: Options, listener: Listener) -> None:
        self.plan = plan
        self.folder = folder
        self.options = options
        self.listener = listener
        self.limits = {"memory_gb": options.memory_gb, "threads": plan.config.threads}
        self.points = folder.scratch / "points"
        self.environment = environment.describe(plan.config.threads)
        self.offsets: dict[str, int] = {}
        self.contended: set[str] = set()
        self.running: dict[Work, tuple[Cell, str]] = {}
        self.making: dict[Work, str] = {}

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
        with processes.warm_server(self.plan.config.threads, _solvers_of(cells)):
            try:
                self._loop(cells, deadline)
            finally:
                for work in [*self.running, *self.making]:
                    work.stop()
                for cell, _ in self.running.values():
                    self._collect_points(cell.key)
        self._write_environment()

    def _loop(self, cells: list[Cell], deadline: float) -> None:
        waiting = list(cells)
        nodes = self._nodes(cells)
        made: set[str] = {k for k, node in nodes.items() if self._is_made(node)}
        running, making = self.running, self.making
        while waiting or running or making:
            if time.monotonic() > deadline and waiting:
                self._give_up(waiting)
                waiting = []
            while waiting and len(running) + len(making) < self.options.jobs:
                cell = waiting[0]
                node = nodes.get(cell.shared.key) if cell.shared else None
                if node is None or node.key in made:
                    running[self._start(waiting.pop(0), node)] = (cell, _now())
                elif node.key not in making.values():
                    making[self._start_node(node)] = node.key
                else:
                    break
            if len(running) + len(making) > 1:
                self.contended |= {cell.key for cell, _ in running.values()}
            if not running and not making:
                continue
            ended = processes.wait_for([*running, *making], POLL_S)
            for cell, _ in running.values():
                self._collect_points(cell.key)
            for work in ended:
                if work in making:
                    # Made or not, its cells go on: without it they scale for themselves.
                    key = making.pop(work)
                    if self._is_made(nodes[key]):
                        made.add(key)
                    else:
                        nodes.pop(key)
                    continue
                cell, started = running.pop(work)
                self._record(cell, started, _result(work, self.options))

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
        return processes.start(
            worker.run_cell,
            (cell.spec, shared, points, done, self.limits),
            self.options.timeout_s,
        )

    def _record(self, cell: Cell, started: str, result: dict[str, Any]) -> None:
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
        self.offsets.pop(key, None)

    def _collect_points(self, key: str) -> None:
        """Append what a worker has streamed since the last look to the records."""
        path = self._points_file(key)
        try:
            with path.open("rb") as stream:
                stream.seek(self.offsets.get(key, 0))
                new = stream.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self.offsets[key] = self.offsets.get(key, 0) + len(whole)
        known = self.folder.points.get(key, {})
        for line in whole.splitlines():
            try:
                point = json.loads(line)
            except ValueError:
                continue
            if point["point"] not in known:
                self.folder.append({"kind": "point", "key": key, **point})

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


def _result(work: Work, options: Options) -> dict[str, Any]:
    """Turn how a worker ended into the status and reason of its cell."""
    try:
        return dict(work.result())
    except processes.TimedOutError:
        return {"status": "timeout", "reason": f"stopped after {options.timeout_s:g} s"}
    except processes.DiedError as error:
        if error.exit_code == worker.EXIT_MEMORY:
            return {"status": "memory", "reason": worker.memory_reason(options.memory_gb)}
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

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: someone else's business
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
