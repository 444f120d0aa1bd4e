"""The allowed imports of docs/architecture.md, and rules for every module."""

from __future__ import annotations

import ast
import functools
import importlib
import lzma
import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "svmbench"
MODULES = sorted(PACKAGE.rglob("*.py"))

DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def allowed_imports(heading: str) -> dict[str, set[str]]:
    """Read one of the document's tables: for each package those that it may import."""
    lines = iter(DOCUMENT.partition(f"{heading}\n")[2].splitlines())
    found: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("| `"):
            package, _, names = (cell.strip() for cell in line.split("|")[1:4])
            found[package.strip("`/").removesuffix(".py")] = set(re.findall(r"`([a-z_]+)`", names))
        elif found:
            break
    return found


#: By the package whose inner packages they are; "" is svmbench itself.
ALLOWED = {
    "": allowed_imports("## Packages"),
    "core": allowed_imports("### Inside `core`"),
    "experiment": allowed_imports("### Inside `experiment`"),
    "report": allowed_imports("### Inside `report`"),
}
#: How many imports between packages there may be at most (pairs), and how many levels.
MOST_EDGES = {"": 41, "core": 28, "experiment": 11, "report": 10}
MOST_LEVELS = {"": 7, "core": 6, "experiment": 5, "report": 5}


def name_of(module: Path) -> str:
    """Return a module's dotted name below the package: ``core.base``, ``core``, ``__init__``."""
    parts = module.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


NAMES = {name_of(module) for module in MODULES}


parse = functools.cache(ast.parse)


@functools.cache
def imports(source: str) -> tuple[tuple[int, str], ...]:
    """Return (line, dotted name below the package) of every import of the package's modules."""
    seen: list[tuple[int, str]] = []
    for node in ast.walk(parse(source)):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found = [
                f"{node.module}.{alias.name}"
                if f"{node.module}.{alias.name}".removeprefix("svmbench.") in NAMES
                else str(node.module)
                for alias in node.names
            ]
        for name in found:
            if name.startswith("svmbench."):
                seen.append((node.lineno, name.removeprefix("svmbench.")))
    return tuple(seen)


def inner(name: str, package: str) -> str:
    """Return which of a package's own packages a module lies in; "" if in none."""
    below = name.removeprefix(f"{package}.") if package else name
    return "" if package and below == name else below.partition(".")[0]


def edges(package: str) -> dict[tuple[str, str], list[str]]:
    """Return the imports between a package's own packages, each with where it stands."""
    found: dict[tuple[str, str], list[str]] = {}
    for module in MODULES:
        source = inner(name_of(module), package)
        for line, name in imports(module.read_text(encoding="utf-8")):
            target = inner(name, package)
            if source and target and source not in (target, "__init__", "__main__"):
                place = f"{module.relative_to(ROOT)}:{line} imports {name}"
                found.setdefault((source, target), []).append(place)
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_between_packages(package: str) -> None:
    allowed, found = ALLOWED[package], edges(package)
    wrong = [
        place
        for (source, target), places in found.items()
        for place in places
        if target not in allowed[source]
    ]
    assert wrong == []
    unused = {(one, other) for one, others in allowed.items() for other in others} - set(found)
    assert unused <= MAY_BE_UNUSED, "the table allows what nothing needs"
    assert len(found) <= MOST_EDGES[package]


def type_checking_lines(tree: ast.Module) -> set[int]:
    """Return the lines of imports that only type checkers see."""
    blocks = (n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test))
    return {line for n in blocks for line in range(n.lineno, (n.end_lineno or 0) + 1)}


