"""Start Spark on this machine, and report missing packages in one sentence."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import svmbench
from svmbench.base.errors import MissingPackageError, SvmbenchError

#: Packages that executors need, in the order of their imports.
EXECUTOR_PACKAGES = ("svmbench", "numba", "scipy", "sklearn", "pyarrow", "numpy")


def require_spark() -> None:
    """Raise MissingPackageError if PySpark, PyArrow or Java is missing.

    Raises
    ------
    svmbench.base.errors.MissingPackageError
    """
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise MissingPackageError(
                f"Spark's solvers need the package {package}: pip install '.[spark]'"
            )
    home = os.environ.get("JAVA_HOME")
    program = Path(home) / "bin" / "java" if home else Path("java")
    if shutil.which(str(program)) is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "java is not in PATH"
        raise MissingPackageError(
            f"Spark needs a Java runtime, and {where}: install openjdk-17-jre-headless"
            " (Debian, Ubuntu) or another JRE of version 17 or later"
        )


def local_session(
    cores: int = 2, *, memory: str = "1g", master: str | None = None, **settings: Any
) -> Any:
    """Return a Spark session on this machine that other machines can't reach.

    The session has no web page and is bound to 127.0.0.1. It uses the current Python, unless
    PYSPARK_PYTHON is set. An existing session is returned with its memory unchanged.

    Parameters
    ----------
    cores : int, default=2
        Number of parallel tasks.
    memory : str, default="1g"
        Memory of the driver, which also runs the tasks; Python's memory is additional.
    master : str, optional
        Spark master instead of ``local[cores]``.
    **settings
        Further settings of Spark, with ``_`` for each dot.

    Raises
    ------
    svmbench.base.errors.MissingPackageError
        If PySpark, PyArrow or a Java runtime is missing.
    svmbench.base.errors.SvmbenchError
        If Java doesn't start Spark.
    """
    require_spark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.log.level": "ERROR",
        # Without this, Spark measures the batch after each added row, which takes half of the time.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4000",
        "spark.sql.shuffle.partitions": str(cores),
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    # Java and executors on this machine listen on this address.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Otherwise Spark would use the first Python in PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("svmbench").master(master or f"local[{cores}]")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, Py4JError, ConnectionError) as error:
        raise lost_driver() or SvmbenchError(
            "Java did not start Spark: PySpark 4 needs Java 17 or later, and the requested memory"
            f" ({memory})"
        ) from error


def present_session() -> Any:
    """Return the active session, or start one on this machine."""
    from pyspark.sql import SparkSession

    with spark_errors():
        active = SparkSession.getActiveSession()
    return active or local_session()


def ship(spark: Any) -> None:
    """Send this package to the executors of a session (``addPyFile``).

    NumPy, SciPy, Numba, scikit-learn and PyArrow must be installed on the executors.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    """
    spark.sparkContext.addPyFile(str(package_archive()))


def package_archive() -> Path:
    """Return an importable archive of this package."""
    folder = Path(svmbench.__file__).parent
    archive = Path(tempfile.mkdtemp(prefix="svmbench-")) / "svmbench.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for module in sorted(folder.rglob("*.py")):
            if module != folder / "__init__.py":
                package.write(module, module.relative_to(folder.parent))
        # Public names need the stub file, which lazy_loader can't read from an archive.
        package.writestr("svmbench/__init__.py", f"__version__ = {svmbench.__version__!r}\n")
    return archive


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn Spark's errors about executors, paths and lost drivers into one sentence.

    A malformed line is located in its file.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    from svmbench.spark.text import LineError, located

    try:
        yield
    except LineError as error:
        raise located(error) from error
    except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
        lost = lost_driver()
        if lost is None and isinstance(error, AnalysisException):
            raise SvmbenchError(f"Spark can't read the data: {_reason(str(error))}") from error
        raise lost or ended_by(error) from error


def lost_driver() -> SvmbenchError | None:
    """Return an error if Java was started and no longer answers, else None."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    try:
        if SparkContext._jvm is not None:
            SparkContext._jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return SvmbenchError(
            "Spark's driver, the Java process that this Python started, has ended: it was killed"
            " or ran out of memory. Start a new Python process, with more memory if needed"
        )
    return None


def ended_by(error: Exception) -> SvmbenchError:
    """Return the error that ended a job."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage())
    for package in EXECUTOR_PACKAGES:
        if f"No module named '{package}" in text:
            remedy = "install it there"
            if package == "svmbench":
                remedy += ", or send it with svmbench.spark.ship(spark)"
            return MissingPackageError(f"the executors' Python has no package {package}: {remedy}")
    return SvmbenchError(f"Spark failed: {_reason(text)}")


def _reason(text: str) -> str:
    """Return the last line of a Python traceback, or the first line of Java's message."""
    _, raised, traceback = text.rpartition("Traceback (most recent call last):")
    # All lines of a traceback are indented except the last one, which names the error.
    ends = [line for line in traceback.splitlines() if line and not line[0].isspace()]
    return ends[0] if raised and ends else text.strip().partition("\n")[0]
