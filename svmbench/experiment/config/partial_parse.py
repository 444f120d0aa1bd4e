"""Parse the valid part of a faulty config, so that all its mistakes are reported at once.

A wrong value is reported and removed. If a required value is removed, so is its item. The rest is
checked like any config. The names of removed items are kept, so that references to them are not
reported as mistakes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from svmbench.base.errors import nearest, suggestion
from svmbench.base.validation_messages import none_of, sentence
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.models import Config
from svmbench.experiment.config.yaml_source import ConfigPlace
from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import Block, DatasetSpec, SolverSpec
from svmbench.experiment.settings.values import OF_A_KEY, ExponentRange, PowerGrid
from svmbench.schema.specs import PlotSpec, TableSpec

#: Largest number of rounds; each removes at least one wrong value.
MAX_PARSE_ROUNDS = 40
#: The name of a placeholder block, for a config without a valid list of blocks.
PLACEHOLDER_BLOCK = "\0"
#: Placeholders for missing required keys.
_PLACEHOLDERS: dict[str, Any] = {
    "title": "untitled",
    "blocks": [{"name": PLACEHOLDER_BLOCK, "protocol": next(iter(protocols()))}],
}
#: Keys that set the dimensions that a block sweeps.
_SWEEPS = ("sweep", "sizes", "features")


class _Gone:
    """The type of the placeholder for an item that was removed from a list."""


GONE = _Gone()


@dataclass
class Draft:
    """The valid part of a config.

    Attributes
    ----------
    config : Config or None
        The config without its faulty values; None if no valid config is left.
    origins : dict of tuple to list of int
        By the place of a shortened list in the config: the indices of its items in the file.
    lost : dict of str to set of str
        Names of removed items, under ``blocks``, ``solvers`` and ``datasets``.
    nameless : set of str
        The kinds (these three, ``grid`` and ``sweep``) of removed items without a readable name.
    guessed : set of tuple
        Places in the file of the blocks whose protocol is unknown; they are read as blocks of a
        similarly named protocol.
    """

    config: Config | None = None
    origins: dict[ConfigPlace, list[int]] = field(default_factory=dict)
    lost: dict[str, set[str]] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    guessed: set[ConfigPlace] = field(default_factory=set)

    def place(self, place: ConfigPlace) -> ConfigPlace:
        """Return the place in the file of a value of the config."""
        original: ConfigPlace = ()
        for i, part in enumerate(place):
            origins = self.origins.get(place[:i])
            is_index = isinstance(part, int) and origins is not None and part < len(origins)
            original += (origins[part] if is_index else part,)  # type: ignore[index]
        return original

    def lacks(self, kind: str) -> bool:
        """Return True if items of a kind, such as ``solvers``, were removed."""
        return kind in self.lost or kind in self.nameless


def read_draft(data: Mapping[str, Any], findings: Findings) -> Draft:
    """Read the valid part of a document, and report the rest.

    Parameters
    ----------
    data : mapping
        The document, with overrides applied.
    findings : Findings
        Collects the mistakes of single values.
    """
    draft = Draft()
    remaining: Any = copy.deepcopy(dict(data))
    cut: set[ConfigPlace] = set()
    for _ in range(MAX_PARSE_ROUNDS):
        draft.origins.clear()
        compact = _compacted(remaining, (), (), draft.origins)
        try:
            draft.config = Config.model_validate(compact)
        except ValidationError as error:
            for item in error.errors():
                place = _real_place(item["loc"], compact, item["type"] == "missing")
                _handle_error(item, draft.place(place), remaining, findings, draft, cut)
        else:
            return draft
    return draft


def _compacted(
    value: Any, place: ConfigPlace, shown: ConfigPlace, origins: dict[ConfigPlace, list[int]]
) -> Any:
    """Return a document without its removed items; note the original indices of the others."""
    if isinstance(value, dict):
        return {k: _compacted(v, (*place, k), (*shown, k), origins) for k, v in value.items()}
    if isinstance(value, list):
        indices = [i for i, item in enumerate(value) if item is not GONE]
        if len(indices) < len(value):
            origins[shown] = indices
        return [
            _compacted(value[i], (*place, i), (*shown, new), origins)
            for new, i in enumerate(indices)
        ]
    return value


def _handle_error(
    item: Any,
    place: ConfigPlace,
    remaining: Any,
    findings: Findings,
    draft: Draft,
    cut: set[ConfigPlace],
) -> None:
    """Report an error of pydantic, and remove the value that it is about."""
    kind = item["type"]
    if any(place[:length] in cut for length in range(1, len(place))):
        return  # a value that contained it was removed
    if kind == "missing":
        if place not in cut:
            findings.add_once(place, sentence(item))
        if place[0] in ("tables", "plots") and place[-1] == "name":
            _parent(remaining, place)["name"] = f"unnamed-{place[0]}-{place[1]}"
        elif len(place) == 1:
            remaining[place[0]] = copy.deepcopy(_PLACEHOLDERS[str(place[0])])
            draft.nameless.add(str(place[0]))
        else:
            _remove(place[:-1], remaining, draft, cut)
        return
    if kind in ("union_tag_not_found", "union_tag_invalid") and place[0] == "blocks":
        _guess_protocol(item, place, remaining, findings, draft)
        return
    if kind == OF_A_KEY:
        key_place = (*place, item["ctx"]["key"])
        findings.add_once(key_place, sentence(item), place)
        _remove(key_place, remaining, draft, cut)
        return
    in_guessed = place[:2] in draft.guessed and len(place) == 3
    is_consequence = kind == "too_short" and any(each[:-1] == place for each in cut)
    if not (is_consequence or (in_guessed and kind in ("extra_forbidden", "literal_error"))):
        findings.add_once(place, _message(item, place, remaining))
    _remove(place, remaining, draft, cut)


def _message(item: Any, place: ConfigPlace, remaining: Any) -> str:
    """Return the message of an error of pydantic, with a hint for some places."""
    if item["type"] == "extra_forbidden":
        if len(place) == 1 and _is_of_blocks(str(place[0])):
            return f"{sentence(item)} of a config: it is a key of a block"
        return sentence(item) + suggestion(str(place[-1]), _allowed_keys(place[:-1], remaining))
    if item["type"] == "literal_error" and place[-1] == "scaling" and place[0] == "blocks":
        protocol = _item_at(remaining, place[:-1])["protocol"]
        return f"protocol {protocol!r} can't scale so: {sentence(item)}"
    return sentence(item)


def _is_of_blocks(key: str) -> bool:
    return any(key in declared.settings.model_fields for declared in protocols().values())


def _guess_protocol(
    item: Any, place: ConfigPlace, remaining: Any, findings: Findings, draft: Draft
) -> None:
    """Report a missing or unknown protocol of a block, and replace it by a similarly named one."""
    known = list(protocols())
    block = _item_at(remaining, place)
    protocol = block.get("protocol")
    where = (*place, "protocol")
    if protocol is None and item["type"] == "union_tag_not_found":
        findings.add_once(where, "the key 'protocol' is missing")
    else:
        findings.add_once(where, none_of(protocol, known))
    block["protocol"] = nearest(str(protocol), known)
    draft.guessed.add(place)


def _remove(place: ConfigPlace, remaining: Any, draft: Draft, cut: set[ConfigPlace]) -> None:
    """Remove a value from the document, and note the names of the items in it."""
    if any(place[:length] in cut for length in range(1, len(place) + 1)):
        return
    if any(part in _SWEEPS for part in place):
        draft.nameless.add("sweep")
    # Keep the names of an unreadable grid: a profile that cuts the grid makes no mistake.
    if "grid" in place:
        grid = place[: place.index("grid") + 1]
        values = _item_at(remaining, grid)
        if isinstance(values, dict):
            for name in [place[len(grid)]] if len(place) > len(grid) else list(values):
                cut.add((*grid, name))
                values[str(name)] = [1]
            return
        draft.nameless.add("grid")
    cut.add(place)
    holder, last = _parent(remaining, place), place[-1]
    if isinstance(holder, list):
        _note_names(place, holder[last], draft)  # type: ignore[index]
        holder[last] = GONE  # type: ignore[index]
    else:
        _note_names(place, holder.pop(last, None), draft)


def _note_names(place: ConfigPlace, value: Any, draft: Draft) -> None:
    """Note the name of a removed item, or the names of the items of a removed list."""
    kinds = [part for part in place if part in ("blocks", "solvers", "datasets")]
    if not kinds or place[0] in ("profiles", "tables", "plots"):
        return
    kind = str(kinds[-1])
    after = place[len(place) - place[::-1].index(kind) :]
    if len(after) > 1:  # a value inside an item; the item may still be there
        return
    for each in value if isinstance(value, list) else [value]:
        names = _names(kind, each)
        if names:
            draft.lost.setdefault(kind, set()).update(names)
        else:
            draft.nameless.add(kind)


def _names(kind: str, item: Any) -> set[str]:
    if isinstance(item, str) and kind == "datasets":
        return {item}
    if not isinstance(item, dict):
        return set()
    keys = {
        "blocks": ("name",),
        "solvers": ("label", "name", "class", "program"),
        "datasets": ("name", "file"),
    }
    names = [item[key] for key in keys[kind] if isinstance(item.get(key), str)]
    if kind == "datasets" and not names and "openml" in item:
        names = [f"openml:{item['openml']}"]
    return {part for name in names for part in (name, name.rpartition("/")[2], _last(name))}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _parent(data: Any, place: ConfigPlace) -> Any:
    return _item_at(data, place[:-1])


def _item_at(data: Any, place: ConfigPlace) -> Any:
    for part in place:
        data = data[part]
    return data


def _real_place(loc: tuple[int | str, ...], data: Any, is_missing: bool) -> ConfigPlace:
    """Return the place in the file that a location of pydantic means.

    Parts of the location that name a branch of a union are dropped. If a key `is_missing`, the last
    part is that key, and is kept.
    """
    place: list[str | int] = []
    for part in loc[:-1] if is_missing else loc:
        is_index = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if is_index or (isinstance(data, dict) and part in data):
            data = data[part]
            place.append(part)
    return (*place, loc[-1]) if is_missing else tuple(place)


def _allowed_keys(place: ConfigPlace, data: Any) -> list[str]:
    """Return the keys that are allowed at a place in the file."""
    models: dict[str, type[BaseModel]] = {
        "datasets": DatasetSpec,
        "solvers": SolverSpec,
        "blocks": Block,
        "tables": TableSpec,
        "plots": PlotSpec,
        "profiles": Config.profile_model(),
        "grid": PowerGrid,
        "exponents": ExponentRange,
    }
    names = [part for part in place if isinstance(part, str) and part in models]
    model = models[names[-1]] if names else Config
    if model is Block:
        model = protocols()[_item_at(data, place)["protocol"]].settings
    return [
        *model.model_fields,
        *((*SolverSpec.NAMED_BY, *SolverSpec.SOLVES) if model is SolverSpec else ()),
    ]
