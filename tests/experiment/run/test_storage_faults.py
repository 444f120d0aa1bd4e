"""Mirrors, caches and clocks that go wrong under a run: what they cost, and what is said of it."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from misbehaving_server import Server
from runs import Ended, cells_of, lines_of, start, svmbench, write_config
from small_disk import fill, is_one_sentence, make_room, mounted

from svmbench.data import download
from svmbench.experiment.run import loop, worker
from svmbench.experiment.settings.cells import SharedArrays

pytestmark = [pytest.mark.usefixtures("workshop"), pytest.mark.slow]

TEXT = b"".join(b"%d 1:%d 2:%d.5\n" % (i % 2, i, i * i % 11) for i in range(60))
ENTRY = f"""
[tiny]
title = "Tiny"
task = "binary"
homepage = "https://example.org/tiny"
licence = "none"
citation = "Nobody (2000)."
files = [{{ name = "tiny.svm", sha256 = ["{hashlib.sha256(TEXT).hexdigest()}"] }}]
n_samples = 60
n_features = 2
counts = [30, 30]
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve a mirror, to a client that waits half a second."""
    monkeypatch.setattr(download, "READ_TIMEOUT_S", 0.5)
    monkeypatch.setattr(download, "RETRY_PAUSE_S", 0.01)
    running = Server()
    yield running
    running.close()


@pytest.fixture
def config(tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a config of a data set that has a file, and of one that needs none."""
    (tmp_path / "own.toml").write_text(ENTRY)
    monkeypatch.setenv("SVMBENCH_DATASETS", str(tmp_path / "own.toml"))
    return write_config(tmp_path, ["test-works"], datasets=["tiny", "breast-cancer"])


def statuses(out: Path) -> dict[str, str]:
    return {r["dataset"]: r["status"] for r in lines_of(out) if r["kind"] == "cell"}


# ---------------------------------------------------------------- the mirror


@pytest.mark.parametrize("faults", [["half"], ["500", "500"], ["stall"], ["half", "no-range"]])
def test_a_mirror_that_stumbles_costs_nothing(
    tmp_path: Path, config: Path, server: Server, faults: list[str]
) -> None:
    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = list(faults)
    ended = svmbench("run", config, "--output", tmp_path / "out", "--mirror", server.url)
    assert ended.code == 0, ended.said
    assert statuses(tmp_path / "out") == {"tiny": "ok", "breast-cancer": "ok"}
    assert server.faults["/tiny.svm"] == []


@pytest.mark.parametrize(
    ("content", "fault", "reason"),
    [
        (TEXT.replace(b"7", b"8"), "", "the file is damaged or is another version"),
        (TEXT, "500", "the server answered 500"),
        (TEXT, "stall", "the connection stalled"),
    ],
)
def test_a_mirror_that_fails_costs_its_data_set(
    tmp_path: Path, config: Path, server: Server, content: bytes, fault: str, reason: str
) -> None:
    server.files["/tiny.svm"] = content
    server.faults["/tiny.svm"] = [fault] * 50
    if fault == "stall":
        server.files["/tiny.svm"] = b"\n"  # half of it is nothing: no attempt gets further
    words = ("run", config, "--output", tmp_path / "out", "--mirror", server.url)
    ended = svmbench(*words)
    assert ended.code == 0, ended.said
    assert ended.out.count(reason) == 1
    assert "2 cells, 1 to run, 1 unavailable (one for each block and solver of a" in ended.out
    assert "cells: 1 ok, 1 unavailable" in ended.out
    assert statuses(tmp_path / "out") == {"breast-cancer": "ok"}
    assert reason in (tmp_path / "out" / "t.md").read_text()

    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = []
    ended = svmbench(*words)
    assert "2 cells, 1 to run" in ended.out
    assert statuses(tmp_path / "out") == {"tiny": "ok", "breast-cancer": "ok"}


