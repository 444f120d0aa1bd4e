"""The worker process of one cell, with its limits.

A worker ends itself if its parent process has ended, or if it exceeds its memory limit. Threads
check both; compiled loops release the GIL, so that the threads run during a long fit.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import resource
import shutil
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from svmbench.base.errors import BudgetError, ProgramError
from svmbench.base.parallel_map import end_with_parent
from svmbench.base.paths import PACKAGE, cache_dir
from svmbench.data import store
from svmbench.experiment.measuring import measure, proc
from svmbench.experiment.run import ipc, processes
from svmbench.experiment.settings.cells import CellSpec, Limits, NodeSpec
from svmbench.schema.record import PointRecord, Reply

#: Exit code of a worker that ends itself at its memory limit; it has sent the reason before.
EXIT_MEMORY = 77

#: Seconds between two readings of a worker's memory.
_POLL_S = 0.05
#: Errors of a full disk, or of a user's exhausted quota.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
#: Number of readings of a worker's own memory for each reading of its child processes' memory.
_READINGS_PER_CHILDREN_READING = 10

#: Status of a cell that is run again: its shared arrays were removed, or its Dask worker was lost.
AGAIN = "again"
#: Status of a cell that has no result because the disk is full; the run ends and can be continued.
NOT_RUN = "not run"
#: A disk with less free space than this many bytes is full.
_MIN_FREE_DISK_BYTES = 1 << 20


def make_shared_arrays(spec: NodeSpec, folder: str, limits: Limits) -> Reply:
    """Make the arrays that several cells share; the folder appears complete or not at all.

    An error becomes the reply's status; each cell then scales its own inputs.
    """
    _set_limits(limits)
    try:
        _make_shared_arrays(spec, Path(folder))
    except MemoryError:
        return {"status": "memory", "reason": memory_reason(limits["memory_gb"])}
    except Exception as error:
        return {"status": "failed", "reason": _in_a_line(error)}
    return {"status": "ok"}


def _make_shared_arrays(spec: NodeSpec, target: Path) -> None:
    from svmbench.experiment.protocols import folds, protocols
    from svmbench.experiment.protocols.task import make_inputs

    protocols()
    inputs = make_inputs(spec)
    if inputs.X_test is not None:
        save_shared_arrays(target.with_name(target.name + "-test"), inputs.X_test, 0.0)
    save_distances = None
    if spec.get("distances", False):
        from svmbench.experiment.protocols import kernel_search

        save_distances = partial(kernel_search.save_distances, dtype=folds.distance_type(spec))
    save_shared_arrays(target, inputs.X, inputs.scaling_s, save_distances=save_distances)


def save_shared_arrays(
    folder: Path,
    X: Any,
    seconds: float,
    *,
    save_distances: Callable[[Path, Any], float] | None = None,
) -> None:
    """Write inputs that several cells share to a temporary folder, then rename the folder.

    The folder has ``dense.npy``, or ``data.npy``, ``indices.npy`` and ``indptr.npy`` of a CSR
    matrix; ``distances.npy`` if cells share distances; and last ``meta.json`` with the shape and
    the seconds of scaling and distances. A test part has a folder of its own, whose name ends in
    ``-test``. `folds.open_arrays` and `folds.open_distances` map the files.

    Parameters
    ----------
    folder : Path
        The final name of the folder.
    X : ndarray or csr_array of shape (n_samples, n_features)
    seconds : float
        The time of scaling in seconds.
    save_distances : callable, optional
        Function that writes the squared distances of all pairs of rows of X to a file and returns
        its CPU seconds. Default: no distances are written.
    """
    import numpy as np
    import scipy.sparse as sp

    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        if sp.issparse(X):
            for name in ("data", "indices", "indptr"):
                np.save(unfinished / f"{name}.npy", getattr(X, name))
        else:
            np.save(unfinished / "dense.npy", X)
        facts = {"shape": list(X.shape), "seconds": seconds}
        if save_distances is not None:
            facts["distances_cpu_s"] = save_distances(unfinished / "distances.npy", X)
        (unfinished / "meta.json").write_text(json.dumps(facts), encoding="utf-8")
        try:
            unfinished.replace(folder)
        except OSError:
            if not (folder / "meta.json").exists():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def run_cell(
    spec: CellSpec,
    shared: str | None,
    points: str,
    done: Mapping[str, PointRecord],
    limits: Limits,
    artifact: str | None = None,
) -> Reply:
    """Run one cell and return the fields of its record; an error becomes its status.

    Parameters
    ----------
    spec : dict
        The cell's specification.
    shared : str or None
        Folder of scaled inputs; None to scale them here.
    points : str
        File to which finished points are streamed, one JSON line each.
    done : dict
        Points that an earlier worker finished, by their ids.
    limits : dict
        ``memory_gb`` and ``threads``.
    artifact : str or None
        File for the arrays that a plot needs.
    """
    _set_limits(limits)
    start = time.perf_counter()
    try:
        outcome = _run(spec, shared, points, done, limits, artifact)
        not_finite = [
            k for k, v in outcome["metrics"].items() if k != "peak_memory_mb" and not _finite(v)
        ]
        if not_finite:
            outcome = {
                "status": "failed",
                "reason": f"the solver returned NaN or infinity: {not_finite[0]}",
            }
    except BudgetError as error:
        outcome = {"status": "memory", "reason": str(error)}
    except MemoryError:
        outcome = {"status": "memory", "reason": memory_reason(limits["memory_gb"])}
    except Exception as error:  # an error of a solver is the cell's result
        if _scratch_is_gone(shared, points):
            return {"status": AGAIN, "reason": "the folder of shared arrays was removed"}
        trace = without_folders(traceback.format_exc(limit=-8))
        if full := _full_disk(error, points):
            return {"status": NOT_RUN, "reason": f"the disk that has {full} is full"}
        outcome = {"status": "failed", "reason": _in_a_line(error), "traceback": trace}
    outcome["wall_s"] = round(time.perf_counter() - start, 4)
    return outcome


def _in_a_line(error: Exception) -> str:
    text = without_folders(" ".join(str(error).split()))[:500]
    kind = "" if isinstance(error, ProgramError) else type(error).__name__
    return ": ".join(filter(None, (kind, text)))


def _full_disk(error: BaseException | None, points: str) -> Path | None:
    """Return a folder on a full disk if that caused an error, or None.

    The cell's own temporary files are removed first: a cell that fills a disk by itself has failed,
    one that finds the disk full has not been run.
    """
    # NumPy's error for a short write has no number.
    while error is not None and getattr(error, "errno", 0) not in (None, *_NO_ROOM):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    shutil.rmtree(files_of(points), ignore_errors=True)
    folders = (Path(points).parent, cache_dir(), Path(os.environ.get("TMPDIR") or "/tmp"))
    return next((folder for folder in folders if not _has_room(folder)), None)


def _has_room(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
            n_bytes = _MIN_FREE_DISK_BYTES
            while n_bytes > 0:
                n_bytes -= stream.write(bytes(n_bytes))
    except OSError as error:
        return error.errno not in _NO_ROOM
    return True


def without_folders(text: str) -> str:
    """Remove the folders of this machine and user from a text, since records are published.

    The path of a package's file then begins with the package; of any other file in a traceback only
    the file's name is left.
    """
    folders = [*sys.path, sysconfig.get_path("stdlib"), sys.prefix, str(PACKAGE.parent)]
    folders += [tempfile.tempdir or "", os.path.expanduser("~")]  # noqa: PTH111 - never an error
    for folder in sorted({each.rstrip("/") for each in folders}, key=len, reverse=True):
        if folder.startswith("/"):
            text = text.replace(f"{folder}/", "")
    return re.sub(r'File "/[^"\n]*/([^"/\n]+)"', r'File "\1"', text)


def _scratch_is_gone(shared: str | None, points: str) -> bool:
    """Return True if somebody removed the run's own files, which explains an error."""
    arrays_are_gone = shared is not None and not (Path(shared) / "meta.json").exists()
    return arrays_are_gone or not Path(points).parent.is_dir()


