"""Many configs in one go: budgets, rounds, failures, and what is older than the code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from runs import cells_of, svmbench, write_config

from svmbench.base.errors import SvmbenchError
from svmbench.cli.options import AUTO, Jobs
from svmbench.experiment.config.loader import find_config, load_config
from svmbench.experiment.plan.keys import code_hash
from svmbench.experiment.plan.present_code import race_identity_of
from svmbench.experiment.run import batch
from svmbench.experiment.run.batch import CONFIG_OVERHEAD_S, Batch, Hooks, Job
from svmbench.experiment.run.session import Request
from svmbench.report.output import kept
from svmbench.report.reading.records import read_run
from svmbench.schema.rechecks import MANIFEST, append_recheck
from svmbench.studies import queueing, refreshing, reproducing

ROOT = Path(__file__).resolve().parents[2]


class World:
    """Configs whose cells take a second each, on a clock of their own."""

    def __init__(self, cells: dict[str, int], **bad: str) -> None:
        self.cells, self.bad = cells, bad
        self.now, self.planning_s = 0.0, 0.0
        self.said: list[str] = []
        self.order: list[tuple[str, float]] = []
        self.done: dict[str, int] = dict.fromkeys(cells, 0)
        self.interrupt_at: float = float("inf")

    def plan_run(self, request: Request, *, print_line: Callable[[str], None]) -> Any:
        if request.config in self.bad:
            raise SvmbenchError(self.bad[request.config])
        self.now += self.planning_s
        cells = [
            SimpleNamespace(key=f"{request.config}{number}", status="planned", reason="")
            for number in range(self.cells[request.config])
        ]
        return batch.RunPlan(request, None, cells, Path(request.config))  # type: ignore[arg-type]

    def execute_run(self, run_plan: Any, **_: object) -> Any:
        name, share = run_plan.request.config, run_plan.request.budget_s
        self.order.append((name, round(share, 6)))
        begun = self.now
        while self.done[name] < len(run_plan.cells) and self.now - begun < share:
            if self.now >= self.interrupt_at:
                break
            self.now += 1.0
            self.done[name] += 1
        records = {
            f"{name}{number}": {"status": "crashed" if name == "c" else "ok", "reason": "signal 11"}
            for number in range(self.done[name])
        }
        summary = SimpleNamespace(interrupted=self.now >= self.interrupt_at)
        return SimpleNamespace(summary=summary, records=records)

    def batch(self, budget: float, expected: float = 0.0) -> Batch:
        hooks = Hooks(
            print_line=self.said.append,
            note=self.said.append,
            watch=lambda _: nullcontext(),  # type: ignore[arg-type,return-value]
            finish=lambda path: self.said.append(f"tables of {path}"),
        )
        jobs = [Job(Request(config=name), expected) for name in self.cells]
        return Batch(jobs, budget, hooks, clock=lambda: self.now)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    def make(cells: dict[str, int], **bad: str) -> World:
        one = World(cells, **bad)
        monkeypatch.setattr(batch, "plan_run", one.plan_run)
        monkeypatch.setattr(batch, "execute_run", one.execute_run)
        return one

    return make


def test_without_a_budget_everything_runs_once(world: Callable[..., World]) -> None:
    one = world({"a": 3, "b": 5})
    outcomes = one.batch(float("inf")).run()
    assert one.order == [("a", float("inf")), ("b", float("inf"))]
    assert [outcome.counts["ok"] for outcome in outcomes] == [3, 5]
    assert not any(outcome.is_unfinished for outcome in outcomes)
    assert "tables of a" in one.said


def test_a_budget_is_shared_and_what_is_left_over_goes_round(world: Callable[..., World]) -> None:
    one = world({"long": 50, "short": 2, "other": 3})
    outcomes = one.batch(30.0).run()
    # A third each; what the short ones leave goes to the long one.
    assert one.order == [("long", 10.0), ("short", 10.0), ("other", 18.0), ("long", 15.0)]
    assert [outcome.counts["ok"] for outcome in outcomes] == [25, 2, 3]
    assert [outcome.is_unfinished for outcome in outcomes] == [True, False, False]
    assert one.now == 30.0


def test_failures_stop_nothing(world: Callable[..., World]) -> None:
    one = world({"bad": 1, "c": 4, "b": 2}, bad="bad.yaml:3: no such solver")
    outcomes = one.batch(float("inf")).run()
    assert outcomes[0].error == "bad.yaml:3: no such solver"
    assert outcomes[0].path is None
    assert outcomes[1].reasons == {"crashed: signal 11": 4}
    assert [sum(outcome.reasons.values()) for outcome in outcomes] == [0, 4, 0]
    assert outcomes[2].counts["ok"] == 2


def test_an_interrupt_ends_it(world: Callable[..., World]) -> None:
    one = world({"a": 5, "b": 5, "d": 5})
    one.interrupt_at = 7.0
    run = one.batch(float("inf"))
    run.run()
    assert run.interrupted
    assert [name for name, _ in one.order] == ["a", "b"]
    assert "tables of b" not in one.said


def test_the_time_left_follows_what_the_first_took(world: Callable[..., World]) -> None:
    one = world({"a": 200, "b": 200, "d": 200})
    run = one.batch(float("inf"), expected=100.0 - CONFIG_OVERHEAD_S)
    assert run.seconds_left() == pytest.approx(300.0)
    run.run()
    # Thought to take 100 s each, they take 200.
    assert [text for text in one.said if "left" in text] == [
        "a: 3 of 3 configs left, about 5 minutes",
        "b: 2 of 3 configs left, about 7 minutes",
        "d: 1 of 3 configs left, about 3 minutes",
    ]
    assert run.seconds_left() == 0.0
    assert one.batch(5.0, expected=100.0).seconds_left() == 5.0


def test_only_the_cells_that_are_wanted_run(world: Callable[..., World]) -> None:
    one = world({"a": 6})
    run = one.batch(float("inf"))
    run.outcomes[0].job = Job(Request(config="a"), 0.0, lambda cell: cell.key in {"a1", "a3"})
    outcomes = run.run()
    assert one.done["a"] == 2
    assert outcomes[0].counts.total() == 2


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small configs, of which one has a cell that fails."""
    root = tmp_path_factory.mktemp("workplace")
    for name, solver in (("good", {"name": "alsvm"}),
                         ("bad", {"class": "sklearn.svm.NuSVC", "label": "nu",
                                  "params": {"nu": 0.99}})):  # fmt: skip
        (root / name).mkdir()
        config = write_config(
            root / name, [solver], **({"paper": "alsvm"} if name == "good" else {})
        )
        config.rename(root / f"{name}.yaml")
    return root


