"""The protocols: what one cell does with its rows, its solver and its grid.

Each is a function from a :class:`Task` to a dict that becomes the cell's record. A cell is one
process; what it finishes along the way (grid points) it streams, so that a killed run goes on from
there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from svmbench.experiment import folds, measure

Outcome = dict[str, Any]


@dataclass
class Task:
    """What a worker hands to a protocol.

    Attributes
    ----------
    spec : dict
        The cell's specification.
    shared : Path or None
        Folder of the scaled inputs, if the plan has made them.
    memory_gb : float
        What the cell may hold, GiB.
    done : dict
        Points recorded by an earlier, interrupted run, by their id.
    emit : callable
        Streams a finished point: ``emit(id, values)``.
    """

    spec: dict[str, Any]
    shared: Path | None = None
    memory_gb: float = 4.0
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    emit: Callable[[str, dict[str, Any]], None] = lambda _id, _values: None

    def build(self, settings: dict[str, Any] | None = None, **params: Any) -> Any:
        """Return the cell's solver with its fixed parameters, a seed of its own, and `params`.

        Where the data have more classes than two it is wrapped in `OneVsOne`.
        """
        built = self.build_binary(settings, **params)
        if self.spec.get("one_vs_one"):
            from svmbench.core.multiclass import OneVsOne

            return OneVsOne(built)
        return built

    def build_binary(self, settings: dict[str, Any] | None = None, **params: Any) -> Any:
        """Return the two-class solver itself."""
        from svmbench.catalogue import solver, solver_class

        settings = settings or self.spec
        wanted = {**settings["params"], **params}
        if "random_state" in solver_class(settings["name"])._get_param_names():
            wanted.setdefault(
                "random_state",
                folds.derive_seed(self.spec["seed"], "solver", self.spec.get("fold")),
            )
        return solver(settings["name"], **wanted)

    def seed(self, *parts: object) -> int:
        """Return a seed that depends on the data set and `parts`, not on the solver."""
        return folds.derive_seed(self.spec["seed"], self.spec["dataset"]["name"], *parts)


@dataclass
class Inputs:
    """The rows of a cell: inputs scaled as the block says, and their labels.

    `distances` are the squared distances of all rows with the CPU seconds that they took, where
    the plan has made them.
    """

    X: Any
    y: np.ndarray
    scaling_s: float
    X_test: Any = None
    y_test: np.ndarray | None = None
    distances: tuple[np.ndarray, float] | None = None


def open_dataset(spec: dict[str, Any]) -> Any:
    """Open the prepared data set of a cell."""
    from svmbench import data

    wanted = spec["dataset"]
    if wanted["file"]:
        return data.load_file(wanted["file"], label_column=wanted["label_column"] or None)
    return data.load(wanted["name"])


def make_inputs(spec: dict[str, Any]) -> Inputs:
    """Compute the inputs of a cell (or of the node that several cells share) from the data set."""
    source = open_dataset(spec)
    y = np.asarray(source.y)
    rows = _kept_rows(spec, y)
    X, X_test = folds.take(source.X, rows), source.X_test
    if spec.get("inputs") == "dense":
        X, X_test = folds.dense(X), None if X_test is None else folds.dense(X_test)
    columns = folds.subset_features(X, spec["n_features_kept"])
    if columns is not None:
        X = X[:, columns]
        X_test = None if X_test is None else X_test[:, columns]
    y = y[rows]
    start = time.perf_counter()
    if spec["scaling"] != "none" and not scales_each_fold(spec):
        fitted_on = _scaler_rows(spec, y)
        scaler = folds.make_scaler(spec["scaler"], not isinstance(X, np.ndarray))
        scaler.fit(X if fitted_on is None else X[fitted_on])
        X = scaler.transform(X)
        if X_test is not None:
            X_test = scaler.transform(folds.take(X_test, np.arange(X_test.shape[0])))
    seconds = time.perf_counter() - start
    return Inputs(X=X, y=y, scaling_s=seconds, X_test=X_test, y_test=source.y_test)


def inputs_of(task: Task) -> Inputs:
    """Return a cell's inputs: mapped if they are shared, else computed here."""
    if task.shared is None or not (task.shared / "meta.json").exists():
        return make_inputs(task.spec)
    spec = task.spec
    source = open_dataset(spec)
    y = np.asarray(source.y)
    rows = _kept_rows(spec, y)
    X, seconds = folds.open_arrays(task.shared)
    test = task.shared.with_name(task.shared.name + "-test")
    X_test = folds.open_arrays(test)[0] if test.exists() else None
    return Inputs(
        X=X,
        y=y[rows],
        scaling_s=seconds,
        X_test=X_test,
        y_test=source.y_test,
        distances=folds.open_distances(task.shared),
    )


