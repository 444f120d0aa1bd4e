"""Hold the working tree to an earlier commit: both run a config in turn, and are compared.

::

    python scripts/regress.py              # against where this branch left origin/main
    python scripts/regress.py v0.1.0       # against any commit
    python scripts/regress.py --config perf_linear --config perf_kernel    # by other configs

Times of a shared machine drift, so the two versions run A B A B …, and what is compared is the
median over rounds of each version's ratios to the reference solver. Both run the config of the
base, which both know: the gate's (``regress``), or those that ``--config`` names. The exit code is
that of ``svmbench compare``: 4 for a regression.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from svmbench.base.errors import SvmbenchError
from svmbench.studies import versions

ROOT = Path(__file__).resolve().parent.parent
#: Odd, so that a median is a measured value.
ROUNDS = 3
#: The config that every change is held to.
GATE = "regress"


def git(*words: str) -> bytes:
    """Return what a git command prints, or end with what it complains of."""
    try:
        return versions.git(ROOT, *words)
    except SvmbenchError as error:
        sys.exit(f"regress: {error}")


def default_base() -> str:
    """Return the commit to compare with: where the branch left origin/main, else the one before.

    Where nothing was committed since, uncommitted changes are held to the last commit, and a clean
    tree to the commit before that.
    """
    head = git("rev-parse", "HEAD").decode().strip()
    has_origin = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "origin/main"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if has_origin.returncode == 0:
        left = git("merge-base", "HEAD", "origin/main").decode().strip()
        if left != head:
            return left
    is_clean = not git("status", "--porcelain", "--untracked-files=no")
    return "HEAD~1" if is_clean else "HEAD"


def run(tree: Path, config: Path, output: Path, *options: str) -> None:
    """Run a config with the package of one tree.

    Parameters
    ----------
    tree : Path
        The root of a checkout.
    config : Path
    output : Path
        Results folder.
    *options : str
        More words for ``svmbench run``.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree), "SVMBENCH_PLUGINS": ""}
    found = versions.place_of("svmbench", output.parent, environment)
    if found is None or not found.is_relative_to(tree):
        sys.exit(f"regress: {found} was imported where {tree} was meant")
    try:
        # Cells that failed are for the comparison to judge.
        versions.run_config(config, output, environment, *options)
    except SvmbenchError as error:
        sys.exit(f"regress: {error}")


def races(folder: Path) -> list[str]:
    """Return the blocks of a results folder whose cells are races: what more rounds are for."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    raced = {name for name, facts in plan["protocols"].items() if facts["race"]}
    return [block["name"] for block in plan["config"]["blocks"] if block["protocol"] in raced]


def hold(before: Path, name: str, rounds: int, work: Path) -> int:
    """Run one config of the base with both trees in turn; return the comparison's exit code.

    Parameters
    ----------
    before : Path
        The root of the base's files.
    name : str
        The config's.
    rounds : int
    work : Path
        An empty folder for the results.
    """
    sides = {side: work / side for side in ("base", "new")}
    for side in sides.values():
        side.mkdir(parents=True)
    options: list[str] = []
    for number in range(rounds):
        if number:
            # Counters and accuracies are the same in every round: one is enough.
            raced = races(sides["new"] / "round-0")
            if not raced:
                break
            options = ["--only", ",".join(f"block={block}" for block in raced)]
        for side, tree in (("base", before), ("new", ROOT)):
            print(f"{name}, round {number + 1} of {rounds}: {side}", flush=True)
            config = before / "configs" / f"{name}.yaml"
            run(tree, config, sides[side] / f"round-{number}", *options)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["compare", str(sides["base"]), str(sides["new"])]
    return subprocess.run(
        [*versions.SVMBENCH, *words], cwd=work, env=environment, check=False
    ).returncode


def main(arguments: list[str] | None = None) -> int:
    """Run both versions in turn and compare them; return the worst exit code of a comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", help="commit; default: where origin/main was left")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument(
        "--config",
        action="append",
        metavar="NAME",
        help=f"config of the base to run, may be given again; default: {GATE}",
    )
    given = parser.parse_args(arguments)
    names = list(dict.fromkeys(given.config or [GATE]))
    base = given.base or default_base()
    commit = git("rev-parse", "--short", f"{base}^{{commit}}").decode().strip()
    print(f"base: {base} ({commit}); new: the working tree", flush=True)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work).resolve()
        before = folder / "tree"
        versions.unpack(ROOT, commit, before)
        missing = [name for name in names if not (before / "configs" / f"{name}.yaml").exists()]
        if missing:
            sys.exit(f"regress: {base} has no configs/{missing[0]}.yaml to be held to")
        return max(hold(before, name, given.rounds, folder / "runs" / name) for name in names)


if __name__ == "__main__":
    sys.exit(main())
