"""What coverage need not do: a third of its cost, and no line of ours.

Its tracer is called for every function that Python enters, whosever it is. Numba's compiler and
matplotlib's drawing enter millions and call nothing of this package but a few intrinsics. And in
each worker it asks for the source of its own call stack, where `inspect` looks through all modules
that are loaded, and for the files that were never imported, which the parent knows as well: a
fork of 15 ms becomes one of 180.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing import spawn
from typing import Any

#: Modules, classes and the methods during which nothing is traced.
FOREIGN = (
    ("numba.core.dispatcher", "Dispatcher", "compile"),
    ("matplotlib.figure", "Figure", "savefig"),
)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is not traced, nor what it calls; what follows is as before."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.settrace(tracer)

    return quiet


def leave_out_foreign_work() -> None:
    """Trace none of it from here on."""
    for module, owner, name in FOREIGN:
        holder = getattr(import_module(module), owner)
        setattr(holder, name, untraced(getattr(holder, name)))


#: What a worker does before coverage starts in it.
SPARE_WORKER = """
import coverage.collector, coverage.inorout
coverage.collector.short_stack = str  # for messages of its debugger alone
coverage.inorout.InOrOut.find_possibly_unexecuted_files = lambda self: iter(())
"""


class Spared:
    """Runs `SPARE_WORKER` wherever it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return exec, (SPARE_WORKER, {})


def spare_workers() -> None:
    """Send each worker that is started from here on what spares it the needless."""
    told = spawn.get_preparation_data
    spawn.get_preparation_data = lambda name: {**told(name), "spared": Spared()}
