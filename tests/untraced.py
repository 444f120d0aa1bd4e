"""Work of other packages that coverage need not follow: a third of its cost, and no line of ours.

Coverage's tracer is called for every function that Python enters, whosever it is. Numba's compiler
and matplotlib's drawing enter millions and call nothing of this package but a few intrinsics.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
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
