"""Every solver of the suite: found by looking through the two rooms that hold them.

A solver enters the registry where its class stands, by `declare`; importing its
module is all it takes. This module imports them all, once, and after them the modules that the
environment variable ``SVMBENCH_PLUGINS`` names (separated by commas): a solver of your own takes
part without a change to this package.
"""

from __future__ import annotations

import os
import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from svmbench.base.errors import SvmbenchError, UnknownNameError
from svmbench.base.renames import present_name
from svmbench.baselines.templates import is_program


@cache
def _registry() -> dict[str, Any]:
    _declare_own()
    load_plugins()
    from svmbench.core.contract.registry import REGISTRY

    return dict(sorted(REGISTRY.items()))


@cache
def _declare_own() -> None:
    """Import every module of the two rooms."""
    for room in ("svmbench.core", "svmbench.baselines"):
        package = import_module(room)
        for module in pkgutil.walk_packages(package.__path__, prefix=f"{room}."):
            import_module(module.name)


def load_plugins() -> None:
    """Import the modules that ``SVMBENCH_PLUGINS`` names: what they declare takes part.

    They are imported after this package's solvers, on which they may build, whoever asks first: a
    plug-in may bring a protocol or a score, too.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If one can't be imported.
    """
    plugins = list(filter(None, os.environ.get("SVMBENCH_PLUGINS", "").split(",")))
    if plugins:
        _declare_own()
    for plugin in plugins:
        try:
            import_module(plugin.strip())
        except ImportError as error:
            now = present_name(error.name or "")
            moved = "" if now == (error.name or "") else f" ({error.name} is {now} now)"
            msg = f"SVMBENCH_PLUGINS: can't import {plugin!r}: {error}{moved}"
            raise SvmbenchError(msg) from error


def solvers() -> dict[str, Any]:
    """Return every solver's :class:`~svmbench.core.contract.base.Declaration` by its name."""
    return {name: cls.declaration for name, cls in _registry().items()}


def solver_class(name: str) -> Any:
    """Return the class behind a solver's name, a class of others, or that of a program.

    Parameters
    ----------
    name : str
        As it was declared; a dotted path; or a program's commands.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        With the nearest known name.
    """
    if is_program(name):
        from svmbench.baselines.programs import program

        return program(name)
    if "." in name:  # a class by its path; declared solvers have names in kebab case
        from svmbench.baselines.foreign import adapted

        return adapted(name)
    known = _registry()
    if name not in known:
        raise UnknownNameError("solver", name, list(known))
    return known[name]


def solver(name: str, **params: Any) -> Any:
    """Build a solver, a scikit-learn estimator.

    Parameters
    ----------
    name : str
        As ``svmbench list solvers`` shows it.
    **params
        Its parameters; ``svmbench.solver(name).get_params()`` lists them.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        For a name, or a parameter, that does not exist.

    Examples
    --------
    >>> import svmbench
    >>> model = svmbench.solver("alsvm", C=2.0)
    >>> model.fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[3.5]])
    array([1])
    """
    cls = solver_class(name)
    known = list(cls._get_param_names())
    for param in params:
        if param not in known:
            raise UnknownNameError(f"parameter of {name}", param, known)
    return cls(**params)
