"""Measure the CPU time of the suite's own commands, and keep it in ``results/perf/suite``.

    python scripts/suite_speed.py                      # the lines that have no record yet
    python scripts/suite_speed.py --only claims,site   # these, again
    python scripts/suite_speed.py --table              # only write the table of the page

Each command of a line runs in a new process, after one that fills the caches. Its time is the user
and system time of the command and of all processes that it started, in seconds. CPU time is
measured because it depends less than wall time on other work. The aims were set as wall times: CPU
time is at most the wall time where a command uses one core at a time, and can be more where it uses
several. Some lines, which use both cores, have the wall time of one call instead; the script prints
the end of what they print. ``results/perf/README.md`` has the table. ``times.csv`` has the median
of the repeats, the least and the largest, and the machine. Each line is written when it is
measured, so that an interrupted call continues with the missing lines.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import itertools
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from svmbench import __version__
from svmbench.base.paths import shipped_configs
from svmbench.baselines.launcher import PR_SET_CHILD_SUBREAPER
from svmbench.experiment.measuring.environment import cpu_model

ROOT = Path(__file__).resolve().parent.parent
TIMES = ROOT / "results" / "perf" / "suite" / "times.csv"
#: The stages of the call of ``.ci/run`` whose time is kept.
STAGES = TIMES.with_name("ci_stages.csv")
PAGE = ROOT / "results" / "perf" / "README.md"
COLUMNS = ("line", "cpu_time_s", "least_s", "largest_s", "repeats", "version", "cpu", "python")
_TABLE = re.compile(r"(<!-- suite -->\n).*?(<!-- /suite -->)", re.DOTALL)
#: What ``.ci/run`` prints when a stage begins.
_STAGE = re.compile(r"^=== (\d+) s: (.+)$", re.MULTILINE)
_COMMAND = (sys.executable, "-c", "from svmbench.cli import main; main()")

#: Lines of a command's output that are printed.
_SCREEN_LINES = 40
#: Numbers of cells of two runs; the difference of their times gives the time of a cell.
SHORT_RUN_CELLS, LONG_RUN_CELLS = 5, 25
#: A config with one trivial cell for each value: a solver with a closed form on sixty rows.
_CELLS_CONFIG = """
title: Trivial cells
datasets: ["breast-cancer[:60]"]
solvers: [{{name: alsvm}}]
blocks: [{{name: main, protocol: fit, sweep: {{solver.C: {values}}}}}]
tables: [{{name: t, block: main, rows: solver.C}}]
profiles: {{quick: {{}}}}
"""

#: Prints the CPU time of statements in a process that has imported scikit-learn.
_STATEMENTS = """
import sys, time
import sklearn.svm
from sklearn.datasets import load_breast_cancer
sys.path.insert(0, {folder!r})
X, y = load_breast_cancer(return_X_y=True)
{before}
start = time.process_time()
{timed}
print(time.process_time() - start)
"""
#: A module with a function that does nothing but return, whose compiled code Numba keeps.
_TRIVIAL_MODULE = """
import numba

@numba.njit(cache=True)
def identity(x):
    return x
