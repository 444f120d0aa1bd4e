"""Keeping a run as reference: records, tables and plots in one step, or nothing."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import synthetic_runs as runs
from script_loading import load_script

from svmbench.base import files
from svmbench.base.errors import ResultsError
from svmbench.report.gate.compare import compare_folders
from svmbench.report.gate.sides import read_side
from svmbench.report.output import kept
from svmbench.report.output.builder import build
from svmbench.report.reading import newest, records
from svmbench.report.reading.records import read_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def keep_results() -> ModuleType:
    return load_script("keep_results")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    build(runs.alsvm_run(folder))
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """Return a finished run folder beside what was kept of an earlier one."""
    folder = shutil.copytree(finished, tmp_path / "one-paper")
    (folder / "environment-0000.json").write_text("{}")
    former = tmp_path / "alsvm" / "alsvm_table2"
    former.mkdir(parents=True)
    (former / "t.csv").write_text("old")
    (former / "gone.svg").write_text("old")
    return folder


def target(run: Path) -> Path:
    """Return the only folder that lies kept; nothing else may lie beside it."""
    (folder,) = (run.parent / "alsvm").iterdir()
    return folder


def is_as_before(run: Path) -> bool:
    return {path.name: path.read_text() for path in target(run).iterdir()} == {
        "t.csv": "old",
        "gone.svg": "old",
    }


def test_a_finished_run_replaces_what_was_kept(run: Path, keep_results: ModuleType) -> None:
    folder = keep_results.keep(run)
    assert folder == target(run) == run.parent / "alsvm" / "alsvm_table2"
    made = {path.name for path in run.iterdir()} - {"environment-0000.json", "runs.jsonl"}
    assert {path.name for path in folder.iterdir()} == made | {"runs.jsonl.xz"}
    for name in made:
        assert (folder / name).read_bytes() == (run / name).read_bytes(), name
    assert kept.rebuild_differences(folder) == []
    # Kept records are read like those of a run.
    assert compare_folders(read_side(run), read_side(folder)).changes == ()
    assert keep_results.keep(run, "another").name == "another"


@pytest.mark.slow
def test_what_is_kept_is_what_tables_need(run: Path, keep_results: ModuleType) -> None:
    lines = [json.loads(line) for line in (run / "runs.jsonl").read_text().splitlines()]
    newer = {**lines[0], "metrics": {"train_time_s": 7.0, "accuracy_pct": 7.0}}
    key = {"schema": 1, "kind": "point", "key": lines[0]["key"]}
    step = {**key, "point": "0/0", "accuracy_pct": 1.0}
    result = {**key, "point": "1", "dimensions": {"solver.C": 1}, "metrics": {"updates": 1.0}}
    stranger = {**lines[0], "key": "0" * 12}
    with (run / "runs.jsonl").open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in (newer, stranger, step, result))
    build(run)
    packed = (keep_results.keep(run) / "runs.jsonl.xz").read_bytes()
    found = [json.loads(line) for line in lzma.decompress(packed).decode().splitlines()]
    assert found == [result, newer, *lines[1:]]
    assert packed == kept.compress_records(found)
    assert (keep_results.keep(run) / "runs.jsonl.xz").read_bytes() == packed


@pytest.mark.slow
def test_a_kept_folder_that_is_not_what_its_records_make_is_told_and_made_again(
    run: Path, keep_results: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = keep_results.keep(run)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "table2.md").write_text("a better number")
    (folder / "times.svg").write_bytes(before["times.svg"].replace(b"#404040", b"#404041"))
    (folder / "times.png").write_bytes(b"other pixels")
    (folder / "accuracies.png").unlink()
    (folder / "notes.csv").write_text("")
    rebuild = load_script("rebuild_results")
    assert rebuild.main(["--check", str(folder)]) == 1
    said = capsys.readouterr().out.splitlines()
    expected = [
        f"{folder}/accuracies.png: is missing",
        f"{folder}/notes.csv: the records don't make it",
        f"{folder}/table2.md: differs from what the records make",
        f"{folder}/times.svg: differs from what the records make",
    ]
    assert said == expected
    assert rebuild.main([str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == expected
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert rebuild.main(["--check", str(folder)]) == 0
    assert capsys.readouterr().out == "nothing differs\n"


@pytest.mark.slow
def test_a_run_of_the_users_own_is_no_kept_result(run: Path, keep_results: ModuleType) -> None:
    folder = keep_results.keep(run)
    root = folder.parent.parent
    beside = Path(shutil.copytree(run, root / "own-quick"))
    nested = Path(shutil.copytree(run, folder.parent / "own"))
    assert kept.folders(root) == [folder]
    assert all((place / "tables.md").is_file() for place in (beside, nested))


@pytest.mark.slow
def test_pictures_of_another_matplotlib_are_not_compared_and_this_is_said(
    run: Path, keep_results: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = keep_results.keep(run)
    svg = (folder / "times.svg").read_bytes()
    assert kept.drawn_by(svg)
    other = svg.replace(f"Matplotlib v{kept.drawn_by(svg)}".encode(), b"Matplotlib v1.0")
    (folder / "times.svg").write_bytes(other.replace(b"#404040", b"#404041"))
    assert kept.rebuild_differences(folder) == []
    assert load_script("rebuild_results").main(["--check", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said == f"{folder}: SVGs by matplotlib 1.0 are not compared\nnothing differs\n"


@pytest.mark.slow
def test_pictures_of_another_cpu_are_compared_up_to_last_bits(
    run: Path, keep_results: ModuleType
) -> None:
    """Logarithms differ in their last bits between CPUs, and names of clip paths hash these."""
    folder = keep_results.keep(run)
    path = folder / "times.svg"
    svg = path.read_bytes()
    (name, *_) = re.findall(rb"#(p[0-9a-f]{10})", svg)
    first = re.search(rb"M (\d+\.\d{6})", svg)
    assert first is not None
    for moved, is_equal in ((1e-6, True), (1e-5, False)):
        number = b"M %.6f" % (float(first[1]) + moved)
        path.write_bytes(svg.replace(name, b"p0123456789").replace(first[0], number))
        assert (kept.rebuild_differences(folder) == []) is is_equal
    path.write_bytes(svg.replace(name, b"p0123456789", 1))
    assert kept.rebuild_differences(folder) != []


def test_a_folder_without_records_is_marked_once(tmp_path: Path) -> None:
    (tmp_path / "tables.md").write_text("# A title\n\nConfig `x`.\n\n## A table\n")
    (found,) = kept.rebuild_differences(tmp_path)
    assert found.endswith("tables.md: not marked: records not kept")
    assert kept.rebuild_folder(tmp_path) == [found]
    text = (tmp_path / "tables.md").read_text()
    assert text == f"# A title\n\n{kept.NOT_KEPT}\n\nConfig `x`.\n\n## A table\n"
    assert kept.rebuild_folder(tmp_path) == []
    assert (tmp_path / "tables.md").read_text() == text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("runs.jsonl.xz", b"no xz"),
        ("runs.jsonl.xz", kept.compress_records([{"a": 1}])[:-9]),
        ("runs.jsonl.xz", 2 * kept.compress_records([{"a": 1}])),
    ],
)
def test_damaged_kept_records_are_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    runs.alsvm_run(tmp_path)
    (tmp_path / "runs.jsonl").unlink()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ResultsError, match=r"can't read .*runs\.jsonl\.xz: "):
        build(tmp_path)


def test_packed_records_that_would_fill_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [runs.planned("cv", "a9a", "alsvm")]
    folder = runs.write_run(tmp_path, cells, [])
    (folder / "runs.jsonl").unlink()
    (folder / "runs.jsonl.xz").write_bytes(kept.compress_records([{"a": "x" * 5000}]))
    with monkeypatch.context() as patch:
        patch.setattr(newest, "MAX_DECOMPRESSED_RECORDS_BYTES", 4000)
        with pytest.raises(ResultsError, match=r"runs\.jsonl\.xz: it has more than 4,000 bytes"):
            read_run(folder)
    monkeypatch.setattr(newest, "MAX_COMPRESSED_RECORDS_LINES", 4000)
    for line in (b"{}\n", b"\n"):
        (folder / "runs.jsonl.xz").write_bytes(lzma.compress(line * 5000))
        with pytest.raises(ResultsError, match=r"runs\.jsonl\.xz: it has more than 4,000 lines"):
            read_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", ["MAX_DECOMPRESSED_RECORDS_BYTES", "MAX_COMPRESSED_RECORDS_LINES"]
)
def test_what_could_not_be_read_back_is_not_kept(
    run: Path, keep_results: ModuleType, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Exactly what can be packed can be read: a limit that just holds, and one less."""
    lines = list(records.result_lines(run))
    packed = kept.compress_records(lines)
    size = {
        "MAX_DECOMPRESSED_RECORDS_BYTES": len(lzma.decompress(packed)),
        "MAX_COMPRESSED_RECORDS_LINES": len(lines),
    }[limit]
    monkeypatch.setattr(newest, limit, size)
    assert keep_results.keep(run).is_dir()
    assert list(records.result_lines(run.parent / "alsvm" / "alsvm_table2")) == lines
    monkeypatch.setattr(newest, limit, size - 1)
    with pytest.raises(SystemExit, match=r"can't pack .* can be read back"):
        keep_results.keep(run)


