"""What ``import svmbench`` offers: every solver by the name of its class, imported when used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import svmbench
from svmbench.baselines import catalogue

SOURCE = Path(svmbench.__file__).read_text(encoding="utf-8")


def imported_for_type_checkers() -> dict[str, str]:
    """Return the names below ``if TYPE_CHECKING``, each exported under its own, and their homes."""
    (block,) = (node for node in ast.parse(SOURCE).body if isinstance(node, ast.If))
    found: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "a checker takes only `name as name` for exported"
            found[alias.name] = str(node.module)
    return found


def test_both_tables_of_names_agree() -> None:
    assert imported_for_type_checkers() == svmbench._HOMES
    assert set(svmbench.__all__) == {*svmbench._HOMES, "__version__"}


@pytest.mark.parametrize("name", sorted(svmbench._HOMES))
def test_a_name_is_what_its_home_has(name: str) -> None:
    assert getattr(svmbench, name) is getattr(import_module(svmbench._HOMES[name]), name)


def test_every_solver_of_core_has_a_public_name() -> None:
    classes = [catalogue.solver_class(name) for name in catalogue.solvers()]
    own = {cls.__name__ for cls in classes if cls.__module__.startswith("svmbench.core")}
    assert len(own) > 30
    assert own <= set(svmbench.__all__)


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
    assert others - set(sys.stdlib_module_names) == {"svmbench"}


def test_a_linear_solver_brings_no_runner() -> None:
    found = after_import("svmbench.ALSVM")
    assert "svmbench.core.linear.alsvm" in found
    assert not {name for name in found if name.startswith(("svmbench.experiment", "pydantic"))}
    assert "svmbench.core.csvc" not in found


def test_dir_lists_all_of_it_and_a_wrong_name_is_an_attribute_error() -> None:
    assert set(svmbench.__all__) <= set(dir(svmbench))
    with pytest.raises(AttributeError, match="module 'svmbench' has no attribute 'CSVM'"):
        svmbench.CSVM  # noqa: B018


def test_type_checkers_see_the_classes(tmp_path: Path) -> None:
    assert (Path(svmbench.__file__).parent / "py.typed").is_file()
    script = tmp_path / "uses.py"
    script.write_text("from svmbench import DCDL1\n\nreveal_type(DCDL1(C=2.0).C)\nDCDL1(c=1.0)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 'Revealed type is "float"' in done.stdout, done.stdout + done.stderr
    assert 'Unexpected keyword argument "c"' in done.stdout
