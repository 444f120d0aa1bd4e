"""Hold the working tree to an earlier commit: both run the gate's config in turn, and are compared.

::

    python scripts/regress.py              # against where this branch left origin/main
    python scripts/regress.py v0.1.0       # against any commit

Times of a shared machine drift, so the two versions run A B A B …, and what is compared is the
median over rounds of each version's ratios to the reference solver. Both run the config of the
base, which both know. The exit code is that of ``svmbench compare``: 4 for a regression.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Odd, so that a median is a measured value.
ROUNDS = 3
SVMBENCH = [sys.executable, "-c", "from svmbench.cli import main; main()"]


def git(*words: str) -> bytes:
    """Return what a git command prints, or end with what it complains of."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"regress: git {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


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


def unpack(commit: str, folder: Path) -> None:
    """Write a commit's files to a folder; the repository is left as it is."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit))) as archive:
        archive.extractall(folder, filter="data")


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
    where = [sys.executable, "-c", "import svmbench; print(svmbench.__file__)"]
    found = subprocess.run(
        where, cwd=output.parent, env=environment, capture_output=True, text=True, check=True
    )
    if not Path(found.stdout.strip()).is_relative_to(tree):
        sys.exit(f"regress: {found.stdout.strip()} was imported where {tree} was meant")
    command = [*SVMBENCH, "run", str(config), "--output", str(output), "--quiet", *options]
    done = subprocess.run(command, cwd=output.parent, env=environment, check=False)
    # Cells that failed are for the comparison to judge.
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)


def main(arguments: list[str] | None = None) -> int:
    """Run both versions in turn and compare them; return the exit code of the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", help="commit; default: where origin/main was left")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    given = parser.parse_args(arguments)
    base = given.base or default_base()
    commit = git("rev-parse", "--short", f"{base}^{{commit}}").decode().strip()
    print(f"base: {base} ({commit}); new: the working tree", flush=True)
    with tempfile.TemporaryDirectory() as work:
        before = Path(work).resolve() / "tree"
        unpack(commit, before)
        config = before / "configs" / "regress.yaml"
        if not config.exists():
            sys.exit(f"regress: {base} has no configs/regress.yaml to be held to")
        sides = {name: Path(work, name) for name in ("base", "new")}
        for side in sides.values():
            side.mkdir()
        for number in range(given.rounds):
            # Counters and accuracies are the same in every round: one is enough.
            options = ["--only", "block=speed"] if number else []
            for name, tree in (("base", before), ("new", ROOT)):
                print(f"round {number + 1} of {given.rounds}: {name}", flush=True)
                run(tree, config, sides[name] / f"round-{number}", *options)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = ["compare", str(sides["base"]), str(sides["new"])]
        done = subprocess.run([*SVMBENCH, *words], cwd=work, env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
