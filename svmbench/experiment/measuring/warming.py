"""Compilation of the solvers' loops ahead of any run, several solvers at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from svmbench.base.parallel_map import parallel_map
from svmbench.experiment.measuring.measure import warm


def warm_all(names: Sequence[str], jobs: int = 1) -> Iterator[tuple[str, float]]:
    """Compile the loops of solvers, or load them where the cache has them.

    Parameters
    ----------
    names : sequence of str
        Solvers that are declared.
    jobs : int, default=1
        Processes that compile; with 1 it is this one.

    Yields
    ------
    name : str
        In the order in which they are ready.
    seconds : float
        Wall time that it took. A loop that two solvers call is compiled for the first that comes
        to it, or by both at once.
    """
    if jobs == 1 or len(names) < 2:
        yield from map(_timed, names)
    else:
        yield from parallel_map(_timed, names, jobs)


def _timed(name: str) -> tuple[str, float]:
    start = perf_counter()
    warm(name)
    return name, perf_counter() - start
