"""Other people's programs in a config: their commands, their models, their times, their ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import beyond
import numpy as np
import pytest
import scipy.sparse as sp
import stand_ins
from runs import PATIENCE_S, cells_of, lines_of, start, svmbench, wait_until, write_config
from sklearn.datasets import load_svmlight_file

import svmbench as package
from svmbench.base.errors import ConfigError, ProgramError
from svmbench.baselines import clock, programs, templates
from svmbench.baselines.program_models import read_model
from svmbench.core.contract.base import now
from svmbench.experiment.plan.planner import prepare_plan
from svmbench.studies.racing import parse_racers

FEW_ROWS = {"max_samples": 60, "scaling": "all-rows"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Put the stand-ins on PATH; their folder has a name that a shell would take apart."""
    folder = stand_ins.install(tmp_path_factory.mktemp('it\'s a "folder" $HOME'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield folder


def fitted(entry: dict[str, Any], X: Any, y: np.ndarray, **params: Any) -> Any:
    """Train a program as a worker does; return its estimator."""
    commands = templates.commands(entry["program"], entry.get("predict", ""))
    return package.solver(commands.name, **params).fit(X, y)


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 5)) * 10.0 ** random.integers(-8, 8, size=(40, 5))
    X[X < -1.0] = 0.0
    # More of one class than of the other, so that no part of an objective cancels.
    return X, np.where(random.normal(size=40) > -0.5, "good", "bad")


