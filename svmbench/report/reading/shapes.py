"""Check the shape of the JSON files of a run folder.

Plans and environments may come from another version, or from a merge or an edit by hand. This
module reports the first error in a file with its place; later code relies on these checks.
pydantic's TypeAdapter reads and checks 200,000 cells in the same CPU time, but collects every error
of a mapping before it reports the first: 1.4 GB for 300,000 lists in place of a cell's dimensions.
Only from version 2.14 on does its FailFast stop at the first error of a mapping.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from svmbench.base import files
from svmbench.base.errors import DamagedResultsError
from svmbench.base.escape import line
from svmbench.schema.record import MAX_RECORD_NAME_CHARS

#: Largest number of cells of a plan or a baseline: four times the limit of a config. The largest
#: kept plan has 540 cells. `svmbench compare` reads 200,000 cells on both sides in about 7 s.
MAX_PLAN_CELLS = 200_000

#: A shape is a type or several types, a list of one shape, or a mapping from keys to shapes. Keys
#: of a mapping may be missing or null; "*" stands for all other keys.
Shape = Any

_TEXT = str
_NUMBER = (int, float)
_SCALAR = (str, int, float, bool)
_NAMES = [_SCALAR]

_CELL = {
    **dict.fromkeys(("key", "block", "protocol", "paper", "profile", "dataset"), _TEXT),
    **dict.fromkeys(("solver", "kernel", "status", "reason", "data_sha256"), _TEXT),
    **dict.fromkeys(("fold", "size", "n_features_kept"), int),
    "dimensions": {"*": _SCALAR},
}
_SCORE = {
    **dict.fromkeys(("caption", "unit", "better"), _TEXT),
    "tolerance": _NUMBER,
}
_SPEC = {"name": _TEXT, "title": _TEXT, "block": _TEXT, "published": _TEXT}
_COUNTS = {
    "datasets": [_TEXT],
    "choose_with": [_TEXT],
    "draws": {"*": int},
    "neighbour_pairs": {"*": int},
    # The names of these two in older plans:
    "points": {"*": int},
    "runs": {"*": int},
    "sweep": {"*": int},
    "grids": {"*": {"*": int}},
    "*": _NUMBER,
}
PLAN_SHAPE: Shape = {
    "config": {
        **dict.fromkeys(("name", "paper", "title", "scaling"), _TEXT),
        "seed": int,
        "references": {"*": _TEXT},
        "baselines": [_TEXT],
        "programs": [_TEXT],
        "classes": [_TEXT],
        "settings": {"*": {}},
        "blocks": [{"name": _TEXT, "scaling": _TEXT}],
    },
    "profile_note": _TEXT,
    "counts": {"own": {"*": _COUNTS}, "full": {"*": _COUNTS}},
    "cells": [_CELL],
    "tables": [_SPEC],
    "plots": [_SPEC],
    "scores": {"*": _SCORE},
    "protocols": {"*": {"caption": _TEXT}},
}
ENVIRONMENT_SHAPE: Shape = {
    **dict.fromkeys(("id", "svmbench", "python", "platform", "cpu"), _TEXT),
    "git": {"commit": _TEXT},
    "cores": int,
    "ram_gb": _NUMBER,
    "threads": int,
    "blas": [_TEXT],
    "packages": {"*": _TEXT},
}

BASELINE_SHAPE: Shape = {
    "config": _TEXT,
    "profile": _TEXT,
    "seed": int,
    "environments": [ENVIRONMENT_SHAPE],
    "scores": {"*": _SCORE},
    "baselines": [_TEXT],
    "foreign": [_TEXT],
    "settings": {"*": {}},
    "repeats": {"*": {"*": [_NUMBER]}},
    "cells": [_CELL],
}

_TYPE_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def read_checked_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises
    ------
    svmbench.base.errors.DamagedResultsError
        If it isn't JSON in UTF-8, contains NaN or a number that is too large, or is nested too
        deep.
    OSError
        If it can't be read.
    """
    try:
        content = files.read_json(path)
        problem = _unfit_value(content)
    except UnicodeDecodeError as error:
        raise DamagedResultsError(f"can't read {path}: it is not encoded as UTF-8") from error
    except RecursionError as error:
        raise DamagedResultsError(f"can't read {path}: it is nested too deep") from error
    except ValueError as error:
        message = line(" ".join(str(error).split()), 200)
        raise DamagedResultsError(f"can't read {path}: {message}") from error
    if problem:
        raise DamagedResultsError(f"can't read {path}: {problem}")
    return content


_SURROGATE = re.compile("[\ud800-\udfff]")


def _unfit_value(value: Any) -> str:
    """Return what is wrong with a text or number in a JSON value, or an empty text."""
    todo = [value]
    while todo:
        each = todo.pop()
        kind = type(each)  # json creates no subclasses; comparing types is fastest
        if kind is str:
            if not each.isascii() and _SURROGATE.search(each):
                return "it contains a lone surrogate, which is no character"
        elif kind is dict:
            todo += each
            todo += each.values()
        elif kind is list:
            todo += each
        elif kind is float and not math.isfinite(each):
            return "it contains an infinite number"
        elif kind is int and abs(each) >= 2**63:
            return "it contains a whole number beyond 64 bits"
    return ""


def too_many_cells(cells: list[Any]) -> str:
    """Return the error of a plan or a baseline with too many cells, or an empty text."""
    if len(cells) <= MAX_PLAN_CELLS:
        return ""
    return f"it has {len(cells):,} cells, but at most {MAX_PLAN_CELLS:,} are allowed"


def mismatch(value: Any, shape: Shape) -> str:
    """Return the error of the first value with a wrong shape, or an empty text."""
    return _mismatch(value, shape).lstrip(".")


def _mismatch(value: Any, shape: Shape) -> str:
    """Return the place below a value of the first wrong shape, with the error."""
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return f" should be a mapping of keys to values, not {_kind(value)}"
        for key, each in value.items():
            if len(key) > MAX_RECORD_NAME_CHARS:
                return f" has a key of {len(key):,} characters, more than {MAX_RECORD_NAME_CHARS:,}"
            wanted = shape.get(key, shape.get("*"))
            # Fast path: a plan has millions of short texts.
            is_text = wanted is str and type(each) is str and len(each) <= MAX_RECORD_NAME_CHARS
            if is_text or wanted is None or each is None:
                continue
            if problem := _mismatch(each, wanted):
                return f".{line(key, 40)}{problem}"
        return ""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f" should be a list, not {_kind(value)}"
        for i, each in enumerate(value):
            if problem := _mismatch(each, shape[0]):
                return f"[{i}]{problem}"
        return ""
    kinds = shape if isinstance(shape, tuple) else (shape,)
    if isinstance(value, str) and str in kinds and len(value) > MAX_RECORD_NAME_CHARS:
        return f" has {len(value):,} characters, more than the {MAX_RECORD_NAME_CHARS:,} of a text"
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return ""
    return f" should be {' or '.join(_TYPE_WORDS[kind] for kind in kinds)}, not {_kind(value)}"


def _kind(value: Any) -> str:
    if isinstance(value, list | dict) or value is None:
        return {list: "a list", dict: "a mapping", type(None): "nothing"}[type(value)]
    return line(repr(value), 60)
