"""The protocols check and screening: what they count, what they quote, and that they go on."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from runs import cells_in_process
from script_loading import load_script

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.nu import screening as rules
from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.protocols import check, screening
from svmbench.experiment.protocols.check import check_property as run_check
from svmbench.experiment.protocols.path import path
from svmbench.experiment.protocols.task import Task
from svmbench.experiment.run import ipc

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="too slow as plain Python")

NUS = [0.4, 0.5, 0.6, 0.61, 0.8]
SAFE = {"protocol": "check", "property": "safe-screening", "scaling": "all-rows"}


def entry(screen: str = "srbo", **params: Any) -> dict[str, Any]:
    params = {"gamma": 2.0, "screen": screen, "tol": 1e-9, **params}
    return {"name": "srbo-nu-svm", "params": params, "grid": {"nu": NUS}}


@pytest.mark.parametrize("screen", ["srbo", "srbo-descent", "gap-safe"])
def test_safe_rules_have_no_counterexample(screen: str) -> None:
    (cell,) = cells_in_process([entry(screen)], SAFE, datasets=["breast-cancer[:90]"])
    assert cell["metrics"]["n_cases"] == 5
    assert cell["metrics"]["n_wrong"] == 0
    assert cell["metrics"]["largest_difference"] <= check.EQUAL_OBJECTIVES_RTOL
    # By descent nothing is tested while that is forecast not to pay.
    assert (cell["metrics"]["screening_ratio_pct"] > 0) == (screen != "srbo-descent")
    assert cell["stop_reason"] == "no counterexample"


def test_a_wrong_rule_is_counted_and_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The margin's bounds in each other's place settle what they should not."""
    honest = rules.margin_bounds
    monkeypatch.setattr(rules, "margin_bounds", lambda *args: tuple(reversed(honest(*args))))
    (cell,) = cells_in_process([entry()], SAFE, datasets=["breast-cancer[:90]"])
    assert cell["metrics"]["n_wrong"] > 0
    assert "wrongly screened" in cell["stop_reason"]
    assert "nu=" in cell["stop_reason"]


def test_samples_are_points_and_an_interrupted_check_goes_on() -> None:
    block = {**SAFE, "samples": 2, "sample_rows": 40, "whole_up_to": 50}
    datasets = ["breast-cancer[:90]"]
    config = {"title": "t", "solvers": [entry()], "datasets": datasets}
    config["blocks"] = [{"name": "main", **block}]
    (cell,) = make_plan(Config.model_validate(config), "t", "paper").cells
    points: dict[str, Any] = {}
    whole = run_check(Task(cell.spec, emit=lambda name, values: points.update({name: values})))
    assert list(points) == ["sample 0", "sample 1"]
    assert whole["metrics"]["n_samples"] == 2
    assert whole["metrics"]["n_train"] == 80
    assert whole["metrics"]["n_cases"] == 10
    again: dict[str, Any] = {}
    rest = run_check(
        Task(
            cell.spec,
            done={"sample 0": points["sample 0"]},
            emit=lambda name, values: again.update({name: values}),
        )
    )
    assert list(again) == ["sample 1"]
    assert rest["metrics"] == whole["metrics"]


def test_a_solver_that_screens_nothing_is_refused_in_one_sentence() -> None:
    plain = {"name": "nu-svm", "grid": {"nu": NUS}}
    with pytest.raises(ValueError, match="nu-svm has no screening along nu"):
        cells_in_process([plain], SAFE, datasets=["breast-cancer[:40]"])


def test_a_value_without_a_margin_has_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), np.tile([-1, 1], 30)
    rows = tmp_path / "noise.csv"
    rows.write_text("".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y, strict=True)))
    scored = []

    def compute_scores(_: Any, evaluation: Any) -> tuple[dict[str, float], Any]:
        scored.append(evaluation.estimator.stop_reason_)
        return {"accuracy_pct": 100.0 if scored[-1] == "no margin" else 50.0}, {}

    monkeypatch.setattr(screening.scores, "compute_scores", compute_scores)
    solvers = [
        {
            "name": name,
            "params": {"kernel": "linear", "tol": 1e-6},
            "grid": {"nu": [0.05, 0.1, 0.97]},
        }
        for name in ("nu-svm", "srbo-nu-svm")
    ]
    block = {"protocol": "screening", "scores": ["accuracy"], "pairs": [["srbo-nu-svm", "nu-svm"]]}
    (cell,) = cells_in_process(solvers, block, datasets=[{"file": str(rows)}])
    assert scored == ["converged", "converged"]  # the last value of each path
    assert cell["metrics"]["n_values:nu-svm"] == 3
    assert cell["metrics"]["accuracy_pct:nu-svm"] == 50.0
    # The objectives without a margin are rounding, and are not compared.
    assert cell["metrics"]["objective_difference:srbo-nu-svm:nu-svm"] < 1e-6