def test_a_mirror_folder_with_wrong_bytes_costs_its_data_set(tmp_path: Path, config: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "tiny.svm").write_bytes(TEXT[:-1])
    words = ("run", config, "--output", tmp_path / "out", "--mirror", mirror)
    ended = svmbench(*words)
    assert ended.code == 0, ended.said
    assert "tiny: tiny.svm has the sha256" in ended.out
    assert "cells: 1 ok, 1 unavailable" in ended.out
    assert "damaged or is another version" in (tmp_path / "out" / "t.md").read_text()
    (mirror / "tiny.svm").unlink()
    (mirror / "tiny.svm").symlink_to(tmp_path / "nowhere")  # there by name, and can't be read
    os.utime(mirror)
    ended = svmbench(*words)
    assert "tiny.svm can't be read: No such file or directory" in ended.out
    assert "cells: 1 ok, 1 unavailable" in ended.out


# ---------------------------------------------------------------- the cache


def test_a_cut_off_array_in_the_cache_is_made_again(tmp_path: Path, private_cache: Path) -> None:
    config = write_config(tmp_path, ["test-works"])
    assert svmbench("run", config, "--output", tmp_path / "first").code == 0
    (array,) = private_cache.glob("prepared/breast-cancer-*/X.npy")
    whole = array.read_bytes()
    array.write_bytes(whole[: len(whole) // 2])
    with pytest.warns(UserWarning, match="the prepared copy was damaged and is prepared again"):
        ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 0, ended.said
    assert array.read_bytes() == whole
    first, again = (cells_of(tmp_path / name)["test-works"] for name in ("first", "out"))
    assert first["metrics"]["objective"] == again["metrics"]["objective"]


def without_the_right_to_write_anywhere() -> None:
    """Let file modes bind this process though it is root's: drop CAP_DAC_OVERRIDE for good."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


def run_on_a_read_only_cache(config: Path, out: Path, cache: Path) -> Ended:
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    modes = [path.stat().st_mode for path in folders]
    for path in folders:
        path.chmod(0o555)
    try:
        words = ("run", config, "--output", out)
        process = start(*words, preexec_fn=without_the_right_to_write_anywhere)
        said, complained = process.communicate(timeout=60)
    finally:
        for path, mode in zip(folders, modes, strict=True):
            path.chmod(mode)
    return Ended(process.returncode, said, complained)


def test_a_read_only_cache_is_one_sentence(tmp_path: Path, private_cache: Path) -> None:
    private_cache.mkdir()
    config = write_config(tmp_path, ["test-works"])
    ended = run_on_a_read_only_cache(config, tmp_path / "out", private_cache)
    assert ended.code == 1
    assert ended.err == (
        f"svmbench: can't write to {private_cache}: Permission denied"
        " (SVMBENCH_CACHE names another place)\n"
    )
    assert list(private_cache.iterdir()) == []


def test_a_read_only_cache_that_has_everything_is_enough(
    tmp_path: Path, private_cache: Path
) -> None:
    config = write_config(tmp_path, ["test-works"])
    assert svmbench("run", config, "--output", tmp_path / "first").code == 0
    before = sorted(private_cache.rglob("*"))
    ended = run_on_a_read_only_cache(config, tmp_path / "out", private_cache)
    assert ended.code == 0, ended.said
    assert "cells: 1 ok" in ended.out
    assert sorted(private_cache.rglob("*")) == before


def test_a_read_only_cache_gives_its_machine_code_to_a_private_temporary_folder(
    tmp_path: Path, private_cache: Path
) -> None:
    module = tmp_path / "modules" / "a_loop.py"
    module.parent.mkdir()
    module.write_text(
        "from svmbench.base import compiled\n@compiled.compiled\ndef loop(x):\n    return x + 1\n"
    )
    code = """if True:
        from a_loop import compiled, loop
        loop(1)
        print(compiled.FOLDER, sum(loop.stats.cache_hits.values()))
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    private_cache.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"TMPDIR": str(temporary), "PYTHONPATH": str(module.parent)}
    environment.pop("NUMBA_DISABLE_JIT", None)

    def loaded(cache: Path) -> tuple[Path, int]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "SVMBENCH_CACHE": str(cache)},
            preexec_fn=without_the_right_to_write_anywhere,
            capture_output=True,
            text=True,
            check=True,
        )
        folder, hits = done.stdout.split()
        return Path(folder), int(hits)

    filled, empty = private_cache / "filled", private_cache / "empty"
    folder, hits = loaded(filled)
    assert folder.is_relative_to(filled)
    assert hits == 0
    before = sorted(private_cache.rglob("*"))
    for place in (private_cache, *(one for one in before if one.is_dir())):
        place.chmod(0o555)
    try:
        elsewhere, hits = loaded(filled)
        assert elsewhere.is_relative_to(temporary)
        assert hits == 1  # copied, not compiled
        shutil.rmtree(temporary / f"svmbench-{os.geteuid()}")
        assert [loaded(empty)[1] for _ in range(2)] == [0, 1]
    finally:
        for place in (private_cache, *(one for one in before if one.is_dir())):
            place.chmod(0o755)
    assert sorted(private_cache.rglob("*")) == before


