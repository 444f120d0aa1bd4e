"""Figures in prose: what an expression means, how it is written, what is said of a wrong one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from claimed_runs import SCENES, Kept
from script_loading import load_script
from synthetic_runs import planned, race_run, record, smo_run, write_run

from svmbench.base.errors import ResultsError
from svmbench.papers.page_numbers import (
    Results,
    claim_pictures,
    evaluate_expression,
    expressions,
    queries,
    refresh_page,
    rows_behind,
    without_comments,
    written,
)
from svmbench.report.output import kept
from svmbench.report.output.builder import build, read_content
from svmbench.report.reading.newest import COMPRESSED_RECORDS
from svmbench.report.reading.records import result_lines
from svmbench.report.tables.tidy import tidy_csv

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Results(ROOT / "results")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kept results: three data sets, a parameter that was swept, a race and exponents."""
    root = tmp_path_factory.mktemp("results")
    cells, records = [], []
    for dataset, times in (("iris", (1.0, 4.0)), ("wine", (2.0, 6.0)), ("glass", (9.0, 90.0))):
        for solver, time in zip(("fast", "slow"), times, strict=True):
            cells.append(planned("cv", dataset, solver))
            records.append(record(cells[-1], {"cpu_time_s": time, "accuracy_pct": 90.0}))
    for nu in (0.1, 0.2):
        cells.append(planned("nu", "iris", "nu-svc", dimensions={"solver.nu": nu}))
        records.append(record(cells[-1], {"accuracy_pct": 100 * nu}))
    tables = [
        {"name": name, "block": "cv", "metrics": ["cpu_time_s"], "published": None}
        for name in ("times", "again")
    ]
    build(write_run(root / "p" / "one", cells, records, tables))
    build(race_run(root / "p" / "race"))
    build(smo_run(root / "smo" / "adult"))
    return root


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("value cpu_time_s fast of p/one dataset=wine", (2.0,)),
        ("value cpu_time_s fast of results/p/one dataset=wine", (2.0,)),
        ("median cpu_time_s slow of p/one", (6.0,)),
        ("mean cpu_time_s fast of p/one", (4.0,)),
        ("min cpu_time_s of p/one block=cv", (1.0,)),
        ("max cpu_time_s of p/one dataset=iris,wine", (6.0,)),
        ("sum cpu_time_s fast of p/one", (12.0,)),
        ("range cpu_time_s slow of p/one", (4.0, 90.0)),
        ("count accuracy_pct of p/one block=cv", (6.0,)),
        ("mean cpu_time_s slow of p/one dataset=iris,wine / mean cpu_time_s fast", (10 / 3,)),
        ("value cpu_time_s slow of p/one dataset=iris - value cpu_time_s fast", (3.0,)),
        ("value accuracy_pct of p/one solver.nu=0.2", (20.0,)),
        ("value ratio alsvm-batch:liblinear-l2 of p/race dataset=a9a", (9.7,)),
        ("value ratio alsvm-batch:liblinear-l2 of p/race dataset=a9a field=high", (11.64,)),
        ("value train_time_s smo of smo/adult rows=1605 field=published", (15.8,)),
        ("value exponent smo of smo/adult plot=adult", (2.0658,)),
        ("value printed chunking of smo/adult plot=adult", (2.9,)),
    ],
)
def test_an_expression_has_a_value(root: Path, expression: str, expected: tuple[float]) -> None:
    assert evaluate_expression(expression, Results(root)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("value cpu_time_s of p/one", "6 numbers fit; select one"),
        ("value cpu_time_s of p/one dataset=a9a", "no number fits"),
        ("value cpu_time_s of p/two", "can't read .*table.csv: No such file"),
        ("value cpu_time_s of p/one colour=red", "table.csv has no column 'colour'"),
        ("value cpu_time_s", "it names no folder"),
        ("value cpu_time_s of p/one p/two", "after 'of' stands one folder"),
        ("about cpu_time_s of p/one", "begins with one of value, range, median"),
        ("range cpu_time_s of p/one / max cpu_time_s", "a range can.t have a quotient"),
        ("max cpu_time_s of p/one / max cpu_time_s / max cpu_time_s", "one quotient or difference"),
        ("max cpu_time_s of p/one / count cpu_time_s nobody", "the second value is 0"),
    ],
)
def test_a_wrong_expression_is_a_sentence_with_its_place(
    root: Path, expression: str, said: str
) -> None:
    with pytest.raises(ResultsError, match=rf"page\.md:2: {expression.split()[0]} .*{said}"):
        refresh_page(f"one\n<!--= {expression} -->3", Results(root), "page.md")


