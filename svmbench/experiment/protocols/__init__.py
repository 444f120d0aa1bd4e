"""The protocols: what one cell does with its rows, its solver and its grid. One file each.

A protocol declares itself where its function stands (``declare.py`` has the decorator); this module
finds them all. Those of modules that ``SVMBENCH_PLUGINS`` names take part as well.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from svmbench.experiment.protocols.declare import REGISTRY, Protocol


@cache
def _found() -> dict[str, Protocol]:
    from svmbench.baselines.catalogue import load_plugins

    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        import_module(module.name)
    load_plugins()
    return dict(REGISTRY)


def protocols() -> dict[str, Protocol]:
    """Return every protocol by its name."""
    return _found()
