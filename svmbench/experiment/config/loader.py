"""Reading of a config: from YAML text to a `Config`, with errors that name the place in the file.

A config holds *blocks*. A block is one protocol with its data sets and solvers; a table or a plot
shows one block. Data sets and solvers at the top of a config apply to all blocks that have none.
A *profile* cuts sizes, grids and folds so that the same experiment fits another time budget.
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
    """Read, override and validate a config, without looking up its solvers and data sets.

    Parameters
    ----------
    path : Path
    overrides : tuple of str
        ``key=value`` pairs of the command line. A dotted key names a nested value; list items go by
        index or by name (``blocks.cv.folds=3``); ``+`` appends an item to a list.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the config is invalid, with all mistakes, each with file, line and column.
    """
    config, findings, _ = _read(YamlSource.read(path), overrides)
    return _without_findings(config, findings)


def check_config(
    path: Path, overrides: tuple[str, ...] = (), *, trust: bool = False, files: bool = False
) -> Config:
    """Read, override and validate a config, and look up its solvers, data sets and metrics.

    Parameters
    ----------
    path : Path
    overrides : tuple of str
        See :func:`load_config`.
    trust : bool, default=False
        Whether to import classes of other packages than scikit-learn, which runs their code, and
        to accept programs.
    files : bool, default=False
        Whether to report missing data files. Programs then need no `trust`, because none is
        started: the config is only validated.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the config is invalid, with all mistakes: unreadable values, references to nothing,
        unknown names. Each has its place in the file, or the override, and suggests a similar name
        if there is one.
    """
    return check_source(YamlSource.read(path), overrides, trust=trust, files=files)


def check_source(
    source: YamlSource, overrides: tuple[str, ...] = (), *, trust: bool = False, files: bool = False
) -> Config:
    """Validate a parsed document like :func:`check_config`."""

    def why_not(name: str) -> str:
        is_known = name in protocols() or name in PLOT_KINDS.names()
        return "" if is_known else why_not_loaded(name, trust=trust)

    config, findings, draft = _read(source, overrides, why_not)
    if config is not None:
        check_names(draft, findings, trust=trust, programs=files)
        if files:
            check_files(draft, findings)
    return _without_findings(config, findings)


def _read(
    source: YamlSource,
    overrides: tuple[str, ...],
    why_not: Callable[[str], str] = lambda name: "",
) -> tuple[Config | None, Findings, Draft]:
    """Return the readable part of a config, its mistakes so far, and its draft.

    `why_not` loads the plug-in of a name and returns why that fails, or an empty text. It is called
    before the config is read, so that the settings of a plug-in's protocol are known.
    """
    data = copy.deepcopy(source.data)
    findings = Findings(source)
    if not isinstance(data, dict):
        raise ConfigError(
            [*findings] or f"{source.name}:1:1: a config is a mapping of keys to values"
        )
    for override in overrides:
        message = _override(data, override, source)
        if message:
            findings.of_the_command(message)
    missing = [(place, reason) for place, name in _names(data) if (reason := why_not(name))]
    for place, reason in missing:
        findings.add(place, reason, place)
    if missing:
        raise ConfigError(list(findings))
    Config.know_protocols()
    draft = read_draft(data, findings)
    if draft.config is not None and check_counts(draft, findings):
        cross_check(draft, findings)
        check_requested_metrics(draft, findings)
    return draft.config, findings, draft


def _names(data: dict[str, Any]) -> Iterator[tuple[ConfigPlace, str]]:
    """Yield places and names of the solvers, scores, plot kinds and protocols of a config."""
    blocks = data.get("blocks")
    parts: list[tuple[ConfigPlace, Any]] = [((), data)]
    parts += [(("blocks", i), item) for i, item in enumerate(_items(blocks))]
    for place, part in parts:
        if not isinstance(part, dict):
            continue
        for key, inner in (("solvers", "name"), ("scores", "name"), ("plots", "kind")):
            for i, item in enumerate(_items(part.get(key))):
                yield from _text((*place, key, i), item)
                if isinstance(item, dict):
                    yield from _text((*place, key, i, inner), item.get(inner))
        yield from _text((*place, "protocol"), part.get("protocol"))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(place: ConfigPlace, value: Any) -> Iterator[tuple[ConfigPlace, str]]:
    if isinstance(value, str):
        yield place, value


def _without_findings(config: Config | None, findings: Findings) -> Config:
    """Return the config, or raise ConfigError with the findings."""
    if len(findings) or config is None:
        raise ConfigError(list(findings))
    return config


def _override(data: dict[str, Any], text: str, source: YamlSource) -> str:
    """Change the value that ``--set`` names; return an error message, or an empty text."""
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
    """Return the place of the value that a dotted key names."""
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
            index_of = {
                str(item[key]): i
                for key in ("name", "label")
                for i, item in reversed(list(enumerate(target)))
                if isinstance(item, dict) and key in item
            }
            index = int(part) if part.isdecimal() and len(part) < 10 else index_of.get(part, -1)
            if not 0 <= index < len(target):
                known = list(index_of) or [str(i) for i in range(len(target))]
                hint = suggestion(part, known) or f" (there is: {', '.join(known[:10])})"
                raise ConfigError(f"there is no item {shorten(part)!r}{hint}")
            place, target = (*place, index), target[index]
        else:
            raise ConfigError(f"{shorten(part)!r} can't be looked up inside a plain value")
    return place
