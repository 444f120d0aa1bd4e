"""Run folders made by hand: what `svmbench run` would have written."""

import hashlib
import json
import random

ENVIRONMENT = {
    "id": "4be1c0de",
    "svmbench": "0.1.0",
    "python": "3.11.7",
    "git": {"commit": "0123456789ab", "modified": True},
    "cpu": "Example CPU 3000",
    "cores": 2,
    "ram_gb": 7.8,
    "blas": ["openblas 0.3.30 Haswell"],
    "threads": 1,
    "packages": {"numpy": "2.4.6", "scipy": "1.17.1"},
}
ALSVM_SETS = ("a9a", "cod-rna", "covtype", "svmguide3", "german.numer", "cod-rna-train")
ALSVM_SOLVERS = ("alsvm", "falsvm", "liblinear-l1", "pegasos")


def planned(block, dataset, solver, fold=None, **more):
    cell = {
        "block": block, "protocol": "cv", "paper": "alsvm", "profile": "quick",
        "dataset": dataset, "size": None, "n_features_kept": None, "solver": solver,
        "kernel": "linear", "fold": fold, "status": "planned", "reason": "", **more,
    }  # fmt: skip
    cell["key"] = hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:12]
    return cell


def record(cell, metrics=None, **more):
    return {
        **cell, "schema": 1, "kind": "cell", "status": "ok", "reason": "", "params": {"C": 0.5},
        "metrics": metrics or {}, "spread": {}, "counters": {}, "stop_reason": "closed form",
        "contended": False, "environment": "4be1c0de", "started": "2026-01-31T12:00:00+00:00",
        "wall_s": 1.2, **more,
    }  # fmt: skip


def write_run(folder, cells, records, tables=(), plots=(), paper="alsvm", blocks=None):
    """Write plan, records and environment; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = dict.fromkeys(cell["block"] for cell in cells)
    config = {
        "name": "alsvm_table2", "paper": paper, "title": "ALSVM, Table II",
        "blocks": blocks or [{"name": name, "scaling": "all-rows"} for name in names],
    }  # fmt: skip
    plan = {
        "config": config, "profile": "quick", "cells": cells,
        "tables": list(tables), "plots": list(plots),
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan))
    lines = "".join(json.dumps(one) + "\n" for one in records)
    (folder / "runs.jsonl").write_text(lines)
    (folder / "environment-4be1c0de.json").write_text(json.dumps(ENVIRONMENT))
    return folder


TABLE2 = {
    "name": "table2", "title": "Table II: training time and accuracy", "block": "cv",
    "rows": "dataset", "columns": "solver",
    "metrics": ["train_time_s", "accuracy_pct"], "published": "table2",
}  # fmt: skip


def alsvm_run(folder):
    """Table II with everything that can go wrong: missing sets, failed folds, contended times."""
    random.seed(0)
    cells, records = [], []
    for index, dataset in enumerate(ALSVM_SETS):
        for column, solver in enumerate(ALSVM_SOLVERS):
            for fold in range(3):
                cell = planned("cv", dataset, solver, fold)
                if dataset == "cod-rna":
                    cell |= {
                        "status": "unavailable",
                        "reason": "cod-rna: the mirror lacks cod-rna.t",
                    }
                cells.append(cell)
                if cell["status"] != "planned":
                    continue
                outcome = {}
                if dataset == "a9a" and solver == "pegasos" and fold == 1:
                    outcome = {"status": "failed", "reason": "NaN in the weights", "metrics": {}}
                if dataset == "svmguide3" and solver == "pegasos":
                    outcome = {"status": "timeout", "reason": "stopped after 60 s", "metrics": {}}
                if dataset == "covtype" and solver == "falsvm":
                    continue
                metrics = {
                    "train_time_s": 0.003 * 4**column * (1 + index) * (1 + 0.1 * random.random()),
                    "accuracy_pct": 80 + index + column + random.random(),
                }
                contended = dataset == "covtype"
                counters = {"updates": 100 * (fold + 1)}
                more = {"contended": contended, "counters": counters, **outcome}
                metrics = more.pop("metrics", metrics)
                records.append(record(cell, metrics, **more))
    plots = [
        {"name": "times", "kind": "bars", "title": "Training time", "block": "cv",
         "x": "dataset", "y": "train_time_s", "series": "solver", "published": None},
        {"name": "accuracies", "kind": "bars", "title": "Accuracy", "block": "cv",
         "x": "dataset", "y": "accuracy_pct", "series": "solver", "published": None},
    ]  # fmt: skip
    return write_run(folder, cells, records, [TABLE2], plots)


def sweep_run(folder, *, crossing_at=900.0):
    """Times against features kept (two sets, crossing curves) and against training size."""
    random.seed(1)
    cells, records = [], []
    for dataset in ("real-sim", "news20"):
        for kept in range(100, 2001, 100):
            for solver in ("falsvm", "liblinear-l1", "alsvm"):
                cell = planned("features", dataset, solver, n_features_kept=kept)
                cells.append(cell)
                time = {"falsvm": (kept / crossing_at) ** 2, "liblinear-l1": (kept / crossing_at),
                        "alsvm": 3 * (kept / crossing_at) ** 2}[solver]  # fmt: skip
                if dataset == "news20" and solver == "alsvm" and kept > 1500:
                    records.append(record(cell, status="memory", reason="needs more than 2 GiB"))
                    continue
                metrics = {"train_time_s": time}
                records.append(record(cell, metrics, spread={"train_time_s": 0.05 * time}))
    for dataset in ("covtype", "cod-rna-train"):
        for size in (29767, 35720, 41674, 47628, 53581, 59535):
            for solver, factor, power in (("alsvm", 2e-6, 1.0), ("liblinear-l1", 3e-9, 1.7),
                                          ("pegasos", 1e-6, 1.1)):  # fmt: skip
                cell = planned("sizes", dataset, solver, size=size)
                cells.append(cell)
                time = factor * size**power * (1 + 0.05 * random.random())
                records.append(
                    record(cell, {"train_time_s": time}, spread={"train_time_s": 0.03 * time},
                           contended=dataset == "cod-rna-train")
                )  # fmt: skip
    plots = [
        {"name": "fig2", "kind": "curve", "title": "Training time against features kept",
         "block": "features", "x": "n_features_kept", "y": "train_time_s", "series": "solver",
         "published": None, "crossing": ["falsvm", "liblinear-l1"]},
        {"name": "fig1", "kind": "scaling", "title": "Training time against rows",
         "block": "sizes", "x": "size", "y": "train_time_s", "series": "solver",
         "published": None},
    ]  # fmt: skip
    return write_run(folder, cells, records, [], plots)


def smo_run(folder):
    """Platt's sizes with the printed times as measurements: exponents beside the printed ones."""
    from svmbench.report.reading.published import numbers

    cells, records = [], []
    for row in numbers("smo"):
        if row.table == "adult_rbf" and row.metric == "train_time_s":
            cell = planned("adult", "a9a", row.solver, paper="smo", kernel="rbf",
                           size=int(row.size))  # fmt: skip
            cells.append(cell)
            records.append(record(cell, {"train_time_s": row.value}))
    plot = {"name": "adult", "kind": "scaling", "title": "Adult, RBF kernel", "block": "adult",
            "x": "size", "y": "train_time_s",
            "series": "solver", "published": "adult_rbf"}  # fmt: skip
    table = {"name": "adult_rbf", "title": "Adult (RBF)", "block": "adult", "rows": "size",
             "columns": "solver", "metrics": ["train_time_s"],
             "published": "adult_rbf"}  # fmt: skip
    return write_run(folder, cells, records, [table], [plot], paper="smo")


