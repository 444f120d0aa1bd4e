"""Where things lie: the user's cache, and the files that ship with the package."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def cache_dir() -> Path:
    """Return the cache folder: ``SVMBENCH_CACHE``, else ``svmbench`` in the user's cache."""
    named = os.environ.get("SVMBENCH_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "svmbench"


def asset(name: str) -> Path:
    """Return where ``datasets.toml`` or ``configs`` lies: in a checkout, or in a wheel."""
    installed = PACKAGE / "_assets" / name
    return installed if installed.exists() else PACKAGE.parent / name
