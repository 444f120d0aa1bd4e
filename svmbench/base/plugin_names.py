"""Names of plug-ins, found without importing any: the environment variable, and entry points."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import EntryPoint, entry_points

#: The environment variable that names modules, separated by commas.
VARIABLE = "SVMBENCH_PLUGINS"
#: The group of entry points of installed packages.
PLUGINS_ENTRY_POINTS = "svmbench.plugins"


def named_modules() -> list[str]:
    """Return the modules that the environment variable names."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name]


@cache
def installed_plugins() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by the names that they declare."""
    found = sorted(
        entry_points(group=PLUGINS_ENTRY_POINTS),
        key=lambda one: (one.name, one.value),
        reverse=True,
    )
    return {one.name: one for one in found}