def test_unpacked_records_of_any_size_are_read_back(tmp_path: Path) -> None:
    """What is packed may be larger than what is held of it at a time."""
    cells = [runs.planned("cv", "a9a", "alsvm", fold) for fold in range(400)]
    made = [runs.record(cell, {"train_time_s": 0.1}, reason="x" * 4000) for cell in cells]
    folder = runs.write_run(tmp_path, cells, made)
    before = read_run(folder).cells
    (folder / "runs.jsonl.xz").write_bytes(kept.compress_records(records.result_lines(folder)))
    (folder / "runs.jsonl").unlink()
    assert read_run(folder).cells == before
    assert len(before) == 400


@pytest.mark.parametrize("key", ["../../x", "a/b", "", "a\x00b", "k" * 129])
def test_a_key_that_would_name_a_file_elsewhere_is_refused(tmp_path: Path, key: str) -> None:
    cell = {**runs.planned("cv", "a9a", "alsvm"), "key": key}
    with pytest.raises(ResultsError, match="is no cell's key"):
        read_run(runs.write_run(tmp_path, [cell], []))


def test_an_unfinished_run_leaves_what_was_kept(run: Path, keep_results: ModuleType) -> None:
    (run / "tables.md").unlink()
    with pytest.raises(SystemExit, match="is unfinished: it has no tables"):
        keep_results.keep(run)
    assert is_as_before(run)


