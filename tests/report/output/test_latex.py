"""Tables and plots for papers: LaTeX that compiles as far as can be seen, and PDF."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from runs import svmbench
from synthetic_runs import alsvm_run, race_run, smo_run

from svmbench.report.output.builder import read_content
from svmbench.report.output.formats import format_files
from svmbench.report.output.formats.latex import FORMAT, SIDEWAYS_LINE
from svmbench.report.reading.units import MICROSECONDS, MILLISECONDS, SECONDS, unit_of

LABEL = "tab:100--of--it--table2"


def rows_of(text: str) -> list[str]:
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    return [line for line in body.splitlines()[1:] if line]


def is_balanced(text: str) -> bool:
    plain = re.sub(r"\\[{}\\]", "", text)
    depth = 0
    for sign in plain:
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            return False
    return depth == 0


def plain_text(line: str) -> str:
    """Return the text of a row as it is printed, with one sign for each symbol."""
    text = re.sub(r"\\textbf\{(.*?)\}", r"\1", line.removesuffix(r" \\"))
    return re.sub(r"\$?\\[a-z]+(\{\})?\$?", "x", text)


@pytest.fixture(scope="module")
def alsvm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = alsvm_run(tmp_path_factory.mktemp("alsvm"))
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"] |= {"name": "100%_of_{it}"}
    plan["tables"][0]["title"] = r"A_title & \input{it} $x^2$ #1 ~"
    (folder / "plan.json").write_text(json.dumps({**plan, "plots": plan["plots"][:1]}))
    return format_files(FORMAT, read_content(folder))


def test_a_table_is_whole(alsvm: dict[str, bytes]) -> None:
    text = alsvm["table2.tex"].decode()
    assert is_balanced(text)
    # Four solvers with two columns each: too many signs for one line of a page.
    parts = text.split(r"\begin{sidewaystable}")[1:]
    assert [part.count(r"\multicolumn") for part in parts] == [2, 2]
    assert re.findall(r"\\label\{(.*?)\}", text) == [f"{LABEL}", f"{LABEL}-2"]
    for part in parts:
        rules = [part.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")]
        assert rules == [1, 1, 1]
        assert r"\begin{tabular}{lrrrr}" in part
        assert part.count(r"\end{tabular}") == part.count(r"\end{sidewaystable}") == 1
        rows = rows_of(part)
        assert len(rows) == 6
        assert all(line.endswith(r" \\") and line.count(" & ") == 4 for line in rows)
        assert all(len(plain_text(line)) <= SIDEWAYS_LINE + 4 * len(" & ") for line in rows)
        assert re.findall(r"\\multicolumn\{(\d)\}", part) == ["2", "2"]
        assert re.findall(r"\\cmidrule\(lr\)\{(.*?)\}", part) == ["2-3", "4-5"]


def test_a_table_that_fits_stands_upright_in_one_part(tmp_path: Path) -> None:
    text = format_files(FORMAT, read_content(smo_run(tmp_path)))["adult_rbf.tex"].decode()
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    assert text.count(r"\begin{tabular}") == 1
    assert "sideways" not in text


def test_names_do_nothing(alsvm: dict[str, bytes]) -> None:
    text = alsvm["table2.tex"].decode()
    title = (
        r"A\_title \& \textbackslash{}input\{it\} \$x\textasciicircum{}2\$ \#1 \textasciitilde{}"
    )
    assert title in text
    # A label is no text: it holds letters, digits and dashes alone.
    assert rf"\label{{{LABEL}}}" in text


def test_one_unit_the_best_in_bold_and_footers_in_the_caption(alsvm: dict[str, bytes]) -> None:
    text = alsvm["table2.tex"].decode()
    assert text.count("train time (ms)") == 4
    lines = [line for line in text.splitlines() if line.startswith("a9a &")]
    cells = [cell for line in lines for cell in line.removesuffix(r" \\").split(" & ")]
    assert [number for number, cell in enumerate(cells) if r"\textbf" in cell] == [1, 7]
    assert r"[82 s; $\times$" in cells[1]
    assert r"$\pm$" in cells[1]
    caption = text[text.index(r"\caption{") : text.index(r"\label")]
    assert "Bold: the best" in caption
    assert r"Mean $\pm$ sample standard deviation over 3 folds" in caption
    assert r"\dag{} Not every fold finished" in caption


def test_a_plot_is_a_pdf_with_its_footer_as_caption(alsvm: dict[str, bytes]) -> None:
    assert alsvm["times.pdf"].startswith(b"%PDF")
    assert b"CreationDate" not in alsvm["times.pdf"]
    text = alsvm["times.tex"].decode()
    assert is_balanced(text)
    assert r"\includegraphics[width=\linewidth]{times}" in text
    assert r"\caption{Training time. 100\%\_of\_\{it\}, profile quick" in text
    assert "not available: cod-rna" in text


def test_a_name_in_brackets_is_no_space(tmp_path: Path) -> None:
    folder = smo_run(tmp_path)
    plan = json.loads((folder / "plan.json").read_text())
    for cell in plan["cells"]:
        cell["dataset"] = "[1ex] set"
    plan["tables"][0] |= {"rows": "dataset", "columns": ["rows", "solver"]}
    (folder / "plan.json").write_text(json.dumps({**plan, "plots": []}))
    text = format_files(FORMAT, read_content(folder))["adult_rbf.tex"].decode()
    assert [line[:11] for line in rows_of(text)] == ["{}[1ex] set"]


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [
        ([3.0, 200.0, None], SECONDS),
        ([0.0009996, 0.5, 0.003], MILLISECONDS),
        ([0.9996], SECONDS),
        ([0.9994], MILLISECONDS),
        ([0.0009994, 2e-6, 0.4e-3], MICROSECONDS),
        ([], SECONDS),
        ([0.0], SECONDS),
    ],
)
def test_a_column_has_the_unit_of_most_of_its_times(seconds: list, unit: object) -> None:
    assert unit_of("train_time_s", seconds) is unit
    assert unit_of("accuracy_pct", seconds) is None


def test_the_command(tmp_path: Path) -> None:
    folder = race_run(tmp_path / "race")
    shown = svmbench("table", folder, "--format", "latex")
    assert shown.code == 0, shown.said
    made = {path.name for path in (folder / "latex").iterdir()}
    assert made == {"speed.tex", "race.tex", "race.pdf"}
    assert not (folder / "tables.md").exists()
    other = svmbench("table", folder, "--format", "latex", "-o", tmp_path / "thesis")
    assert {path.name for path in (tmp_path / "thesis").iterdir()} == made, other.said
    named = (tmp_path / "thesis" / "race").as_posix()
    included = rf"\includegraphics[width=\linewidth]{{{named}}}"
    assert included in (tmp_path / "thesis" / "race.tex").read_text()
    refused = svmbench("table", folder, "-o", tmp_path / "elsewhere")
    assert (refused.code, (tmp_path / "elsewhere").exists()) == (2, False)
    assert "-o is for --format" in refused.err
    (tmp_path / "file").write_text("")
    blocked = svmbench("table", folder, "--format", "latex", "-o", tmp_path / "file")
    assert (blocked.code, "can't write" in blocked.err) == (1, True)
