"""Output formats: each writes the same grid, and escapes what it writes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from runs import svmbench
from synthetic_runs import alsvm_run

from svmbench.base.errors import UnknownNameError
from svmbench.papers.judging.export import verdict_grid
from svmbench.report.output import formats
from svmbench.report.output.builder import Content, build, read_content
from svmbench.report.output.formats import FORMATS, declare_format, format_files
from svmbench.report.tables.grids import grid_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """A run whose table has a name that means something in every format."""
    folder = alsvm_run(tmp_path_factory.mktemp("alsvm"))
    plan = json.loads((folder / "plan.json").read_text())
    plan["tables"][0]["title"] = "A|title & *b* [link](x)"
    (folder / "plan.json").write_text(json.dumps({**plan, "plots": []}))
    return read_content(folder)


@pytest.mark.parametrize("name", FORMATS.names())
def test_a_format_writes_every_table_and_value(content: Content, name: str) -> None:
    form = FORMATS.named(name)
    files = format_files(form, content)
    assert list(files) == [f"{table.spec.name}.{form.ending}" for table in content.tables]
    assert form.what
    grid = grid_of(content.run, content.tables[0], in_seconds=form.in_seconds)
    text = files[f"{grid.name}.{form.ending}"].decode()
    values = [cell.text.value for _, cells in grid.rows for cell in cells if cell.order]
    assert len(values) > 10
    assert all(value in text for value in values)
    assert "A|title & *b* [link](x)" not in text  # every format has another sign for one of them


def test_the_pages_format_runs_as_it_stands(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "adding-a-format.md").read_text(encoding="utf-8")
    ((name, code),) = re.findall(r"```python file=(\w+)\.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    # As if the file stood beside the others.
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    monkeypatch.setattr(FORMATS, "paths", [*FORMATS.paths, str(tmp_path)])
    assert name in FORMATS.names()
    text = format_files(FORMATS.named(name), content)["table2.org"].decode()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({line.count("|") for line in rows}) == 1
    assert len(rows) == 7
    assert r"A\vert{}title" in text
    verdicts = FORMATS.named(name).table(verdict_grid([]), "verdicts")
    assert "0 claims" in verdicts


def test_a_declared_format_has_a_name_of_its_own(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FORMATS, "_declared", {})
    markdown = FORMATS.named("markdown")
    declare_format("plain", replace(markdown, ending="txt"))
    assert set(format_files(FORMATS.named("plain"), content)) == {"table2.txt"}
    with pytest.raises(ValueError, match="already"):
        declare_format("latex", markdown)
    with pytest.raises(UnknownNameError, match="did you mean 'plain'"):
        FORMATS.named("plane")


def test_the_sections_of_a_run_folder_are_those_of_markdown(tmp_path: Path) -> None:
    folder = alsvm_run(tmp_path)
    build(folder)
    files = format_files(FORMATS.named("markdown"), read_content(folder))
    for name, text in files.items():
        assert (folder / name).read_bytes() == text, name
    assert any(name.endswith(".svg") for name in files)


def test_the_command_names_the_nearest_format(tmp_path: Path) -> None:
    folder = alsvm_run(tmp_path)
    ended = svmbench("table", folder, "--format", "latx")
    assert ended.code == 2
    assert "there is no format 'latx'; did you mean 'latex'?" in ended.err
    svmbench("table", folder, "--format", "markdown", "-o", tmp_path / "notes")
    assert (tmp_path / "notes" / "table2.md").is_file()


def test_a_run_without_a_result_has_no_empty_tables(tmp_path: Path) -> None:
    folder = alsvm_run(tmp_path)
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    changed = [{**line, "status": "not run", "reason": "budget"} for line in lines]
    (folder / "runs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in changed))
    ended = svmbench("table", folder, "--format", "latex")
    assert ended.code == 1
    assert "no cell has a result, so there is no table to write" in ended.err
    assert not (folder / "latex").exists()
