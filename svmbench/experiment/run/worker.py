"""The worker process of one cell, with its limits.

A worker ends itself when its parent process is gone, or when it exceeds its memory limit. Threads
watch for both; compiled loops release the GIL, so that the threads run during a long fit.
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
_LOOKS_PER_FAMILY_LOOK = 10

#: Status of a cell that is run again because its shared arrays were removed.
AGAIN = "again"
#: Status of a cell without a result because the disk is full.
NOT_RUN = "not run"
#: A disk with less free space than this many bytes is full.
_MIN_FREE_DISK_BYTES = 1 << 20


def run_node(spec: NodeSpec, folder: str, limits: Limits) -> Reply:
    """Make the arrays that several cells share; the folder appears whole or not at all.

    What goes wrong becomes the answer's status: the cells then scale for themselves.
    """
    _fence(limits)
    try:
        _make_node(spec, Path(folder))
    except MemoryError:
        return {"status": "memory", "reason": memory_reason(limits["memory_gb"])}
    except Exception as error:
        return {"status": "failed", "reason": _in_a_line(error)}
    return {"status": "ok"}


def _make_node(spec: NodeSpec, target: Path) -> None:
    from svmbench.experiment.protocols import folds, protocols
    from svmbench.experiment.protocols.task import make_inputs

    protocols()
    inputs = make_inputs(spec)
    if inputs.X_test is not None:
        save_arrays(target.with_name(target.name + "-test"), inputs.X_test, 0.0)
    save_distances = None
    if spec.get("distances", False):
        from svmbench.experiment.protocols import kernel_search

        save_distances = partial(kernel_search.save_distances, dtype=folds.distance_type(spec))
    save_arrays(target, inputs.X, inputs.scaling_s, save_distances=save_distances)


def save_arrays(
    folder: Path,
    X: Any,
    seconds: float,
    *,
    save_distances: Callable[[Path, Any], float] | None = None,
) -> None:
    """Write inputs for `folds.open_arrays` to map: to a temporary folder, then renamed.

    Parameters
    ----------
    folder : Path
    X : ndarray or csr_array of shape (n_samples, n_features)
    seconds : float
        What scaling took.
    save_distances : callable, optional
        Writes the squared distances of all pairs of rows of X to a file, and returns the CPU
        seconds that they took; none are written without.
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
    """Run one cell and return its record's fields; what goes wrong becomes its status.

    Parameters
    ----------
    spec : dict
        The cell's specification.
    shared : str or None
        Folder of scaled inputs.
    points : str
        File to which finished points are streamed, one JSON line each.
    done : dict
        Points finished earlier.
    limits : dict
        ``memory_gb`` and ``threads``.
    artifact : str or None
        File for the arrays that a plot needs.
    """
    _fence(limits)
    start = time.perf_counter()
    try:
        outcome = _run(spec, shared, points, done, limits, artifact)
        bad = [k for k, v in outcome["metrics"].items() if k != "peak_memory_mb" and not _finite(v)]
        if bad:
            outcome = {
                "status": "failed",
                "reason": f"the solver returned NaN or infinity: {bad[0]}",
            }
    except BudgetError as error:
        outcome = {"status": "memory", "reason": str(error)}
    except MemoryError:
        outcome = {"status": "memory", "reason": memory_reason(limits["memory_gb"])}
    except Exception as error:  # whatever a solver raises is its result
        if _scratch_is_gone(shared, points):
            return {"status": AGAIN, "reason": "the folder of shared arrays was removed"}
        said = without_folders(traceback.format_exc(limit=-8))
        if full := _full_disk(error, points):
            return {"status": NOT_RUN, "reason": f"the disk that holds {full} is full"}
        outcome = {"status": "failed", "reason": _in_a_line(error), "traceback": said}
    outcome["wall_s"] = round(time.perf_counter() - start, 4)
    return outcome