# What a config may say.


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"program": "svm-train {train}"},
            "'program' needs the placeholder {model} for the file of the model",
        ),
        (
            {"program": "svm-trian"},
            "the placeholder {train}.*known programs: svm-train, liblinear-train",
        ),
        ({"program": "a {train} {model} 'x"}, "can't be split into words: no closing quotation"),
        ({"program": "{train} {model}"}, "must begin with the name of a program"),
        ({"program": "a {train} {model} > x"}, "runs without a shell, so it can't contain '>'"),
        ({"program": "a {train} {model} 'x && y'"}, "runs without a shell"),
        ({"program": "a {train} {model} {output}"}, r"can't contain \{output\}, which only"),
        (
            {"program": "a {train} {model}", "predict": "b {test} {model}"},
            "the placeholder {output}",
        ),
        ({"program": 3}, "'program' is a command in one line of text"),
        ({"program": "svm-train", "name": "csvc"}, "a name, a class or a program, not several"),
        ({"predict": "b {test} {model} {output}"}, "'program' is empty; it must name a program"),
        ({"program": "a {train} {model} {C}", "params": {"c": 1}}, "has no parameter 'c'"),
        ({"program": "a {train} {model} {C}"}, "nothing gives a value for {C}"),
        ({"name": "a {train}"}, "the placeholder {model}"),
        ({"name": "a{train}{model}"}, "must begin with the name of a program"),
        ({"program": "svm-train", "lable": "x"}, "'lable'.*did you mean 'label'"),
    ],
)
def test_what_a_config_can_not_say(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    ended = svmbench("validate", write_config(tmp_path, [entry]), "--trust")
    assert ended.code == 2, ended.said
    assert re.search(said.replace("{t", r"\{t").replace("{m", r"\{m"), ended.err), ended.err


def test_a_name_that_is_none_is_a_sentence() -> None:
    ended = svmbench("time", "breast-cancer", "--solver", "alsvm", "--vs", "x{train}")
    assert ended.code == 2
    assert "x{train}: 'program' begins with a placeholder" in ended.err


def test_commands_are_words_and_make_their_name_again() -> None:
    made = templates.commands(
        "'/a b/pro\"gram' -c {C} 'two words {gamma}' {train} {model}", "p {test} {model} {output}"
    )
    assert templates.read_template(made.name) == made
    assert templates.is_program(made.name)
    assert made.parameters == ("C", "gamma")
    filled = templates.fill_template(made.train, {"C": "2", "gamma": "{train}", "train": "/x y/'z"})
    assert filled == ['/a b/pro"gram', "-c", "2", "two words {train}", "/x y/'z", "{model}"]
    for word in templates.SHIPPED:
        shipped = templates.commands(word)
        assert templates.read_template(shipped.name) == shipped
        assert shipped.program == word


def test_values_may_come_from_a_sweep_a_data_set_or_a_profile(tmp_path: Path) -> None:
    entry = {"program": "a -c {C} -g {g} -e {e} -s {random_state} {train} {model}"}
    config = write_config(
        tmp_path,
        [entry],
        {"sweep": {"solver.C": [1, 2]}},
        datasets=[{"name": "breast-cancer", "params": {"a": {"g": 1}}}],
        profiles={"quick": {"params": {"a": {"e": 0.1}}}},
    )
    ended = svmbench("validate", config, "--trust")
    assert ended.code == 0, ended.said


# Nothing is run that nobody trusts.


def test_without_trust_nothing_is_run(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    own = tmp_path / "own"
    own.write_text(f"#!/bin/sh\ntouch '{touched}'\n")
    own.chmod(0o755)
    config = write_config(tmp_path, [{"program": f"'{own}' {{train}} {{model}}"}, "liblinear-l1"])
    assert svmbench("validate", config).code == 0
    for words in (["run", config, "--output", tmp_path / "out"], ["run", config, "--dry-run"]):
        ended = svmbench(*words)
        assert ended.code == 2
        assert "own is an external program; a run starts it only with --trust" in ended.err
    with pytest.raises(ConfigError, match="a run starts it only with --trust"):
        package.run(str(config), output=tmp_path / "out")
    for words in (["validate", config], ["run", config, "--dry-run"]):
        ended = svmbench(*words, "--trust")
        assert ended.code == 0, ended.said
    assert not touched.exists()
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 3
    assert touched.exists()
    reason = cells_of(tmp_path / "out")["own"]["reason"]
    assert reason == "own ended without an error but didn't write {model}"


# Files.


def test_rows_are_written_with_every_digit(tmp_path: Path, rows: Any) -> None:
    X, _ = rows
    X[3] = 0.0
    labels = np.arange(40) - 3
    for each in (X, sp.csr_array(X)):
        programs.write_libsvm_rows(tmp_path / "rows", each, labels)
        back, written = load_svmlight_file(str(tmp_path / "rows"), n_features=5)
        assert np.array_equal(back.toarray(), X)
        assert np.array_equal(written, labels)


# Models.


def independent_objective(X: np.ndarray, y: np.ndarray, C: float, kernel: Callable) -> float:
    """Return the primal value of the stand-ins' model, by its formula alone."""
    K = np.array([[kernel(a, b) for b in X[: stand_ins.KEPT]] for a in X])
    beta = stand_ins.ALPHA * y[: stand_ins.KEPT]
    f = K @ beta - stand_ins.THRESHOLD
    square = beta @ K[: stand_ins.KEPT] @ beta
    return 0.5 * square + C * np.maximum(0.0, 1.0 - y * f).sum()


def rbf(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.exp(-0.5 * np.sum((a - b) ** 2)))


@pytest.mark.parametrize(
    ("program", "kernel"),
    [
        ("svm_learn", rbf),
        ("la_svm", rbf),
        ("turned -g {gamma} {C} {tol} {train} {model}", rbf),
        ("svm_learn -c {C} {gamma} {tol} {train} {model}", np.dot),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_objective_is_ours_on_the_model_that_was_written(
    here: Path, program: str, kernel: Callable, kind: Callable, rows: Any
) -> None:
    X, labels = rows
    X = np.clip(X, -2, 2)
    model = fitted({"program": program}, kind(X), labels, C=3.0, gamma=0.5, tol=0.01)
    y = np.where(labels == "good", 1.0, -1.0)
    assert model.objective_ == pytest.approx(independent_objective(X, y, 3.0, kernel), rel=1e-12)
    assert model.counters_["support_vectors"] == stand_ins.KEPT
    f = model.decision_function(kind(X))
    assert model.predict(kind(X)).tolist() == (
        ["good"] * 40 if program == "la_svm" else np.where(f >= 0, "good", "bad").tolist()
    )


def test_a_program_whose_c_is_no_c_of_ours_has_no_objective(here: Path, rows: Any) -> None:
    X, labels = rows
    model = fitted({"program": "svm_perf_learn"}, np.clip(X, -2, 2), labels, C_perf=3.0, tol=0.1)
    assert model.model_ is not None
    assert model.objective_ is None
    f = model.decision_function(np.clip(X, -2, 2))
    assert model.predict(np.clip(X, -2, 2)).tolist() == np.where(f >= 0, "good", "bad").tolist()


def test_what_is_in_no_known_format_is_known_by_its_predictions(here: Path, rows: Any) -> None:
    X, labels = rows
    model = fitted({"program": "cvm-train"}, X, labels, C=1.0, gamma=1.0, tol=0.1)
    assert model.model_ is None
    assert model.objective_ is None
    assert not hasattr(model, "decision_function")
    assert model.predict(X).tolist() == ["good"] * 40
    alone = fitted({"program": "cvm-train -g {g} {train} {model}"}, X, labels, g=1.0)
    with pytest.raises(ProgramError, match="in an unknown format or with several classes"):
        alone.predict(X)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0\n1\n", "predicted class 0; the classes of the training file are -1 and"),
        ("1\n2\n", "predicted class 2"),
        ("0\n0\n", "predicted class 0"),
        ("2.0\n2\n", "predicted class 2"),
        ("0.1\n0.9\n", "from 0.1 to 0.9, none of them negative"),
        ("12.5\n99.5\n", "none of them negative"),
        ("-0.2\n-2.5\n", "none of them positive"),
        ("-inf\n1\n", "wrote infinity among its predictions"),
        ("1e999\n-1\n", "wrote infinity among its predictions"),
        ("1\nnan\n", "wrote NaN among its predictions"),
    ],
)
def test_predictions_that_are_no_labels_of_the_training_file_are_refused(
    here: Path, rows: Any, tmp_path: Path, text: str, said: str
) -> None:
    X, labels = rows
    model = fitted({"program": "cvm-train"}, X, labels, C=1.0, gamma=1.0, tol=0.1)
    assert model.model_ is None
    (tmp_path / "output").write_text(text)
    with pytest.raises(ProgramError, match=re.escape(said)):
        model._read_predictions(tmp_path / "output", 2)


def test_labels_and_decision_values_of_two_classes_are_read(
    here: Path, rows: Any, tmp_path: Path
) -> None:
    X, labels = rows
    unknown = fitted({"program": "cvm-train"}, X, labels, C=1.0, gamma=1.0, tol=0.1)
    known = fitted({"program": "svm_perf_learn"}, X, labels, C_perf=3.0, tol=0.1)
    for model, text, expected in (
        (unknown, "+1\n-1.0\n", [1, 0]),
        (unknown, "1\n1\n", [1, 1]),
        (unknown, "0.1\n-7.5\n", [1, 0]),
        (known, "0.1\n0.9\n", [1, 1]),
    ):
        (tmp_path / "output").write_text(text)
        assert model._read_predictions(tmp_path / "output", 2).tolist() == expected


HEAD = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 -1\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HEAD, "in the format of LIBSVM can't be read: it has no support vectors"),
        (HEAD + b"SV\n", "it has 0 support vectors, but its header says 1"),
        (HEAD + b"SV\n1 9:2\n", "can't be read"),
        (HEAD.replace(b"rho 0\n", b"") + b"SV\n1 1:2\n", "can't be read: 'rho' is missing"),
        (b"solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias -1\nw\n1\n",
         "it has 1 weights for 3 of 2 features"),
        (b"SVM-light Version V6.02\n2 # kernel type\n", "in the format of SVM-light can't be read"),
    ],
)  # fmt: skip
def test_a_model_that_begins_as_one_and_is_none(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ProgramError, match=said):
        read_model(tmp_path / "model", 2)


