"""Protocol ``calls``: which call is timed, of whom, in which process."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from svmbench.base.errors import ConfigError
from svmbench.core.csvc import CSVC
from svmbench.experiment.config.loader import load_config
from svmbench.experiment.measuring import timed_call
from svmbench.experiment.protocols import calls as protocol
from svmbench.experiment.protocols.task import Task

PARAMS = {"C": 1.0, "gamma": 0.1}
RACERS = [
    {"name": "csvc", "shown": "csvc", "params": PARAMS, "grid": [{}]},
    {"name": "csvc", "shown": "trained", "params": PARAMS, "grid": [{}]},
    {"name": "sklearn.svm.SVC", "shown": "SVC", "params": PARAMS, "grid": [{}]},
]


def run(**more):
    """Return the outcome on a small built-in set."""
    spec = {
        "protocol": "calls",
        "dataset": {"name": "breast-cancer", "file": "", "label_column": ""},
        "n_rows": 569, "n_features_kept": None, "subset": "stratified", "seed": 0,
        "scaling": "all-rows", "scaler": "minmax", "repeats": 3, "call": "fit", "calls": {},
        "arguments": {}, "test": 0.2, "max_test_samples": 0, "racers": RACERS,
        "pairs": [["csvc", "SVC"], ["trained", "csvc"]],
    }  # fmt: skip
    return protocol.calls(Task(spec={**spec, **more}))


def calls_made(monkeypatch):
    """Return a list to which every call of csvc's methods is added by name."""
    made = []
    for name in ("fit", "train", "predict", "prepare", "finish_fit"):
        method = getattr(CSVC, name)

        def noted(self, *args, _name=name, _method=method, **kwargs):
            made.append(_name)
            return _method(self, *args, **kwargs)

        monkeypatch.setattr(CSVC, name, noted)
    return made


@pytest.mark.slow
def test_a_call_is_timed_for_each_solver_and_in_turn(monkeypatch, private_cache):
    made = calls_made(monkeypatch)
    outcome = run(calls={"trained": "train"})
    fit = ["fit", "train", "finish_fit"]
    assert made == [*fit, "prepare", "train", *fit, "train", *fit, "train"]
    metrics, spread = outcome["metrics"], outcome["spread"]
    assert metrics["cpu_time_s:csvc"] > 0.0
    assert metrics["objective:csvc"] == pytest.approx(metrics["objective:trained"])
    # The models are certified, whoever made them and however they were called.
    for name in ("csvc", "trained", "SVC"):
        assert metrics[f"certified_gap:{name}"] < 1e-3
        assert metrics[f"claims_true_pct:{name}"] == 100.0
    assert outcome["stop_reason"] == ""
    assert "objective:SVC" not in metrics
    for pair in ("csvc:SVC", "trained:csvc"):
        low, high = spread[f"ratio:{pair}"]
        assert low <= metrics[f"ratio:{pair}"] <= high
    assert metrics["n_train"] + metrics["n_test"] == 569


@pytest.mark.slow
def test_predict_is_called_on_held_out_rows_with_its_arguments(monkeypatch, private_cache):
    seen = []
    predict = CSVC.predict

    def noted(self, X, **options):
        seen.append((len(X), options))
        return predict(self, X, **options)

    monkeypatch.setattr(CSVC, "predict", noted)
    outcome = run(
        call="predict", arguments={"trained": {"precision": "single"}}, max_test_samples=50
    )
    assert seen == 3 * [(50, {}), (50, {"precision": "single"})]
    assert outcome["metrics"]["n_test"] == 50
    assert outcome["metrics"]["n_train"] == 455