RACERS = "alsvm-batch|liblinear-l2|liblinear-l2-dual"


def race_run(folder):
    """Two finished races and one that crashed."""
    cells, records = [], []
    for dataset, ratio in (("a9a", 9.7), ("synthetic-500k-54", 0.8), ("cod-rna-train", None)):
        cell = planned("race", dataset, RACERS, protocol="race", kernel=None)
        cells.append(cell)
        if ratio is None:
            records.append(record(cell, status="crashed", reason="the process died of signal 11"))
            continue
        metrics = {
            "ratio:alsvm-batch:liblinear-l2": ratio,
            "ratio:alsvm-batch:liblinear-l2-dual": 4 * ratio,
            "cpu_time_s:alsvm-batch": 0.0123, "cpu_time_s:liblinear-l2": 0.0123 * ratio,
            "cpu_time_s:liblinear-l2-dual": 0.0492 * ratio,
            "objective:alsvm-batch": 1000.0, "objective:liblinear-l2": 1000.1,
        }  # fmt: skip
        spread = {
            "ratio:alsvm-batch:liblinear-l2": [ratio * 0.9, ratio * 1.2],
            "ratio:alsvm-batch:liblinear-l2-dual": [ratio * 3.5, ratio * 4.4],
        }
        records.append(record(cell, metrics, spread=spread))
    table = {"name": "speed", "title": "Speed against LIBLINEAR", "block": "race",
             "rows": "dataset", "columns": "solver",
             "metrics": ["ratio", "objective_difference", "cpu_time_s"],
             "published": None}  # fmt: skip
    plot = {"name": "race", "kind": "race", "title": "Speed against LIBLINEAR", "block": "race",
            "x": "dataset", "y": "ratio", "series": "solver", "published": None}  # fmt: skip
    return write_run(folder, cells, records, [table], [plot])


def facts_run(folder):
    """A facts table: no solver, no folds."""
    cells, records = [], []
    for dataset, rows, columns in (("a9a", 32561, 123), ("svmguide3", 1243, 22)):
        cell = planned("facts", dataset, None, protocol="facts", kernel=None)
        cells.append(cell)
        metrics = {"n_samples": rows, "n_features": columns, "density": 0.112757}
        records.append(record(cell, metrics))
    table = {"name": "table1", "title": "Table I: data sets", "block": "facts", "rows": "dataset",
             "columns": "metric", "metrics": ["n_samples", "n_features", "density"],
             "published": "table1"}  # fmt: skip
    return write_run(folder, cells, records, [table])