WHOLE = {
    "LIBSVM": HEAD.replace(b"linear", b"rbf\ngamma 0.5") + b"SV\n1 1:2\n",
    "LIBLINEAR": b"solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n"
    b"1\n0.5\n",
    "SVM-light": b"SVM-light Version V6.02\n2 # kernel type\n3 # kernel parameter -d\n"
    b"0.5 # kernel parameter -g\n1 # kernel parameter -s\n1 # kernel parameter -r\n"
    b"empty# kernel parameter -u\n2 # highest feature index\n1 # number of training documents\n"
    b"2 # number of support vectors plus 1\n0.25 # threshold b, each following line is a SV\n"
    b"0.5 1:2 #\n",
}


@pytest.mark.parametrize("called", WHOLE)
def test_a_model_that_ends_early_is_a_sentence_wherever_that_is(
    tmp_path: Path, called: str
) -> None:
    """Cut after any byte, or without any one line, a model is read, unknown, or a sentence."""
    whole, path = WHOLE[called], tmp_path / "model"
    lines = whole.splitlines(keepends=True)
    cut = [whole[:end] for end in range(1, len(whole))]
    cut += [b"".join(lines[:i] + lines[i + 1 :]) for i in range(len(lines))]
    told = set()
    for content in cut:
        path.write_bytes(content)
        try:
            read_model(path, 2)
        except ProgramError as error:
            told.add(str(error))
    assert len(told) > 5
    assert all(f"in the format of {called} can't be read: " in said for said in told)
    path.write_bytes(whole)
    assert read_model(path, 2) is not None


