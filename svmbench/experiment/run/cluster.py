"""A run on the workers of a Dask scheduler, one cell at a time on each worker.

Dask sends cells to workers and their replies back. This module chooses the worker of each cell,
because only times of one kind of worker are comparable. If a worker is lost, only its present cell
is lost. Only this process writes records: workers send points at once, and arrays for plots with
the reply. A worker runs its cells in a process beside it, the host (``host.py``).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, cast

from svmbench.base.errors import ConfigError, SvmbenchError
from svmbench.base.escape import line
from svmbench.experiment.measuring import environment
from svmbench.experiment.plan.keys import code_of, kinds_of
from svmbench.experiment.run import processes, remote
from svmbench.experiment.run.loop import STREAM_POLL_S, RunLoop, solvers_of, utc_timestamp
from svmbench.experiment.run.record_file import ARTIFACTS
from svmbench.experiment.run.scheduler import connected, result_of
from svmbench.experiment.run.worker import AGAIN
from svmbench.experiment.settings.cells import Cell, SharedArrays
from svmbench.schema.record import Reply

#: Seconds between two queries of the scheduler for its workers.
WORKERS_POLL_S = 1.0
#: The prefix and the suffix of metrics that are times or made of times.
_TIMES = ("ratio", "_s")


class SchedulerGoneError(SvmbenchError):
    """The scheduler does not answer."""


@dataclass(eq=False)
class ClusterWorker:
    """A Dask worker that may run cells.

    Attributes
    ----------
    address : str
    facts : dict
        The host's description of its machine and code; empty before it has sent one.
    """

    address: str
    facts_future: Any
    facts: dict[str, Any] = field(default_factory=dict)
    is_usable: bool = True
    is_gone: bool = False

    @property
    def environment(self) -> dict[str, Any]:
        """The environment in which its cells are measured."""
        return dict(self.facts["environment"])

    @property
    def kind(self) -> str:
        """The worker's kind: the value of ``SVMBENCH_KIND`` there, or the model of its CPU."""
        return str(self.environment.get("kind") or self.environment["cpu"])


@dataclass(eq=False)
class RemoteWork:
    """A cell on a worker; `answer` can be called once `is_over` returns True."""

    worker: ClusterWorker
    future: Any
    _message: dict[str, Any] | None = None

    def is_over(self) -> bool:
        """Return True if the cell has ended, with or without a reply."""
        return self.worker.is_gone or bool(self.future.done())

    def message(self) -> dict[str, Any]:
        """Return the host's message; empty if there is none."""
        if self.worker.is_gone or self.future.status != "finished":
            return {}
        if self._message is None:
            self._message = _message_of(self.future)
        return self._message

    def reply(self, timeout_s: float) -> Reply:
        """Return the cell's reply; its status is `AGAIN` if the worker or the host was lost.

        Raises
        ------
        svmbench.base.errors.SvmbenchError
            If the host can't run the cell.
        """
        if self.worker.is_gone:
            return {"status": AGAIN, "reason": "its Dask worker went away"}
        if self.future.status in ("cancelled", "lost"):
            return {"status": AGAIN, "reason": "the Dask scheduler has forgotten it"}
        message = self.message()
        if "unfit" in message:
            raise SvmbenchError(f"{self.worker.address}: {line(message['unfit'], 300)}")
        if "error" in message:
            return {
                "status": AGAIN,
                "reason": f"beside its Dask worker: {line(message['error'], 200)}",
            }
        answer = message.get("answer")
        if not isinstance(answer, dict) or not isinstance(answer.get("status"), str):
            return {"status": AGAIN, "reason": "the reply of its Dask worker is not valid"}
        return cast(Reply, answer)

    def stop(self) -> None:
        """Cancel the task; the worker's thread that waits for it then ends the cell."""
        with contextlib.suppress(Exception):  # the scheduler may be gone, and the task with it
            self.future.cancel()

    def stop_for_now(self) -> None:
        """Do nothing: cells on other machines continue while this process is stopped."""

    def go_on(self) -> None:
        """Do nothing."""


