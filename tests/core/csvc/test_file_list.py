"""The docstring of csvc: it lists the files that are there, and says who chooses."""

import ast
import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from svmbench.base.compiled import JIT_DISABLED
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


#: Fits in plain Python, and the files of the package with a function that each calls.
COUNT = """
import json, sys
import numpy as np
from svmbench.core.csvc import CSVC, pairs, solver

X = np.random.default_rng(0).normal(size=(60, 3))
found = []
for is_large in (False, True):
    if is_large:
        # Few samples go the way of many: working sets for two classes, checks of pairs for three.
        solver.FLOAT32_MIN_SAMPLES = solver.FULL_MATRIX_MAX_SAMPLES = 0
        pairs.PAIRS_FLOAT32_MIN_SAMPLES = pairs.PAIRS_FLOAT32_MIN_CLASS = 0
    for limits_of_classes in ([0.0], [-0.5, 0.5]):
        y = np.digitize(X[:, 0], limits_of_classes)
        entered = set()
        sys.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_filename))
        CSVC(gamma=0.5).fit(X, y)
        sys.setprofile(None)
        found.append(sorted(f for f in entered if "/svmbench/" in f and "<" not in f))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def files_by_fit():
    """Return the files that each fit enters: by whether samples are many and number of classes."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    fits = product((False, True), (2, 3))
    return dict(zip(fits, json.loads(done.stdout), strict=True))


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="the fits run as plain Python in any case")
@pytest.mark.parametrize(
    ("n_classes", "is_large", "most", "expected"),
    [
        (2, False, 10, {"smo.py"}),
        (2, True, 13, {"smo.py", "working_sets.py", "rows.py"}),
        (3, False, 14, {"pairs.py", "rows.py"}),
        (3, True, 16, {"pairs.py", "rows.py", "prediction.py"}),
    ],
)
def test_a_fit_enters_few_files(files_by_fit, n_classes, is_large, most, expected):
    """The files of compiled loops count, too, since these run as plain Python here."""
    package = FOLDER.parents[1]
    # `base/compiled.py` has stand-ins for the compiler's hints, called in plain Python alone.
    found = map(Path, files_by_fit[is_large, n_classes])
    entered = [path for path in found if path.name != "compiled.py"]
    assert all(path.is_relative_to(package) for path in entered)
    assert expected <= {path.name for path in entered}
    assert len([path for path in entered if path.parent == FOLDER]) <= 5
    assert len([path for path in entered if path.parent == KERNELS]) <= 4
    assert len(entered) <= most, sorted(path.name for path in entered)
