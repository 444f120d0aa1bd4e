"""Sessions that all tests of Spark share: one Java process, of which contexts come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import beyond
import numpy as np
import pytest

#: What makes Java start in half the time, and run slower later; and Python's workers in a tenth,
#: who would each import this package for two seconds (`warm_daemon.py`).
DEFAULTS = f"""\
spark.driver.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1
spark.executor.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1
spark.python.daemon.module warm_daemon
spark.executorEnv.PYTHONPATH {Path(__file__).parent}
"""

INSTALL = "pip install '.[spark]', and openjdk-17-jre-headless or another JRE"


def need_spark() -> None:
    """Go on if Spark can be started here; skip the test, or its module, if it can't."""
    for package in ("pyspark", "pyarrow"):
        beyond.need(package=package, program="java", install=INSTALL)


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make Spark's folder one with settings of ours, where a cluster's workers may keep logs."""
    need_spark()
    import pyspark

    home = tmp_path_factory.mktemp("spark")
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield home


def opened(**settings: Any) -> Iterator[Any]:
    """Open a session for the time of a test, and close it."""
    from svmbench.spark import local_session

    spark = local_session(2, memory="600m", **settings)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def spark(spark_home: Path) -> Iterator[Any]:
    """Return a session of two tasks at a time in this process's Java."""
    yield from opened()


@pytest.fixture
def cluster(spark_home: Path) -> Iterator[Any]:
    """Return a session of two executors, each a process of its own with one core."""
    yield from opened(master="local-cluster[2,1,512]", spark_executor_memory="512m")


def problem(n: int = 300, d: int = 5, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs of which half are zeros, and labels 0 and 1."""
    draw = np.random.default_rng(n + d)
    X = np.where(draw.random((n, d)) < 0.5, 0.0, draw.standard_normal((n, d))) + offset
    y = (X - offset) @ draw.standard_normal(d) + 0.3 * draw.standard_normal(n) > 0.1
    return X, y.astype(int)


def framed(spark: Any, X: np.ndarray, y: np.ndarray, *, sparse: bool = False, **more: Any) -> Any:
    """Return arrays as Spark's own vectors, with further columns."""
    from pyspark.ml.linalg import Vectors

    def vector(row: np.ndarray) -> Any:
        at = np.flatnonzero(row)
        return Vectors.sparse(len(row), at, row[at]) if sparse else Vectors.dense(row)

    columns = [map(vector, X), map(float, y), *(map(float, column) for column in more.values())]
    return spark.createDataFrame(list(zip(*columns, strict=True)), ["features", "label", *more])