def scales_each_fold(spec: dict[str, Any]) -> bool:
    """Return whether every fold of the search has a scaler of its own, fitted on its training rows.

    The folds of a plain cross-validation are its outer folds.
    """
    return spec["scaling"] == "every-fold" or (
        spec["scaling"] == "outer-fold" and spec["protocol"] == "cv"
    )


def _kept_rows(spec: dict[str, Any], y: np.ndarray) -> np.ndarray:
    seed = folds.derive_seed(spec["seed"], "rows", spec["dataset"]["name"])
    return folds.subset_rows(y, spec["n_rows"], seed, spec["subset"])


def _scaler_rows(spec: dict[str, Any], y: np.ndarray) -> np.ndarray | None:
    """Return the rows that the scaler may see; None for all of them."""
    name = spec["dataset"]["name"]
    if spec["scaling"] == "all-rows":
        return None
    if spec["protocol"] == "nested-cv":
        seed = folds.derive_seed(spec["seed"], name, "outer")
        return folds.outer_splits(y, spec["outer_folds"], seed)[spec["fold"]][0]
    if spec["protocol"] == "holdout":
        seed = folds.derive_seed(spec["seed"], name, "test")
        return folds.holdout_split(y, spec["test"], seed)[0]
    return None


def nested_cv(task: Task) -> Outcome:
    """Search the grid by inner k-fold CV on one outer fold's training rows, refit, test.

    The score is of rows that neither the search nor (with ``scaling: outer-fold``) the scaler saw.
    """
    spec, inputs = task.spec, inputs_of(task)
    splits = folds.outer_splits(inputs.y, spec["outer_folds"], task.seed("outer"))
    train, test = splits[spec["fold"]]
    X, y = folds.take(inputs.X, train), inputs.y[train]
    X_test = folds.take(inputs.X, test)
    if spec["scaling"] == "every-fold":
        both = folds.scale(
            folds.take(inputs.X, np.r_[train, test]), spec["scaler"], np.arange(len(train))
        )
        X_refit, X_test = both[: len(train)], both[len(train) :]
    else:
        X_refit = X
    inner = folds.outer_splits(y, spec["inner_folds"], task.seed("inner", spec["fold"]))
    if _searches_kernels(task):
        best, search = _kernel_search(task, inputs, train, inner)
    else:
        best, search = _search(task, X, y, inner)
    outcome = _fit_and_test(task, best, X_refit, y, X_test, inputs.y[test])
    outcome["metrics"] |= search | _sizes(inputs, len(train), len(test))
    outcome["metrics"]["nested_cv_cpu_time_s"] = _whole_cpu_time(spec, outcome["metrics"])
    return outcome


def _whole_cpu_time(spec: dict[str, Any], metrics: dict[str, float]) -> float:
    """Return the CPU time of all outer folds, were each like this one: the mean is the total.

    Distances are paid once where all folds share them, once a fold where each scales anew.
    """
    distances = metrics.get("distances_cpu_time_s", 0.0)
    times = 1 if spec["scaling"] in {"all-rows", "none"} else spec["outer_folds"]
    own = metrics["search_cpu_time_s"] - distances + metrics["cpu_time_s"]
    return spec["outer_folds"] * (own + metrics["predict_cpu_time_s"]) + times * distances