@pytest.mark.slow
@pytest.mark.mirror
def test_more_classes_and_one_alone_are_called_as_a_user_would(private_cache):
    dataset = {"name": "iris", "file": "", "label_column": ""}
    several = {"dataset": dataset, "n_rows": 150, "task": "multiclass", "repeats": 1}
    for call in ("train", "fit", "predict"):
        metrics = run(call=call, **several)["metrics"]
        assert metrics["n_train"] == 120
        assert metrics["ratio:csvc:SVC"] > 0.0
    racers = [
        {"name": name, "shown": name, "params": {"nu": 0.2}, "grid": [{}]}
        for name in ("one-class", "libsvm-oneclass")
    ]
    for call in ("fit", "predict"):
        metrics = run(
            call=call, task="one-class", racers=racers, pairs=[["one-class", "libsvm-oneclass"]]
        )["metrics"]
        assert metrics["n_train"] < 455
        assert metrics["ratio:one-class:libsvm-oneclass"] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("call", protocol.IN_NEW_PROCESS)
def test_first_calls_have_a_process_of_their_own(call, monkeypatch, private_cache):
    made = calls_made(monkeypatch)
    outcome = run(call=call, repeats=1, racers=RACERS[::2], pairs=[["csvc", "SVC"]])
    assert "fit" not in made
    assert "train" not in made
    metrics = outcome["metrics"]
    assert metrics["wall_time_s:csvc"] > 0.0
    assert metrics["cpu_time_s:csvc"] == pytest.approx(
        metrics["user_time_s:csvc"] + metrics["system_time_s:csvc"], abs=0.05
    )


@pytest.mark.slow
def test_a_cold_call_counts_what_it_imports_and_a_first_one_does_not(private_cache):
    X = np.random.default_rng(0).normal(size=(40, 3))
    given = {
        "solver": "csvc", "class": ("svmbench.core.csvc", "CSVC"), "params": {},
        "X": X, "y": np.sign(X[:, 0]),
    }  # fmt: skip
    cold = timed_call.first_call_in_new_process({**given, "call": "cold-fit"})
    first = timed_call.first_call_in_new_process({**given, "call": "first-fit"})
    assert cold.cpu > 5 * first.cpu


@pytest.mark.slow
def test_a_process_keeps_bytecode_whatever_the_environment_says(
    private_cache, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "bytecode"))
    X = np.random.default_rng(0).normal(size=(40, 3))
    given = {
        "call": "cold-fit", "solver": "csvc", "class": ("svmbench.core.csvc", "CSVC"),
        "params": {}, "X": X, "y": np.sign(X[:, 0]),
    }  # fmt: skip
    timed_call.first_call_in_new_process(given)
    assert list((tmp_path / "bytecode").rglob("svmbench/core/csvc/*.pyc"))


@pytest.mark.slow
def test_what_a_process_says_last_is_told(private_cache):
    given = {
        "call": "first-fit", "solver": "csvc", "class": ("svmbench", "CSVC"), "params": {},
        "X": np.ones((4, 2)), "y": np.ones(4),
    }  # fmt: skip
    with pytest.raises(RuntimeError, match=r"process of csvc ended with 1: ValueError: .*class"):
        timed_call.first_call_in_new_process(given)


def test_seconds_are_of_this_process():
    def work():
        end = time.process_time() + 0.05
        while time.process_time() < end:
            Path("/").stat()
        time.sleep(0.1)

    found = timed_call.time_call(work)
    assert 0.04 < found.cpu < 0.2
    assert found.wall > found.cpu + 0.05


def test_system_time_is_told_apart():
    def work():
        end = time.process_time() + 0.05
        while time.process_time() < end:
            os.urandom(1 << 20)

    # The kernel tells the two apart by samples, and never takes back what it has told.
    assert any(timed_call.time_call(work).system > 0.0 for _ in range(20))


@pytest.mark.parametrize("setting", ["calls: {csv: fit}", "arguments: {csv: {}}"])
def test_settings_name_solvers_that_are_there(setting, tmp_path):
    path = tmp_path / "calls.yaml"
    path.write_text(f"""
paper: smo
title: Calls
seed: 1
datasets: [breast-cancer]
blocks:
  - name: calls
    protocol: calls
    solvers: [{{name: csvc}}]
    {setting}
tables: []
profiles: {{paper: {{note: all}}}}
""")
    with pytest.raises(ConfigError, match="no solver 'csv' to race; did you mean 'csvc'"):
        load_config(path)
