"""The same for each of several items, in processes of their own, that end with the command."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    """Call a function with each item, in up to `jobs` processes.

    Whatever ends the loop over the results (Ctrl-C, an error of one of the calls), or this process
    (SIGKILL), ends the others too, where they are: what they write has to bear that.

    Parameters
    ----------
    function : callable
        Can be pickled; so can what it takes and returns.
    items : iterable
    jobs : int

    Yields
    ------
    result : object
        As soon as there is one, in no order.

    Raises
    ------
    concurrent.futures.process.BrokenProcessPool
        If one of the processes dies.
    """
    items = list(items)
    # Not forked: a parent that has BLAS or Numba threads can't be forked safely.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        max(1, min(jobs, len(items))), mp_context=context, initializer=_end_with_parent
    )
    try:
        for done in as_completed([pool.submit(function, item) for item in items]):
            yield done.result()
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Have this process end once its parent has: the executor's would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
