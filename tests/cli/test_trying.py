"""The command ``try``: a table of one's own becomes a fitted pipeline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runs import svmbench

from svmbench.cli import trying

pytestmark = pytest.mark.usefixtures("workshop")


def table(n: int = 160) -> pd.DataFrame:
    """Return rows with numbers, words and truth values, whose label follows from two of them."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.normal(40, 10, n).round(1),
            "plan": random.choice(["basic", "plus", "pro"], n),
            "active": random.choice([True, False], n),
        }
    )
    frame["churn"] = np.where(frame.age + 20 * (frame.plan == "pro") > 45, "yes", "no")
    return frame


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two linear solvers stand for all."""
    monkeypatch.setattr(trying, "CANDIDATES", trying.CANDIDATES[:2])


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("text", ["one-hot", "ordinal"])
def test_a_table_becomes_a_pipeline(tmp_path: Path, text: str) -> None:
    file = tmp_path / "my.csv"
    table().to_csv(file, index=False)
    ended = svmbench("try", file, "--label", "churn", "--minutes", 0.05, "--text", text)
    assert ended.code == 0, ended.said
    assert f"1 text column, {text}: plan (3 words)" in ended.out
    assert "Take " in ended.out
    *_, first, second, third = ended.out.splitlines()
    assert (tmp_path / "my.joblib").is_file()
    # The three lines load it and predict, in a process of their own.
    lines = "\n".join(line.strip() for line in (first, second, third))
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    predicted = done.stdout.replace("[", " ").replace("]", " ").replace("'", "").split()
    assert np.mean(np.array(predicted) == table().churn) > (0.9 if text == "one-hot" else 0.75)


@pytest.mark.usefixtures("few")
def test_missing_values_are_filled_in_only_where_asked(tmp_path: Path) -> None:
    frame = table()
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "plan"] = np.nan
    file = tmp_path / "gaps.csv"
    frame.to_csv(file, index=False)
    ended = svmbench("try", file, "--label", "churn")
    assert ended.code == 2
    assert "values are missing: age (1), plan (1); --impute fills them in" in ended.err
    assert not (tmp_path / "gaps.joblib").exists()
    words = ["--label", "churn", "--impute", "--minutes", 0.05, "--json"]
    ended = svmbench("try", file, *words)
    assert ended.code == 0, ended.said
    made = json.loads(ended.out)
    assert {one["solver"] for one in made["trials"]} == {"newton-l2", "dcd-l1"}
    assert made["trials"][0]["accuracy_pct"] > 85


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,x\n", "has no column 'churn' (it has a, b)"),
        ("a,chrn\n1,x\n", "did you mean 'chrn'?"),
        ("a,churn\n1,x\n2,\n", "line 3: the label is missing"),
        ("a,churn\n1,x\n2,x\n", "1 classes, the smallest of 2 rows"),
        ("churn\n" + "x\ny\n" * 10, "no column is left for features"),
    ],
)
def test_a_table_that_can_not_be_used_is_a_sentence(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "my.csv"
    file.write_text(content)
    ended = svmbench("try", file, "--label", "churn")
    assert ended.code == 2
    assert said in ended.err
    assert svmbench("try", tmp_path / "none.csv", "--label", "churn").code == 2


def test_the_recommendation_prefers_speed_within_the_noise() -> None:
    def trial(solver: str, accuracy: float, predict: float) -> trying.Trial:
        return trying.Trial(solver, accuracy, 1.0, predict, 1.0, {})

    slow, quick, worse = trial("a", 90.0, 1.0), trial("b", 89.5, 0.1), trial("c", 85.0, 0.01)
    chosen, said = trying.recommended([slow, quick, worse], 500)
    assert chosen is quick
    assert "predicts 10 times as fast" in said
    assert trying.recommended([slow, quick, worse], 10**6)[0] is slow