def test_modules_import_each_other_in_no_cycle() -> None:
    """Imports inside functions count: a cycle behind a function is a cycle."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        source = module.read_text(encoding="utf-8")
        unseen = type_checking_lines(parse(source)) if "TYPE_CHECKING" in source else set()
        seen = {name for line, name in imports(source) if line not in unseen}
        graph[name_of(module)] = {name for name in seen if name in NAMES} - {name_of(module)}
    assert "studies.racing" in graph["studies.versions"]
    assert len(list(TopologicalSorter(graph).static_order())) >= len(MODULES)  # or a CycleError


#: What a line of the table allows although nothing imports it today.
MAY_BE_UNUSED: set[tuple[str, str]] = set()


@pytest.mark.parametrize("package", ALLOWED)
def test_the_table_holds_no_cycle(package: str) -> None:
    levels = list(TopologicalSorter(ALLOWED[package]).static_order())  # CycleError, if there is one
    depth: dict[str, int] = {}
    for name in levels:
        depth[name] = 1 + max((depth[other] for other in ALLOWED[package][name]), default=0)
    assert max(depth.values()) <= MOST_LEVELS[package]


@pytest.mark.parametrize("package", ALLOWED)
def test_every_package_is_in_its_table(package: str) -> None:
    folder = PACKAGE / package.replace(".", "/")
    there = {path.parent.name for path in folder.glob("*/__init__.py")}
    plain = {path.stem for path in folder.glob("[!_]*.py")}
    assert there | plain == set(ALLOWED[package])


SCRIPTS = sorted([*ROOT.glob("results/*/*.py"), *ROOT.glob("scripts/*.py")])


def missing_names(source: str) -> list[str]:
    """Return the names that a script imports from the package and that are not there."""
    missing = []
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "svmbench":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}".removeprefix("svmbench.")
                if not hasattr(module, alias.name) and submodule not in NAMES:
                    missing.append(f"{node.module}.{alias.name}")
    return missing


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_import_names_that_are_there(script: Path) -> None:
    assert missing_names(script.read_text("utf-8")) == []


def test_a_missing_name_is_found() -> None:
    assert missing_names("from svmbench.core.csvc.smo import NO_SUCH, Bounds") == [
        "svmbench.core.csvc.smo.NO_SUCH"
    ]


def test_imports_are_seen() -> None:
    source = "from svmbench.core.contract import base, problems\nimport svmbench.report.gate.sides"
    found = [name for _, name in imports(source)]
    assert found == ["core.contract.base", "core.contract.problems", "report.gate.sides"]
    assert inner("core.contract.base", "") == "core"
    assert inner("core.contract.base", "core") == "contract"
    assert inner("report.gate.sides", "core") == ""
    assert ("experiment", "core") in edges("")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", DOCUMENT))))
def test_every_file_that_the_document_names_is_there(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists() or (PACKAGE.parent / path).exists()


#: A file of the package in backticks; a paper's folder is left open.
FILE = re.compile(r"`((?:[a-z_]+/)+(?:<key>/)?[a-z_]+\.py)`")
WALKS = re.findall(r"^\*\*(From .*?)\n\n", DOCUMENT.partition("## Three walks\n")[2], re.M | re.S)
QUESTIONS = re.findall(r"^\| ([A-Z][^|]*\?) \| (.*`.*) \|$", DOCUMENT, re.M)
#: How many files may answer a question.
MAX_ANSWER_FILES = {
    "How are a cell's inputs scaled?": 3,
    "What does a cell's key cover?": 2,
    "What does `svmbench claims` read?": 5,
}


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.partition(".**")[0])
def test_a_walk_visits_no_file_twice(walk: str) -> None:
    files = FILE.findall(walk)
    assert len(files) == len(set(files)) > 5


#: Writes each function of the package with its file, when a process calls it for the first time.
#: Calls while a module is imported don't count. Workers are forks, so that theirs are written too.
TRACE = """
import os, sys
from svmbench.base.paths import PACKAGE

seen, folder, log = set(), f"{PACKAGE}/", os.path.abspath("calls")

def note(frame):
    code = frame.f_code
    call = os.getpid(), code
    if call in seen or not code.co_filename.startswith(folder):
        return
    caller = frame
    while caller is not None:
        if not caller.f_code.co_flags & 1 and caller.f_code.co_filename.startswith(folder):
            return  # the body of a module or a class
        caller = caller.f_back
    seen.add(call)
    with open(log, "a") as file:
        file.write(f"{code.co_filename.removeprefix(folder)} {code.co_name}\\n")

def traced(function, *args):
    if not hasattr(sys, "monitoring"):  # before Python 3.12
        sys.setprofile(lambda frame, event, _: note(frame) if event == "call" else None)
        try:
            return function(*args)
        finally:
            sys.setprofile(None)
    events = sys.monitoring
    events.use_tool_id(events.PROFILER_ID, "walks")
    events.register_callback(events.PROFILER_ID, events.events.PY_START, started)
    events.set_events(events.PROFILER_ID, events.events.PY_START)
    os.register_at_fork(after_in_child=events.restart_events)  # a process has its own first calls
    function(*args)

def started(code, _):
    if code.co_filename.startswith(folder):
        note(sys._getframe(1))
        if (os.getpid(), code) not in seen:
            return None  # while a module was being imported
    return sys.monitoring.DISABLE
