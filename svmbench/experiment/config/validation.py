"""Validation of config files, with a cache of valid files that haven't changed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from svmbench.base.cached_entries import CachedEntries, surroundings
from svmbench.base.paths import read_regular
from svmbench.experiment.config.find import find_config

if TYPE_CHECKING:
    from svmbench.experiment.config.models import Config

#: Largest number of bytes of a config whose outline is cached; the largest shipped one has 15 kB.
MAX_KEPT_BYTES = 1 << 16


class Outline(NamedTuple):
    """The number of a valid config's blocks, and the names of its profiles."""

    n_blocks: int
    profiles: tuple[str, ...]


#: Outlines of valid configs, by a hash of the file and of everything else that validity depends on.
_outlines = CachedEntries("configs", __file__)


class Validation:
    """A validator of configs, which caches the outlines of valid ones.

    Parameters
    ----------
    trust : bool, default=False
        Whether foreign classes, programs and plug-ins are allowed. If so, the cache isn't used.
    """

    def __init__(self, *, trust: bool = False) -> None:
        self._trust = trust
        self._surroundings = "" if trust else surroundings()

    def outline(self, name: str) -> Outline:
        """Return the outline of a config, if it and each of its profiles are valid.

        Raises
        ------
        svmbench.base.errors.ConfigError
            If the config is invalid, with all mistakes.
        """
        path = find_config(name)
        key = self._key(path)
        known = _checked(_outlines.find(key)) if key else None
        if known is not None:
            return known
        # The import of all solvers takes 2 s of CPU time.
        from svmbench.experiment.config.loader import apply_profile, check_config

        config = check_config(path, trust=self._trust, files=True)
        for profile in config.profiles:
            apply_profile(config, profile)
        outline = Outline(len(config.blocks), tuple(config.profiles))
        if key and key == self._key(path) and _is_self_contained(config):
            _outlines.new[key] = outline
        return outline

    def write_cache(self) -> None:
        """Write the outlines to the cache, for later processes."""
        _outlines.write()

    def _key(self, path: Path) -> str:
        """Return the key of a config's outline, or an empty text if it can't be cached."""
        try:
            content = read_regular(path, MAX_KEPT_BYTES)
        except OSError:
            return ""
        known = self._surroundings
        return known and hashlib.sha256(known.encode() + content).hexdigest()


def _is_self_contained(config: Config) -> bool:
    """Return True if the validity of a config doesn't depend on data files or programs.

    Without ``--trust``, a config may name classes of scikit-learn, whose version is part of the
    key, but no classes of other packages.
    """
    from svmbench.baselines.templates import is_program
    from svmbench.experiment.config.checks import all_datasets, all_solvers

    return not (
        any(is_program(spec.name) for spec in all_solvers(config))
        or any(spec.is_own for spec in all_datasets(config))
    )


def _checked(entry: Any) -> Outline | None:
    """Return an entry of the cache as an outline, or None if it is damaged or missing."""
    try:
        n_blocks, profiles = entry
        return Outline(int(n_blocks), tuple(map(str, profiles)))
    except (TypeError, ValueError):
        return None