def _searches_kernels(task: Task) -> bool:
    """Return whether the search can run on one kernel matrix a gamma."""
    from svmbench.catalogue import solver_class
    from svmbench.experiment.kernel_search import takes_part

    spec = task.spec
    several = len(spec["grid"]) > 1 and spec["scaling"] != "every-fold"
    fits = folds.distance_bytes(spec) <= task.memory_gb * 2**30 / 2
    return several and fits and takes_part(solver_class(spec["name"]), spec["params"], spec["grid"])


def _kernel_search(
    task: Task, inputs: Inputs, rows: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Search as `_search` does, on distances that are computed once."""
    from svmbench.core.kernels import squared_distances
    from svmbench.experiment.kernel_search import search, warm_up

    warm_up(task.build_binary)
    if inputs.distances is None:
        X, cpu = folds.take(inputs.X, np.arange(len(inputs.y))), time.process_time()
        made = squared_distances(X, dtype=folds.distance_type(task.spec))
        inputs.distances = made, time.process_time() - cpu
    distances, distances_cpu_s = inputs.distances
    classes, codes = np.unique(inputs.y[rows], return_inverse=True)
    found = search(
        distances,
        rows,
        codes,
        len(classes),
        splits,
        task.build_binary,
        task.spec["grid"],
        done=task.done,
        emit=task.emit,
    )
    metrics = found.metrics
    metrics["distances_cpu_time_s"] = distances_cpu_s
    metrics["search_time_s"] = metrics["search_wall_time_s"] + distances_cpu_s
    metrics["search_cpu_time_s"] += distances_cpu_s
    return found.best, metrics


def cv(task: Task) -> Outcome:
    """Search the grid by plain k-fold CV; the score is the best grid point's own mean.

    This is what several papers print. It is optimistic: the folds that choose the parameters are
    the folds that score them.
    """
    spec, inputs = task.spec, inputs_of(task)
    splits = folds.outer_splits(inputs.y, spec["folds"], task.seed("outer"))
    best, search = _search(task, inputs.X, inputs.y, splits)
    # Time the chosen point again, fold by fold: in the search each fit ran once.
    timings, fits = [], []
    for train, test in splits:
        estimator = task.build(**best)
        X, X_test = _fold_arrays(task, inputs.X, train, test)
        data, timing = measure.fit_repeatedly(estimator, X, inputs.y[train])
        estimator.certify(data)
        timings.append(timing)
        fits.append((estimator, _accuracy(estimator, X_test, inputs.y[test])))
    accuracies = [accuracy for _, accuracy in fits]
    outcome = _outcome(fits[-1][0], timings, best)
    outcome["metrics"]["accuracy_pct"] = statistics.fmean(accuracies)
    outcome["spread"]["accuracy_pct"] = _stdev(accuracies)
    outcome["metrics"] |= search | _sizes(inputs, len(splits[0][0]), len(splits[0][1]))
    outcome["folds"] = len(splits)
    return outcome


def holdout(task: Task) -> Outcome:
    """Search on one validation split, refit on training + validation rows, test once.

    The test rows are the data set's own test part where it has one.
    """
    spec, inputs = task.spec, inputs_of(task)
    if inputs.X_test is not None and inputs.y_test is not None:
        kept = np.arange(len(inputs.y))
        X_test, y_test = folds.take(inputs.X_test, np.arange(len(inputs.y_test))), inputs.y_test
    else:
        kept, test = folds.holdout_split(inputs.y, spec["test"], task.seed("test"))
        X_test, y_test = folds.take(inputs.X, test), inputs.y[test]
    X, y = folds.take(inputs.X, kept), inputs.y[kept]
    train, validation = folds.holdout_split(y, spec["validation"], task.seed("validation"))
    best, search = _search(task, X, y, [(train, validation)])
    outcome = _fit_and_test(task, best, X, y, X_test, y_test)
    outcome["metrics"] |= search | _sizes(inputs, len(y), len(y_test))
    return outcome


def fit(task: Task) -> Outcome:
    """Train once on all rows: for tables and plots of training time.

    The score is the accuracy on the data set's test part where it has one, else on the training
    rows (``train_accuracy_pct``).
    """
    inputs = inputs_of(task)
    X = folds.take(inputs.X, np.arange(len(inputs.y)))
    estimator = task.build()
    data, timing = measure.fit_repeatedly(estimator, X, inputs.y)
    estimator.certify(data)
    outcome = _outcome(estimator, [timing], {})
    outcome["metrics"]["train_accuracy_pct"] = _accuracy(estimator, X, inputs.y)
    if inputs.X_test is not None:
        X_test = folds.take(inputs.X_test, np.arange(inputs.X_test.shape[0]))
        outcome["metrics"]["accuracy_pct"] = _accuracy(estimator, X_test, inputs.y_test)
    outcome["metrics"] |= {"n_train": len(inputs.y), "scaling_time_s": inputs.scaling_s}
    return outcome


def facts(task: Task) -> Outcome:
    """Report what a data set is: rows, features, classes, density."""
    source = open_dataset(task.spec)
    n_samples, n_features = source.X.shape
    nonzero = source.X.nnz if hasattr(source.X, "nnz") else int(np.count_nonzero(source.X))
    labels, counts = np.unique(np.asarray(source.y), return_counts=True)
    return {
        "metrics": {
            "n_samples": n_samples,
            "n_features": n_features,
            "n_classes": len(labels),
            "density_pct": 100.0 * nonzero / max(1, n_samples * n_features),
            "largest_class_pct": 100.0 * counts.max() / counts.sum(),
        },
        "spread": {},
        "counters": {
            f"class {label}": int(count) for label, count in zip(labels, counts, strict=True)
        },
        "params": {},
    }


def _search(
    task: Task, X: Any, y: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Score every grid point on the splits; return the best and what the search cost.

    The first of equally accurate points wins, so grids list the smallest C first.
    """
    points = task.spec["grid"]
    if len(points) == 1:
        return points[0], {"search_time_s": 0.0, "search_cpu_time_s": 0.0}
    if _shares(task):
        return _shared_search(task, X, y, splits)
    from svmbench.experiment.kernel_search import UNFINISHED

    scores = np.full((len(points), len(splits)), np.nan)
    wall, cpu, unfinished = 0.0, 0.0, 0
    for f, (train, test) in enumerate(splits):
        missing = [p for p in range(len(points)) if f"{p}/{f}" not in task.done]
        arrays = _fold_arrays(task, X, train, test) if missing else None
        for p, params in enumerate(points):
            point = task.done.get(f"{p}/{f}")
            if point is None:
                assert arrays is not None
                estimator = task.build(**params)
                _, timing = measure.fit_once(estimator, arrays[0], y[train])
                point = {
                    "params": params,
                    "accuracy_pct": _accuracy(estimator, arrays[1], y[test]),
                    "train_time_s": timing.wall_s,
                    "cpu_time_s": timing.cpu_s,
                    "stop_reason": str(estimator.stop_reason_),
                }
                task.emit(f"{p}/{f}", point)
            scores[p, f] = point["accuracy_pct"]
            wall, cpu = wall + point["train_time_s"], cpu + point["cpu_time_s"]
            unfinished += point.get("stop_reason") in UNFINISHED
    best = int(np.argmax(np.round(scores.mean(axis=1), 9)))
    return points[best], {
        "search_time_s": wall,
        "search_cpu_time_s": cpu,
        "unconverged_fits": unfinished,
    }


def _shares(task: Task) -> bool:
    """Return whether the solver shares work along the grid's one parameter, over all folds."""
    from svmbench.catalogue import solver_class

    declared = solver_class(task.spec["name"]).declaration.paths
    names = {name for point in task.spec["grid"] for name in point}
    return (
        len(names) == 1
        and names <= set(declared)
        and not scales_each_fold(task.spec)
        and not task.spec["one_vs_one"]
    )


def _shared_search(
    task: Task, X: Any, y: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Search as `_search` does, by the solver's own path: every fold and value in one go."""
    from svmbench.experiment.kernel_search import UNFINISHED

    points = task.spec["grid"]
    (over,) = points[0]
    cpu, estimator = time.process_time(), task.build()
    data, wall = estimator.prepare(X, y), time.perf_counter()
    scores = np.empty((len(points), len(splits)))
    reasons = []
    path = estimator.path(data, None, over, [point[over] for point in points], splits)
    for position, (model, cost, _) in enumerate(path):
        f, p = divmod(position, len(points))
        if p == 0:
            X_test, y_test = folds.take(X, splits[f][1]), y[splits[f][1]]
        scores[p, f] = score = _accuracy(model, X_test, y_test)
        reasons.append(str(model.stop_reason_))
        found = {"params": points[p], "accuracy_pct": score, "train_time_s": cost}
        if f"{p}/{f}" not in task.done:
            task.emit(f"{p}/{f}", found | {"stop_reason": reasons[-1]})
    best = int(np.argmax(np.round(scores.mean(axis=1), 9)))
    return points[best], {
        "search_time_s": time.perf_counter() - wall,
        "search_cpu_time_s": time.process_time() - cpu,
        "unconverged_fits": sum(reason in UNFINISHED for reason in reasons),
    }


def _fold_arrays(task: Task, X: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
    if scales_each_fold(task.spec):
        both = folds.scale(
            folds.take(X, np.r_[train, test]), task.spec["scaler"], np.arange(len(train))
        )
        return both[: len(train)], both[len(train) :]
    return folds.take(X, train), folds.take(X, test)


def _fit_and_test(
    task: Task, params: dict[str, Any], X: Any, y: np.ndarray, X_test: Any, y_test: Any
) -> Outcome:
    estimator = task.build(**params)
    data, timing = measure.fit_repeatedly(estimator, X, y)
    estimator.certify(data)
    outcome = _outcome(estimator, [timing], params)
    start, cpu = time.perf_counter(), time.process_time()
    outcome["metrics"]["accuracy_pct"] = _accuracy(estimator, X_test, y_test)
    outcome["metrics"]["predict_time_s"] = time.perf_counter() - start
    outcome["metrics"]["predict_cpu_time_s"] = time.process_time() - cpu
    return outcome


def _outcome(estimator: Any, timings: list[measure.Timing], params: dict[str, Any]) -> Outcome:
    wall = [t.wall_s for t in timings]
    cpu = [t.cpu_s for t in timings]
    one = timings[0]
    counters = {name: int(value) for name, value in estimator.counters_.items()}
    support = {}
    if "bounded_support_vectors" in counters:
        support["n_bound_sv"] = counters["bounded_support_vectors"]
        support["n_nonbound_sv"] = counters["support_vectors"] - support["n_bound_sv"]
    spread = {
        "train_time_s": _stdev(wall) if len(timings) > 1 else one.spread(one.wall),
        "cpu_time_s": _stdev(cpu) if len(timings) > 1 else one.spread(one.cpu),
    }
    return {
        "metrics": {
            **support,
            "train_time_s": statistics.fmean(wall),
            "cpu_time_s": statistics.fmean(cpu),
            "conversion_time_s": statistics.fmean(t.conversion for t in timings),
            "peak_memory_mb": max(t.peak_memory for t in timings),
            "objective": float(estimator.objective_),
            "n_iter": int(np.max(estimator.n_iter_)),
        },
        "spread": {name: value for name, value in spread.items() if value is not None},
        "counters": counters,
        "stop_reason": str(estimator.stop_reason_),
        "params": params,
    }


def _sizes(inputs: Inputs, n_train: int, n_test: int) -> dict[str, float]:
    return {"scaling_time_s": inputs.scaling_s, "n_train": n_train, "n_test": n_test}


def _accuracy(estimator: Any, X: Any, y: Any) -> float:
    return 100.0 * float(np.mean(estimator.predict(X) == np.asarray(y)))


def _stdev(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
