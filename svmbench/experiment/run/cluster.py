"""A run on the workers of a Dask scheduler, one cell at a time on each worker.

Dask carries cells to workers and replies back. This module chooses the worker of each cell: times
are comparable on one kind of worker only, and if a worker is lost, only its present cell is lost.
This process alone writes records: workers send points as they are found, and arrays for plots with
the reply.
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
from svmbench.experiment.plan.planner import code_of, kinds_of
from svmbench.experiment.run import processes, remote
from svmbench.experiment.run.loop import STREAM_POLL_S, RunLoop, solvers_of, utc_timestamp
from svmbench.experiment.run.records import ARTIFACTS
from svmbench.experiment.run.scheduler import connected, result_of
from svmbench.experiment.run.worker import AGAIN
from svmbench.experiment.settings.cells import Cell, SharedArrays
from svmbench.schema.record import Reply

#: Seconds between two queries of the scheduler for its workers.
WORKERS_POLL_S = 1.0
#: What tells that a metric is a time, or made of times.
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
        What the process beside it says of its machine and code; empty until it has.
    """

    address: str
    greeting: Any
    facts: dict[str, Any] = field(default_factory=dict)
    is_fit: bool = True
    is_gone: bool = False

    @property
    def environment(self) -> dict[str, Any]:
        """The environment that its cells are measured in."""
        return dict(self.facts["environment"])

    @property
    def kind(self) -> str:
        """The worker's kind: as the worker names it, or its processor's model."""
        return str(self.environment.get("kind") or self.environment["cpu"])


@dataclass(eq=False)
class RemoteWork:
    """A cell at a place; `answer` says how it ended, once `is_over`."""

    place: ClusterWorker
    future: Any
    _heard: dict[str, Any] | None = None

    def is_over(self) -> bool:
        """Return True if the work has ended, with or without an answer."""
        return self.place.is_gone or bool(self.future.done())

    def heard(self) -> dict[str, Any]:
        """Return the message of the process beside the worker; empty if there is none."""
        if self.place.is_gone or self.future.status != "finished":
            return {}
        if self._heard is None:
            self._heard = _told(self.future)
        return self._heard

    def answer(self, timeout_s: float) -> Reply:
        """Return the cell's answer; if the worker went away, that the cell is to be run again.

        Raises
        ------
        svmbench.base.errors.SvmbenchError
            If the worker can't run the cell as it is.
        """
        if self.place.is_gone:
            return {"status": AGAIN, "reason": "its Dask worker went away"}
        if self.future.status in ("cancelled", "lost"):
            return {"status": AGAIN, "reason": "the Dask scheduler has forgotten it"}
        heard = self.heard()
        if "unfit" in heard:
            raise SvmbenchError(f"{self.place.address}: {line(heard['unfit'], 300)}")
        if "error" in heard:
            return {
                "status": AGAIN,
                "reason": f"beside its Dask worker: {line(heard['error'], 200)}",
            }
        answer = heard.get("answer")
        if not isinstance(answer, dict) or not isinstance(answer.get("status"), str):
            return {"status": AGAIN, "reason": "its Dask worker gave an answer that is none"}
        return cast(Reply, answer)

    def stop(self) -> None:
        """Have it ended; whoever waits for it beside the worker sees to that."""
        with contextlib.suppress(Exception):  # the scheduler may be gone, and it with that
            self.future.cancel()

    def stop_for_now(self) -> None:
        """Do nothing: cells elsewhere go on while this process is stopped."""

    def go_on(self) -> None:
        """Do nothing."""