# Time and memory.


def test_time_and_memory_are_the_programs_own(rows: Any) -> None:
    """Its CPU time counts as this process's would; what lies around it counts as nobody's."""
    code = (
        "import sys, time; held = bytearray(60 << 20); start = time.process_time()\n"
        "while time.process_time() - start < 0.2: pass\n"
        "open(sys.argv[1], 'w').write('x')"
    )
    entry = {"program": f'{sys.executable} -S -c "{code}" {{model}} {{train}}'}
    commands = templates.commands(entry["program"])
    model = package.solver(commands.name)
    data = model.prepare(*rows)
    real, before = time.process_time(), now()
    model.train(data)
    wall, cpu = (b - a for a, b in zip(before, now(), strict=True))
    assert 0.2 <= cpu < 0.5
    assert wall >= 0.2
    assert time.process_time() - real < 0.15
    assert 60 < model.peak_memory_mb_ < 90
    before = now()
    with clock.count_programs_only():
        time.sleep(0.2)
        sum(range(10**6))
    wall, cpu = (b - a for a, b in zip(before, now(), strict=True))
    assert wall < 0.1
    assert cpu < 0.02


def test_what_a_program_prints_does_not_hold_it_up(here: Path, rows: Any) -> None:
    model = fitted({"program": "go-wrong prints {train} {model}"}, *rows)
    assert model.n_iter_ == 41


# What goes wrong, each a sentence and a failed cell.

WRONG = {
    "absent": (
        "absent {train} {model}",
        "the program 'absent' is not installed (it is not in PATH)",
    ),
    "fails": (
        "go-wrong fails {train} {model}",
        "go-wrong ended with exit code 3: �[31mno room left�[0m",
    ),
    "dies": ("go-wrong dies {train} {model}", "go-wrong was killed by SIGSEGV, without output"),
    "silent": (
        "go-wrong nothing {train} {model}",
        "go-wrong ended without an error but didn't write",
    ),
    "other": ("go-wrong other {train} {model}", "a model in an unknown format"),
    "damaged": (
        "go-wrong damaged {train} {model}",
        "its model in the format of LIBSVM can't be read",
    ),
    "forks": ("go-wrong forks {train} {model}", "go-wrong ended and left a process running"),
    "hoards": ("go-wrong hoards {train} {model}", "needed more than the limit of 1 GiB of memory"),
    "hangs": ("go-wrong hangs {train} {model}", "stopped after 8 s"),
    "stops": ("go-wrong stops {train} {model}", "stopped after 8 s"),
    "keeps-stopping": ("go-wrong keeps-stopping {train} {model}", "stopped after 8 s"),
    "no-format": ("unrunnable {train} {model}", "unrunnable can't be run: Exec format error"),
}
WRONG_PREDICTIONS = {
    "few": "predict-wrong wrote 59 predictions for 60 rows",
    "words": "predict-wrong wrote 'yes', not a number, in line 2 of its predictions",
    "empty": "predict-wrong ended without an error but didn't write {output}",
    "nan": "predict-wrong wrote NaN among its predictions",
}


