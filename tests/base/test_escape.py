"""Text of unknown origin does nothing in a terminal, in Markdown, in a spreadsheet or in a plot."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from synthetic_runs import sweep_run

from svmbench.base import escape
from svmbench.cli import progress
from svmbench.report.output.builder import build

EVIL = [
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](javascript:alert(1))",
    "[x]: javascript:alert(1)",
    "=1+1",
    "@SUM(A1)",
    "+1+1",
    "-1+1",
    "\x1b[2J\x1b]0;title\x07",
    "two\nlines",
    "a|b",
    "`code` $x^{$ --> &lt;b&gt;",
    "\u202eright to left",
    "'=1+1",
]


@pytest.mark.parametrize("text", EVIL)
def test_a_terminal_shows_and_does_not_obey(text: str) -> None:
    assert escape.line(text).isprintable()
    assert all(each.isprintable() for each in escape.lines(text).split("\n"))
    assert len(escape.line(100 * text, 40)) <= 40


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>", "\\<b\\>"),
        ("[x](javascript:alert(1))", "[x\\](javascript:alert(1))"),
        ("[x]: javascript:y", "[x\\]: javascript:y"),
        ("[x][y]", "[x\\][y]"),
        ("a\\|b", "a\\\\\\|b"),
        ("`x`", "\\`x\\`"),
        ("&lt;", "&amp;lt;"),
        ("# heading", "\\# heading"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("a\n\n# b", "a  # b"),
        ("see https://x.org/a b", "see https\\://x.org/a b"),
        ("WWW.x.org ftp://y", "WWW\\.x.org ftp\\://y"),
        ("a: b // c www", "a: b // c www"),
        ("a.b+c@x.org", "a.b+c<!-- -->@x.org"),
        ("mailto:me@x.org/y", "mailto:me<!-- -->@x.org/y"),
        ("_@-x.y", "\\_<!-- -->@-x.y"),
        ("5 @ 3, @x and x@", "5 @ 3, @x and x@"),
        ("**x** _y_ ~~z~~", "\\*\\*x\\*\\* \\_y\\_ \\~\\~z\\~\\~"),
        (
            "train_time_s [3.1; -0.3] 50 % a & b /~x -0.3",
            "train_time_s [3.1; -0.3] 50 % a & b /~x -0.3",
        ),
    ],
)
def test_markdown_reads_as_the_text(text: str, shown: str) -> None:
    assert escape.markdown(text) == shown


def test_a_code_span_and_a_label_end_where_their_text_does() -> None:
    assert escape.markdown_code("a`b|c").count("`") == 2
    assert escape.markdown_label("a](javascript:x) [b]") == "a\\](javascript:x) \\[b\\]"


@pytest.mark.parametrize("text", [*EVIL, "", "plain", "-", "''", " =1"])
def test_no_field_is_a_formula_and_each_gives_its_text_back(text: str) -> None:
    field = escape.csv_field(text)
    assert isinstance(field, str)
    assert field.lstrip()[:1] not in ("=", "+", "-", "@")
    assert escape.csv_value(field) == escape.line(text)


@pytest.mark.parametrize("number", ["-0.3", "+5", "1e-5", "-1.5E+300", "-inf", "nan", "12", "-.5"])
def test_numbers_stay_numbers(number: str) -> None:
    assert escape.csv_field(number) == number
    assert escape.csv_field(float(number)) is not None
    assert str(escape.csv_field(-3)) == "-3"


def evil_run(folder: Path) -> None:
    """Make a run folder whose every name, title and reason means harm."""
    sweep_run(folder)
    plan = json.loads((folder / "plan.json").read_text())
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    plan["config"]["title"] = "<script>alert(1)</script>\n# x"
    plan["config"]["name"] = "`x` <b>"
    plan["profile_note"] = "[x](javascript:alert(1))"
    for spec in [*plan["tables"], *plan["plots"]]:
        spec["title"] = "![t](javascript:alert(1)) <b> $x^{$ --> \x1b[2J"
    for number, cell in enumerate([*plan["cells"], *lines]):
        for name, value in (("dataset", "=1+1<i>|"), ("solver", "@x\x1b[31m<u>$y^{$")):
            if cell.get(name):
                cell[name] = f"{value}{cell[name]}"
        if number % 3 == 0 and cell.get("status") == "ok":
            cell.update(status="failed", reason="=2+2 <script>\n[x](javascript:y)\x1b[2J")
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.slow
def test_a_report_of_a_hostile_run_is_inert_in_every_file(tmp_path: Path) -> None:
    evil_run(tmp_path)
    built = build(tmp_path)
    assert built.plots
    written = [path for path in built.files if path.suffix != ".png"]
    assert {path.suffix for path in written} == {".csv", ".md", ".svg"}
    for path in written:
        text = path.read_text()
        assert "\x1b" not in text, path.name
        if path.suffix == ".md":
            text = re.sub("`[^`]*`", "", text)  # code spans, in which nothing means anything
            for bad in ("<script", "<b>", "<i>", "<u>"):
                assert bad not in text.replace(f"\\{bad}", ""), path.name
            assert "](javascript" not in text.replace("\\](javascript", ""), path.name
        elif path.suffix == ".csv":
            for row in csv.reader(path.open()):
                for field in row:
                    is_number = escape._NUMBER.fullmatch(field)
                    assert is_number or field[:1] not in ("=", "+", "-", "@"), (path.name, field)
        else:
            tags = {element.tag.rpartition("}")[2] for element in ET.parse(path).iter()}
            assert not tags & {"script", "a", "b", "foreignObject", "image"}, path.name


def test_a_cell_is_named_in_one_line() -> None:
    nothing = dict.fromkeys(("size", "n_features_kept", "fold"))
    cell = SimpleNamespace(
        identity={**nothing, "dataset": "x\x1b[2J", "solver": "a\nb", "block": "c"}
    )
    shown: Any = cell
    assert progress.cell_name(shown).isprintable()
