"""A few grown problems, other ones for each commit: no solver breaks its promise in silence."""

import os
import subprocess
from pathlib import Path

import pytest
from script_loading import load_script

grown = load_script("hard_problems").grown_problems
N_PROBLEMS = 8


def seed_of_commit():
    """Return SVMBENCH_GROWN_SEED, or a number from the commit's hash; 0 without either."""
    if given := os.environ.get("SVMBENCH_GROWN_SEED"):
        return int(given)
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(asked.stdout[:7] or "0", 16)


@pytest.mark.slow
def test_no_solver_breaks_its_promise_in_silence():
    first = seed_of_commit()
    fits = 0
    for seed in range(first, first + N_PROBLEMS):
        own, found = grown.silent_cases(grown.draw(seed))
        fits += own
        assert found == [], f"python scripts/hard_problems.py --seed {seed} --number 1"
    assert fits >= N_PROBLEMS


@pytest.mark.slow
def test_a_silent_case_is_found(monkeypatch):
    drawn = grown.draw(3)
    easy = grown.HardProblem("plain", "squared-hinge", "linear", 1.0, 1, False, drawn.X, drawn.y)
    assert grown.silent_cases(easy, ("dcd-l2",)) == (1, [])
    fitted = grown.fitted

    def wrong(model, problem):
        model, told = fitted(model, problem)
        model.coef_ = 2.0 * model.coef_
        return model, told

    monkeypatch.setattr(grown, "fitted", wrong)
    _, found = grown.silent_cases(easy, ("dcd-l2",))
    assert any("more than the promised" in line for line in found)