def test_a_path_whose_points_are_recorded_goes_on_where_objectives_are_missing() -> None:
    """Without a margin there is no objective: NaN, for which a record has null."""
    params, grid = {"kernel": "linear", "tol": 1e-6}, {"nu": [0.05, 0.9]}
    names = ("nu-svm", "srbo-nu-svm")
    solvers = [{"name": name, "params": params, "grid": grid} for name in names]
    block = {"name": "main", "protocol": "screening", "pairs": [["srbo-nu-svm", "nu-svm"]]}
    datasets = ["breast-cancer[:80]"]
    config = {"title": "t", "solvers": solvers, "datasets": datasets, "blocks": [block]}
    (cell,) = make_plan(Config.model_validate(config), "t", "paper").cells
    points: dict[str, Any] = {}
    whole = screening.screening(
        Task(cell.spec, emit=lambda name, values: points.update({name: ipc.plain(values)}))
    )
    for point in points.values():
        point["params"]["objectives"][0] = None
    again = screening.screening(Task(cell.spec, done=ipc.with_nan(points)))
    assert again["metrics"].keys() == whole["metrics"].keys()
    assert ipc.with_nan({"a": None, "b": [1.0, None]})["a"] is None


@pytest.mark.slow
def test_paths_in_turn_reach_the_same_solutions() -> None:
    block = {
        "protocol": "screening",
        "gammas": [2.0, 0.5],
        "pairs": [["srbo-nu-svm", "nu-svm"]],
        "scores": ["accuracy"],
    }
    grid = {"nu": NUS}
    plain = {"name": "nu-svm", "params": {"tol": 1e-9}, "grid": grid}
    rival = {"name": "c-svm-bounded", "grid": {"C": [1.0, 8.0]}}
    # From one value to a thousandfold DVI settles nothing, and that is said too.
    idle = {"params": {"screen": "dvi"}, "grid": {"C": [0.1, 100.0]}}
    rivals = [rival, {"name": "c-svm-bounded", "label": "dvi", **idle}]
    screened = {"name": "srbo-nu-svm", "params": {"tol": 1e-9}, "grid": grid}
    (cell,) = cells_in_process([plain, screened, *rivals], block, datasets=["breast-cancer[:120]"])
    metrics = cell["metrics"]
    assert metrics["n_values:nu-svm"] == metrics["n_values:srbo-nu-svm"] == 10
    assert metrics["n_values:c-svm-bounded"] == 4
    assert metrics["objective_difference:srbo-nu-svm:nu-svm"] <= 1e-7
    assert metrics["accuracy_pct:srbo-nu-svm"] == metrics["accuracy_pct:nu-svm"]
    assert metrics["accuracy_pct:nu-svm"] > 70
    assert 0 < metrics["screening_ratio_pct:srbo-nu-svm"] < 100
    assert metrics["screening_ratio_pct:dvi"] == 0
    assert "screening_ratio_pct:c-svm-bounded" not in metrics
    ratio = metrics["cpu_time_s:nu-svm"] / metrics["cpu_time_s:srbo-nu-svm"]
    assert metrics["speedup:srbo-nu-svm"] == pytest.approx(ratio)
    assert screening.SUMMED[0] not in {name.partition(":")[0] for name in metrics}


@pytest.mark.slow
def test_values_in_turn_are_the_paths_and_go_on_together(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    honest = screening._Path.advance

    def told(self: Any) -> bool:
        turns.append(self.name)
        return honest(self)

    monkeypatch.setattr(screening._Path, "advance", told)
    grid = {"nu": NUS[:3]}
    racers = [{"name": "nu-svm", "grid": grid}, {"name": "srbo-nu-svm", "grid": grid}]
    block = {"name": "main", "protocol": "screening", "gammas": [2.0], "scores": ["accuracy"]}
    config = {"title": "t", "solvers": racers, "datasets": ["breast-cancer[:60]"]}
    found, points = {}, {}
    for kind in ("paths", "values"):
        config["blocks"] = [block | {"turns": kind, "pairs": [["srbo-nu-svm", "nu-svm"]]}]
        (cell,) = make_plan(Config.model_validate(config), "t", "paper").cells
        kept: dict[str, Any] = {}
        turns.clear()
        found[kind] = screening.screening(
            Task(cell.spec, emit=lambda name, values, kept=kept: kept.update({name: values}))
        )
        points[kind] = kept
        a, b = "nu-svm", "srbo-nu-svm"
        # Three values and the end of each.
        assert turns == ([a] * 4 + [b] * 4 if kind == "paths" else [a, b, b, a, a, b, b, a])
        # What is done is not done again; in turn, it is where the other one is missing.
        done = {name: dict(kept[name]) for name in list(kept)[:1]}
        again: dict[str, Any] = {}
        screening.screening(
            Task(cell.spec, done=done, emit=lambda name, v, again=again: again.update({name: v}))
        )
        assert list(again) == (list(kept)[1:] if kind == "paths" else list(kept))
        again.clear()
        screening.screening(
            Task(cell.spec, done=kept, emit=lambda name, v, again=again: again.update({name: v}))
        )
        assert not again
    for name, point in points["paths"].items():
        assert points["values"][name]["params"] == point["params"]
    same = "accuracy_pct:srbo-nu-svm"
    assert found["paths"]["metrics"][same] == found["values"]["metrics"][same]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["binary", "one-class"])
