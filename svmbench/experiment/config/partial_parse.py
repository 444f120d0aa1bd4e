"""Parsing of the valid part of a faulty config, so that one reading reports all its mistakes.

A wrong value is reported and removed. If a required value is removed, its item is removed, too. The
rest is checked like any config. The names of removed items are kept, so that references to them are
not reported as mistakes.
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
#: The name of a block that stands where a config has none that can be read.
STAND_IN = "\0"
#: Placeholders for missing required keys.
_INSTEAD: dict[str, Any] = {
    "title": "untitled",
    "blocks": [{"name": STAND_IN, "protocol": next(iter(protocols()))}],
}
#: What says along which dimensions a block sweeps.
_SWEEPS = ("sweep", "sizes", "features")


class _Gone:
    """A placeholder for a faulty item that was taken out of a list."""


GONE = _Gone()


@dataclass
class Draft:
    """The valid part of a config.

    Attributes
    ----------
    config : Config or None
        What is left of it; None where that is no config any more.
    origins : dict of tuple to list of int
        By the place of a list of the config: where its items stand in the file.
    lost : dict of str to set of str
        Under ``blocks``, ``solvers`` and ``datasets`` the names of those that were taken out.
    nameless : set of str
        Which of the three (or ``grid``, ``sweep``) lost some whose names can't be told.
    guessed : set of tuple
        Places of the blocks whose protocol there is not: what depends on that is not known.
    """

    config: Config | None = None
    origins: dict[ConfigPlace, list[int]] = field(default_factory=dict)
    lost: dict[str, set[str]] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    guessed: set[ConfigPlace] = field(default_factory=set)

    def place(self, place: ConfigPlace) -> ConfigPlace:
        """Return where a value of the config stands in the file."""
        found: ConfigPlace = ()
        for i, part in enumerate(place):
            origins = self.origins.get(place[:i])
            is_index = isinstance(part, int) and origins is not None and part < len(origins)
            found += (origins[part] if is_index else part,)  # type: ignore[index]
        return found

    def lacks(self, kind: str) -> bool:
        """Return True if blocks, solvers or data sets of the file are missing here."""
        return kind in self.lost or kind in self.nameless


def read_draft(data: Mapping[str, Any], findings: Findings) -> Draft:
    """Read what can be read, and note what can't.

    Parameters
    ----------
    data : mapping
        The document, as overrides changed it.
    findings : Findings
        Gets what is wrong with single values.
    """
    draft = Draft()
    left: Any = copy.deepcopy(dict(data))
    cut: set[ConfigPlace] = set()
    for _ in range(MAX_PARSE_ROUNDS):
        draft.origins.clear()
        compact = _compacted(left, (), (), draft.origins)
        try:
            draft.config = Config.model_validate(compact)
        except ValidationError as error:
            for item in error.errors():
                at = _real_place(item["loc"], compact, item["type"] == "missing")
                _treat(item, draft.place(at), left, findings, draft, cut)
        else:
            return draft
    return draft


def _compacted(
    value: Any, place: ConfigPlace, shown: ConfigPlace, origins: dict[ConfigPlace, list[int]]
) -> Any:
    """Return a document without the items that are gone; note where those left stand."""
    if isinstance(value, dict):
        return {k: _compacted(v, (*place, k), (*shown, k), origins) for k, v in value.items()}
    if isinstance(value, list):
        kept = [i for i, item in enumerate(value) if item is not GONE]
        if len(kept) < len(value):
            origins[shown] = kept
        return [
            _compacted(value[i], (*place, i), (*shown, new), origins) for new, i in enumerate(kept)
        ]
    return value


def _treat(
    item: Any,
    place: ConfigPlace,
    left: Any,
    findings: Findings,
    draft: Draft,
    cut: set[ConfigPlace],
) -> None:
    """Note one of pydantic's errors, and take out what it is about."""
    kind = item["type"]
    if any(place[:length] in cut for length in range(1, len(place))):
        return  # it went with what it stands in
    if kind == "missing":
        if place not in cut:
            findings.form(place, sentence(item))
        if place[0] in ("tables", "plots") and place[-1] == "name":
            _parent(left, place)["name"] = f"unnamed-{place[0]}-{place[1]}"
        elif len(place) == 1:
            left[place[0]] = copy.deepcopy(_INSTEAD[str(place[0])])
            draft.nameless.add(str(place[0]))
        else:
            _take_out(place[:-1], left, draft, cut)
        return
    if kind in ("union_tag_not_found", "union_tag_invalid") and place[0] == "blocks":
        _guess_protocol(item, place, left, findings, draft)
        return
    if kind == OF_A_KEY:
        wrong = (*place, item["ctx"]["key"])
        findings.form(wrong, sentence(item), place)
        _take_out(wrong, left, draft, cut)
        return
    in_guessed = place[:2] in draft.guessed and len(place) == 3
    follows = kind == "too_short" and any(each[:-1] == place for each in cut)
    if not (follows or (in_guessed and kind in ("extra_forbidden", "literal_error"))):
        findings.form(place, _said(item, place, left))
    _take_out(place, left, draft, cut)


