"""Find the file of a config by its path or its name."""

from __future__ import annotations

from pathlib import Path

from svmbench.base.errors import ConfigError, suggestion
from svmbench.base.paths import shipped_configs


def find_config(name: str) -> Path:
    """Return the path of a config: a file, or the name of one that ships with the package.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If there is no such file or name; the message suggests the most similar shipped name.
    """
    path = Path(name)
    try:
        if path.is_file():
            return path
        if (path / "plan.json").is_file():
            raise ConfigError(
                f"{name} is a results folder, and a run needs a config: give the one that made the"
                f" folder, or make its tables again with 'svmbench table {name}'"
            )
        if path.is_dir():
            configs = ", ".join(sorted(file.name for file in path.glob("*.yaml"))[:5])
            content = f" (it has {configs})" if configs else ""
            raise ConfigError(f"{name} is a folder; a config is a YAML file{content}")
    except OSError as error:  # such as a name that is too long
        raise ConfigError(f"{name}: {error.strerror or error}") from error
    shipped = {p.stem: p for p in shipped_configs()}
    if path.stem in shipped and path.parent.name in {"", "configs"}:
        return shipped[path.stem]
    raise ConfigError(
        f"{name}: no such config file{suggestion(path.stem, list(shipped))}"
        " ('svmbench list configs' shows those that ship with svmbench)"
    )
