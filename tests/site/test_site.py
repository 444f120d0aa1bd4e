"""The site: valid pages, dead ends, hostile names, what stands on them, and a real browser."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pages as checking
import pytest
from claimed_runs import SCENES, Kept
from pages import Page, contrast, dead_ends, faint, heavy, main, read_pages, schemes
from PIL import Image
from runs import svmbench
from synthetic_runs import alsvm_run, planned, race_run, record, sweep_run, write_run

from svmbench.base.errors import ResultsError
from svmbench.papers import judging as claims
from svmbench.papers.judging.export import scales
from svmbench.papers.judging.measures import Answer, Criterion
from svmbench.papers.judging.verdict import Part, Scale
from svmbench.report.numbers.ratios import Ratio, leaderboard, ratios
from svmbench.report.numbers.statistics import Interval
from svmbench.report.output.builder import read_content
from svmbench.report.plots.plot_data import PlotData
from svmbench.report.reading.records import Run
from svmbench.report.tables.layout import Table
from svmbench.schema.rechecks import Ages
from svmbench.site import MARKER, Material, PaperFacts, SolverFacts, build_site, folder, runs
from svmbench.site.datasets import SettingOutcome, pareto_front, subsample_baseline
from svmbench.site.diagrams import error_chart, ratio_chart
from svmbench.site.pages import chart_names, grouped, ratio_text
from svmbench.site.runs import lighter

EVIL = '<img src=x onerror="alert(1)">&amp;\'\x1b[31m'
HOSTILE_SOLVERS = (EVIL, "../../etc/passwd", "index")
CHANGED = "main · a9a · alsvm: objective was 1.0, is 2.0"
#: Pages as a browser showed them once, and how far apart two looks of one page are at most.
SCREENS = Path(__file__).parent / "screens"
SAME_LOOK = 0.02
#: Where a page searches for a paper whose address is not known.
SEARCH = "https://search.crossref.org/?q="


def hostile_run(place: Path) -> Path:
    """Names, titles and reasons that a page must not obey."""
    cells, records = [], []
    for dataset in (EVIL, "plain", "</script><script>alert(2)</script>"):
        for solver in HOSTILE_SOLVERS:
            cell = planned("cv", dataset, solver, paper="")
            cells.append(cell)
            if dataset == "plain" and solver == EVIL:
                records.append(record(cell, status="failed", reason=EVIL))
            elif solver != "index" or dataset != EVIL:
                records.append(record(cell, {"train_time_s": 0.002, "accuracy_pct": 90.0}))
    table = {"name": "t", "title": EVIL, "block": "cv", "rows": "dataset", "columns": "solver",
             "metrics": ["train_time_s", "accuracy_pct"], "published": None}  # fmt: skip
    plot = {"name": "p", "kind": "bars", "title": EVIL, "block": "cv", "x": "dataset",
            "y": "train_time_s", "series": "solver", "published": None}  # fmt: skip
    made = write_run(place, cells, records, [table], [plot], paper="")
    plan = json.loads((made / "plan.json").read_text())
    plan["config"] |= {"name": EVIL, "title": EVIL}
    (made / "plan.json").write_text(json.dumps({**plan, "profile_note": EVIL}))
    return made


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs") / "results"
    root.mkdir()
    alsvm_run(root / "alsvm_table2")
    renamed(sweep_run(root / "sweep"), "alsvm_fig2")
    renamed(race_run(root / "race"), "perf_race")
    hostile_run(root / "hostile")
    kept = Kept()
    SCENES["smo-1"].build(kept)
    kept.write(root)
    (root / "bare").mkdir()
    (root / "bare" / "tables.md").write_text("# Without records\n")
    return root


def without_plots(place: Path, **changed: object) -> Path:
    """Take the plots out of a run's plan, which take most of the time; change its other keys."""
    plan = json.loads((place / "plan.json").read_text())
    (place / "plan.json").write_text(json.dumps({**plan, "plots": [], **changed}))
    return place


