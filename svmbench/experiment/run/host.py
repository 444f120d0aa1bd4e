"""A process beside a Dask worker that runs cells there, with the same limits as on one machine.

A Dask worker can't fork cells itself, because it has threads and is daemonic. So it starts this
process (``remote.py``), and both exchange lines of JSON: the set-up and then cells on standard
input; facts, points and replies on standard output. When the input ends, because the worker ended
or the task was cancelled, this process ends, and its cell with it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import select
import shutil
import tempfile
from pathlib import Path
from typing import Any

from svmbench.base.errors import SvmbenchError
from svmbench.experiment.measuring import environment
from svmbench.experiment.run import processes, worker
from svmbench.experiment.run.points import Stream

#: Seconds between two looks for points, and for the end of the worker.
HOST_POLL_S = 0.25
#: Seconds without a new cell after which the process ends.
HOST_IDLE_TIMEOUT_S = 900.0


def main() -> None:
    """Run the cells that standard input asks for, one after another."""
    # Whatever prints here prints elsewhere than into the conversation.
    talk = os.dup(1)
    os.dup2(2, 1)
    said = _Lines(0)
    setup = said.wait(HOST_IDLE_TIMEOUT_S)
    if setup is None:
        return
    with (
        tempfile.TemporaryDirectory(prefix="svmbench-") as scratch,
        processes.warm_server(setup["threads"], setup["solvers"], setup["blas_core"]),
    ):
        try:
            facts = _facts(setup)
        except SvmbenchError as error:
            facts = {"unfit": str(error)}
        _send_line(talk, facts)
        while (request := said.wait(HOST_IDLE_TIMEOUT_S)) is not None:
            try:
                answer = _run(request, Path(scratch), said, talk)
            except SvmbenchError as error:
                answer = {"unfit": str(error)}
            _send_line(talk, answer)


def _facts(setup: dict[str, Any]) -> dict[str, Any]:
    """Return the description of this machine and of its code."""
    return {
        "environment": {
            **processes.describe_worker(setup["threads"]),
            "load": environment.load_average(),
        },
        "machine": platform.node(),
        "codes": [_code(*kind) for kind in setup["codes"]],
    }


def _code(*kind: str) -> str:
    """Return a hash of the code of one kind of cell (`plan.code_of`); or why there is none here."""
    from svmbench.experiment.plan.planner import code_of

    try:
        return code_of(*kind)
    except (SvmbenchError, OSError, ImportError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


def _run(request: dict[str, Any], scratch: Path, said: _Lines, talk: int) -> dict[str, Any]:
    """Run one cell; return its answer, the points it streamed, and what it kept for a plot."""
    _check_data(request["spec"], request["mirror"])
    folder = scratch / request["key"]
    folder.mkdir()
    points, artifact = folder / "points.jsonl", folder / "artifacts" / "arrays.npz"
    limits = request["limits"]
    work = processes.start(
        worker.run_cell,
        (request["spec"], None, str(points), request["done"], limits, str(artifact)),
        request["timeout_s"],
    )
    stream, absence, streamed = Stream(points), processes.Absence(), []
    try:
        is_over = False
        while not is_over:
            is_over = bool(processes.wait_for([work], HOST_POLL_S, absence))
            for line in stream.take():
                streamed.append(line.decode(errors="replace"))
                _send_line(talk, {"point": streamed[-1]})
            if not is_over and said.has_come():  # its end: nothing is said while a cell runs
                return {"unfit": "nobody wants this cell any more"}
        answer = work.answer(request["timeout_s"])
        kept = base64.b64encode(artifact.read_bytes()).decode() if artifact.exists() else None
        return {"answer": answer, "points": streamed, "artifact": kept}
    finally:
        work.stop()
        shutil.rmtree(folder, ignore_errors=True)


#: The content of each data set that was looked at, by what a config says of it.
_contents: dict[str, str] = {}


def _check_data(spec: dict[str, Any], mirror: str | None) -> None:
    """Have the data set here, and see that it is the one that the cell is of; once a run.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If it can't be had, or is another.
    """
    from svmbench import data
    from svmbench.experiment.protocols.task import open_chosen

    chosen = spec["dataset"]
    wanted = json.dumps(chosen, sort_keys=True)
    if wanted not in _contents:
        if not chosen["file"]:
            data.ensure(chosen["name"], mirror=mirror)
        _contents[wanted] = open_chosen(chosen).sha256
    if _contents[wanted] != spec["data_sha256"]:
        raise SvmbenchError(
            f"data set {chosen['name']!r} has other content on {platform.node()} than where the run"
            " was started"
        )


class _Lines:
    """Lines of JSON from a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = b""

    def has_come(self) -> bool:
        """Return True if input can be read without waiting."""
        return bool(self._held) or bool(select.select([self._descriptor], [], [], 0.0)[0])

    def wait(self, seconds: float) -> Any:
        """Return the next value; None at the end of all, and after so many seconds."""
        while b"\n" not in self._held:
            if not select.select([self._descriptor], [], [], seconds)[0]:
                return None
            piece = os.read(self._descriptor, 1 << 20)
            if not piece:
                return None
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return json.loads(line)


def _send_line(descriptor: int, value: Any) -> None:
    line = json.dumps(value).encode() + b"\n"
    with contextlib.suppress(BrokenPipeError):
        while line:
            line = line[os.write(descriptor, line) :]


if __name__ == "__main__":
    main()
