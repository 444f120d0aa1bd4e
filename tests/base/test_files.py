"""Other people's results folders: no command follows a link in one, or waits for a pipe."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foreign_folders import COMMANDS, PLACES, followed, make_run, tree
from runs import svmbench
from script_loading import load_script

from svmbench.base import files
from svmbench.base.errors import ResultsError
from svmbench.experiment.plan.keys import names_own_module
from svmbench.report.gate.sides import read_side
from svmbench.report.output.builder import read_content
from svmbench.report.reading import newest, records, shapes
from svmbench.report.reading.folders import run_folders
from svmbench.report.reading.records import result_lines
from svmbench.report.tables.tidy import tidy_lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with everything that a results folder may hold; return its folder."""
    return make_run(tmp_path_factory.mktemp("made"))


#: Kinds of things that may lie there; all but the first are tried where most can go wrong.
KINDS = ("private", "pipe", "nowhere", "endless", "folder", "device")
INPUTS = ("plan.json", "runs.jsonl", "ENVIRONMENT", "artifacts/KEY.npz", ".lock", ".scratch")
#: What hidden files concern.
RUNS = ("run", "fresh", "reuse", "keep_results")


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        pytest.param(kind, place, marks=[] if kind in KINDS[:2] else pytest.mark.slow)
        for kind in KINDS
        for place in (PLACES if kind == KINDS[0] else INPUTS)
    ],
)
def test_no_command_follows_what_lies_in_a_results_folder(
    tmp_path: Path, made: Path, kind: str, place: str
) -> None:
    for name in RUNS if place.startswith(".") else COMMANDS:
        said = followed(made, tmp_path / name, name, [(kind, place)])
        assert not said, said