def test_a_plane_marks_what_was_screened_at_the_last_value(task: str, tmp_path: Path) -> None:
    name = "srbo-nu-svm" if task == "binary" else "srbo-oc-svm"
    solver = {"name": name, "params": {"gamma": 4.0, "screen": "srbo"}, "grid": {"nu": NUS[:4]}}
    block = {"name": "main", "protocol": "path", "plane": True, "task": task}
    config = {"title": "t", "solvers": [solver], "datasets": ["gauss-2[:90]"], "blocks": [block]}
    (cell,) = make_plan(Config.model_validate(config), "t", "paper").cells
    found: list[dict[str, Any]] = []
    kept = {"artifact": tmp_path / "artifacts" / "plane.npz"}
    path(Task(cell.spec, emit=lambda _, values: found.append(values), **kept))
    with np.load(kept["artifact"]) as arrays:
        plane = dict(arrays)
    counted = found[-1]["counters"]
    assert counted["screened_zero"] > 0
    assert counted["screened_one"] > 0
    assert [np.count_nonzero(plane["marks"] == number) for number in (1, 2)] == [
        counted["screened_zero"],
        counted["screened_one"],
    ]
    assert len(plane["mark_names"]) == 2
    # Signed distances from the line: what was settled at 0 is beyond the margin, at 1 short of it.
    column = np.argmin(np.abs(plane["grid_x"] - plane["X"][:, :1]), axis=1)
    row = np.argmin(np.abs(plane["grid_y"] - plane["X"][:, 1:]), axis=1)
    rho = plane["levels"][-1]
    assert (rho > 0) == (task == "binary")
    f = plane["decision"][row, column] * (plane["y"] if task == "binary" else 1.0)
    near = 0.1 * np.ptp(plane["decision"])
    assert f[plane["marks"] == 1].min() > rho - near
    assert f[plane["marks"] == 2].max() < rho + near
    assert f[plane["marks"] == 1].mean() > rho > f[plane["marks"] == 2].mean()
    # An interrupted one starts anew, since the state that it shows is gone.
    again: list[str] = []
    done = {f"nu={nu}": values for nu, values in zip(NUS[:2], found, strict=False)}
    path(Task(cell.spec, done=done, emit=lambda point, _: again.append(point), **kept))
    assert again == [f"nu={nu}" for nu in NUS[:4]]


