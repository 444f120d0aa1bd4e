"""The protocols: what one cell does with its rows, its solver and its grid. One file each.

A protocol declares itself where its function stands (``declare.py`` has the decorator); this module
finds them all. Those of plug-ins (:mod:`svmbench.baselines.catalogue`) take part as well.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from svmbench.experiment.protocols.declare import REGISTRY, Protocol


@cache
def _declare_own() -> None:
    from svmbench.baselines.catalogue import load_plugins

    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        import_module(module.name)
    load_plugins()


def protocols() -> dict[str, Protocol]:
    """Return every protocol by its name."""
    _declare_own()
    return dict(REGISTRY)
