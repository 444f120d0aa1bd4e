"""Executors that are processes of their own, killed or without the package; a driver killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import framed, need_spark, opened, problem
from numpy.testing import assert_allclose

need_spark()

from svmbench.base.errors import MissingPackageError  # noqa: E402
from svmbench.core.linear.alsvm_batch import ALSVMBatch  # noqa: E402
from svmbench.spark import ALSVMSpark, ship  # noqa: E402
from svmbench.spark.rows import folds_by_content  # noqa: E402

#: A module that Python imports at its start, wherever it lies on the path.
WITHOUT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == "svmbench" and not any("svmbench.zip" in each for each in sys.path):
            raise ModuleNotFoundError("No module named 'svmbench'", name="svmbench")

sys.meta_path.insert(0, Refuse())
"""

#: A program whose driver is killed in a pass, and that then tries all that needs one.
WITHOUT_DRIVER = """
import os
import signal
import sys
import threading
import time
from pathlib import Path

from conftest import framed, problem
from pyspark import SparkContext

from svmbench.base.errors import SvmbenchError
from svmbench.spark import ALSVMSpark, L2SVMSpark, local_session

mark = Path(sys.argv[1])


def wait(batches):
    for batch in batches:
        mark.touch()
        time.sleep(600)
        yield batch


def kill():
    while not mark.exists():
        time.sleep(0.05)
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)


X, y = problem(40)
spark = local_session(1, memory="600m")
frame = framed(spark, X, y)
model = ALSVMSpark().fit(frame)
threading.Thread(target=kill, daemon=True).start()
for act in (
    lambda: L2SVMSpark().fit(frame.mapInArrow(wait, frame.schema)),
    lambda: L2SVMSpark().fit(frame),
    lambda: ALSVMSpark().fit(X, y),
    lambda: ALSVMSpark().search(frame, [1.0], 2),
    lambda: ALSVMSpark().fit("none.svm"),
    lambda: model.transform(frame),
    local_session,
):
    try:
        act()
    except SvmbenchError as error:
        print("TOLD", error)
"""


def ancestors(pid: int) -> list[tuple[int, str]]:
    """Return a process's parents, with their commands."""
    found = []
    while pid > 1:
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(status.split("PPid:")[1].split()[0])
        found.append((pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")))
    return found


def held(frame, folder: Path, partition: int):
    """Return a frame of which one partition waits, once, amid its rows for its executor's death."""

    def wait(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        mark = folder / "held"
        for number, batch in enumerate(batches):
            if context.partitionId() == partition and number == 1 and not mark.exists():
                mark.with_suffix(".new").write_text(str(os.getpid()))
                mark.with_suffix(".new").rename(mark)
                time.sleep(60)
            yield batch
        (folder / f"done-{context.partitionId()}-{os.getpid()}").touch()

    return frame.mapInArrow(wait, frame.schema)


def killed(folder: Path, seen: list[int]) -> None:
    """Kill the executor whose task waits, once there is one."""
    mark = folder / "held"
    for _ in range(600):
        if mark.exists():
            break
        time.sleep(0.1)
    worker = int(mark.read_text())
    executor = next(p for p, command in ancestors(worker) if "CoarseGrainedExecutor" in command)
    os.kill(executor, signal.SIGKILL)
    seen.extend([worker, executor])


def with_one_killed(frame, folder: Path, fit):
    """Return what a fit finds during which an executor is killed, and what was killed."""
    folder.mkdir()
    seen: list[int] = []
    killer = threading.Thread(target=killed, args=(folder, seen))
    killer.start()
    model = fit(held(frame, folder, partition=1))
    killer.join()
    worker, executor = seen
    assert not Path(f"/proc/{executor}/exe").is_file()
    # The partition that waited was never finished there: another process did it, from the start.
    (done,) = folder.glob("done-1-*")
    assert int(done.name.rpartition("-")[2]) != worker
    return model


def test_an_executor_that_is_killed_in_a_pass_loses_nothing(cluster, tmp_path: Path):
    X, y = problem(200)  # 50 a partition: the one that waits has read 20 of them
    cluster.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    frame = framed(cluster, X, y).repartition(4)

    found = with_one_killed(
        frame, tmp_path / "marks", lambda rows: ALSVMSpark().search(rows, [10.0], 3)
    )
    assert found.counters["passes"] == 1
    folds = folds_by_content(X, 3)
    for fold, (model,) in enumerate([*found.models, found.all_rows]):
        rest = folds != fold  # of the last, which is none, all rows
        assert_allclose(model.coef_, ALSVMBatch(10.0).fit(X[rest], y[rest]).coef_, rtol=1e-11)


def test_executors_without_the_package_are_told_of_and_sent_it(spark_home: Path, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    X, y = problem(60)
    sessions = opened(
        master="local-cluster[1,1,512]",
        spark_executor_memory="512m",
        spark_executorEnv_PYTHONPATH=str(tmp_path),
        spark_python_daemon_module="pyspark.daemon",
        spark_task_maxFailures=1,
    )
    spark = next(sessions)
    try:
        frame = framed(spark, X, y)
        with pytest.raises(MissingPackageError, match="has no package svmbench: install") as error:
            ALSVMSpark().fit(frame)
        assert "\n" not in str(error.value)
        ship(spark)
        assert_allclose(ALSVMSpark().fit(frame).coef_, ALSVMBatch().fit(X, y).coef_, rtol=1e-10)
    finally:
        list(sessions)


def test_a_driver_that_is_killed_is_one_sentence_wherever_it_is_missed(
    spark_home: Path, tmp_path: Path
):
    here = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER, str(tmp_path / "mark")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert len(said) == 7, done.stderr
    assert all(line.startswith("TOLD Spark's driver, the Java process") for line in said)
