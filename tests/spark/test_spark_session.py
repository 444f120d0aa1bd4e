"""What is said where Spark can't start: no Java is needed here."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path

import beyond
import pytest
from conftest import INSTALL
from runs import COMMAND

import svmbench
from svmbench.base.errors import MissingPackageError
from svmbench.spark.session import ended_by, package_archive, require_spark


def test_without_pyspark(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "svmbench.spark.session.find_spec", lambda name: None if name == "pyspark" else find(name)
    )
    with pytest.raises(
        MissingPackageError, match=r"need the package pyspark: pip install '.\[spark"
    ):
        require_spark()


def test_without_java(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("svmbench.spark.session.find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingPackageError) as caught:
        require_spark()
    assert str(caught.value) == (
        "Spark needs a Java runtime, and java is not in PATH: install "
        "openjdk-17-jre-headless (Debian, Ubuntu) or another JRE of version 17 or later"
    )
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    with pytest.raises(MissingPackageError, match="jre has no bin/java: install openjdk-17"):
        require_spark()
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    require_spark()


def test_the_archive_for_executors_can_be_imported():
    archive = package_archive()
    script = "import svmbench, svmbench.spark; print(svmbench.__file__, svmbench.__version__)"
    script += "; from svmbench.spark import ALSVMSpark; print(ALSVMSpark.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=archive.parent,
        env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first == f"{archive}/svmbench/__init__.py {svmbench.__version__}"
    assert second == "svmbench.spark.alsvm"


def test_a_command_without_java_ends_with_a_sentence(tmp_path: Path):
    beyond.need(package="pyspark", install=INSTALL)
    environment = {**os.environ, "SVMBENCH_PLUGINS": "svmbench.spark.plugin"}
    environment |= {"JAVA_HOME": str(tmp_path)}
    words = [
        "time",
        "breast-cancer",
        "--solver",
        "alsvm-spark",
        "--vs",
        "alsvm-batch",
        "--rounds",
        "1",
    ]
    done = subprocess.run(
        [*COMMAND, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "has no bin/java: install openjdk-17-jre-headless" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("Job aborted.\nTraceback:\n  ...\nModuleNotFoundError: No module named 'numba'", "numba"),
        ("No module named 'svmbench.spark'", "svmbench: install it there, or send it with"),
    ],
)
def test_what_executors_lack_is_named(said, sentence):
    error = ended_by(RuntimeError(said))
    assert isinstance(error, MissingPackageError)
    assert f"the executors' Python has no package {sentence}" in str(error)


def test_what_java_says_is_cut_to_its_reason():
    told = (
        "Job aborted due to stage failure: Task 3 failed 4 times: Traceback (most recent call "
        'last):\n  File "a.py", line 3, in f\nMemoryError: no room\n\n\tat org.apache.spark\n'
    )
    assert str(ended_by(RuntimeError(told))) == "Spark failed: MemoryError: no room"
    assert str(ended_by(RuntimeError("Executor lost.\n\tat x"))) == "Spark failed: Executor lost."