"""


def cpu_of(*words: str | Path) -> float:
    """Return the CPU seconds of a command and of all processes that it started.

    Raises
    ------
    subprocess.CalledProcessError
        If it fails.
    """
    # The process that workers are forked from outlives its parent, and then becomes a child of
    # this one.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*map(str, words)], check=True, capture_output=True, cwd=ROOT)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wall_of(*words: str | Path, hear: Callable[[str], None] = lambda _: None) -> float:
    """Return the wall time of a command in seconds, and print the end of its output.

    Parameters
    ----------
    *words : str or Path
        The command.
    hear : callable
        Told all that a command printed which ended well.

    Raises
    ------
    subprocess.CalledProcessError
        If it fails.
    """
    start = time.monotonic()
    done = subprocess.run(
        [*map(str, words)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    seconds = time.monotonic() - start
    print("\n".join(done.stdout.splitlines()[-_SCREEN_LINES:]), flush=True)
    done.check_returncode()
    hear(done.stdout)
    return seconds


def _svmbench(*words: str | Path) -> float:
    return cpu_of(*_COMMAND, *words)


def _first_validate(folder: Path) -> float:
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    words = ("validate", *shipped_configs())
    return cpu_of("env", f"SVMBENCH_CACHE={cache}", *_COMMAND, *words)


def _cpu_of_statements(folder: Path, timed: str, before: str = "") -> float:
    """Return the CPU seconds of statements in a new process, without those before them."""
    program = _STATEMENTS.format(folder=str(folder), before=before, timed=timed)
    words = [sys.executable, "-c", program]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def _first_fit(folder: Path) -> float:
    return _cpu_of_statements(folder, "from svmbench import CSVC; CSVC().fit(X, y)")


def _numba_import(folder: Path) -> float:
    return _cpu_of_statements(folder, "import numba")


def _first_cached_call(folder: Path) -> float:
    (folder / "trivial.py").write_text(_TRIVIAL_MODULE, encoding="utf-8")
    # A changed file has no compiled code: its time is part of Numba's key.
    os.utime(folder / "trivial.py", (0, 0))
    return _cpu_of_statements(folder, "trivial.identity(1.0)", before="import trivial")


def _site(folder: Path) -> float:
    return _svmbench("site", "-o", folder / "site")


def _clone(folder: Path) -> Path:
    """Return a fresh clone of the checkout in a folder."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    return clone


def _ci(folder: Path) -> float:
    return wall_of("bash", _clone(folder) / ".ci" / "run", hear=keep_stages)


def _cold_test(folder: Path) -> float:
    clone = _clone(folder)
    subprocess.run(["make", "--silent", "-C", str(clone), "setup-dev"], check=True)
    return wall_of("make", "-C", clone, "test")


def keep_stages(printed: str) -> None:
    """Write how long each stage of ``.ci/run`` took, by what it printed."""
    begun = {stage: int(second) for second, stage in _STAGE.findall(printed)}
    starts = [*begun.values()]
    took = [end - start for start, end in itertools.pairwise(starts)]
    rows = [*zip(begun, took, strict=False)]  # the last is the end
    with STAGES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("stage", "wall_time_s"), *rows])


def _reproduce(folder: Path) -> float:
    where = ("--output", folder / "results", "--site", folder / "site")
    return wall_of(*_COMMAND, "reproduce", "--profile", "quick", "--jobs", "auto", *where)


def _first_site(folder: Path) -> float:
    shutil.rmtree(folder / "site", ignore_errors=True)
    return _site(folder)


def _run(folder: Path, n_cells: int) -> float:
    config = folder / "cells.yaml"
    values = [round(0.001 * (place + 1), 3) for place in range(n_cells)]
    config.write_text(_CELLS_CONFIG.format(values=values), encoding="utf-8")
    return _svmbench("run", config, "--fresh", "--quiet", "--output", folder / "run")


def _cell(folder: Path) -> float:
    """Return the time of a trivial cell, from a long and a short run."""
    more = _run(folder, LONG_RUN_CELLS) - _run(folder, SHORT_RUN_CELLS)
    return more / (LONG_RUN_CELLS - SHORT_RUN_CELLS)


def _quickstart(folder: Path) -> float:
    return _svmbench("run", "quickstart", "--fresh", "--quiet", "--output", folder / "quickstart")


@dataclass(frozen=True)
class Line:
    """A line of the table: its label, its aim, and the function that measures it once.

    A line that is measured once is of a single call; the others make a call before, which fills the
    caches.
    """

    label: str
    aim_s: float | None
    measure: Callable[[Path], float]
    repeats: int = 5


