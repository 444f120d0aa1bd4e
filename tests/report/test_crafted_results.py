"""What the gate says of results with one thing made wrong: the exit code, and the last line.

Each starts from the kept baseline of the gate, whose ratios get repeats that spread by 6 %.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from runs import svmbench
from synthetic_runs import ENVIRONMENT, planned, record, write_run

KEPT = Path(__file__).parents[2] / "results" / "regress" / "baseline.json"
#: Repeats of a ratio, relative to their median: the limit is 1.2, the least that there is.
SPREAD = (0.97, 0.99, 1.0, 1.01, 1.03)

Content = dict[str, Any]
Craft = Callable[[Content], None]


@cache
def kept() -> str:
    return KEPT.read_text(encoding="utf-8")


def with_spread(content: Content) -> Content:
    content["repeats"] = {
        f"{cell['block']} · {cell['dataset']}": {
            name: [value * share for share in SPREAD]
            for name, value in cell["metrics"].items()
            if name.startswith("ratio:")
        }
        for cell in content["cells"]
        if "|" in cell["solver"]
    }
    return content


def written(folder: Path, content: Content) -> Path:
    folder.mkdir()
    (folder / "baseline.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def outcome(tmp_path: Path, craft: Craft, both: Craft = lambda content: None) -> tuple[int, str]:
    """Return the exit code and the last line for a crafted run; `both` also changes the base."""
    base = json.loads(kept())
    both(base)
    with_spread(base)
    new = copy.deepcopy(base)
    craft(new)
    ended = svmbench("compare", written(tmp_path / "base", base), written(tmp_path / "new", new))
    return ended.code, ended.said.splitlines()[-1]


def cells(content: Content, **fields: Any) -> Iterator[Content]:
    for cell in content["cells"]:
        if all(cell[name] == value for name, value in fields.items()):
            yield cell


def race(content: Content, block: str = "speed") -> Content:
    return next(cells(content, block=block))


def slower(times: float, *solvers: str, block: str = "speed") -> Craft:
    """Slow solvers of a race down: their CPU times and their ratios."""

    def craft(content: Content) -> None:
        metrics = race(content, block)["metrics"]
        for name in metrics:
            kind, *named = name.split(":")
            if kind == "cpu_time_s" and named[0] in solvers:
                metrics[name] *= times
            if kind == "ratio":
                metrics[name] *= times ** ((named[1] in solvers) - (named[0] in solvers))

    return craft


ALL_LINEAR = ("alsvm", "falsvm", "alsvm-batch", "dcd-l1", "dcd-l2", "svm-perf", "pegasos")


def metric(name: str, change: Callable[[float], Any], **fields: Any) -> Craft:
    """Change a metric in all cells with these fields that have it."""

    def craft(content: Content) -> None:
        changed = 0
        for cell in cells(content, **fields):
            if cell["metrics"].get(name) is not None:
                cell["metrics"][name] = change(cell["metrics"][name])
                changed += 1
        assert changed

    return craft


def counters(change: Callable[[float], Any], *names: str, **fields: Any) -> Craft:
    def craft(content: Content) -> None:
        changed = 0
        for cell in cells(content, **fields):
            for name in names or list(cell["counters"]):
                if name in cell["counters"]:
                    cell["counters"][name] = round(change(cell["counters"][name]))
                    changed += 1
        assert changed

    return craft


def fields(**changes: Any) -> Craft:
    """Change fields of the first cell of dcd-l2."""

    def craft(content: Content) -> None:
        next(cells(content, **DCD)).update(changes)

    return craft


def together(*crafts: Craft) -> Craft:
    def craft(content: Content) -> None:
        for one in crafts:
            one(content)

    return craft


def environment(**changes: Any) -> Craft:
    def craft(content: Content) -> None:
        for one in content["environments"]:
            one.update(changes)

    return craft


def other_numpy(content: Content) -> None:
    for one in content["environments"]:
        one["packages"] = {**one["packages"], "numpy": "9.9"}


def turned(*names: str) -> Craft:
    """Write the pair of csvc and libsvm the other way round, with other names if given."""

    def craft(content: Content) -> None:
        metrics = race(content, "kernel-speed")["metrics"]
        first, second = names or ("libsvm", "csvc")
        metrics[f"ratio:{first}:{second}"] = 1.0 / metrics.pop("ratio:csvc:libsvm")
        if names:
            metrics[f"cpu_time_s:{first}"] = metrics["cpu_time_s:libsvm"]
            metrics[f"cpu_time_s:{second}"] = metrics["cpu_time_s:csvc"]

    return craft


def exchanged(content: Content) -> None:
    for cell in cells(content, block="accuracy"):
        swap = {"dcd-l1": "dcd-l2", "dcd-l2": "dcd-l1"}
        cell["solver"] = swap.get(cell["solver"], cell["solver"])


def settings(block: str, change: Callable[[Content], Any]) -> Craft:
    def craft(content: Content) -> None:
        change(content["settings"][block])

    return craft


def dropped(*names: str, **fields: Any) -> Craft:
    def craft(content: Content) -> None:
        for cell in cells(content, **fields):
            for name in names:
                cell.pop(name, None)

    return craft


def some_folds(share: int, *names: str) -> Craft:
    """Lengthen times of one cell in so many by a factor of nine, as other programs do."""

    def craft(content: Content) -> None:
        for i, cell in enumerate(content["cells"]):
            for name in names:
                if i % share == 0 and cell["metrics"].get(name):
                    cell["metrics"][name] *= 9.0

    return craft


DCD: Content = {"block": "accuracy", "dataset": "breast-cancer", "solver": "dcd-l2", "fold": 0}
CSVC: Content = {"block": "kernel-accuracy", "solver": "csvc"}
LINEAR = r"speed · synthetic-linear: "
PLACE = "accuracy · breast-cancer · dcd-l2 · fold 1: "
NOTHING_ELSE = r"\(values compared: [^)]*\)$"
NO_TIMES = r"no regression .*; not compared: times \(measured on different CPU models\)$"
LOOSELY = r"; not compared: counters and objectives exactly \(other arithmetic\)$"

CRAFTED: dict[str, tuple[Craft, int, str]] = {
    "nothing": (lambda content: None, 0, f"no regression {NOTHING_ELSE}"),
    # Ratios of races.
    "one 1.49 slower": (slower(1.49, "dcd-l2"), 4, f"1 regression: {LINEAR}dcd-l2 1.49 times slow"),
    "one 1.4 slower": (slower(1.4, "dcd-l1"), 4, f"1 regression: {LINEAR}dcd-l1 1.4 times slower"),
    "one 1.3 slower": (slower(1.3, "pegasos"), 4, f"1 regression: {LINEAR}pegasos 1.3 times slow"),
    "one kernel solver 1.4 slower": (
        slower(1.4, "csvc", block="kernel-speed"), 4,
        "1 regression: kernel-speed · digits-even-odd: csvc 1.4 times slower",
    ),
    "three 1.3 slower": (
        slower(1.3, "alsvm", "dcd-l1", "dcd-l2"), 4,
        rf"3 regressions: {LINEAR}\S+ 1.3 times slower and 2 more",
    ),
    "three 1.14 slower": (
        slower(1.14, "alsvm", "dcd-l1", "dcd-l2"), 4,
        "1 regression: 3 slowest of 11 ratios together: times slower",
    ),
    "all 1.17 slower": (
        together(
            slower(1.17, *ALL_LINEAR),
            slower(1.17, "csvc", "nl-sgd", "nn-isda", "svm-light", block="kernel-speed"),
        ), 4, "1 regression: all 11 ratios together: times slower",
    ),
    "one 11 times slower": (slower(11, "csvc", block="kernel-speed"), 4, ".*csvc 11 times slower "),
    "one 2 times faster": (slower(0.5, "csvc", block="kernel-speed"), 0, "no regression "),
    "a ratio lost": (
        metric("ratio:dcd-l2:liblinear-l1", lambda value: None), 4,
        f"1 regression: {LINEAR}dcd-l2 vs liblinear-l1",
    ),
    "a ratio of 0": (
        metric("ratio:dcd-l2:liblinear-l1", lambda value: 0.0), 4,
        f"1 regression: {LINEAR}dcd-l2 vs liblinear-l1",
    ),
    "the reference 2 times faster": (
        slower(0.5, "libsvm", block="kernel-speed"), 4, "5 regressions: .*: libsvm 2 times faster ",
    ),
    "the reference 2 times slower": (
        slower(2.0, "libsvm", block="kernel-speed"), 0, "no regression ",
    ),
    "3 times slower on another CPU": (
        together(slower(3, *ALL_LINEAR), environment(cpu="Another CPU")), 0, NO_TIMES,
    ),
    "all times 3 times longer on another CPU": (
        together(
            metric("cpu_time_s", lambda value: 3 * value),
            metric("search_cpu_time_s", lambda value: 3 * value),
            environment(cpu="Another CPU"),
        ), 0, NO_TIMES,
    ),
    # Times outside races, and memory.
    **{
        f"{name} 10 times longer": (
            metric(name, lambda value: 10 * value), 4, rf"\d+ regressions?: .*({name}|10 times)",
        )
        for name in (
            "cpu_time_s", "predict_cpu_time_s", "search_cpu_time_s",
            "train_time_s", "predict_time_s", "search_time_s", "conversion_time_s",
        )
    },
    "one solver's predictions 10 times longer": (
        metric("predict_cpu_time_s", lambda value: 10 * value, **CSVC), 4,
        "1 regression: kernel-accuracy · breast-cancer · csvc: 10 times slower",
    ),
    "prediction times lost": (
        metric("predict_cpu_time_s", lambda value: None, **CSVC), 4,
        "1 regression: kernel-accuracy · breast-cancer · csvc: predict_cpu_time_s",
    ),
    "memory 100 times": (
        metric("peak_memory_mb", lambda value: 100 * value), 4, r"\d+ regressions: .*as much",
    ),
    "memory 100 times on another CPU": (
        together(metric("peak_memory_mb", lambda v: 100 * v), environment(cpu="Another CPU")), 4,
        r"\d+ regressions: .*as much",
    ),
    "one solver's memory 100 times": (
        metric("peak_memory_mb", lambda value: 100 * value, solver="chunking"), 4,
        "1 regression: kernel-accuracy · breast-cancer · chunking: 100 times as much",
    ),
    # Work.
    "iterations + 5 % in one place": (
        metric("n_iter", lambda value: 1.05 * value + 1, **DCD), 4, f"1 regression: {PLACE}n_iter ",
    ),
    "a counter + 5 % in one place": (
        counters(lambda count: 1.05 * count + 1, "updates", **DCD), 4,
        f"1 regression: {PLACE}updates ",
    ),
    "a counter of a race + 1": (
        counters(lambda count: count + 1, "kernel_evaluations:csvc"), 4,
        "1 regression: kernel-speed · digits-even-odd: kernel_evaluations:csvc ",
    ),
    "a counter - 5 %": (
        counters(lambda count: 0.95 * count, "updates", **DCD), 4,
        f"stale baseline, 1 values differ: {PLACE}updates ",
    ),
    "all counters 0": (
        counters(lambda count: 0, **DCD), 4, f"1 regression: {PLACE}all counters",
    ),
    "counters lost": (fields(counters={}), 4, rf"\d regressions: {PLACE}all counters"),
    "a counter more": (
        lambda content: next(cells(content, **DCD))["counters"].update(checks=1), 4,
        f"stale baseline, 1 values differ: {PLACE}checks ",
    ),
    "all counters 1.99 times with another NumPy": (
        together(counters(lambda count: 1.99 * count), other_numpy), 4,
        rf"1 regression: all \d+ counters together: .*{LOOSELY}",
    ),
    "one counter 1.99 times with another NumPy": (
        together(counters(lambda count: 1.99 * count, "updates", solver="dcd-l2"), other_numpy), 0,
        f"no regression .*{LOOSELY}",
    ),
    "one counter 2.1 times with another NumPy": (
        together(counters(lambda count: 2.1 * count, "updates", solver="dcd-l2"), other_numpy), 4,
        f"2 regressions: accuracy · .* · dcd-l2: updates .*{LOOSELY}",
    ),
    "fits that don't converge": (
        metric("unconverged_fits", lambda value: value + 1, **DCD), 4,
        f"1 regression: {PLACE}unconverged_fits ",
    ),
    # Objectives.
    "an objective + 1e-8": (
        metric("objective", lambda value: value * (1 + 1e-8), **DCD), 4,
        f"1 regression: {PLACE}objective ",
    ),
    "an objective - 1e-8": (
        metric("objective", lambda value: value * (1 - 1e-8), **DCD), 4,
        f"stale baseline, 1 values differ: {PLACE}objective ",
    ),
    "an objective halved": (
        metric("objective", lambda value: value / 2, **DCD), 4,
        f"1 regression: {PLACE}objective, too low for the same problem ",
    ),
    "an objective of 0": (
        metric("objective", lambda value: 0.0, **DCD), 4, f"1 regression: {PLACE}objective, too lo",
    ),
    "an objective lost": (
        metric("objective", lambda value: None, **DCD), 4, f"1 regression: {PLACE}objective ",
    ),
    "an objective below its dual value": (
        metric("objective", lambda value: 0.97 * value, **CSVC, fold=0), 4,
        "1 regression: .* · csvc · fold 1: objective, below a dual value ",
    ),
    "dual values lost": (
        metric("dual_objective", lambda value: None), 4, r"\d+ regressions: .*: dual_objective and",
    ),
    "a dual value lowered": (
        metric("dual_objective", lambda value: 0.9 * value, **CSVC, fold=0), 4,
        "stale baseline, 1 values differ: .* · csvc · fold 1: dual_objective ",
    ),
    # Accuracies.
    "an accuracy - 3 points": (
        metric("accuracy_pct", lambda value: value - 3, **DCD), 4,
        "2 regressions: accuracy · breast-cancer · dcd-l2: accuracy_pct and 1 more",
    ),
    "accuracies - 0.45 points everywhere": (
        metric("accuracy_pct", lambda value: value - 0.45), 4,
        r"1 regression: all \d+ measurements together: accuracy_pct",
    ),
    "an accuracy + 3 points": (
        metric("accuracy_pct", lambda value: min(100.0, value + 3), **DCD), 4,
        "stale baseline, 1 values differ: accuracy · breast-cancer · dcd-l2: accuracy_pct ",
    ),
    "an accuracy lost": (
        metric("accuracy_pct", lambda value: None, **DCD), 4,
        "1 regression: accuracy · breast-cancer · dcd-l2: accuracy_pct ",
    ),
    # Ends of fits.
    "a failed cell": (fields(status="failed"), 4, f"1 regression: {PLACE}status "),
    "a missing cell": (
        lambda content: content["cells"].remove(next(cells(content, **DCD))), 4,
        f"1 regression: {PLACE}status ",
    ),
    "a cell more": (
        lambda content: content["cells"].append({**next(cells(content, **DCD)), "fold": 7}), 4,
        "stale baseline, it lacks cells .*; not compared: 1 new cells",
    ),
    "another stop reason": (
        fields(stop_reason="max_iter"), 4, f"stale baseline, 1 values differ: {PLACE}stop reason ",
    ),
    "a warning": (fields(warnings=["stopped"]), 4, f"1 regression: {PLACE}warnings "),
    "another stop reason with another NumPy": (
        together(fields(stop_reason="max_iter"), other_numpy), 0, f"no regression .*{LOOSELY}",
    ),
    # Choices of searches.
    "other parameters in one cell": (
        fields(params={"C": 77.0}), 4, f"stale baseline, 1 values differ: {PLACE}chosen parameters",
    ),
    "other parameters everywhere": (
        lambda content: [c.update(params={"C": 77.0}) for c in cells(content, block="accuracy")], 4,
        r"1 regression: all \d+ cells together: cells with other parameters",
    ),
    # Experiments that differ.
    "the data's checksum missing": (
        dropped("data_sha256", block="speed"), 0,
        r"no regression .*; not compared: data sets \(not stated in NEW\)$",
    ),
    "the checksums of all data missing": (
        dropped("data_sha256"), 0,
        r"no regression .*; not compared: data sets \(not stated in NEW\)$",
    ),
    "other data": (fields(data_sha256="ff"), 2, ".*the content of the data set breast-cancer"),
    "another seed": (lambda content: content.update(seed=2), 2, ".*the seed is 1 in BASE and 2 in"),
    "a seed missing": (
        lambda content: content.update(seed=None), 0,
        r"no regression .*; not compared: seed \(not stated in NEW\)$",
    ),
    "another config": (lambda content: content.update(config="x"), 2, ".*the config is regress in"),
    "another profile": (lambda content: content.update(profile="x"), 2, ".*the profile is quick "),
    "solvers' names exchanged": (exchanged, 4, r"\d+ regressions: accuracy · .*dcd-l"),
    "a tolerance loosened": (
        settings("speed", lambda block: block["solvers"]["dcd-l2"]["params"].update(tol=0.1)), 2,
        ".*: in the block speed, solvers.dcd-l2.params.tol is 0.01 in BASE and 0.1 in NEW",
    ),
    "a limit of iterations added": (
        settings("speed", lambda block: block["solvers"]["dcd-l2"]["params"].update(max_iter=9)), 2,
        ".*: in the block speed, solvers.dcd-l2.params.max_iter is null in BASE and 9 in NEW",
    ),
    "a grid cut": (
        settings("accuracy", lambda block: block["solvers"]["dcd-l2"].update(grid={"C": [1]})), 2,
        ".*: in the block accuracy, solvers.dcd-l2.grid",
    ),
    "fewer folds": (
        settings("accuracy", lambda block: block.update(inner_folds=2)), 2,
        ".*: in the block accuracy, inner_folds is 3 in BASE and 2 in NEW",
    ),
    "settings missing": (
        lambda content: content.pop("settings"), 0,
        r"no regression .*; not compared: settings \(not stated in NEW\)$",
    ),
    # Honest runs.
    "times of another day": (
        together(slower(1.1, "dcd-l2"), slower(0.92, "svm-perf", "pegasos")), 0,
        f"no regression {NOTHING_ELSE}",
    ),
    "programs beside the run": (
        together(
            some_folds(3, "conversion_time_s", "predict_time_s", "search_time_s"),
            some_folds(4, "predict_cpu_time_s", "train_time_s"),
        ), 0, f"no regression {NOTHING_ELSE}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_each_is_caught_or_the_last_line_says_what_was_not_compared(
    tmp_path: Path, name: str
) -> None:
    craft, code, said = CRAFTED[name]
    found = outcome(tmp_path, craft)
    assert found[0] == code, found
    assert re.match(said, found[1].removeprefix("svmbench: ").removeprefix("error: ")), found
    assert (code == 4) == ("regression" in found[1] and "no regression" not in found[1]) or (
        code == 4 and found[1].startswith("stale baseline")
    )


@pytest.mark.parametrize(
    ("names", "moved", "code", "said"),
    [
        ((), slower(11, "csvc", block="kernel-speed"), 4, "csvc 11 times slower"),
        ((), slower(1 / 15, "csvc", block="kernel-speed"), 0, "csvc 15 times faster"),
        ((), slower(2, "libsvm", block="kernel-speed"), 0, "libsvm 2 times slower"),
        (("old", "new"), slower(11, "new", block="kernel-speed"), 4, "new 11 times slower"),
        (("old", "new"), slower(1 / 15, "new", block="kernel-speed"), 0, "new 15 times faster"),
        (("old", "new"), slower(11, "old", block="kernel-speed"), 4, "old 11 times slower"),
        (("old", "new"), slower(1 / 15, "old", block="kernel-speed"), 0, "old 15 times faster"),
    ],
)
def test_a_pair_may_be_written_either_way_round(
    tmp_path: Path, names: tuple[str, ...], moved: Craft, code: int, said: str
) -> None:
    """The reference is the catalogue's baseline; of two other solvers their CPU times tell."""
    base = json.loads(kept())
    turned(*names)(base)
    new = copy.deepcopy(base)
    moved(new)
    sides = written(tmp_path / "base", with_spread(base)), written(tmp_path / "new", new)
    ended = svmbench("compare", *sides)
    assert ended.code == code, ended.out
    first, second = names or ("libsvm", "csvc")
    (line,) = [line for line in ended.out.splitlines() if f"{first} vs {second}" in line]
    assert line.endswith(said)
    assert line.startswith("worse") == (code == 4)