"""
FIT = """
import numpy as np
from svmbench import CSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, -1)
traced(CSVC(C=1.0, gamma=0.5).fit, X, y)
"""
COMMAND = """
from svmbench.cli import main
traced(main)
"""
#: Files of the walk from `CSVC.fit` that a fit of 60 rows does not reach.
OF_MORE_ROWS = {"core/csvc/working_sets.py", "core/kernels/rows.py"}
CONFIG = """
title: A nested cross-validation
paper: alsvm
seed: 1
timeout_s: 60
datasets: [breast-cancer]
solvers: [{name: alsvm, grid: {C: [1.0]}}]
blocks: [{name: b, protocol: nested-cv, run_folds: 1, inner_folds: 2, scaling: all-rows}]
tables: [{name: means, block: b, published: table2}]
profiles: {quick: {}}
"""


#: Functions that a walk speaks of, in files that are called earlier for something else.
SPOKEN_OF = {
    "experiment/protocols/nested_cv.py": "nested_cv",
    "experiment/run/ipc.py": "send",
    "experiment/run/record_file.py": "append",
    "papers/judging/evidence.py": "_evidence",
}


def calls(folder: Path, script: str, *words: str) -> list[str]:
    """Return files and functions of the package in the order of first calls."""
    (folder / "calls").unlink(missing_ok=True)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"} if script == FIT else None
    command = [sys.executable, "-c", TRACE + script, *words]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return (folder / "calls").read_text().splitlines()


def is_in_order(called: list[str], walk: list[str]) -> bool:
    """Return True if the files of a walk are called for the first time in its order."""
    places = []
    for name in walk:
        function = SPOKEN_OF.get(name)
        found = [n for n, one in enumerate(called) if one.startswith(f"{name} {function or ''}")]
        places.append(found[-1] if function else found[0])
    return places == sorted(places)


@pytest.mark.slow
def test_a_fit_visits_the_files_of_its_walk_in_their_order(tmp_path: Path) -> None:
    (walk,) = [FILE.findall(walk) for walk in WALKS if "CSVC.fit" in walk]
    called = calls(tmp_path, FIT)
    assert is_in_order(called, [name for name in walk if name not in OF_MORE_ROWS])


@pytest.mark.slow
def test_commands_visit_the_files_of_their_walks_in_their_order(tmp_path: Path) -> None:
    run, results = ([*walk.split("For a ")] for walk in WALKS if "CSVC.fit" not in walk)
    (tmp_path / "config.yaml").write_text(CONFIG)
    called = calls(tmp_path, COMMAND, "run", "config.yaml", "--output", "run")
    assert is_in_order(called, FILE.findall(*run))
    reading, table, verdict = map(FILE.findall, results)
    called = calls(tmp_path, COMMAND, "table", "run", "--format", "markdown", "-o", "notes")
    assert is_in_order(called, table)
    kept = str(ROOT / "results" / "alsvm")
    called = calls(tmp_path, COMMAND, "claims", kept, "--paper", "alsvm")
    assert is_in_order(called, reading + verdict)


def test_there_are_three_walks() -> None:
    assert len(WALKS) == 3


def test_questions_are_answered_by_few_files() -> None:
    answers = dict(QUESTIONS)
    assert MAX_ANSWER_FILES.keys() <= answers.keys()
    for question, most in MAX_ANSWER_FILES.items():
        files = [
            name for name in FILE.findall(answers[question]) if not name.startswith("scripts/")
        ]
        assert 0 < len(files) <= most, question
        for name in files:
            assert (PACKAGE / name.replace("<key>", "smo")).is_file(), name


#: The modules that open files of /proc, and why: processes are described by one of them.
READ_PROC = {
    "experiment.measuring.proc": "memory and descendants of processes, the CPU's description",
    "experiment.measuring.measure": "a fit's own memory; every key covers it, none covers `proc`",
    "base.compiled": "the CPU's name in the key of Numba's cache, below `experiment`",
    "baselines.launcher": "a script that runs alone, beside a program",
}


def test_few_modules_read_proc() -> None:
    found = set()
    for module in MODULES:
        nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        if any(isinstance(text, str) and text.startswith("/proc") for text in texts):
            found.add(name_of(module))
    # `proc` takes the folder's place from `measure`.
    assert found | {"experiment.measuring.proc"} == set(READ_PROC)


TESTS = ROOT / "tests"
#: Folders of tests that mirror no package.
OTHER_FOLDERS = {
    "scripts": "maintainers' scripts, and those beside results",
    "programs": "other people's programs, with some that are written for the tests",
    "cluster": "runs on Dask, which is an extra",
}
#: Tests of what no single module does; the first line of each says what that is.
OF_SEVERAL_MODULES = {
    "": "architecture cpu_limit docs package patterns public_names results untraced warm_python",
    "base": "first_sign",
    "baselines": "hinge_peers installed_plugins kernel_programs",
    "cli": "comforts",
    "cluster": "cluster remote_records",
    "core/contract": "as_sklearn clone finish_fit paths_of_solvers promises target_type validated"
    " weights wide_inputs",
    "core/csvc": "as_svc file_list gap rows lazy_matrix",
    "core/kernel_svm": "oracles sparse_memory subproblems transcribed warm",
    "core/kernels": "given_kernel",
    "core/linear": "hard_inputs",
    "data": "data_scripts hostile_files mirror no_data",
    "experiment/config": "trust",
    "experiment/plan": "key_sizes sameness",
    "experiment/protocols": "block_runs combinations multiclass_runs novelty_runs one_round"
    " screening_runs search_settings",
    "experiment/run": "cell_costs arithmetic durability escapes foreign_files kill_loop sabotage"
    " storage_faults",
    "papers": "bare_numbers claims claims_command decidable headlines machines"
    " rendering rules single_times",
    "programs": "beyond programs",
    "report": "crafted_results",
    "report/gate": "foreign_solvers single_cells",
    "site": "contributed",
    "spark": "spark_cluster spark_models spark_page",
}


def mirrored(path: Path) -> bool:
    """Whether a file of tests is named for a module below its package, or for a script."""
    folder, name = path.parent.relative_to(TESTS), path.stem.removeprefix("test_")
    if folder.name == "scripts":
        return any(ROOT.glob(f"scripts/{name}.py")) or any(ROOT.glob(f"results/*/{name}.py"))
    # Names of files of tests are unique: one may have its package's name in front.
    plain = name.removeprefix(f"{folder.name}_")
    below = (PACKAGE / folder).rglob("*.py") if folder.parts else PACKAGE.glob("*.py")
    stems = {module.parent.name if module.stem == "__init__" else module.stem for module in below}
    return bool(stems & {name, plain})


def test_tests_mirror_the_package() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    assert len({path.name for path in files}) == len(files), "pytest knows a file by its name"
    folders = {path.parent.relative_to(TESTS).as_posix() for path in files} - {"."}
    packages = {path for path in folders if (PACKAGE / path / "__init__.py").is_file()}
    assert folders - packages == set(OTHER_FOLDERS)
    listed = {
        f"{folder}/test_{name}.py".removeprefix("/")
        for folder, names in OF_SEVERAL_MODULES.items()
        for name in names.split()
    }
    others = {path.relative_to(TESTS).as_posix() for path in files if not mirrored(path)}
    assert others == listed
    assert all(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in files)


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_are_named_for_what_they_do(module: Path) -> None:
    assert module.name not in {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}


#: The one module that parses text of a form that other people's files have.
PARSERS = {"yaml": "experiment.config.yaml_source", "tomllib": "base.toml_source"}
#: A module that reads nothing but configs that ship, which are no text of others; one that writes.
OWN_TEXT = {"base.paper_folders": "yaml", "report.output.archives": "yaml"}


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_text_of_others_is_parsed_in_one_place(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if OWN_TEXT.get(name_of(module)) == name:
                continue
            assert PARSERS.get(name.partition(".")[0], name_of(module)) == name_of(module), name


def tracked() -> list[Path]:
    """Return the files under version control, or all that would be, outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name]


