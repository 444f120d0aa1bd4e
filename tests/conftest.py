"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import cpu_limit
import pytest
import untraced
from warm_python import WarmPython, warm_children
from workshop_setup import sabotaged

HERE = Path(__file__).parent
# As in the Makefile: on several threads, LIBSVM's one-class sums differ in their last bits by call.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What tests of the algorithms share serves those of the baselines, whoever is collected first.
sys.path.append(str(HERE / "core"))


# Modules and tests stay: the collector of reference cycles would look at them again and again.
gc.set_threshold(50_000, 10, 10)


def pytest_configure(config: pytest.Config) -> None:
    """Name tests that take long; have coverage, where it is measured, follow what is ours."""
    config.pluginmanager.register(cpu_limit)
    if config.pluginmanager.hasplugin("_cov"):
        untraced.leave_out_foreign_work()
        untraced.spare_workers()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the real data files where there are none, and say so."""
    if os.environ.get("SVMBENCH_MIRROR"):
        return
    skip = pytest.mark.skip(reason="needs real data files: set SVMBENCH_MIRROR")
    for item in items:
        if "mirror" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="module", autouse=True)
def nothing_old_is_collected() -> None:
    """Have the collection before each measured span not look through what is loaded by now."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """Have the commands and the servers of workers that tests start import no library again."""
    warm = WarmPython(str(tmp_path_factory.mktemp("warm") / "socket"))
    with warm_children(warm):
        yield warm
    warm.end()


@pytest.fixture
def mirror() -> str:
    """Return where the real data files lie."""
    return os.environ["SVMBENCH_MIRROR"]


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of data sets of its own."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("SVMBENCH_CACHE", str(cache))
    return cache


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache that the tests of a session share, so that data are prepared once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def workshop(shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Load the solvers that go wrong, here and in every worker; return their log folder."""
    logs = tmp_path_factory.mktemp("sabotage")
    with sabotaged(shared_cache, logs):
        yield logs


@pytest.fixture
def logs(workshop: Path) -> Path:
    """Return the log folder of the solvers that go wrong, emptied."""
    for path in workshop.iterdir():
        path.unlink()
    return workshop
