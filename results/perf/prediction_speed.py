"""Time predictions of csvc's models beside LIBSVM's, and csvc's fit beside its training.

    python results/perf/prediction_speed.py a9a:C=1:gamma=0.0081 ijcnn1:C=1:gamma=0.0454545

LIBSVM's program (``svm_predict_values`` on nodes that are ready) and scikit-learn's ``SVC`` are
trained on csvc's support vectors alone, which leaves them the same solution. In rounds that take
turns, each computes decision values of the same rows, on one thread; a ratio is the CPU time of the
faster of these two over ours.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC

import svmbench
from svmbench.baselines.libsvm import Libsvm, svm_problem, svm_train
from svmbench.core.contract.base import TrainingData, warm_up
from svmbench.core.csvc import CSVC

#: Rounds after one that is thrown away.
ROUNDS = 5


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="NAME:C=VALUE:gamma=VALUE")
    parser.add_argument("--rows", type=int, default=4000, help="rows that are evaluated at most")
    given = parser.parse_args()
    warm_up(CSVC)
    for one in given.data:
        name, C, gamma = one.split(":")
        settings = {"C": float(C.removeprefix("C=")), "gamma": float(gamma.removeprefix("gamma="))}
        print(name, *measure(name, settings, given.rows), sep="\n  ")


def measure(name: str, settings: dict[str, float], n_rows: int) -> list[str]:
    """Return what there is to say of one data set of two classes."""
    data = svmbench.load(name)
    X, y = own(data.X), np.where(data.y == np.max(data.y), 1.0, -1.0)
    model = CSVC(**settings)
    fits, trainings = rounds([lambda: model.fit(X, y), trained(model, X, y)])
    rows = own((data.X if data.X_test is None else data.X_test)[:n_rows])
    work = evaluations(model, settings, y[model.support_], rows)
    found = {kind: each() for kind, each in work.items()}
    times = dict(zip(work, rounds(list(work.values())), strict=True))
    libsvm, sklearn = times["libsvm"], times["SVC"]
    lines = [
        f"{X.shape[0]} x {X.shape[1]}, {len(model.support_)} support vectors, {rows.shape[0]} rows",
        f"fit over training: {spread([a / b for a, b in zip(fits, trainings, strict=True)])}",
    ]
    exact = found["double"]
    for kind in ("double", "single"):
        ratios = [min(a, b) / c for a, b, c in zip(libsvm, sklearn, times[kind], strict=True)]
        error = np.max(np.abs(found[kind] - exact))
        lines.append(f"{kind}: {spread(ratios)} times as fast, off by {error:.1e}")
    return lines


def own(X: Any) -> Any:
    """Return inputs in memory of their own, as a user has them."""
    return sp.csr_array(X) if sp.issparse(X) else np.array(X)


def trained(model: CSVC, X: Any, y: np.ndarray) -> Callable[[], Any]:
    """Return the training alone, on inputs that are ready."""
    data = model.prepare(X, y)
    return lambda: model.train(data)


def evaluations(
    model: CSVC, settings: dict[str, float], y: np.ndarray, rows: Any
) -> dict[str, Callable[[], np.ndarray]]:
    """Return the ways to the decision values of rows, by name; all of one model."""
    points, same = model.support_vectors_, {**settings, "cache_size": 1024}
    sklearn = SVC(**same).fit(sp.csr_matrix(points) if sp.issparse(points) else points, y)
    theirs = sp.csr_matrix(rows) if sp.issparse(rows) else rows
    problem = Libsvm(**same)
    problem.gamma_ = settings["gamma"]
    training = svm_problem(TrainingData(points, y))
    program, _, _, _ = svm_train(training, 0, problem)
    nodes = svm_problem(TrainingData(rows, np.zeros(rows.shape[0])))
    sign = 1.0 if program.get_labels()[0] > 0 else -1.0

    def libsvm() -> np.ndarray:
        from libsvm import svm

        value, values = (ctypes.c_double * 1)(), np.empty(rows.shape[0])
        for i in range(len(values)):
            svm.libsvm.svm_predict_values(program, nodes.x[i], value)
            values[i] = sign * value[0]
        # LIBSVM's model points to the samples that it was trained on.
        assert training.kept
        return values

    return {
        "libsvm": libsvm,
        "SVC": lambda: sklearn.decision_function(theirs),
        "double": lambda: model.decision_function(rows),
        "single": lambda: model.decision_function(rows, precision="single"),
    }


def rounds(work: list[Callable[[], Any]]) -> list[list[float]]:
    """Return the CPU times of each piece of work, in rounds that take turns."""
    turns = [[seconds(each) for each in work] for _ in range(ROUNDS + 1)]
    return [list(times) for times in zip(*turns[1:], strict=True)]


def seconds(work: Callable[[], Any]) -> float:
    """Return the CPU time of a piece of work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def spread(ratios: list[float]) -> str:
    """Return the median of some ratios with their range."""
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
