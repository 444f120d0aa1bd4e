"""The catalogue of all solvers: those of `core`, of `baselines` and of plug-ins.

The decorator `declare` registers a solver when its module is imported. This module imports all
modules of `core` and `baselines`, and then the modules that the environment variable
``SVMBENCH_PLUGINS`` names (separated by commas).

An installed package names its plug-ins as entry points of the group ``svmbench.plugins``. The name
of an entry point is the name of the solver, protocol, score or kind of plot that its module
declares. Listing the entry points imports nothing. A plug-in is imported when a config or a command
names it and ``--trust`` allows it. It can't replace a name of this package.
"""

from __future__ import annotations

import os
import pkgutil
import re
from functools import cache
from importlib import import_module
from typing import Any

from svmbench.base.errors import SvmbenchError, UnknownNameError
from svmbench.base.escape import line
from svmbench.base.plugin_names import VARIABLE, installed_plugins, named_modules
from svmbench.baselines.templates import is_program
from svmbench.schema.scores import SCORES

#: How the name of a class ends that is declared to solve a problem.
_PROBLEM = re.compile(r" \[(?P<problem>[a-z-]+)(, offset (?P<offset>free|none|[0-9.e+-]+))?\]$")


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
    """Import the modules that ``SVMBENCH_PLUGINS`` names, which register their declarations.

    The solvers of this package are imported first, because a plug-in may build on them. A plug-in
    may also declare protocols, scores and kinds of plot.

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
            raise SvmbenchError(f"{VARIABLE}: can't import {plugin!r}: {error}") from error


def why_not_loaded(name: str, *, trust: bool = False) -> str:
    """Import the installed plug-in that declares a name; return the reason if it isn't allowed.

    After the import, this process and its child processes use the plug-in as if
    ``SVMBENCH_PLUGINS`` named it.

    Parameters
    ----------
    name : str
        Name of a solver, a protocol, a score or a kind of plot.
    trust : bool, default=False
        True to allow the import of other people's code.

    Returns
    -------
    str
        Empty after the import, and for a name that no installed package declares.

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
        return (
            f"{name!r} belongs to the package {package}; --trust allows its import, which runs code"
        )
    _declare_own()
    try:
        import_module(entry.module)
    except Exception as error:
        message = line(f"{type(error).__name__}: {error}", 300)
        raise SvmbenchError(
            f"can't import {entry.module} from the package {package}: {message}"
        ) from error
    os.environ[VARIABLE] = ",".join([*named_modules(), entry.module])
    _registry.cache_clear()
    return ""


def solvers() -> dict[str, Any]:
    """Return the :class:`~svmbench.core.contract.declaration.Declaration` of every solver."""
    return {name: cls.declaration for name, cls in _registry().items()}


def solver_class(name: str) -> Any:
    """Return the class of a solver, of a dotted path, or of a program.

    Parameters
    ----------
    name : str
        The declared name of a solver, a dotted path of a class, or the commands of a program.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        If the name is unknown; the message suggests the most similar one.
    """
    if is_program(name):
        from svmbench.baselines.programs import program

        return program(name)
    if "." in name:  # a dotted path; names of solvers are in kebab case
        return _class_at(name)
    known = _registry()
    if name not in known:
        raise UnknownNameError("solver", name, list(known))
    return known[name]


@cache
def _class_at(name: str) -> Any:
    """Return the adapted class at a dotted path, with the problem that the name ends with."""
    from svmbench.baselines.foreign import adapted

    path, problem, offset = split_problem(name)
    cls = adapted(path)
    if not problem:
        return cls
    fields = {"certified_as": (problem, offset), "__module__": cls.__module__}
    return type(cls.__name__, (cls,), fields)


def with_problem(name: str, problem: str, offset: str | float | None) -> str:
    """Return the name of a class that solves a problem, whose models can so be certified."""
    offset_text = "" if offset is None else f", offset {offset}"
    return f"{name} [{problem}{offset_text}]"


def split_problem(name: str) -> tuple[str, str, str | float | None]:
    """Return the parts of a name from `with_problem`: name, problem and offset.

    The problem is "" and the offset None where the name has none.
    """
    match = _PROBLEM.search(name)
    if match is None:
        return name, "", None
    offset = match["offset"]
    is_word = offset in (None, "free", "none")
    return name[: match.start()], match["problem"], offset if is_word else float(offset)


def one_vs_one(estimator: Any) -> Any:
    """Return a classifier for any number of classes, made from a two-class solver.

    A foreign class or a program, whose problem is not known, gets scikit-learn's.
    """
    if not estimator.declaration.problem:
        from svmbench.baselines.foreign import adapted

        pairs = adapted("sklearn.multiclass.OneVsOneClassifier")(estimator)
        if hasattr(estimator, "cpu_clock"):
            pairs.cpu_clock = estimator.cpu_clock
        return pairs
    from svmbench.core.models.multiclass import OneVsOne

    return OneVsOne(estimator)


def modules_of_solvers(name: str, task: str) -> tuple[str, ...]:
    """Return the modules of the classes that implement a solver for a task.

    Parameters
    ----------
    name : str
        As for :func:`solver_class`.
    task : str
        ``"binary"``, ``"multiclass"`` or ``"one-class"``.
    """
    cls = solver_class(name)
    classes = [cls, *([cls.wrapped] if hasattr(cls, "wrapped") else [])]
    if task == "multiclass" and cls.declaration.task == "binary":
        classes.append(type(one_vs_one(cls)))
    return tuple(dict.fromkeys(called.__module__ for called in classes))


def solver(name: str, **params: Any) -> Any:
    """Build a solver, which is a scikit-learn estimator.

    Parameters
    ----------
    name : str
        Name of the solver, as ``svmbench list solvers`` shows it.
    **params
        Parameters of the solver; ``svmbench.solver(name).get_params()`` lists them.

    Raises
    ------
    svmbench.base.errors.UnknownNameError
        If the name or a parameter doesn't exist.

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
