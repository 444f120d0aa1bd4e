"""What ``import svmbench`` offers: every solver by the name of its class, imported when used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import svmbench
from svmbench import plugins, studies
from svmbench.baselines import catalogue

ROOT = Path(__file__).resolve().parent.parent


def names_in_stub(module: ModuleType) -> dict[str, str]:
    """Return the names that a module's stub exports, and the module that defines each."""
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    package = module.__name__ if hasattr(module, "__path__") else str(module.__package__)
    found: dict[str, str] = {}
    for node in ast.parse(stub).body[1:]:
        assert isinstance(node, ast.ImportFrom)
        assert node.level == 1, "lazy_loader takes relative imports alone"
        for alias in node.names:
            assert alias.asname == alias.name, "a checker takes only `name as name` for exported"
            found[alias.name] = f"{package}.{node.module}"
    return found


NAMES = names_in_stub(svmbench)
FACES = [(svmbench, NAMES), *((face, names_in_stub(face)) for face in (plugins, studies))]


@pytest.mark.parametrize(("face", "names"), FACES, ids=["svmbench", "plugins", "studies"])
def test_a_face_shows_the_names_of_its_stub_alone(face: ModuleType, names: dict[str, str]) -> None:
    assert set(face.__all__) == set(dir(face)) == set(names)


@pytest.mark.parametrize(
    ("face", "name", "module"),
    [(face, name, module) for face, names in FACES for name, module in sorted(names.items())],
)
def test_a_name_is_what_its_module_has(face: ModuleType, name: str, module: str) -> None:
    assert getattr(face, name) is getattr(import_module(module), name)


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "gc.disable()"])
def test_a_name_is_imported_without_collections_of_reference_cycles(before: str) -> None:
    code = f"""
import gc, svmbench
seen = []
{before}
enabled = gc.isenabled()
gc.callbacks.append(lambda phase, info: seen.append(phase))
svmbench.CSVC
n_seen = len(seen)
assert gc.isenabled() == enabled
try:
    svmbench.no_such_name
except AttributeError:
    assert gc.isenabled() == enabled
gc.collect()
print(n_seen, len(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    during, with_that_of_the_test = map(int, done.stdout.split())
    assert during == 0
    assert with_that_of_the_test > 0


@pytest.mark.slow
def test_what_plug_ins_import_loads_little() -> None:
    """A solver's plug-in loads neither the experiment nor the report."""
    code = "import sys; from svmbench.plugins import LinearClassifier, declare; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith("svmbench.")]
    assert "svmbench.core.contract.linear_base" in loaded
    assert not [n for n in loaded if n.startswith(("svmbench.experiment", "svmbench.report"))]


def test_the_pages_for_plug_ins_import_from_their_face() -> None:
    """The files that the pages walk through; their tests may look further inside."""
    for page in sorted((ROOT / "docs").glob("adding-a-*.md")):
        files = re.findall(r"```python file=(\S+)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        for name, text in files:
            if not name.startswith(("test_", "checks")):
                assert not re.findall(
                    r"from svmbench\.(?!plugins\b|papers\.judging\b)\S+ import", text
                ), (page, name)


def test_the_version_is_that_of_the_metadata() -> None:
    assert svmbench.__version__ == version("svmbench")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert svmbench.__version__ == declared["project"]["version"]


def documented(text: str) -> set[str]:
    """Return the names that a page takes from the package itself, or calls in it."""
    imported = re.findall(r"^from svmbench import (?:\(([^)]*)\)|(.*))$", text, re.MULTILINE)
    listed = ",".join(part for pair in imported for part in pair)
    found = {each.split(" as ")[0].strip() for each in listed.split(",")}
    found |= set(re.findall(r"(?<![\w/.])svmbench\.(\w+)\(", text))
    return found - {""}


def test_documentation_calls_what_is_public() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    used = {name for page in pages for name in documented(page.read_text(encoding="utf-8"))}
    used |= documented(svmbench.__doc__ or "")
    modules = {path.stem for path in (ROOT / "svmbench").glob("*") if path.suffix in ("", ".py")}
    assert {"solvers", "load", "CSVC"} <= used
    assert used - modules <= set(NAMES)


def test_every_solver_of_core_has_a_public_name() -> None:
    classes = [catalogue.solver_class(name) for name in catalogue.solvers()]
    own = {cls.__name__ for cls in classes if cls.__module__.startswith("svmbench.core")}
    assert len(own) > 30
    assert own <= set(svmbench.__all__)


def test_a_solver_of_core_without_a_line_in_the_stub_has_a_public_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unlisted(name: str) -> None:
        raise AttributeError(name)

    monkeypatch.setattr(svmbench, "_imported", unlisted)
    classes = [catalogue.solver_class(name) for name in catalogue.solvers()]
    for cls in classes:
        if cls.__module__.startswith("svmbench.core"):
            assert svmbench.__getattr__(cls.__name__) is cls
    with pytest.raises(AttributeError):
        svmbench.__getattr__("CSCV")


def after_import(*statements: str) -> set[str]:
    """Return what else is imported in a fresh process by ``import svmbench`` and statements."""
    code = "; ".join(
        ["import sys", "before = set(sys.modules)", "import svmbench", *statements]
        + ["print(*sorted(set(sys.modules) - before))"]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else() -> None:
    others = {name.partition(".")[0] for name in after_import("dir(svmbench)")}
    assert others - set(sys.stdlib_module_names) == {"svmbench", "lazy_loader"}
    assert "importlib.metadata" not in after_import()


@pytest.mark.slow
def test_a_linear_solver_brings_no_runner() -> None:
    found = after_import("svmbench.ALSVM")
    assert "svmbench.core.linear.alsvm" in found
    assert not {name for name in found if name.startswith(("svmbench.experiment", "pydantic"))}
    assert "svmbench.core.csvc" not in found


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No svmbench attribute CSVM"):
        svmbench.CSVM  # noqa: B018


@pytest.mark.slow
def test_type_checkers_see_the_classes(tmp_path: Path) -> None:
    assert (Path(svmbench.__file__).parent / "py.typed").is_file()
    script = tmp_path / "uses.py"
    script.write_text("from svmbench import DCDL1\n\nreveal_type(DCDL1(C=2.0).C)\nDCDL1(c=1.0)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 'Revealed type is "float"' in done.stdout, done.stdout + done.stderr
    assert 'Unexpected keyword argument "c"' in done.stdout