# ---------------------------------------------------------------- the clock


@pytest.mark.timeout(60)
def test_a_clock_that_jumps_back_changes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the calendar is an hour before the last; so is each at the epoch's seconds."""
    looks = 0

    def backwards() -> str:
        nonlocal looks
        looks += 1
        at = datetime(2026, 1, 31, tzinfo=UTC) - timedelta(hours=looks)
        return at.isoformat(timespec="seconds")

    def seconds() -> float:
        return datetime.fromisoformat(backwards()).timestamp()

    monkeypatch.setattr(loop, "utc_timestamp", backwards)
    monkeypatch.setattr(time, "time", seconds)
    config = write_config(
        tmp_path, ["test-works", "test-turns-back-the-clock", "test-hangs"], timeout_s=2
    )
    out = tmp_path / "out"
    assert svmbench("run", config, "--output", out, "--budget", 5).code == 3
    cells = cells_of(out)
    assert cells.pop("test-hangs")["reason"] == "stopped after 2 s"
    assert [cell["status"] for cell in cells.values()] == ["ok", "ok"]
    for cell in cells.values():
        assert 0 <= cell["wall_s"] < 20
        assert 0 < cell["metrics"]["train_time_s"] < 20
        assert 0 < cell["metrics"]["cpu_time_s"] < 20

    # The newest record is the last in the file, though its date is the earliest.
    ended = svmbench("run", config, "--output", out)
    assert "3 cells, 0 to run" in ended.out
    dates = [line["started"] for line in lines_of(out)]
    assert dates == sorted(dates, reverse=True)
    last = {**cells["test-works"], "started": backwards()}
    last["metrics"] = {**last["metrics"], "objective": 12345.678}
    with (out / "runs.jsonl").open("a") as stream:
        stream.write(f"{json.dumps(last)}\n")
    assert svmbench("table", out).code == 0
    assert "12345.678" in (out / "table.csv").read_text()
    assert np.isfinite(cells["test-works"]["metrics"]["objective"])


# ---------------------------------------------------------------- the disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 512 kB, where this user may."""
    try:
        with mounted(tmp_path / "disk") as place:
            yield place
    except PermissionError:
        pytest.skip("only root may mount a file system")


def sentence_of(process: subprocess.Popen[str]) -> str:
    """Return the one line that a command ends with on standard error, with code 1."""
    said, complained = process.communicate(timeout=300)
    assert process.returncode == 1, said + complained
    assert is_one_sentence(complained), complained
    assert complained.startswith("svmbench: ")
    return complained