@pytest.mark.parametrize("are_stopped", [False, True])
def test_what_goes_wrong_is_a_sentence_and_costs_its_cell_alone(
    here: Path, tmp_path: Path, are_stopped: bool
) -> None:
    (here / "unrunnable").write_text("\x7fELF nothing")
    (here / "unrunnable").chmod(0o755)
    expected = {
        label: (program, reason)
        for label, (program, reason) in WRONG.items()
        if reason.startswith("stopped after") == are_stopped
    }
    entries: list[Any] = [
        {"program": program, "label": label} for label, (program, _) in expected.items()
    ]
    reasons = {label: reason for label, (_, reason) in expected.items()}
    if not are_stopped:
        for how in WRONG_PREDICTIONS:
            predict = f"predict-wrong {how} {{test}} {{model}} {{output}}"
            program = "go-wrong other {train} {model}"
            entries.append({"program": program, "predict": predict, "label": how})
        reasons |= WRONG_PREDICTIONS
    out = tmp_path / "a folder with 'quotes' \" and spaces"
    # What ends by itself is not stopped for its time, however busy the machine is.
    limit = 8 if are_stopped else 100
    config = write_config(tmp_path, [*entries, "liblinear-l1"], FEW_ROWS, timeout_s=limit)
    # In a process of its own: workers are forked from a server that keeps the PATH it began with.
    # Several at a time, so that the programs that are stopped are waited for together.
    run = start("run", config, "--output", out, "--trust", "--jobs", 4)
    said = "".join(run.communicate(timeout=PATIENCE_S))
    assert run.returncode == 3, said
    cells = cells_of(out)
    for label, reason in reasons.items():
        assert reason in cells[label]["reason"], label
        status = "timeout" if are_stopped else "memory" if label == "hoards" else "failed"
        assert cells[label]["status"] == status, cells[label]
    assert cells["liblinear-l1"]["status"] == "ok"
    assert "\x1b" not in said
    assert not list((out / ".scratch" / "points").iterdir())
    wait_until(lambda: not running(tmp_path))
    # The same command goes on from there: nothing that failed is tried again unasked.
    before = len(lines_of(out))
    assert svmbench("run", config, "--output", out, "--trust").code == 3
    assert len(lines_of(out)) == before


def running(where: Path) -> list[int]:
    """Return the processes that have a test's folder in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        is_run = b"from svmbench.cli import main; main()" in words
        if not is_run and any(bytes(where) in each for each in words):
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_end_of_a_run_is_the_end_of_its_programs(
    here: Path, tmp_path: Path, number: signal.Signals
) -> None:
    entry = {"program": "go-wrong hangs {train} {model}", "label": "hangs"}
    config = write_config(tmp_path, [entry], FEW_ROWS)
    run = start("run", config, "--output", tmp_path / "out", "--trust")
    try:
        wait_until(lambda: bool(running(tmp_path)))
        os.kill(run.pid, number)
        run.communicate(timeout=PATIENCE_S)
        wait_until(lambda: not running(tmp_path))
    finally:
        run.kill()
        run.wait()


def test_a_program_stops_with_its_run_and_goes_on(here: Path, tmp_path: Path) -> None:
    entry = {"program": "go-wrong hangs {train} {model}", "label": "hangs"}
    run = start("run", write_config(tmp_path, [entry]), "--output", tmp_path / "out", "--trust")

    def state() -> set[str]:
        stats = [Path(f"/proc/{pid}/stat").read_text() for pid in running(tmp_path)]
        return {stat.rpartition(")")[2].split()[0] for stat in stats}

    try:
        wait_until(lambda: bool(running(tmp_path)))
        os.kill(run.pid, signal.SIGTSTP)
        wait_until(lambda: state() == {"T"})
        os.kill(run.pid, signal.SIGCONT)
        wait_until(lambda: state() == {"S"})
    finally:
        run.kill()
        run.wait()
    wait_until(lambda: not running(tmp_path))


def test_whole_calls_of_a_program_are_refused_before_anything_runs(tmp_path: Path) -> None:
    block = {"protocol": "calls", "call": "fit", "pairs": [["liblinear-l1", "x"]]}
    entry = {"program": "sh {train} {model}", "label": "x"}
    config = write_config(tmp_path, ["liblinear-l1", entry], block, tables=[])
    said = "blocks[0]: protocol 'calls' can't time the program 'x'; use a race, or give this block"
    for command in ("validate", "run"):
        ended = svmbench(command, config, "--trust")
        assert (ended.code, said in ended.err) == (2, True), ended.said
    block["protocol"] = "race"
    del block["call"]
    assert svmbench("validate", write_config(tmp_path, ["liblinear-l1", entry], block, tables=[]),
                    "--trust").code == 0  # fmt: skip


# Keys.


def key_of(config: Path) -> str:
    """Return the key of a config's only cell."""
    (cell,) = prepare_plan(str(config), "quick", trust=True).cells
    return cell.key