def _in_a_line(error: Exception) -> str:
    text = without_folders(" ".join(str(error).split()))[:500]
    kind = "" if isinstance(error, ProgramError) else type(error).__name__
    return ": ".join(filter(None, (kind, text)))


def _full_disk(error: BaseException | None, points: str) -> Path | None:
    """Return where a disk is full, if an error says so and it is, apart from what the cell wrote.

    A cell that fills a disk by itself has failed; one that finds it full has not been run.
    """
    # NumPy's error for a short write has no number.
    while error is not None and getattr(error, "errno", 0) not in (None, *_NO_ROOM):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    shutil.rmtree(files_of(points), ignore_errors=True)
    named = (Path(points).parent, cache_dir(), Path(os.environ.get("TMPDIR") or "/tmp"))
    return next((place for place in named if not _has_room(place)), None)


def _has_room(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
            left = _MIN_FREE_DISK_BYTES
            while left > 0:
                left -= stream.write(bytes(left))
    except OSError as error:
        return error.errno not in _NO_ROOM
    return True


def without_folders(text: str) -> str:
    """Return text without the folders of this machine and user: records are published.

    A file of a package is named from the package on; any other file of a traceback by its own name.
    """
    ours = [*sys.path, sysconfig.get_path("stdlib"), sys.prefix, str(PACKAGE.parent)]
    ours += [tempfile.tempdir or "", os.path.expanduser("~")]  # noqa: PTH111 - never an error
    for folder in sorted({each.rstrip("/") for each in ours}, key=len, reverse=True):
        if folder.startswith("/"):
            text = text.replace(f"{folder}/", "")
    return re.sub(r'File "/[^"\n]*/([^"/\n]+)"', r'File "\1"', text)


def _scratch_is_gone(shared: str | None, points: str) -> bool:
    """Return True if the run's own files vanished, so that the solver is not to blame."""
    arrays = shared is not None and not (Path(shared) / "meta.json").exists()
    return arrays or not Path(points).parent.is_dir()


def memory_reason(memory_gb: float) -> str:
    """Return the sentence for a cell that wanted more memory than it may have."""
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

    # What a solver writes goes with its cell, however that ends.
    own = files_of(points)
    own.mkdir(exist_ok=True)
    tempfile.tempdir = str(own)
    for settings in spec.get("racers", [spec] if "name" in spec else []):
        measure.warm(settings["name"])
    task = Task(
        spec=spec,
        shared=None if shared is None else Path(shared),
        memory_gb=limits["memory_gb"],
        done=done,
        emit=emit,
        artifact=None if artifact is None else Path(artifact),
    )
    with (
        thread_pools().limit(limits=limits["threads"]),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        outcome = function_of(spec)(task)
    said = (without_folders(" ".join(str(w.message).split()))[:200] for w in caught)
    messages = list(dict.fromkeys(said))
    return {"status": "ok", "reason": "", **outcome, "warnings": messages[:5]}


#: How many pieces of libraries were mapped when thread pools were last looked for, and the pools.
_pools: tuple[int | None, Any] = (None, None)


def thread_pools() -> Any:
    """Return a `ThreadpoolController` of all loaded libraries.

    To look for them takes half of the CPU time of a trivial cell: each library's path is resolved.
    The process that workers are forked from has looked, and a worker looks again only if libraries
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


def _fence(limits: Limits) -> None:
    """Set the limits that end this process, and start the threads that watch them.

    A cell may take its memory beyond what the process has when the threads are there: by a fork
    of the command, the stack of a thread is new memory, and in a new interpreter it is not.
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
    looks = 0
    while True:
        looks += 1
        held = proc.own_bytes()
        if looks % _LOOKS_PER_FAMILY_LOOK == 0:
            held += sum(map(proc.own_bytes, proc.descendants(os.getpid())))
        if held > ceiling:
            # Said, not told by an exit code, which a solver may choose as well.
            processes.send_result({"status": "memory", "reason": memory_reason(memory_gb)})
            os._exit(EXIT_MEMORY)
        time.sleep(_POLL_S)


def _finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)
