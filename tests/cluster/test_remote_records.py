"""What a run on a cluster records of an answer: its points, its arrays, and who ran beside it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runs import lines_of

from svmbench.experiment.config.models import Config
from svmbench.experiment.run import cluster, host, processes, worker
from svmbench.experiment.run.loop import Options, Silent
from svmbench.experiment.run.record_file import RunFolder, artifact_of
from svmbench.experiment.settings.cells import Cell

IDENTITY = {
    "block": "b", "protocol": "path", "paper": "", "profile": "quick", "dataset": "d", "size": None,
    "n_features_kept": None, "solver": "s", "kernel": "linear", "fold": None,
}  # fmt: skip
ANSWER = {"status": "ok", "reason": "", "params": {}, "metrics": {}, "spread": {}, "counters": {}}


class Answered:
    """A task of Dask that is over."""

    status = "finished"

    def __init__(self, heard: dict[str, Any]) -> None:
        self.heard = heard

    def done(self) -> bool:
        return True


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[cluster.ClusterRun]:
    """Return a run without cells, nor a scheduler."""
    monkeypatch.setattr(cluster, "result_of", lambda task: json.dumps(task.heard))
    blocks = [{"name": "b", "protocol": "path"}]
    plan: Any = SimpleNamespace(config=Config.model_validate({"title": "t", "blocks": blocks}))
    with RunFolder(tmp_path / "out") as folder:
        yield cluster.ClusterRun(plan, folder, Options(), Silent())


def sent(run: cluster.ClusterRun, key: str, machine: str, **heard: Any) -> cluster.RemoteWork:
    """Have a cell at a machine, whose answer has come."""
    facts = {"machine": machine, "environment": {"id": "4be1", "cpu": "c"}}
    place = cluster.ClusterWorker(f"tcp://{key}", None, facts)
    work = cluster.RemoteWork(place, Answered({"answer": ANSWER, **heard}))
    cell = Cell(key, IDENTITY, {"data_sha256": "0"})  # type: ignore[arg-type, typeddict-item]
    run.running[work] = (cell, "2026-01-31T12:00:00+00:00")
    return work


def point(number: int) -> str:
    return json.dumps(
        {"point": str(number), "params": {"C": number}, "metrics": {"objective": 1.0}}
    )


def recorded(run: cluster.ClusterRun, kind: str) -> list[dict[str, Any]]:
    return [line for line in lines_of(run.folder.path) if line["kind"] == kind]


def test_cells_beside_each_other_on_a_machine_are_marked(run: cluster.ClusterRun) -> None:
    first, second = (sent(run, key, "one") for key in ("a", "b"))
    alone = sent(run, "c", "other")
    run._note_contended()
    run._finish(second, {})
    # What has run beside another stays so, after that has ended.
    run._note_contended()
    for work in (first, alone):
        run._finish(work, {})
    marks = {record["key"]: record["contended"] for record in recorded(run, "cell")}
    assert marks == {"a": True, "b": True, "c": False}


def test_a_cell_by_itself_at_a_time_is_not_marked(run: cluster.ClusterRun) -> None:
    for key in ("a", "b"):
        work = sent(run, key, "one")
        run._note_contended()
        run._finish(work, {})
    assert [record["contended"] for record in recorded(run, "cell")] == [False, False]


def test_points_that_no_event_brought_come_with_the_answer(run: cluster.ClusterRun) -> None:
    """Dask may lose an event, and has no order among events and answers."""
    work = sent(run, "a", "one", points=[point(1), point(2), '{"no": "point"}', point(3)])
    run._on_event((0.0, {"key": "a", "point": point(2)}))
    run._on_event((0.0, {"key": "elsewhere", "point": point(4)}))
    run._collect_points("a")
    assert [line["point"] for line in recorded(run, "point")] == ["2"]
    run._finish(work, {})
    found = recorded(run, "point")
    assert [(line["key"], line["point"]) for line in found] == [("a", "2"), ("a", "1"), ("a", "3")]
    assert found[1]["params"] == {"C": 1}
    # They stand before the result that they belong to.
    assert [line["kind"] for line in lines_of(run.folder.path)] == ["point"] * 3 + ["cell"]


def test_arrays_for_a_plot_come_with_the_answer(run: cluster.ClusterRun) -> None:
    content = bytes(range(256)) * 4
    run._finish(sent(run, "a", "one", artifact=base64.b64encode(content).decode()), {})
    run._finish(sent(run, "b", "one", artifact="no base64 !"), {})
    run._finish(sent(run, "c", "one", artifact=None), {})
    kept = artifact_of(run.folder.path, "a")
    assert kept.read_bytes() == content
    assert list(kept.parent.iterdir()) == [kept]
    assert [record["status"] for record in recorded(run, "cell")] == ["ok"] * 3


class Ended:
    """A cell's process that is over, beside a worker."""

    def reply(self, timeout_s: float) -> dict[str, Any]:
        return dict(ANSWER)

    def stop(self) -> None:
        pass


@pytest.mark.parametrize("keeps", [True, False])
def test_the_answer_beside_a_worker_holds_all_that_a_cell_left(
    keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(target: Callable[..., Any], args: tuple[Any, ...], _timeout_s: float) -> Ended:
        points, artifact = Path(args[2]), Path(args[5])
        assert target is worker.run_cell
        points.write_text(f"{point(1)}\n{point(2)}\n")
        if keeps:
            artifact.parent.mkdir()
            artifact.write_bytes(b"\x00arrays")
        return Ended()

    monkeypatch.setattr(host, "_check_data", lambda *_: None)
    monkeypatch.setattr(processes, "start", start)
    monkeypatch.setattr(processes, "wait_for", lambda works, *_: works)
    told: list[Any] = []
    monkeypatch.setattr(host, "_send_line", lambda _talk, value: told.append(value))
    asked = {"key": "a", "spec": {}, "mirror": None, "limits": {}, "timeout_s": 1.0, "done": {}}
    found = host._run(asked, tmp_path, host._Lines(0), 1)
    assert found["points"] == [point(1), point(2)]
    assert told == [{"point": point(1)}, {"point": point(2)}]
    assert found["answer"] == ANSWER
    if keeps:
        assert base64.b64decode(found["artifact"]) == b"\x00arrays"
    else:
        assert found["artifact"] is None
    assert not list(tmp_path.iterdir())
