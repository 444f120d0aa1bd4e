"""Names of plug-ins from the environment variable and entry points, found without imports."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import EntryPoint, entry_points

#: The environment variable with the names of modules of plug-ins, separated by commas.
VARIABLE = "SVMBENCH_PLUGINS"
#: The group of entry points by which installed packages declare plug-ins.
PLUGINS_ENTRY_POINTS = "svmbench.plugins"


def named_modules() -> list[str]:
    """Return the modules that the environment variable names."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name]


@cache
def installed_plugins() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name."""
    entries = sorted(
        entry_points(group=PLUGINS_ENTRY_POINTS),
        key=lambda entry: (entry.name, entry.value),
        reverse=True,
    )
    return {entry.name: entry for entry in entries}