def a_run(folder: Path) -> Path:
    pair = [planned("cv", "a9a", solver, 0) for solver in ("one", "two")]
    return write_run(folder, pair, [record(cell, {"objective": 1.0}) for cell in pair])


def test_records_that_name_another_solver_than_the_plan_are_refused(tmp_path: Path) -> None:
    base, new = a_run(tmp_path / "base"), a_run(tmp_path / "new")
    assert svmbench("compare", base, new).code == 0
    text = (new / "runs.jsonl").read_text()
    swapped = text.replace('"one"', '"?"').replace('"two"', '"one"').replace('"?"', '"two"')
    (new / "runs.jsonl").write_text(swapped)
    ended = svmbench("compare", base, new)
    assert ended.code == 2
    assert "has the solver two, the plan one" in ended.err


def test_another_seed_in_the_environment_alone_is_refused(tmp_path: Path) -> None:
    base, new = a_run(tmp_path / "base"), a_run(tmp_path / "new")
    for folder, seed in ((base, 1), (new, 2)):
        plan = json.loads((folder / "plan.json").read_text())
        plan["config"]["seed"] = 1
        (folder / "plan.json").write_text(json.dumps(plan))
        content = json.dumps({**ENVIRONMENT, "seed": seed})
        (folder / "environment-4be1c0de.json").write_text(content)
    ended = svmbench("compare", base, new)
    assert ended.code == 2
    assert "has the seed 2, the plan 1" in ended.err
