"""The docstring of csvc: it lists the files that are there, and says who chooses."""

import ast
import re
from pathlib import Path

from svmbench.core import csvc

FOLDER = Path(csvc.__file__).parent
KERNELS = FOLDER.parent / "kernels"
PAGE = csvc.__doc__


def test_the_page_lists_the_files_of_the_folder():
    listed = re.findall(r"^    (\w+\.py)  ", PAGE, flags=re.MULTILINE)
    assert sorted(listed) == sorted(p.name for p in FOLDER.glob("*.py") if p.name != "__init__.py")
    assert len(listed) <= 8


def test_names_on_the_page_are_there():
    known = {
        node.name
        for path in (*FOLDER.glob("*.py"), *KERNELS.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    for name in re.findall(r"``(\w+)(?:\.\w+)?``", PAGE):
        assert name in known or (FOLDER / f"{name}.py").exists(), name


def test_one_place_alone_chooses_the_method():
    # Nothing else of the package starts a search by working sets.
    for path in FOLDER.glob("*.py"):
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert ("WorkingSetSearch" in calls) == (path.name == "solver.py")
