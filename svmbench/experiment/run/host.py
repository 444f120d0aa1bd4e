"""The host: a process that runs cells for a Dask worker, with the same limits as a local run.

A Dask worker can't fork cells itself, because it has threads and is daemonic. It starts the host
(``remote.py``), and both exchange lines of JSON: the set-up, then cells on standard input; the
host's facts, then points and replies on standard output. If the input ends, because the worker
ended or the task was cancelled, the host kills its cell and ends.
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

#: Seconds between two readings of a cell's points.
HOST_POLL_S = 0.25
#: Seconds without a new cell after which the process ends.
HOST_IDLE_TIMEOUT_S = 900.0


def main() -> None:
    """Run the cells that standard input requests, one after another."""
    # Send what libraries print to standard error, so that standard output has only replies.
    output = os.dup(1)
    os.dup2(2, 1)
    requests = _Lines(0)
    setup = requests.wait(HOST_IDLE_TIMEOUT_S)
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
        _send_line(output, facts)
        while (request := requests.wait(HOST_IDLE_TIMEOUT_S)) is not None:
            try:
                answer = _run(request, Path(scratch), requests, output)
            except SvmbenchError as error:
                answer = {"unfit": str(error)}
            _send_line(output, answer)


def _facts(setup: dict[str, Any]) -> dict[str, Any]:
    """Return the description of this machine and the hashes of its code."""
    return {
        "environment": {
            **processes.describe_worker(setup["threads"]),
            "load": environment.load_average(),
        },
        "machine": platform.node(),
        "code_hashes": [_code_hash(*kind) for kind in setup["kinds"]],
    }


def _code_hash(*kind: str) -> str:
    """Return the code hash of one kind of cell (`keys.code_of`), or why there is none here."""
    from svmbench.experiment.plan.keys import code_of

    try:
        return code_of(*kind)
    except (SvmbenchError, OSError, ImportError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


def _run(request: dict[str, Any], scratch: Path, requests: _Lines, output: int) -> dict[str, Any]:
    """Run one cell; return its reply, its points, and its arrays for a plot."""
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
    stream, clock, sent = Stream(points), processes.SuspensionClock(), []
    try:
        is_over = False
        while not is_over:
            is_over = bool(processes.wait_for([work], HOST_POLL_S, clock))
            for line in stream.take():
                sent.append(line.decode(errors="replace"))
                _send_line(output, {"point": sent[-1]})
            if (
                not is_over and requests.has_come()
            ):  # only the end of the input can come while a cell runs
                return {"unfit": "the run no longer waits for this cell"}
        answer = work.reply(request["timeout_s"])
        arrays = base64.b64encode(artifact.read_bytes()).decode() if artifact.exists() else None
        return {"answer": answer, "points": sent, "artifact": arrays}
    finally:
        work.stop()
        shutil.rmtree(folder, ignore_errors=True)


#: The content's hash of each data set that was opened, by its description in the config as JSON.
_contents: dict[str, str] = {}


def _check_data(spec: dict[str, Any], mirror: str | None) -> None:
    """Prepare a cell's data set if necessary, and compare its content with the cell's.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the data set is not available, or has other content.
    """
    from svmbench import data
    from svmbench.experiment.protocols.task import open_chosen

    chosen = spec["dataset"]
    description = json.dumps(chosen, sort_keys=True)
    if description not in _contents:
        if not chosen["file"]:
            data.ensure(chosen["name"], mirror=mirror)
        _contents[description] = open_chosen(chosen).sha256
    if _contents[description] != spec["data_sha256"]:
        raise SvmbenchError(
            f"data set {chosen['name']!r} has other content on {platform.node()} than where the run"
            " was started"
        )


class _Lines:
    """A reader of JSON lines from a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = b""

    def has_come(self) -> bool:
        """Return True if input can be read without waiting."""
        return bool(self._held) or bool(select.select([self._descriptor], [], [], 0.0)[0])

    def wait(self, seconds: float) -> Any:
        """Return the next value; None at the end of the input or after `seconds` without one."""
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