def keep_updates(folder: Path) -> None:
    """Keep what decides a claim that no config has runs of: times of updates ~ d^1.9."""
    lines = [
        f"{what},{d},{1e-8 * d**1.9 * (1 + 1e-3 * (d % 7))},0,0,3,a CPU"
        for what in ("add", "remove")
        for d in (400, 800, 1600, 3200)
    ]
    lines += [f"difference of {what},400,1e-12,,,1,a CPU" for what in ("add", "remove")]
    folder.mkdir(parents=True)
    head = "operation,d,cpu_time_s,low,high,rounds,cpu"
    (folder / "updates.csv").write_text("\n".join([head, *lines, ""]))


@pytest.mark.slow
def test_reproduce_runs_all_and_says_last_what_failed(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    words = ("reproduce", "bad.yaml", "good.yaml")
    keep_updates(workplace / "results" / "alsvm")
    first = svmbench(*words)
    assert first.code == 3, first.said
    last = first.out.splitlines()[-2:]
    assert last[0] == "failed:"
    assert last[1].startswith("  bad: 1 cell failed: ")
    assert "specified nu is infeasible" in last[1]
    assert "bad: 2 of 2 configs left" in first.out
    for name in ("good", "bad"):
        assert (workplace / "results" / f"{name}-quick" / "tables.md").is_file()
    index = workplace / "site-quick" / "index.html"
    assert "60 claims: " in index.read_text()
    assert "from kept records, not from these runs: 1" in index.read_text()
    page = (workplace / "site-quick" / "papers" / "alsvm.html").read_text()
    assert page.count("From kept records: holds in all 3 parts") == 1
    assert page.count(">from kept records<") == 1
    assert "60 claims: " in first.out
    records = (workplace / "results" / "good-quick" / "runs.jsonl").read_text()
    again = svmbench(*words, "--quiet")
    assert again.code == 3
    assert (workplace / "results" / "good-quick" / "runs.jsonl").read_text() == records
    assert "configs left" not in again.out
    alone = svmbench("reproduce", "good.yaml", "--site", "pages", "--budget", "60")
    assert (alone.code, (workplace / "pages" / "index.html").is_file()) == (0, True)


def test_reproduce_imports_classes_of_others_with_trust_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Request] = []

    def plan_run(request: Request, **_: object) -> None:
        seen.append(request)
        raise SvmbenchError("planned")

    for module in ("batch", "session"):
        monkeypatch.setattr(f"svmbench.experiment.run.{module}.plan_run", plan_run)
    for words in ((), ("--trust",)):
        svmbench("reproduce", "quickstart", *words)
    assert [request.trust for request in seen] == [False, False, True, True]


