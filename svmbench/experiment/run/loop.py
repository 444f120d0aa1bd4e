"""The loop of a run: start cells as soon as others end, and record each cell that has ended.

Several cells may share arrays on disk (`SharedArrays`): scaled inputs, and perhaps distances. A
process of its own makes them before the cells that use them start. All processes run on this
machine. ``cluster.py`` overrides the methods that differ if workers of a Dask scheduler run the
cells.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Protocol

from svmbench.base.errors import ResultsError
from svmbench.base.files import read_json, remove
from svmbench.base.interrupts import handled
from svmbench.experiment.measuring import environment
from svmbench.experiment.plan.planner import Plan
from svmbench.experiment.protocols import solvers_in
from svmbench.experiment.run import processes, worker
from svmbench.experiment.run.points import Stream, point_of
from svmbench.experiment.run.processes import WorkerProcess
from svmbench.experiment.run.record_file import RunFolder
from svmbench.experiment.settings.cells import Cell, Limits, SharedArrays
from svmbench.schema.record import CellRecord, Reply

#: Seconds between two readings of the points that cells stream.
STREAM_POLL_S = 0.25
#: Largest number of tries of a cell whose shared arrays are removed while it runs.
MAX_TRIES_PER_CELL = 3


class Listener(Protocol):
    """A listener to a run's progress, such as the command line's progress bar."""

    def started(self, cell: Cell) -> None:
        """Handle the start of a cell."""

    def finished(self, cell: Cell, record: CellRecord) -> None:
        """Handle the end of a cell, once its record is on disk."""

    def note(self, text: str) -> None:
        """Handle a message, one sentence."""


class Silent:
    """A listener that does nothing."""

    def started(self, cell: Cell) -> None:
        """Ignore it."""

    def finished(self, cell: Cell, record: CellRecord) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


#: Part of the message about a spent budget.
SPENT = "is spent"


@dataclass
class Options:
    """Options of a run: parallel cells, limits, retries, budget.

    Attributes
    ----------
    jobs : int
        Number of cells that run at the same time; above one, times are marked as contended.
    timeout_s, memory_gb : float
        Limits of a cell: seconds, GiB.
    scratch_gb : float
        Limit of the arrays that cells share on disk, in GiB.
    retry : str
        Which results of an earlier run to try again: a key of `RETRIED_STATUSES`.
    budget_s : float
        Number of seconds after which no new cell starts; the others are marked ``not run``.
    stop_s : float
        Number of seconds after which running cells are stopped and marked ``not run``, too.
    cluster : str
        Address of a Dask scheduler, or ``local:<workers>``; its workers run the cells. Empty for
        this machine.
    kind : str
        Kind of the cluster's workers that run timed cells; empty if all are of one kind.
    """

    jobs: int = 1
    timeout_s: float = 3600.0
    memory_gb: float = 4.0
    scratch_gb: float = 8.0
    retry: str = "none"
    budget_s: float = float("inf")
    stop_s: float = float("inf")
    cluster: str = ""
    kind: str = ""

    @property
    def last_start_s(self) -> float:
        """Number of seconds after which no cell starts: of the budget, or until the stop."""
        return min(self.budget_s, self.stop_s)


class RunLoop:
    """The state of one call of `execute`.

    Attributes
    ----------
    points : Path
        The folder of the files to which workers stream points (not the recorded points).
    streams : dict of str to Stream
        The readers of these files, by cell key.
    contended : set of str
        Keys of the cells that ran beside others, or were stopped by Ctrl-Z.
    running : dict of WorkerProcess to (Cell, str)
        The cell of each running process, and when it started.
    making : dict of WorkerProcess to str
        The key of the shared arrays that each process makes.
    tries : dict of str to int
        How often a cell lost its shared arrays or its Dask worker, by cell key.
    """

    def __init__(self, plan: Plan, folder: RunFolder, options: Options, listener: Listener) -> None:
        self.plan = plan
        self.folder = folder
        self.options = options
        self.listener = listener
        self.limits: Limits = {"memory_gb": options.memory_gb, "threads": plan.config.threads}
        self.points = folder.scratch / "points"
        self.environment = environment.environment_facts(plan.config.threads)
        self.streams: dict[str, Stream] = {}
        self.contended: set[str] = set()
        self.running: dict[WorkerProcess, tuple[Cell, str]] = {}
        self.making: dict[WorkerProcess, str] = {}
        self.waiting: deque[Cell] = deque()
        self.tries: dict[str, int] = {}
        self.server_deaths = 0

    def run_cells(self, cells: list[Cell]) -> None:
        """Run the cells, each after the process that makes its shared arrays."""
        self._make_points_folder()
        for cell in cells:
            # A killed worker may have left an unfinished line: record the whole lines and remove
            # the file before the cell's next worker starts.
            self._collect_points(cell.key)
            self._forget_points(cell.key)
        begun = monotonic()
        with self._workers(cells), self._stopped_with_its_workers():
            try:
                self._describe_workers()
                self._loop(cells, begun)
            finally:
                for work in [*self.running, *self.making]:
                    work.stop()
                for cell, _ in self.running.values():
                    self._collect_points(cell.key)
        self._write_environments()

    def _workers(self, cells: list[Cell]) -> AbstractContextManager[None]:
        """Return a context in which workers can be started."""
        return workers_here(self.plan, cells)

    def _describe_workers(self) -> None:
        """Ask a worker to describe its machine; warn if it differs from the config."""
        config = self.plan.config
        try:
            self.environment = processes.describe_worker(config.threads)
        except processes.ServerDiedError as error:
            self._start_server_again(error)
            self.environment = processes.describe_worker(config.threads)
        self._check_arithmetic(self.environment)
        self._write_environment(self.environment)

    def _check_arithmetic(self, facts: dict[str, Any], where: str = "") -> None:
        """Warn if a worker uses another BLAS core type than the config requires."""
        core = self.plan.config.blas_core
        if core is not None and (warning := environment.other_arithmetic(facts, core)):
            self.listener.note(where + warning)

    def _loop(self, cells: list[Cell], begun: float) -> None:
        self.waiting = waiting = deque(cells)
        shared_arrays = self._shared_arrays(cells)
        running, making = self.running, self.making
        clock = processes.SuspensionClock()
        while waiting or running or making:
            spent_s = monotonic() - begun
            given_up = self._stop_running() if spent_s > self.options.stop_s else []
            if spent_s > self.options.last_start_s:
                given_up += waiting
                waiting.clear()
            if given_up:
                self._give_up(given_up)
                continue
            try:
                self._start_processes(shared_arrays)
            except processes.ServerDiedError as error:
                self._start_server_again(error)
                continue
            self._note_contended()
            ended = self._wait(clock)
            for cell, _ in running.values():
                self._collect_points(cell.key)
            for work in ended:
                try:
                    self._finish(work, shared_arrays)
                except processes.ServerDiedError as error:
                    self._start_server_again(error)
                    break

    def _note_contended(self) -> None:
        """Mark cells that run at the same time."""
        if len(self.running) + len(self.making) > 1:
            self.contended |= {cell.key for cell, _ in self.running.values()}

    def _wait(self, clock: processes.SuspensionClock) -> list[WorkerProcess]:
        """Wait until a process ends, at most `STREAM_POLL_S`; return all that have ended."""
        works = [*self.running, *self.making]
        return processes.wait_for(works, STREAM_POLL_S, clock) if works else []

    def _start_processes(self, shared_arrays: dict[str, SharedArrays]) -> None:
        """Start cells, and makers of shared arrays, until `options.jobs` processes run."""
        while self.waiting and len(self.running) + len(self.making) < self.options.jobs:
            cell = self.waiting[0]
            arrays = shared_arrays.get(cell.shared.key) if cell.shared else None
            if arrays is None or self._is_made(arrays):
                self.running[self._start(cell, arrays)] = (cell, utc_timestamp())
                self.waiting.popleft()
            elif arrays.key not in self.making.values():
                self.making[self._start_making(arrays)] = arrays.key
            else:
                return

    def _finish(self, work: WorkerProcess, shared_arrays: dict[str, SharedArrays]) -> None:
        """Record the result of a cell's process; or end a process that made shared arrays."""
        if work in self.making:
            key = self.making.pop(work)
            # If that failed, each of their cells scales its own inputs.
            if not self._is_made(shared_arrays[key]):
                folder = shared_arrays.pop(key).folder(self.folder.scratch)
                for unfinished in folder.parent.glob(f".{folder.name}-*"):
                    shutil.rmtree(unfinished, ignore_errors=True)
            work.reply(self.options.timeout_s)
            return
        cell, started = self.running[work]
        result = work.reply(self.options.timeout_s)
        del self.running[work]
        if result["status"] == worker.AGAIN:
            self.tries[cell.key] = self.tries.get(cell.key, 0) + 1
            self.folder.check()
            self._collect_points(cell.key)
            self._forget_points(cell.key)
            if self.tries[cell.key] < MAX_TRIES_PER_CELL:
                self._make_points_folder()
                self.waiting.appendleft(cell)
                return
            result = {"status": "crashed", "reason": result["reason"]}
        if result["status"] == worker.NOT_RUN:
            raise ResultsError(
                f"{result['reason']}, so cells can't be run; all records so far are safe;"
                " the same command continues the run"
            )
        self._record(cell, started, result, self._environment_of(work))

    def _environment_of(self, work: WorkerProcess) -> str:
        """Return the id of the environment in which a cell was measured."""
        return str(self.environment["id"])

    def _start_server_again(self, error: processes.ServerDiedError) -> None:
        """Start another worker server, and put the cells that were running back into the queue.

        Raises
        ------
        svmbench.experiment.run.processes.ServerDiedError
            If this is the second server that died.
        """
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
                " all records so far are safe; the same command continues the run"
            ) from error
        self.listener.note(f"{error}; it is started again, and the cells that ran begin again")
        processes.start_server_again()

    @contextmanager
    def _stopped_with_its_workers(self) -> Iterator[None]:
        """Stop the workers, too, on Ctrl-Z; a terminal's signal does not reach their sessions.

        The wall time of a stopped cell includes the stop, so the cell is marked as contended.
        """

        def stop(_number: int, _frame: FrameType | None) -> None:
            works = [*self.running, *self.making]
            self.contended |= {cell.key for cell, _ in self.running.values()}
            for work in works:
                work.stop_for_now()
            os.kill(os.getpid(), signal.SIGSTOP)
            for work in works:
                work.go_on()

        with handled(signal.SIGTSTP, stop):
            yield

    def _shared_arrays(self, cells: list[Cell]) -> dict[str, SharedArrays]:
        """Return the shared arrays that several cells use and that fit on the disk, by key."""
        uses: dict[str, int] = {}
        for cell in cells:
            if cell.shared:
                uses[cell.shared.key] = uses.get(cell.shared.key, 0) + 1
        room = self.options.scratch_gb * 2**30
        with contextlib.suppress(OSError):
            # Writing a mapped array to a full disk kills the process; there is no error to catch.
            room = min(room, shutil.disk_usage(self.folder.scratch).free)
        shared_arrays: dict[str, SharedArrays] = {}
        for cell in cells:
            arrays = cell.shared
            if arrays is None or arrays.key in shared_arrays or uses[arrays.key] < 2:
                continue
            if arrays.bytes <= room:
                shared_arrays[arrays.key] = arrays
                room -= arrays.bytes
        return shared_arrays

    def _is_made(self, arrays: SharedArrays) -> bool:
        return (arrays.folder(self.folder.scratch) / "meta.json").exists()

    def _start_making(self, arrays: SharedArrays) -> WorkerProcess:
        target = str(arrays.folder(self.folder.scratch))
        return processes.start(
            worker.make_shared_arrays, (arrays.spec, target, self.limits), self.options.timeout_s
        )

    def _start(self, cell: Cell, arrays: SharedArrays | None) -> WorkerProcess:
        self.listener.started(cell)
        done = self.folder.points.get(cell.key, {})
        shared = str(arrays.folder(self.folder.scratch)) if arrays else None
        points = str(self._points_file(cell.key))
        return processes.start(
            worker.run_cell,
            (cell.spec, shared, points, done, self.limits, str(self._artifact_file(cell.key))),
            self.options.timeout_s,
        )

    def _record(self, cell: Cell, started: str, result: Reply, measured_on: str) -> None:
        """Append the record of a cell; `measured_on` is the id of its environment."""
        self._collect_points(cell.key)
        # Before the record: once a cell is recorded, it is not run again to make its artifact.
        self.folder.take_artifact(cell.key, self._artifact_file(cell.key))
        self.folder.append(
            {
                "kind": "cell",
                "key": cell.key,
                **cell.identity,
                **result,
                "contended": cell.key in self.contended,
                "environment": measured_on,
                "data_sha256": cell.spec["data_sha256"],
                "started": started,
            }
        )
        self._forget_points(cell.key)
        self.listener.finished(cell, self.folder.cells[cell.key])

    def _stop_running(self) -> list[Cell]:
        """Stop the running cells, keep the points that they have streamed, and return them."""
        cells = [cell for cell, _ in self.running.values()]
        for work in [*self.running, *self.making]:
            work.stop()
        for cell in cells:
            self._collect_points(cell.key)
        self.running.clear()
        self.making.clear()
        return cells

    def _give_up(self, cells: list[Cell]) -> None:
        """Record cells as ``not run``, because the budget is spent."""
        budget = f"budget of {self.options.last_start_s / 60:.3g} minutes"
        for cell in cells:
            earlier = self.folder.cells.get(cell.key)
            if earlier is not None and earlier["status"] == "ok":
                continue  # Its times were to be measured again; the earlier result stays.
            self.folder.append(
                {
                    "kind": "cell",
                    "key": cell.key,
                    **cell.identity,
                    "status": "not run",
                    "reason": budget,
                    "environment": self.environment["id"],
                }
            )
        is_one = len(cells) == 1
        self.listener.note(
            f"the {budget} {SPENT}: {len(cells):,} cell{'' if is_one else 's'} not run"
        )

    def _make_points_folder(self) -> None:
        """Make the folder of streamed points if it is missing."""
        try:
            self.points.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"can't write {self.points}: {error.strerror or error}") from error

    def _points_file(self, key: str) -> Path:
        return self.points / f"{key}.jsonl"

    def _artifact_file(self, key: str) -> Path:
        """Return the file in scratch to which a worker writes the arrays that a plot needs."""
        return self.points / f"{key}.npz"

    def _forget_points(self, key: str) -> None:
        """Remove the points and other files that a cell's worker has left in scratch."""
        remove(*(self.points / f"{key}.{ending}" for ending in ("jsonl", "npz", "partial")))
        shutil.rmtree(worker.files_of(self._points_file(key)), ignore_errors=True)
        self.streams.pop(key, None)

    def _collect_points(self, key: str) -> None:
        """Append the points that a worker has streamed since the last call to the records."""
        stream = self.streams.setdefault(key, Stream(self._points_file(key)))
        for line in stream.take():
            self._take_point(key, line)

    def _take_point(self, key: str, line: bytes) -> None:
        """Append a point to the records, if the line is a valid point without a record."""
        point = point_of(key, line)
        if point is not None and point["point"] not in self.folder.points.get(key, {}):
            self.folder.append(point)

    def _write_environments(self) -> None:
        """Write a description of each machine that ran cells: here this one."""
        self._write_environment(self.environment)

    def _write_environment(self, facts: dict[str, Any]) -> None:
        """Write the description of a machine, with its load now and in earlier sessions."""
        name = f"environment-{facts['id']}.json"
        path = self.folder.path / name
        content = dict(facts)
        content["seed"] = self.plan.config.seed
        try:
            sessions = list(read_json(path)["load"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            sessions = []
        load = content.get("load", environment.load_average())
        content["load"] = [*sessions, {"at": utc_timestamp(), "average": load}]
        self.folder.write_file(name, json.dumps(content, indent=1) + "\n")


def workers_here(plan: Plan, cells: list[Cell]) -> AbstractContextManager[None]:
    """Return a context with a server on this machine that forks the workers of some cells."""
    return processes.warm_server(plan.config.threads, solvers_of(cells), plan.config.blas_core)


def solvers_of(cells: list[Cell]) -> list[str]:
    """Return the names of the solvers that the cells use."""
    return sorted({name for cell in cells for name in solvers_in(cell.spec)})


def utc_timestamp() -> str:
    """Return the present time in ISO format: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
