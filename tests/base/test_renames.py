"""Former names of modules: whoever imports one is told the present one."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from runs import COMMAND

import svmbench
from svmbench.base.renames import RENAMED


@pytest.mark.parametrize("former", ["core.base", "report.claims", "commands"])
def test_the_error_of_an_old_import_has_the_present_name(former: str) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module(f"svmbench.{former}")
    assert str(caught.value) == (
        f"No module named 'svmbench.{former}': it is now 'svmbench.{RENAMED[former]}'"
    )
    assert caught.value.name == f"svmbench.{former}"


def test_every_former_name_leads_somewhere() -> None:
    """A module of a former package is looked for in the package first."""
    package = Path(str(svmbench.__file__)).parent
    gone = [former for former in RENAMED if not (package / former.replace(".", "/")).is_dir()]
    assert len(gone) > len(RENAMED) - 10
    for former in gone:
        with pytest.raises(ModuleNotFoundError, match="it is now 'svmbench"):
            import_module(f"svmbench.{former}")


def test_a_module_that_never_was_has_the_plain_error() -> None:
    for name in ("svmbench.core.nonsense", "nonsense"):
        with pytest.raises(ModuleNotFoundError, match=f"^No module named '{name}'$"):
            import_module(name)


@pytest.mark.slow
def test_a_plug_in_with_an_old_import_is_told(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("from svmbench.core.base import Solver\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "SVMBENCH_PLUGINS": "old"}
    done = subprocess.run(
        [*COMMAND, "list", "solvers"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "svmbench: SVMBENCH_PLUGINS: can't import 'old': No module named 'svmbench.core.base': "
        "it is now 'svmbench.core.contract.base'\n"
    )


def test_names_are_looked_up_in_a_fresh_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import svmbench.core.arrays"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "it is now 'svmbench.core.numeric.arrays'" in done.stderr
