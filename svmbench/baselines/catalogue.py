"""Every solver of the suite, found by importing the modules of `core` and `baselines`.

A solver enters the registry where its class stands, by `declare`; importing its
module is all it takes. This module imports them all, once, and after them the modules that the
environment variable ``SVMBENCH_PLUGINS`` names (separated by commas): a solver of your own takes
part without a change to this package.

An installed package names its plug-ins as entry points of the group ``svmbench.plugins``: the
entry point has the name of the solver, protocol, score or kind of plot that its module declares.
They are listed without being imported. One is imported when a config or a command names it and
``--trust`` allows it; a name that this package has itself stays its own.
"""

from __future__ import annotations

import os
import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from svmbench.base.errors import SvmbenchError, UnknownNameError
from svmbench.base.escape import line
from svmbench.base.plugin_names import VARIABLE, installed_plugins, named_modules
from svmbench.base.renames import present_name
from svmbench.baselines.templates import is_program
from svmbench.schema.scores import SCORES


@cache
def _registry() -> dict[str, Any]:
    _declare_own()
    load_plugins()
    from svmbench.core.contract.registry import REGISTRY

    return dict(sorted(REGISTRY.items()))


@cache
def _declare_own() -> None:
    """Import every module of `core` and `baselines`."""
    for name in ("svmbench.core", "svmbench.baselines"):
        package = import_module(name)
        for module in pkgutil.walk_packages(package.__path__, prefix=f"{name}."):
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
    plugins = named_modules()
    if plugins:
        _declare_own()
    for plugin in plugins:
        try:
            import_module(plugin)
        except ImportError as error:
            raise SvmbenchError(f"{VARIABLE}: can't import {plugin!r}: {_said(error)}") from error


def _said(error: ImportError) -> str:
    """Return what an import says, and where the module is now if it has moved."""
    former = error.name or ""
    now = present_name(former)
    return str(error) if now == former else f"{error} ({former} is {now} now)"


def why_not_loaded(name: str, *, trust: bool = False) -> str:
    """Import the installed plug-in that declares a name; return why not, in a sentence.

    Once imported, it takes part in this process and in those that it starts as if
    ``SVMBENCH_PLUGINS`` named it.

    Parameters
    ----------
    name : str
        Of a solver, a protocol, a score or a kind of plot.
    trust : bool, default=False
        Whether other people's code may be imported.

    Returns
    -------
    str
        Empty where it is imported, and for a name that no installed package declares.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If it can't be imported.
    """
    entry = installed_plugins().get(name)
    if entry is None or entry.module in named_modules() or name in _registry() or name in SCORES:
        return ""
    package = line(entry.dist.name if entry.dist else "?", 60)
    if not trust:
        return f"{name!r} is of the package {package}; --trust imports it, which runs its code"
    _declare_own()
    try:
        import_module(entry.module)
    except Exception as error:
        said = line(f"{type(error).__name__}: {error}", 300)
        raise SvmbenchError(
            f"can't import {entry.module} of the package {package}: {said}"
        ) from error
    os.environ[VARIABLE] = ",".join([*named_modules(), entry.module])
    _registry.cache_clear()
    return ""


def solvers() -> dict[str, Any]:
    """Return the :class:`~svmbench.core.contract.declaration.Declaration` of every solver."""
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


def one_vs_one(estimator: Any) -> Any:
    """Return a classifier of any number of classes, from a two-class solver."""
    from svmbench.core.models.multiclass import OneVsOne

    return OneVsOne(estimator)


def modules_of(name: str, task: str) -> tuple[str, ...]:
    """Return the modules in which the classes stand that a solver's name means in a task.

    Parameters
    ----------
    name : str
        As :func:`solver_class` takes it.
    task : str
        ``"binary"``, ``"multiclass"`` or ``"one-class"``.
    """
    cls = solver_class(name)
    classes = [cls, *([cls.wrapped] if hasattr(cls, "wrapped") else [])]
    if task == "multiclass" and cls.declaration.task == "binary":
        classes.append(type(one_vs_one(None)))
    return tuple(dict.fromkeys(one.__module__ for one in classes))


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
