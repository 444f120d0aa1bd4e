"""The clock: how often a fit is repeated, and what its spread is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import threadpoolctl
from small_problems import make_problem

from svmbench.baselines.foreign import adapted
from svmbench.experiment.measuring import environment, measure, proc


def repeats(seconds: float) -> int:
    """Return how many fits of so many seconds are made."""
    made = [seconds]
    while measure._too_few(made):
        made.append(seconds)
    return len(made)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1e-4, 50), (0.02, 5), (0.05, 3), (1.0, 3), (4.0, 2), (6.0, 1)]
)
def test_short_fits_are_repeated_and_long_ones_are_not(seconds: float, expected: int) -> None:
    assert repeats(seconds) == expected


SLOW_AT_FIRST = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

ROWS = []

class Compiles(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        if not ROWS:
            sum(range(20_000_000))  # as long as a compilation
        ROWS.append(len(y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])
"""


def test_what_a_class_compiles_at_its_first_fit_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_at_first.py").write_text(SLOW_AT_FIRST)
    monkeypatch.syspath_prepend(tmp_path)
    estimator = adapted("slow_at_first.Compiles")()
    X, y = make_problem(n=300, d=3)
    y = np.sort(y)  # the first rows are of one class
    _, timing = measure.fit_once(estimator, X, y)
    assert timing.cpu_s < 0.05
    (few, all_rows) = sys.modules["slow_at_first"].ROWS
    assert (few, all_rows) == (101, 300)


def test_spread_is_not_moved_by_one_disturbed_repeat() -> None:
    calm = [1.0, 1.1, 1.2, 1.3, 1.4]
    timing = measure.Timing(wall=[*calm[:4], 100.0])
    assert timing.spread(calm) == pytest.approx(0.1)
    assert timing.spread(timing.wall) == pytest.approx(0.1)
    assert timing.wall_s == 1.2
    assert timing.spread([1.0]) is None


def test_a_machine_is_not_another_for_a_library_that_brings_its_own_blas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CVXOPT does; what a process has imported besides must not split a run's results."""
    before = environment.environment_facts(1)["blas"]
    found = threadpoolctl.threadpool_info()
    other = {
        "user_api": "blas",
        "internal_api": "openblas",
        "version": "0.3.15",
        "filepath": "/site-packages/cvxopt.libs/libopenblas.so",
    }
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [*found, other])
    assert environment.environment_facts(1)["blas"] == before != []


def test_cpus_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual machines on several generations of a processor all have one name."""
    text = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: {}\nmodel name\t: A CPU\nstepping\t: 1\n"
    found = []
    for model in (143, 167):
        two = text.format(model) + "\n" + text.format(9)
        monkeypatch.setattr(measure.Path, "read_text", lambda _path, said=two: said)
        found.append(environment.cpu_model())
    assert found == [f"A CPU (family 6, model {model}, stepping 1)" for model in (143, 167)]


def test_without_proc_psutil_says_what_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        by_kernel = proc.descendants(os.getpid())
        held = proc.own_bytes()
        monkeypatch.setattr(measure, "PROC", tmp_path)
        assert child.pid in by_kernel
        assert set(proc.descendants(os.getpid())) == set(by_kernel)
        assert proc.own_bytes() >= held > 0
        assert proc.own_bytes(child.pid) > 0
        assert measure.status_bytes() == {}
        assert proc.cpu_facts() == {}
        assert environment.cpu_model()
    finally:
        child.communicate(b"\n")
    assert proc.own_bytes(child.pid) == 0
    assert proc.descendants(child.pid) == []


def test_the_environment_has_versions_of_installed_peers_alone(monkeypatch):
    from svmbench.experiment.measuring import environment

    versions = {"rehline": "0.1.4"}
    monkeypatch.setattr(environment, "_version", lambda name: versions.get(name, "not installed"))
    packages = environment.environment_facts(1)["packages"]
    assert packages["rehline"] == "0.1.4"
    assert "skglm" not in packages
    assert packages["numpy"] == "not installed"


def test_the_memory_is_known_where_meminfo_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    known = environment.environment_facts(1)["ram_gb"]

    def hidden() -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/meminfo")

    monkeypatch.setattr(psutil, "virtual_memory", hidden)
    assert abs(environment.environment_facts(1)["ram_gb"] - known) < 0.5