class ClusterRun(RunLoop):
    """A run on a cluster; see the module's docstring."""

    client: Any
    running: dict[RemoteWork, tuple[Cell, str]]  # type: ignore[assignment]

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self.name = f"svmbench-{uuid.uuid4().hex[:12]}"
        self.workers: dict[str, ClusterWorker] = {}
        self.ended_tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.streamed: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self.timed = timed_blocks(self.plan.config)
        self.kind, self.has_accepted = self.options.kind, False
        self.queried_at = self.warned = float("-inf")

    def _prepare(self, cells: list[Cell]) -> None:
        """Make the set-up that each host gets."""
        kinds = dict.fromkeys(kind for cell in cells for kind in kinds_of(cell.spec))
        self.code_hashes = [code_of(*kind) for kind in kinds]
        self.setup = {
            "run": self.name,
            "threads": self.plan.config.threads,
            "blas_core": self.plan.config.blas_core,
            "solvers": solvers_of(cells),
            "kinds": [list(kind) for kind in kinds],
        }

    @contextmanager
    def _workers(self, cells: list[Cell]) -> Iterator[None]:
        """Connect to the scheduler while the cells run."""
        from distributed.comm import CommClosedError

        self._prepare(cells)
        with connected(self.options.cluster) as client:
            self.client = client
            client.subscribe_topic(self.name, self._on_event)
            try:
                yield
            except CommClosedError as error:
                raise self._scheduler_gone() from error
            finally:
                with contextlib.suppress(Exception):  # workers and scheduler may be gone
                    if client.status == "running":
                        addresses = [*self.workers]
                        client.run(remote.end_run, self.name, workers=addresses, on_error="ignore")

    def _on_event(self, event: Any) -> None:
        message = event[1]
        if isinstance(message, dict) and isinstance(message.get("point"), str):
            self.streamed.put((str(message.get("key")), message["point"]))

    def _describe_workers(self) -> None:
        """Do nothing: `_accept_or_reject` takes the description of each worker."""

    def _write_environments(self) -> None:
        """Do nothing: `_accept_or_reject` writes the environment of each worker."""

    def _shared_arrays(self, cells: list[Cell]) -> dict[str, SharedArrays]:
        """Return no shared arrays: each cell scales its own inputs."""
        return {}

    def _start_processes(self, shared_arrays: dict[str, SharedArrays]) -> None:
        """Give each idle worker the first cell that it may run."""
        self._update_workers()
        busy = {work.worker for work in self.running}
        for worker in self.workers.values():
            if worker in busy or worker.is_gone or not (worker.is_usable and worker.facts):
                continue
            cell = next((each for each in self.waiting if self._may_run(worker, each)), None)
            if cell is not None:
                self.waiting.remove(cell)
                self.running[self._send(cell, worker)] = (cell, utc_timestamp())

    def _may_run(self, worker: ClusterWorker, cell: Cell) -> bool:
        """Return True if a cell may run on a worker: timed cells need workers of one kind."""
        if cell.identity["block"] not in self.timed:
            return True
        if not self.kind:
            present = [other for other in self.workers.values() if not other.is_gone]
            if not all(other.facts or not other.is_usable for other in present):
                return False  # the kinds of other workers are not known yet
            kinds = sorted({other.kind for other in present if other.is_usable})
            if len(kinds) > 1:
                raise ConfigError(
                    f"the cluster has workers of {len(kinds)} kinds ({', '.join(kinds)});"
                    " choose one for timed cells with --kind"
                )
            self.kind = kinds[0]
        return worker.kind == self.kind

    def _send(self, cell: Cell, worker: ClusterWorker) -> RemoteWork:
        self.listener.started(cell)
        spec = dict(cell.spec)
        file = cell.spec["dataset"]["file"]
        if file and not file.startswith("openml:"):
            path = str(Path(file).resolve())
            spec["dataset"] = {**cell.spec["dataset"], "file": path}
        request = {
            "key": cell.key,
            "spec": spec,
            "done": self.folder.points.get(cell.key, {}),
            "limits": self.limits,
            "timeout_s": self.options.timeout_s,
            "mirror": os.environ.get("SVMBENCH_MIRROR"),
        }
        return RemoteWork(
            worker, self._submit(remote.run_in_host, worker.address, self.setup, request)
        )

    def _submit(self, function: Any, address: str, *args: Any) -> Any:
        future = self.client.submit(
            function,
            *args,
            key=f"{self.name}-{uuid.uuid4().hex[:12]}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )
        future.add_done_callback(self.ended_tasks.put)
        return future

    def _wait(self, clock: processes.SuspensionClock) -> list[Any]:
        """Wait until a task ends, at most `STREAM_POLL_S`; return the cells that have ended."""
        with contextlib.suppress(queue.Empty):
            self.ended_tasks.get(timeout=STREAM_POLL_S)
            while True:
                self.ended_tasks.get_nowait()
        self._require_scheduler()
        return [work for work in self.running if work.is_over()]

    def _update_workers(self) -> None:
        """Query the scheduler for its workers every `WORKERS_POLL_S`; start hosts on new ones."""
        if monotonic() - self.queried_at > WORKERS_POLL_S:
            self.queried_at = monotonic()
            addresses = self._addresses()
            for address in addresses - {*self.workers}:
                facts_future = self._submit(remote.start_host, address, self.setup)
                self.workers[address] = ClusterWorker(address, facts_future)
            for address, worker in self.workers.items():
                worker.is_gone = address not in addresses
            self.workers = {a: worker for a, worker in self.workers.items() if not worker.is_gone}
        for worker in self.workers.values():
            if not worker.facts and worker.is_usable and worker.facts_future.done():
                self._accept_or_reject(worker)
        self._warn_if_none_is_usable()

    def _addresses(self) -> set[str]:
        """Return the addresses of all workers.

        Raises
        ------
        SchedulerGoneError
            If the scheduler doesn't answer.
        """
        self._require_scheduler()
        try:
            return {str(address) for address in self.client.nthreads()}
        except (OSError, CancelledError) as error:
            raise self._scheduler_gone() from error

    def _require_scheduler(self) -> None:
        """Raise SchedulerGoneError if the client has lost its connection to the scheduler."""
        if self.client.status != "running":
            raise self._scheduler_gone()

    def _scheduler_gone(self) -> SchedulerGoneError:
        return SchedulerGoneError(
            f"the Dask scheduler at {self.options.cluster} is gone; all records so far are safe;"
            " the same command continues the run"
        )

    def _accept_or_reject(self, worker: ClusterWorker) -> None:
        """Take the description of a worker; don't use the worker if its code differs."""
        facts = _message_of(worker.facts_future)
        if "error" in facts:
            worker.is_usable = False
            reason = f"can't run cells: {line(facts['error'], 200)}"
        elif "unfit" in facts:
            worker.is_usable = False
            reason = f"can't run cells: {line(facts['unfit'], 300)}"
        elif not _is_full_description(facts):
            worker.is_usable = False
            reason = (
                "can't run cells: it does not say what it is"
                " (the extra dask has to be installed there, in the version that runs here)"
            )
        else:
            if facts["code_hashes"] == self.code_hashes:
                worker.facts = facts
                # The records of cells that are not run name the first worker's environment.
                self.environment = worker.environment if not self.has_accepted else self.environment
                self.has_accepted = True
                self._check_arithmetic(worker.environment, f"on {facts['machine']}, ")
                self._write_environment(worker.environment)
                return
            worker.is_usable = False
            has, local = facts["environment"], self.environment
            differences = [
                f"{name} {version} for {local['packages'].get(name)}"
                for name, version in has["packages"].items()
                if version != local["packages"].get(name)
            ]
            reason = "has other code than this process: another svmbench, plug-in or program" + (
                f", or {', '.join(differences)}" if differences else ""
            )
        message = f"the Dask worker {worker.address} {reason}"
        if not any(other_worker.is_usable for other_worker in self.workers.values()):
            raise SvmbenchError(message)
        self.listener.note(f"{message}; no cells are sent to it")

    def _warn_if_none_is_usable(self) -> None:
        """Warn once a minute if nothing runs and no worker may run timed cells."""
        usable = [other for other in self.workers.values() if other.is_usable]
        of_kind = [
            other for other in usable if not other.facts or other.kind == (self.kind or other.kind)
        ]
        if of_kind or self.running or monotonic() - self.warned < 60.0:
            return
        self.warned = monotonic()
        kinds = ", ".join(sorted({other.kind for other in usable}))
        wanted = f"no worker of kind {self.kind!r} (there are: {kinds})" if usable else "no worker"
        self.listener.note(f"{wanted} at {self.options.cluster} yet; waiting")

    def _note_contended(self) -> None:
        """Mark the cells that run at the same time on one machine."""
        machines: dict[str, list[str]] = {}
        for work, (cell, _) in self.running.items():
            machines.setdefault(work.worker.facts["machine"], []).append(cell.key)
        self.contended |= {key for keys in machines.values() if len(keys) > 1 for key in keys}

    def _collect_points(self, key: str) -> None:
        """Append the points that all workers have streamed since the last call to the records."""
        with contextlib.suppress(queue.Empty):
            while True:
                owner, text = self.streamed.get_nowait()
                if any(cell.key == owner for cell, _ in self.running.values()):
                    self._take_point(owner, text.encode(errors="replace"))

    def _finish(self, work: Any, shared_arrays: dict[str, SharedArrays]) -> None:
        """Record a cell that has ended, with the points and arrays of its reply."""
        cell, _ = self.running[work]
        message = work.message()
        points, artifact = message.get("points"), message.get("artifact")
        for text in points if isinstance(points, list) else []:
            self._take_point(cell.key, str(text).encode(errors="replace"))
        if artifact and isinstance(artifact, str):
            with contextlib.suppress(ValueError):
                arrays = base64.b64decode(artifact, validate=True)
                self.folder.write_file(f"{cell.key}.npz", arrays, ARTIFACTS)
        super()._finish(work, shared_arrays)

    def _environment_of(self, work: Any) -> str:
        return str(work.worker.environment["id"])


def _message_of(future: Any) -> dict[str, Any]:
    """Return the JSON result of a function of ``remote.py``; empty if it returned none."""
    if future.status != "finished":
        return {}
    try:
        message = json.loads(result_of(future))
    except Exception:  # the result is not JSON or not text, or the scheduler is gone
        return {}
    return message if isinstance(message, dict) else {}


def _is_full_description(facts: dict[str, Any]) -> bool:
    """Return True if a host's description has all required facts in the right types."""
    described = facts.get("environment")
    return (
        isinstance(described, dict)
        and isinstance(described.get("cpu"), str)
        and isinstance(described.get("packages"), dict)
        and described.get("id") == environment.id_of(described)
        and isinstance(facts.get("machine"), str)
        and isinstance(facts.get("code_hashes"), list)
    )


def timed_blocks(config: Any) -> set[str]:
    """Return the names of the blocks for which a table or a plot shows times."""
    metrics_of_block = [(table.block, table.metrics) for table in config.tables]
    # A plot without axes has the default axes of its kind, which may be times.
    metrics_of_block += [(plot.block, [plot.x or "_s", plot.y or "_s"]) for plot in config.plots]
    return {
        block
        for block, metrics in metrics_of_block
        if any(name.startswith(_TIMES[0]) or name.endswith(_TIMES[1]) for name in metrics)
    }
