"""YAML as people mean it: numbers, text, duplicate keys, places."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from svmbench.base.errors import ConfigError
from svmbench.base.paths import shipped_configs
from svmbench.experiment.config import yaml_source
from svmbench.experiment.config.yaml_source import YamlSource, parse_value


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
        YamlSource("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n", "x.yaml").checked()
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
        YamlSource(text, "x.yaml").checked()
    assert str(caught.value).startswith("x.yaml:1:")
    assert len(caught.value.problems) == 1


# ---------------------------------------------------------------- documents that mean harm


def seconds_and_sentences(text: str) -> tuple[float, list[str]]:
    began = time.process_time()
    with pytest.raises(ConfigError) as caught:
        YamlSource(text, "x.yaml").checked()
    return time.process_time() - began, caught.value.problems


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)
MERGED = "m0: &m0 {x: 1}\n" + "".join(
    f"m{i}: &m{i} {{<<: [{','.join([f'*m{i - 1}'] * 9)}]}}\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "has more than 5,000 values"),
        (MERGED, "has more than 5,000 values"),
        ("[" * 5000, "nested more than 50 levels deep"),
        ("{a: " * 5000, "nested more than 50 levels deep"),
        ("- " * 5000 + "x", "nested more than 50 levels deep"),
        ("[" + "1," * 40_000 + "1]", "has more than 5,000 values"),
        ("x" * 200_000, "more than the 131,072 allowed characters"),
    ],
    ids=["aliases", "merges", "lists", "mappings", "dashes", "long", "large"],
)
def test_a_document_without_measure_is_refused_in_time(text: str, said: str) -> None:
    seconds, problems = seconds_and_sentences(text)
    assert seconds < 3.0  # of CPU time, counted line by line where coverage is measured
    assert len(problems) == 1
    assert said in problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!int abc", "x.yaml:1:1: 'abc' is no whole number"),
        ("a: !!float abc", "x.yaml:1:1: 'abc' is no number"),
        ("a: !!bool maybe", "x.yaml:1:1: 'maybe' is no true or false"),
        ("a: !!timestamp z", "the tag 'tag:yaml.org,2002:timestamp' means nothing here"),
        ("a: !!binary x", "the tag 'tag:yaml.org,2002:binary' means nothing here"),
        ("a: !<tag:\u200b> x", "not valid YAML"),
        (f"a: {'9' * 5000}", "is no whole number"),
        (f"a: {10**30}", "x.yaml:1:1: the integer is beyond 64 bits"),
        ("a: b\n\x07: c", "x.yaml:2:1: the character 0x07 is not allowed in YAML"),
        ('a: "\\e[2J"', "x.yaml:1:1: '�[2J' has a control character"),
        ('"\\e[2J": a', "x.yaml:1:1: a key should be plain text"),
        ("? [a]\n: b", "x.yaml:1:3: a key should be plain text"),
        (f"%YAML {'9' * 5000}.1\n---\na", "not valid YAML"),
    ],
)
def test_a_value_that_is_none_is_one_sentence_with_its_place(text: str, said: str) -> None:
    _, problems = seconds_and_sentences(text)
    assert len(problems) == 1
    assert said in problems[0]
    assert problems[0].isprintable()
    assert len(problems[0]) < 300


def test_a_file_that_is_no_text_or_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"x\.yaml:2: not a UTF-8 text file"):
        YamlSource.read(tmp_path / "x.yaml")
    with pytest.raises(ConfigError, match="more than the 131,072 allowed characters"):
        YamlSource.read(Path("/dev/zero"))
    (tmp_path / "x.yaml").write_bytes("€".encode() * 300_000)
    with pytest.raises(ConfigError, match="more than the 131,072 allowed characters"):
        YamlSource.read(tmp_path / "x.yaml")


#: Documents with what the parsers could differ in: anchors, merges, blocks of text, empty values.
DOCUMENTS = (
    "a: &x {b: 1, c: [no, 1e-3]}\nd: {<<: *x, e: ~}\n",
    "a: |\n  two\n  lines\nb: >-\n  one\n  line\nc:\n",
    "- 'it''s'\n- \"\\u00e9\\t\"\n- [a, {b: c}, []]\n- ä: ö  # a comment\n",
)


@pytest.mark.parametrize(
    "text",
    [*DOCUMENTS, *(path.read_text(encoding="utf-8") for path in shipped_configs())],
    ids=[*map(str, range(len(DOCUMENTS))), *(path.stem for path in shipped_configs())],
)
def test_both_parsers_read_the_same_values_at_the_same_places(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert yaml_source._compose_fast(text) is not None
    fast = YamlSource(text, "x")
    monkeypatch.setattr(yaml_source, "_compose_fast", lambda _: None)
    slow = YamlSource(text, "x")
    assert repr(fast.data) == repr(slow.data)
    assert fast._marks == slow._marks


@pytest.mark.parametrize(
    "text", ["a: [1", "a: b: c", "[" * 60 + "]" * 60, "a: \x00", "*x", "- a\nb: 1", "{" * 9]
)
def test_the_slower_parser_says_what_is_wrong(text: str) -> None:
    assert yaml_source._compose_fast(text) is None
    with pytest.raises(ConfigError):
        YamlSource(text, "x")
