"""Do the six tasks of a contributor in a scratch copy, each as its page of documentation says.

Run from the repository's root:

    python scripts/six_tasks.py            # all six; exit code 1 if one fails
    python scripts/six_tasks.py paper      # one of them

A task takes the files of its page, writes them where the page says, and touches no other file. Then
the commands that the page names must succeed in the copy. The tasks: a solver, a paper, a score, an
output format, a setting of a protocol, another selection of pairs in the C-SVC.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What of the repository the tasks need.
COPIED = ("svmbench", "configs", "docs", "tests", "datasets.toml", "pyproject.toml", "README.md")
#: A fence of a page that is the content of a file.
FENCE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SVMBENCH = (sys.executable, "-c", "from svmbench.cli import main; main()")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")


#: Changes a text; the second argument is what ``svmbench validate --paper`` says in the copy.
Change = Callable[[str, str], str]


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes
    ----------
    page : str
        The page that says how it is done, in ``docs/``.
    files : dict of str to str
        Where files of the page go, by their names on the page.
    commands : tuple of tuple of str
        What must succeed afterwards.
    edits : dict of str to callable
        Changes of files that are there, which the page names.
    paper : str
        The folder of a paper; ``svmbench validate --paper`` says before the edits what it lacks.
    plugin : str
        The module of a plug-in, for ``SVMBENCH_PLUGINS``.
    """

    page: str
    files: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]
    edits: Mapping[str, Change] = field(default_factory=dict)
    paper: str = ""
    plugin: str = ""


def replaced(before: str, after: str) -> Change:
    """Return a change of a part that a text must have."""

    def change(text: str, _said: str) -> str:
        if before not in text:
            raise SystemExit(f"six_tasks: {before!r} is no longer in the file that has it replaced")
        return text.replace(before, after)

    return change


def told(pattern: str, said: str) -> str:
    """Return what a message says must be added."""
    found = re.search(pattern, said)
    if found is None:
        raise SystemExit(f"six_tasks: no message says {pattern!r}:\n{said}")
    return found[1]


def with_scene(text: str, _said: str) -> str:
    """Add a scene for the claim of the imagined paper."""
    before = "@dataclass(frozen=True)\nclass Scene"
    return text.replace(before, f"{BUILD}{before}").replace("SCENES = {\n", f"SCENES = {{\n{SCENE}")


#: The objective of the C-SVC on a small problem, beside LIBSVM's.
SAME_OBJECTIVE = """
import numpy as np
import svmbench
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, -1)
ours, theirs = (
    svmbench.solver(name, C=1.0, kernel="rbf", gamma=0.5, tol=1e-4).fit(X, y).objective_
    for name in ("csvc", "libsvm")
)
assert abs(ours - theirs) <= 1e-5 * theirs, (ours, theirs)
"""
PUBLIC_NAME = "import svmbench; assert svmbench.LBFGS.declaration.name == 'lbfgs-l2'"

IMAGINED = "svmbench/papers/imagined"
SCENE = """    "imagined-1": Scene(imagined, added("accuracy_pct", -20.0, "alsvm")),
"""
BUILD = """def imagined(kept):
    for fold in range(5):
        for solver, gain in (("alsvm", 0.0), ("dcd-l2", 0.1)):
            kept.add("imagined_table1", "cv", "breast-cancer", solver,
                     {"accuracy_pct": 90.0 + fold + gain, "n_train": 80, "n_test": 20},
                     fold=fold, protocol="nested-cv")  # fmt: skip


"""