@pytest.mark.parametrize("leave", [0, 4 << 10, 12 << 10, 20 << 10, 64 << 10])
def test_a_full_disk_of_results_is_one_sentence(
    tmp_path: Path, private_cache: Path, small_disk: Path, leave: int
) -> None:
    config = write_config(tmp_path, ["test-works", {"name": "test-writes", "params": {"C": 1.0}}])
    out = small_disk / "out"
    fill(small_disk, leave=leave)
    said = sentence_of(start("run", config, "--output", out))
    assert "No space left on device" in said or "is full" in said
    if (out / "runs.jsonl").exists():
        assert {r["status"] for r in lines_of(out)} <= {"ok"}
    # Where there is room again, the same command does the rest.
    make_room(small_disk)
    ended = svmbench("run", config, "--output", out)
    assert ended.code == 0, ended.said
    assert "cells: 2 ok" in ended.out


def test_a_full_cache_leaves_cells_not_run(
    tmp_path: Path, small_disk: Path, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVMBENCH_CACHE", str(small_disk))
    config = write_config(tmp_path, ["test-works"])
    assert svmbench("run", config, "--output", tmp_path / "first").code == 0
    written = {"name": "test-writes", "params": {"C": 0.25}}
    config = write_config(tmp_path, [{"name": "test-works", "label": "a"}, written])
    monkeypatch.setenv("SABOTAGE_PLACE", str(small_disk / "prepared"))
    fill(small_disk, leave=8 << 10)
    out = tmp_path / "out"
    said = sentence_of(start("run", config, "--output", out))
    assert f"the disk that has {small_disk} is full" in said
    assert {r["solver"]: r["status"] for r in lines_of(out)} == {"a": "ok"}
    make_room(small_disk)
    ended = Ended(*((p := start("run", config, "--output", out)).wait(300), *p.communicate()))
    assert ended.code == 0, ended.said
    assert "2 cells, 1 to run" in ended.out


def test_a_cell_that_fills_the_disk_by_itself_has_failed(
    tmp_path: Path, private_cache: Path, small_disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    solvers = [{"name": "test-writes", "params": {"C": 8.0}}, "test-works"]
    ended = svmbench("run", write_config(tmp_path, solvers), "--output", small_disk / "out")
    assert ended.code == 3, ended.said
    cells = cells_of(small_disk / "out")
    assert cells["test-writes"]["status"] == "failed"
    assert "No space left on device" in cells["test-writes"]["reason"]
    assert cells["test-works"]["status"] == "ok"


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(122, "Disk quota exceeded"), True),
        (OSError("2048 requested and 128 written"), True),  # NumPy's
        (PermissionError(13, "Permission denied"), False),
        (ValueError("28"), False),
    ],
)
@pytest.mark.parametrize("has_room", [True, False])
def test_what_is_said_of_a_cell_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_full: bool, has_room: bool
) -> None:
    """Whatever wraps the error: a cell is not run where the disk is full, else it has failed."""

    def fail(*_: object) -> None:
        try:
            raise error
        except Exception as cause:
            raise RuntimeError("it went wrong") from cause

    limits: worker.Limits = {"memory_gb": 1.0, "threads": 1}
    monkeypatch.setattr(worker, "_set_limits", lambda _: None)
    monkeypatch.setattr(worker, "_has_room", lambda _: has_room)
    monkeypatch.setattr(worker, "_run", fail)
    monkeypatch.setattr(worker, "_make_shared_arrays", fail)
    said = worker.run_cell({}, None, str(tmp_path / "points.jsonl"), {}, limits)  # type: ignore[typeddict-item]
    assert said["status"] == ("not run" if is_full and not has_room else "failed")
    assert worker.make_shared_arrays({}, str(tmp_path / "arrays"), limits)["status"] == "failed"  # type: ignore[typeddict-item]


def test_no_arrays_are_shared_beyond_the_end_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = SharedArrays("key", {}, 1000)  # type: ignore[typeddict-item]
    cells = [SimpleNamespace(shared=arrays)] * 2
    run = SimpleNamespace(options=loop.Options(), folder=SimpleNamespace(scratch=tmp_path))
    for free, made in ((1000, ["key"]), (999, [])):
        monkeypatch.setattr(loop.shutil, "disk_usage", lambda _, n=free: SimpleNamespace(free=n))
        assert list(loop.RunLoop._shared_arrays(run, cells)) == made  # type: ignore[arg-type]
