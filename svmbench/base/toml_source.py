"""Parsing of untrusted TOML, with limits that no registry or file of claims reaches.

The standard library's parser needs time and memory quadratic in the length of a dotted key, and one
level of recursion for each of its parts. So the parts are counted before parsing. A limit on the
length of a line would not do: with lines of 700 characters, as the longest of the shipped files, a
header and keys of hundreds of parts take 19 s of CPU time in a file of the largest size; with the
limit on parts they take 1.4 s.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from svmbench.base import paths
from svmbench.base.errors import ConfigError
from svmbench.base.escape import line

#: Largest number of bytes of a file; the shipped registry has 92 kB.
MAX_TOML_BYTES = 1 << 20

#: Largest number of dots in a key; the registry's keys have two.
MAX_KEY_DOTS = 16

#: Largest number of values, tables and lists of a file; the shipped registry has 3,800.
MAX_TOML_VALUES = 50_000

#: Largest number of characters of a text or a key.
MAX_TOML_TEXT_CHARS = 4_096

#: Strings, comments, dots, characters that end a key, and the rest. Every character matches once.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5}+)?'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}+)?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|(?P<dot>\.)"
    r"|(?P<end>[=,{}\[\]\n])"
    r"""|[^"'#.=,{}\[\]\n]++""",
    re.DOTALL,
)


def read_toml(path: Path, shown: str) -> dict[str, Any]:
    """Read a TOML file, and check that it is within the limits of this module.

    Parameters
    ----------
    path : Path
    shown : str
        The file's name in error messages.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the file isn't TOML in UTF-8; if it has too many values, a key of too many parts, a text
        that is too long or has a control character, or an integer beyond 64 bits.
    OSError
        If the file can't be read, is larger than `MAX_TOML_BYTES`, or is not a regular file.
    """
    content = paths.read_regular(path, MAX_TOML_BYTES)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}, line {number}: not encoded as UTF-8") from None
    _check_keys(text, shown)
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{shown}: {line(' '.join(str(error).split()), 300)}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise ConfigError(f"{shown}: {line(error, 300)}") from None
    except RecursionError:
        raise ConfigError(f"{shown}: is nested too deep") from None
    problem = _unfit(parsed)
    if problem:
        raise ConfigError(f"{shown}: {problem}")
    return parsed


def _check_keys(text: str, shown: str) -> None:
    """Refuse a text with a key of too many parts, in time in proportion to its length."""
    dots = 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "dot":
            dots += 1
        elif token.lastgroup == "end":
            dots = 0
        if dots > MAX_KEY_DOTS:
            number = text.count("\n", 0, token.start()) + 1
            raise ConfigError(
                f"{shown}, line {number}: a key of more than {MAX_KEY_DOTS + 1} parts"
            )


def count_values(value: Any) -> int:
    """Count the values in a value, including itself and its tables and lists."""
    count, todo = 0, [value]
    while todo:
        each = todo.pop()
        count += 1
        if isinstance(each, dict | list):
            todo += each.values() if isinstance(each, dict) else each
    return count


def _unfit(value: dict[str, Any]) -> str:
    """Return a sentence on the first value that exceeds a limit; empty if there is none."""
    if count_values(value) > MAX_TOML_VALUES:
        return f"has more than {MAX_TOML_VALUES:,} values"
    # A place is a pair: the place around it, and the last part. Texts would repeat long keys.
    todo: list[tuple[Any, Any]] = [((), value)]
    while todo:
        place, each = todo.pop()
        if isinstance(each, dict):
            for key in each:
                complaint = _unfit_text(key)
                if complaint:
                    return f"{_dotted(place) or 'the file'}: the key {_shown(key)} {complaint}"
            todo += [((place, f".{key}"), inner) for key, inner in reversed(each.items())]
        elif isinstance(each, list):
            todo += [((place, f"[{i}]"), inner) for i, inner in reversed([*enumerate(each)])]
        elif isinstance(each, str) and each != "\t":  # a tab alone may separate columns
            complaint = _unfit_text(each)
            if complaint:
                return f"{_dotted(place)}: {_shown(each)} {complaint}"
        elif isinstance(each, int) and abs(each) >= 2**63:
            return f"{_dotted(place)}: the integer is beyond 64 bits"
    return ""


def _dotted(place: Any) -> str:
    parts: list[str] = []
    while place:
        place, part = place
        parts.append(part)
    return line("".join(reversed(parts)).lstrip("."), 200)


def _unfit_text(text: str) -> str:
    if len(text) > MAX_TOML_TEXT_CHARS:
        return f"is longer than {MAX_TOML_TEXT_CHARS:,} characters"
    return "" if text.isprintable() else "has a control character"


def _shown(value: Any) -> str:
    return line(repr(value), 60)
