"""Damaged files of every kind that the program reads: each is read, or refused in a sentence.

A case is a real file, changed by one of the mutators of its kind. What becomes of it is an outcome:
``read``; ``refused`` (an error of ours with exit code 2 whose every line can be printed); or a
finding: ``internal`` (any other exception), ``garbled`` (a sentence that is none), ``slow`` (more
than two seconds of CPU time) or ``large`` (more than 500 MB).

A mutator that only ever breaks the first byte tests nothing, so each case tells whether it went
past the first check of its kind, and the share of those is counted for each mutator.
"""

from __future__ import annotations

import atexit
import bz2
import contextlib
import gzip
import io
import itertools
import json
import lzma
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from svmbench.data import archives, derive, entries, idx, libsvm, registry, tables, userfile
from svmbench.errors import EXIT_USAGE, SvmbenchError
from svmbench.experiment import config, records
from svmbench.experiment.yaml_source import YamlSource
from svmbench.record import parse
from svmbench.report import compare
from svmbench.report.curves import read_plot, trace_curves
from svmbench.report.records import read_run
from svmbench.report.tables import lay_out, markdown, read_spec, wide_csv
from svmbench.report.tidy import tidy_csv

ROOT = Path(__file__).resolve().parent.parent
CPU_SECONDS = 2.0
MEGABYTES = 500.0

Reached = Callable[[], None]

# ---------------------------------------------------------------- mutators

# fmt: off
NASTY = [
    b"\x00", b"\x1b[2J", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"", b" ", b"\t", b"-",
    b"+", b"nan", b"inf", b"-1", b"0", b"1e400", b"1" * 400, b"9" * 5000, b"1_0", b"0x10",
    b"\xe2\x80\xa8", b"../../x", b"=1+1", b"<script>", b"null", b"true", b"[]", b"{}", b'""',
    b"[" * 60, b"{" * 60, b"*a", b"&a", b"<<: *a", b"!!int abc", b"!!timestamp z", b"1:1", b"qid:3",
    b"#", b'"', b"'", b":", b"a" * 3000, b",", b";", b"\\", b"\x80", b"2147483648", b"4294967295",
    b"18446744073709551616",
]
JSON_VALUES = [
    b"null", b"true", b"[]", b"{}", b'""', b"0", b"-1", b"1e308", b"[[1]]", b'{"a": 1}', b'"=1+1"',
    b'"\\u001b[2J"', b'"<b>"', b'"../x"', b'"\\ud800"',
]
# fmt: on


def flip(content: bytes, chooser: random.Random) -> bytes:
    """Change one to four bits."""
    changed = bytearray(content)
    for _ in range(chooser.randint(1, 4)):
        changed[chooser.randrange(len(changed))] ^= 1 << chooser.randrange(8)
    return bytes(changed)


def cut(content: bytes, chooser: random.Random) -> bytes:
    """Leave out a piece, or the end."""
    start = chooser.randrange(len(content))
    stop = min(len(content), start + chooser.choice([1, 2, 8, 64, len(content)]))
    return content[:start] + content[stop:]


def repeat(content: bytes, chooser: random.Random) -> bytes:
    """Put a piece in a second time, somewhere."""
    start, at = chooser.randrange(len(content)), chooser.randrange(len(content))
    piece = content[start : start + chooser.choice([1, 4, 40, 400])]
    return content[:at] + piece * chooser.choice([1, 1, 2, 30]) + content[at:]


def put(content: bytes, chooser: random.Random) -> bytes:
    """Put something nasty in, or in the place of a few bytes."""
    at = chooser.randrange(len(content))
    return content[:at] + chooser.choice(NASTY) + content[at + chooser.choice([0, 0, 1, 4]) :]


def replace_word(content: bytes, chooser: random.Random) -> bytes:
    """Put something nasty in the place of a word."""
    words = _words(content)
    start, stop = chooser.choice(words)
    return content[:start] + chooser.choice(NASTY) + content[stop:]


def replace_json_word(content: bytes, chooser: random.Random) -> bytes:
    """Put a value of JSON, mostly, in the place of a word."""
    start, stop = chooser.choice(_words(content))
    return content[:start] + chooser.choice(3 * JSON_VALUES + NASTY) + content[stop:]


def swap_words(content: bytes, chooser: random.Random) -> bytes:
    """Put a word in the place of another."""
    words = _words(content)
    (start, stop), (first, last) = chooser.choice(words), chooser.choice(words)
    return content[:start] + content[first:last] + content[stop:]