@pytest.mark.parametrize(
    ("values", "like", "expected"),
    [
        ((36.4,), "12", "36"),
        ((36.46,), "1.2", "36.5"),
        ((0.02,), "0.523", "0.020"),
        ((32561.0,), "1,234", "32,561"),
        ((-0.97,), "1.00", "−0.97"),
        ((-0.001,), "0.1", "0.0"),
        ((4.0, 90.25), "3–4.5", "4–90.2"),
        ((4.0, 90.25), "7", "4–90"),
        ((1234.5,), "", "1,234"),
        ((0.0123456,), "", "0.0123"),
        ((0.0,), "", "0"),
    ],
)
def test_a_figure_keeps_its_digits(values: tuple[float], like: str, expected: str) -> None:
    assert written(values, like) == expected


def test_a_page_is_refreshed_and_nothing_else_changes(root: Path) -> None:
    page = (
        "It is <!--= median cpu_time_s slow of p/one -->17 times, at most\n"
        "<!--= max cpu_time_s\n  slow of p/one -->1.5 s, and <!--= count cpu_time_s of p/one -->\n"
        "<!-- table p/one times -->\nold\n<!-- /table -->\nThe end, 17.\n"
    )
    results = Results(root)
    assert refresh_page(page, results) == (
        "It is <!--= median cpu_time_s slow of p/one -->6 times, at most\n"
        "<!--= max cpu_time_s\n  slow of p/one -->90.0 s, and "
        "<!--= count cpu_time_s of p/one -->6\n"
        "<!-- table p/one times -->\n\n"
        "| data set | fast CPU time (s) | slow CPU time (s) |\n| --- | ---: | ---: |\n"
        "| iris | 1.00 | 4.00 |\n| wine | 2.00 | 6.00 |\n| glass | 9.00 | 90.0 |\n\n"
        "<!-- /table -->\nThe end, 17.\n"
    )
    assert refresh_page(refresh_page(page, results), results) == refresh_page(page, results)


@pytest.fixture
def write_pages() -> ModuleType:
    return load_script("write_pages")


def test_the_script_checks_and_writes(
    root: Path, write_pages: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!--= median cpu_time_s slow of p/one -->7\n")
    words = [str(page), "--results", str(root)]
    assert write_pages.main([*words, "--check"]) == 1
    assert "-->7" in page.read_text()
    assert "+<!--= median cpu_time_s slow of p/one -->6" in capsys.readouterr().out
    assert write_pages.main(words) == 0
    assert page.read_text() == "<!--= median cpu_time_s slow of p/one -->6\n"
    assert write_pages.main([*words, "--check"]) == 0
    assert capsys.readouterr().out.endswith("nothing differs\n")
    old = tmp_path / "claims" / "smo-99.svg"  # of a claim that there is no more
    old.parent.mkdir()
    old.write_text("<svg/>")
    assert write_pages.main([*words, "--check"]) == 1
    assert old.exists()
    assert "smo-99.svg: no claim of the page has it" in capsys.readouterr().out
    assert write_pages.main(words) == 0
    assert not old.exists()
    page.write_text("<!--= what -->7\n")
    with pytest.raises(SystemExit, match=r"page\.md:1: what: it begins with"):
        write_pages.main(words)


def test_figures_of_the_pages_agree_with_kept_results(write_pages: ModuleType) -> None:
    assert write_pages.pages()
    assert write_pages.main(["--check"]) == 0, "run scripts/write_pages.py"


def quoted() -> dict[str, list[str]]:
    """Return the expressions of all pages that are of records, by the folder of the first side."""
    found: dict[str, list[str]] = {}
    for page in [ROOT / "docs/README.in", *sorted((ROOT / "results").rglob("README.md"))]:
        for expression in expressions(page.read_text(encoding="utf-8")):
            first = queries(expression)[0]
            measured = "plot" not in first.where and first.where.get("field") != "published"
            if measured and kept.has_records(RESULTS.root / first.folder):
                found.setdefault(first.folder, []).append(expression)
    return found


def remove_what_is_behind(folder: Path, names: Sequence[str], target: Path) -> None:
    """Write the table of a kept folder without the records of the numbers that are quoted."""
    rows = [
        row
        for name in names
        for query in queries(name)
        if query.folder == folder.relative_to(RESULTS.root).as_posix()
        for row in rows_behind(query, RESULTS)
    ]
    behind = {(row["block"], row["dataset"]) for row in rows}
    cells = json.loads((folder / "plan.json").read_text())["cells"]
    keys = {one["key"] for one in cells if (one["block"], one["dataset"] or "") in behind}
    assert keys
    content = read_content(kept.decompress(folder, target, without=keys))
    (target / "table.csv").write_text(tidy_csv(content.run, content.tables), encoding="utf-8")


def value_or_none(expression: str, results: Results) -> tuple[float, ...] | None:
    """Return the value of an expression; None where there is no number for it."""
    try:
        return evaluate_expression(expression, results)
    except ResultsError:
        return None


@pytest.mark.parametrize(("folder", "names"), quoted().items(), ids=list(quoted()))
def test_no_number_outlives_its_records(folder: str, names: list[str], tmp_path: Path) -> None:
    """A quoted number is gone, or another one, where the records of its data set are gone."""
    results = RESULTS.root
    for other in {query.folder for name in names for query in queries(name)} - {folder}:
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / other).symlink_to(results / other)
    (tmp_path / folder).parent.mkdir(exist_ok=True)
    remove_what_is_behind(results / folder, names, tmp_path / folder)
    emptied = Results(tmp_path)
    for name in names:
        assert value_or_none(name, emptied) != pytest.approx(evaluate_expression(name, RESULTS)), (
            name
        )