def test_a_cells_key_holds_the_commands_and_the_programs_files(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "script.txt"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    other.write_text("1")
    keys = []

    def note(command: str) -> None:
        keys.append(key_of(write_config(tmp_path, [{"program": command, "label": "x"}])))

    note(f"{own} {other} {{train}} {{model}}")
    note(f"{own} {other} {{train}} {{model}} ")
    assert keys[0] == keys[1]
    note(f"{own} {other} {{model}} {{train}}")
    own.write_text("#!/bin/sh\n\n")
    note(f"{own} {other} {{train}} {{model}}")
    other.write_text("2")
    note(f"{own} {other} {{train}} {{model}}")
    assert len(set(keys)) == 4


# With the programs themselves.

PAIRS = [
    ({"program": "svm-train"}, "libsvm", {"C": 2.0, "gamma": 0.5, "tol": 1e-6}),
    (
        {"program": "svm-train -t 1 -d 2 -r 1 -g 0.5 -c {C} -e {tol} {train} {model}"},
        "libsvm",
        {"C": 0.5, "tol": 1e-6},
    ),
    ({"program": "liblinear-train"}, "liblinear-l2", {"C": 2.0, "tol": 1e-8}),
    (
        {"program": "liblinear-train -s 1 -c {C} -e {tol} {train} {model}"},
        "liblinear-l2-dual",
        {"C": 0.5, "tol": 1e-6},
    ),
]


@pytest.mark.parametrize(("entry", "ours", "params"), PAIRS)
def test_a_program_has_the_objective_of_our_entry(
    tmp_path: Path, entry: dict[str, Any], ours: str, params: dict[str, Any]
) -> None:
    name = installed(entry["program"].split()[0])
    more = {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.5} if "-d" in str(entry) else {}
    more |= {"fit_intercept": False} if ours == "liblinear-l2-dual" else {}
    grid = {"C": [params["C"] / 4, params["C"]]}
    fixed = {key: value for key, value in params.items() if key != "C"}
    entry = {"predict": templates.SHIPPED[name][1], **entry, "label": "theirs", "params": fixed}
    config = write_config(
        tmp_path,
        [
            {**entry, "grid": grid},
            {"name": ours, "label": "ours", "params": fixed | more, "grid": grid},
        ],
        {"protocol": "holdout", "scaling": "all-rows", "scores": ["accuracy", "auc"]},
    )
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    cells = cells_of(tmp_path / "out")
    theirs, own = cells["theirs"]["metrics"], cells["ours"]["metrics"]
    assert theirs["objective"] == pytest.approx(own["objective"], rel=1e-6)
    for metric in ("accuracy_pct", "auc_pct"):
        assert theirs[metric] == pytest.approx(own[metric], abs=1e-9)
    assert cells["theirs"]["params"] == cells["ours"]["params"]
    assert theirs["n_iter"] > 1
    assert theirs["peak_memory_mb"] > 1
    assert theirs["cpu_time_s"] > 0


def installed(name: str) -> str:
    """Return a program's name if Debian's package of it is installed."""
    beyond.need(program=name, install=f"apt-get install {name.split('-')[0]}-tools")
    return name


def test_several_classes_are_the_programs_own_affair(tmp_path: Path) -> None:
    entry = {"program": installed("svm-train"), "params": {"C": 4.0, "gamma": 0.5, "tol": 1e-3}}
    same = {"name": "libsvm", "params": entry["params"]}
    block = {"protocol": "cv", "folds": 3, "scaling": "all-rows", "multiclass": "one-vs-one"}
    config = write_config(tmp_path, [entry, same], block, datasets=["digits"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    cells = cells_of(tmp_path / "out")
    theirs, own = (cells[name]["metrics"] for name in ("svm-train", "libsvm"))
    assert theirs["accuracy_pct"] == pytest.approx(own["accuracy_pct"], abs=0.2)
    assert theirs["accuracy_pct"] > 95
    assert "objective" not in theirs


def test_a_program_races_by_its_own_cpu_time(tmp_path: Path) -> None:
    params = {"C": 1.0, "gamma": 0.5, "tol": 1e-3}
    entry = {"program": installed("svm-train"), "params": params}
    block = {
        "protocol": "race",
        "repeats": 3,
        "tolerance": None,
        "pairs": [["libsvm", "svm-train"]],
    }
    config = write_config(tmp_path, [{"name": "libsvm", "params": params}, entry], block)
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    (cell,) = (line for line in lines_of(tmp_path / "out") if line["kind"] == "cell")
    cpu = cell["metrics"]["cpu_time_s:svm-train"]
    # The launcher's own CPU time, and the writing of files, would be 20 ms at least.
    assert 0.002 < cpu < 0.1
    assert cell["metrics"]["ratio:libsvm:svm-train"] > 1
    assert cell["counters"]["iterations:svm-train"] == cell["counters"]["iterations:libsvm"]


def test_a_program_without_a_known_model_races_with_or_without_an_accuracy(tmp_path: Path) -> None:
    train, predict = tmp_path / "train.sh", tmp_path / "predict.sh"
    train.write_text('echo "my own format" > "$2"\n')
    predict.write_text('while read -r _; do echo 1; done < "$1" > "$3"\n')
    words = [f"sh {train} {{train}} {{model}}"]
    other = ["-s", "liblinear-l1", "--rounds", 1, "--trust", "--json"]
    ended = svmbench("race", "-s", *words, *other)
    assert ended.code == 0, ended.said
    (result,) = json.loads(ended.out)
    assert [one["train_accuracy_pct"] for one in result["solvers"]] == [None, None]
    assert any("its accuracy can't be shown" in note for note in result["notes"])
    words += [f"predict=sh {predict} {{test}} {{model}} {{output}}"]
    ended = svmbench("race", "-s", *words, *other)
    assert ended.code == 0, ended.said
    (result,) = json.loads(ended.out)
    accuracies = [one["train_accuracy_pct"] for one in result["solvers"]]
    assert accuracies[0] == pytest.approx(100 * 357 / 569)  # of the larger class
    assert accuracies[1] > 95
    assert not any("its accuracy" in note for note in result["notes"])


def test_the_page_races_an_old_build_against_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "programs.md").read_text()
    *_, known, own = re.findall(r"^```bash\n(.*?)^```$", page, re.M | re.S)
    files = dict(re.findall(r"^```yaml file=(\S+)\n(.*?)^```$", page, re.M | re.S))
    for build in ("old", "new"):
        (tmp_path / build).mkdir()
        (tmp_path / build / "svm-train").symlink_to(str(shutil.which(installed("svm-train"))))
    monkeypatch.chdir(tmp_path)
    command = shlex.split(known.replace("\\\n", " ").replace("digits-even-odd", "breast-cancer"))
    ended = svmbench(*command[1:], "--rounds", 1)
    assert ended.code in (0, 4), ended.said  # by the noise of one round
    assert "old/svm-train C=1 gamma=0.5 tol=0.001 takes" in ended.out
    assert "98.24" in ended.out  # the accuracy
    # The workflow runs the page's own command, and the config names the same builds.
    (step,) = re.findall(r"svmbench race.*", files["speed.yml"], re.S)
    assert shlex.split(step) == shlex.split(known.replace("\\\n", " "))
    config = tmp_path / "builds.yaml"
    config.write_text(files["builds.yaml"])
    assert svmbench("validate", config).code == 0
    words = shlex.split(own.replace("\\\n", " "))
    racers = [f"{one} {two} {C}" for one, two, C in (words[8:11], words[12:15])]
    assert [racer.label for racer in parse_racers(racers, trust=True)] == [
        "new/train C=1",
        "old/train C=1",
    ]


def test_the_page_races_a_build_against_libsvm(tmp_path: Path) -> None:
    """By its path, with the commands of its name, and without an objective to aim at."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "programs.md").read_text()
    _, (name, content), *_ = re.findall(r"^```yaml file=(\S+)\n(.*?)^```$", page, re.M | re.S)
    installed("svm-train")
    build = tmp_path / "build" / "svm-train"
    build.parent.mkdir()
    build.symlink_to(str(shutil.which("svm-train")))
    config = tmp_path / name
    content = content.replace("digits-even-odd", "breast-cancer")  # a shorter fit
    config.write_text(content.replace("./build/svm-train", str(build)))
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    (cell,) = (one for one in lines_of(tmp_path / "out") if one["kind"] == "cell")
    assert cell["metrics"]["ratio:new-build:libsvm"] < 1
    said = (tmp_path / "out" / "tables.md").read_text()
    assert "| – |" not in said
    for metric in ("train_accuracy_pct", "certified_objective"):
        ours, theirs = (cell["metrics"][f"{metric}:{one}"] for one in ("new-build", "libsvm"))
        assert ours == pytest.approx(theirs, rel=1e-3), metric
    words = ["--solver", build, "C=1", "gamma=0.1", "--vs", "libsvm", "kernel=rbf", "gamma=0.1"]
    ended = svmbench("time", "breast-cancer", *words, "--rounds", 1)
    assert ended.code == 2
    assert "svm-train is an external program; a run starts it only with --trust" in ended.err
    ended = svmbench("time", "breast-cancer", *words, "--rounds", 1, "--trust")
    assert ended.code == 2
    assert "svm-train C=1 gamma=0.1: the command needs tol=… after its name" in ended.err
    words.insert(4, "tol=0.001")
    ended = svmbench("time", "breast-cancer", *words, "--rounds", 1, "--trust")
    assert ended.code == 0, ended.said
    assert "takes " in ended.out
    whole = f"{build} -t 0 -c {{C}} {{train}} {{model}}"
    words = ["--solver", whole, "C=1", "--vs", "libsvm", "kernel=linear"]
    ended = svmbench("time", "breast-cancer", *words, "--rounds", 1, "--trust")
    assert ended.code == 0, ended.said
    assert "svm-train C=1" in ended.out


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "programs.md").read_text()
    (name, content), *_ = re.findall(r"^```yaml file=(\S+)\n(.*?)^```$", page, re.M | re.S)
    config = tmp_path / name
    config.write_text(content)
    installed("svm-train")
    installed("liblinear-train")
    ended = svmbench("run", config, "--output", tmp_path / "out", "--trust")
    assert ended.code == 0, ended.said
    cells = cells_of(tmp_path / "out")
    for theirs, ours in (("svm-train", "csvc"), ("liblinear-train", "newton-l2")):
        objectives = [cells[solver]["metrics"]["objective"] for solver in (theirs, ours)]
        assert objectives[0] == pytest.approx(objectives[1], rel=1e-5)
    for word in templates.SHIPPED:
        assert f"| `{word}` |" in page
