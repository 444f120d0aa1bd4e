"""Timing of the algorithm alone: warmed up, on one thread, repeated while short.

``train_time`` is the wall time of a solver's `train` on data already in its own format;
``cpu_time`` is the process's CPU time over the same span, several times steadier on a busy
machine; ``conversion_time`` is `prepare` (validation and the solver's input format). The garbage
collector is off while the clock runs, and mapped pages are touched before it starts. An external
program is timed from its start to its end, with the CPU time of its processes (`now`).
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from svmbench.core.contract.base import Solver, now, warm_up

__all__ = [
    "Timing",
    "fit_a_few_rows",
    "fit_once",
    "fit_repeatedly",
    "now",
    "peak_since",
    "quiet",
    "reset_peak",
    "since",
    "warm",
]

#: Rows of the untimed first fit of a foreign class.
_FEW_ROWS = 100
#: The foreign classes that have had it.
_FITTED: set[type] = set()
#: Short fits are repeated until they take this many seconds in all.
MIN_TOTAL_S = 0.1
#: Largest number of repeats of a fit.
MAX_REPEATS = 50
#: Smallest number of repeats of a fit, if they take at most `MAX_REPEATS_TOTAL_S` in all.
MIN_REPEATS = 3
#: Time in seconds beyond which a fit is not repeated for `MIN_REPEATS`.
MAX_REPEATS_TOTAL_S = 10.0

#: Linux's folder of files about processes; other systems have none.
PROC = Path("/proc")
#: Writing to this file resets a process's peak memory.
CLEAR_REFS = PROC / "self" / "clear_refs"


@dataclass
class Timing:
    """Repeated measurements of one fit, in seconds; memory in MiB (NaN where it can't be read)."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    conversion: float = 0.0
    peak_memory: float = float("nan")

    @property
    def wall_s(self) -> float:
        """Median wall time."""
        return statistics.median(self.wall)

    @property
    def cpu_s(self) -> float:
        """Median CPU time."""
        return statistics.median(self.cpu)

    def spread(self, values: list[float]) -> float | None:
        """Return half the interquartile range, which a few disturbed repeats do not move.

        A single value has none.
        """
        if len(values) < 2:
            return None
        lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
        return (upper - lower) / 2


@cache
def warm(solver_name: str) -> None:
    """Load and call a solver's compiled code once in this process; forks inherit it."""
    from svmbench.baselines.catalogue import solver_class

    cls = solver_class(solver_name)
    if issubclass(cls, Solver):  # a foreign class: `fit_a_few_rows`
        warm_up(cls)


def fit_a_few_rows(estimator: Any, X: Any, y: np.ndarray | None) -> None:
    """Fit a foreign class once in this process, untimed, on a few rows.

    What it compiles or imports at its first fit is then no training time. Its errors are left to
    the fit that is measured.

    Parameters
    ----------
    estimator : object
        A foreign class, or a one-vs-one classifier of one; nothing happens for any other.
    X : ndarray or csr_array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,) or None
    """
    alone = estimator if hasattr(estimator, "wrapped") else getattr(estimator, "estimator", None)
    wrapped = getattr(alone, "wrapped", None)
    if wrapped is None or wrapped in _FITTED:
        return
    _FITTED.add(wrapped)
    of_each_class = np.unique(y, return_index=True)[1] if y is not None else np.arange(0)
    rows = np.unique(np.r_[: min(_FEW_ROWS, X.shape[0]), of_each_class]).astype(int)
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = clone(estimator)
        few.train(few.prepare(X[rows], None if y is None else y[rows]))


def fit_once(estimator: Any, X: Any, y: Any) -> tuple[Any, Timing]:
    """Fit once and time it; returns the prepared data, for `evaluate_objective`, and the timing."""
    timing = Timing()
    data = _prepare(estimator, X, y, timing)
    with quiet():
        _train(estimator, data, timing)
    return data, timing


def fit_repeatedly(estimator: Any, X: Any, y: Any) -> tuple[Any, Timing]:
    """Fit several times; measure the times, and the peak memory of the first fit.

    A fit is made `MIN_REPEATS` times unless that would take more than `MAX_REPEATS_TOTAL_S` in all.
    Shorter fits are repeated until they take `MIN_TOTAL_S` in all, at most `MAX_REPEATS` times.
    """
    timing = Timing()
    data = _prepare(estimator, X, y, timing)
    with quiet():
        before = reset_peak()
        _train(estimator, data, timing)
        # A program reports the memory of its own process.
        its_own = getattr(estimator, "peak_memory_mb_", None)
        timing.peak_memory = peak_since(before) if its_own is None else its_own
        while _too_few(timing.wall):
            _train(estimator, data, timing)
    return data, timing


def _too_few(seconds: list[float]) -> bool:
    """Return True if one more repeat would make the median steadier at little cost."""
    total, n = sum(seconds), len(seconds)
    if n < MIN_REPEATS:
        return total + total / n <= MAX_REPEATS_TOTAL_S
    return total < MIN_TOTAL_S and n < MAX_REPEATS


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the garbage collector out of a measured span."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _prepare(estimator: Any, X: Any, y: Any, timing: Timing) -> Any:
    fit_a_few_rows(estimator, X, y)
    start = time.perf_counter()
    data = estimator.prepare(X, y)
    timing.conversion = time.perf_counter() - start
    return data


def _train(estimator: Any, data: Any, timing: Timing) -> None:
    start = now()
    estimator.train(data)
    wall, cpu = since(start)
    timing.wall.append(wall)
    timing.cpu.append(cpu)


def since(start: tuple[float, float]) -> tuple[float, float]:
    """Return the wall and CPU seconds since the call of `now`, including started programs."""
    wall, cpu = now()
    return wall - start[0], cpu - start[1]


def status_bytes(pid: int | str = "self") -> dict[str, int]:
    """Return the sizes that the kernel states of a process, in bytes; empty outside Linux."""
    sizes: dict[str, int] = {}
    with contextlib.suppress(OSError), (PROC / str(pid) / "status").open() as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if rest.endswith(" kB\n"):
                sizes[name] = int(rest.split()[0]) * 1024
    return sizes


def reset_peak() -> float:
    """Reset the peak memory; return the resident memory in bytes, from which the peak counts."""
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return float("nan")
    return status_bytes().get("VmRSS", float("nan"))


def peak_since(before: float) -> float:
    """Return the growth of the peak since `reset_peak` in MiB; NaN if unknown."""
    # Mapped pages were touched before, so the growth of the peak is the solver's own memory.
    grown = status_bytes().get("VmHWM", float("nan")) - before
    return grown if math.isnan(grown) else max(0.0, grown / 2**20)
