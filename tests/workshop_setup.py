"""Loading the solvers that go wrong, for tests and for ``scripts/fuzz.py``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@contextmanager
def sabotaged(cache: Path, logs: Path) -> Iterator[None]:
    """Load the solvers that go wrong, here and in every worker.

    Workers are forked from a server that keeps the environment it was started in, so the server
    is stopped before and after.

    Parameters
    ----------
    cache : Path
        The cache of data sets.
    logs : Path
        Where these solvers write what happened.
    """
    from svmbench.baselines import catalogue
    from svmbench.core.contract.registry import REGISTRY

    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SVMBENCH_MIRROR", raising=False)
        for name, value in {
            "SVMBENCH_CACHE": str(cache),
            "SVMBENCH_OFFLINE": "1",
            "SVMBENCH_PLUGINS": "sabotage",
            "SABOTAGE_LOG": str(logs / "fits"),
            "SABOTAGE_PIDS": str(logs / "pids"),
            "SABOTAGE_HOARD": str(logs / "hoard"),
            "SABOTAGE_MENDED": str(logs / "mended"),
            "SABOTAGE_PLACE": str(logs / "place"),
            "SABOTAGE_ONCE": str(logs / "once"),
            "PYTHONPATH": os.pathsep.join(paths),
        }.items():
            patch.setenv(name, value)
        if str(HERE) not in sys.path:
            patch.syspath_prepend(str(HERE))
        stop_server()
        catalogue._registry.cache_clear()
        yield
        stop_server()
    for name in [name for name in REGISTRY if name.startswith("test-")]:
        del REGISTRY[name]
    sys.modules.pop("sabotage", None)
    catalogue._registry.cache_clear()


def stop_server() -> None:
    """Stop the server of workers of this process: the next one loads what its run needs."""
    from svmbench.experiment.run import processes

    processes.stop_server()