TASKS = {
    "solver": Task(
        "adding-a-solver.md",
        {
            "lbfgs.py": "svmbench/core/linear/lbfgs.py",
            "test_lbfgs.py": "tests/core/test_lbfgs.py",
            "lbfgs.yaml": "configs/lbfgs.yaml",
        },
        (
            (sys.executable, "-c", PUBLIC_NAME),
            (*PYTEST, "tests/core/test_lbfgs.py"),
            (*SVMBENCH, "validate", "lbfgs"),
        ),
    ),
    "paper": Task(
        "adding-a-paper.md",
        {
            **{
                f"imagined/{name}": f"{IMAGINED}/{name}"
                for name in ("paper.toml", "published/numbers.csv", "claims.toml", "checks.py")
            },
            "imagined_table1.yaml": "configs/imagined_table1.yaml",
        },
        (
            (*SVMBENCH, "validate", "--paper", IMAGINED),
            (*PYTEST, "tests/papers/test_claims.py", "-k", "imagined"),
        ),
        edits={
            f"{IMAGINED}/paper.toml": lambda text, said: (
                "order = " + told(r"order = (\d+)", said) + "\n" + text
            ),
            "tests/papers/rules.csv": lambda text, said: (
                text.rstrip() + "\n" + told(r"append (imagined-1,\S+)", said) + "\n"
            ),
            "tests/papers/claimed_runs.py": with_scene,
        },
        paper=IMAGINED,
    ),
    "score": Task(
        "adding-a-score.md",
        {"mcc.py": "mcc.py", "test_mcc.py": "test_mcc.py", "scored.yaml": "scored.yaml"},
        ((*PYTEST, "test_mcc.py"), (*SVMBENCH, "validate", "scored.yaml")),
        plugin="mcc",
    ),
    "format": Task(
        "adding-a-format.md",
        {"org.py": "svmbench/report/output/formats/org.py"},
        (
            (*PYTEST, "tests/report/output/test_formats.py", "-k", "every_table_and_value"),
            (*SVMBENCH, "list", "formats"),
        ),
    ),
    "protocol setting": Task(
        "adding-a-protocol.md",
        {
            "bootstrap.py": "svmbench/experiment/protocols/bootstrap.py",
            "bags.yaml": "configs/bags.yaml",
        },
        ((*SVMBENCH, "validate", "bags"),),
        edits={"configs/bags.yaml": replaced("quick: {rounds: 3}", "quick: {rounds: 2}")},
    ),
    "pair selection": Task(
        "architecture.md",
        {},
        ((sys.executable, "-c", SAME_OBJECTIVE),),
        edits={"svmbench/core/csvc/smo.py": replaced("(d * (d / curvature))", "(d / curvature)")},
    ),
}


def names_of_plugins() -> dict[str, str]:
    """Return the modules of the names that plug-ins import from ``svmbench.plugins``."""
    stub = ast.parse((ROOT / "svmbench" / "plugins.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"svmbench.{node.module}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def into_tree(text: str) -> str:
    """Let a file of the tree import names from their modules, not as a plug-in does."""
    homes = names_of_plugins()

    def imports(found: re.Match[str]) -> str:
        names = re.findall(r"\w+", found[2])
        modules = dict.fromkeys(sorted(homes[name] for name in names))
        return "\n".join(
            f"{found[1]}from {module} import {', '.join(n for n in names if homes[n] == module)}"
            for module in modules
        )

    pattern = r"^( *)from svmbench\.plugins import (\([^)]*\)|[^\n]*)$"
    return re.sub(pattern, imports, text, flags=re.MULTILINE)


def run(words: tuple[str, ...], copy: Path, plugin: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the copy, whose modules are imported."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "SVMBENCH_PLUGINS": plugin}
    # Small problems: plain Python is quicker than compiling their loops.
    environment["NUMBA_DISABLE_JIT"] = "1"
    return subprocess.run(
        words, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


def do(name: str, task: Task, copy: Path) -> str:
    """Do a task in the copy; return what went wrong, or an empty text."""
    page = (ROOT / "docs" / task.page).read_text(encoding="utf-8")
    contents = dict(FENCE.findall(page))
    for path in (*task.files.values(), *task.edits):
        folders = [f"{folder.as_posix()}/" for folder in Path(path).parents if folder.parts]
        named = (path, path.removeprefix("svmbench/"), Path(path).name, *folders)
        if not any(f"`{one}`" in page or f"file={one}\n" in page for one in named):
            return f"docs/{task.page} doesn't name {path}"
    for source, target in task.files.items():
        text = contents[source]
        place = copy / target
        if place.exists():
            return f"{target} is there already"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(into_tree(text) if target.startswith("svmbench/") else text, "utf-8")
    said = ""
    if task.paper:
        said = run((*SVMBENCH, "validate", "--paper", task.paper), copy, "").stderr
    for target, change in task.edits.items():
        place = copy / target
        place.write_text(change(place.read_text(encoding="utf-8"), said), encoding="utf-8")
    python = [p for p in (*task.files.values(), *task.edits) if p.startswith("svmbench/")]
    python = [path for path in python if path.endswith(".py")]
    lint = [(sys.executable, "-m", "ruff", "check", "-q", "--ignore", "I001", *python)]
    for words in (*(lint if python else ()), *task.commands):
        done = run(words, copy, task.plugin)
        if done.returncode:
            shown = " ".join(words[1:4])
            return f"{name}: {shown} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return ""


def main() -> int:
    """Do the tasks that are named, or all; return the exit code."""
    chosen = sys.argv[1:] or list(TASKS)
    failed = False
    for name in chosen:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="svmbench-task-") as folder:
            copy = Path(folder) / "svmbench-copy"
            left_out = shutil.ignore_patterns("__pycache__", "*.pyc")
            for part in COPIED:
                source = ROOT / part
                if source.is_dir():
                    shutil.copytree(source, copy / part, ignore=left_out)
                else:
                    shutil.copy(source, copy / part)
            problem = do(name, TASKS[name], copy)
        print(f"{name}: {problem or 'done'} ({time.monotonic() - begun:.0f} s)", flush=True)
        failed |= bool(problem)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
