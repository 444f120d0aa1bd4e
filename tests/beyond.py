"""What tests need that `pip install svmbench` does not bring: a package, a program.

Where it is missing they are skipped, and say so. With ``SVMBENCH_REQUIRE_BEYOND`` set, as `make
test-beyond` sets it, they fail instead: there everything can be had.
"""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

#: Set where a missing package or program is a failure.
REQUIRE = "SVMBENCH_REQUIRE_BEYOND"


def need(*, package: str = "", program: str = "", install: str = "") -> None:
    """Go on if a package or a program is here; skip the test, or its module, if it is not.

    Parameters
    ----------
    package : str
        A module's name, such as ``pyspark``.
    program : str
        The name of an executable, such as ``svm-train``.
    install : str
        How to get it, for the reason.
    """
    missing = [
        *([f"the package {package}"] if package and not _is_installed(package) else []),
        *([f"the program {program}"] if program and shutil.which(program) is None else []),
    ]
    if not missing:
        return
    reason = f"needs {' and '.join(missing)}" + (f": {install}" if install else "")
    if os.environ.get(REQUIRE):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
