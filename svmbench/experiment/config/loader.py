"""Reading of a config: YAML text to a `Config`, cut by a profile, with errors that name the place.

A config holds *blocks*. A block is one protocol over data sets and solvers; a table or a plot shows
one block. Data sets, solvers and seed at the top of a config hold for all blocks without their own.
A *profile* cuts sizes, grids and folds so that the same experiment fits another budget.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from svmbench.base.errors import ConfigError, suggestion
from svmbench.base.paths import shipped_configs
from svmbench.baselines.catalogue import why_not_loaded
from svmbench.experiment.config.checks import check_files, check_names, cross_check
from svmbench.experiment.config.counts import check_counts
from svmbench.experiment.config.find import find_config
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.models import Config
from svmbench.experiment.config.partial_parse import Draft, read_draft
from svmbench.experiment.config.profiles import apply_profile
from svmbench.experiment.config.requested_metrics import check_requested_metrics
from svmbench.experiment.config.yaml_source import ConfigPlace, YamlSource, parse_value, shorten
from svmbench.experiment.protocols import protocols
from svmbench.schema.specs import PLOT_KINDS

__all__ = ["apply_profile", "check_config", "find_config", "load_config", "shipped_configs"]


def load_config(path: Path, overrides: tuple[str, ...] = ()) -> Config:
    """Read, override and validate a config, by itself: no solver or data set is looked for.

    Parameters
    ----------
    path : Path
    overrides : tuple of str
        ``key=value`` pairs of the command line; a dotted key descends, list items by index or,
        where they have one, by name (``blocks.cv.folds=3``); ``+`` appends an item to a list.

    Raises
    ------
    svmbench.base.errors.ConfigError
        With every problem at once, each with file, line and column.
    """
    config, findings, _ = _read(YamlSource.read(path), overrides)
    return _whole(config, findings)


def check_config(
    path: Path, overrides: tuple[str, ...] = (), *, trust: bool = False, files: bool = False
) -> Config:
    """Read, override and validate a config, with all that it names: solvers, data sets, metrics.

    Parameters
    ----------
    path : Path
    overrides : tuple of str
        As of :func:`load_config`.
    trust : bool, default=False
        Whether classes are imported that come from elsewhere than scikit-learn.
    files : bool, default=False
        Whether a data file that is not there is a mistake; a run opens those that it is asked for.
        Programs then need no `trust`, because this only validates.

    Raises
    ------
    svmbench.base.errors.ConfigError
        With every problem at once: what can't be read, what refers to nothing, what there is not.
        Each with its place (an override is named as it was given) and, where something is near,
        what may have been meant.
    """
    return check_source(YamlSource.read(path), overrides, trust=trust, files=files)


def check_source(
    source: YamlSource, overrides: tuple[str, ...] = (), *, trust: bool = False, files: bool = False
) -> Config:
    """Validate a parsed document, as :func:`check_config` does with a file."""

    def why_not(name: str) -> str:
        own = name in protocols() or name in PLOT_KINDS.names()
        return "" if own else why_not_loaded(name, trust=trust)

    config, findings, draft = _read(source, overrides, why_not)
    if config is not None:
        check_names(draft, findings, trust=trust, programs=files)
        if files:
            check_files(draft, findings)
    return _whole(config, findings)


def _read(
    source: YamlSource,
    overrides: tuple[str, ...],
    why_not: Callable[[str], str] = lambda name: "",
) -> tuple[Config | None, Findings, Draft]:
    """Return the readable part of a config, and the mistakes that need no lookup elsewhere.

    `why_not` says of a name why it can't be had, after doing what it takes to have it: before the
    config is read, so that the settings of a plug-in's protocol are known.
    """
    data = copy.deepcopy(source.data)
    findings = Findings(source)
    if not isinstance(data, dict):
        raise ConfigError(
            [*findings] or f"{source.name}:1:1: a config is a mapping of keys to values"
        )
    for override in overrides:
        said = _override(data, override, source)
        if said:
            findings.of_the_command(said)
    missing = [(place, said) for place, name in _named(data) if (said := why_not(name))]
    for place, said in missing:
        findings.add(place, said, place)
    if missing:
        raise ConfigError(list(findings))
    Config.know_protocols()
    draft = read_draft(data, findings)
    if draft.config is not None and check_counts(draft, findings):
        cross_check(draft, findings)
        check_requested_metrics(draft, findings)
    return draft.config, findings, draft


def _named(data: dict[str, Any]) -> Iterator[tuple[ConfigPlace, str]]:
    """Yield the names of solvers, protocols, scores and kinds of plot of a config, with places."""
    blocks = data.get("blocks")
    parts: list[tuple[ConfigPlace, Any]] = [((), data)]
    parts += [(("blocks", i), one) for i, one in enumerate(_items(blocks))]
    for place, part in parts:
        if not isinstance(part, dict):
            continue
        for key, inner in (("solvers", "name"), ("scores", "name"), ("plots", "kind")):
            for i, one in enumerate(_items(part.get(key))):
                yield from _text((*place, key, i), one)
                if isinstance(one, dict):
                    yield from _text((*place, key, i, inner), one.get(inner))
        yield from _text((*place, "protocol"), part.get("protocol"))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(place: ConfigPlace, value: Any) -> Iterator[tuple[ConfigPlace, str]]:
    if isinstance(value, str):
        yield place, value


def _whole(config: Config | None, findings: Findings) -> Config:
    if len(findings) or config is None:
        raise ConfigError(list(findings))
    return config


def _override(data: dict[str, Any], text: str, source: YamlSource) -> str:
    """Change one value as ``--set`` asks for; return why that can't be, or nothing."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        return f"--set {shorten(text)}: expected key=value"
    try:
        parsed = parse_value(value)
        place = _place_of(data, key)
    except ConfigError as error:
        return f"--set {shorten(text)}: {str(error).removeprefix('--set:1:')}"
    holder: Any = data
    for part, after in itertools.pairwise(place):
        if isinstance(holder, dict) and holder.get(part) is None:
            holder[part] = [] if isinstance(after, int) else {}
        holder = holder[part]
    if isinstance(holder, list) and place[-1] == len(holder):
        holder.append(parsed)
    else:
        holder[place[-1]] = parsed
    source.override(place, text)
    return ""


def _place_of(data: Any, key: str) -> ConfigPlace:
    """Return the place that a dotted key means."""
    place: ConfigPlace = ()
    target: Any = data
    for part in key.split("."):
        if target is None and part == "+":
            place = (*place, 0)
        elif isinstance(target, dict) or target is None:
            place = (*place, part)
            target = (target or {}).get(part)
        elif isinstance(target, list) and part == "+":
            place, target = (*place, len(target)), None
        elif isinstance(target, list):
            named = {
                str(item[key]): i
                for key in ("name", "label")
                for i, item in reversed(list(enumerate(target)))
                if isinstance(item, dict) and key in item
            }
            index = int(part) if part.isdecimal() and len(part) < 10 else named.get(part, -1)
            if not 0 <= index < len(target):
                known = list(named) or [str(i) for i in range(len(target))]
                hint = suggestion(part, known) or f" (there is: {', '.join(known[:10])})"
                raise ConfigError(f"there is no item {shorten(part)!r}{hint}")
            place, target = (*place, index), target[index]
        else:
            raise ConfigError(f"{shorten(part)!r} can't be looked up inside a plain value")
    return place
