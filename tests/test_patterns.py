"""Every regular expression of the package takes time in proportion to the text."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from svmbench.experiment.config import yaml_source

PACKAGE = Path(__file__).resolve().parent.parent / "svmbench"

#: Methods that look at a text from its beginning alone.
ANCHORED = {"match", "fullmatch"}

#: What takes the square of the length needs milliseconds for so many characters, else microseconds.
FIRST_LENGTH = 4_000
SUSPECT_CPU_SECONDS = 0.003

#: What doubles with each character takes long for a short text, and for ever for the next.
SHORT_LENGTH = 24
SHORT_CPU_SECONDS = 0.1

#: Between these lengths time grows 8 times if in proportion, 64 times if with the square.
LENGTHS = (1_000, 8_000)
MOST_GROWTH = 24


def found_in(module: str, source: str, names: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield each pattern of a module: its place, itself, and whether it is only ever anchored."""
    methods: dict[str, set[str]] = {}
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for call in calls:
        if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
            continue
        owner, method = call.func.value.id, call.func.attr
        if owner != "re":
            methods.setdefault(owner, set()).add(method)
        elif method not in ("compile", "escape"):
            text = eval(compile(ast.Expression(call.args[0]), module, "eval"), names)
            yield f"{module}:{call.lineno}", re.compile(text), method in ANCHORED
    for name, value in names.items():
        if isinstance(value, re.Pattern):
            used = methods.get(name, {"search"})
            yield f"{module}:{name}", value, used <= ANCHORED


def patterns() -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Return every pattern of the package by its place, with whether it is only ever anchored."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "re." not in source or "import re\n" not in source:
            continue
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        loaded = vars(importlib.import_module(module.removesuffix(".__init__")))
        for place, pattern, anchored in found_in(module, source, loaded):
            found[place] = pattern, anchored
    for resolvers in yaml_source._Loader.yaml_implicit_resolvers.values():
        for tag, pattern in resolvers:
            found[f"yaml_source:{tag}"] = pattern, True
    return found


PATTERNS = patterns()


def pieces(pattern: re.Pattern[Any]) -> tuple[list[str], list[str]]:
    """Return texts that the parts of a pattern match: single characters, and longer and longer
    beginnings of a text that the whole of it matches.
    """
    singles: dict[str, None] = {}
    beginnings: dict[str, None] = {}

    def example(parsed: Any, sofar: str) -> str:
        own = ""
        for kind, value in parsed:
            made = ""
            if kind is _constants.LITERAL:
                made = chr(value)
            elif kind is _constants.IN:
                made = [example([each], "") for each in value][-1] or "-"
            elif kind is _constants.RANGE:
                made = chr(value[0])
            elif kind is _constants.CATEGORY:
                of = str(value).rpartition("_")[2]
                not_of = "NOT" in str(value)
                made = "-" if not_of else {"DIGIT": "7", "SPACE": " ", "WORD": "w"}.get(of, "-")
            elif kind in (_constants.ANY, _constants.NOT_LITERAL):
                made = "x"
            elif kind is _constants.BRANCH:
                made, *_ = (example(each, sofar + own) for each in value[1])
            elif kind is not _constants.ASSERT_NOT and isinstance(value, tuple):
                inner = [each for each in value if isinstance(each, _parser.SubPattern)]
                made = example(inner[0], sofar + own) if inner else ""
            if len(made) == 1:
                singles[made] = None
            own += made
            beginnings[sofar + own] = None
        return own

    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin1")
    example(_parser.parse(text, pattern.flags & ~re.UNICODE), "")
    longer = [each for each in beginnings if len(each) > 1]
    return list(singles)[:10], longer[:: 1 + len(longer) // 24]


def attacks(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Yield functions from a length to a text that a pattern may take long for."""
    own, longer = pieces(pattern)
    pumps = [*own, *longer, *(a + b for a, b in itertools.permutations(own, 2))]
    for pump, before, after in itertools.product(pumps, ["", *own[:5]], ["\0", *own[:2]]):

        def text(length: int, pump: str = pump, ends: tuple[str, str] = (before, after)) -> Any:
            made = ends[0] + pump * (length // min(len(pump), 5)) + ends[1]
            return made.encode("latin1", "replace") if isinstance(pattern.pattern, bytes) else made

        yield text


def cpu_seconds(pattern: re.Pattern[Any], text: Any, anchored: bool) -> float:
    began = time.process_time()
    if anchored:
        pattern.match(text)
        pattern.fullmatch(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began


def superlinear(pattern: re.Pattern[Any], anchored: bool) -> Any:
    """Return the beginning of a text for which a pattern takes more than time in proportion."""
    for text in attacks(pattern):
        if cpu_seconds(pattern, text(SHORT_LENGTH), anchored) > SHORT_CPU_SECONDS:
            return text(SHORT_LENGTH)
        if cpu_seconds(pattern, text(FIRST_LENGTH), anchored) < SUSPECT_CPU_SECONDS:
            continue
        short, long = (cpu_seconds(pattern, text(length), anchored) for length in LENGTHS)
        if long > MOST_GROWTH * max(short, 1e-4):
            return text(60)
    return None


@pytest.mark.parametrize("place", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(place: str) -> None:
    pattern, anchored = PATTERNS[place]
    assert superlinear(pattern, anchored) is None


@pytest.mark.parametrize(
    ("pattern", "anchored"),
    [
        (r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)", True),  # two ways a digit
        (r"(?:\w+ ?)*:", True),
        (r"(?s)<!-- table (?P<name>\S+) -->\n.*?<!-- /table -->", False),
        (r"\s+$", False),
        (rb"\d+x", False),
    ],
)
def test_a_pattern_that_takes_longer_is_found(pattern: Any, anchored: bool) -> None:
    assert superlinear(re.compile(pattern), anchored) is not None


def test_patterns_are_found_wherever_they_stand() -> None:
    source = "import re\nA = re.compile('a+')\ndef f(x):\n    A.sub('', x); re.fullmatch('b', x)\n"
    found = {place: anchored for place, _, anchored in found_in("m", source, {"A": re.compile("")})}
    assert found == {"m:4": True, "m:A": False}
    assert len(PATTERNS) > 25