def renamed(place: Path, name: str) -> Path:
    """Give a run another config."""
    plan = json.loads((place / "plan.json").read_text())
    plan["config"] |= {"name": name}
    (place / "plan.json").write_text(json.dumps(plan))
    return place


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small run that nothing is drawn of."""
    return without_plots(race_run(tmp_path_factory.mktemp("one") / "race"))


def ages(path: Path) -> Ages:
    """Return of one run that `alsvm` changed, of another that it was rechecked."""
    cells = json.loads((path / "plan.json").read_text())["cells"]
    if path.name == "sweep":
        return Ages({c["key"]: "rechecked" for c in cells}, n_agreed=2)
    words = {c["key"]: "changed" if c["solver"] == "alsvm" else "fresh" for c in cells}
    return Ages(words, changed={key: CHANGED for key in words if words[key] == "changed"})


def material(results: Path, **more: object) -> Material:
    known = [one for one in claims.read_all_claims() if one.paper in {"smo", "alsvm"}]
    verdicts = claims.judge(known, claims.gather_evidence([results]))
    facts = SolverFacts(
        {"minimises": "1/2 |w|² <b>", "parameters": ["C = 1.0"], "paper": "alsvm"}, ("A plus.",)
    )
    given = {
        "folders": (results,),
        "verdicts": tuple(verdicts),
        "papers": {
            "smo": PaperFacts(
                "Sequential SMO",
                "J. C. Platt: Sequential SMO",
                (),
                "It claims.",
                "https://example.org/smo?a=1&b=2",
            ),
            "alsvm": PaperFacts("Adaptable", "Le: Adaptable", ("alsvm_fig2", "alsvm_table2")),
            "srbo": PaperFacts("Safe screening", "Yang: Safe screening"),
        },
        "solvers": {
            "alsvm": facts,
            "alsvm-batch": SolverFacts({"what": "all samples at once"}),
            "unused": SolverFacts({"minimises": "nothing"}),
            **{name: SolverFacts({}) for name in HOSTILE_SOLVERS},
        },
        "datasets": {"a9a": {"rows": 32561, "features": 123, "task": "binary"}},
        "variants": {("alsvm_table2", "falsvm"): "alsvm"},
        "ages_of_run": ages,
        "version": "9.9",
        **more,
    }  # fmt: skip
    return Material(**given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("made") / "site"
    build_site(material(results), target)
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return read_pages(site)


def page(pages: dict[Path, Page], name: str) -> Page:
    return next(one for path, one in pages.items() if path.as_posix().endswith(f"/{name}"))


def test_every_page_is_valid(pages: dict[Path, Page]) -> None:
    assert len(pages) > 8
    assert {str(path): one.wrong for path, one in pages.items() if one.wrong} == {}


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("<p><ul></ul></p>", "in a paragraph"),
        ("<h1>a</h1><h3>b</h3>", "h3 after h1"),
        ("<i id=a></i><i id=a></i>", "twice"),
        ("<img src=a.svg>", "without words"),
        ("a & b", "bare &"),
        ("<table><td>1</td></table>", "td in table"),
        ("<b><i></b></i>", "is open"),
        ("<p onclick='x'></p>", "code of its own"),
        ("<p aria-labelledby=none></p>", "no id none"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(tmp_path: Path, html: str, said: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(f"<!DOCTYPE html><title>t</title><main>{html}</main>")
    assert any(said in one for one in Page(path).wrong)


def test_a_site_is_checked_by_a_script(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(site) == 0
    assert "pages: nothing is wrong" in capsys.readouterr().out
    copy = shutil.copytree(site, tmp_path / "site")
    path = copy / "index.html"
    path.write_text(path.read_text().replace("<main", "<img src=none.svg><main"))
    assert main(copy) == 1
    said = capsys.readouterr().out
    assert "an image without words" in said
    assert "none.svg is not there" in said


def test_links_lead_somewhere_and_nothing_is_loaded_from_outside(
    pages: dict[Path, Page],
) -> None:
    assert dead_ends(pages) == []
    outside = {link for one in pages.values() for link in one.links if "//" in link}
    searches = {f"{SEARCH}Adaptable", f"{SEARCH}Safe%20screening"}
    assert outside == {"https://example.org/smo?a=1&b=2"} | searches
    assert sum(len(one.links) for one in pages.values()) > 100
    assert sum(len(one.loads) for one in pages.values()) > 2 * len(pages)


def test_nothing_is_asked_of_the_network(site: Path) -> None:
    for path in site.rglob("*"):
        if path.suffix in {".css", ".js"}:
            assert "//" not in re.sub(r"(?m)^\s*//.*|/\*.*?\*/", "", path.read_text())
        if path.suffix == ".svg":
            text = path.read_text()
            assert re.findall(r'(?:href|src)="(?!#)', text) == []
            assert "<script" not in text


def test_pages_are_light(pages: dict[Path, Page], monkeypatch: pytest.MonkeyPatch) -> None:
    assert heavy(pages) == []
    monkeypatch.setattr(checking, "MOST_BYTES", 52_000)
    assert [one.partition(":")[0] for one in heavy(pages)] == [
        "alsvm-speed.html", "alsvm.html", "others.html", "smo.html",
    ]  # fmt: skip


def test_plots_are_no_finer_than_anyone_sees() -> None:
    svg = b'<path d="M 1.23456 -0.999 L 20 3.5 "/><g transform="scale(0.015625)"/>'
    assert lighter(svg) == b'<path d="M 1.23 -0.99 L 20 3.5 "/><g transform="scale(0.015625)"/>'


def test_colours_can_be_told_apart(site: Path) -> None:
    css = (site / "site.css").read_text()
    assert set(schemes(css)) == {"light", "@media (prefers-color-scheme: dark)", "@media print"}
    assert faint(css) == []
    assert faint(css.replace("--quiet: #a3adb8", "--quiet: #555555"))[0].endswith("2.4")
    # Every colour of the style is one of these, but the white that plots are drawn on.
    body = re.sub(r":root\s*\{[^}]*\}", "", css)
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", body)) == {"#ffffff"}
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


def test_names_are_text(site: Path, pages: dict[Path, Page]) -> None:
    one = page(pages, "papers/others.html")
    assert '<img src=x onerror="alert(1)">&amp;\'�[31m' in one.text
    assert "</script><script>alert(2)</script>" in one.text
    assert [given["src"] for tag, given in one.tags if tag == "script"] == ["../site.js"]
    assert all("\x1b" not in path.read_text() for path in pages)
    made = sorted(path.name for path in (site / "solvers").iterdir())
    assert made == sorted([
        "alsvm.html", "alsvm-batch.html", "alsvm-batch-ratios1.svg", "etc-passwd.html",
        "img-src-x-onerror-alert-1-amp-31m.html", "index.html", "index-2.html", "unused.html",
    ])  # fmt: skip


def test_the_first_screen_says_what_it_is_and_what_was_found(site: Path) -> None:
    index = Page(site / "index.html")
    text = " ".join(index.text.split())
    told = [
        "svmbench Re-runs the experiments of 2 papers",
        "of 23 claims", "Which solver to take",
        "a kernel classifier", "not measured", "a linear classifier", "a one-class SVM", "a ν-SVM",
        "Sequential SMO", "Adaptable", "Safe screening", "Verdicts", "All claims", "Runs",
    ]  # fmt: skip
    places = [text.index(one) for one in told]
    assert places == sorted(places)
    assert re.search(r"\b23 claims: ", text)
    # The words for the age of results stand beside runs and claims, each with their meaning.
    assert "index.html#age" in index.links
    assert 'class="warning"' not in (site / "index.html").read_text()
    assert "papers/smo.html#claim-smo-1" in index.links
    assert "Tables without records" in text
    assert "none is kept" not in text


def test_the_leaderboard_ranks_solvers_of_enough_problems(site: Path) -> None:
    text = " ".join(Page(site / "leaderboard.html").text.split())
    assert "Not measured: no race of these results has certificates." in text
    # Two problems make no rank.
    assert "Linear classifier, against LIBLINEAR" in text
    assert "Objectives not compared alsvm-batch – 5.25 0.800–9.70 2" in text


def certified_race(place: Path, *, true: float = 100.0) -> Path:
    """Write a race of five problems at certified accuracy, and one at default settings."""
    named = "csvc|libsvm"
    cells, records = [], []
    for k in range(5):
        cell = planned("ladder", f"set{k}", named, protocol="race", kernel="rbf", paper="")
        metrics: dict[str, float | None] = {}
        for accuracy in ("1e-2", "1e-3", "1e-5"):
            metrics[f"cpu_time_to_{accuracy}_s:csvc"] = 0.01
            metrics[f"cpu_time_to_{accuracy}_s:libsvm"] = 0.01 * (1 + 3 * k) if k < 4 else None
        cells.append(cell)
        records.append(record(cell, metrics))
    cell = planned("default", "set0", named, protocol="race", kernel="rbf", paper="")
    claims = {"claims_true_pct:csvc": 100.0, "claims_true_pct:libsvm": true}
    bounds = {f"certified_bound:{name}": 1.0 for name in ("csvc", "libsvm")}
    times = {f"cpu_time_s:{name}": 0.1 for name in ("csvc", "libsvm")}
    records.append(record(cell, {**claims, **bounds, **times, "ratio:csvc:libsvm": 0.25}))
    blocks = [{"name": "ladder", "title": "A kernel: C = 1"}, {"name": "default"}]
    metrics_shown = ["ratio", "cpu_time_s"]
    table = {"name": "t", "title": "t", "block": "default", "rows": "dataset",
             "columns": "solver", "metrics": metrics_shown, "published": None}  # fmt: skip
    return write_run(place, [*cells, cell], records, [table], paper="", blocks=blocks)


def test_a_board_shows_what_is_solved_in_a_table_with_colours(tmp_path: Path) -> None:
    certified_race(tmp_path / "runs" / "certified", true=0.0)
    made = build_site(material(tmp_path / "runs", verdicts=()), tmp_path / "site").index.parent
    source = (made / "leaderboard.html").read_text()
    text = " ".join(Page(made / "leaderboard.html").text.split())
    assert "csvc 1 5 of 5 5 of 5 5 of 5 1 of 1 1.00 1.00–1.00" in text
    assert "libsvm 1 4 of 5 4 of 5 4 of 5 0 of 1 ✗ false on set0 5.50 1.00–10.0" in text
    assert re.findall(r'<td class="(\w+)">', source) == [
        "best", "best", "best", "slower", "best", "slow", "best", "slow", "best", "slowest",
    ]  # fmt: skip
    assert {f"board1-profile-{a}.svg" for a in ("1e-2", "1e-3", "1e-5")} <= {
        path.name for path in made.glob("*.svg")
    }
    assert source.count("certified gap of the objective against CPU time") == 3
    assert Page(made / "leaderboard.html").wrong == []
    index = " ".join(Page(made / "index.html").text.split())
    assert "A kernel (5 problems): csvc 1.00, libsvm 5.50 (solves 4)" in index
    # The lying solver is marked in the table of its run, too.
    assert "100¶" in Page(made / "papers" / "others.html").text


def test_losses_are_listed_as_whole_as_wins(site: Path, tmp_path: Path) -> None:
    page = Page(site / "losses.html")
    text = " ".join(page.text.split())
    assert page.wrong == []
    assert "In 1 of 4 comparisons with a reference solver ours takes more CPU time" in text
    lost = text[text.index("Losses and wins In") : text.index("What got worse")]
    assert "alsvm-batch synthetic-500k-54 (race) liblinear-l2 0.800" in lost
    assert "a9a" not in lost
    # A run that changed when it was run again is named.
    assert f"ALSVM, Table II: {CHANGED}" in text
    # The same race twice: the later one is worse for the solver.
    for name, ratio, at in (("first", 4.0, "2026-01-01"), ("second", 2.0, "2026-01-02")):
        cell = planned("race", "a9a", "csvc|libsvm", protocol="race", kernel="rbf", paper="")
        metrics, spread = {"ratio:csvc:libsvm": ratio}, {"ratio:csvc:libsvm": [ratio, ratio]}
        place = write_run(tmp_path / "runs" / name, [cell], [record(cell, metrics, spread=spread)])
        file = place / "environment-4be1c0de.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "load": [{"at": at}]}))
    made = build_site(material(tmp_path / "runs", verdicts=(), ages_of_run=None), tmp_path / "site")
    text = " ".join(Page(made.index.parent / "losses.html").text.split())
    assert "csvc a9a (race) libsvm 4.00 (4.00–4.00) 2.00 (2.00–2.00)" in text


def test_claims_come_before_tables_and_the_rule_stands_beside_the_verdict(site: Path) -> None:
    text = " ".join(Page(site / "papers/smo.html").text.split())
    assert (
        text.index("Claims")
        < text.index("Rule (value): each exponent")
        < text.index("What decides it")
    )
    assert text.index("What decides it") < text.index("Tables and figures")
    assert "svmbench run smo_adult_linear --profile paper" in text
    assert "subsets of LIBSVM's site: SMO" in text
    # The evidence of a claim leads to its run.
    source = (site / "papers/smo.html").read_text()
    assert re.search(r'<dt>from</dt><dd><a href="\.\./papers/smo\.html#[\w-]+">', source)


def test_a_paper_opens_with_what_it_claims_and_what_came_of_it(site: Path) -> None:
    text = " ".join(Page(site / "papers/smo.html").text.split())
    assert text.index("It claims. Of 13 claims ") < text.index("smo-1")
    assert re.search(r"\. (\d+ of 13 claims? (was|were) decided: |No claim is decided\.)", text)


def test_a_papers_page_links_to_the_paper_where_its_place_is_known(site: Path) -> None:
    link = '<a href="https://example.org/smo?a=1&amp;b=2">The paper</a>'
    assert link in (site / "papers" / "smo.html").read_text()
    page = (site / "papers" / "alsvm.html").read_text()
    assert "The paper</a>" not in page
    assert f'<a href="{SEARCH}Adaptable">Search for the paper by its title</a>' in page


def test_the_scale_of_a_papers_claims_is_one_sentence(site: Path) -> None:
    one = material(site / "data").verdicts[0]
    verdicts = [
        replace(one, scale=Scale(kind))
        for kind in ("full", "reduced", "reduced", "stand-in", "", "")
    ]
    assert scales(verdicts) == (
        "4 of 6 claims were decided: 1 with the paper's data and protocol, 2 on fewer rows, folds "
        "or settings, 1 on other data than the paper's; 2 are not decided."
    )
    assert scales(verdicts[4:]) == "No claim is decided."


def test_a_claim_has_a_picture_of_its_parts_and_folds_the_rest(site: Path) -> None:
    source = (site / "papers/smo.html").read_text()
    article = source[source.index('id="claim-smo-1"') : source.index('id="claim-smo-2"')]
    (file,) = re.findall(r'<img src="\.\./(papers/smo-claim1\.svg)"', article)
    assert "SMO" in (site / file).read_text()
    assert 'alt="Intervals of ' in article


def test_a_claim_of_many_parts_has_a_second_picture_with_all(race: Path, tmp_path: Path) -> None:
    given = material(race.parent)
    one = given.verdicts[0]
    part = Part("a part", Answer((Criterion(Interval(1.0, 0.9, 1.1), 0.8, 1.2),)), "1")
    many = replace(one, parts=(part,) * 25, by_printed="contradicted")
    made = build_site(replace(given, verdicts=(many,)), tmp_path / "site")
    papers = made.index.parent / "papers"
    source = (papers / "smo.html").read_text()
    assert "All 25 parts" in source
    assert "The paper's own printed numbers, under this rule: contradicted." in source
    assert "and 5 more parts" in (papers / "smo-claim1.svg").read_text()
    assert (papers / "smo-claim1-all.svg").read_text().count("a part") == 25


def test_a_page_says_of_each_table_whether_it_was_made_again_and_agrees(site: Path) -> None:
    source = (site / "papers/alsvm.html").read_text()
    table = source[source.index('id="made-again"') : source.index("<h2>Tables and figures")]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', table)
    assert [what.partition(":")[0] for what, _, _ in rows] == ["Figure 2", "Table II"]
    assert all(made.startswith(("yes", "in part", "no")) for _, made, _ in rows)
    assert 'href="#claim-alsvm-3"' in table
    # Of a paper without a list of configs nobody knows the tables.
    assert 'id="made-again"' not in (site / "papers/smo.html").read_text()


def test_a_papers_page_has_the_deviations_of_its_solvers(site: Path) -> None:
    source = (site / "papers/alsvm.html").read_text()
    said = source[source.index('id="deviations"') :]
    assert re.search(r"<summary>alsvm</summary>\s*<ul>\s*<li>A plus\.</li>", said)
    assert 'id="deviations"' not in (site / "papers/smo.html").read_text()


def test_a_papers_printed_numbers_are_on_its_page(site: Path) -> None:
    source = (site / "papers/alsvm.html").read_text()
    table = source[source.index('id="printed-table2"') :]
    assert "pegasos: " in table
    assert "<td>12,490</td>" in table
    assert re.search(r'Beside measured ones: <a href="#[\w-]+-table2">', table)


def test_runs_follow_the_paper_and_the_others_have_a_page_of_their_own(site: Path) -> None:
    source = (site / "papers/alsvm.html").read_text()
    assert source.index('id="results-sweep"') < source.index('id="results-alsvm_table2"')
    assert 'id="results-race"' not in source
    assert 'href="../papers/alsvm-speed.html"' in source
    assert 'id="results-race"' in (site / "papers/alsvm-speed.html").read_text()
    links = Page(site / "index.html").links
    assert "papers/alsvm-speed.html#results-race" in links
    # Without an order, all runs stand on the paper's page.
    assert not (site / "papers/smo-speed.html").exists()


def test_runs_of_one_title_are_told_apart(race: Path, tmp_path: Path) -> None:
    for name in ("first", "again"):
        shutil.copytree(race, tmp_path / "runs" / name)
    build_site(material(tmp_path / "runs", ages_of_run=None, verdicts=()), tmp_path / "site")
    (page,) = (tmp_path / "site/papers").glob("alsvm*.html")
    listed = re.findall(r'<li><a href="#([\w-]+)">[^<]*</a> \(([^)]*)\)</li>', page.read_text())
    assert len(listed) == 2
    assert all(said.endswith(f", {slug}") for slug, said in listed), listed


def test_variants_belong_to_the_page_of_their_solver(site: Path) -> None:
    text = " ".join(Page(site / "solvers/alsvm.html").text.split())
    assert "label in the table" in text
    assert re.search(r"Table II.*? falsvm train time:", text)
    links = Page(site / "papers/alsvm.html").links
    assert "../solvers/alsvm.html" in links
    others = " ".join(Page(site / "solvers/index.html").text.split())
    assert "pegasos: ALSVM, Table II" in others[others.index("Other names in the tables") :]


def test_a_ratio_is_one_of_training_and_of_a_reference(race: Path) -> None:
    content = read_content(race)
    found = ratios([("a", content.run), ("b", content.run)], lambda _, label: label)
    # A second run of a config counts no problem twice.
    assert [(one.solver, one.reference, round(one.value, 2)) for one in found] == [
        ("alsvm-batch", "liblinear-l2-dual", 38.8), ("alsvm-batch", "liblinear-l2", 9.7),
        ("alsvm-batch", "liblinear-l2-dual", 3.2), ("alsvm-batch", "liblinear-l2", 0.8),
    ]  # fmt: skip
    # The fastest reference of a race counts.
    (leaders,) = leaderboard(found).values()
    assert [(one.solver, one.problems, one.low) for one in leaders] == [("alsvm-batch", 2, 0.8)]
    name = found[0].problem.partition("(")[2].rstrip(")")
    blocks = {name: {"call": "predict"}}
    predicting = replace(content.run, blocks=blocks)
    assert ratios([("a", predicting)], lambda _, label: label) == []


def test_a_data_set_has_its_facts_and_its_best_solvers(site: Path) -> None:
    one = Page(site / "datasets/a9a.html")
    text = " ".join(one.text.split())
    assert "rows 32,561" in text
    # alsvm is made the fastest everywhere.
    assert re.search(r"train time alsvm \d a9a", text)
    assert "../papers/alsvm.html#results-alsvm_table2-table2" in one.links
    assert "../solvers/alsvm.html" in one.links
    assert "The registry has no data set of this name" in Page(site / "datasets/cod-rna.html").text
    assert "datasets/index.html" in Page(site / "index.html").links
    assert '<circle cx="' in (site / "datasets/a9a-error1.svg").read_text()


@pytest.mark.parametrize(
    ("points", "front"),
    [
        ([], []),
        ([(1.0, 5.0), (2.0, 6.0), (3.0, 4.0)], [(1.0, 5.0), (3.0, 4.0)]),
        ([(2.0, 1.0), (1.0, 1.0), (1.0, 2.0)], [(1.0, 1.0)]),
    ],
)
def test_no_point_beats_the_front(
    points: list[tuple[float, float]], front: list[tuple[float, float]]
) -> None:
    assert pareto_front(points) == front


def test_all_records_are_one_download_with_a_description(site: Path, results: Path) -> None:
    text = (site / "data/records.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    fields = list(rows[0])
    described = json.loads((site / "data/croissant.json").read_text())
    (file,) = described["distribution"]
    assert file["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    (records,) = described["recordSet"]
    assert [one["source"]["extract"]["column"] for one in records["field"]] == fields
    assert described["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert "url" not in described
    done = [one for one in rows if one["run"] == "results-alsvm_table2" and one["accuracy_pct"]]
    lines = (results / "alsvm_table2/runs.jsonl").read_text().splitlines()
    newest = {one["key"]: one for one in map(json.loads, lines) if one.get("status") == "ok"}
    assert len(done) == sum("accuracy_pct" in one["metrics"] for one in newest.values())
    variant = next(one for one in done if one["solver"] == "falsvm")
    assert variant["declared_solver"] == "alsvm"
    ratio = next(one for one in rows if one["solver"] == "alsvm-batch vs liblinear-l2")
    assert float(ratio["ratio"]) == 9.7


def test_the_repository_is_linked_where_the_project_names_one(race: Path, tmp_path: Path) -> None:
    address = "https://git.example/svmbench"
    build_site(material(race, verdicts=(), repository=address), tmp_path / "site")
    assert address in Page(tmp_path / "site/index.html").links
    described = json.loads((tmp_path / "site/data/croissant.json").read_text())
    assert described["url"] == address


def test_search_finds_everything_that_has_a_place(site: Path) -> None:
    text = (site / "search-data.js").read_text()
    entries = json.loads(text.partition(" = ")[2].rstrip().rstrip(";"))
    kinds = {kind for kind, *_ in entries}
    assert kinds == {"paper", "claim", "solver", "data set", "run", "table", "page"}
    ids = {path: page.ids for path, page in read_pages(site).items()}
    for _, _, _, url in entries:
        file, _, place = url.partition("#")
        assert (site / file).resolve() in ids
        assert not place or place in ids[(site / file).resolve()]


def test_places_have_links_that_one_sees(site: Path) -> None:
    for name in ("index.html", "papers/alsvm.html", "papers/smo.html"):
        one = Page(site / name)
        marks = [given["href"] for tag, given in one.tags if given.get("class") == "permalink"]
        assert len(marks) > 3
        assert {mark.removeprefix("#") for mark in marks} <= set(one.ids)


def test_long_tables_are_folded_and_dots_stand_for_cells_not_run(tmp_path: Path) -> None:
    cells = [planned("cv", f"set{i}", s, paper="alsvm") for i in range(16) for s in ("a", "b")]
    done = [c for c in cells if c["dataset"] != "set3" and c["solver"] == "a"]
    records = [record(cell, {"accuracy_pct": 90.0}) for cell in done]
    table = {"name": "t", "title": "Long", "block": "cv", "rows": "dataset", "columns": "solver",
             "metrics": ["accuracy_pct"], "published": None}  # fmt: skip
    write_run(tmp_path / "runs", cells, records, [table], [])
    build_site(Material((tmp_path / "runs",)), tmp_path / "site")
    source = (tmp_path / "site/papers/alsvm.html").read_text()
    assert "<summary>Show the table: 15 rows</summary>" in source
    assert source.count('<span aria-hidden="true">·</span>') == 15
    assert re.findall(r"<td[^>]*>not run", source) == []
    assert "1 row without any result is left out" in source
    assert Page(tmp_path / "site/papers/alsvm.html").wrong == []


def test_times_of_a_table_have_one_unit_and_the_best_stands_out(site: Path) -> None:
    text = (site / "papers" / "alsvm.html").read_text()
    table = text[text.index("results-alsvm_table2-table2") :]
    table = table[: table.index("</section>")]
    assert table.count("train time (ms)") == 4
    assert "train time (s)" not in table
    # alsvm is made the fastest everywhere, pegasos the most accurate where it finished.
    row = re.search(r'<th scope="row">a9a</th>(.*?)</tr>', table, re.DOTALL)
    assert row is not None
    cells = re.findall(r"<td.*?</td>", row[1], re.DOTALL)
    assert [number for number, cell in enumerate(cells) if "<strong>" in cell] == [0, 5]
    assert "(best)" in cells[0]
    assert "[82 s; ×" in cells[0]
    assert "†2/3" in cells[6]
    # The printed hours of times that other cells disturbed, and of sets that are not there.
    assert 'class="gap"' in table


def test_half_finished_and_changed_results_say_so(pages: dict[Path, Page]) -> None:
    text = " ".join(page(pages, "papers/alsvm.html").text.split())
    assert "half-finished" in text
    assert f"Changed: {CHANGED}." in text
    assert re.search(r"changed \(\d+ of \d+ cells\)", text)
    assert re.search(r"rechecked \(2 of \d+ cells\)", text)
    assert "stale" not in text
    assert page(pages, "papers/alsvm.html").links.count("../index.html#age") >= 2
    overview = next(one for path, one in pages.items() if path.name == "index.html"
                    and (path.parent / "papers").is_dir())  # fmt: skip
    assert "age" in overview.ids
    assert "at least 5 % of its cells" in " ".join(overview.text.split())
    assert "Profile: quick." in text
    assert "made by svmbench run alsvm_table2 --profile quick" in text
    assert "environment 4be1c0de (Example CPU 3000 × 2" in text


def test_nobody_looked_has_no_word(race: Path, tmp_path: Path) -> None:
    build_site(material(race, ages_of_run=None, verdicts=()), tmp_path / "site")
    text = page(read_pages(tmp_path / "site"), "papers/alsvm.html").text
    assert "#age" not in (tmp_path / "site" / "papers" / "alsvm.html").read_text()
    assert "rechecked" not in text
    assert "No claims were judged" in (tmp_path / "site" / "index.html").read_text()


def test_a_solver_says_what_it_is_and_where_it_stands(pages: dict[Path, Page]) -> None:
    alsvm = " ".join(page(pages, "solvers/alsvm.html").text.split())
    assert "1/2 |w|² <b>" in alsvm
    assert "A plus." in alsvm
    assert "train time: best in 4 of 4, mean rank 1.0 of 3 to 4" in alsvm
    batch = " ".join(page(pages, "solvers/alsvm-batch.html").text.split())
    assert "2.79 times as fast as liblinear-l2 (0.800 to 9.70 in 2 races)" not in batch
    assert "5.25 times as fast as liblinear-l2 (0.800 to 9.70 in 2 races)" in batch
    assert "Linear classifier, against LIBLINEAR: 4 ratios" in batch
    assert "It is in no table of these results" in page(pages, "solvers/unused.html").text


def test_files_are_those_of_the_run(site: Path, results: Path) -> None:
    folder_of = next((site / "data").glob("*alsvm_table2"))
    assert {path.name for path in folder_of.iterdir()} == {
        "table.csv", "table.key", "table2.csv", "runs.jsonl", "plan.json",
        "environment-4be1c0de.json", "times.svg", "accuracies.svg",
    }  # fmt: skip
    records = (results / "alsvm_table2" / "runs.jsonl").read_bytes()
    assert (folder_of / "runs.jsonl").read_bytes() == records


def test_the_same_results_make_the_same_site(race: Path, tmp_path: Path) -> None:
    targets = [tmp_path / name for name in ("one", "two")]
    for target in targets:
        build_site(material(race), target)
    one, two = (
        {p.relative_to(t).as_posix(): p.read_bytes() for p in t.rglob("*") if p.is_file()}
        for t in targets
    )
    assert one == two


def test_a_former_site_is_replaced_whole(race: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    made = material(race)
    build_site(made, target)
    (target / "papers" / "alsvm.html").write_text("old")
    build_site(made, target)
    assert (target / "papers" / "alsvm.html").read_text() != "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.slow
def test_a_plot_is_drawn_again_if_its_data_or_its_code_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = alsvm_run(tmp_path / "run")
    target = tmp_path / "site"
    drawn: list[str] = []
    draw = runs.draw_plot

    def counted(one: object, plot: PlotData, **given: object) -> dict[str, bytes]:
        drawn.append(plot.spec.name)
        return draw(one, plot, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(runs, "draw_plot", counted)

    def made() -> dict[str, bytes]:
        drawn.clear()
        build_site(material(run), target)
        return {path.name: path.read_bytes() for path in target.rglob("*.svg")}

    first = made()
    assert set(drawn) == {"times", "accuracies"}
    assert made() == first
    assert drawn == []
    records = run / "runs.jsonl"
    lines = records.read_text()
    changed = re.sub(r'("accuracy_pct": )[\d.]+', r"\g<1>12.5", lines, count=1)
    assert changed != lines
    records.write_text(changed)
    assert made() != first
    assert drawn == ["accuracies"]
    monkeypatch.setattr("svmbench.report.plots.drawing.code_digest", lambda _: "other code")
    made()
    assert set(drawn) == {"times", "accuracies"}


@pytest.mark.slow
def test_a_table_is_made_again_if_its_records_or_its_file_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = alsvm_run(tmp_path / "run")
    target = tmp_path / "site"
    written: list[str] = []
    lines = runs.tidy_lines

    def counted(one: Run, tables: list[Table]) -> Iterator[str]:
        written.append(one.name)
        return lines(one, tables)

    monkeypatch.setattr(runs, "tidy_lines", counted)

    def made() -> str:
        written.clear()
        build_site(material(run), target)
        (table,) = target.rglob("table.csv")
        return table.read_text()

    first = made()
    assert len(written) == 1
    assert made() == first
    assert written == []
    (table,) = target.rglob("table.csv")
    table.write_text("edited")
    assert made() == first
    assert len(written) == 1
    records = run / "runs.jsonl"
    records.write_text(
        re.sub(r'("accuracy_pct": )[\d.]+', r"\g<1>12.5", records.read_text(), count=1)
    )
    assert made() != first
    monkeypatch.setattr(runs, "code_digest", lambda: "other code")
    made()
    assert len(written) == 1


def test_what_the_command_did_not_make_stays(race: Path, tmp_path: Path) -> None:
    made = material(race)
    target = tmp_path / "mine"
    target.mkdir()
    (target / "thesis.tex").write_text("years")
    with pytest.raises(ResultsError, match="not made by 'svmbench site'"):
        build_site(made, target)
    other = tmp_path / "site"
    build_site(made, other)
    (other / "notes.txt").write_text("mine")
    with pytest.raises(ResultsError, match=r"contains notes\.txt, which is not part"):
        build_site(made, other)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ResultsError, match="is not a folder"):
        build_site(made, file)
    assert (target / "thesis.tex").read_text() == "years"
    assert (other / "notes.txt").read_text() == "mine"


def test_a_site_that_fails_leaves_the_former_one(race: Path, tmp_path: Path) -> None:
    made = material(race)
    target = tmp_path / "site"
    build_site(made, target)
    before = sorted(path.name for path in target.rglob("*"))

    def broken(path: Path) -> dict[str, str]:
        raise ResultsError("it broke")

    with pytest.raises(ResultsError, match="it broke"):
        build_site(material(race, ages_of_run=broken), target)
    assert sorted(path.name for path in target.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_what_came_meanwhile_stays(tmp_path: Path) -> None:
    def come() -> None:
        with folder.placed(tmp_path / "site"):
            (tmp_path / "site").mkdir()
            (tmp_path / "site" / "mine.txt").write_text("mine")

    with pytest.raises(ResultsError, match="not made by"):
        come()
    assert (tmp_path / "site" / "mine.txt").read_text() == "mine"


def test_no_results_make_no_site(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ResultsError, match=r"there is no run in .*empty"):
        build_site(Material((tmp_path / "empty",)), tmp_path / "site")
    with pytest.raises(ResultsError, match="is no folder of results"):
        build_site(Material((tmp_path / "none",)), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_profiles_and_environments_are_told_apart(tmp_path: Path) -> None:
    for profile in ("quick", "paper"):
        place = alsvm_run(tmp_path / "runs" / f"alsvm_table2-{profile}")
        without_plots(place, profile=profile)
        if profile == "paper":
            lines = [json.loads(one) for one in (place / "runs.jsonl").read_text().splitlines()]
            for line in lines[:2]:
                line["environment"] = "0ther000"
            (place / "runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
            known = json.loads((place / "environment-4be1c0de.json").read_text())
            other = {**known, "id": "0ther000", "cpu": "Other CPU"}
            (place / "environment-0ther000.json").write_text(json.dumps(other))
    build_site(Material((tmp_path / "runs",)), tmp_path / "site")
    text = " ".join(page(read_pages(tmp_path / "site"), "papers/alsvm.html").text.split())
    assert "made by svmbench run alsvm_table2 --profile quick" in text
    assert "made by svmbench run alsvm_table2 --profile paper" in text
    assert "environment 0ther000 (Other CPU × 2" in text
    assert "each environment has a row of its own" in text


@pytest.mark.slow
def test_the_command(race: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "site"
    shown = svmbench("site", race, "-o", target, "--no-ages")
    assert shown.code == 0, shown.said
    assert shown.out.strip() == str(target / "index.html")
    assert (target / MARKER).is_file()
    text = (target / "solvers" / "alsvm.html").read_text()
    assert "least-squares" in text
    assert "The derivation (equation 6) and the closed form need a plus." in text
    assert "ALSVM paper" in text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing").mkdir()
    empty = svmbench("site", "nothing", "-o", "other")
    assert (empty.code, (tmp_path / "other").exists()) == (1, False)
    assert "there is no run in nothing" in empty.err
    refused = svmbench("site", race, "-o", race)
    assert refused.code == 1
    assert "was not made by 'svmbench site'" in refused.err


#: What a browser asks for whatever it shows.
BROWSERS_OWN = (
    ".google.com", ".gvt1.com", "update.googleapis.com", "optimizationguide-pa.googleapis.com",
)  # fmt: skip
PROBE = """
"use strict";
const said = { styled: getComputedStyle(document.body).maxWidth };
addEventListener("error", (event) => { said.error = String(event.message); });
const table = document.querySelector("#results-alsvm_table2-table2 table");
const rows = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);
const names = () => rows().map((row) => row.cells[0].textContent);
const buttons = [...table.tHead.querySelectorAll("button")];
said.before = names();
buttons[2].click();
said.ascending = names();
said.sort = table.tHead.querySelector("[aria-sort]").getAttribute("aria-sort");
buttons[2].click();
said.descending = names();
buttons[0].click();
said.byName = names();
const tools = table.parentElement.previousElementSibling;
const input = tools.querySelector("input");
input.value = "cod-";
input.dispatchEvent(new Event("input"));
said.filtered = names();
said.status = tools.querySelector("[role=status]").textContent;
said.wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
const out = document.createElement("pre");
out.id = "said";
out.textContent = JSON.stringify(said);
document.body.append(out);
"""


in_a_browser = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="needs a browser: install chromium to run it"
)


def browse(page: Path, profile: Path, *asked: str) -> subprocess.CompletedProcess[str]:
    """Open a page in a real browser, alone and without a window."""
    return subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={profile}", "--enable-logging=stderr",
            "--disable-background-networking", "--disable-component-update",
            "--virtual-time-budget=5000", *asked, page.as_uri(),
        ],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip


@in_a_browser
def test_in_a_real_browser(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    path = copy / "papers" / "alsvm.html"
    (copy / "probe.js").write_text(PROBE)
    text = path.read_text().replace("</body>", '<script src="../probe.js" defer></script></body>')
    path.write_text(text)
    asked = ("--window-size=390,800", f"--log-net-log={tmp_path / 'net.json'}", "--dump-dom")
    ended = browse(path, tmp_path / "profile", *asked)
    assert "CONSOLE" not in ended.stderr
    found = re.search(r'<pre id="said">(.*?)</pre>', ended.stdout, re.DOTALL)
    assert found is not None
    said = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert "error" not in said
    assert said["styled"] != "none"
    urls = re.findall(r'"url":"(https?://[^"]*)"', (tmp_path / "net.json").read_text())
    hosts = {urlsplit(url).hostname or "" for url in urls}
    assert {name for name in hosts if not name.endswith(BROWSERS_OWN)} == set()
    # By the accuracy of alsvm, which grows with the set; what has none stands last.
    assert said["before"] == [
        "a9a", "cod-rna", "covtype", "svmguide3", "german.numer", "cod-rna-train",
    ]  # fmt: skip
    assert said["ascending"] == [
        "a9a", "covtype", "svmguide3", "german.numer", "cod-rna-train", "cod-rna",
    ]  # fmt: skip
    assert said["sort"] == "ascending"
    assert said["descending"] == [
        "cod-rna-train", "german.numer", "svmguide3", "covtype", "a9a", "cod-rna",
    ]  # fmt: skip
    assert said["byName"][0] == "a9a"
    assert said["byName"][-1] == "svmguide3"
    assert sorted(said["filtered"]) == ["cod-rna", "cod-rna-train"]
    assert said["status"] == "2 of 6 rows"
    # On a phone tables scroll, and not the page.
    assert said["wide"] is False


def outcome(solver: str, seconds: float, accuracy: float, rows: float | None) -> SettingOutcome:
    return SettingOutcome(
        slug="run", config="run", block="fit", dataset="a9a", setting="a9a", solver=solver,
        label=solver, seconds=seconds, accuracy=accuracy, rows=rows,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("271617", "271,617"), ("[32561; =]", "[32,561; =]"), ("1871", "1871"),
        ("12345.5", "12345.5"), ("0.000012345", "0.000012345"), ("rcv1-20242", "rcv1-20242"),
    ],
)  # fmt: skip
def test_long_whole_numbers_have_commas(text: str, expected: str) -> None:
    assert grouped(text) == expected


def test_a_chart_names_blocks_only_where_a_data_set_has_several() -> None:
    def ratio(problem: str, label: str = "csvc", reference: str = "libsvm") -> Ratio:
        return Ratio(problem, "", "", "csvc", label, reference, 2.0, 2.0, 2.0, None, "run")

    problems = ["ijcnn1 (later-ijcnn1)", "a9a (a9a)", "a9a (fit-a9a)", "a9a, 20 rows (fit)"]
    assert chart_names([*map(ratio, problems)]) == [
        "ijcnn1", "a9a, block a9a", "a9a, block fit-a9a", "a9a, 20 rows"
    ]  # fmt: skip
    assert chart_names([ratio("a9a (b)", "big", "other")]) == ["big: a9a / other"]


def test_a_chart_of_errors_joins_libsvm_on_subsamples() -> None:
    found = [
        outcome("libsvm", 4.0, 85.0, 2000.0),
        outcome("libsvm", 1.0, 83.0, 1000.0),
        outcome("nystrom", 0.5, 84.0, 2000.0),
    ]
    baseline = subsample_baseline(found)
    assert baseline == [(1.0, 17.0), (4.0, 15.0)]
    points = [(one.label, one.seconds, 100.0 - one.accuracy) for one in found]
    chart = error_chart(points, [(0.5, 16.0)], "error (%)", baseline)
    # The quantity of the errors stands above their axis, that of the times below it.
    heights = {said: float(y) for y, said in re.findall(r'y="([\d.]+)"[^>]*>([^<]+)</text>', chart)}
    marks = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', chart)]
    # The names stand below, so that a telephone shows them, too.
    assert marks[3:] == [heights["libsvm"] - 4, heights["nystrom"] - 4]
    assert heights["CPU time of training (s)"] < min(marks[3:])
    assert 'width="440"' in chart
    del marks[3:]
    assert heights["error (%)"] < min(marks) < max(marks) < heights["CPU time of training (s)"]
    assert "solid: LIBSVM on subsamples" in chart
    # A solver has its colour of all plots: LIBSVM black, Nyström orange.
    assert chart.count('fill="#000000" stroke="#000000"') == 3
    assert chart.count('fill="#E69F00" stroke="#E69F00"') == 2
    lines = re.findall(r'<polyline points="([^"]*)"[^>]*stroke="#000000"[^>]*>', chart)
    assert [len(line.split()) for line in lines] == [1, 2]
    assert "solid" not in error_chart(points, [(0.5, 16.0)], "error (%)")


@pytest.mark.parametrize(
    "found",
    [
        [outcome("libsvm", 4.0, 85.0, 2000.0), outcome("nystrom", 1.0, 84.0, 1000.0)],
        [outcome("libsvm", 4.0, 85.0, None), outcome("libsvm", 1.0, 84.0, None)],
        # Two settings at one size: no one line.
        [outcome("libsvm", 4.0, 85.0, 10.0), outcome("libsvm", 1.0, 84.0, 10.0)],
    ],
)
def test_no_line_where_libsvm_has_no_sizes(found: list[SettingOutcome]) -> None:
    assert subsample_baseline(found) == []


FILTER_PROBE = """
"use strict";
const said = {};
const rows = [...document.querySelectorAll("table.claims tbody tr")];
const shown = () => rows.filter((row) => !row.hidden);
const verdicts = () => [...new Set(shown().map((row) => row.dataset.verdict))];
said.all = shown().length;
const button = document.querySelector('.tools button[data-verdict="contradicted"]');
button.click();
said.verdicts = verdicts();
said.some = shown().length;
button.click();
said.again = shown().length;
document.querySelector('a[data-show="undecided"]').click();
said.open = verdicts();
said.wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
const out = document.createElement("pre");
out.id = "said";
out.textContent = JSON.stringify(said);
document.body.append(out);
"""


@in_a_browser
def test_verdicts_filter_exactly(site: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(site, tmp_path / "site")
    (copy / "probe.js").write_text(FILTER_PROBE)
    path = copy / "index.html"
    text = path.read_text().replace("</body>", '<script src="probe.js" defer></script></body>')
    path.write_text(text)
    ended = browse(path, tmp_path / "profile", "--window-size=390,800", "--dump-dom")
    found = re.search(r'<pre id="said">(.*?)</pre>', ended.stdout, re.DOTALL)
    assert found is not None, ended.stderr
    said = json.loads(found[1])
    assert said["verdicts"] == ["contradicted"]
    assert 0 < said["some"] < said["all"] == said["again"]
    assert said["open"] == ["undecided"]
    assert said["wide"] is False


COMPARE_PROBE = """
"use strict";
const out = document.createElement("pre");
out.id = "said";
out.textContent = JSON.stringify({
  said: document.getElementById("compared").textContent,
  charts: document.querySelectorAll("#charts svg").length,
  points: document.querySelectorAll("#charts svg:first-child circle").length,
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
});
document.body.append(out);
"""


def test_a_chart_of_ratios_fits_a_telephone_and_names_its_rows_whole() -> None:
    name = "breast-cancer-683 (linear-squared-hinge-default) / liblinear-l2-dual"
    chart = ratio_chart([(name, 4.0, 2.0, 8.0), ("a", 0.5, 0.4, 0.6)], "CPU time")
    assert 'viewBox="0 0 440 ' in chart
    assert f">{name}</text>" in chart


def test_ratios_have_separators_of_thousands() -> None:
    texts = [ratio_text(value) for value in (0.5, 12.34, 999.6, 1608.2, math.inf)]
    assert texts == ["0.500", "12.3", "1,000", "1,608", "inf"]


@in_a_browser
def test_two_solvers_are_compared_over_all_settings(site: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(site, tmp_path / "site")
    text = (copy / "compare-data.js").read_text()
    known = json.loads(text.partition(" = ")[2].rstrip().rstrip(";"))
    (copy / "compare-data.js").write_text(
        "const COMPARE = " + json.dumps({"a": known["alsvm"], "b": known["alsvm"]}) + ";"
    )
    (copy / "probe.js").write_text(COMPARE_PROBE)
    path = copy / "compare.html"
    probed = '<script src="probe.js" defer></script></body>'
    path.write_text(path.read_text().replace("</body>", probed))
    ended = browse(path, tmp_path / "profile", "--window-size=390,800", "--dump-dom")
    found = re.search(r'<pre id="said">(.*?)</pre>', ended.stdout, re.DOTALL)
    assert found is not None, ended.stderr
    said = json.loads(found[1])
    n_settings = len(known["alsvm"])
    assert said["said"].startswith(f"a is faster in 0 of {n_settings} settings")
    assert "the median ratio of the times is 1.00" in said["said"]
    assert (said["charts"], said["points"]) == (2, n_settings)
    assert said["wide"] is False


def apart(one: Path, other: Path) -> float:
    """Return how far two pictures are apart, as a share of black from white.

    Both are looked at in squares of ten pixels, in which letters of other fonts are as dark.
    """
    looks = []
    for path in (one, other):
        with Image.open(path) as image:
            size = (image.width // 10, image.height // 10)
            looks.append(np.asarray(image.convert("RGB").resize(size, Image.Resampling.BOX)))
    first, second = (look.astype(float) for look in looks)
    assert first.shape == second.shape
    return float(np.abs(first - second).mean() / 255.0)


@in_a_browser
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("phone", ("--window-size=500,1200",)),
        ("dark", ("--window-size=1000,900", "--blink-settings=preferredColorScheme=0")),
    ],
)
def test_a_page_looks_as_it_did(race: Path, tmp_path: Path, name: str, asked: tuple[str]) -> None:
    build_site(material(race, ages_of_run=None, verdicts=()), tmp_path / "site")
    page_of = tmp_path / "site" / "papers" / "alsvm.html"
    seen = tmp_path / f"{name}.png"
    browse(page_of, tmp_path / "profile", f"--screenshot={seen}", *asked)
    known = SCREENS / f"{name}.png"
    said = f"{seen} looks otherwise than {known}: where that is meant, put it there"
    assert apart(seen, known) < SAME_LOOK, said
    # Without its style it is another page.
    (tmp_path / "site" / "site.css").write_text("")
    bare = tmp_path / "bare.png"
    browse(page_of, tmp_path / "profile", f"--screenshot={bare}", *asked)
    assert apart(bare, known) > 2 * SAME_LOOK


def test_kept_looks_are_light() -> None:
    assert {path.stat().st_size < 100_000 for path in SCREENS.glob("*.png")} == {True}


def test_what_lies_in_a_site_is_no_second_run(race: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    shutil.copytree(race, root / "race")
    made = Material((root,))
    build_site(made, root / "pages")
    build_site(made, root / "pages")
    folders = [path.name for path in (root / "pages" / "data").iterdir() if path.is_dir()]
    assert folders == ["results-race"]
    assert list(claims.gather_evidence([root]).sources) == ["alsvm_table2"]
    assert claims.gather_evidence([root]).notes == {}
