"""Names that plug-ins import: solvers, protocols, scores, kinds of plot, output formats.

These names stay; where they are defined may change. `plugins.pyi` lists them. Nothing is imported
before it is asked for, and no module of this package imports this one. `folds` and `outcomes` are
modules: splits and scaling; one fit and its scores.
"""

from importlib import import_module
from typing import Any

import lazy_loader

_find, __dir__, __all__ = lazy_loader.attach_stub("svmbench", __file__)


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for."""
    if name in ("folds", "outcomes"):
        return import_module(f"svmbench.experiment.protocols.{name}")
    return _find(name)