class ClusterRun(RunLoop):
    """A run on a cluster; see the module."""

    client: Any
    running: dict[RemoteWork, tuple[Cell, str]]  # type: ignore[assignment]

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self.name = f"svmbench-{uuid.uuid4().hex[:12]}"
        self.places: dict[str, ClusterWorker] = {}
        self.news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.streamed: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self.timed = timed_blocks(self.plan.config)
        self.kind, self.is_met = self.options.kind, False
        self.looked = self.warned = float("-inf")

    def _prepare(self, cells: list[Cell]) -> None:
        """Settle what each worker is told first."""
        codes = dict.fromkeys(kind for cell in cells for kind in kinds_of(cell.spec))
        self.codes = [code_of(*kind) for kind in codes]
        self.setup = {
            "run": self.name,
            "threads": self.plan.config.threads,
            "blas_core": self.plan.config.blas_core,
            "solvers": solvers_of(cells),
            "codes": [list(kind) for kind in codes],
        }

    @contextmanager
    def _workers(self, cells: list[Cell]) -> Iterator[None]:
        """Be a client of the scheduler while the cells run."""
        from distributed.comm import CommClosedError

        self._prepare(cells)
        with connected(self.options.cluster) as client:
            self.client = client
            client.subscribe_topic(self.name, self._on_event)
            try:
                yield
            except CommClosedError as error:
                raise self._gone() from error
            finally:
                with contextlib.suppress(Exception):  # workers and scheduler may be gone
                    if client.status == "running":
                        here = [*self.places]
                        client.run(remote.end_run, self.name, workers=here, on_error="ignore")

    def _on_event(self, event: Any) -> None:
        said = event[1]
        if isinstance(said, dict) and isinstance(said.get("point"), str):
            self.streamed.put((str(said.get("key")), said["point"]))

    def _describe_workers(self) -> None:
        """Do nothing here: each worker describes itself when it is met."""

    def _write_environments(self) -> None:
        """Write nothing here: a worker's is written when it is met."""

    def _nodes(self, cells: list[Cell]) -> dict[str, SharedArrays]:
        """Return nothing: each cell scales for itself, where it runs."""
        return {}

    def _start_what_can(self, nodes: dict[str, SharedArrays]) -> None:
        """Give each place that is free the first cell that it may run."""
        self._look_around()
        busy = {work.place for work in self.running}
        for place in self.places.values():
            if place in busy or place.is_gone or not (place.is_fit and place.facts):
                continue
            cell = next((each for each in self.waiting if self._may_run(place, each)), None)
            if cell is not None:
                self.waiting.remove(cell)
                self.running[self._send(cell, place)] = (cell, utc_timestamp())

    def _may_run(self, place: ClusterWorker, cell: Cell) -> bool:
        """Return True if a cell may run at a place: times need workers of one kind."""
        if cell.shown["block"] not in self.timed:
            return True
        if not self.kind:
            ready = [one for one in self.places.values() if not one.is_gone]
            if not all(one.facts or not one.is_fit for one in ready):
                return False  # what kind the others are of is not known yet
            kinds = sorted({one.kind for one in ready if one.is_fit})
            if len(kinds) > 1:
                raise ConfigError(
                    f"the cluster has workers of {len(kinds)} kinds ({', '.join(kinds)});"
                    " choose one for timed cells with --kind"
                )
            self.kind = kinds[0]
        return place.kind == self.kind

    def _send(self, cell: Cell, place: ClusterWorker) -> RemoteWork:
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
            place, self._submit(remote.run_beside, place.address, self.setup, request)
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
        future.add_done_callback(self.news.put)
        return future

    def _wait(self, absence: processes.Absence) -> list[Any]:
        """Wait a moment, or until a place has something to say; return the works that are over."""
        with contextlib.suppress(queue.Empty):
            self.news.get(timeout=STREAM_POLL_S)
            while True:
                self.news.get_nowait()
        self._require_scheduler()
        return [work for work in self.running if work.is_over()]

    def _look_around(self) -> None:
        """See which workers there are, once a moment; greet those that are new."""
        if monotonic() - self.looked > WORKERS_POLL_S:
            self.looked = monotonic()
            here = self._addresses()
            for address in here - {*self.places}:
                greeting = self._submit(remote.greet, address, self.setup)
                self.places[address] = ClusterWorker(address, greeting)
            for address, place in self.places.items():
                place.is_gone = address not in here
            self.places = {a: place for a, place in self.places.items() if not place.is_gone}
        for place in self.places.values():
            if not place.facts and place.is_fit and place.greeting.done():
                self._meet(place)
        self._say_if_nobody_comes()

    def _addresses(self) -> set[str]:
        """Return the addresses of all workers; the scheduler is gone where it does not say."""
        self._require_scheduler()
        try:
            return {str(address) for address in self.client.nthreads()}
        except (OSError, CancelledError) as error:
            raise self._gone() from error

    def _require_scheduler(self) -> None:
        """Raise where the client has lost it, and with it all that it was to run."""
        if self.client.status != "running":
            raise self._gone()

    def _gone(self) -> SchedulerGoneError:
        return SchedulerGoneError(
            f"the Dask scheduler at {self.options.cluster} is gone; all records so far are safe;"
            " the same command continues the run"
        )

    def _meet(self, place: ClusterWorker) -> None:
        """Take what a worker says of itself; leave it alone if it is of other code."""
        facts = _told(place.greeting)
        if "error" in facts:
            place.is_fit = False
            reason = f"can't run cells: {line(facts['error'], 200)}"
        elif "unfit" in facts:
            place.is_fit = False
            reason = f"can't run cells: {line(facts['unfit'], 300)}"
        elif not _is_introduced(facts):
            place.is_fit = False
            reason = (
                "can't run cells: it does not say what it is"
                " (the extra dask has to be installed there, in the version that runs here)"
            )
        else:
            if facts["codes"] == self.codes:
                place.facts = facts
                # Cells that are not run at all are said to be of the first.
                self.environment = place.environment if not self.is_met else self.environment
                self.is_met = True
                self._check_arithmetic(place.environment, f"on {facts['machine']}, ")
                self._write_environment(place.environment)
                return
            place.is_fit = False
            has, own = facts["environment"], self.environment
            other = [
                f"{name} {version} for {own['packages'].get(name)}"
                for name, version in has["packages"].items()
                if version != own["packages"].get(name)
            ]
            reason = "has other code than this process: another svmbench, plug-in or program" + (
                f", or {', '.join(other)}" if other else ""
            )
        said = f"the Dask worker {place.address} {reason}"
        if not any(one.is_fit for one in self.places.values()):
            raise SvmbenchError(said)
        self.listener.note(f"{said}; it is left alone")

    def _say_if_nobody_comes(self) -> None:
        fit = [one for one in self.places.values() if one.is_fit]
        of_kind = [one for one in fit if not one.facts or one.kind == (self.kind or one.kind)]
        if of_kind or self.running or monotonic() - self.warned < 60.0:
            return
        self.warned = monotonic()
        kinds = ", ".join(sorted({one.kind for one in fit}))
        wanted = f"no worker of kind {self.kind!r} (there are: {kinds})" if fit else "no worker"
        self.listener.note(f"{wanted} at {self.options.cluster} yet; waiting")

    def _note_contended(self) -> None:
        """Mark the cells that run at the same time on one machine."""
        machines: dict[str, list[str]] = {}
        for work, (cell, _) in self.running.items():
            machines.setdefault(work.place.facts["machine"], []).append(cell.key)
        self.contended |= {key for keys in machines.values() if len(keys) > 1 for key in keys}

    def _collect_points(self, key: str) -> None:
        """Append what all places have streamed since the last look to the records."""
        with contextlib.suppress(queue.Empty):
            while True:
                of, text = self.streamed.get_nowait()
                if any(cell.key == of for cell, _ in self.running.values()):
                    self._take_point(of, text.encode(errors="replace"))

    def _finish(self, work: Any, nodes: dict[str, SharedArrays]) -> None:
        """Record how a cell ended, with all that came with its answer."""
        cell, _ = self.running[work]
        heard = work.heard()
        points, artifact = heard.get("points"), heard.get("artifact")
        for text in points if isinstance(points, list) else []:
            self._take_point(cell.key, str(text).encode(errors="replace"))
        if artifact and isinstance(artifact, str):
            with contextlib.suppress(ValueError):
                arrays = base64.b64decode(artifact, validate=True)
                self.folder.write_file(f"{cell.key}.npz", arrays, ARTIFACTS)
        super()._finish(work, nodes)

    def _environment_of(self, work: Any) -> str:
        return str(work.place.environment["id"])


