"""Times that were measured once: their margin, where it is from, and that verdicts say so."""

import runpy
from pathlib import Path

import pytest
from claimed_runs import SCENES, Kept

from svmbench.papers import judging
from svmbench.report.numbers.estimates import (
    N_REPEATED_TIMES,
    SHORTEST_SINGLE_S,
    SINGLE_TIME_MARGIN,
    Estimate,
    interval,
)
from svmbench.report.reading.records import CellResult

ROOT = Path(__file__).resolve().parents[2]
ALL = {claim.id: claim for claim in judging.read_all_claims()}


def test_the_margin_is_what_kept_repeats_say(capsys, monkeypatch):
    script = runpy.run_path(str(ROOT / "scripts" / "single_times.py"))
    monkeypatch.setattr("sys.argv", ["single_times.py", "--check"])
    said = script["main"]()
    shown = capsys.readouterr()
    assert said == 0, shown.err + shown.out
    assert shown.out.startswith(f"{N_REPEATED_TIMES} times with repeats, of ")
    assert f" runs: {SINGLE_TIME_MARGIN:.2f} holds 95 %" in shown.out
    page = " ".join((ROOT / "docs" / "claims.md").read_text(encoding="utf-8").split())
    assert f"the margin of both times: {100 * SINGLE_TIME_MARGIN:g} % of each" in page
    assert f"of {N_REPEATED_TIMES:,} times of {1e3 * SHORTEST_SINGLE_S:g} ms and more" in page


def once(folder, factor):
    """Return the verdict on smo-10 where chunking takes `factor` times SMO's time, each once."""
    SCENES["smo-10"].build(kept := Kept())

    def single(cell):
        cell["spread"] = {}
        slow = cell["solver"].startswith("chunking")
        cell["metrics"]["cpu_time_s"] = cell["dimensions"]["rows"] * (factor if slow else 1.0)

    kept.edit(single)
    (found,) = judging.judge([ALL["smo-10"]], judging.gather_evidence([kept.write(folder)]))
    return found


@pytest.mark.parametrize(("factor", "state"), [(1.4, "undecided"), (1.8, "supported")])
def test_single_times_decide_beyond_both_their_margins_and_the_verdict_says_so(
    factor, state, tmp_path
):
    assert 1.4 < (1 + SINGLE_TIME_MARGIN) / (1 - SINGLE_TIME_MARGIN) < 1.8
    found = once(tmp_path, factor)
    assert found.outcome == state, found.reason
    assert all(part.single_times for part in found.parts)
    n = len(found.parts)
    note = f"Single times: {n} of {n} parts rest on times that were measured once. Such a time has "
    note += f"a margin of {100 * SINGLE_TIME_MARGIN:g} %, from "
    assert any(one.startswith(note + f"{N_REPEATED_TIMES:,} kept times") for one in found.notes)
    assert [part["single_times"] for part in found.to_json()["parts"]] == [True] * n


def test_times_with_repeats_have_no_such_margin(tmp_path):
    SCENES["smo-10"].build(kept := Kept())

    def repeated(cell):
        cell["spread"] = {"cpu_time_s": 0.01 * cell["metrics"]["cpu_time_s"]}

    kept.edit(repeated)
    (found,) = judging.judge([ALL["smo-10"]], judging.gather_evidence([kept.write(tmp_path)]))
    assert not any(part.single_times for part in found.parts)
    assert not any(one.startswith("Single times") for one in found.notes)


def race(cpu_time_s):
    return CellResult(
        "k", "paths", "race", "srbo", "a", None, "srbo", None, "ok",
        metrics={"speedup": 2.0, "cpu_time_s": cpu_time_s},
    )  # fmt: skip


def test_a_ratio_of_single_times_has_both_margins_and_short_ones_have_none():
    ends = interval(Estimate(2.0, cells=(race(1.0),)), "speedup")
    both = (1 + SINGLE_TIME_MARGIN) / (1 - SINGLE_TIME_MARGIN)
    assert (ends.low, ends.high) == pytest.approx((2.0 / both, 2.0 * both))
    assert ends.single
    assert interval(Estimate(2.0, cells=(race(0.9 * SHORTEST_SINGLE_S),)), "speedup").low is None
    assert interval(Estimate(0.9 * SHORTEST_SINGLE_S), "cpu_time_s").low is None