def test_a_copy_that_fails_leaves_what_was_kept(
    run: Path, keep_results: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept, "copy", fail)
    with pytest.raises(SystemExit, match=r"can't keep it in .*No space left"):
        keep_results.keep(run)
    assert is_as_before(run)


@pytest.mark.slow
def test_a_swap_that_fails_puts_back_what_was_kept(
    run: Path, keep_results: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.name == "made":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(KeyboardInterrupt):
        keep_results.keep(run)
    assert is_as_before(run)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def killed_at(step: str, when: str, target: Path, *, exchanges: bool) -> bool:
    """Replace a folder in a process that is killed before or after a step; return whether it was.

    A step is the number of a call that renames.
    """
    child = os.fork()
    if child == 0:
        calls = 0

        def killing(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*words: Any) -> Any:
                nonlocal calls
                calls += 1
                if when == "before" and calls == int(step):
                    os.kill(os.getpid(), signal.SIGKILL)
                found = function(*words)
                if when == "after" and calls == int(step):
                    os.kill(os.getpid(), signal.SIGKILL)
                return found

            return call

        Path.rename = killing(Path.rename)  # type: ignore[method-assign]
        files._exchange = killing(files._exchange) if exchanges else (lambda *_: False)
        with files.replaced(target) as made:
            (made / "new").write_text("new")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_kill_at_any_step_loses_no_folder(tmp_path: Path, exchanges: bool) -> None:
    deaths = 0
    for step in ("1", "2"):
        for when in ("before", "after"):
            place = tmp_path / f"{step}-{when}"
            target = place / "kept [1]"
            target.mkdir(parents=True)
            (target / "old").write_text("old")
            deaths += killed_at(step, when, target, exchanges=exchanges)
            whole = [["old"], ["new"]]
            if exchanges and files._exchange(place, place):
                assert names_in(target) in whole
            files.restore_below(tmp_path)
            assert names_in(target) in whole
            with files.replaced(target) as made:
                (made / "third").write_text("third")
            assert names_in(target) == ["third"]
            assert names_in(place) == ["kept [1]"]
    assert deaths == (2 if exchanges else 4)


def test_what_another_process_makes_is_left_alone(tmp_path: Path) -> None:
    with files.replaced(tmp_path / "kept") as made:
        files.restore(tmp_path / "kept")
        assert made.is_dir()
    assert (tmp_path / "kept").is_dir()


@pytest.mark.parametrize("plan", ["[", "[]", '{"config": []}', '{"config": {"name": "one"}}'])
def test_what_is_no_plan_is_a_sentence(run: Path, keep_results: ModuleType, plan: str) -> None:
    (run / "plan.json").write_text(plan)
    with pytest.raises(SystemExit, match="is no run folder"):
        keep_results.keep(run)