def shuffle_lines(content: bytes, chooser: random.Random) -> bytes:
    """Move, drop and repeat some lines."""
    lines = content.split(b"\n")
    for _ in range(chooser.randint(1, 3)):
        line = lines.pop(chooser.randrange(len(lines))) if len(lines) > 1 else lines[0]
        for _ in range(chooser.choice([0, 1, 1, 2])):
            lines.insert(chooser.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _words(content: bytes) -> list[tuple[int, int]]:
    stops = [i for i, byte in enumerate(content) if byte in b" \t\n,:;=[]{}()"]
    edges = [-1, *stops, len(content)]
    found = [(a + 1, b) for a, b in itertools.pairwise(edges) if b > a + 1]
    return found or [(0, len(content))]


ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 3.5, 1e308, 10**400, -(2**63), "", "x", "a\nb", "\x1b[31m", "=1+1",
    "<b>", "../x", "\ud800", [], [1], [[]], {}, {"a": 1}, {"": None}, "9" * 500,
]  # fmt: skip


def change_value(content: bytes, chooser: random.Random) -> bytes:
    """Put a value of another kind at a place in JSON; in a file of lines, in one of them."""
    lines = content.splitlines()
    at = chooser.randrange(len(lines)) if _is_lines(lines) else -1
    whole = json.loads(lines[at] if at >= 0 else content)
    places: list[tuple[Any, Any]] = []
    todo = [whole]
    while todo:
        each = todo.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        places += [(each, key) for key in keys]
        todo += [each[key] for key in keys if isinstance(each[key], dict | list)]
    for _ in range(chooser.randint(1, 2)):
        holder, key = chooser.choice(places)
        what = chooser.random()
        try:
            if what < 0.15:
                del holder[key]
            elif what < 0.25 and isinstance(holder, dict):
                holder[chooser.choice(["", "x", "key", "\x1b"])] = chooser.choice(ODD_VALUES)
            else:
                holder[key] = chooser.choice(ODD_VALUES)
        except (KeyError, IndexError):
            continue
    text = json.dumps(whole).encode()
    return b"\n".join([*lines[:at], text, *lines[at + 1 :], b""]) if at >= 0 else text


def _is_lines(lines: list[bytes]) -> bool:
    return len(lines) > 1 and lines[0].startswith(b"{") and lines[0].endswith(b"}")


BYTES = (flip, cut, repeat, put)
TEXT = (*BYTES, replace_word, swap_words, shuffle_lines)
JSON = (change_value, change_value, *BYTES, replace_json_word, swap_words, shuffle_lines)

# ---------------------------------------------------------------- kinds


@dataclass(frozen=True)
class Kind:
    """A kind of file: real ones, what changes them, and what reads them."""

    name: str
    seeds: Callable[[], list[bytes]]
    mutators: tuple[Callable[[bytes, random.Random], bytes], ...]
    read: Callable[[bytes, Path, Reached], None]


def _sklearn(folder: str, name: str) -> bytes:
    return (Path(sklearn.datasets.__file__).parent / folder / name).read_bytes()


def _first_lines(content: bytes, number: int) -> bytes:
    return b"\n".join(content.splitlines()[:number]) + b"\n"


def libsvm_files() -> list[bytes]:
    """Return scikit-learn's example, and the digits and the iris flowers as LIBSVM text."""
    found = [_sklearn("tests/data", "svmlight_classification.txt")]
    for X, y in (
        sklearn.datasets.load_digits(return_X_y=True),
        sklearn.datasets.load_iris(return_X_y=True),
    ):
        out = io.BytesIO()
        sklearn.datasets.dump_svmlight_file(X[::40], y[::40], out, zero_based=False)
        found.append(out.getvalue())
    return found


def read_libsvm(content: bytes, _folder: Path, reached: Reached) -> None:
    """Parse LIBSVM text and derive a data set."""
    libsvm.check_text(content, "x.svm")
    reached()
    for sort in (False, True):
        part = userfile.parse_file(content, "x.svm", entries.Reading(sort_indices=sort))
        derive.derive("x.svm", part, None, entries.Derivation())


def csv_files() -> list[bytes]:
    """Return the first lines of tables that ship with scikit-learn."""
    names = ["iris.csv", "wine_data.csv", "breast_cancer.csv"]
    return [_first_lines(_sklearn("data", name), 25) for name in names]


def read_csv(content: bytes, _folder: Path, reached: Reached) -> None:
    """Read a table with a header and without, and derive a data set."""
    reading = entries.Reading(format="table", skip_lines=1, incomplete="mean", missing="?")
    tables_frame = tables.read(content, "x.csv", reading)
    reached()
    tables.samples([tables_frame], ["x.csv"], reading)
    with_header = entries.Reading(format="table", header=True)
    part = userfile.parse_file(content, "x.csv", with_header)
    derive.derive("x.csv", part, None, entries.Derivation())


