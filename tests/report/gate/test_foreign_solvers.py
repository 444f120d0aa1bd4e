"""The gate on other people's classes and programs: what fails, and what is only reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runs import svmbench
from synthetic_runs import planned, record, write_run

from svmbench.report.gate import compare as comparing
from svmbench.report.gate.changes import Comparison, outcome_line
from svmbench.report.gate.sides import read_side, write_baseline


def side(folder: Path, foreign: str = "programs", **changed: Any) -> Path:
    """Write a run of a fit and a race of ``mine``, a class or a program, against ``libsvm``."""
    values = {"n_iter": 600, "unconverged": 0, "objective": 80.0, "cpu": 1.0, "wall": 1.0}
    values |= {"counters": 10, "libsvm": 2.0, "pair": ("mine", "libsvm")} | changed
    fit = planned("cv", "a9a", "mine")
    race = planned("speed", "a9a", "libsvm|mine", protocol="race")
    times = {"mine": values["cpu"], "libsvm": values["libsvm"]}
    first, second = values["pair"]
    metrics = {f"cpu_time_s:{name}": seconds for name, seconds in times.items()}
    metrics |= {"train_time_s:mine": values["wall"], "train_time_s:libsvm": values["libsvm"]}
    metrics |= {f"ratio:{first}:{second}": times[second] / times[first]}
    metrics |= {"certified_objective:mine": values["objective"], "objective:libsvm": 80.0}
    counters = {"steps:mine": values["counters"], "steps:libsvm": 50}
    counted = {"n_iter": values["n_iter"], "unconverged_fits": values["unconverged"]}
    records = [record(fit, counted), record(race, metrics, counters=counters)]
    write_run(folder, [fit, race], records)
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"] |= {"baselines": ["libsvm"], foreign: ["mine"]} if foreign else {}
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def compared(tmp_path: Path, foreign: str = "programs", **changed: Any) -> Comparison:
    given = {key: changed.pop(key) for key in ("pair",) if key in changed}
    base = read_side(side(tmp_path / "base", foreign, **given))
    return comparing.compare_folders(
        base, read_side(side(tmp_path / "new", foreign, **given, **changed))
    )


@pytest.mark.parametrize("foreign", ["programs", "classes"])
@pytest.mark.parametrize(
    ("changed", "worse", "different"),
    [
        # More exact: more steps, at the same speed.
        ({"n_iter": 2145, "counters": 99, "objective": 79.9}, set(), {"counter", "objective"}),
        ({"counters": 0, "n_iter": 1}, set(), {"counter"}),
        # Much more exact than a solver that stopped early: no other problem.
        ({"objective": 40.0}, set(), set()),
        ({"objective": 80.9}, {"objective"}, set()),
        ({"objective": 80.7}, set(), {"objective"}),
        ({"n_iter": 2145, "cpu": 3.0, "wall": 3.0}, {"time"}, {"counter"}),
        ({"unconverged": 1}, {"counter"}, set()),
    ],
)
def test_counters_of_others_alone_are_no_regression(
    tmp_path: Path, foreign: str, changed: dict[str, Any], worse: set[str], different: set[str]
) -> None:
    found = compared(tmp_path, foreign, **changed)
    assert {one.kind for one in found.regressions} == worse
    assert {one.kind for one in found.changes if one.verdict == "different"} == different


def test_counters_of_the_suites_own_solvers_are_judged(tmp_path: Path) -> None:
    found = compared(tmp_path, foreign="", n_iter=601)
    assert [one.what for one in found.regressions] == ["n_iter"]


@pytest.mark.parametrize("pair", [("mine", "libsvm"), ("libsvm", "mine")])
@pytest.mark.parametrize("foreign", ["programs", "classes"])
@pytest.mark.parametrize(
    ("changed", "verdict", "moved"),
    [
        ({"cpu": 11.0, "wall": 11.0}, "worse", "mine 11 times slower"),
        ({"cpu": 0.1, "wall": 0.1}, "better", "mine 10 times faster"),
        ({"libsvm": 0.2}, "worse", "libsvm 10 times faster"),
        ({"libsvm": 20.0}, "different", "libsvm 10 times slower"),
    ],
)
def test_either_order_of_a_pair_has_the_same_verdict(
    tmp_path: Path, pair: Any, foreign: str, changed: dict[str, float], verdict: str, moved: str
) -> None:
    found = compared(tmp_path, foreign, pair=pair, **changed)
    (change,) = [one for one in found.changes if one.kind == "time"]
    assert (change.verdict, change.moved) == (verdict, moved)


def test_a_build_that_sleeps_is_reported(tmp_path: Path) -> None:
    found = compared(tmp_path, wall=12.0)
    assert found.regressions == ()
    (change,) = found.changes
    assert change.moved == "mine: 12 times the wall time, 1 times the CPU time"
    assert any("may sleep or wait" in note for note in found.notes)
    assert "wall time of mine (it moved" in outcome_line(found)
    # Wall and CPU time that grow together, and a wait of milliseconds, are no sign of it.
    for number, changed in enumerate(({"wall": 1.2, "cpu": 1.2}, {"wall": 1.01})):
        found = compared(tmp_path / str(number), **changed)
        assert not any("may sleep" in note for note in found.notes)


def test_kinds_are_ignored_by_name(tmp_path: Path) -> None:
    words = ["compare", side(tmp_path / "a", ""), side(tmp_path / "b", "", n_iter=601)]
    assert svmbench(*words).code == 4
    ended = svmbench(*words, "--ignore", "counters")
    assert ended.code == 0, ended.said
    assert "counters (ignored)" in ended.out
    assert svmbench(*words, "--ignore", "memory").code == 4
    # The words of the option are those that the comparison knows.
    ended = svmbench("compare", "--help")
    assert "|".join(comparing.IGNORABLE) in "".join(ended.out.split())


def test_a_kept_baseline_keeps_whose_counters_they_are(tmp_path: Path) -> None:
    write_baseline(side(tmp_path / "run"), tmp_path / "kept")
    kept = read_side(tmp_path / "kept")
    assert kept.foreign == {"mine"}
    new = read_side(side(tmp_path / "new", objective=90.0))
    assert [one.what for one in comparing.compare_folders(kept, new).regressions] == [
        "objective:mine"
    ]
