"""Runs that are killed, interrupted or damaged: nothing finished is lost or done twice."""

from __future__ import annotations

import csv
import errno
import json
import os
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from runs import (
    PATIENCE_S,
    cells_of,
    lines_of,
    results_of,
    start,
    svmbench,
    wait_until,
    write_config,
)

from svmbench.experiment.run import execute, record_file
from svmbench.experiment.run.record_file import RunFolder, read_records
from svmbench.report.reading import shapes
from svmbench.report.reading.records import read_run, read_scores
from svmbench.schema import record

pytestmark = pytest.mark.usefixtures("workshop")

GRID = [0.25, 0.5, 1.0, 2.0]
BLOCK = {"protocol": "nested-cv", "outer_folds": 3, "inner_folds": 3}
SEARCH_FITS = 3 * 3 * len(GRID)
#: Breast-cancer has 569 rows: an inner training set has about 253 of them, an outer one 379.
INNER_AT_MOST = 300


def counting_config(folder: Path) -> Path:
    return write_config(folder, [{"name": "test-counts", "grid": {"C": GRID}}], BLOCK)


def search_fits(logs: Path) -> int:
    lines = (logs / "fits").read_text().splitlines() if (logs / "fits").exists() else []
    return sum(int(line.split()[2]) < INNER_AT_MOST for line in lines)


@pytest.fixture(scope="module")
def whole(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    assert svmbench("run", counting_config(folder), "--output", folder / "out").code == 0
    return folder / "out"


def table_without_times(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    return [row for row in rows if not row["metric"].endswith(("_s", "_mb"))]


def children_of(pid: int) -> set[int]:
    """Return the ids of all processes that descend from one."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        pid = todo.pop()
        try:
            new = {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
        except OSError:
            continue  # it ended in the meantime
        todo += new - found
        found |= new
    return found


def servers_among(pids: set[int]) -> set[int]:
    """Return the processes that workers are forked from."""
    found = set()
    for pid in pids:
        with suppress(OSError):  # it has ended in the meantime
            facts = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "comm"))
            if any(b"forkserver" in fact for fact in facts):
                found.add(pid)
    return found


def ignores(pid: int, number: signal.Signals) -> bool:
    """Return True if a process ignores a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def alive(pids: set[int]) -> set[int]:
    def runs(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    return {pid for pid in pids if runs(pid)}


def interrupted_run(
    config: Path, out: Path, logs: Path, how: signal.Signals
) -> tuple[subprocess.Popen[str], str, str]:
    """Start a run, send a signal in the middle of its search, and wait for its end."""
    # On a busy machine a quick search would be over before the signal.
    slowly = logs / "slowly"
    slowly.touch()
    process = start("run", config, "--output", out)
    wait_until(lambda: search_fits(logs) >= 5)
    family = children_of(process.pid)
    assert family
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does: to the workers as well
    else:
        process.send_signal(how)
    said, complained = process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not alive(family))
    slowly.unlink()
    return process, said, complained


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_goes_on_where_it_was(
    tmp_path: Path, logs: Path, whole: Path, how: signal.Signals
) -> None:
    config, out = counting_config(tmp_path), tmp_path / "out"
    logs.joinpath("fits").unlink(missing_ok=True)
    process, said, complained = interrupted_run(config, out, logs, how)
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert "interrupted; the same command continues the run" in said
    assert "Traceback" not in said + complained
    before = search_fits(logs)
    assert 5 <= before < SEARCH_FITS

    assert svmbench("run", config, "--output", out).code == 0
    # Only the fit that was under way may have been done in vain.
    assert SEARCH_FITS <= search_fits(logs) <= SEARCH_FITS + 1
    finished = Counter(
        (r["key"], r.get("point")) for r in lines_of(out) if r.get("status") != "not run"
    )
    assert set(finished.values()) == {1}
    assert results_of(out) == results_of(whole)
    assert table_without_times(out) == table_without_times(whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "seconds"),
    [
        ("1", 0.05),  # a fork of the command, which loads what the solver needs
        ("2", 0.3),  # an interpreter, which imports the numerical libraries first
    ],
)
def test_ctrl_c_while_workers_warm_up_is_quiet(
    tmp_path: Path, threads: str, seconds: float
) -> None:
    config = write_config(tmp_path, ["test-hangs"])
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    process = start("run", config, "--output", tmp_path / "out", env=environment)
    wait_until(lambda: bool(servers_among(children_of(process.pid))))
    # The command may ignore Ctrl-C for a moment, so that a new interpreter inherits that.
    wait_until(lambda: not ignores(process.pid, signal.SIGINT))
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    said, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted; the same command continues the run" in said
    assert complained == ""


@pytest.mark.slow
def test_sigkill_leaves_no_worker_behind(tmp_path: Path, logs: Path) -> None:
    config = write_config(tmp_path, ["test-hangs", "test-holds-the-gil"])
    process = start("run", config, "--output", tmp_path / "out", "--jobs", 2)
    wait_until(lambda: (logs / "pids").exists() and len((logs / "pids").read_text().split()) == 2)
    family = children_of(process.pid)
    assert {int(pid) for pid in (logs / "pids").read_text().split()} <= family
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not alive(family))