def idx_files() -> list[bytes]:
    """Return the digits' images and their labels in MNIST's format."""
    digits = sklearn.datasets.load_digits()
    images = np.asarray(digits.images[:30], dtype=np.uint8)
    labels = np.asarray(digits.target[:30], dtype=np.uint8)
    return [
        bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
        for array in (images, labels)
    ]


def read_idx(content: bytes, _folder: Path, reached: Reached) -> None:
    """Read an idx array."""
    if content[:3] == b"\0\0\x08":
        reached()
    idx.read(content, "x-ubyte")


def archive_files() -> list[bytes]:
    """Return a text in each of the four kinds of archives, its ending before it."""
    text = libsvm_files()[1]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", text)
    return [
        b".xz\n" + lzma.compress(text),
        b".bz2" + bz2.compress(text),
        b".gz\n" + gzip.compress(text, mtime=0),
        b".zip" + packed.getvalue(),
    ]


def read_archive(content: bytes, _folder: Path, reached: Reached) -> None:
    """Unpack an archive; the first four bytes say which, and are left as they are."""
    ending, stored = content[:4].decode("latin-1").strip(), content[4:]
    signs = {".xz": b"\xfd7zXZ\0", ".bz2": b"BZh", ".gz": b"\x1f\x8b", ".zip": b"PK\x03\x04"}
    if stored.startswith(signs.get(ending, b"?")):
        reached()
    archives.decompressed(stored, f"x{ending}", "inside" if ending == ".zip" else None)


def _behind_the_ending(
    mutate: Callable[[bytes, random.Random], bytes],
) -> Callable[[bytes, random.Random], bytes]:
    def inside(content: bytes, chooser: random.Random) -> bytes:
        return content[:4] + mutate(content[4:], chooser)

    inside.__name__ = mutate.__name__
    return inside


def yaml_files() -> list[bytes]:
    """Return every config that ships with the package."""
    return [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]


def read_yaml(content: bytes, folder: Path, reached: Reached) -> None:
    """Check a config as ``svmbench validate`` does."""
    path = folder / "x.yaml"
    path.write_bytes(content)
    YamlSource.read(path)
    reached()
    found = config.check_config(path, files=True)
    for profile in found.profiles:
        config.apply_profile(found, profile)


def toml_files() -> list[bytes]:
    """Return parts of the registry that ships with the package, each with the origins."""
    text = (ROOT / "datasets.toml").read_bytes()
    parts = text.split(b"\n\n[")
    origins = b"\n\n[".join(part for part in parts if part.startswith(b"origin."))
    rest = [part for part in parts[1:] if not part.startswith(b"origin.")]
    return [
        b"[" + origins + b"\n\n[" + b"\n\n[".join(rest[start : start + 3]) + b"\n"
        for start in range(0, 30, 3)
        if not any(b"based_on" in part for part in rest[start : start + 3])
    ]


def read_toml(content: bytes, folder: Path, reached: Reached) -> None:
    """Read a registry of one's own."""
    path = folder / "x.toml"
    path.write_bytes(content)
    registry._parsed(path)
    reached()
    registry._read.__wrapped__((path,))


def _runs() -> list[Path]:
    """Return run folders as ``svmbench run`` writes them: tables with races, sweeps with plots."""
    if not RUNS:
        sys.path.insert(0, str(ROOT / "tests" / "report"))
        import synthetic_runs

        below = Path(tempfile.mkdtemp(prefix="svmbench-fuzz-runs-"))
        atexit.register(shutil.rmtree, below, ignore_errors=True)
        for make in (synthetic_runs.alsvm_run, synthetic_runs.sweep_run):
            RUNS.append(below / make.__name__)
            make(RUNS[-1])
    return RUNS


RUNS: list[Path] = []


def _run_files(name: str) -> list[bytes]:
    """Return a file of each run; of the records the first lines, so that each counts."""
    contents = [path.read_bytes() for run in _runs() for path in run.glob(name)]
    return [_first_lines(c, 12) for c in contents] if name == "runs.jsonl" else contents


