"""YAML as people mean it: numbers, text, duplicate keys, places."""

from __future__ import annotations

import pytest

from svmbench.errors import ConfigError
from svmbench.experiment.yaml_source import YamlSource, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1E5", 1e5),
        ("-.5", -0.5),
        ("010", 10),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("12:30", "12:30"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
        (".inf", float("inf")),
        ("[1, a, 2.5]", [1, "a", 2.5]),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_duplicate_keys_are_errors_with_their_place() -> None:
    with pytest.raises(ConfigError) as caught:
        YamlSource("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n", "x.yaml")
    assert caught.value.problems == [
        "x.yaml:4:3: the key 'c' is given twice",
        "x.yaml:5:1: the key 'a' is given twice",
    ]


def test_merge_keys_fill_in_and_own_keys_win() -> None:
    source = YamlSource("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\n", "x.yaml")
    assert source.data["more"] == {"x": 1, "y": 3}


def test_places_of_values_and_of_what_is_missing() -> None:
    source = YamlSource("a:\n  - b: 1\n    c: 2\n", "x.yaml")
    assert source.where(("a", 0, "c")) == "x.yaml:3:5"
    assert source.where(("a", 0, "nowhere", 7)) == "x.yaml:2:5"
    assert source.where(()) == "x.yaml:1:1"


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: b: c", "\tx: 1", "a: &x [*x]", "!!python/object:os.system {}"]
)
def test_what_is_not_yaml_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        YamlSource(text, "x.yaml")
    assert str(caught.value).startswith("x.yaml:1:")
    assert len(caught.value.problems) == 1