def _told(future: Any) -> dict[str, Any]:
    """Return the JSON result of a function beside a worker; empty if it returned none."""
    if future.status != "finished":
        return {}
    try:
        told = json.loads(result_of(future))
    except Exception:  # no JSON, nothing that crosses as text, or the scheduler is gone
        return {}
    return told if isinstance(told, dict) else {}


def _is_introduced(facts: dict[str, Any]) -> bool:
    """Return True if a worker reports all recorded facts in the right types."""
    about = facts.get("environment")
    return (
        isinstance(about, dict)
        and isinstance(about.get("cpu"), str)
        and isinstance(about.get("packages"), dict)
        and about.get("id") == environment.id_of(about)
        and isinstance(facts.get("machine"), str)
        and isinstance(facts.get("codes"), list)
    )


def timed_blocks(config: Any) -> set[str]:
    """Return the names of the blocks of which a table or a plot asks for times."""
    metrics_of_block = [(table.block, table.metrics) for table in config.tables]
    # A plot without axes has those of its kind, and times may be among them.
    metrics_of_block += [(plot.block, [plot.x or "_s", plot.y or "_s"]) for plot in config.plots]
    return {
        block
        for block, metrics in metrics_of_block
        if any(name.startswith(_TIMES[0]) or name.endswith(_TIMES[1]) for name in metrics)
    }
