"""Spark on this machine, and what is missing here or on the executors, in one sentence each."""

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

#: Packages that executors need, in the order in which their absence is noticed.
NEEDED = ("svmbench", "numba", "scipy", "sklearn", "pyarrow", "numpy")


def require_spark() -> None:
    """Raise MissingPackageError where there is no PySpark, no PyArrow or no Java.

    Raises
    ------
    svmbench.base.errors.MissingPackageError
    """
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise MissingPackageError(
                f"Spark's solvers need the package {package}: pip install 'svmbench[spark]'"
            )
    home = os.environ.get("JAVA_HOME")
    program = Path(home) / "bin" / "java" if home else Path("java")
    if shutil.which(str(program)) is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the path"
        raise MissingPackageError(
            f"Spark needs a Java runtime, and {where}: install openjdk-17-jre-headless"
            " (Debian, Ubuntu) or another JRE of version 17 or later"
        )


def local_session(
    cores: int = 2, *, memory: str = "1g", master: str | None = None, **settings: Any
) -> Any:
    """Return a Spark session on this machine, which only this machine can reach.

    Without the web page, bound to 127.0.0.1; its Python is this one, unless PYSPARK_PYTHON is set.
    If there is a session already, it is this one, with the memory that it has.

    Parameters
    ----------
    cores : int, default=2
        Tasks at a time.
    memory : str, default="1g"
        Of the driver, in which the tasks run as well; Python's own memory is not in it.
    master : str, optional
        Instead of ``local[cores]``.
    **settings
        Further ones of Spark, with ``_`` for each dot.

    Raises
    ------
    svmbench.base.errors.MissingPackageError
        If PySpark, PyArrow or a Java runtime is missing.
    svmbench.base.errors.SvmbenchError
        If Java does not start Spark.
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
        # Spark measures a batch anew for each row it adds, which takes half of the time.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4000",
        "spark.sql.shuffle.partitions": str(cores),
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    # Where Java, and executors of a cluster on this machine, listen.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Else Spark's Python is whichever one the path has, with whatever packages that has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("svmbench").master(master or f"local[{cores}]")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, Py4JError, ConnectionError) as error:
        raise lost_driver() or SvmbenchError(
            "Java did not start Spark: PySpark 4 needs Java 17 or later, and the memory asked for"
            f" ({memory})"
        ) from error


def present_session() -> Any:
    """Return the session that is active, or one on this machine."""
    from pyspark.sql import SparkSession

    with told():
        active = SparkSession.getActiveSession()
    return active or local_session()


def ship(spark: Any) -> None:
    """Send this package to the executors of a session (``addPyFile``), where it is not installed.

    NumPy, SciPy, Numba, scikit-learn and PyArrow have to be installed there.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    """
    spark.sparkContext.addPyFile(str(packed()))


def packed() -> Path:
    """Return an archive of this package from which Python can import it."""
    folder = Path(svmbench.__file__).parent
    archive = Path(tempfile.mkdtemp(prefix="svmbench-")) / "svmbench.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for module in sorted(folder.rglob("*.py")):
            if module != folder / "__init__.py":
                package.write(module, module.relative_to(folder.parent))
        # The public names are read from a stub beside the package, which an archive can't have.
        package.writestr("svmbench/__init__.py", f"__version__ = {svmbench.__version__!r}\n")
    return archive


@contextmanager
def told() -> Iterator[None]:
    """Turn errors of Spark into a sentence: of executors, of a path, of a driver that has ended.

    A line that can't be read is looked for in its file.

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
    """Return a sentence if Java was started and no longer answers; None otherwise."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    try:
        if SparkContext._jvm is not None:
            SparkContext._jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return SvmbenchError(
            "Spark's driver, the Java process that this Python started, has ended: it was killed,"
            " or ran out of memory; start this Python again, with more memory if it ran out"
        )
    return None


def ended_by(error: Exception) -> SvmbenchError:
    """Return what ended a job, as a sentence."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage())
    for package in NEEDED:
        if f"No module named '{package}" in text:
            remedy = "install it there"
            if package == "svmbench":
                remedy += ", or send it with svmbench.spark.ship(spark)"
            return MissingPackageError(f"the executors' Python has no package {package}: {remedy}")
    return SvmbenchError(f"Spark gave up: {_reason(text)}")


def _reason(text: str) -> str:
    """Return how a Python traceback on an executor ends, or the first line of what Java says."""
    _, raised, traceback = text.rpartition("Traceback (most recent call last):")
    # Lines of a traceback are indented, but for the one that names the error.
    ends = [line for line in traceback.splitlines() if line and not line[0].isspace()]
    return ends[0] if raised and ends else text.strip().partition("\n")[0]