def test_reproduce_touches_no_folder_of_others(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    (workplace / "mine").mkdir()
    (workplace / "mine" / "thesis.tex").write_text("years")
    refused = svmbench("reproduce", "good.yaml", "--site", "mine", "--output", "fresh")
    assert refused.code == 1
    assert "not made by 'svmbench site'" in refused.err
    assert not (workplace / "fresh").exists()


@pytest.fixture
def finished(workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that is done, in the folder where its config lies."""
    done = workplace / "done"
    if not done.is_dir():
        ended = svmbench("run", workplace / "good.yaml", "--output", done, "--quiet")
        assert ended.code == 0, ended.said
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(workplace / "good.yaml", tmp_path / "good.yaml")
    return Path(shutil.copytree(done, tmp_path / "run"))


NOTHING = "nothing changed, and nothing is older than the code\n"


def make_old(folder: Path) -> None:
    """Say of a run that it was made by other code, and of a config that is found here."""
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"]["name"] = "good.yaml"
    plan["code"]["files"]["svmbench.core.contract.base"] = "another"
    (folder / "plan.json").write_text(json.dumps(plan))


def test_refresh_measures_what_is_older_and_keeps_it(finished: Path, tmp_path: Path) -> None:
    place = kept.keep_run(finished, tmp_path / "results" / "alsvm" / "good")
    assert svmbench("refresh").out == NOTHING
    make_old(place)
    shown = svmbench("refresh", "--dry-run")
    assert shown.code == 0
    assert shown.out.startswith(
        "results/alsvm/good: older (1 of 1 cells); 1 of 1 results to measure (profile quick"
    )
    assert "contract" not in shown.out
    assert not (tmp_path / "results" / "good-quick").exists()
    before = [cell.metrics["train_time_s"] for cell in read_run(place).cells]
    done = svmbench("refresh", "results/alsvm", "--keep", "--budget", "30")
    assert done.code == 0, done.said
    assert done.out.splitlines()[-1] == "results/alsvm/good: measured again, and kept"
    assert [cell.metrics["train_time_s"] for cell in read_run(place).cells] != before
    assert svmbench("refresh", "results/alsvm").out == NOTHING


def test_refresh_begins_with_what_a_recheck_found_changed(finished: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        make_old(Path(shutil.copytree(finished, tmp_path / "results" / name)))
    said = svmbench("refresh", "--dry-run").out.splitlines()
    assert [line.partition(":")[0] for line in said] == ["results/first", "results/second"]
    changed = tmp_path / "results" / "second"
    (record,) = cells_of(changed).values()
    append_recheck(
        changed,
        {
            "schema": 1, "key": record["key"], "cell": "main", "solver": record["solver"],
            "dataset": record["dataset"], "modules": ["svmbench.core.contract.base"],
            "code": code_hash("svmbench.core.contract.base"),
            "differences": [{"what": "objective", "base": 1.0, "new": 2.0}],
        },  # type: ignore[typeddict-item]
    )  # fmt: skip
    said = svmbench("refresh", "--dry-run").out.splitlines()
    assert [line.partition(";")[0] for line in said] == [
        "results/second: changed (1 of 1 cells)",
        "results/first: older (1 of 1 cells)",
    ]


def test_refresh_measures_a_race_that_has_another_solver_now(
    finished: Path, tmp_path: Path
) -> None:
    """Optional solvers take part where they are installed; the race is still the same."""
    config = yaml.safe_load((tmp_path / "good.yaml").read_text())
    sides = [{"name": "dcd-l1"}, {"name": "alsvm"}, {"name": "dcd-l2"}]
    config["solvers"] = sides
    config["blocks"] = [
        {"name": "main", "protocol": "race", "tolerance": None, "repeats": 1,
         "pairs": [["dcd-l1", "alsvm"], ["dcd-l1", "dcd-l2"]]}
    ]  # fmt: skip
    place = tmp_path / "results" / "good"

    def write(solvers: list[dict[str, str]], n_pairs: int) -> None:
        block = {**config["blocks"][0], "pairs": config["blocks"][0]["pairs"][:n_pairs]}
        text = yaml.safe_dump({**config, "solvers": solvers, "blocks": [block]})
        (tmp_path / "good.yaml").write_text(text)

    write(sides[:2], 1)
    assert svmbench("run", "good.yaml", "--output", place, "--quiet").code == 0
    make_old(place)
    write(sides, 2)
    done = svmbench("refresh", "--keep", "--output", "out")
    assert done.out.splitlines()[-1] == "results/good: measured again, and kept"
    (cell,) = read_run(place).cells
    assert cell.solver.split("|") == ["dcd-l1", "alsvm", "dcd-l2"]
    # With a solver less, the result of that solver would be lost.
    make_old(place)
    write(sides[:2], 1)
    done = svmbench("refresh", "--keep", "--output", "less")
    assert "stays as it is, 1 of its 1 results are not in less/good-quick" in done.out


def test_refresh_loses_no_result(finished: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(finished, tmp_path / "results" / "good"))
    make_old(source)
    # A result of a set that the config has no more.
    text = (source / "runs.jsonl").read_text().replace("breast-cancer", "gone")
    (source / "runs.jsonl").write_text(text)
    done = svmbench("refresh", "--keep", "--output", "out")
    assert "stays as it is, 1 of its 1 results are not in out/good-quick" in done.out
    assert (source / "runs.jsonl").read_text() == text


def test_make_reproduces_by_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of a make that runs the tests.
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    shown = subprocess.run(
        ["make", "--dry-run", "reproduce-all", "PROFILE=paper", "BUDGET=90"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "svmbench reproduce --profile paper --jobs 1 --budget 90" in shown


@pytest.mark.parametrize(
    ("config", "n_jobs"), [("perf_kernel", 1), ("alsvm_table2", 6), ("smo_web_linear", 6)]
)
def test_auto_runs_races_alone_and_other_cells_side_by_side(
    config: str, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joblib.cpu_count", lambda: 6)
    path = find_config(config)
    assert reproducing._automatic_jobs(path) == n_jobs
    settings = load_config(path).model_copy(update={"threads": 4})
    monkeypatch.setattr("svmbench.experiment.config.loader.load_config", lambda _: settings)
    assert reproducing._automatic_jobs(path) == 1
    assert Jobs().convert("auto", None, None) == AUTO
    assert svmbench("reproduce", config, "--jobs", "many").code == 2


def test_a_kept_time_of_a_like_cell_is_the_expected_time(finished: Path, tmp_path: Path) -> None:
    request = Request(config="good.yaml", output=tmp_path / "new")
    guessed = reproducing._expected(request, None)
    records = finished / "runs.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    (cell,) = [one for one in lines if one["kind"] == "cell"]
    cell["wall_s"] = 1000.0
    records.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert reproducing._expected(request, finished) > 1000.0 > guessed
    assert reproducing._expected(replace(request, profile="other"), finished) == 0.0


def test_a_damaged_kept_run_is_no_part_of_an_estimate(finished: Path, tmp_path: Path) -> None:
    request = Request(config="good.yaml", output=tmp_path / "new")
    guessed = reproducing._expected(request, None)
    (finished / "runs.jsonl").write_bytes(b"{}\n" * 3)
    assert reproducing._expected(request, finished) == guessed
    reproducing.kept_by_config.cache_clear()
    (finished / "plan.json").write_text("{")
    assert reproducing._expected(request, finished) == guessed


@pytest.mark.slow
def test_a_config_that_is_no_yaml_fails_alone(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    for jobs in ("1", "auto"):
        words = ("bad.yaml", "good.yaml", "--jobs", jobs, "--output", f"out{jobs}")
        ended = svmbench("reproduce", *words, "--site", f"site{jobs}")
        assert ended.code == 3, ended.said
        assert "bad: bad.yaml:" in ended.out
        assert (tmp_path / f"out{jobs}" / "good-quick" / "tables.md").is_file()


def test_refresh_takes_changed_runs_then_races_then_what_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, *, seconds: float = 1.0, **more: bool) -> refreshing.OldRun:
        facts = {"is_race": False, "decides": False, "is_changed": False, **more}
        return refreshing.OldRun(
            folder=Path(name), config="c", profile="p", keys=frozenset(), solvers_by_identity={},
            n_results=1, seconds=seconds, age="older", **facts,
        )  # fmt: skip

    found = {
        "slow": run("slow", seconds=9.0), "quick": run("quick"),
        "deciding": run("deciding", decides=True, seconds=5.0),
        "race": run("race", is_race=True, seconds=7.0),
        "changed": run("changed", is_changed=True, seconds=99.0),
        "added": run("added", is_changed=True),
    }  # fmt: skip
    for name in found:
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text("{}")
    (tmp_path / "added" / MANIFEST).write_text("{}")
    monkeypatch.setattr(refreshing, "_old_run", lambda folder, _: found[folder.name])
    order = [one.folder.name for one in refreshing.old_runs([tmp_path])]
    # A run that was added from a pack is not ours to measure again.
    assert order == ["changed", "race", "deciding", "quick", "slow"]


def test_the_queue_runs_what_is_missing_and_keeps_it(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines_of(*words: str) -> list[str]:
        said = svmbench(*words).out.splitlines()
        return [line for line in said if not line.endswith("planning its cells")]

    reproducing.kept_by_config.cache_clear()
    given_way: list[bool] = []
    monkeypatch.setattr(queueing, "give_way", lambda: given_way.append(True))
    place = kept.keep_run(finished, tmp_path / "results" / "alsvm" / "good")
    (before,), name = read_run(place).cells, read_run(place).name
    words = ("reproduce", "good.yaml", "--order", "value", "--keep", "--output", "out")
    assert lines_of(*words) == ["no cell is missing"]
    config = yaml.safe_load((tmp_path / "good.yaml").read_text())
    config["solvers"].append({"name": "alsvm", "label": "other"})
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(config))
    reproducing.kept_by_config.cache_clear()
    shown = lines_of(*words, "--dry-run", "--budget", "10")
    assert shown[0] == (
        f"{name} (profile quick): 1 cell to run, 1 without a kept result; "
        "no record tells how long 1 of them take"
    )
    assert not (tmp_path / "out").exists()
    assert not given_way
    done = svmbench(*(word for word in words if word != "--keep"))
    assert done.code == 0, done.said
    # Less than a minute, unless the machine is busy.
    assert f"{name}: 1 cell took " in done.out
    assert read_run(place).cells == (before,)
    # The same command continues: nothing is left to run, and the folder is complete.
    again = lines_of(*words)
    assert again[0] == f"{name} (profile quick): 0 cells to run, 1 without a kept result"
    assert again[-1] == "results/alsvm/good: kept"
    assert given_way
    # What was measured by today's code is taken over, not measured again.
    now = {cell.solver: cell for cell in read_run(place).cells}
    assert now.keys() == {"alsvm", "other"}
    assert now["alsvm"].metrics["train_time_s"] == before.metrics["train_time_s"]
    reproducing.kept_by_config.cache_clear()
    assert lines_of(*words) == ["no cell is missing"]


def test_the_queue_tells_of_a_missing_data_set_once(
    finished: Path, tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SVMBENCH_MIRROR", raising=False)
    reproducing.kept_by_config.cache_clear()
    (tmp_path / "results").mkdir(exist_ok=True)
    config = yaml.safe_load((tmp_path / "good.yaml").read_text())
    config["datasets"] = ["reuters"]
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(config))
    shown = svmbench("reproduce", "one.yaml", "two.yaml", "--order", "value", "--dry-run").out
    assert shown.count("planning its cells") == 2, shown
    assert shown.count("preparing reuters") == 1
    assert shown.count("reuters: there is no official address") == 1


def test_the_queue_loses_no_kept_result(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "give_way", lambda: None)
    place = kept.keep_run(finished, tmp_path / "results" / "alsvm" / "good")
    outcome = batch.ConfigOutcome(Job(Request("good.yaml")), path=finished, is_unfinished=False)
    one = queueing.QueueEntry("good", "alsvm", "quick", {}, 0, is_race=False, claims=())
    lost = queueing.keep_complete(outcome, one, tmp_path / "results", {place: 2})
    assert lost == f"{place}: stays as it is, 2 of its results are not in {finished}"
    unfinished = replace(outcome, is_unfinished=True)
    assert "not complete" in queueing.keep_complete(unfinished, one, tmp_path / "results", {})
    # A folder of another profile stays; the new one lies beside it.
    said = queueing.keep_complete(outcome, one, tmp_path / "results", {})
    assert said == f"{place}-quick: kept"
    assert (place.with_name("good-quick") / "runs.jsonl.xz").is_file()


def queued(name: str, seconds: float | None, *claims: str, is_race: bool = False) -> Any:
    return queueing.QueueEntry(
        name, "p", "paper", {"k": seconds}, 1, is_race=is_race, claims=claims
    )


def test_the_queue_begins_with_what_decides_most_in_an_hour_and_races_come_last() -> None:
    found = [
        queued("race", 36.0, "a-1", "a-2", is_race=True),
        queued("long", 36000.0, "a-1", "a-2", "a-3"),
        queued("nothing", 50.0),
        queued("short", 1800.0, "b-1"),
    ]
    ordered = queueing.in_order(found)
    assert [one.config for one in ordered] == ["short", "long", "nothing", "race"]
    said = queueing.queue_lines(ordered)
    assert said[0] == (
        "short (profile paper): 1 cell to run, 1 without a kept result; about 30 minutes; "
        "may decide b-1"
    )
    assert said[-1] == "together 4 cells, about 11 hours"


def test_a_cell_that_two_blocks_share_has_the_kept_result_of_either() -> None:
    def cell(key: str, block: str, solver: str) -> Any:
        identity = {"block": block, "solver": solver, "paper": "p", "profile": "paper"}
        return SimpleNamespace(key=key, identity=identity, status="planned", spec={})

    shared = [cell("k", "first", "csvc"), cell("k", "second", "csvc")]
    identity, solvers = race_identity_of(shared[0].identity)
    older = {identity: [solvers]}
    assert queueing.queue_entry("c", shared, older, (), (), (), lambda _: 1.0) is None
    new = [*shared, cell("m", "first", "alsvm"), cell("m", "second", "alsvm")]
    entry = queueing.queue_entry("c", new, older, (), (), (), lambda _: 1.0)
    assert entry is not None
    assert (entry.n_missing, entry.cells) == (1, {"k": 1.0, "m": 1.0})


def test_races_wait_until_nothing_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = iter([2.0, 1.0, 0.1])
    slept: list[float] = []
    monkeypatch.setattr(queueing.os, "getloadavg", lambda: (next(loads), 0.0, 0.0))
    monkeypatch.setattr(queueing.time, "sleep", slept.append)
    assert queueing.wait_for_idle(float("inf"))
    assert len(slept) == 2
    monkeypatch.setattr(queueing.os, "getloadavg", lambda: (2.0, 0.0, 0.0))
    assert not queueing.wait_for_idle(0.0)


@pytest.mark.parametrize("minutes", [None, 1.0, 0.0])
def test_the_queue_lists_configs_that_it_never_started_as_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float | None
) -> None:
    """The machine is never idle, so no race starts; without a minute, nothing starts."""
    entries = {"quickly": queued("quickly", 1.0), "race": queued("race", 1.0, is_race=True)}
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(queueing, "give_way", lambda: None)
    monkeypatch.setattr(queueing, "wait_for_idle", lambda *_: False)
    monkeypatch.setattr(
        queueing, "_plan_entry", lambda request, *_: (entries[request.config], request)
    )
    monkeypatch.setattr(
        queueing,
        "run_batch",
        lambda jobs, *_, **__: [batch.ConfigOutcome(job, is_unfinished=False) for job in jobs],
    )
    ended = queueing.run_queue(
        [Request(name) for name in entries], tmp_path / "results", minutes=minutes
    )
    assert {outcome.name: outcome.is_unfinished for outcome in ended} == {
        "quickly": minutes == 0.0,
        "race": True,
    }


def test_each_config_of_the_queue_has_all_that_is_left(world: Callable[..., World]) -> None:
    one = world({"a": 2, "b": 3})
    run = one.batch(10.0)
    run.shared = False
    run.run()
    assert one.order == [("a", 10.0), ("b", 8.0)]


@pytest.mark.parametrize(("planning_s", "budget_s"), [(4.0, 6.0), (12.0, 0.0)])
def test_a_config_has_at_most_what_its_planning_leaves(
    planning_s: float, budget_s: float, world: Callable[..., World]
) -> None:
    one = world({"a": 20})
    one.planning_s = planning_s
    outcomes = one.batch(10.0).run()
    assert one.order == [("a", budget_s)]
    assert outcomes[0].counts["ok"] == budget_s
    assert outcomes[0].is_unfinished


def test_options_of_the_queue_need_it(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workplace)
    before = sorted(workplace.rglob("*"))
    shown = svmbench("reproduce", "good.yaml", "--dry-run")
    assert shown.code == 0
    of_run = svmbench("run", "good.yaml", "--dry-run").out
    plan, in_all = shown.out.split("\n\n")
    assert plan == of_run.strip() != ""
    n_cells = re.search(r"cells?, (\d+) to run, ", of_run)[1]
    assert re.match(rf"in all 1 config with {n_cells} cells? to run", in_all)
    assert sorted(workplace.rglob("*")) == before
    for words in (("--keep",), ("--order", "value", "--site", "pages")):
        refused = svmbench("reproduce", "good.yaml", *words)
        assert (refused.code, refused.out) == (2, "")
        assert "--order value" in refused.err
    refused = svmbench("reproduce", "--paper", "nobody", "--order", "value")
    assert refused.code == 2
    assert "no config with a profile quick is of nobody" in refused.err
