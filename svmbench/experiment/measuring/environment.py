"""The machine and the libraries that a record was measured on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from svmbench.experiment.measuring import proc

_PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "scikit-learn",
    "pandas",
    "liblinear-official",
    "libsvm-official",
)
#: Optional packages, recorded only where they are installed.
_PEERS = ("cyanure", "rehline", "scikit-learn-intelex", "skglm")

#: Keeps Python from importing what lies in the folder that a process is started in. The value tells
#: that it was set for the server of workers alone, and not by the user.
SAFE_PATH = ("PYTHONSAFEPATH", "svmbench")

#: The environment variable that names the machine's kind, if its CPU model doesn't tell it.
KIND_VARIABLE = "SVMBENCH_KIND"

#: What tells apart CPUs of one name, by the kernel's names.
_CPU_NUMBERS = {"family": "cpu family", "model": "model", "stepping": "stepping"}

#: Names the solvers whose compiled code workers inherit, separated by commas.
PRELOAD_VARIABLE = "SVMBENCH_PRELOAD"


def environment_facts(threads: int) -> dict[str, Any]:
    """Return the stable facts of this environment, with an ``id`` that hashes them."""
    facts: dict[str, Any] = {
        "svmbench": _version("svmbench"),
        "git": _git_state(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "ram_gb": round(_memory_bytes() / 2**30, 1),
        "blas": _blas(),
        "threads": threads,
        "packages": {
            name: version
            for name in (*_PACKAGES, *_PEERS)
            if (version := _version(name)) != "not installed" or name in _PACKAGES
        },
    }
    if kind := os.environ.get(KIND_VARIABLE):
        facts["kind"] = kind
    return {"id": id_of(facts), **facts}


def _memory_bytes() -> int:
    """Return the memory of the machine, also where /proc/meminfo is hidden."""
    import psutil

    try:
        return int(psutil.virtual_memory().total)
    except (OSError, KeyError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def id_of(facts: dict[str, Any]) -> str:
    """Return the hash of an environment's stable facts: all but its id and load."""
    stable = {name: value for name, value in facts.items() if name not in ("id", "load")}
    return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:8]


def other_arithmetic(facts: Mapping[str, Any], core: str) -> str:
    """Return a sentence if NumPy and SciPy do not compute under OpenBLAS's core type `core`.

    Parameters
    ----------
    facts : mapping
        An environment as `environment_facts` returns it.
    core : str
        The core type that a config asks for.

    Returns
    -------
    str
        Empty if they do.
    """
    words = [name.casefold().split() for name in facts["blas"]]
    if words and all((word[0], word[-1]) == ("openblas", core.casefold()) for word in words):
        return ""
    libraries = ", ".join(facts["blas"]) or "a BLAS that can't be told"
    return (
        f"the config asks for OpenBLAS's core type {core}, but NumPy and SciPy compute with"
        f" {libraries}: counters and objectives may differ from those under {core}"
    )


def load_average() -> list[float]:
    """Return the 1-, 5- and 15-minute load averages, or nothing where there are none."""
    try:
        return [round(x, 2) for x in os.getloadavg()]
    except OSError:
        return []


def cpu_model() -> str:
    """Return the CPU's model name, with its numbers: a virtual machine's name may lack them."""
    facts = proc.cpu_facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{what} {facts[of]}" for what, of in _CPU_NUMBERS.items() if of in facts]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _blas() -> list[str]:
    """Return name, version and architecture of each BLAS that NumPy and SciPy compute with.

    Another library may have loaded one of its own, which says nothing of a solver's time: machines
    are told apart by this list, and it must not depend on what else a process has imported.
    """
    import scipy.linalg  # noqa: F401  (loads both)
    import threadpoolctl

    loaded = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    bundled = [
        lib for lib in loaded if {"numpy.libs", "scipy.libs"} & {*Path(lib["filepath"]).parts}
    ]
    return sorted(
        f"{lib['internal_api']} {lib.get('version')} {lib.get('architecture', '')}".strip()
        for lib in bundled or loaded
    )


def _git_state() -> dict[str, Any] | None:
    """Return commit and cleanliness of the checkout that the package runs from."""
    package = Path(sys.modules["svmbench"].__file__ or ".").resolve().parent

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=package, capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")) != package.parent:
            return None
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(package))
        return {"commit": git("rev-parse", "HEAD")[:12], "modified": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        return None