def test_no_tracked_file_names_a_machine() -> None:
    """A path of one machine means nothing on another."""
    personal = re.compile(
        r"(?<![\w.~/-])/(?:work/[a-z.]|home/[a-z]|Users/[a-z]|root/|tmp/[a-z])", re.IGNORECASE
    )
    this = Path(__file__).resolve()
    found = []
    for path in tracked():
        if path == this or not path.is_file():
            continue
        try:
            content = path.read_bytes()
            text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {match.group()}"
            for number, line in enumerate(text.splitlines(), start=1)
            for match in personal.finditer(line)
        ]
    assert found == []
    assert personal.search("see /home/someone/data")


def test_no_data_file_is_tracked() -> None:
    """Kept records, and the grids that plots are made of, are no data sets; they stay small."""
    endings = {".npy", ".npz", ".xz", ".bz2", ".gz", ".libsvm", ".svm", ".zip"}
    found = [p for p in tracked() if p.suffix in endings]
    records = [
        path
        for path in found
        if ROOT / "results" in path.parents
        and (path.name == "runs.jsonl.xz" or path.match("artifacts/*.npz"))
    ]
    assert [str(p.relative_to(ROOT)) for p in found if p not in records] == []
    assert sum(path.stat().st_size for path in records if path.is_file()) <= 20e6
