"""Sentences for the validation errors of pydantic, with the wrong value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svmbench.base.errors import suggestion
from svmbench.base.escape import line

#: The expected kind of value, by the beginning of an error's type.
_SHOULD_BE = {
    "finite_number": "a finite number",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string_type": "text",
    "string_unicode": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping of keys to values",
    "mapping": "a mapping of keys to values",
    "model": "a mapping of keys to values",
}
#: What a text should do to match the pattern of its field.
_FORMS = {
    r"^[A-Za-z0-9][A-Za-z0-9_.-]*$": (
        "begin with a letter or a digit and have letters, digits, '_', '-' and '.' alone"
    ),
    r"^([0-9a-f]{64})?$": "have 64 hexadecimal digits in lower case",
    r"^(https://\S+)?$": "begin with 'https://'",
    r"^[A-Za-z][A-Za-z0-9]*$": "begin with a letter and have letters and digits alone",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "above"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "below"),
}


def shown(value: Any) -> str:
    """Return a value as in a config, short enough for a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"a mapping ({', '.join(line(key, 20) for key in list(value)[:3])})"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return line(repr(value) if isinstance(value, str) else value, 60)


def sentence(error: Mapping[str, Any]) -> str:
    """Return the sentence for an item of ``ValidationError.errors()``."""
    kind, value, context = str(error["type"]), error.get("input"), error.get("ctx") or {}
    if kind in ("value_error", "assertion_error", "of_a_key"):  # the models' own validators
        message = str(error["msg"])
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind == "missing":
        return f"the key {line(error['loc'][-1], 60)!r} is missing"
    if kind == "extra_forbidden":
        return f"unknown key {line(error['loc'][-1], 60)!r}"
    if kind == "literal_error":
        return none_of(value, _options(str(context.get("expected", ""))))
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"should be {words} {context[name]:g}, not {shown(value)}"
    if kind == "string_too_long":
        return f"should have at most {context['max_length']} characters, not {len(str(value))}"
    if kind in ("too_short", "too_long"):
        is_short = kind == "too_short"
        bound = context["min_length" if is_short else "max_length"]
        words = "at least" if is_short else "at most"
        return (
            f"should have {words} {bound} item{'s'[: bound != 1]}, not {context['actual_length']}"
        )
    if kind == "string_pattern_mismatch":
        return f"should {_FORMS[context['pattern']]}, not {shown(value)}"
    expected = next((words for start, words in _SHOULD_BE.items() if kind.startswith(start)), "")
    if not expected:
        return f"{shown(value)} is not allowed here"
    quotes = "; put text that looks like another value in quotes" if expected == "text" else ""
    is_scalar = not isinstance(value, Mapping | list)
    return f"should be {expected}, not {shown(value)}{quotes if is_scalar else ''}"


def none_of(value: Any, options: list[str]) -> str:
    """Return a sentence on a value that is not an option; it suggests a similar option."""
    return f"{shown(value)} is none of {', '.join(options)}{suggestion(str(value), options)}"


def _options(expected: str) -> list[str]:
    """Return the words of ``'a', 'b' or 'c'``."""
    return [part.strip("' ") for part in expected.replace(" or ", ", ").split(", ")]