def _in_a_run(name: str) -> Callable[[bytes, Path, Reached], None]:
    """Return what reads a run folder of which one file is given and the others are whole."""

    def read(content: bytes, folder: Path, reached: Reached) -> None:
        for other in ("plan.json", "runs.jsonl"):
            if other != name:
                (folder / other).write_bytes(_run_files(other)[0])
        if name == "environment":
            (folder / "environment-4be1c0de.json").write_bytes(content)
        else:
            (folder / name).write_bytes(content)
        if name == "runs.jsonl":
            if any(parse(line) for line in content.splitlines()):
                reached()
            with records.RunFolder(folder):
                pass
        elif isinstance(_json(content), dict):
            reached()
        _report(folder)

    return read


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _report(folder: Path) -> None:
    """Make the tables and curves of a run, all but the drawing, and compare it with itself."""
    run = read_run(folder)
    plan = str(folder / "plan.json")
    laid_out = [lay_out(run, read_spec(raw, plan)) for raw in run.tables]
    for table in laid_out:
        markdown(run, table)
        wide_csv(run, table)
    for raw in run.plots:
        trace_curves(run, read_plot(raw, plan))
    tidy_csv(run, laid_out)
    side = compare.read_side(folder)
    try:
        compare.compare(side, side)
    except SvmbenchError as error:
        if "nothing to compare" not in str(error):
            raise


KINDS = {
    kind.name: kind
    for kind in (
        Kind("libsvm", libsvm_files, TEXT, read_libsvm),
        Kind("csv", csv_files, TEXT, read_csv),
        Kind("idx", idx_files, BYTES, read_idx),
        Kind("archive", archive_files, tuple(map(_behind_the_ending, BYTES)), read_archive),
        Kind("yaml", yaml_files, TEXT, read_yaml),
        Kind("toml", toml_files, TEXT, read_toml),
        Kind("records", lambda: _run_files("runs.jsonl"), JSON, _in_a_run("runs.jsonl")),
        Kind("plan", lambda: _run_files("plan.json"), JSON, _in_a_run("plan.json")),
        Kind(
            "environment", lambda: _run_files("environment-*.json"), JSON, _in_a_run("environment")
        ),
    )
}

# ---------------------------------------------------------------- cases


class OutOfTimeError(BaseException):
    """A case took more CPU time than it may; no handler of errors catches it."""


@dataclass
class Tally:
    """What became of the cases of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    past: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    findings: list[str] = field(default_factory=list)

    @property
    def shares(self) -> dict[str, float]:
        """Return for each mutator the share of its cases that went past the first check."""
        return {name: self.past[name] / number for name, number in self.cases.items()}


def fuzz(kind: Kind, number: int, seed: int, folder: Path) -> Tally:
    """Read so many damaged files of a kind."""
    tally = Tally()
    seeds = kind.seeds()
    for i in range(number):
        chooser = random.Random(f"{kind.name} {seed} {i}")
        original = seeds[i % len(seeds)]
        mutate = kind.mutators[(i // len(seeds)) % len(kind.mutators)]
        content = mutate(original, chooser)
        for _ in range(chooser.choice([0, 0, 1])):
            if content and mutate is not change_value:
                content = mutate(content, chooser)
        tally.cases[mutate.__name__] += 1
        _one(kind, content, mutate.__name__, folder, tally, f"{kind.name} {seed} {i}")
    return tally


def _one(kind: Kind, content: bytes, mutator: str, folder: Path, tally: Tally, case: str) -> None:
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    is_past = []
    before = _forget_peak()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _limited_cpu():
                kind.read(content, folder, lambda: is_past.append(True))
            outcome, said = "read", ""
        except SvmbenchError as error:
            outcome, said = _judged(error)
        except OutOfTimeError:
            outcome, said = "slow", "out of time"
        except Exception as error:  # this is what is looked for
            outcome, said = "internal", f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    tally.slowest = max(tally.slowest, seconds)
    if seconds > CPU_SECONDS:
        outcome = "slow"
    if _peak() - before > MEGABYTES:
        outcome = "large"
    tally.outcomes[outcome] += 1
    tally.past[mutator] += bool(is_past)
    if outcome not in ("read", "refused"):
        tally.findings.append(f"{case} ({mutator}): {outcome}: {said[:300]}")


def _peak() -> float:
    """Return the most memory (MB) that this process has held since its peak was forgotten."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _forget_peak() -> float:
    """Let the peak start from what the process holds now, lest an earlier case hide a later one."""
    with contextlib.suppress(OSError):  # not every system lets a process do so
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _judged(error: SvmbenchError) -> tuple[str, str]:
    lines = str(error).split("\n")
    if error.exit_code != EXIT_USAGE:
        return "internal", f"exit code {error.exit_code}: {error}"
    if not all(line and line.isprintable() and len(line) < 2000 for line in lines):
        return "garbled", repr(str(error)[:300])
    return "refused", ""


@contextmanager
def _limited_cpu() -> Any:
    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 2 * CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def scratch() -> Path:
    """Return a folder for the files of cases, in memory where there is one there."""
    shared = Path("/dev/shm")
    base = shared if os.access(shared, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="svmbench-fuzz-", dir=base))
