"""Two kinds of cases for the fuzz: links and the like in results folders, and a full disk.

A case is a command and what is in its way, drawn at random; it is written as JSON, so that the
harness of damaged files (`fuzzing`) counts and repeats it like any other.
"""

from __future__ import annotations

import atexit
import json
import random
import shutil
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from foreign_folders import COMMANDS, PLACES, followed, make_run
from fuzzing import Kind, Reached
from small_disk import fill, is_one_sentence, make_room, mounted
from workshop_setup import sabotaged

THINGS = ("private", "pipe", "nowhere", "endless", "folder", "device")
#: The most bytes that are left free on the full disk of 512 kB.
MOST_FREE = 200_000


@cache
def whole_run() -> Path:
    """Return a run with everything that a results folder may hold; its workers load `sabotage`."""
    stack = ExitStack()
    place = Path(tempfile.mkdtemp(prefix="svmbench-fuzz-places-"))
    atexit.register(stack.close)
    stack.callback(shutil.rmtree, place, ignore_errors=True)
    for name in ("cache", "logs", "made"):
        (place / name).mkdir()
    stack.enter_context(sabotaged(place / "cache", place / "logs"))
    return make_run(place / "made")


def draw_things(_content: bytes, chooser: random.Random) -> bytes:
    """Draw a command and one to three things, none of which lies below another."""
    chosen: dict[str, str] = {}
    for place in chooser.sample(PLACES, chooser.choice([1, 1, 2, 3])):
        if not any(place.startswith(f"{o}/") or o.startswith(f"{place}/") for o in chosen):
            chosen[place] = chooser.choice(THINGS)
    things = [(kind, place) for place, kind in chosen.items()]
    return json.dumps({"command": chooser.choice(list(COMMANDS)), "things": things}).encode()


def read_things(content: bytes, folder: Path, reached: Reached) -> None:
    """Run the command of a case on a copy of the whole run.

    Raises
    ------
    AssertionError
        If it follows a link, waits, or ends otherwise than with a result or a sentence.
    """
    made, case = whole_run(), json.loads(content)
    reached()
    said = followed(made, folder / "case", case["command"], case["things"])
    if said:
        raise AssertionError(said)


def draw_disk(_content: bytes, chooser: random.Random) -> bytes:
    """Draw a command and how many bytes are left free, half of the times less than 16 kB."""
    free = chooser.randrange(chooser.choice([16_000, MOST_FREE]))
    return json.dumps({"command": chooser.choice(list(COMMANDS)), "free": free}).encode()


@cache
def _usual_code(command: str) -> int:
    """Return the exit code of a command where there is room."""
    with tempfile.TemporaryDirectory(prefix="svmbench-fuzz-usual-") as place:
        return COMMANDS[command](_copied(Path(place))).code


def _copied(place: Path) -> Path:
    run = place / "theirs" / "results" / "run"
    shutil.copytree(whole_run(), run)
    shutil.copy(whole_run().parent / "config.yaml", place / "theirs")
    return run


def read_on_full_disk(content: bytes, folder: Path, reached: Reached) -> None:
    """Run the command of a case on a disk that is nearly full, and again where there is room.

    Raises
    ------
    AssertionError
        If it ends otherwise than as usual or, with code 1, with one sentence; or if it does not
        end as usual once there is room again.
    PermissionError
        If this user may not mount a file system.
    """
    case = json.loads(content)
    command, usual = case["command"], _usual_code(case["command"])
    with mounted(folder / "disk") as disk:
        run = _copied(disk)
        fill(disk, leave=case["free"])
        reached()
        ended = COMMANDS[command](run)
        if ended.code != usual and not (ended.code == 1 and is_one_sentence(ended.err)):
            raise AssertionError(f"full: code {ended.code}: {ended.said}")
        make_room(disk)
        ended = COMMANDS[command](run)
        if ended.code != usual:
            raise AssertionError(f"room again: code {ended.code}: {ended.said}")


PLACED = {
    "links": Kind("links", lambda: [b""], (draw_things,), read_things, 20.0, 1000.0),
    "full-disk": Kind("full-disk", lambda: [b""], (draw_disk,), read_on_full_disk, 20.0, 1000.0),
}
