"""Measure what another arithmetic does to the results that the gate compares.

::

    python results/perf/arithmetic.py runs/          # 30 runs of the short cells, then the figures
    python results/perf/arithmetic.py runs/ --seeds 1 2 --cores Haswell SkylakeX

The short cells of ``configs/regress.yaml`` are run with each seed under each of OpenBLAS's core
types, into ``runs/<seed>-<core>``; what is there already is not run again. Every two runs of a seed
are honest runs of one version, so that ``svmbench compare`` may find no regression between them:
the exit code is 1 if it does. Printed are, by solver, the largest differences, from which the
tolerances in ``svmbench/report/gate/compare.py`` and ``trends.py`` were chosen. A core type must be
one that this CPU has the instructions of.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from svmbench.report.gate.compare import compare_folders
from svmbench.report.gate.sides import Side, read_side

SHORT = "block=accuracy,block=kernel-accuracy"
CORES = ("Haswell", "SkylakeX", "Zen", "Sandybridge", "Nehalem")
SEEDS = (1, 2, 3, 4, 5, 6)


def run(folder: Path, seed: int, core: str) -> None:
    """Run the short cells under one core type."""
    words = ["run", "regress", "--quiet", "--output", str(folder), "--only", SHORT]
    words += ["--set", f"seed={seed}", "--set", f"blas_core={core}"]
    start = "from svmbench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", start, *words], check=False)
    if done.returncode:
        sys.exit(f"arithmetic: the run in {folder} ended with code {done.returncode}")


class Differences:
    """The largest differences between runs, by solver."""

    def __init__(self) -> None:
        self.largest: dict[str, dict[str, float]] = {}
        self.others = 0

    def add(self, base: Side, new: Side) -> None:
        """Take the differences of two runs."""
        before, after = (side.runs[0].cells for side in (base, new))
        sums: dict[tuple[Any, ...], list[float]] = {}
        others = 0
        for key, one in before.items():
            other = after[key]
            if one["status"] != "ok":
                continue
            solver = str(one["solver"])
            self._note(solver, "accuracy", abs(_points(one) - _points(other)))
            if one["params"] != other["params"]:
                others += 1
                self._note(solver, "other parameters", 1.0)
                continue
            first, second = one["metrics"]["objective"], other["metrics"]["objective"]
            if first is not None and second is not None:
                self._note(solver, "objective", abs(second - first) / abs(first))
            for name, count in one["counters"].items():
                total = sums.setdefault((*key[:-1], name), [0.0, 0.0])
                total[0], total[1] = total[0] + count, total[1] + other["counters"][name]
        for (_, _, solver, *_, name), (total, now) in sums.items():
            self._note(str(solver), name, abs(now - total) / max(min(total, now), 1.0))
        self.others = max(self.others, others)

    def _note(self, solver: str, what: str, value: float) -> None:
        own = self.largest.setdefault(solver, {})
        own[what] = max(own.get(what, 0.0), value)


def _points(cell: Any) -> float:
    return float(cell["metrics"]["accuracy_pct"])


def measure(folders: Iterable[tuple[int, Path]]) -> int:
    """Compare every two runs of a seed; print the differences, and return how many regressed."""
    sides: dict[int, list[Side]] = {}
    for seed, folder in folders:
        sides.setdefault(seed, []).append(read_side(folder))
    found, regressed, pairs = Differences(), 0, 0
    for of_seed in sides.values():
        for base, new in itertools.permutations(of_seed, 2):
            pairs += 1
            found.add(base, new)
            worse = compare_folders(base, new).regressions
            regressed += bool(worse)
            for change in worse:
                print(f"{base.name} and {new.name}: {change}")
    runs = sum(map(len, sides.values()))
    print(f"{runs} runs, {pairs} ordered pairs, {regressed} with a regression")
    print(f"at most {found.others} cells of a run chose other parameters")
    moving: list[str] = []
    for solver, largest in sorted(found.largest.items()):
        work = {
            name: value
            for name, value in largest.items()
            if value and name not in ("objective", "accuracy", "other parameters")
        }
        print(
            f"{solver}: objective {largest.get('objective', 0.0):.1e},"
            f" accuracy of a fold {largest.get('accuracy', 0.0):.2f} points"
            + (", other parameters" if "other parameters" in largest else "")
            + "".join(f", {name} {value:.1%}" for name, value in work.items())
        )
        moving += [solver] if work or "other parameters" in largest else []
    print(f"solvers whose iterations change with rounding: {', '.join(moving) or 'none'}")
    return regressed


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and measure all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--cores", nargs="+", default=CORES)
    parser.add_argument("--read", action="store_true", help="run nothing: only read what is there")
    given = parser.parse_args(arguments)
    folders = [
        (seed, given.folder / f"{seed}-{core}") for seed in given.seeds for core in given.cores
    ]
    for seed, folder in folders:
        if not given.read:
            run(folder, seed, folder.name.partition("-")[2])
    return 1 if measure(folders) else 0


if __name__ == "__main__":
    sys.exit(main())
