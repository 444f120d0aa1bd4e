"""The cost of a call, in this process or as the first call of a new process.

``python timed_call.py FILE`` reads a description of the call from a pickle (see `first_call`),
makes the call, and writes its seconds as JSON. It imports the suite as late as possible, because
the imports of a cold call are part of its cost.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Seconds(NamedTuple):
    """The cost of a call: CPU time of the process in user and in system mode, and wall time."""

    user: float
    system: float
    wall: float

    @property
    def cpu(self) -> float:
        """User and system time."""
        return self.user + self.system


def time_call(work: Callable[[], Any]) -> Seconds:
    """Call a function; return its cost."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return Seconds(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wall)


def fitted(estimator: Any, X: Any, y: Any) -> Any:
    """Return an estimator after its `fit`; `y` is None if it is fitted without labels."""
    return estimator.fit(X) if y is None else estimator.fit(X, y)


def first_call(described: Mapping[str, Any]) -> Seconds:
    """Return the cost of the first call of a solver in this process.

    Parameters
    ----------
    described : mapping
        ``call``: ``"cold-fit"``, which includes importing the class (of a solver of the suite, from
        ``svmbench``) and loading its compiled code; ``"first-fit"``, the first `fit` after a
        warm-up; or ``"first-train"``, the first `train` after a warm-up. ``solver``: its name.
        ``class``: module and name of its class. ``params``: its parameters. ``X``, ``y``: inputs
        and labels.
    """
    import sklearn.svm  # noqa: F401  as a user of scikit-learn or svmbench has

    X, y, params = described["X"], described["y"], described["params"]
    if described["call"] == "cold-fit":
        module, name = described["class"]
        # Users import solvers from the package.
        module = "svmbench" if module.startswith("svmbench.") else module
        return time_call(lambda: fitted(getattr(import_module(module), name)(**params), X, y))
    from svmbench.baselines.catalogue import solver
    from svmbench.experiment.measuring.measure import warm

    warm(described["solver"])
    estimator = solver(described["solver"], **params)
    if described["call"] == "first-fit":
        return time_call(lambda: fitted(estimator, X, y))
    data = estimator.prepare(X, y)
    return time_call(lambda: estimator.train(data))


def first_call_in_new_process(described: Mapping[str, Any]) -> Seconds:
    """Return the cost of a solver's first call in a new process; see :func:`first_call`.

    Raises
    ------
    RuntimeError
        If the process ended with an error, with the last line that it wrote.
    """
    # Imported here: the process whose call is timed has to import them by itself if it needs them.
    import subprocess
    import tempfile

    # Let the process use cached bytecode: compiling modules anew isn't part of the call's work.
    environment = {k: value for k, value in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="svmbench-call-") as folder:
        path = Path(folder, "call.pickle")
        path.write_bytes(pickle.dumps(described, protocol=5))
        done = subprocess.run(
            # -P: modules in this file's folder must not hide those of the standard library.
            [sys.executable, "-P", __file__, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        msg = f"the process of {described['solver']} ended with {done.returncode}: {last}"
        raise RuntimeError(msg)
    return Seconds(**json.loads(done.stdout))


def main(path: str) -> None:
    """Make the call that a file describes, and write its seconds to standard output."""
    seconds = first_call(pickle.loads(Path(path).read_bytes()))
    sys.stdout.write(json.dumps(seconds._asdict()))


if __name__ == "__main__":
    main(sys.argv[1])
