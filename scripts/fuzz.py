"""Read damaged and grown files of every kind, by default 10,000 of each, and use hostile places.

Every outcome has to be a result or one sentence with exit code 2, within two seconds of CPU time
and 500 MB. Prints a table in Markdown; ends with code 1 where anything else was found, or where a
mutator hardly ever came past the first check. What a kind has so far goes to the error output every
few seconds, so that a run that is cut off has told it.

    python scripts/fuzz.py                         10,000 of each kind
    python scripts/fuzz.py --number 500 --kind yaml --seed 7
    python scripts/fuzz.py --case "yaml 7 341"     one case again: what it holds, and what it raises
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import fuzzing
import hostile_places

KINDS = {**fuzzing.KINDS, **fuzzing.GROWN, **hostile_places.PLACED}

MIN_PAST_SHARE = 0.1

#: Seconds between two rows of what a kind has so far.
ROW_SECONDS = 10.0

#: Bytes of addresses that this process may have, so that no bomb takes the machine with it.
MAX_ADDRESS_BYTES = 6 << 30


def again(case: str) -> int:
    """Read one damaged file once more; let what it raises be seen."""
    name, seed, number = case.split()
    kind = KINDS[name]
    content, mutate = fuzzing.damaged(kind, int(seed), int(number))
    print(f"{case} ({mutate.__name__}), {len(content):,} bytes:\n{content[:20_000]!r}\n")
    folder = fuzzing.scratch()
    try:
        kind.read(content, folder, lambda: None)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        shutil.rmtree(folder)
    print("read")
    return 0


def row(name: str, number: int, result: fuzzing.FuzzResult) -> str:
    """Return a kind's row of the table."""
    shares = ", ".join(f"{m} {s:.0%}" for m, s in sorted(result.shares.items()))
    counts = f"{result.outcomes['read']:,} | {result.outcomes['refused']:,}"
    return (
        f"| {name} | {number:,} | {counts} | {len(result.findings)} | {shares} |"
        f" {result.slowest:.2f} | {result.largest:.0f} |"
    )


class Progress:
    """Print what a kind has so far, now and then, and every finding at once.

    Parameters
    ----------
    name : str
        Of the kind.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings = 0
        self.last = time.monotonic()

    def __call__(self, number: int, result: fuzzing.FuzzResult) -> None:
        """Take note of one more case."""
        for finding in result.findings[self.findings :]:
            print(finding, file=sys.stderr, flush=True)
        self.findings = len(result.findings)
        if time.monotonic() - self.last > ROW_SECONDS:
            print(row(self.name, number, result), file=sys.stderr, flush=True)
            self.last = time.monotonic()


def main() -> int:
    """Run the command line."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_BYTES, MAX_ADDRESS_BYTES))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=10_000, help="cases of each kind")
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", metavar="CASE", help="kind, seed and number, as a finding has it")
    chosen = parser.parse_args()
    if chosen.case:
        return again(chosen.case)
    folder = fuzzing.scratch()
    bad: list[str] = []
    found = 0
    columns = "kind | inputs | read | refused | findings | past the first check"
    print(f"| {columns} | slowest, CPU s | most, MB |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    began = time.process_time()
    try:
        for name in chosen.kind or KINDS:
            told = Progress(name)
            result = fuzzing.fuzz(KINDS[name], chosen.number, chosen.seed, folder, told)
            print(row(name, chosen.number, result), flush=True)
            found += len(result.findings)
            bad += [
                f"{name}: {mutator} came past the first check in {share:.0%} of its cases"
                for mutator, share in result.shares.items()
                if share < MIN_PAST_SHARE
            ]
    finally:
        shutil.rmtree(folder)
    print(f"\n{time.process_time() - began:.0f} s of CPU time")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad or found else 0


if __name__ == "__main__":
    sys.exit(main())