def test_paired_statistics_are_read_from_a_run(tmp_path: Any) -> None:
    paired = load_script("paired", "results/srbo")
    rng = np.random.default_rng(0)
    with (tmp_path / "table.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["block", "dataset", "solver", "metric", "value", "status"])
        for k in range(6):
            time = rng.random() + 1.0
            writer.writerow(["paths", f"set-{k}", "plain", "cpu_time_s", time, "ok"])
            writer.writerow(["paths", f"set-{k}", "screened", "cpu_time_s", time / 2, "ok"])
    done = CliRunner().invoke(paired.main, [str(tmp_path), "plain", "screened"])
    assert done.exit_code == 0
    assert "win 6, draw 0, loss 0; n=6, W+=21" in done.output
    done = CliRunner().invoke(paired.main, [str(tmp_path), "plain", "other"])
    assert done.exit_code == 1
    assert "has no cpu_time_s of both plain and other" in done.output


def test_runs_of_neighbours_stand_for_the_grid() -> None:
    """Only the second of two neighbours counts in screening ratios and means of times."""
    whole_grid = {"nu": {"start": 0.1, "stop": 0.9, "step": 0.02}}
    solvers = [
        {"name": name, "params": {"gamma": 2.0, **extra}, "grid": whole_grid}
        for name, extra in (("nu-svm", {}), ("srbo-nu-svm", {"screen": "srbo"}))
    ]
    solvers.append({"name": "c-svm-bounded", "params": {"gamma": 2.0}, "grid": {"C": [0.1, 1, 10]}})
    block = {"protocol": "screening", "neighbour_pairs": {0: 0, 80: 6}, "scores": ["accuracy"]}
    block["pairs"] = [["srbo-nu-svm", "nu-svm"]]
    config = {"title": "t", "solvers": solvers, "blocks": [{"name": "main", **block}]}
    config["datasets"] = ["breast-cancer[:79]", "breast-cancer[:90]"]
    plan = make_plan(Config.model_validate(config), "t", "paper")
    outcomes, points = [], []
    for cell in plan.cells:
        emitted: dict[str, Any] = {}
        task = Task(cell.spec, emit=lambda name, values, into=emitted: into.update({name: values}))
        outcomes.append(screening.screening(task))
        points.append(emitted)
    whole, sampled = (outcome["metrics"] for outcome in outcomes)
    assert whole["n_values:srbo-nu-svm"] == 41
    assert sampled["n_values:srbo-nu-svm"] == 12
    assert sampled["n_values:c-svm-bounded"] == 3  # fewer values than six pairs would have
    assert sampled["objective_difference:srbo-nu-svm:nu-svm"] < 1e-3

    totals = points[1]["srbo-nu-svm gamma=None"]["metrics"]
    assert totals["n_counted"] == 6
    assert totals["multipliers"] == 6 * sampled["n_train"]
    assert sampled["train_time_s:srbo-nu-svm"] == totals["wall_s"] / 6
    assert 0 < sampled["screening_ratio_pct:srbo-nu-svm"] < 100


def test_pairs_of_neighbours_are_at_equal_distances() -> None:
    is_whole, taken = screening._positions(986, 50)
    assert not is_whole
    assert len(taken) == 100
    assert (taken[0], taken[-1]) == (0, 985)
    starts = np.array(taken[::2])
    assert np.all(np.array(taken[1::2]) == starts + 1)
    assert set(np.diff(starts)) <= {20, 21}
    assert screening._positions(12, 6) == (True, list(range(12)))
    assert screening._positions(12, 0) == (True, list(range(12)))


@pytest.mark.parametrize(
    ("n_pairs", "problem"), [({2500: 50}, "no number of pairs"), ({0: 1}, "is no sample")]
)
def test_numbers_of_pairs_without_a_sense_are_refused(
    n_pairs: dict[int, int], problem: str
) -> None:
    block = {"name": "a", "protocol": "screening", "neighbour_pairs": n_pairs}
    with pytest.raises(ValueError, match=problem):
        screening.Screening.model_validate(block)


def test_the_second_of_two_neighbours_counts_and_not_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Made models, whose times and counters are their positions in the grid."""

    class Made:
        screening_ = "on"
        squared_norm_ = 1.0

        def __init__(self, position: int) -> None:
            self.counters_ = {"screened_zero": position, "unscreened_values": position}

    nus = [round(0.1 + 0.01 * i, 2) for i in range(60)]
    position = {nu: i for i, nu in enumerate(nus)}
    monkeypatch.setattr(
        screening,
        "fits_at",
        lambda build, grid, rows: (
            screening.Fit(Made(position[one["nu"]]), float(position[one["nu"]]), 1.0)
            for one in grid
        ),
    )
    monkeypatch.setattr(screening.scores, "compute_scores", lambda *_: ({"accuracy_pct": 50.0}, {}))
    solver = {"name": "srbo-nu-svm", "params": {"gamma": 2.0}, "grid": {"nu": nus}}
    block = {"protocol": "screening", "neighbour_pairs": {0: 5}, "scores": ["accuracy"]}
    (cell,) = cells_in_process([solver], block, datasets=["breast-cancer[:90]"])
    starts = np.linspace(0, 58, 5).round()
    metrics = cell["metrics"]
    assert metrics["n_values:srbo-nu-svm"] == 10
    assert metrics["train_time_s:srbo-nu-svm"] == np.mean(starts + 1)
    assert metrics["cpu_time_s:srbo-nu-svm"] == 1.0
    ratio = 100.0 * np.mean(starts + 1) / metrics["n_train"]
    assert metrics["screening_ratio_pct:srbo-nu-svm"] == pytest.approx(ratio)
    assert metrics["off_pct:srbo-nu-svm"] == 100.0 * np.mean(starts + 1)