def test_the_folder_that_is_named_may_be_a_link(tmp_path: Path, made: Path) -> None:
    shutil.copytree(made, tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert svmbench("table", tmp_path / "link").code == 0


def test_what_is_hidden_is_no_run(tmp_path: Path, made: Path) -> None:
    shutil.copytree(made, tmp_path / ".kept.0123abcd" / "made")
    shutil.copytree(made, tmp_path / "run")
    assert run_folders(tmp_path) == [tmp_path / "run"]
    hidden = tmp_path / ".kept.0123abcd"
    assert run_folders(hidden) == [hidden / "made"]


@pytest.mark.parametrize(
    "entry",
    ["svmbench./etc/hostname", "svmbench.", "svmbench...x", "svmbench.a/../../x", "svmbench", "os"],
)
def test_a_plan_names_no_file_outside_the_package(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    from svmbench.experiment.plan import keys, present_code

    assert not names_own_module(entry)
    run = shutil.copytree(made, tmp_path / "run")
    plan = json.loads((run / "plan.json").read_text())
    plan["code"]["entries"] = [[entry] for _ in plan["code"]["entries"]]
    (run / "plan.json").write_text(json.dumps(plan))
    asked: list[str] = []
    read = keys.source_path

    def source(module: str) -> Path:
        asked.append(module)
        return read(module)

    monkeypatch.setattr(keys, "source_path", source)
    assert present_code.code_changes(run) == {}
    assert entry not in asked


@pytest.mark.slow
def test_a_counter_that_is_no_number_damages_its_record(tmp_path: Path, made: Path) -> None:
    """A list may stand for a spread alone, and there for a range: two numbers."""
    lists = [[1, 2, 3], [1], [], [None, 1], [[1], 2]]
    wrong = [("counters", value) for value in [*lists, [1, 2]]]
    wrong += [("metrics", value) for value in [*lists, [1, 2]]]
    wrong += [("spread", value) for value in lists]
    for name, value in wrong:
        run = shutil.copytree(made, tmp_path / "run")
        record = json.loads((run / "runs.jsonl").read_text())
        record[name] = {**record[name], "train_time_s": value, "updates": value}
        (run / "runs.jsonl").write_text(json.dumps(record) + "\n")
        # A site reads records as the others do, and takes longest: one wrong value of each field.
        commands = ["table", "compare", *(["site"] if value is lists[0] else [])]
        for command in commands:
            ended = COMMANDS[command](run)
            assert ended.code in (0, 1), (name, value, ended.said)
            assert "--debug" not in ended.said, (name, value, ended.said)
        assert "1 unreadable line" in (run / "tables.md").read_text(), (name, value)
        shutil.rmtree(run)
        shutil.rmtree(tmp_path.parent / "site", ignore_errors=True)


def test_a_line_without_end_is_damaged_and_takes_little(tmp_path: Path, made: Path) -> None:
    from svmbench.schema.record import MAX_RECORD_BYTES

    run = shutil.copytree(made, tmp_path / "run")
    whole = (run / "runs.jsonl").read_bytes()
    with (run / "runs.jsonl").open("r+b") as stream:
        stream.truncate(3 * MAX_RECORD_BYTES)  # zeros that take no room on the disk
        stream.seek(0, os.SEEK_END)
        stream.write(b"\n" + whole)
    assert svmbench("table", run).code == 0
    text = (run / "tables.md").read_text()
    assert "1 of 1 cells have results" in text
    assert "unreadable line" in text


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    with place.open("wb") as stream:
        stream.truncate(files.MAX_WHOLE_BYTES + 1)
    with pytest.raises(OSError, match="more than the"):
        files.read_bytes(place)
    with place.open("wb") as stream:
        stream.truncate(files.MAX_STREAMED_BYTES + 1)
    with pytest.raises(OSError, match="more than the"):
        files.open_file(place)


@pytest.mark.parametrize("name", ["plan.json", "baseline.json"])
@pytest.mark.parametrize("what", ["values", "bytes", "cells"])
def test_json_without_measure_is_one_sentence(
    tmp_path: Path, made: Path, name: str, what: str
) -> None:
    run = shutil.copytree(made, tmp_path / "runs" / "run")
    for other in {"plan.json", "baseline.json"} - {name}:
        (run / other).unlink()
    with (run / name).open("w") as stream:
        if what == "values":
            stream.write('{"cells": [' + "{}," * files.MAX_JSON_SIGNS + "{}]}")
        elif what == "cells":
            cells = '{"key": "k"},' * shapes.MAX_PLAN_CELLS + '{"key": "k"}'
            stream.write(f'{{"schema": 1, "cells": [{cells}]}}')
        else:
            stream.truncate(files.MAX_JSON_BYTES + 1)
    commands = ("table", "compare", "keep") if name == "plan.json" else ("compare",)
    for command in commands:
        ended = COMMANDS[command](run)
        assert ended.code in (1, 2), (command, ended.said)
        assert ended.err.count("\n") == 1, ended.err
        assert re.search("more than the|at most [0-9,]+ are allowed", ended.err), ended.err


def test_cells_that_share_a_key_show_its_points_within_measure(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(made, tmp_path / "run")
    plan = json.loads((run / "plan.json").read_text())
    (cell,) = plan["cells"]
    plan["cells"] = 100 * [cell]
    (run / "plan.json").write_text(json.dumps(plan))
    point = {"schema": 1, "kind": "point", "key": cell["key"], "metrics": {}, "dimensions": {}}
    with (run / "runs.jsonl").open("a") as stream:
        stream.writelines(json.dumps({**point, "point": str(i)}) + "\n" for i in range(99))
    monkeypatch.setattr(records, "MAX_SHOWN_CELLS", 10_000)
    assert svmbench("table", run).code == 0
    monkeypatch.setattr(records, "MAX_SHOWN_CELLS", 9_999)
    ended = svmbench("table", run)
    assert ended.code == 2
    assert "it has 10,000 cells and points, but a report shows at most 9,999" in ended.err


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "one"
        raise OSError(28, "No space left on device")

    place = tmp_path / "file"
    files.write_text(place, ["old", "er"])
    with pytest.raises(ResultsError, match="No space left"):
        files.write_text(place, pieces())
    assert tree(tmp_path) == {"file": b"older"}


#: Modules that read or write files of results folders, and what else they open, and why.
OPENERS = (
    "report/**/*.py",
    "papers/**/*.py",
    "site/**/*.py",
    "experiment/run/record_file.py",
    "experiment/run/loop.py",
    "experiment/run/execute.py",
)
OPENERS += (
    "experiment/run/forecast.py",
    "experiment/plan/present_code.py",
    "experiment/run/cluster.py",
)
MAY_OPEN = {
    "report/plots/drawing.py": {"open", "read_bytes"},  # a picture in memory; sources of programs
    # What is made is a new folder of this process's own.
    "site/pages.py": {"read_text", "write_text"},
    "site/runs.py": {"write_text", "write_bytes"},
    "site/download.py": {"open", "read_bytes", "write_text"},
    "site/ranks.py": {"write_text"},
    "site/folder.py": {"write_text"},
    "report/output/kept.py": {"write_bytes", "touch"},
    # Entries of an open ZIP file, into such a folder.
    "report/output/packs.py": {"open", "copyfileobj"},
}
OPENS = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "memmap"),
    *("copy", "copyfile", "copyfileobj", "copy2", "copytree", "move", "savez_compressed"),
}  # fmt: skip


def opened(source: str) -> set[str]:
    """Return the calls of a module that open files by themselves."""
    calls = {node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    return {
        call.attr
        for call in calls
        if isinstance(call, ast.Attribute)
        and call.attr in OPENS
        and not (isinstance(call.value, ast.Name) and call.value.id == "files")
    } | {call.id for call in calls if isinstance(call, ast.Name) and call.id == "open"}


def test_files_of_results_folders_are_opened_in_one_place() -> None:
    package = ROOT / "svmbench"
    for module in sorted({path for pattern in OPENERS for path in package.glob(pattern)}):
        name = module.relative_to(package).as_posix()
        found = opened(module.read_text(encoding="utf-8"))
        assert found <= MAY_OPEN.get(name, set()), f"{name}: open it with svmbench.base.files"
    assert opened("open(x); p.read_text(); files.read_bytes(p); shutil.copytree(a, b)") == {
        *("open", "read_text", "copytree")
    }


#: What a record may take of the memory while a folder is read and shown, bytes; it is measured with
#: 1,430 to 1,460. Records held as they were parsed took 8,000 to 9,100.
MOST_PER_RECORD = 3000


def shown(run: Path) -> None:
    """Read a run, lay out its table, and go through all its numbers."""
    content = read_content(run)
    assert sum(1 for _ in tidy_lines(content.run, content.tables)) > len(content.run.cells)


@pytest.mark.slow
@pytest.mark.parametrize("use", [shown, read_side, lambda run: sum(1 for _ in result_lines(run))])
def test_what_a_record_takes_of_the_memory(tmp_path: Path, use: Callable[[Path], object]) -> None:
    """Allocations are counted, of so many records more: the same on every machine."""
    write = load_script("measure_runner", "results/perf").write_run
    peaks = []
    for number in (1000, 5000):
        run = write(tmp_path / str(number), number)
        tracemalloc.start()
        use(run)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 4000 < MOST_PER_RECORD


def test_what_is_held_once_is_what_was_read() -> None:
    once = newest.ValueStore()
    for said in ({"a": 1, "b": 0.5}, {"a": True, "b": None}, {"a": 1.0, "b": [1, 2]}, {}):
        for held in (once(said), once.names(said)):
            assert repr(dict(held)) == repr(said)
            assert held == said
            assert held.get("b") == said.get("b")
            assert ("a" in held, "c" in held, held.get("c", 7)) == ("a" in said, False, 7)
    assert once({"a": 1}) is once({"a": 1})
    assert once({"a": 1}) is not once({"a": True})
