"""Inside a worker process: one cell, fenced in, and never left behind.

A worker ends itself when its parent is gone, and when it holds more memory than it may. Both are
watched by threads: compiled loops release the GIL, so a long fit does not hide from them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import multiprocessing
import os
import resource
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from svmbench.data import store
from svmbench.errors import BudgetError

#: Exit codes by which the parent knows why a worker ended itself.
EXIT_MEMORY = 77
EXIT_ORPHAN = 78

_POLL_S = 0.05


def run_node(spec: dict[str, Any], folder: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Make the arrays that several cells share; the folder appears whole or not at all."""
    _fence(limits)
    from svmbench.experiment import folds, protocols

    target = Path(folder)
    inputs = protocols.make_inputs(spec)
    if inputs.X_test is not None:
        folds.save_arrays(target.with_name(target.name + "-test"), inputs.X_test, 0.0)
    folds.save_arrays(
        target, inputs.X, inputs.scaling_s, with_distances=spec.get("distances", False)
    )
    return {"status": "ok"}


def run_cell(
    spec: dict[str, Any],
    shared: str | None,
    points: str,
    done: dict[str, dict[str, Any]],
    limits: dict[str, Any],
) -> dict[str, Any]:
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
    """
    _fence(limits)
    start = time.perf_counter()
    try:
        outcome = _run(spec, shared, points, done, limits)
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
        text = " ".join(str(error).split())[:500]
        outcome = {
            "status": "failed",
            "reason": f"{type(error).__name__}: {text}" if text else type(error).__name__,
            "traceback": traceback.format_exc(limit=-8),
        }
    outcome["wall_s"] = round(time.perf_counter() - start, 4)
    return _without_nan(outcome)


def memory_reason(memory_gb: float) -> str:
    """Return the sentence for a cell that wanted more memory than it may have."""
    return f"needed more than the limit of {memory_gb:g} GiB of memory"


def _run(
    spec: dict[str, Any],
    shared: str | None,
    points: str,
    done: dict[str, dict[str, Any]],
    limits: dict[str, Any],
) -> dict[str, Any]:
    import threadpoolctl

    from svmbench.experiment import measure, protocols

    def emit(point_id: str, values: dict[str, Any]) -> None:
        with Path(points).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(_without_nan({"point": point_id, **values})) + "\n")

    for settings in spec.get("racers", [spec] if "name" in spec else []):
        measure.warm(settings["name"])
    task = protocols.Task(
        spec=spec,
        shared=None if shared is None else Path(shared),
        memory_gb=limits["memory_gb"],
        done=done,
        emit=emit,
    )
    with (
        threadpoolctl.threadpool_limits(limits["threads"]),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        outcome = runner(spec["protocol"])(task)
    messages = list(dict.fromkeys(" ".join(str(w.message).split())[:200] for w in caught))
    return {"status": "ok", "reason": "", **outcome, "warnings": messages[:5]}


def runner(protocol: str) -> Callable[[Any], dict[str, Any]]:
    """Return the function that runs a cell of a protocol."""
    from svmbench.experiment import nested_race, protocols, race

    return {
        "nested-cv": protocols.nested_cv,
        "cv": protocols.cv,
        "holdout": protocols.holdout,
        "fit": protocols.fit,
        "facts": protocols.facts,
        "race": race.race,
        "nested-race": nested_race.nested_race,
    }[protocol]


def _fence(limits: dict[str, Any]) -> None:
    """Set the limits that end this process, and start the threads that watch them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store.trust_large_sets()
    parent = multiprocessing.parent_process()
    if parent is not None:
        _die_with(parent.sentinel)
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    allowed = float(limits["memory_gb"]) * 2**30
    # RLIMIT_DATA, not RLIMIT_AS: the latter would count the mapped arrays that cells share.
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    ceiling = _data_bytes() + int(allowed)
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
    threading.Thread(
        target=_watch_memory, args=(_anonymous_bytes() + allowed,), daemon=True
    ).start()


def _die_with(parent: int) -> None:
    """Have the kernel end this process when the pipe from its parent closes.

    A solver that holds the GIL for ever stops the thread that watches the pipe; SIGIO ends the
    process all the same.
    """
    with contextlib.suppress(OSError, AttributeError):  # no signals for pipes: the thread has to do
        fcntl.fcntl(parent, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent, fcntl.F_SETFL, fcntl.fcntl(parent, fcntl.F_GETFL) | os.O_ASYNC)


def _end_with(parent: int) -> None:
    wait([parent])
    os._exit(EXIT_ORPHAN)


def _watch_memory(ceiling: float) -> None:
    while True:
        if _anonymous_bytes() > ceiling:
            os._exit(EXIT_MEMORY)
        time.sleep(_POLL_S)


def _status_bytes(field: str) -> int:
    with Path("/proc/self/status").open() as lines:
        for line in lines:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def _anonymous_bytes() -> int:
    return _status_bytes("RssAnon:")


def _data_bytes() -> int:
    return _status_bytes("VmData:")


def _finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _without_nan(value: Any) -> Any:
    """Replace what JSON can't hold by null, all the way down."""
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    return value if _finite(value) else None
