"""Other people's results folders: no command follows a link in one, or waits for a pipe."""

from __future__ import annotations

import ast
import json
import lzma
import os
import resource
import shutil
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from runs import Ended, svmbench, write_config
from script_loading import load_script

from svmbench.base import files
from svmbench.base.errors import ResultsError, SvmbenchError
from svmbench.experiment.plan.keys import names_own_module
from svmbench.report import kept, newest
from svmbench.report.builder import read_content
from svmbench.report.folders import run_folders
from svmbench.report.records import result_lines
from svmbench.report.sides import read_side
from svmbench.report.tidy import tidy_lines

ROOT = Path(__file__).resolve().parents[2]
MARKER = "precious-7c1f"
#: How long a command may take before it is thought to wait for ever, on a loaded machine, seconds.
PATIENCE_S = 120
#: How much memory a command may take beside what the tests hold.
MOST_BYTES = 2 << 30


@pytest.fixture(scope="module")
def made(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with everything that a results folder may hold; return its folder."""
    place = tmp_path_factory.mktemp("made")
    config = write_config(place, ["test-works"])
    out = place / "run"
    assert svmbench("run", config, "--output", out).code == 0
    assert svmbench("keep", out, out).code == 0
    plan = json.loads((out / "plan.json").read_text())
    plan["plots"] = [{"name": "plane", "kind": "decision", "block": "main"}]
    (out / "plan.json").write_text(json.dumps(plan))
    (out / "artifacts").mkdir()
    axis = np.linspace(0, 1, 3)
    arrays = {"grid_x": axis, "grid_y": axis, "decision": np.outer(axis, axis) - 0.5}
    arrays |= {"X": np.eye(2), "y": np.array([-1, 1])}
    np.savez(out / "artifacts" / f"{plan['cells'][0]['key']}.npz", **arrays)  # type: ignore[arg-type]
    assert svmbench("table", out).code == 0
    return out


def rebuild(run: Path) -> Ended:
    """Look at a run folder as kept, and make it again."""
    script = load_script("rebuild_results")
    try:
        return Ended(script.main([str(run)]), "", "")
    except SystemExit as end:
        return Ended(1, "", str(end.code))


def keep(run: Path) -> Ended:
    """Keep a run among reference results."""
    try:
        kept.keep(run, run.parent / "reference")
    except SvmbenchError as error:
        return Ended(1, "", str(error))
    return Ended(0, "", "")


def again(run: Path, *words: object, output: Path | None = None) -> Ended:
    """Run the config beside the results once more."""
    return svmbench("run", run.parents[1] / "config.yaml", "--output", output or run, *words)


#: Every command that reads or writes a results folder, as what it does with one.
COMMANDS: dict[str, Callable[[Path], Ended]] = {
    "table": lambda run: svmbench("table", run),
    "latex": lambda run: svmbench("table", run, "--format", "latex"),
    "compare": lambda run: svmbench("compare", run, run),
    "keep": lambda run: svmbench("keep", run, run.parent / "baseline"),
    "claims": lambda run: svmbench("claims", run.parent, "--paper", "smo"),
    "site": lambda run: svmbench("site", run.parent, "-o", run.parents[1] / "site"),
    "refresh": lambda run: svmbench("refresh", run, "--dry-run"),
    "forecast": lambda run: again(run, "--dry-run"),
    "reuse": lambda run: again(run, "--reuse", run, output=run.parent / "other"),
    "keep_results": keep,
    "rebuild_results": rebuild,
    "fresh": lambda run: again(run, "--fresh"),
    "run": again,
}

#: Every place of a results folder where something may lie; ENVIRONMENT and KEY are filled in.
PLACES = (
    *("plan.json", "runs.jsonl", "runs.jsonl.xz", "ENVIRONMENT", "baseline.json"),
    *("artifacts", "artifacts/KEY.npz", "table.csv", "tables.md", "t.md", "latex", ".lock"),
    *(".scratch", ".scratch/points", ".scratch/points/KEY.jsonl", ".scratch/points/KEY.npz"),
    *(".scratch/points/KEY.partial", ".scratch/points/KEY.files", ".scratch/shared"),
    ".plan.json.partial",
)


def put(kind: str, place: Path, private: Path) -> None:
    """Put something in the place of a file or folder."""
    is_folder = place.is_dir()
    theirs = private / "theirs"
    if not is_folder and place.exists():
        packed = place.suffix == ".xz"
        theirs.write_bytes(place.read_bytes() if packed else marked(place.read_bytes()))
    elif is_folder or place.suffix in ("", ".files"):
        (theirs / "shared").mkdir(parents=True)
        (theirs / "shared" / "kept").write_text(MARKER)
        for name in os.listdir(place) if is_folder else []:  # noqa: PTH208
            if (place / name).is_file():
                (theirs / name).write_bytes(marked((place / name).read_bytes()))
    else:
        theirs.write_text(MARKER)
    if is_folder:
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        (place / "full").mkdir(parents=True)
    else:
        targets = {"private": theirs, "endless": "/dev/zero", "nowhere": private / "nowhere"}
        place.symlink_to(targets[kind])


def marked(content: bytes) -> bytes:
    """Return a file's content that reads as before, and is known by a word."""
    said = json.dumps(MARKER).encode()
    for name in (b'"title": ', b'"cpu": ', b'"reason": ', b'"stop_reason": '):
        head, found, rest = content.partition(name)
        if found:
            return head + found + said + b", " + name.replace(b'"', b'"other_', 1) + rest
    return content + MARKER.encode()


@contextmanager
def fenced() -> Iterator[None]:
    """Fail in the place of waiting for ever, or of filling the memory."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("it waits for ever")

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text()
    held = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData"))
    before = signal.signal(signal.SIGALRM, late)
    left = signal.getitimer(signal.ITIMER_REAL)
    resource.setrlimit(resource.RLIMIT_DATA, (held * 1024 + MOST_BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *left)
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def tree(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, and that other things are there."""
    found = {}
    for root, folders, names in os.walk(folder):
        for path in (Path(root, name) for name in (*folders, *names)):
            is_file = path.is_file() and not path.is_symlink()
            found[path.relative_to(folder).as_posix()] = path.read_bytes() if is_file else b""
    return found


#: Kinds of things that may lie there; all but the first are tried where most can go wrong.
KINDS = ("private", "pipe", "nowhere", "endless", "folder")
INPUTS = ("plan.json", "runs.jsonl", "ENVIRONMENT", "artifacts/KEY.npz", ".lock", ".scratch")
#: What hidden files concern.
RUNS = ("run", "fresh", "reuse", "keep_results")


@pytest.mark.parametrize(
    ("kind", "place"),
    [(kind, place) for kind in KINDS for place in (PLACES if kind == KINDS[0] else INPUTS)],
)
def test_no_command_follows_what_lies_in_a_results_folder(
    tmp_path: Path, made: Path, kind: str, place: str
) -> None:
    private = tmp_path / "private"
    for name in RUNS if place.startswith(".") else COMMANDS:
        theirs = tmp_path / name
        run = theirs / "results" / "run"
        private.mkdir()
        shutil.copytree(made, run)
        shutil.copy(made.parent / "config.yaml", theirs)
        (environment,) = (path.name for path in run.glob("environment-*.json"))
        (arrays,) = (path.stem for path in run.glob("artifacts/*.npz"))
        if place == "runs.jsonl.xz":
            packed = lzma.compress(marked((run / "runs.jsonl").read_bytes()))
            (run / place).write_bytes(packed)
            (run / "runs.jsonl").unlink()
        put(kind, run / place.replace("ENVIRONMENT", environment).replace("KEY", arrays), private)
        before = tree(private)
        with fenced():
            ended = COMMANDS[name](run)
        assert "--debug shows where" not in ended.said, (name, ended.said)
        assert "Traceback" not in ended.said, (name, ended.said)
        assert ended.code in (0, 1, 2, 4), (name, ended.said)
        assert tree(private) == before, name
        shown = {path for path, content in tree(theirs).items() if MARKER.encode() in content}
        shown |= {
            path for path, content in tree(theirs).items() if content and content in before.values()
        }
        assert not shown, name
        assert MARKER not in ended.said, name
        shutil.rmtree(private)
        shutil.rmtree(theirs)


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
    from svmbench.experiment.plan import freshness, keys

    assert not names_own_module(entry)
    run = shutil.copytree(made, tmp_path / "run")
    plan = json.loads((run / "plan.json").read_text())
    plan["code"]["entries"] = [[entry] for _ in plan["code"]["entries"]]
    (run / "plan.json").write_text(json.dumps(plan))
    asked: list[str] = []
    read = keys.source_of

    def source(module: str) -> Path:
        asked.append(module)
        return read(module)

    monkeypatch.setattr(keys, "source_of", source)
    assert freshness.changes(run) == {}
    assert entry not in asked


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
        for command in ("table", "compare", "site"):
            ended = COMMANDS[command](run)
            assert ended.code in (0, 1), (name, value, ended.said)
            assert "--debug" not in ended.said, (name, value, ended.said)
        assert "1 unreadable line" in (run / "tables.md").read_text(), (name, value)
        shutil.rmtree(run)
        shutil.rmtree(tmp_path.parent / "site", ignore_errors=True)


def test_a_line_without_end_is_damaged_and_takes_little(tmp_path: Path, made: Path) -> None:
    from svmbench.schema.record import LONGEST_LINE_BYTES

    run = shutil.copytree(made, tmp_path / "run")
    whole = (run / "runs.jsonl").read_bytes()
    with (run / "runs.jsonl").open("r+b") as stream:
        stream.truncate(3 * LONGEST_LINE_BYTES)  # zeros that take no room on the disk
        stream.seek(0, os.SEEK_END)
        stream.write(b"\n" + whole)
    assert svmbench("table", run).code == 0
    text = (run / "tables.md").read_text()
    assert "1 of 1 cells have results" in text
    assert "unreadable line" in text


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    with place.open("wb") as stream:
        stream.truncate(files.MOST_BYTES_WHOLE + 1)
    with pytest.raises(OSError, match="more than the"):
        files.read_bytes(place)
    with place.open("wb") as stream:
        stream.truncate(files.MOST_BYTES_STREAMED + 1)
    with pytest.raises(OSError, match="more than the"):
        files.open_file(place)


@pytest.mark.parametrize("name", ["plan.json", "baseline.json"])
@pytest.mark.parametrize("what", ["values", "bytes"])
def test_json_without_measure_is_one_sentence(
    tmp_path: Path, made: Path, name: str, what: str
) -> None:
    run = shutil.copytree(made, tmp_path / "runs" / "run")
    for other in {"plan.json", "baseline.json"} - {name}:
        (run / other).unlink()
    with (run / name).open("w") as stream:
        if what == "values":
            stream.write('{"cells": [' + "{}," * files.MOST_SIGNS_JSON + "{}]}")
        else:
            stream.truncate(files.MOST_BYTES_JSON + 1)
    commands = ("table", "compare", "keep") if name == "plan.json" else ("compare",)
    for command in commands:
        ended = COMMANDS[command](run)
        assert ended.code in (1, 2), (command, ended.said)
        assert ended.err.count("\n") == 1, ended.err
        assert "more than the" in ended.err, ended.err


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
    "experiment/run/records.py",
    "experiment/run/loop.py",
    "experiment/run/execute.py",
)
OPENERS += (
    "experiment/run/forecast.py",
    "experiment/plan/freshness.py",
    "experiment/run/cluster.py",
)
MAY_OPEN = {
    "report/plots.py": {"open"},  # a picture in memory
    # What is made is a new folder of this process's own.
    "site/pages.py": {"read_text", "write_text"},
    "site/runs.py": {"write_text", "write_bytes"},
    "site/ranks.py": {"write_text"},
    "site/folder.py": {"write_text"},
    "report/kept.py": {"write_bytes", "touch"},
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


@pytest.mark.parametrize("use", [shown, read_side, lambda run: sum(1 for _ in result_lines(run))])
def test_what_a_record_takes_of_the_memory(tmp_path: Path, use: Callable[[Path], object]) -> None:
    """Allocations are counted, of so many records more: the same on every machine."""
    write = load_script("measure_runner").write_run
    peaks = []
    for number in (1000, 5000):
        run = write(tmp_path / str(number), number)
        tracemalloc.start()
        use(run)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 4000 < MOST_PER_RECORD


def test_what_is_held_once_is_what_was_read() -> None:
    once = newest.Once()
    for said in ({"a": 1, "b": 0.5}, {"a": True, "b": None}, {"a": 1.0, "b": [1, 2]}, {}):
        for held in (once(said), once.names(said)):
            assert repr(dict(held)) == repr(said)
            assert held == said
            assert held.get("b") == said.get("b")
            assert ("a" in held, "c" in held, held.get("c", 7)) == ("a" in said, False, 7)
    assert once({"a": 1}) is once({"a": 1})
    assert once({"a": 1}) is not once({"a": True})