def memory_reason(memory_gb: float) -> str:
    """Return the reason of a cell that exceeded its memory limit."""
    return f"needed more than the limit of {memory_gb:g} GiB of memory"


def _run(
    spec: CellSpec,
    shared: str | None,
    points: str,
    done: Mapping[str, PointRecord],
    limits: Limits,
    artifact: str | None,
) -> Reply:
    from svmbench.experiment.protocols import function_of
    from svmbench.experiment.protocols.task import Task

    def emit(point_id: str, values: Mapping[str, Any]) -> None:
        line = json.dumps(ipc.plain({"point": point_id, **values}))
        if len(line) > ipc.MAX_MESSAGE_BYTES:
            raise ipc.BadAnswerError(f"the point {point_id} is too large to be recorded")
        with Path(points).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    # Temporary files of a solver are removed after its cell, even if the worker is killed.
    temporary_folder = files_of(points)
    temporary_folder.mkdir(exist_ok=True)
    tempfile.tempdir = str(temporary_folder)
    for settings in spec.get("racers", [spec] if "name" in spec else []):
        measure.warm(settings["name"])
    task = Task(
        spec=spec,
        shared=None if shared is None else Path(shared),
        memory_gb=limits["memory_gb"],
        done=ipc.with_nan(dict(done)),
        emit=emit,
        artifact=None if artifact is None else Path(artifact),
    )
    with (
        thread_pools().limit(limits=limits["threads"]),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        outcome = function_of(spec)(task)
    texts = (without_folders(" ".join(str(w.message).split()))[:200] for w in caught)
    messages = list(dict.fromkeys(texts))
    return {"status": "ok", "reason": "", **outcome, "warnings": messages[:5]}


#: The number of mapped pieces of libraries at the last search for thread pools, and the pools.
_pools: tuple[int | None, Any] = (None, None)


def thread_pools() -> Any:
    """Return a `ThreadpoolController` of all loaded libraries.

    The search takes half of the CPU time of a trivial cell, because it resolves each library's
    path. The worker server has searched before it forks; a worker searches again only if libraries
    were loaded since.
    """
    global _pools
    import threadpoolctl

    n_mapped = proc.mapped_libraries()
    if n_mapped is None or _pools[0] != n_mapped:
        _pools = n_mapped, threadpoolctl.ThreadpoolController()
    return _pools[1]


def files_of(points: str | Path) -> Path:
    """Return the folder for a cell's temporary files, beside its points."""
    return Path(points).with_suffix(".files")


def _set_limits(limits: Limits) -> None:
    """Set the limits of this process, and start the threads that enforce them.

    RLIMIT_DATA is the allowed memory plus the process's size after the threads have started:
    their stacks are new memory in a fork of the command, but not in a new interpreter.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store.trust_large_sets()
    end_with_parent()
    memory_gb = float(limits["memory_gb"])
    allowed = int(memory_gb * 2**30)
    threading.Thread(
        target=_watch_memory, args=(proc.own_bytes() + allowed, memory_gb), daemon=True
    ).start()
    # RLIMIT_DATA, not RLIMIT_AS: the latter would count the mapped arrays that cells share.
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    ceiling = measure.status_bytes().get("VmData", 0) + allowed
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))


def _watch_memory(ceiling: float, memory_gb: float) -> None:
    n_readings = 0
    while True:
        n_readings += 1
        n_bytes = proc.own_bytes()
        if n_readings % _READINGS_PER_CHILDREN_READING == 0:
            n_bytes += sum(map(proc.own_bytes, proc.descendants(os.getpid())))
        if n_bytes > ceiling:
            # Send the reason: the exit code alone is ambiguous, since a solver may exit with it.
            processes.send_result({"status": "memory", "reason": memory_reason(memory_gb)})
            os._exit(EXIT_MEMORY)
        time.sleep(_POLL_S)


def _finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)
