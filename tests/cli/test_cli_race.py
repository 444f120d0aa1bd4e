"""The command ``race``: several data sets, and two versions of a solver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from runs import svmbench

from svmbench.cli import race
from svmbench.experiment.config.loader import check_source
from svmbench.experiment.config.yaml_source import source_of_value
from svmbench.studies import racing, versions

pytestmark = pytest.mark.usefixtures("workshop")

TABLE = "age,plan,churn\n" + "".join(
    f"{20 + i},{'pro' if i % 3 else 'basic'},{'yes' if i % 3 else 'no'}\n" for i in range(60)
)
SOLVER = """
from sklearn.svm import LinearSVC


class HerSVM(LinearSVC):
    def fit(self, X, y):
        for _ in range({n_fits}):
            super().fit(X, y)
        return self
"""


def test_a_race_of_several_sets_runs_and_prints_its_config(tmp_path: Path) -> None:
    file = tmp_path / "my.csv"
    file.write_text(TABLE)
    words = ["race", "-d", "breast-cancer", "-d", file, "--label", "churn", "--rounds", 1]
    words += ["-s", "dcd-l1", "C=1", "-s", "liblinear-l1", "-s", "sklearn.svm.NuSVC", "nu=0.2"]
    ended = svmbench(*words, "--json")
    assert ended.code == 0, ended.said
    results = json.loads(ended.out)
    assert [one["dataset"] for one in results] == ["breast-cancer", str(file)]
    assert [one["n_train"] for one in results] == [569, 60]
    for one in results:
        assert [ratio["solver"] for ratio in one["ratios"]] == [
            "liblinear-l1",
            "sklearn.svm.NuSVC nu=0.2",
        ]
        assert all(ratio["ratio"] > 0 for ratio in one["ratios"])
        # Classes without an objective have an accuracy beside their time.
        assert all(solver["train_accuracy_pct"] > 50 for solver in one["solvers"])
    ended = svmbench(*words, "--yaml")
    config = yaml.safe_load(ended.out)
    table = {"file": str(file), "label_column": "churn", "text": "one-hot"}
    assert config["datasets"] == [{"name": "breast-cancer"}, table]
    (tmp_path / "race.yaml").write_text(ended.out)
    ended = svmbench("run", tmp_path / "race.yaml", "--output", tmp_path / "out")
    assert ended.code == 0, ended.said
    assert "my.csv" in (tmp_path / "out/tables.md").read_text()


def test_a_race_on_three_classes_separates_each_pair(tmp_path: Path) -> None:
    file = tmp_path / "three.csv"
    rows = [f"{i % 3 + 0.01 * i},{i % 5},{'abc'[i % 3]}\n" for i in range(60)]
    file.write_text("x,y,kind\n" + "".join(rows))
    words = ["time", file, "--label", "kind", "--rounds", 1, "--json"]
    ended = svmbench(*words, "--solver", "dcd-l1", "--vs", "liblinear-l1")
    assert ended.code == 0, ended.said
    (ratio,) = json.loads(ended.out)["ratios"]
    assert ratio["ratio"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-s", "csvc"], "a race needs two solvers"),
        (["-s", "csvc", "-s", "libsvm", "--label", "x"], "no -d names a file"),
        (["-s", "csvc", "--base", "HEAD", "--tolerance", 0.01], "leave out --tolerance"),
        (["-s", "csvc", "C=1,2", "--base", "HEAD"], "--base takes one value of each parameter"),
        (["-s", "csvc", "-s", "csvc"], "against itself needs other parameters"),
        (["-s", "csvc", "--fail-above", 2], "a race needs two solvers"),
        (["-s", "csvc", "--base", "HEAD"], "not a git repository"),
    ],
)
def test_a_race_that_can_not_be_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    ended = svmbench("race", *words)
    assert ended.code in (1, 2)
    assert said in ended.err
    assert "Traceback" not in ended.err.split("svmbench:")[0]


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
def test_two_versions_of_ones_own_class_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    source = tmp_path / "hersvm_versions.py"
    source.write_text(SOLVER.format(n_fits=1))
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    source.write_text(SOLVER.format(n_fits=20))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ".")
    monkeypatch.setenv("SVMBENCH_PLUGINS", "")  # the tests' own are not importable there
    monkeypatch.syspath_prepend(str(tmp_path))
    race = ["race", "--base", "HEAD", "--trust", "--rounds", 1, "-s"]
    ended = svmbench(*race, "hersvm_versions.HerSVM", "C=1", "--json")
    assert ended.code == 0, ended.said
    (one,) = json.loads(ended.out)["results"]
    assert one["ratio"] > 3  # twenty fits instead of one
    assert one["base"]["accuracy_pct"] == one["new"]["accuracy_pct"] > 90
    # A class whose ancestor is scikit-learn's declares its problem, and is certified on both sides.
    for side in ("base", "new"):
        assert one[side]["objective"] == pytest.approx(70.598, rel=1e-3)
        assert one[side]["certified_gap"] < 1e-4
    # The gate: too slow is code 4, and the other direction is none.
    gated = svmbench(*race, "hersvm_versions.HerSVM", "C=1", "--fail-above", 1.3)
    assert gated.code == 4, gated.said
    assert "slower: hersvm_versions.HerSVM C=1 on breast-cancer takes" in gated.out
    git(tmp_path, "commit", "--quiet", "--all", "--message", "slow")
    source.write_text(SOLVER.format(n_fits=1))
    gated = svmbench(*race, "hersvm_versions.HerSVM", "C=1", "--fail-above", 1.3)
    assert gated.code == 0, gated.said
    sentence = "no solver takes more than 1.3 times the CPU time of the base, or is less accurate"
    assert f"{sentence} or exact" in gated.out
    # A solver of another place than this repository has no version here.
    ended = svmbench(*race, "dcd-l1")
    assert ended.code == 1
    assert "svmbench is not among the files" in ended.err


@pytest.mark.slow
def test_two_environments_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, n_fits in (("one", 20), ("two", 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hersvm_builds.py").write_text(SOLVER.format(n_fits=n_fits))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("two")
    monkeypatch.setenv("PYTHONPATH", "two")
    monkeypatch.setenv("SVMBENCH_PLUGINS", "")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}/one:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    race = ["race", "--trust", "--rounds", 1, "-s", "hersvm_builds.HerSVM", "C=1", "--base-python"]
    ended = svmbench(*race, "./python", "--json")
    assert ended.code == 0, ended.said
    result = json.loads(ended.out)
    (one,) = result["results"]
    assert one["ratio"] < 0.5  # one fit instead of twenty
    assert one["base"]["accuracy_pct"] == one["new"]["accuracy_pct"] > 90
    assert result["base"].startswith(f"{tmp_path}/python (Python 3.")
    for content, said in (
        ("exit 3", "can't import svmbench: it failed"),
        ("echo 'No module named svmbench' >&2; exit 1", "svmbench: No module named svmbench"),
    ):
        python.write_text(f"#!/bin/sh\n{content}\n")
        ended = svmbench(*race, "./python")
        assert ended.code == 1
        assert said in ended.err
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "svmbench").mkdir()  # no package of the present folder takes part
    (tmp_path / "svmbench" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in ("./python", "python"):
        ended = svmbench("race", "--rounds", 1, "-s", "dcd-l1", "--base-python", name, "--json")
        assert ended.code == 0, ended.said
        assert json.loads(ended.out)["base"].startswith(f"{tmp_path}/python (Python 3.")
    assert "can't be started: No such file" in svmbench(*race, "./none").err
    assert "exclude each other" in svmbench(*race, "./python", "--base", "HEAD").err


def test_help_says_which_of_time_race_and_try_is_for_what() -> None:
    said = svmbench("--help").out
    for words in (
        "two solvers at given settings",
        "two commits",
        "settings searched on your table",
    ):
        assert words in said


def result_with(gaps: list[float | None], times: dict[str, float | None]) -> racing.RaceResult:
    """Return the result of a race of two solvers with these certified gaps."""
    solvers: list[racing.SolverResult] = [
        {
            "solver": name,
            "problem": "nu-svc",
            "offset": "a free offset",
            "cpu_time_s": 1.0,
            "cpu_range_s": [1.0, 1.0],
            "train_time_s": 1.0,
            "objective": 1.0,
            "excess_objective": 0.0,
            "certified": True,
            "certified_gap": gap,
            "train_accuracy_pct": 90.0,
            "times_to": dict(times),
        }
        for name, gap in zip(("one", "two"), gaps, strict=True)
    ]
    ratios: list[racing.RivalRatio] = [
        {"solver": "two", "ratio": 0.5, "range": [0.4, 0.6], "summed": ""}
    ]
    return {
        "dataset": "x",
        "n_train": 10,
        "rounds": 1,
        "solvers": solvers,
        "ratios": ratios,
        "note": "",
        "notes": [],
    }


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (1e-4, "two takes 0.5 times the CPU time of one (median of 1 round; 0.4 to 0.6)"),
        (1.5, "; not for equal work: the objective of two may be 150 % above the optimum"),
        (
            None,
            "; not for equal work: nothing bounds how far the objective of two is above the"
            " optimum",
        ),
    ],
)
def test_a_ratio_is_not_plain_if_a_solver_may_be_far_from_the_optimum(
    gap: float | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    race.print_result(result_with([1e-6, gap], {}))
    told = " ".join(capsys.readouterr().out.split())
    assert said in told
    assert ("not for equal work" in told) == (gap != 1e-4)


def test_profiles_count_races_within_a_factor_of_the_fastest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = (result_with([0.0, 0.0], {"1e-3": 1.0}) for _ in range(2))
    first["solvers"][1]["times_to"]["1e-3"] = 3.0
    second["solvers"][0]["times_to"]["1e-3"] = None
    race.print_profiles([first, second])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "share of 2 races solved to 1e-3 within … times"
    assert lines[2].split() == ["one", *["50", "%"] * 5]
    assert lines[3].split() == ["two", *["50", "%"] * 2, *["100", "%"] * 3]


@pytest.mark.parametrize("text", ["some", "0", "1e-2,2"])
def test_accuracies_are_numbers_between_0_and_1(text: str) -> None:
    ended = svmbench("race", "-s", "csvc", "-s", "libsvm", "--accuracies", text)
    assert ended.code == 2
    assert "--accuracies takes numbers between 0 and 1" in ended.err


def test_files_of_one_name_race(tmp_path: Path) -> None:
    rows = "".join(f"{label} 1:{i}\n" for i, label in enumerate([1, 1, 1, -1, -1, -1]))
    files = [tmp_path / folder / "data.txt" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        file.write_text(rows)
    named = [word for file in files for word in ("-d", str(file))]
    done = svmbench("race", *named, "-s", "dcd-l1", "-s", "dcd-l2", "--yaml")
    assert done.code == 0, done.err
    assert done.out.count(f"name: {tmp_path}") == 2


def test_a_file_whose_name_is_a_number_races(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("1e3").write_text("".join(f"{label} 1:{i}\n" for i, label in enumerate([1, 1, -1, -1])))
    ended = svmbench("race", "-d", "1e3", "-s", "dcd-l1", "-s", "dcd-l2", "--yaml")
    assert ended.code == 0, ended.said
    assert yaml.safe_load(ended.out)["datasets"] == [{"file": "1e3"}]
    assert "file: '1e3'" in ended.out


@pytest.mark.parametrize(
    ("limit", "changed", "said"),
    [
        (2.1, {}, "one takes no more than 2.1 times the CPU time of another solver, and is not"),
        (1.9, {}, "slower: one on x takes 2 times the CPU time of two; 1.9 times are allowed"),
        (2.1, {"train_accuracy_pct": 88.0}, "less accurate: one on x has 88.00 % on the training"),
        (2.1, {"objective": 1.1}, "less exact: one on x stops at the objective 1.1, two at 1;"),
        # Of another problem, objectives are not compared.
        (2.1, {"objective": 1.1, "offset": "no offset"}, "objectives were not compared everywhere"),
    ],
)
def test_the_first_of_a_race_is_gated_against_the_others(
    limit: float, changed: dict[str, Any], said: str
) -> None:
    result = result_with([0.0, 0.0], {})
    result["solvers"][0].update(changed)  # type: ignore[typeddict-item]
    (sentence,), is_worse = versions.race_outcome([result], limit)
    assert said in sentence
    assert is_worse == (": one on x" in sentence)
    assert versions.race_outcome([result], None) == ([], False)
    result["ratios"][0]["ratio"] = None
    (sentence, *_), is_worse = versions.race_outcome([result], limit)
    assert sentence.startswith("not compared: one and two on x have no ratio") or changed
    assert is_worse


def test_the_gate_of_a_race_ends_with_code_4() -> None:
    words = ["race", "--rounds", 1, "-s", "liblinear-l1", "tol=0.1", "-s", "liblinear-l1", "tol=1"]
    for limit, code in ((0.001, 4), (1000, 0)):
        ended = svmbench(*words, "--fail-above", limit)
        assert ended.code == code, ended.said
    assert "liblinear-l1 tol=0.1 takes no more than 1000 times" in ended.out


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["./old/train {train} {model}", "./new/train {train} {model}"],
         ["old/train", "new/train"]),
        (["/a/old/x/train {train} {model}", "b/new/x/train {train} {model}"],
         ["old/x/train", "new/x/train"]),
        (["./old/svm-train C=1 gamma=1 tol=1", "svm-train C=1 gamma=1 tol=1"],
         ["old/svm-train C=1 gamma=1 tol=1", "svm-train C=1 gamma=1 tol=1"]),
        (["./old/svm-train C=1 gamma=1 tol=1", "./old/svm-train C=2 gamma=1 tol=1"],
         ["svm-train C=1 gamma=1 tol=1", "svm-train C=2 gamma=1 tol=1"]),
        (["./a/train {train} {model}", "./b/other {train} {model}"], ["train", "other"]),
    ],
)  # fmt: skip
def test_builds_of_one_file_name_have_the_shortest_distinct_paths(
    words: list[str], labels: list[str]
) -> None:
    racers = racing.parse_racers(words, trust=True)
    assert [racer.label for racer in racers] == labels
    assert racing.race_config([{"name": "a9a"}], racers, racing.RaceSettings())["solvers"]


def test_a_program_has_a_prediction_command_on_the_command_line() -> None:
    words = "./train -c {C} {train} {model} predict=./pr -q {test} {model} {output} C=2"
    racer = racing.parse_racer(words, trust=True)
    assert (racer.label, racer.predict) == ("train C=2", "./pr -q {test} {model} {output}")
    assert racer.entry()["program"] == "./train -c {C} {train} {model}"
    assert racer.entry()["predict"] == racer.predict


def test_solvers_with_other_offsets_are_told() -> None:
    def notes(*solvers: str) -> str:
        racers = racing.parse_racers(solvers)
        shown = [{**result_with([0.0, 0.0], {})["solvers"][0], "solver": r.label} for r in racers]
        return " ".join(racing._notes(racers, shown))  # type: ignore[arg-type]

    said = notes("libsvm kernel=linear", "liblinear-l1", "sklearn.svm.SVC kernel=linear")
    assert "treat the offset differently" in said
    assert "libsvm kernel=linear and sklearn.svm.SVC kernel=linear: a free offset" in said
    assert "liblinear-l1: an offset that is regularised (a feature of 1)" in said
    assert "offset" not in notes("libsvm", "csvc")


@pytest.mark.parametrize(("walls", "told"), [((1.0, 3.0), 1), ((3.0, 1.0), 1), ((1.0, 1.9), 0)])
def test_a_solver_that_sleeps_is_told(walls: tuple[float, float], told: int) -> None:
    solvers = result_with([0.0, 0.0], {})["solvers"]
    for one, wall in zip(solvers, walls, strict=True):
        one["train_time_s"] = wall
    said = [*racing._notes_on_waits(solvers)]
    assert len(said) == told
    assert not said or "takes 3 times the wall time of" in said[0]
    solvers[0]["train_time_s"] = None
    assert [*racing._notes_on_waits(solvers)] == []


def test_a_ratio_of_several_settings_says_that_it_is_one_of_sums() -> None:
    first, other = racing.parse_racers(["liblinear-l1 tol=1,0.1,0.01", "liblinear-l1"])
    said = racing._summed(first, other, None)
    assert said == "sums over all settings, 1 and 3; the slowest setting decides"
    assert racing._summed(first, other, 0.1) == racing._summed(other, other, None) == ""
    result = result_with([0.0, 0.0], {})
    result["ratios"][0]["summed"] = said
    assert "(median of 1 round; 0.4 to 0.6; sums over all" in next(racing.ratio_sentences(result))


def test_two_builds_of_equal_objectives_are_not_called_unequal() -> None:
    one, two = result_with([None, None], {})["solvers"]
    assert "both reach the same objective" in racing.unequal_work(one, two)
    two["objective"] = 1.01
    assert "not for equal work" in racing.unequal_work(one, two)
    two |= {"objective": 1.0, "problem": "hinge"}
    assert "not for equal work" in racing.unequal_work(one, two)
    two["objective"] = None
    unknown = f"; perhaps not for equal work: the objective of {two['solver']} is not known"
    assert racing.unequal_work(one, two) == unknown


def test_a_race_says_how_many_rounds_it_has_and_what_is_compiled() -> None:
    programs = racing.parse_racers(["./a/train {train} {model}", "./b/train {train} {model}"],
                                   trust=True)  # fmt: skip
    said = "timing a/train and b/train in turn on a9a, 1 round"
    assert racing.start_sentence(programs, "a9a", 1) == said
    said = racing.start_sentence([*programs, *racing.parse_racers(["csvc"])], "a9a", 9)
    assert "csvc in turn on a9a, 9 rounds; on a new machine svmbench's own loops" in said


def test_the_config_of_a_race_has_its_times_to_accuracies_and_plots() -> None:
    racers = racing.parse_racers(["dcd-l1", "liblinear-l1"])
    settings = racing.RaceSettings(accuracies=(1e-2, 1e-5))
    config = racing.race_config([{"name": "breast-cancer"}], racers, settings)
    times = ["cpu_time_to_1e-2_s", "cpu_time_to_1e-5_s"]
    assert [each for each in config["tables"][0]["metrics"] if "time_to" in each] == times
    assert [plot["y"] for plot in config["plots"]] == ["ratio", *times]
    check_source(source_of_value(config, "race"), trust=False)


def test_failed_sides_and_times_to_an_accuracy_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    race.print_result(result_with([0.0, 0.0], {"1e-3": 0.25}))
    assert "cpu s to a certified relative gap" in capsys.readouterr().out
    sides = {"base": {"reason": "no memory"}, "new": {"reason": ""}}
    result = {"results": [{"solver": "s", "dataset": "d", **sides}]}
    assert [*versions.version_failures(result)] == ["s on d, base: no memory"]