def _said(item: Any, place: ConfigPlace, left: Any) -> str:
    """Return the sentence on an error, with what is known of the place."""
    if item["type"] == "extra_forbidden":
        if len(place) == 1 and _is_of_blocks(str(place[0])):
            return f"{sentence(item)} of a config: it is a key of a block"
        return sentence(item) + suggestion(str(place[-1]), _allowed_keys(place[:-1], left))
    if item["type"] == "literal_error" and place[-1] == "scaling" and place[0] == "blocks":
        does = _item_at(left, place[:-1])["protocol"]
        return f"protocol {does!r} can't scale so: {sentence(item)}"
    return sentence(item)


def _is_of_blocks(key: str) -> bool:
    return any(key in declared.settings.model_fields for declared in protocols().values())


def _guess_protocol(
    item: Any, place: ConfigPlace, left: Any, findings: Findings, draft: Draft
) -> None:
    """Note that a block's protocol is missing or unknown, and read the block by the nearest one."""
    known = list(protocols())
    block = _item_at(left, place)
    given = block.get("protocol")
    where = (*place, "protocol")
    if given is None and item["type"] == "union_tag_not_found":
        findings.form(where, "the key 'protocol' is missing")
    else:
        findings.form(where, none_of(given, known))
    block["protocol"] = nearest(str(given), known)
    draft.guessed.add(place)


def _take_out(place: ConfigPlace, left: Any, draft: Draft, cut: set[ConfigPlace]) -> None:
    """Take a value out of the document, and remember the names that go with it."""
    if any(place[:length] in cut for length in range(1, len(place) + 1)):
        return
    if any(part in _SWEEPS for part in place):
        draft.nameless.add("sweep")
    # Of a grid that can't be read, the names stay: who cuts what it searches makes no mistake.
    if "grid" in place:
        grid = place[: place.index("grid") + 1]
        held = _item_at(left, grid)
        if isinstance(held, dict):
            for name in [place[len(grid)]] if len(place) > len(grid) else list(held):
                cut.add((*grid, name))
                held[str(name)] = [1]
            return
        draft.nameless.add("grid")
    cut.add(place)
    holder, last = _parent(left, place), place[-1]
    if isinstance(holder, list):
        _remember(place, holder[last], draft)  # type: ignore[index]
        holder[last] = GONE  # type: ignore[index]
    else:
        _remember(place, holder.pop(last, None), draft)


def _remember(place: ConfigPlace, value: Any, draft: Draft) -> None:
    """Note the names of what is taken out: of an item, or of all items of a list."""
    kinds = [part for part in place if part in ("blocks", "solvers", "datasets")]
    if not kinds or place[0] in ("profiles", "tables", "plots"):
        return
    kind = str(kinds[-1])
    after = place[len(place) - place[::-1].index(kind) :]
    if len(after) > 1:  # a value inside of an item, which may still stand
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
    found = [item[key] for key in keys[kind] if isinstance(item.get(key), str)]
    if kind == "datasets" and not found and "openml" in item:
        found = [f"openml:{item['openml']}"]
    return {part for name in found for part in (name, name.rpartition("/")[2], _last(name))}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _parent(data: Any, place: ConfigPlace) -> Any:
    return _item_at(data, place[:-1])


def _item_at(data: Any, place: ConfigPlace) -> Any:
    for part in place:
        data = data[part]
    return data


def _real_place(loc: tuple[int | str, ...], data: Any, is_missing: bool) -> ConfigPlace:
    """Drop the parts of a pydantic location that name a union's branch, not a place in the file.

    Of a key that `is_missing` the last part is not there, and is kept.
    """
    place: list[str | int] = []
    for part in loc[:-1] if is_missing else loc:
        is_index = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if is_index or (isinstance(data, dict) and part in data):
            data = data[part]
            place.append(part)
    return (*place, loc[-1]) if is_missing else tuple(place)


def _allowed_keys(place: ConfigPlace, data: Any) -> list[str]:
    """Return the keys that the model at a place in the file knows."""
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
