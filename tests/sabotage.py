"""Solvers that go wrong, each in one way: a plug-in for the tests of the runner.

They are loaded through SVMBENCH_PLUGINS, the way a user's own solver is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.linear_base import LinearClassifier, LinearSolution
from svmbench.core.contract.registry import declare


class _Nearest(LinearClassifier):
    """A solver that works: the difference of the class means."""

    def __init__(self, C: float = 1.0, fit_intercept: bool = True) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = 1.0

    def train(self, data: TrainingData) -> _Nearest:
        announce(data)
        self.misbehave(data)
        return self._store(self.solve(data))

    def misbehave(self, data: TrainingData) -> None:
        """Do what a subclass does wrong."""

    def solve(self, data: TrainingData) -> LinearSolution:
        centre = [np.asarray(data.X[data.y == s].mean(axis=0)).ravel() for s in (-1, 1)]
        w = centre[1] - centre[0]
        b = -float(w @ (centre[0] + centre[1])) / 2
        return LinearSolution(w, b, 1, "closed form", {"updates": len(data.y)})


def announce(data: TrainingData) -> None:
    """Write this process's id to the file that SABOTAGE_PIDS names, for real fits."""
    if len(data.y) > 10 and os.environ.get("SABOTAGE_PIDS"):
        with Path(os.environ["SABOTAGE_PIDS"]).open("a") as stream:
            stream.write(f"{os.getpid()}\n")


def _solver(name: str, *, sparse: bool = True) -> Callable[[Any], Any]:
    return declare(name=name, problem="hinge", summary="for tests", reference="none", sparse=sparse)


@_solver("test-works")
class Works(_Nearest):
    """It works."""


@_solver("test-slow")
class Slow(_Nearest):
    """It works, after a while."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            time.sleep(0.1)


@_solver("test-counts")
class Counts(_Nearest):
    """It writes a line to a file for each real fit; beside a file ``slowly`` most take long."""

    def misbehave(self, data: TrainingData) -> None:
        log = os.environ.get("SABOTAGE_LOG")
        if log and len(data.y) > 10:
            is_slow = Path(log).with_name("slowly").exists() and Path(log).exists()
            n_fits = len(Path(log).read_text().splitlines()) if is_slow else 0
            time.sleep(2.0 if n_fits >= 5 else 0.02)
            with Path(log).open("a") as stream:
                stream.write(f"{os.getpid()} {self.C} {len(data.y)}\n")


@_solver("test-writes")
class Writes(_Nearest):
    """It writes C MiB of temporary files, and as much to the folder that SABOTAGE_PLACE names."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            for folder in (tempfile.gettempdir(), os.environ["SABOTAGE_PLACE"]):
                if Path(folder).is_dir():
                    with (Path(folder) / "much").open("wb") as stream:
                        stream.write(bytes(int(self.C * 2**20)))


@_solver("test-hangs")
class Hangs(_Nearest):
    """It never ends."""

    def misbehave(self, data: TrainingData) -> None:
        while len(data.y) > 10:
            time.sleep(1)


@_solver("test-segfaults")
class Segfaults(_Nearest):
    """It reads address zero."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            ctypes.string_at(0)


@_solver("test-exits")
class Exits(_Nearest):
    """It leaves without a word, with C as its exit code."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            os._exit(int(self.C))


@_solver("test-is-killed")
class IsKilled(_Nearest):
    """It is killed, as the kernel kills what takes the machine's last memory."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            os.kill(os.getpid(), signal.SIGKILL)


@_solver("test-allocates")
class Allocates(_Nearest):
    """It allocates without end, in pieces too small for one of them to fail."""

    def misbehave(self, data: TrainingData) -> None:
        hoard = []
        while len(data.y) > 10:
            hoard.append(np.ones(1_000_000))
            Path(os.environ["SABOTAGE_HOARD"]).write_text(str(8 * len(hoard)))


@_solver("test-raises")
class Raises(_Nearest):
    """It raises."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            raise RuntimeError("the matrix is\nnot what it was")


@_solver("test-raises-in-c")
class RaisesInC(_Nearest):
    """It raises a Python error from C code."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            raise_ = ctypes.pythonapi.PyErr_SetString
            raise_(ctypes.py_object(ValueError), b"said by C code")


@_solver("test-aborts")
class Aborts(_Nearest):
    """It calls C's abort, which is where a C++ exception that nobody catches ends."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            ctypes.CDLL(None).abort()


@_solver("test-nan")
class NotANumber(_Nearest):
    """It returns NaN weights without noticing."""

    def solve(self, data: TrainingData) -> LinearSolution:
        solution = super().solve(data)
        if len(data.y) > 10:
            solution.w[0] = np.nan
        return solution


@_solver("test-nan-objective")
class NotANumberObjective(_Nearest):
    """Its weights are finite and its objective is not."""

    def evaluate_objective(self, data: TrainingData) -> NotANumberObjective:
        super().evaluate_objective(data)
        self.objective_ = float("nan")
        return self


@_solver("test-random")
class Random(_Nearest):
    """Its model depends on its seed and on the rows it is given, and on nothing else."""

    def __init__(
        self, C: float = 1.0, fit_intercept: bool = True, random_state: int | None = None
    ) -> None:
        super().__init__(C, fit_intercept)
        self.random_state = random_state

    def solve(self, data: TrainingData) -> LinearSolution:
        solution = super().solve(data)
        noise = np.random.default_rng(self.random_state).standard_normal(len(solution.w))
        rows = int(1e6 * np.asarray(data.X[:20].sum())) % 1_000_003
        solution.counters["rows"] = rows
        return LinearSolution(
            solution.w + 0.01 * noise, solution.b, 1, "closed form", solution.counters
        )