LINES = {
    "claims": Line("`svmbench claims`", 1.5, lambda _: _svmbench("claims")),
    "validate": Line(
        "`svmbench validate` of all configs",
        1.2,
        lambda _: _svmbench("validate", *shipped_configs()),
    ),
    "first-validate": Line(
        "`svmbench validate` of all configs, none kept as valid", None, _first_validate, 3
    ),
    "site": Line("`svmbench site` over an unchanged one", 8.0, _site, 3),
    "first-site": Line("`svmbench site`, a new one", None, _first_site, 2),
    "one-cell": Line(
        "`svmbench run` of one trivial cell, with all processes", None, lambda it: _run(it, 1)
    ),
    "cell": Line("a trivial cell of `svmbench run`", 0.06, _cell, 3),
    "quickstart": Line("`svmbench run quickstart`, compiled code cached", None, _quickstart, 3),
    "first-fit": Line(
        "`from svmbench import CSVC` and `fit` on breast-cancer, after the import of scikit-learn",
        0.5,
        _first_fit,
        9,
    ),
    "numba-import": Line(
        "`import numba` alone, after the import of scikit-learn", None, _numba_import, 9
    ),
    "first-cached-call": Line(
        "the first call of a function that only returns, compiled and cached by Numba",
        None,
        _first_cached_call,
        9,
    ),
    "make-test": Line(
        "`make test` with its compiled loops in the cache, wall time",
        300.0,
        lambda _: wall_of("make", "test"),
        1,
    ),
    "cold-test": Line(
        "`make test` in a fresh clone whose packages are installed, wall time", None, _cold_test, 1
    ),
    "ci": Line("`.ci/run` in a fresh clone, wall time", 900.0, _ci, 1),
    "reproduce": Line(
        "`svmbench reproduce --profile quick --jobs auto`, wall time", 1800.0, _reproduce, 1
    ),
}


def measure(line: Line) -> list[float]:
    """Return the times of a line, without that of a call which fills the caches."""
    n_before = int(line.repeats > 1)
    with tempfile.TemporaryDirectory() as folder:
        return [line.measure(Path(folder)) for _ in range(n_before + line.repeats)][n_before:]


def read_times() -> dict[str, dict[str, str]]:
    """Return the kept times by line."""
    if not TIMES.exists():
        return {}
    with TIMES.open(encoding="utf-8", newline="") as file:
        return {row["line"]: row for row in csv.DictReader(file)}


def keep(name: str, times: list[float]) -> None:
    """Write the times of a line beside those of other lines."""
    seconds = (statistics.median(times), min(times), max(times))
    kept = read_times()
    kept[name] = {
        "line": name,
        **{column: f"{value:.4f}" for column, value in zip(COLUMNS[1:4], seconds, strict=True)},
        "repeats": str(len(times)),
        "version": __version__,
        "cpu": cpu_model(),
        "python": platform.python_version(),
    }
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    with TIMES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[line] for line in LINES if line in kept)


def table() -> str:
    """Return the table of the page from the kept times."""
    lines = ["| call | aim, s | CPU time (or wall time), s | reached |", "|---|---:|---:|---|"]
    kept = read_times()
    for name, line in LINES.items():
        aim = "–" if line.aim_s is None else f"{line.aim_s:g}"
        if name not in kept:
            lines.append(f"| {line.label} | {aim} | not measured | |")
            continue
        median, least, largest = (float(kept[name][column]) for column in COLUMNS[1:4])
        reached = ""
        if line.aim_s is not None:
            reached = "yes" if largest <= line.aim_s else "in the median"
            reached = reached if median <= line.aim_s else "no"
        times = f"{_in_digits(median)} ({_in_digits(least)}–{_in_digits(largest)})"
        if kept[name]["repeats"] == "1":
            times = f"{_in_digits(median)} (one call)"
        lines.append(f"| {line.label} | {aim} | {times} | {reached} |")
    return "\n".join(lines) + "\n"


def _in_digits(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1.0 else f"{seconds:.1f}"


def page_with_table(page: str) -> str:
    """Return the page's text with the table as the kept times make it."""
    return _TABLE.sub(lambda found: found[1] + table() + found[2], page)


def main(words: list[str] | None = None) -> None:
    """Measure what the command line names, and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", help=f"lines, with commas: {', '.join(LINES)}")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    arguments = parser.parse_args(words)
    kept = read_times()
    missing = [line for line in LINES if line not in kept]
    names = arguments.only.split(",") if arguments.only else missing
    if unknown := sorted(set(names) - set(LINES)):
        parser.error(f"there is no line {', '.join(unknown)}; there are {', '.join(LINES)}")
    # Without bytecode, each process would compile the package's sources again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in () if arguments.table else names:
        keep(name, measure(LINES[name]))
        print(f"{name}: {read_times()[name]['cpu_time_s']} s", flush=True)
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
