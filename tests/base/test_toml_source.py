"""TOML of other people's making is read, or refused in a sentence, in time that it is worth."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

import pytest

from svmbench.base import toml_source
from svmbench.base.errors import ConfigError
from svmbench.base.toml_source import count_values, read_toml

ROOT = Path(__file__).resolve().parents[2]
LONG = ".".join(["a"] * 20_000)


def read(text: str, folder: Path) -> dict[str, object]:
    place = folder / "x.toml"
    place.write_text(text, encoding="utf-8")
    return read_toml(place, "x.toml")


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG} = 1",
        f"[{LONG}]",
        f"[[{LONG}]]",
        f"b = {{{LONG} = 1}}",
        f"b = [1, {{{LONG} = 1}}]",
        LONG.replace(".", " . ") + " = 1",
        LONG.replace("a", '"a.b"') + " = 1",
        LONG.replace("a", "'a'") + " = 1",
        f"# it's\n{LONG} = 1",
        f'b = """x""""\n{LONG} = 1',
        f'b = {{c = """x"""", {LONG} = 1}}',
        f"b = {{c = '''x''''', {LONG} = 1}}",
        f'b = "\\\\"\n{LONG} = 1',
        f'b = """\\""" # """\n{LONG} = 1',
    ],
)
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(text: str, tmp_path: Path) -> None:
    began = time.process_time()
    with pytest.raises(ConfigError, match=r"^x.toml, line \d: a key of more than 17 parts$"):
        read(text, tmp_path)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "text",
    [
        f'b = "{LONG[:2000]}"',
        f"b = '{LONG[:2000]}'",
        f"b = 1 # {LONG}",
        "b = [" + ", ".join(["1.5"] * 500) + "]",
        '"' + LONG[:2000] + '" = 1',
        "a.b.c.d.e.f.g = 2024-01-01T00:00:00.5",
    ],
)
def test_dots_that_are_of_no_key_are_read(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "9" * 5000, "integer string conversion"),
        ("a = " + "9" * 30, "a: the integer is beyond 64 bits"),
        ("a = " + "[" * 5000, "nested too deep"),
        ('a.b = ["x", "\\u001b"]', r"a.b\[1\]: '\\x1b' has a control character"),
        ('"\\u001b" = 1', "the file: the key .* has a control character"),
        (f'a = "{"x" * 5000}"', "a: 'xxx.* is longer than 4,096 characters"),
        (f"{'x' * 5000} = 1", "is longer than 4,096 characters"),
        ("a = [" + "1," * 60_000 + "]", "has more than 50,000 values"),
        ("#" * (1 << 20) + "\n", "more than the 1,048,576 allowed bytes"),
        ("a = 1\na = 2", "^x.toml: Cannot overwrite a value"),
    ],
)
def test_what_is_beyond_measure_is_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, OSError), match=said) as caught:
        read(text, tmp_path)
    assert str(caught.value).isprintable()


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_toml(tmp_path / "pipe", "pipe")
    (tmp_path / "latin").write_bytes(b"a = 1\nb = '\xe9'\n")
    with pytest.raises(ConfigError, match="latin, line 2: not encoded as UTF-8"):
        read_toml(tmp_path / "latin", "latin")


def test_places_are_made_for_what_is_told_alone(tmp_path: Path) -> None:
    # As texts, the places of these values would take 1.3 GB.
    key = ".".join(["k" * 4_000] * 16)
    values = "\n".join(f"a{i} = 1" for i in range(20_000))
    began = time.process_time()
    assert count_values(read(f"[{key}]\n{values}\n", tmp_path)) == 20_017
    assert time.process_time() - began < 5.0


def test_the_shipped_files_are_far_below_the_bounds() -> None:
    papers = sorted((ROOT / "svmbench" / "papers").glob("*/*.toml"))
    assert len(papers) > 10
    for path in (ROOT / "datasets.toml", *papers):
        found = read_toml(path, path.name)
        assert found == tomllib.loads(path.read_text(encoding="utf-8"))
        assert 10 * count_values(found) < toml_source.MAX_TOML_VALUES
        assert 10 * path.stat().st_size < toml_source.MAX_TOML_BYTES