@_solver("test-holds-the-gil")
class HoldsTheGil(_Nearest):
    """It never ends, and lets no other thread of its process run."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            ctypes.PyDLL(None).sleep(600)


@_solver("test-fails-once")
class FailsOnce(_Nearest):
    """It raises unless the file that SABOTAGE_MENDED names is there."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10 and not Path(os.environ["SABOTAGE_MENDED"]).exists():
            raise RuntimeError("not mended yet")


@_solver("test-dense-only", sparse=False)
class DenseOnly(_Nearest):
    """It works on dense inputs alone."""


@_solver("test-turns-back-the-clock")
class TurnsBackTheClock(_Nearest):
    """It sets its process's idea of the time of day back by a day."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            now = time.time()
            time.time = lambda: now - 86400


def place() -> Path:
    """Return the results folder that a test has named."""
    return Path(Path(os.environ["SABOTAGE_PLACE"]).read_text())


def once() -> bool:
    """Whether nobody asked before; a test begins with nobody having asked."""
    try:
        Path(os.environ["SABOTAGE_ONCE"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def fork_a_sleeper() -> None:
    """Leave behind a process that keeps everything open which this one has open."""
    if os.fork() == 0:
        with Path(os.environ["SABOTAGE_PIDS"]).open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        time.sleep(600)
        os._exit(0)


@_solver("test-forks")
class Forks(_Nearest):
    """It works, and leaves a process behind."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            fork_a_sleeper()


@_solver("test-forks-and-exits")
class ForksAndExits(_Nearest):
    """It leaves a process behind that holds its pipe, and is gone."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            fork_a_sleeper()
            os._exit(3)


@_solver("test-forks-and-hangs")
class ForksAndHangs(_Nearest):
    """It leaves a process behind and never ends."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            fork_a_sleeper()
            time.sleep(600)


class _Counting(_Nearest):
    odd: Any = None

    def solve(self, data: TrainingData) -> LinearSolution:
        solution = super().solve(data)
        solution.counters["odd"] = self.odd
        return solution


@_solver("test-counts-an-object")
class CountsAnObject(_Counting):
    """Its counters hold what JSON can't."""

    odd = object()


@_solver("test-counts-too-far")
class CountsTooFar(_Counting):
    """Its counters hold a number that few can read."""

    odd = 10**400


@_solver("test-counts-in-numpy")
class CountsInNumpy(_Counting):
    """Its counters are NumPy's, which is no harm."""

    odd = np.int64(7)


@_solver("test-talks-at-length")
class TalksAtLength(_Nearest):
    """It says more than a record may have."""

    def solve(self, data: TrainingData) -> LinearSolution:
        solution = super().solve(data)
        return LinearSolution(solution.w, solution.b, 1, "x" * (17 << 20), solution.counters)


@_solver("test-writes-everywhere")
class WritesEverywhere(_Nearest):
    """It writes to whatever its process has open."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            from svmbench.experiment.run import processes

            os.write(processes._to_parent, b"progress: 10 %\n")
            time.sleep(600)


@_solver("test-says-half")
class SaysHalf(_Nearest):
    """It ends in the middle of a message."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            from svmbench.experiment.run import ipc, processes

            os.write(processes._to_parent, ipc.encode({"status": "ok"})[:-4])
            os._exit(0)


@_solver("test-says-half-and-hangs")
class SaysHalfAndHangs(_Nearest):
    """It stops in the middle of a message."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            from svmbench.experiment.run import ipc, processes

            os.write(processes._to_parent, ipc.encode({"status": "ok"})[:-4])
            time.sleep(600)


@_solver("test-shares-memory")
class SharesMemory(_Nearest):
    """It allocates without end what it could share with others."""

    def misbehave(self, data: TrainingData) -> None:
        held = []
        while len(data.y) > 10 and len(held) < 200:
            held.append(mmap.mmap(-1, 10 << 20))
            held[-1].write(b"x" * (10 << 20))
            time.sleep(0.02)


@_solver("test-forks-for-memory")
class ForksForMemory(_Nearest):
    """It has another process allocate without end."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            if os.fork() == 0:
                held = []
                for _ in range(200):
                    held.append(np.ones(1_000_000))
                    time.sleep(0.02)
                os._exit(0)
            os.wait()


@_solver("test-ends-its-server")
class EndsItsServer(_Nearest):
    """It kills the process that it was forked from, once, and goes on for long."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10 and once():
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)


@_solver("test-always-ends-its-server")
class AlwaysEndsItsServer(_Nearest):
    """It kills the process that it was forked from, each time."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)


@_solver("test-removes-scratch")
class RemovesScratch(_Nearest):
    """Someone else removes the run's scratch folder under it, once."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10 and once():
            shutil.rmtree(place() / ".scratch")
            raise FileNotFoundError(2, "No such file or directory", "X.npy")


@_solver("test-moves-results")
class MovesResults(_Nearest):
    """Someone else renames the results folder under it."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10 and once():
            place().rename(place().with_name("elsewhere"))


@_solver("test-takes-a-second")
class TakesASecond(_Nearest):
    """It works, with more than a second of its own computing."""

    def misbehave(self, data: TrainingData) -> None:
        if len(data.y) > 10:
            with Path(os.environ["SABOTAGE_PIDS"]).open("a") as stream:
                stream.write("begun\n")
            until = time.process_time() + 1.2
            while time.process_time() < until:
                pass
