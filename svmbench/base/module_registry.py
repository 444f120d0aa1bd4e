"""A registry of objects: one from each module of a folder, and those that plug-ins declare."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, Generic, TypeVar

from svmbench.base.errors import UnknownNameError
from svmbench.base.paths import PACKAGE

Object = TypeVar("Object")


class ModuleRegistry(Generic[Object]):
    """Objects by name, from a folder's modules and from plug-ins.

    An object of the folder has the name of its module. The module is imported when the object is
    first used; listing the names needs no import.

    Parameters
    ----------
    thing : str
        The noun for an object in error messages, such as ``"kind of plot"``.
    folder : str
        The dotted path of the modules' folder below ``svmbench``.
    variable : str
        The name of the object in each module.
    """

    def __init__(self, thing: str, folder: str, variable: str) -> None:
        self.thing, self.folder, self.variable = thing, folder, variable
        #: Folders with modules; a test adds its own.
        self.paths = [str(PACKAGE.joinpath(*folder.split(".")))]
        self._declared: dict[str, Object] = {}

    def names(self) -> list[str]:
        """Return the names of all objects."""
        modules = [module.name for module in pkgutil.iter_modules(self.paths)]
        return sorted({*modules, *self._declared})

    def declare(self, name: str, declared: Object) -> None:
        """Add the object of a plug-in.

        Raises
        ------
        ValueError
            If the name is taken.
        """
        if name in self.names():
            raise ValueError(f"the {self.thing} {name!r} exists already")
        self._declared[name] = declared

    def named(self, name: str) -> Object:
        """Return the object with a name.

        Raises
        ------
        UnknownNameError
            If there is no such object; the text suggests a similar name.
        """
        if name in self._declared:
            return self._declared[name]
        known = self.names()
        if name not in known:
            raise UnknownNameError(self.thing, name, known)
        module: Any = import_module(f"svmbench.{self.folder}.{name}")
        loaded: Object = getattr(module, self.variable)
        return loaded