def test_pages_quote_records() -> None:
    assert sum(map(len, quoted().values())) > 100


def compress_records(root: Path) -> None:
    """Make kept results of the runs below a folder."""
    for records in sorted(root.rglob("runs.jsonl")):
        (records.parent / COMPRESSED_RECORDS).unlink(missing_ok=True)
        packed = kept.compress_records(result_lines(records.parent))
        records.with_name(COMPRESSED_RECORDS).write_bytes(packed)
        records.unlink()


def test_verdicts_stand_between_their_comments(tmp_path: Path) -> None:
    runs = Kept()
    SCENES["smo-1"].build(runs)
    runs.write(tmp_path)
    page = (
        "<!-- verdicts -->\n<!-- /verdicts -->\n\n<!-- verdicts smo -->\nold\n<!-- /verdicts -->\n"
    )
    not_kept = refresh_page(page, Results(tmp_path))
    assert "13 claims: 13 not tested" in not_kept, "of runs that aren't kept"
    compress_records(tmp_path)
    made = refresh_page(page, Results(tmp_path))
    assert "| smo | smo-1, smo-11 |  | smo-9 |  | smo-2, smo-3," in made
    assert "| cpsp |  |  |  |  | cpsp-1, cpsp-2" in made
    assert "| smo-1: Adult, linear kernel" in made
    assert "\nold\n" not in made
    assert refresh_page(made, Results(tmp_path)) == made
    pictures = claim_pictures(made, Results(tmp_path))
    assert set(re.findall(r"\]\(claims/(smo-\d+\.svg)\)", made)) == set(pictures)
    assert pictures["smo-1.svg"].startswith("<svg ")
    assert claim_pictures("no verdicts", Results(tmp_path)) == {}
    runs.edit(SCENES["smo-1"].edit)
    runs.write(tmp_path)
    compress_records(tmp_path)
    assert "| smo |  |  | smo-1, smo-9, smo-11 |" in refresh_page(made, Results(tmp_path))
    with pytest.raises(ResultsError, match="there are no claims of 'nobody'"):
        refresh_page("<!-- verdicts nobody -->\n<!-- /verdicts -->", Results(tmp_path))


def test_the_readme_is_the_template_without_comments() -> None:
    template = (ROOT / "docs/README.in").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == without_comments(template)
    assert "<!-- outcomes -->" in template
    assert "<!-- choices -->" in template
    assert "<!--" not in readme
    # Two screens.
    assert len(readme.splitlines()) <= 80


def test_comments_leave_no_empty_lines() -> None:
    text = "<!-- a\nb -->\n# T\n\n<!-- c -->\n\nx <!--= value a of b -->3.5.\n\n<!-- /c -->\n\ny\n"
    assert without_comments(text) == "# T\n\nx 3.5.\n\ny\n"
