"""Results folders in which something else lies than a run writes: a link, a pipe, a folder.

The tests of results folders and ``scripts/fuzz.py`` put such things at every place and run every
command.
"""

from __future__ import annotations

import json
import lzma
import os
import resource
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
from runs import Ended, svmbench, write_config
from script_loading import load_script

from svmbench.base.errors import SvmbenchError
from svmbench.report.output import kept

MARKER = "precious-7c1f"
#: How long a command may take before it is thought to wait for ever, on a loaded machine, seconds.
PATIENCE_S = 120
#: How much memory a command may take beside what the tests hold.
MOST_BYTES = 2 << 30


def make_run(place: Path) -> Path:
    """Make a run with everything that a results folder may hold; return its folder."""
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
        kept.keep_run(run, run.parent / "reference")
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
    elif kind == "device":
        try:
            os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # as /dev/zero
        except PermissionError:  # only root may make one
            place.symlink_to("/dev/zero")
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


def followed(made: Path, folder: Path, command: str, things: Sequence[tuple[str, str]]) -> str:
    """Run a command on a results folder in which things lie; return what is wrong, or nothing.

    Parameters
    ----------
    made : Path
        A run, which is copied.
    folder : Path
        A new folder, which is removed again.
    command : str
        One of `COMMANDS`.
    things : sequence of pairs of str
        What lies there, as for `put`, and in which of the `PLACES`; none below another.
    """
    private, theirs = folder / "private", folder / "theirs"
    run = theirs / "results" / "run"
    private.mkdir(parents=True)
    shutil.copytree(made, run)
    shutil.copy(made.parent / "config.yaml", theirs)
    (environment,) = (path.name for path in run.glob("environment-*.json"))
    (arrays,) = (path.stem for path in run.glob("artifacts/*.npz"))
    for number, (kind, place) in enumerate(things):
        if place == "runs.jsonl.xz":
            packed = lzma.compress(marked((made / "runs.jsonl").read_bytes()))
            (run / place).write_bytes(packed)
            (run / "runs.jsonl").unlink(missing_ok=True)
        named = place.replace("ENVIRONMENT", environment).replace("KEY", arrays)
        (private / str(number)).mkdir()
        put(kind, run / named, private / str(number))
    before = tree(private)
    with fenced():
        ended = COMMANDS[command](run)
    after = tree(theirs)
    copied = [p for p, c in after.items() if MARKER.encode() in c or (c and c in before.values())]
    wrong = {
        "it ends with a traceback": "--debug shows" in ended.said or "Traceback" in ended.said,
        f"its exit code is {ended.code}": ended.code not in (0, 1, 2, 4),
        "it changed a private file": tree(private) != before,
        f"it copied a private file: {copied}": bool(copied),
        "it shows a private file": MARKER in ended.said,
    }
    shutil.rmtree(folder)
    said = "; ".join(what for what, is_so in wrong.items() if is_so)
    return f"{command}: {said}: {ended.said}" if said else ""
