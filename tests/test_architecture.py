"""The arrows of docs/architecture.md, and the habits that keep the house tidy."""

from __future__ import annotations

import ast
import lzma
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "svmbench"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: What each room may import besides itself; a leaf is a room of one module.
LEAVES = {"base", "errors", "inert", "paths"}
MAY_IMPORT = {
    "base": {"paths"},
    "errors": set(),
    "paths": {"errors", "inert"},
    "files": {"errors", "paths"},
    "inert": set(),
    "toml_source": {"errors", "inert", "paths"},
    "side_by_side": {"errors"},
    "misfits": {"errors", "inert"},
    "terminal": {"errors", "inert"},
    "record": {"inert"},
    "scores": {"errors"},
    "specs": {"errors", "misfits", "report.kinds"},
    "core": LEAVES,
    "baselines": {
        *LEAVES,
        *("core.contract", "core.kernels.kernels", "core.models", "core.numeric.arrays"),
    },
    "spark": {*LEAVES, "core", "data.libsvm"},
    "data": {*LEAVES, "misfits", "toml_source", "side_by_side"},
    "experiment": {
        *LEAVES,
        *("core", "baselines", "data", "catalogue", "misfits", "record", "scores", "specs"),
        *("files", "side_by_side"),
    },
    "report": {*LEAVES, "files", "misfits", "record", "scores", "specs", "toml_source"},
    "catalogue": {*LEAVES, "core", "baselines", "scores"},
    "papers": set(),
    "listing": {
        *LEAVES,
        *("baselines", "core", "data", "experiment", "catalogue", "papers", "scores", "terminal"),
    },
    "progress": {*LEAVES, "data", "experiment", "logs", "record", "terminal"},
    "logs": LEAVES,
    "completion": {*LEAVES, "papers", "toml_source"},
    "schema": {*LEAVES, "experiment", "completion"},
    "doctor": {*LEAVES, "core", "data", "experiment", "catalogue", "terminal"},
    "duel": {
        *LEAVES,
        *("baselines", "data", "experiment", "catalogue", "misfits", "record", "terminal"),
    },
}
ANYTHING = {"cli", "commands", "options", "publishing", "reproducing", "__init__"}


def name_of(module: Path) -> str:
    """Return a module's dotted name below the package: ``core.base``, ``core``, ``__init__``."""
    parts = module.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


NAMES = {name_of(module) for module in MODULES}


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name below the package) of every import of the package's own modules."""
    for node in ast.walk(ast.parse(source)):
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
                yield node.lineno, name.removeprefix("svmbench.")


def is_allowed(room: str, target: str) -> bool:
    allowed = {room, *MAY_IMPORT[room]}
    return any(target == name or target.startswith(f"{name}.") for name in allowed)


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_arrows(module: Path) -> None:
    room = name_of(module).partition(".")[0]
    if room in ANYTHING:
        return
    wrong = [
        f"{module.relative_to(ROOT)}:{line} imports {target}"
        for line, target in imports(module.read_text(encoding="utf-8"))
        if not is_allowed(room, target)
    ]
    assert wrong == []


def test_the_arrows_are_looked_at() -> None:
    source = "from svmbench.core.contract import base, problems\nimport svmbench.report.tables\n"
    assert [name for _, name in imports(source)] == [
        "core.contract.base",
        "core.contract.problems",
        "report.tables",
    ]
    assert is_allowed("baselines", "core.contract.base")
    assert not is_allowed("baselines", "core.numeric.qp")
    assert not is_allowed("core", "experiment.plan")
    assert not is_allowed("report", "experiment")


def test_every_room_is_in_the_document() -> None:
    rooms = {name.partition(".")[0] for name in NAMES}
    assert rooms == set(MAY_IMPORT) | ANYTHING
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room in rooms - {"__init__"}:
        assert f"`{room}/`" in text or f"`{room}.py`" in text, f"{room} is not described"
    for module in (PACKAGE / "experiment").glob("[!_]*.py"):
        assert f"`{module.name}`" in text, f"experiment/{module.name} is not described"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_are_small_and_named_for_what_they_do(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 500
    assert module.name not in {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}


#: The one module that parses text of a form that other people's files have.
PARSERS = {"yaml": "experiment.yaml_source", "tomllib": "toml_source"}


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_text_of_others_is_parsed_in_one_place(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert PARSERS.get(name.partition(".")[0], name_of(module)) == name_of(module), name


#: What makes a function a compiled loop, whose arguments can only be arrays and numbers.
COMPILES = {"compiled", "compiled_fused", "compiled_sums", "inlined", "intrinsic"}
MOST_PARAMETERS, MOST_LINES = 8, 60


def too_large(source: str) -> Iterator[str]:
    """Yield each function that has more parameters or lines than one reader can hold.

    Compiled loops and commands are left out, whose parameters have to stand there one by one; of
    an ``__init__`` the lines count alone, and no docstring counts.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        made_by = {
            getattr(part, "id", getattr(part, "attr", ""))
            for decorator in node.decorator_list
            for part in ast.walk(decorator)
        }
        if made_by & {*COMPILES, "command"}:
            continue
        given = node.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        n_parameters = len(names) - (names[:1] in (["self"], ["cls"]))
        n_lines = int(node.end_lineno or 0) - node.lineno + 1
        if ast.get_docstring(node) is not None:
            n_lines -= int(node.body[0].end_lineno or 0) - node.body[0].lineno + 1
        if n_parameters > MOST_PARAMETERS and node.name != "__init__":
            yield f"{node.lineno}: {node.name} has {n_parameters} parameters"
        if n_lines > MOST_LINES:
            yield f"{node.lineno}: {node.name} has {n_lines} lines"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_functions_are_small(module: Path) -> None:
    found = list(too_large(module.read_text(encoding="utf-8")))
    assert found == [], module.relative_to(ROOT)


def test_the_size_of_functions_is_looked_at() -> None:
    names = ", ".join("abcdefghi")
    assert list(too_large(f"def f({names}): ...")) == ["1: f has 9 parameters"]
    assert list(too_large(f"def f(self, *, {names}): ...")) == ["1: f has 9 parameters"]
    assert not list(too_large(f"def f(self, {names[3:]}, *args, **kwargs): ..."))
    assert not list(too_large(f"@compiled\ndef f({names}): ..."))
    assert not list(too_large(f"@cli.command()\n@click.option('-x')\ndef f({names}): ..."))
    assert not list(too_large(f"class A:\n def __init__(self, {names}): ..."))
    body = "\n".join(["    x = 1"] * 60)
    assert list(too_large(f"def f():\n{body}")) == ["1: f has 61 lines"]
    assert list(too_large(f"def f():\n    '''A.\n\n    B.\n    '''\n{body}"))
    assert not list(too_large(f"def f():\n    '''A.\n\n    B.\n    '''\n{body[10:]}"))


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
