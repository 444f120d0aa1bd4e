"""What tables over many data sets decide, and its diagrams: against answers known on paper."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pages import dead_ends, read_pages
from synthetic_runs import planned, record, write_run

from svmbench.report.output.builder import read_content
from svmbench.report.tables.rankings import Ranking, rankings
from svmbench.site import Material, build_site
from svmbench.site.diagrams import critical_difference, groups, profile
from svmbench.site.ranks import p_text

SOLVERS = ("alsvm", "falsvm", "pegasos")
SETS = tuple(f"set-{number}" for number in range(8))
TABLE = {"name": "t", "title": "Over sets", "block": "cv", "rows": ["dataset"],
         "columns": ["solver"], "metrics": ["accuracy_pct", "train_time_s"]}  # fmt: skip

Values = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]


def ranked_run(folder: Path, values: Values, *, kernels: Sequence[str] = ("linear",)) -> Path:
    """A cell a fold of each data set, solver and kernel; the values are by metric, one a fold."""
    cells, records = [], []
    for (dataset, solver), metrics in values.items():
        for kernel in kernels:
            for fold in range(5):
                cell = planned("cv", dataset, solver, fold, kernel=kernel)
                cells.append(cell)
                own = {name: folds[fold] for name, folds in metrics.items()}
                sizes = {"n_train": 80, "n_test": 20}
                records.append(record(cell, {**own, **sizes} if own else None))
    return write_run(folder, cells, records, [TABLE])


def in_order(sets: Sequence[str] = SETS) -> dict[tuple[str, str], dict[str, list[float]]]:
    """The first solver is better than the second and that than the third, on every set.

    On even sets the folds' differences are all alike, on odd ones far apart around their mean. The
    fastest is the second; the first needs twice, the third four times its time.
    """
    found = {}
    for number, dataset in enumerate(sets):
        for place, solver in enumerate(SOLVERS):
            noise = 0.0 if number % 2 == 0 else 30.0 * place
            folds = [90.0 - place + noise * shift for shift in (-1.0, 0.5, 0.0, -0.5, 1.0)]
            time = {"alsvm": 0.2, "falsvm": 0.1, "pegasos": 0.4}[solver] * (number + 1)
            found[dataset, solver] = {"accuracy_pct": folds, "train_time_s": [time] * 5}
    return found


def ranked(folder: Path) -> dict[str, Ranking]:
    content = read_content(folder)
    return {
        f"{one.metric} {one.within}".strip(): one
        for table in content.tables
        for one in rankings(content.run, table)
    }


def test_what_is_always_in_one_order_is_told_apart(tmp_path: Path) -> None:
    found = ranked(ranked_run(tmp_path, in_order()))
    assert list(found) == ["accuracy_pct", "train_time_s"]
    one = found["accuracy_pct"]
    assert (one.solvers, one.datasets, one.planned) == (SOLVERS, SETS, 8)
    test = one.friedman()
    assert test is not None
    # 12 n / (k (k + 1)) times the squared distances of 1, 2, 3 from 2; two degrees of freedom.
    assert (test.ranks, test.chi_square) == ((1.0, 2.0, 3.0), pytest.approx(16.0))
    assert test.p == pytest.approx(math.exp(-8.0))
    # All eight signs alike have p = 2/256; Holm's factor for the smallest of three is 3.
    assert [pair.p for pair in one.pairs()] == [pytest.approx(3 * 2 / 256)] * 3
    first = one.pairs()[0]
    assert (first.first, first.second) == ("alsvm", "falsvm")
    assert (first.better, first.equal, first.worse, first.differs) == (8, 0, 0, True)
    # Within a set folds tell them apart where their differences are alike.
    assert first.by_t_test == (4, 0, 8)
    times = found["train_time_s"]
    assert times.friedman().ranks == (2.0, 1.0, 3.0)  # type: ignore[union-attr]
    assert (times.pairs()[0].better, times.pairs()[0].worse) == (0, 8)
    assert times.pairs()[0].by_t_test == (0, 8, 8)
    assert times.profile() == {
        "alsvm": [(pytest.approx(2.0), 1.0)], "falsvm": [(1.0, 1.0)],
        "pegasos": [(pytest.approx(4.0), 1.0)],
    }  # fmt: skip
    assert one.profile() == {}


def test_a_set_without_all_solvers_is_left_out(tmp_path: Path) -> None:
    values = in_order()
    values["set-3", "pegasos"] = {}
    one = ranked(ranked_run(tmp_path, values))["accuracy_pct"]
    assert one.datasets == tuple(name for name in SETS if name != "set-3")
    assert one.planned == 8


def test_few_sets_decide_nothing(tmp_path: Path) -> None:
    assert ranked(ranked_run(tmp_path / "five", in_order(SETS[:5]))) == {}
    assert len(ranked(ranked_run(tmp_path / "six", in_order(SETS[:6])))) == 2


def test_kernels_are_ranked_apart_so_that_a_set_counts_once(tmp_path: Path) -> None:
    found = ranked(ranked_run(tmp_path, in_order(), kernels=("linear", "rbf")))
    assert set(found) == {
        f"{metric} kernel {kernel}"
        for metric in ("accuracy_pct", "train_time_s")
        for kernel in ("linear", "rbf")
    }
    assert {one.datasets for one in found.values()} == {SETS}


def test_two_solvers_have_a_pair_and_no_ranks(tmp_path: Path) -> None:
    values = {key: one for key, one in in_order().items() if key[1] != "pegasos"}
    one = ranked(ranked_run(tmp_path, values))["accuracy_pct"]
    assert one.friedman() is None
    assert [pair.p for pair in one.pairs()] == [pytest.approx(2 / 256)]


def test_groups_are_those_of_demsar() -> None:
    """Section 3.2.2: at 10 % C4.5 is worse than both with m; at 5 % nothing is told apart."""
    ranks = (3.143, 2.000, 2.893, 1.964)
    assert groups(ranks, 1.12) == [(1.964, 2.893), (2.893, 3.143)]
    assert groups(ranks, 1.25) == [(1.964, 3.143)]
    assert groups((1.0, 2.0, 3.0), 0.5) == []


def shapes(svg: str) -> tuple[dict[str, tuple[float, float]], list[list[tuple[float, float]]]]:
    """Return the places of the texts of a diagram, and the points of its lines."""
    root = ET.fromstring(svg)
    texts = {
        one.text or "": (float(one.attrib["x"]), float(one.attrib["y"]))
        for one in root.iter("{http://www.w3.org/2000/svg}text")
    }
    lines = [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", one.attrib["points"])]
        for one in root.iter("{http://www.w3.org/2000/svg}polyline")
    ]
    return texts, lines


def test_a_critical_difference_is_drawn_to_scale() -> None:
    ranks = {"<b>&": 3.143, "b": 2.0, "c": 2.893, "d": 1.964}
    texts, lines = shapes(critical_difference(ranks, 1.12))
    one = texts["2"][0] - texts["1"][0]
    assert texts["4"][0] - texts["1"][0] == pytest.approx(3 * one, abs=0.2)
    assert "critical difference 1.12" in texts
    bars = [line for line in lines if len(line) == 2 and line[0][1] == line[1][1]]
    assert any(b[1][0] - b[0][0] == pytest.approx(1.12 * one, abs=0.2) for b in bars)
    # Each leads from its rank on the axis to its name: the two best to the left.
    leaders = [line for line in lines if len(line) == 3]
    ordered = sorted(ranks.values())
    assert [line[0][0] for line in leaders] == [
        pytest.approx(texts["1"][0] + (rank - 1.0) * one, abs=0.2) for rank in ordered
    ]
    assert texts["d 1.96"][0] < texts["1"][0] < texts["4"][0] < texts["3.14 <b>&"][0]
    # Two groups: (d, b, c) and (c, the first).
    ends = [end for line in bars[-2:] for end in (line[0][0] + 4, line[1][0] - 4)]
    assert ends == [
        pytest.approx(texts["1"][0] + rank * one, abs=0.3) for rank in (0.964, 1.893, 1.893, 2.143)
    ]


def test_a_profile_steps_where_its_shares_do() -> None:
    texts, lines = shapes(profile({"a": [(1.0, 0.5), (10.0, 1.0)], "b": [(2.0, 0.5)]}))
    one, ten = texts["1"][0], texts["10"][0]
    top, bottom = texts["100 %"][1] - 4, texts["0 %"][1] - 4
    first, second = (line for line in lines if len(line) > 2)
    middle = (top + bottom) / 2
    assert first[:5] == [
        (one, bottom), (one, bottom), (one, pytest.approx(middle)),
        (pytest.approx(ten, abs=0.2), pytest.approx(middle)),
        (pytest.approx(ten, abs=0.2), top),
    ]  # fmt: skip
    half = one + (ten - one) * math.log10(2.0)
    assert [x for x, _ in second[1:3]] == [pytest.approx(half, abs=0.2)] * 2
    # What it does not solve it never reaches.
    assert second[-1][1] == pytest.approx(middle)


def test_a_page_says_what_decides_and_over_how_many_sets(tmp_path: Path) -> None:
    values = in_order()
    values["set-3", "pegasos"] = {}
    folder = ranked_run(tmp_path / "run", values)
    build_site(Material((folder,)), tmp_path / "site")
    pages = read_pages(tmp_path / "site")
    assert {path.name: one.wrong for path, one in pages.items() if one.wrong} == {}
    assert dead_ends(pages) == []
    text = next(" ".join(p.text.split()) for path, p in pages.items() if path.name == "alsvm.html")
    assert "accuracy, over 7 data sets: solvers are told apart" in text
    assert "Compared on 7 of 8 data sets" in text
    assert "χ² = 14.00, p < 0.001: the ranks differ" in text
    assert "alsvm before falsvm; alsvm before pegasos; falsvm before pegasos" in text
    assert "falsvm before alsvm" in text
    made = {path.name for path in (tmp_path / "site").rglob("*-ranks*.svg")}
    assert made == {"t-ranks1.svg", "t-ranks2.svg", "t-ranks2-profile.svg"}


def test_p_values_as_text() -> None:
    assert [p_text(p) for p in (1.0, 0.0234375, 0.00099)] == ["= 1", "= 0.023", "< 0.001"]
