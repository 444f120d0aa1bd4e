"""The command ``try``: a table of one's own becomes a fitted pipeline."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runs import svmbench
from scipy.stats import binomtest

from svmbench.data.userfile import Table
from svmbench.studies import recommending, trying

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
    assert f"1 text column, {text}: plan (3 values)" in ended.out
    assert "Take " in ended.out
    assert re.search(r"To quote: accuracy .* % \(95 % interval .* %\) on 40 test rows", ended.out)
    *_, first, second, third = ended.out.splitlines()
    assert (tmp_path / "my.joblib").is_file()
    assert f"wrote {file.with_suffix('.joblib')}. It is the pipeline of " in ended.out
    assert "fitted on 120 training rows; it was not fitted again with the 40 test rows" in ended.out
    assert "Its decision_function is above 0 for yes and below 0 for no." in ended.out
    assert re.search(r"logistic regression: \d of 5 settings tried, the best C=", ended.out)
    # The three lines load it and predict the rows of new.csv, in a process of their own.
    table().drop(columns="churn").to_csv(tmp_path / "new.csv", index=False)
    lines = "\n".join(line.strip() for line in (first, second, third))
    done = subprocess.run(
        [sys.executable, "-c", lines],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    predicted = done.stdout.replace("[", " ").replace("]", " ").replace("'", "").split()
    assert np.mean(np.array(predicted) == table().churn) > (0.9 if text == "one-hot" else 0.75)


@pytest.mark.parametrize(
    ("name", "read"), [("my.csv", "'new.csv'"), ("my.tsv", r"'new.tsv', sep='\t'")]
)
def test_new_rows_are_read_from_a_file_of_their_own(tmp_path: Path, name: str, read: str) -> None:
    table().to_csv(tmp_path / name, index=False, sep="\t" if name == "my.tsv" else ",")
    assert Table(tmp_path / name, "churn").reader == f"pandas.read_csv({read})"


@pytest.mark.usefixtures("few")
def test_missing_values_are_filled_in_unless_refused(tmp_path: Path) -> None:
    frame = table()
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "plan"] = np.nan
    file = tmp_path / "gaps.csv"
    frame.to_csv(file, index=False)
    ended = svmbench("try", file, "--label", "churn", "--no-impute")
    assert ended.code == 2
    assert "values are missing: age (1), plan (1); --impute fills them in" in ended.err
    assert not (tmp_path / "gaps.joblib").exists()
    ended = svmbench("try", file, "--label", "churn", "--minutes", 0.05, "--json")
    assert ended.code == 0, ended.said
    made = json.loads(ended.out)
    assert {one["solver"] for one in made["trials"]} == {"newton-l2", "dcd-l1"}
    assert made["trials"][0]["accuracy_pct"] > 85
    assert made["trials"][0]["folds_pct"] > 80
    assert 0 <= made["trials"][0]["folds_spread_pct"] < 20
    assert np.trace(made["confusion"]["counts"]) > 0.85 * np.sum(made["confusion"]["counts"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,x\n", "has no column 'churn' (it has a, b)"),
        ("a,chrn\n1,x\n", "did you mean 'chrn'?"),
        ("a,churn\n1,x\n2,\n", "line 3: the label is missing"),
        ("a,churn\n1,x\n2,x\n", "has one class only, x; a classifier needs two"),
        (
            "a,churn\n1,once\n" + "2,x\n3,y\n" * 9,
            "the smallest of 3 classes, once, has 1 row; each class needs 6 rows or more;"
            " leave out or join smaller classes",
        ),
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


def fitted(
    solver: str, right: np.ndarray, predict_s: float = 1.0, folds: tuple[float, ...] = ()
) -> recommending.Fitted:
    """Return a trial that is right on some of the test rows, and over folds as often as stated."""
    accuracy = 100 * float(np.mean(right))
    interval = recommending.interval_of(recommending.ACCURACY, [right.astype(float)])
    trial = recommending.Trial(
        solver, accuracy, accuracy, accuracy, 1.0, predict_s, 1.0, {}, interval_pct=interval
    )
    searched = recommending.Searched({}, np.array(folds), 1, 1, 1.0, 2) if folds else None
    return recommending.Fitted(trial, None, right, [right.astype(float)], searched)


def right_at(n_rows: int, n_right: int, first: int = 0) -> np.ndarray:
    """Return truth values that are true on `n_right` rows in sequence."""
    return np.roll(np.arange(n_rows) < n_right, first)


def recommended(fitted: list[recommending.Fitted], metric: str) -> tuple[recommending.Fitted, str]:
    return recommending.recommended(fitted, metric, [name for name, _, _ in trying.CANDIDATES])


def over_folds(
    solver: str, folds: tuple[float, ...], predict_s: float = 1.0
) -> recommending.Fitted:
    """Return a trial with these scores over folds, right on 9 of 10 test rows."""
    return fitted(solver, right_at(500, 450), predict_s, folds)


def test_the_recommendation_is_the_simplest_of_equally_good_and_fast_solvers() -> None:
    best = over_folds("csvc", (0.89, 0.90, 0.91))
    simple = over_folds("newton-l2", (0.900, 0.895, 0.900), 1.9)
    quick = over_folds("nystrom", (0.901, 0.891, 0.900), 0.1)
    worse = over_folds("dcd-l1", (0.85, 0.84, 0.86), 0.01)
    chosen, said = recommended([best, simple, worse], "accuracy")
    assert chosen is simple
    assert "Take newton-l2: it is the simpler model" in said
    # One that predicts far faster comes before a simpler one.
    chosen, said = recommended([best, simple, quick, worse], "accuracy")
    assert chosen is quick
    assert "predicts 10 times as fast" in said
    # The best is taken, and those that are as good are named.
    slow = over_folds("csvc", (0.900, 0.895, 0.900))
    first = over_folds("newton-l2", (0.89, 0.90, 0.91))
    chosen, said = recommended([first, slow, worse], "accuracy")
    assert chosen is first
    assert "90.00 % is the best accuracy of the SVMs over 3 folds of the training rows" in said
    # Differences of -1, 0.5 and 1 points have a standard error of 0.60 points.
    assert "(in brackets) of the mean difference over 3 folds: csvc (89.83 %, 0.60 points)" in said
    # Five points in each fold are no tie, however fast the other is.
    assert recommended([best, worse], "accuracy")[0] is best
    # Times that differ by less than the factor change nothing.
    again = over_folds("newton-l2", (0.900, 0.895, 0.900), 0.6)
    assert recommended([best, again, worse], "accuracy")[0] is again
    # A model of one class alone is not taken if another one is as good.
    blind = [replace(one, searched=replace(one.folds, n_predicted=1)) for one in (best, again)]
    chosen, said = recommended([blind[0], quick, blind[1]], "accuracy")
    assert chosen is quick
    assert "it predicts more of the classes" in said


def test_the_test_rows_choose_nothing() -> None:
    # As over folds, so is the choice, whatever the test rows say.
    linear = fitted("newton-l2", right_at(500, 290), 1.0, (0.70, 0.75, 0.80))
    kernel = fitted("csvc", right_at(500, 314), 1.0, (0.56, 0.65, 0.73))
    chosen, said = recommended([kernel, linear], "balanced_accuracy")
    assert chosen is linear
    assert "Take newton-l2: 75.00 % is the best balanced accuracy of the SVMs over 3 folds" in said
    # The number to quote is that of the test rows, and no solver was chosen by it.
    quoted = recommending.number_to_quote(chosen, 500, "balanced_accuracy")
    assert "To quote: balanced accuracy 58.00 %" in quoted
    assert "nothing was trained or chosen" in quoted


def test_folds_and_test_rows_that_disagree_are_said() -> None:
    # Test rows: 68 % with a standard error of 2.08 points. Folds: 73.5 %.
    near = fitted("csvc", right_at(500, 342), 1.0, (0.56, 0.65, 0.73))
    wide = fitted("newton-l2", right_at(500, 340), 1.0, (0.685, 0.735, 0.785))
    assert recommending.disagreement(wide, [wide, near], "accuracy") == ""  # 5.5 points, error 3.6
    narrow = replace(wide, searched=replace(wide.folds, scores=np.array([0.725, 0.735, 0.745])))
    said = recommending.disagreement(narrow, [narrow, near], "accuracy")  # 5.5 points, error 2.16
    assert "73.50 % over the folds, which train on fewer rows, and 68.00 % on the test" in said
    assert "5.50 points apart, with a standard error of 2.1" in said
    # The folds may also be worse.
    below = replace(wide, searched=replace(wide.folds, scores=np.array([0.615, 0.625, 0.635])))
    assert "62.50 % over the folds" in recommending.disagreement(below, [below, near], "accuracy")
    # Another solver that is clearly better on the test rows.
    better = replace(
        near, trial=replace(near.trial, score_pct=80.0), influences=[right_at(500, 400) * 1.0]
    )
    said = recommending.disagreement(wide, [wide, better], "accuracy")
    assert "on the test rows csvc is 12.00 points better than newton-l2" in said


def test_what_is_said_of_scores_is_what_the_model_has() -> None:
    def said(model: object) -> str:
        chosen = replace(over_folds("csvc", (0.9, 0.9, 0.9)), model=model)
        return trying.TryResult("accuracy", [chosen], [], chosen, "", "", [], None, "").scores()

    two = type("Two", (), {"classes_": np.array(["no", "yes"]), "decision_function": None})
    assert "decision_function is above 0 for yes and below 0 for no" in said(two)
    pairs = type("Pairs", (), {"classes_": np.arange(3)})
    assert "neither decision_function nor predict_proba" in said(pairs)


def test_a_search_counts_the_classes_that_the_folds_predict() -> None:
    from sklearn.dummy import DummyClassifier

    X, y = np.zeros((30, 1)), np.arange(30) % 3
    for strategy, n_predicted in (("most_frequent", 1), ("uniform", 3)):

        def build(point: dict[str, object], strategy: str = strategy) -> DummyClassifier:
            return DummyClassifier(strategy=strategy, random_state=0)

        found = trying.search(build, {"C": [1.0]}, X, y, 10.0, recommending.ACCURACY)
        assert found.n_predicted == n_predicted
        assert len(found.scores) == trying.SEARCH_FOLDS


def test_a_search_that_ran_out_of_time_says_what_to_do() -> None:
    def searched(n_tried: int, seconds: float) -> recommending.Searched:
        return recommending.Searched({}, np.array([0.8, 0.9]), n_tried, 10, seconds)

    assert trying.time_was_short({"a": searched(10, 5.0)}, [1.0]) == ""
    # The second of two takes 60 s: twice that, and what the first takes.
    said = trying.time_was_short({"a": searched(10, 5.0), "b": searched(2, 12.0)}, [1.0, 1.0])
    assert "--minutes 3 is" in said
    # The first of two takes 60 s, half of its half.
    said = trying.time_was_short({"a": searched(2, 12.0), "b": searched(10, 5.0)}, [1.0, 1.0])
    assert "--minutes 4 is" in said


def test_a_ranking_metric_tries_weighted_classes_alone() -> None:
    for metric, weights in (("roc_auc", ["balanced"]), ("balanced_accuracy", ["balanced", None])):
        assert trying.grid_for("csvc", {"C": [1.0]}, metric)["class_weight"] == weights
    assert trying.grid_for("csvc", {"C": [1.0]}, "accuracy") == {"C": [1.0]}


def test_solvers_without_class_weights_are_named() -> None:
    said = trying.why_weighted(pd.Series(["no"] * 90 + ["yes"] * 10), recommending.BALANCED)
    assert "always predicting no would be right for 90.0 % of the rows" in said
    assert "class weights are tried (nystrom takes no class weights);" in said


@pytest.mark.parametrize(
    ("n_right", "said"),
    [
        (440, ""),
        (450, ""),
        (455, "reaches 91.00 % (within the standard error of the difference between both"),
        (499, "reaches 99.80 % (beyond the standard error of the difference between both"),
    ],
)
def test_a_baseline_that_beats_the_solver_is_named(n_right: int, said: str) -> None:
    chosen = fitted("csvc", right_at(500, 450), 1.0)
    baselines = [
        fitted("most frequent", right_at(500, 300), 1.0),
        fitted("logistic regression", right_at(500, n_right, 40), 1.0),
    ]
    found = recommending.beaten_by(chosen, baselines, "accuracy")
    assert said in found
    assert bool(found) is bool(said)


@pytest.mark.parametrize("metric", list(recommending.METRICS))
def test_the_standard_error_is_that_of_bootstrap_samples(metric: str) -> None:
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    random = np.random.default_rng(1)
    y = np.repeat([0, 1], [300, 100])
    values = [random.normal(size=400) + 1.2 * y, random.normal(size=400) + 0.9 * y]
    solvers = []
    for decision in values:
        predicted = (decision > 0.5).astype(int)
        trial = recommending.Trial("csvc", 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, {})
        influences = recommending.influences_on(metric, y, predicted, decision)
        solvers.append(recommending.Fitted(trial, None, predicted, influences))

    def score(decision: np.ndarray, rows: np.ndarray) -> float:
        if metric == "roc_auc":
            return float(roc_auc_score(y[rows], decision[rows]))
        right = (decision[rows] > 0.5) == y[rows]
        if metric == "accuracy":
            return float(np.mean(right))
        return float(balanced_accuracy_score(y[rows], (decision[rows] > 0.5).astype(int)))

    differences = []
    for _ in range(200):
        rows = np.concatenate([random.integers(0, 300, 300), random.integers(300, 400, 100)])
        differences.append(score(values[0], rows) - score(values[1], rows))
    expected = 100 * float(np.std(differences))
    assert recommending.standard_error(*solvers) == pytest.approx(expected, rel=0.25)


def test_the_interval_of_a_score_covers_the_truth() -> None:
    # Wilson's, as scipy has it.
    right = np.arange(200) < 183
    expected = binomtest(183, 200).proportion_ci(method="wilson")
    found = recommending.interval_of(recommending.ACCURACY, [right.astype(float)])
    assert found == pytest.approx((100 * expected.low, 100 * expected.high), abs=1e-3)
    # A small class without an error is not certain.
    y = np.repeat([0, 1], [195, 5])
    sure = recommending.influences_on(recommending.BALANCED, y, y, None)
    low, high = recommending.interval_of(recommending.BALANCED, sure)
    assert 70 < low < 80
    assert high == 100
    assert (
        recommending.interval_of(
            recommending.ROC_AUC, recommending.influences_on("roc_auc", y, y, y)
        )[0]
        < 80
    )
    # The interval holds the true score about as often as it says.
    random, held = np.random.default_rng(0), {recommending.BALANCED: 0, recommending.ROC_AUC: 0}
    y = np.repeat([0, 1], [90, 30])
    for _ in range(400):
        values = random.normal(size=120) + np.sqrt(2) * y  # an area of 0.8413, normal's at 1
        for metric, truth in ((recommending.BALANCED, 76.025), (recommending.ROC_AUC, 84.134)):
            predicted = (values > 0.5 * np.sqrt(2)).astype(int)
            influences = recommending.influences_on(metric, y, predicted, values)
            low, high = recommending.interval_of(metric, influences)
            held[metric] += low <= truth <= high
    assert all(0.92 <= n / 400 <= 0.98 for n in held.values()), held


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_uneven_classes_are_told_apart_and_said(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    n = 3000
    rare = random.random(n) < 0.015
    frame = pd.DataFrame({"a": random.normal(size=n) + 2.5 * rare, "b": random.normal(size=n)})
    frame["fraud"] = rare
    file = tmp_path / "uneven.csv"
    frame.to_csv(file, index=False)
    ended = svmbench("try", file, "--label", "fraud", "--minutes", 0.05)
    assert ended.code == 0, ended.said
    assert "98." in ended.out.splitlines()[0]
    assert "The classes are uneven" in ended.out
    assert "most frequent class" in ended.out
    assert "predicted True" in ended.out
    assert "balanced accuracy over 3 folds (%)" in ended.out
    assert " ± " in ended.out
    import joblib

    # The pipeline finds most of the rare class, and returns truth values as the file has them.
    predicted = joblib.load(tmp_path / "uneven.joblib").predict(frame)
    assert predicted.dtype == bool
    assert predicted[rare].mean() > 0.6
    # By accuracy a model that predicts one class alone may win; then that is said.
    words = ["--label", "fraud", "--minutes", 0.05, "--metric", "accuracy", "--json"]
    made = json.loads(svmbench("try", file, *words).out)
    assert made["metric"] == "accuracy"
    frequent, logistic = made["baselines"]
    assert frequent["accuracy_pct"] > 98
    assert frequent["folds_pct"] is None
    assert logistic["folds_pct"] > 90
    assert logistic["params"]["C"] in trying.BASELINE[2]["C"]
    words[-2] = "roc_auc"
    made = json.loads(svmbench("try", file, *words).out)
    assert made["trials"][0]["score_pct"] > 80


def test_a_model_that_is_no_better_than_one_class_is_said() -> None:
    y = np.array([0] * 380 + [1] * 20)
    model = type("Model", (), {"classes_": np.array([0, 1])})

    def predicting(predicted: np.ndarray, balanced: float) -> recommending.Fitted:
        trial = recommending.Trial("csvc", 95.0, 95.0, balanced, 1.0, 1.0, 1.0, {})
        return recommending.Fitted(trial, model, predicted, [(predicted == y).astype(float)])

    zeros = np.zeros(400, dtype=int)
    frequent = predicting(zeros, 50.0)
    first, second = recommending.cautions(frequent, frequent, "accuracy", y)
    assert "not clearly better than always predicting" in first
    assert "predicts none of the test rows as 1" in second
    half = np.where(np.arange(400) >= 390, 1, 0)
    assert not list(recommending.cautions(predicting(half, 75.0), frequent, "accuracy", y))
    # Two of twenty found are within twice the standard error of none.
    two = np.where(np.arange(400) >= 398, 1, 0)
    assert len(list(recommending.cautions(predicting(two, 55.0), frequent, "accuracy", y))) == 1


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["0", "1"], [0, 1]),
        (["-1", "30"], [-1, 30]),
        (["True", "False"], [True, False]),
        (["007", "7"], ["007", "7"]),
        (["1e3", "2"], ["1e3", "2"]),
        (["1", "yes"], ["1", "yes"]),
        (["9007199254740992", "1"], ["9007199254740992", "1"]),
    ],
)
def test_labels_keep_their_own_type(texts: list[str], expected: list[object]) -> None:
    typed = list(trying.with_own_type(pd.Series(texts)))
    assert typed == expected
    assert isinstance(typed[0], str) == isinstance(expected[0], str)


def test_a_split_that_leaves_too_few_rows_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "my.csv"
    table(60).to_csv(file, index=False)
    for share in (0.99, 0.01):
        ended = svmbench("try", file, "--label", "churn", "--test", share)
        assert ended.code == 2
        assert "leaves too few rows of a class" in ended.err
    ended = svmbench("try", file, "--label", "churn", "-o", tmp_path / "none" / "my.joblib")
    assert ended.code == 2
    assert "can't write" in ended.err
    words = "abc"
    frame = table(60).assign(churn=[words[i % 3] for i in range(60)])
    frame.to_csv(file, index=False)
    ended = svmbench("try", file, "--label", "churn", "--metric", "roc_auc")
    assert ended.code == 2
    assert "needs two classes" in ended.err


@pytest.mark.slow
def test_many_classes_have_a_table_and_no_confusion_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trying, "CANDIDATES", trying.CANDIDATES[2:3])  # all pairs in one solver
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(70), 8)
    frame = pd.DataFrame({"a": labels + 0.1 * random.normal(size=560), "b": labels % 7})
    frame["kind"] = [f"kind {label}" for label in labels]
    file = tmp_path / "many.csv"
    frame.to_csv(file, index=False)
    ended = svmbench("try", file, "--label", "kind", "--minutes", 0.01)
    assert ended.code == 0, ended.said
    assert "70 classes of kind" in ended.out
    assert "predicted kind" not in ended.out


def test_a_model_that_can_not_be_written_is_kept_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(trying.ResultsError, match="the model is in") as caught:
        trying.write_model({"fitted": 1}, tmp_path / "gone" / "my.joblib")
    import joblib

    assert joblib.load(str(caught.value).partition("the model is in ")[2]) == {"fitted": 1}
