"""Races: the cost of a target by hand, and a real race on data that ships with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmbench
from svmbench.base.errors import SvmbenchError
from svmbench.core.models import certificates as certificates_of_models
from svmbench.experiment.protocols import certified
from svmbench.experiment.protocols.certified import Certificates, accuracy_name, share_bounds
from svmbench.experiment.protocols.race import _Racer, run_race
from svmbench.experiment.protocols.task import Task
from svmbench.experiment.protocols.turns import Costs, ratios_of, take_turns

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] > 0, 1, -1)


def racer(costs: dict[tuple[float, int], list[float]], objectives: list[float]) -> _Racer:
    """Return a racer that has run: one objective a rung; wall time is twice the CPU time."""
    task = Task(spec={"seed": 0, "dataset": {"name": "x"}})
    settings = {"name": "alsvm", "shown": "alsvm", "params": {}, "grid": [{}]}
    one = _Racer(task, settings, X, Y)
    one.costs = {key: Costs(own, [2 * cpu for cpu in own]) for key, own in costs.items()}
    one.objectives = dict(zip(costs, objectives, strict=True))
    return one


def test_turns_go_round_until_all_have_ended_or_the_rounds_are_over() -> None:
    taken: list[str] = []

    def turn(name: str, length: int) -> Any:
        def take() -> bool:
            taken.append(name)
            return taken.count(name) < length

        return take

    take_turns([turn("A", 1), turn("B", 3), turn("C", 2)])
    assert "".join(taken) == "ABCBCB"
    taken.clear()
    take_turns([turn("A", 9), turn("B", 9), turn("C", 2)], 3, alternate=True)
    assert "".join(taken) == "ABCCBAAB"
    taken.clear()
    take_turns([lambda: taken.append("A"), lambda: taken.append("B")], 2)
    assert "".join(taken) == "ABAB"


def test_a_ratio_is_the_median_over_the_rounds_with_its_range() -> None:
    costs = {"a": [1.0, 2.0, 4.0], "b": [3.0, 2.0, 8.0]}
    ratios, spread = ratios_of([("a", "b"), ("a", "none")], costs)
    assert ratios == {"ratio:a:b": 2.0, "ratio:a:none": None}
    assert spread == {"ratio:a:b": [1.0, 3.0]}


def cpu_s(one: _Racer, best: dict[float, float], tolerance: float | None) -> list[float]:
    """Return the CPU seconds of each round."""
    total = one.totals(best, tolerance)
    assert total is not None
    cpu, wall = total
    assert wall == pytest.approx(2 * cpu)
    return [float(value) for value in cpu]


def test_cost_of_a_target_is_interpolated_in_log_cost_and_log_excess() -> None:
    one = racer({(1.0, 0): [1.0], (1.0, 1): [4.0], (1.0, 2): [9.0]}, [110.0, 101.0, 100.0])
    # Excess falls from 0.1 to 0.01 while the cost rises from 1 to 4: halfway in logs at 10**-1.5.
    assert cpu_s(one, {1.0: 100.0}, 10**-1.5) == pytest.approx([2.0])
    assert cpu_s(one, {1.0: 100.0}, 0.01) == pytest.approx([4.0])
    assert cpu_s(one, {1.0: 100.0}, 0.2) == pytest.approx([1.0])
    # An excess of zero counts as a thousandth of the tolerance, here 10**-5.75: a fifth of the way.
    assert cpu_s(one, {1.0: 100.0}, 10**-2.75) == pytest.approx([4.0**0.8 * 9.0**0.2])


def test_costs_are_summed_over_c_round_by_round() -> None:
    costs = {(1.0, 0): [1.0, 2.0], (2.0, 1): [10.0, 20.0]}
    one = racer(costs, [100.0, 50.0])
    assert cpu_s(one, {1.0: 100.0, 2.0: 50.0}, 0.01) == [11.0, 22.0]
    assert cpu_s(one, {1.0: 1.0, 2.0: 1.0}, None) == [11.0, 22.0]


def test_a_target_that_was_missed_has_no_cost() -> None:
    one = racer({(1.0, 0): [1.0]}, [110.0])
    assert one.totals({1.0: 100.0}, 0.01) is None
    assert one.reached({1.0: 100.0}, 0.01) is None


class Liar:
    """A class that says it converged, whatever its weights are."""

    stop_reason_ = "converged"

    def __init__(self, w: np.ndarray, C: float = 1.0) -> None:
        self.coef_, self.intercept_, self.C = w[None, :], np.zeros(1), C
        self.loss, self.fit_intercept = "hinge", False


def solved() -> Any:
    """Return an accurate linear SVM without an offset."""
    return svmbench.DCDL1(C=1.0, fit_intercept=False, tol=1e-10).fit(X, Y)


def certificates(name: str, *models: Any) -> Certificates:
    found = Certificates(name, X, Y)
    for k, model in enumerate(models):
        found.add((1.0, k), model)
    return found


def test_a_racer_that_claims_what_is_not_true_is_marked() -> None:
    good = solved()
    honest, liar = certificates("honest", good), certificates("liar", Liar(0.5 * good.coef_[0]))
    share_bounds([honest, liar])
    metrics: dict[str, Any] = {}
    notes: list[str] = []
    for one in (honest, liar):
        one.report([(1.0, 0)], metrics, notes)
    assert metrics["certified_bound:liar"] == metrics["certified_bound:honest"]
    assert metrics["certified_gap:honest"] < 1e-6 < 1e-2 < metrics["certified_gap:liar"]
    assert [metrics[f"solved_1e-5_pct:{name}"] for name in ("honest", "liar")] == [100.0, 0.0]
    assert [metrics[f"claims_true_pct:{name}"] for name in ("honest", "liar")] == [100.0, 0.0]
    (note,) = notes
    share = 100 * metrics["certified_gap:liar"]
    assert note == (
        "liar says that it converged, which is not certified:"
        f" its objective may be {share:.3g} % above the optimum"
    )


def test_an_objective_below_a_bound_is_an_error() -> None:
    good = certificates("good", solved())
    share_bounds([good])
    (one,) = good.by_setting.values()
    wrong = certificates("wrong", solved())
    wrong.by_setting[1.0, 0] = type(one)(problem="", n_samples=60, primal=0.9 * one.primal)
    with pytest.raises(SvmbenchError, match=r"the objective of wrong.* is below the bound"):
        share_bounds([good, wrong])


def test_the_time_to_an_accuracy_is_the_least_of_the_settings_that_reach_it() -> None:
    w = solved().coef_[0]
    one = certificates("one", Liar(0.5 * w), Liar(0.99 * w), Liar(w))
    share_bounds([one])
    costs = {(1.0, 0): Costs([1.0]), (1.0, 1): Costs([2.0, 4.0, 9.0]), (1.0, 2): Costs([3.0])}
    metrics: dict[str, Any] = {}
    one.report_times([1e-2, 1e-5, 1e-300], costs, metrics)
    assert metrics == {
        "cpu_time_to_1e-2_s:one": 3.0,
        "cpu_time_to_1e-5_s:one": 3.0,
        "cpu_time_to_1e-300_s:one": None,
    }
    assert [accuracy_name(each) for each in (0.01, 2.5e-4)] == ["1e-2", "2.5e-4"]


def spec(**more: Any) -> dict[str, Any]:
    """Return the specification of a race on a small built-in set."""
    base = {
        "protocol": "race",
        "dataset": {"name": "breast-cancer", "file": "", "label_column": ""},
        "n_rows": 569,
        "n_features_kept": None,
        "subset": "stratified",
        "seed": 0,
        "scaling": "all-rows",
        "scaler": "minmax",
        "repeats": 3,
        "tolerance": 1e-3,
        "racers": [
            {"name": "dcd-l1", "shown": "dcd-l1", "params": {},
             "grid": [{"tol": 0.1}, {"tol": 1e-3}, {"tol": 1e-5}]},
            {"name": "liblinear-l1", "shown": "liblinear-l1", "params": {},
             "grid": [{"tol": 0.1}, {"tol": 1e-3}, {"tol": 1e-5}]},
            {"name": "pegasos", "shown": "pegasos", "params": {"max_iter": 1}, "grid": [{}]},
        ],
        "pairs": [["dcd-l1", "liblinear-l1"], ["dcd-l1", "pegasos"]],
    }  # fmt: skip
    return {**base, **more}


@pytest.mark.slow
def test_a_real_race_reports_ratios_and_who_missed_the_target(private_cache: object) -> None:
    result = run_race(Task(spec=spec()))
    metrics = result["metrics"]
    ratio = metrics["ratio:dcd-l1:liblinear-l1"]
    low, high = result["spread"]["ratio:dcd-l1:liblinear-l1"]
    assert 0 < low <= ratio <= high
    assert metrics["excess_objective:dcd-l1"] <= 1e-3
    assert metrics["ratio:dcd-l1:pegasos"] is None
    assert "cpu_time_s:pegasos" not in metrics
    assert result["stop_reason"] == "pegasos did not come within 0.001 of the optimum"
    assert result["counters"]["passes:dcd-l1"] > 0


@pytest.mark.slow
def test_objectives_are_compared_where_problem_and_offset_agree(private_cache: object) -> None:
    grid = [{"C": 1.0}]
    racers = [
        {"name": name, "shown": shown, "params": params, "grid": grid}
        for name, shown, params in (
            ("csvc", "free", {"kernel": "linear", "tol": 1e-6}),
            ("smo-fixed-threshold", "none", {"kernel": "linear", "tol": 1e-6}),
            ("dcd-l1", "also none", {"fit_intercept": False, "tol": 1e-6}),
            ("dcd-l1", "absorbed", {"tol": 1e-6}),
        )
    ]
    pairs = [["free", "none"], ["none", "also none"], ["also none", "absorbed"]]
    metrics = run_race(Task(spec=spec(racers=racers, pairs=pairs, repeats=1)))["metrics"]
    objectives = [metrics[f"objective:{racer['shown']}"] for racer in racers]
    assert objectives[1] == pytest.approx(objectives[2], rel=1e-5)
    assert objectives[0] < 0.99 * objectives[1]
    # Each is the best of its own kind, and nothing is said of those that differ.
    assert all(metrics[f"excess_objective:{racer['shown']}"] < 1e-5 for racer in racers)
    assert metrics["objective_difference:free:none"] is None
    assert metrics["objective_difference:also none:absorbed"] is None
    assert "objective_difference:none:also none" not in metrics


@pytest.mark.slow
def test_shared_work_along_c_is_run_once(private_cache: object) -> None:
    grid = [{"C": 0.1}, {"C": 1.0}, {"C": 10.0}]
    racers = [
        {"name": "alsvm-batch", "shown": "alsvm-batch", "params": {}, "grid": grid},
        {"name": "alsvm", "shown": "alsvm", "params": {}, "grid": grid},
    ]
    result = run_race(Task(spec=spec(racers=racers, pairs=[["alsvm-batch", "alsvm"]])))
    assert result["counters"]["passes:alsvm-batch"] == 1
    assert result["counters"]["updates:alsvm"] == 3 * 569
    assert result["metrics"]["excess_objective:alsvm"] <= 1e-9
    assert result["metrics"]["excess_objective:alsvm-batch"] <= 1e-9


@pytest.mark.slow
def test_classes_of_others_are_certified_beside_solvers(private_cache: object) -> None:
    racers = [
        {"name": name, "shown": shown, "params": {"nu": 0.3, **params}, "grid": [{}]}
        for name, shown, params in (
            ("nu-svc", "ours", {"tol": 1e-6}),
            ("sklearn.svm.NuSVC", "theirs", {"tol": 1e-9}),
            ("sklearn.svm.NuSVC", "early", {"max_iter": 20}),
        )
    ]
    pairs = [["ours", "theirs"]]
    race = spec(racers=racers, pairs=pairs, repeats=1, tolerance=None, accuracies=[1e-3])
    metrics = run_race(Task(spec=race))["metrics"]
    assert metrics["certified_objective:theirs"] == pytest.approx(
        metrics["objective:ours"], rel=1e-4
    )
    assert metrics["certified_gap:theirs"] < 1e-3
    assert metrics["cpu_time_to_1e-3_s:theirs"] == metrics["cpu_time_s:theirs"]
    assert not metrics["certified_gap:early"] or metrics["certified_gap:early"] > 1e-2
    assert metrics["cpu_time_to_1e-3_s:early"] is None
    # A class doesn't tell why it stopped; one that used up its iterations claims nothing.
    assert metrics["claims_true_pct:theirs"] == 100.0
    assert "claims_true_pct:early" not in metrics


def test_a_race_of_very_many_rows_samples_the_check_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(certified, "MIN_SAMPLED_ROWS", 400)
    monkeypatch.setattr(certificates_of_models, "SAMPLED_ROWS", 200)
    rows = np.random.default_rng(1).normal(size=(400, 2))
    y = np.where(rows[:, 0] + 0.5 * np.random.default_rng(2).normal(size=400) > 0, 1, -1)
    for model, room in (
        (svmbench.NuSVC(nu=0.4, gamma=1.0, tol=1e-6), np.inf),
        (svmbench.CSVC(C=1.0, gamma=1.0, tol=1e-6), 0.5),
    ):
        fitted = model.fit(rows, y)
        whole = svmbench.certify(fitted, rows, y)
        one = Certificates("one", rows, y)
        one.add(0, fitted)
        (found,) = one.by_setting.values()
        assert found.n_sampled == 200
        assert found.dual == pytest.approx(whole.dual, rel=1e-9)
        # Three standard errors above the mean of the sample: above the truth, and near it.
        assert whole.primal < found.primal < whole.primal + room * abs(whole.primal)
        notes: list[str] = []
        one.report([0], {}, notes)
        assert notes[0] == "one's objective was estimated on 200 of 400 rows"
    monkeypatch.setattr(certified, "MIN_SAMPLED_ROWS", 401)
    one.add(0, fitted)
    assert one.by_setting[0].n_sampled is None
