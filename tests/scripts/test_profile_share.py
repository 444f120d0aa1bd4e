"""The script that measures what share of a call some functions take."""

import csv
import sys
from types import SimpleNamespace

import pytest
from script_loading import load_script
from small_problems import make_problem

FIT = "svmbench.core.csvc.CSVC.finish_fit"
SEARCH = "svmbench.core.csvc.path.follow_c"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the script on 60 small samples; return its lines by call, parameters and function."""
    script = load_script("profile_share", "results/smo")
    X, y = make_problem(n=80, d=3)
    monkeypatch.setattr(script.svmbench, "load", lambda _: SimpleNamespace(X=X, y=y))
    monkeypatch.setattr(script, "GRID", [{"C": C, "gamma": 0.5} for C in (1.0, 4.0)])

    def called(*arguments):
        words = ["x", "csvc", "any:60", *arguments, "--repeats=2", f"--output={tmp_path}"]
        monkeypatch.setattr(sys, "argv", words)
        script.main()
        with (tmp_path / "profile.csv").open(encoding="utf-8") as stream:
            return {(r["call"], r["params"], r["function"]): r for r in csv.DictReader(stream)}

    return called


def test_shares_are_entered_and_renewed(run):
    assert list(run(FIT, "C=2", "--call=fit")) == [("fit", "C=2", FIT)]
    lines = run(
        f"{SEARCH},svmbench.experiment.protocols.kernel_search.score_gamma",
        "stop=gap",
        "--call=search",
    )
    assert len(lines) == 3
    again = run(FIT, "C=2", "--call=fit")
    assert list(again) == list(lines)
    for line in lines.values():
        assert line["rows"] == "60"
        assert 0.0 < float(line["low_pct"]) <= float(line["share_pct"]) <= 100.5
    # What is inside another takes no more than that.
    inner, outer = (
        float(line["share_pct"]) for key, line in sorted(lines.items()) if key[0] == "search"
    )
    assert inner <= outer


def test_a_function_that_is_not_called_is_told(run):
    with pytest.raises(SystemExit, match="was never called"):
        run(SEARCH, "--call=fit")