def test_a_torn_last_line_is_cut_off_and_its_cell_runs_again(tmp_path: Path, whole: Path) -> None:
    out = copy_of(whole, tmp_path)
    content = (out / "runs.jsonl").read_bytes()
    (out / "runs.jsonl").write_bytes(content[:-20])
    ended = svmbench("run", whole.parent / "config.yaml", "--output", out)
    assert ended.code == 0
    assert f"{out}/runs.jsonl: cut off an unfinished last line; its cell runs again" in ended.out
    assert "3 cells, 1 to run" in ended.out
    assert results_of(out) == results_of(whole)


def changed(line: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode()


DAMAGE = {
    **{text: text.encode() for text in ("{garbage", '{"kind": "point"}', "[1]", "3", "[" * 9999)},
    "no text": b"\xff\xfe",
    "schema": {"schema": 2},
    "key": {"key": 3},
    "status": {"status": None},
    "metrics": {"metrics": [1]},
    "no metrics": {"metrics": {}},
    "counters": {"counters": "many"},
    "params": {"params": 1},
    "spread": {"spread": 0.5},
    "environment": {"environment": {"id": "4be1"}},
    "solver": {"solver": ["test-counts"]},
    "folds": {"folds": "three"},
    "dimensions": {"dimensions": {"rows": [1]}},
    "trace": {"trace": [[0.1, 2]]},
    "undefined": {"undefined": {"auc_pct": None}},
    "NaN": {"wall_s": float("nan")},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_line_is_passed_over_and_its_cell_runs_again(
    tmp_path: Path, whole: Path, damage: bytes | dict[str, Any]
) -> None:
    out = copy_of(whole, tmp_path)
    lines = (out / "runs.jsonl").read_bytes().splitlines()
    number = next(i for i, line in enumerate(lines) if b'"kind": "cell"' in line)
    lines[number] = damage if isinstance(damage, bytes) else changed(lines[number], **damage)
    (out / "runs.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    # The report and the run must agree on what a result is.
    assert [cell.status for cell in read_run(out).cells].count("not run") == 1
    ended = svmbench("run", whole.parent / "config.yaml", "--output", out)
    assert ended.code == 0
    assert f"{out}/runs.jsonl:{number + 1}: passed over a damaged line" in ended.out
    assert "3 cells, 1 to run" in ended.out
    assert "cells: 3 ok" in ended.out


def copy_of(folder: Path, target: Path) -> Path:
    out = target / "copy"
    out.mkdir(parents=True)
    for name in ("runs.jsonl", "plan.json"):
        (out / name).write_bytes((folder / name).read_bytes())
    return out


def test_a_full_disk_is_one_sentence_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    config, out = counting_config(tmp_path), tmp_path / "out"
    write, lines = os.write, 0

    def full(descriptor: int, content: bytes) -> int:
        nonlocal lines
        is_new = content.startswith(b'{"schema"')
        lines += is_new
        if lines < 10:
            return write(descriptor, content)
        if is_new:
            return write(descriptor, content[:30])  # half a line fits
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(record_file.os, "write", full)
        ended = svmbench("run", config, "--output", out)
    assert ended.code == 1
    assert "No space left on device; all records so far are safe" in ended.err
    assert ended.err.count("\n") == 1
    assert len(lines_of(out)) == 9
    assert svmbench("run", config, "--output", out).code == 0
    assert results_of(out) == results_of(whole)


@pytest.mark.slow
def test_a_file_size_limit_is_one_sentence(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works"], BLOCK)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    process = start("run", config, "--output", tmp_path / "out", preexec_fn=limit)
    _, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert complained.startswith("svmbench: can't write ")
    assert complained.count("\n") == 1


@pytest.mark.slow
def test_a_disk_that_fills_while_data_are_prepared_is_one_sentence(
    tmp_path: Path, private_cache: Path
) -> None:
    config = write_config(tmp_path, ["test-works"])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    process = start("run", config, "--output", tmp_path / "out", preexec_fn=limit)
    _, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert complained.startswith(f"svmbench: can't write {private_cache}")
    assert complained.count("\n") == 1
    left = [path for path in (private_cache / "prepared").rglob("*") if path.suffix == ".npy"]
    assert left == []


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works"])
    with RunFolder(tmp_path / "out"):
        ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 1
    assert ended.err == (
        f"svmbench: another run is writing to {tmp_path / 'out'};"
        " wait for it, or name another --output\n"
    )
    assert svmbench("run", config, "--output", tmp_path / "out").code == 0


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works"])
    (tmp_path / "file").write_text("")
    ended = svmbench("run", config, "--output", tmp_path / "file" / "out")
    assert ended.code == 1
    assert ended.err.startswith(f"svmbench: can't write to {tmp_path / 'file' / 'out'}: Not a dir")
    assert ended.err.count("\n") == 1


@pytest.mark.slow
def test_a_changed_config_runs_only_what_changed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    slow = {"name": "test-works", "params": {"C": 1.0}}
    svmbench("run", write_config(tmp_path, [slow, "test-random"]), "--output", out)
    first = lines_of(out)
    slow["params"] = {"C": 3.0}
    ended = svmbench(
        "run", write_config(tmp_path, [slow, "test-random"], title="New"), "--output", out
    )
    assert "2 cells, 1 to run" in ended.out
    assert [r["solver"] for r in lines_of(out)[len(first) :]] == ["test-works"]
    ended = svmbench(
        "run",
        write_config(tmp_path, [slow, "test-random"], seed=5),
        "--output",
        out,
    )
    assert "2 cells, 2 to run" in ended.out


def test_cells_of_one_key_run_once(tmp_path: Path) -> None:
    blocks: list[dict[str, Any]] = [
        {"name": "main", "protocol": "fit", "sizes": [100, 200]},
        {"name": "more", "protocol": "fit", "sizes": [200, 300]},
    ]
    config = write_config(tmp_path, ["test-works"], blocks=blocks)
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert "4 cells, 3 to run" in ended.out
    assert "cells: 4 ok" in ended.out
    assert len(lines_of(tmp_path / "out")) == 3


def test_results_of_the_same_cells_are_taken_over_from_another_run(
    tmp_path: Path, whole: Path, logs: Path
) -> None:
    (logs / "fits").unlink(missing_ok=True)
    config, out = counting_config(tmp_path), tmp_path / "out"
    ended = svmbench("run", config, "--output", out, "--reuse", whole)
    assert "3 results taken over" in ended.out
    assert "3 cells, 0 to run" in ended.out
    assert search_fits(logs) == 0
    assert table_without_times(out) == table_without_times(whole)
    assert {p.name for p in out.glob("environment-*")} == {
        p.name for p in whole.glob("environment-*")
    }
    # Another seed is another experiment: nothing of it is the same.
    new = ["--output", tmp_path / "new", "--set", "seed=5", "--budget", 1e-9]
    ended = svmbench("run", config, *new, "--reuse", whole)
    assert "0 results taken over" in ended.out


@pytest.mark.slow
def test_only_what_was_measured_is_taken_over(tmp_path: Path, logs: Path) -> None:
    config, first = counting_config(tmp_path), tmp_path / "first"
    svmbench("run", config, "--output", first, "--only", "fold=1")
    svmbench("run", config, "--output", first, "--budget", 1e-9)
    ended = svmbench("run", config, "--output", tmp_path / "second", "--reuse", first)
    assert "1 result taken over" in ended.out
    assert "3 cells, 2 to run" in ended.out
    assert "cells: 3 ok" in ended.out


def test_a_folder_without_records_can_not_be_reused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config, out = counting_config(tmp_path), tmp_path / "out"
    ended = svmbench("run", config, "--output", out, "--reuse", tmp_path / "empty")
    assert ended.code == 1
    assert "is no run folder" in ended.err
    assert not out.exists()


def test_a_bad_reuse_is_found_before_fresh_sets_records_aside(tmp_path: Path, whole: Path) -> None:
    out, broken = copy_of(whole, tmp_path), tmp_path / "broken"
    (broken / "runs.jsonl").mkdir(parents=True)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    words = ["run", whole.parent / "config.yaml", "--output", out, "--fresh", "--reuse", whole]
    for bad, code, sentence in (
        (broken, 1, f"can't read {broken}/runs.jsonl: Is a directory"),
        (out, 2, f"--reuse {out}: this is the run's own results folder"),
    ):
        ended = svmbench(*words, "--reuse", bad)
        assert (ended.code, ended.err) == (code, f"svmbench: {sentence}\n")
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("name", [None, "", "../4be1", "4BE1"])
def test_a_result_without_environment_is_not_taken_over(
    tmp_path: Path, whole: Path, name: Any
) -> None:
    other = copy_of(whole, tmp_path)
    lines = (other / "runs.jsonl").read_bytes().splitlines()
    at = next(i for i, line in enumerate(lines) if b'"kind": "cell"' in line)
    lines[at] = changed(lines[at], environment=name)
    lines.append(b"{garbage")
    (other / "runs.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    wanted = {key: {} for key in cell_keys(other)}
    with RunFolder(tmp_path / "out") as folder:
        assert folder.take_over(other, wanted) == 2
    key = json.loads(lines[at])["key"]
    assert key not in cell_keys(tmp_path / "out")
    assert folder.notes[:2] == [
        f"{other}/runs.jsonl:{len(lines)}: passed over a damaged line",
        f"{other}/runs.jsonl: passed over cell {key}: it has no environment",
    ]


def cell_keys(folder: Path) -> set[str]:
    return {record["key"] for record in read_records(folder) if record["kind"] == "cell"}


def test_an_environment_is_taken_over_as_it_is_or_noted(tmp_path: Path, whole: Path) -> None:
    (file,) = whole.glob("environment-*.json")
    for number, content in enumerate([b"\xff no JSON", None]):
        other = copy_of(whole, tmp_path / str(number))
        if content is None:
            (other / file.name).mkdir()
        else:
            (other / file.name).write_bytes(content)
        wanted = {key: {} for key in cell_keys(other)}
        with RunFolder(tmp_path / f"out-{number}") as folder:
            assert folder.take_over(other, wanted) == 3
        if content is None:
            assert folder.notes[0].startswith(f"can't read {other / file.name}: Is a directory;")
        else:
            assert (folder.path / file.name).read_bytes() == content
            assert folder.notes == []


def test_a_record_is_written_with_this_versions_schema(tmp_path: Path) -> None:
    record = {"schema": 9, "kind": "cell", "key": "k", "status": "failed"}
    with RunFolder(tmp_path) as folder:
        folder.append(record)
    assert list(read_records(tmp_path)) == [{**record, "schema": 1}]


@pytest.mark.slow
def test_fresh_forgets_what_a_killed_run_streamed(tmp_path: Path, logs: Path) -> None:
    config, out = counting_config(tmp_path), tmp_path / "out"
    svmbench("run", config, "--output", out, "--only", "fold=1")
    key = cells_of(out)["test-counts/0"]["key"]
    stale = out / ".scratch" / "points" / f"{key}.jsonl"
    stale.parent.mkdir(exist_ok=True)
    point = {"params": {}, "accuracy_pct": 1.0, "train_time_s": 0.0, "cpu_time_s": 0.0}
    stale.write_text(json.dumps({"point": "0/0", **point}) + '\n{"point": "0/1", "par')
    (logs / "fits").unlink()
    svmbench("run", config, "--output", out, "--fresh", "--only", "fold=1")
    assert search_fits(logs) == 3 * len(GRID)
    assert all(r.get("accuracy_pct") != 1.0 for r in lines_of(out))


def test_streamed_points_are_taken_up_though_the_last_is_torn(tmp_path: Path, logs: Path) -> None:
    config, out = counting_config(tmp_path), tmp_path / "out"
    svmbench("run", config, "--output", out, "--budget", 1e-9)
    key = cells_of(out)["test-counts/0"]["key"]
    streamed = out / ".scratch" / "points" / f"{key}.jsonl"
    streamed.parent.mkdir(parents=True, exist_ok=True)
    point = {"params": {}, "accuracy_pct": 1.0, "train_time_s": 0.0, "cpu_time_s": 0.0}
    streamed.write_text(json.dumps({"point": "0/0", **point}) + '\n{"point": "0/1", "par')
    svmbench("run", config, "--output", out, "--only", "fold=1")
    assert search_fits(logs) == 3 * len(GRID) - 1
    points = [r["point"] for r in lines_of(out) if r["kind"] == "point"]
    assert sorted(points) == sorted(f"{p}/{f}" for p in range(len(GRID)) for f in range(3))


@pytest.mark.slow
def test_disturbed_times_are_measured_again_and_no_result_is_lost(tmp_path: Path) -> None:
    single = [{"name": "alsvm-batch"}, {"name": "dcd-l2"}]
    path = {"name": "alsvm-batch", "label": "path", "grid": {"C": [1, 2]}}
    blocks = [
        {"name": "main", "protocol": "fit", "solvers": single},
        {"name": "path", "protocol": "path", "solvers": [path]},
    ]
    config = write_config(tmp_path, single, blocks=blocks)
    out = tmp_path / "out"

    def ran(*options: str) -> list[str]:
        before = len(lines_of(out)) if out.exists() else 0
        svmbench("run", config, "--output", out, *options)
        return [r["solver"] for r in lines_of(out)[before:] if r["kind"] == "cell"]

    assert sorted(ran()) == ["alsvm-batch", "dcd-l2", "path"]
    records = lines_of(out)
    for line in records:
        if line.get("solver") != "dcd-l2":
            line["metrics"] |= {"train_time_s": 1.2, "cpu_time_s": 1.0}
    (out / "runs.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert ran("--retry", "all") == []
    # A retry for which no time is left keeps the result; a path's points are not timed again.
    assert ran("--retry", "disturbed", "--budget", "1e-9") == []
    assert cells_of(out)["alsvm-batch"]["status"] == "ok"
    assert ran("--retry", "disturbed") == ["alsvm-batch"]
    assert cells_of(out)["alsvm-batch"]["metrics"]["train_time_s"] < 1.2


def test_retry_names_are_statuses() -> None:
    assert (
        execute.RETRIED_STATUSES["all"]
        == execute.RETRIED_STATUSES["failed"] | execute.RETRIED_STATUSES["timeout"]
    )


@pytest.mark.parametrize(
    ("field", "value", "is_whole"),
    [
        ("metrics", {"a": 1.5, "b": None}, True),
        ("metrics", {"a": "much"}, False),
        ("metrics", {"a": 10**400}, False),
        ("counters", {"a": {}}, False),
        ("spread", {"ratio:a:b": [1.0, 2.0]}, True),
        ("spread", {"ratio:a:b": [1.0, "x"]}, False),
    ],
)
def test_a_record_holds_numbers_where_numbers_belong(
    field: str, value: dict[str, Any], is_whole: bool
) -> None:
    whole = {"schema": 1, "kind": "cell", "key": "a", "status": "ok", "metrics": {"a": 1}}
    line = json.dumps({**whole, field: value}).encode()
    assert (record.parse_record(line) is not None) == is_whole


def test_a_text_of_a_record_has_a_greatest_length() -> None:
    """Names and reasons, keys of mappings, and all other texts."""
    whole = {
        "schema": record.RECORD_SCHEMA,
        "kind": "cell",
        "key": "k",
        "status": "ok",
        "block": "b",
        "solver": "s",
        "reason": "r",
        "stop_reason": "x",
        "traceback": "t",
        "warnings": ["w"],
        "params": {"C": "1"},
        "metrics": {"m": 1},
    }

    def is_read(**changed: object) -> bool:
        return record.parse_record(json.dumps(whole | changed).encode()) is not None

    name, text = record.MAX_RECORD_NAME_CHARS, record.MAX_RECORD_TEXT_CHARS
    for key in ("key", "block", "solver", "reason", "stop_reason", "status"):
        changed = {"status": "failed"} if key == "status" else {}
        assert is_read(**changed | {key: "x" * name})
        assert not is_read(**changed | {key: "x" * (name + 1)})
    for said in (
        lambda n: {"traceback": "x" * n},
        lambda n: {"warnings": ["w", "x" * n]},
        lambda n: {"params": {"C": {"deep": ["x" * n]}}},
        lambda n: {"of_its_own": ["x" * n]},
    ):
        assert is_read(**said(text))
        assert not is_read(**said(text + 1))
    for key in ("metrics", "counters", "params"):
        assert is_read(**{key: {"x" * name: 1}})
        assert not is_read(**{key: {"x" * (name + 1): 1}})
    assert not is_read(**{"x" * (name + 1): 1})


def test_what_a_run_writes_is_never_too_long_to_be_read(tmp_path: Path) -> None:
    long = "x" * 2 * record.MAX_RECORD_TEXT_CHARS
    said = {"reason": long, "stop_reason": long, "traceback": long + "end", "warnings": [long]}
    with RunFolder(tmp_path) as folder:
        folder.append({"kind": "cell", "key": "k", "status": "failed", **said})  # type: ignore
    (held,) = read_records(tmp_path)
    assert held["key"] == "k"
    assert held["traceback"].endswith("end")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda text: {"cells": [{"key": text}]},
        lambda text: {"cells": [{"dimensions": {"rows": text}}]},
        lambda text: {"config": {"blocks": [{"name": text}]}},
        lambda text: {"protocols": {text: {}}},
    ],
)
def test_a_text_of_a_plan_has_a_greatest_length(wrong: Callable[[str], object]) -> None:
    assert shapes.mismatch(wrong("x" * record.MAX_RECORD_NAME_CHARS), shapes.PLAN_SHAPE) == ""
    said = shapes.mismatch(wrong("x" * (record.MAX_RECORD_NAME_CHARS + 1)), shapes.PLAN_SHAPE)
    assert "4,097 characters, more than" in said
    assert len(said) < 200


def test_what_a_plan_leaves_null_is_as_if_it_were_not_there() -> None:
    known = read_scores({})
    (metric, *_) = known
    assert read_scores({metric: None})[metric] == known[metric]
    assert read_scores({"one_of_its_own": None})["one_of_its_own"]["caption"]
