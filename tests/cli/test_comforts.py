"""Completion, doctor, schema, warm-up, a race of one line, and the log."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from runs import COMMAND, svmbench, write_config
from untraced import untraced

from svmbench import data
from svmbench.base import known_names
from svmbench.baselines import catalogue
from svmbench.cli import cli
from svmbench.experiment.config.loader import shipped_configs
from svmbench.experiment.config.schema import config_schema
from svmbench.studies import datasets, doctor, racing

pytestmark = pytest.mark.usefixtures("workshop")

# ---------------------------------------------------------------- help and log


@pytest.mark.parametrize("command", [[], *([name] for name in cli.list_commands(None))], ids=str)
def test_help_keeps_its_examples_line_by_line(command: list[str]) -> None:
    shown = svmbench(*command, "--help").out
    assert "\\b" not in shown
    assert "\b" not in shown
    assert re.search(r"^  (Examples?|First steps):$", shown, re.MULTILINE)


def test_v_tells_each_step_on_standard_error_wherever_it_stands(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works", "test-raises"])
    quiet = svmbench("run", config, "--output", tmp_path / "a", "-q")
    assert quiet.err == ""
    for number, words in enumerate((["-v", "run", config], ["run", config, "--verbose"])):
        ended = svmbench(*words, "--output", tmp_path / f"out{number}", "-q")
        assert ended.code == 3
        lines = ended.err.splitlines()
        assert all(re.match(r"\d\d:\d\d:\d\d \S", line) for line in lines)
        assert any(line.endswith(" start: breast-cancer · test-works · main") for line in lines)
        assert any(" failed: breast-cancer · test-raises · main: Run" in line for line in lines)
        assert ended.out == quiet.out
    assert svmbench("run", config, "--output", tmp_path / "b").err == ""  # and it ends with it


def test_the_log_file_has_every_step_and_tracebacks(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works"])
    log = tmp_path / "steps.log"
    assert svmbench("run", config, "--output", tmp_path / "out", "--log-file", log).code == 0
    first = log.read_text()
    assert re.search(r"^\d{4}-\d\d-\d\d .* ok: breast-cancer · test-works · main: ", first, re.M)
    ended = svmbench("run", "nowhere", f"--log-file={log}")
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert log.read_text().startswith(first)
    assert "ConfigError: nowhere: no such config file" in log.read_text()
    ended = svmbench("list", "papers", "--log-file", tmp_path / "no" / "such" / "folder.log")
    assert ended.code == 1
    assert ended.err == (
        f"svmbench: can't write {tmp_path}/no/such/folder.log: No such file or directory\n"
    )
    assert (
        "Option '--log-file' requires an argument" in svmbench("list", "papers", "--log-file").err
    )


# ---------------------------------------------------------------- completion


def solvers_of_the_suite() -> list[str]:
    return [name for name in catalogue.solvers() if not name.startswith("test-")]


def test_the_names_are_those_of_the_registries() -> None:
    assert known_names.solver_names() == solvers_of_the_suite()
    assert known_names.dataset_names() == data.names()
    assert known_names.config_names() == [path.stem for path in shipped_configs()]


def test_an_optional_solver_is_named_if_its_package_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optional = {
        "cyanure": "cyanure-l2",
        "rehline": "rehline-l1",
        "skglm": "skglm-l1",
        "sklearnex": "svc-intelex",
    }
    installed: set[str] = set()
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda package: object() if package in installed else None
    )
    assert not set(optional.values()) & set(known_names.solver_names())
    for package, solver in optional.items():
        installed = {package}
        assert set(optional.values()) & set(known_names.solver_names()) == {solver}


def completed(*words: str, shell: str = "bash", **variables: str) -> list[str]:
    """Ask for the completion of the last word, as the shell's script does."""
    asked = {
        "_SVMBENCH_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1) if shell != "fish" else words[-1],
    }
    done = subprocess.run(
        COMMAND,
        env={**os.environ, **asked, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["svmbench", "des"], {"plain,describe"}),
        (["svmbench", "describe", "pega"], {"plain,pegasos"}),
        (["svmbench", "describe", "a9"], {"plain,a9a"}),
        (["svmbench", "fetch", "a9a", "ijc"], {"plain,ijcnn1"}),
        (["svmbench", "fetch", "@al"], {"plain,@alsvm"}),
        (["svmbench", "run", "quick"], {"plain,quickstart"}),
        (["svmbench", "run", "./some"], {"file,./some"}),
        (["svmbench", "time", "digits-e"], {"plain,digits-even-odd"}),
        (["svmbench", "time", "a9a", "--solver", "fals"], {"plain,falsvm"}),
        (
            ["svmbench", "time", "a9a", "--solver", "alsvm", "C=1", "--vs", "dcd"],
            {"plain,dcd-l1", "plain,dcd-l2"},
        ),
        (["svmbench", "run", "quickstart", "--prof"], {"plain,--profile"}),
        (["svmbench", "warmup", "alsvm-b"], {"plain,alsvm-batch"}),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_names_are_completed(words: list[str], expected: set[str]) -> None:
    assert set(completed(*words)) == expected


def test_what_one_added_is_completed_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('@declare(name="zebra-svm", problem="hinge")\nclass A: ...\n')
    (tmp_path / "own.toml").write_text("[zebras]\n")
    variables = {
        "SVMBENCH_PLUGINS": "no_such_module,mine",
        "SVMBENCH_DATASETS": f"{tmp_path / 'own.toml'}{os.pathsep}{tmp_path / 'gone.toml'}",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]),
    }
    assert completed("svmbench", "describe", "zeb", **variables) == [
        "plain,zebra-svm",
        "plain,zebras",
    ]


def test_the_other_shells_are_answered_in_their_own_form() -> None:
    assert completed("svmbench", "describe", "pega", shell="zsh")[:2] == ["plain", "pegasos"]
    assert completed("svmbench", "describe", "pega", shell="fish") == ["plain,pegasos"]


def test_bash_itself_completes(tmp_path: Path) -> None:
    program = tmp_path / "svmbench"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{COMMAND[2]}' \"$@\"\n")
    program.chmod(0o755)
    script = """
        eval "$(svmbench completion bash)"
        complete -p svmbench
        COMP_WORDS=(svmbench describe falsv) COMP_CWORD=2
        _svmbench_completion svmbench
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].endswith("-F _svmbench_completion svmbench")
    assert lines[1:] == ["falsvm"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_the_other_shells_ask_for_their_form(shell: str) -> None:
    text = svmbench("completion", shell).out
    assert f"_SVMBENCH_COMPLETE={shell}_complete" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


# ---------------------------------------------------------------- doctor


def findings(ended_code: int = 0) -> dict[str, dict[str, Any]]:
    ended = svmbench("doctor", "--json")
    assert ended.code == ended_code, ended.said
    told = json.loads(ended.out)
    assert told["ok"] == (ended_code == 0)
    return {finding["what"]: finding for finding in told["findings"]}


def test_the_doctor_finds_what_is_there() -> None:
    told = findings()
    assert told["python"]["found"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert "numba " in told["packages"]["found"]
    assert "test" not in told["solvers"]["found"]
    assert f"{len(catalogue.solvers())}, with those of sabotage" == told["solvers"]["found"]
    assert told["mirror"]["status"] == "note"
    assert "nowhere" in told["data sets"]["found"]
    printed = svmbench("doctor").out
    for finding in told.values():
        assert finding["what"] in printed
        assert finding["mend"] in printed
        assert bool(finding["mend"]) == (finding["status"] != "ok")


def test_the_doctor_says_what_is_broken_and_how_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVMBENCH_MIRROR", str(tmp_path / "gone"))
    mirror = findings(1)["mirror"]
    assert mirror["status"] == "broken"
    assert mirror["found"] == f"{tmp_path / 'gone'} is not a folder"
    assert "BROKEN  mirror" in svmbench("doctor").out
    monkeypatch.setenv("SVMBENCH_MIRROR", "http://127.0.0.1:9")
    assert findings(1)["mirror"]["found"] == "http://127.0.0.1:9: ConnectionError"
    monkeypatch.setenv("SVMBENCH_MIRROR", str(tmp_path))
    assert findings()["mirror"]["status"] == "ok"


@pytest.mark.slow
def test_the_doctor_tells_a_plugin_that_is_not_there() -> None:
    environment = {**os.environ, "SVMBENCH_PLUGINS": "no_such_module"}
    done = subprocess.run(
        [*COMMAND, "doctor"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    (number,) = [i for i, line in enumerate(lines) if line.startswith("BROKEN  solvers ")]
    assert "can't import 'no_such_module'" in lines[number]
    assert lines[number + 1].strip().startswith("→ check SVMBENCH_PLUGINS")


def test_the_doctor_looks_on_when_a_look_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from svmbench.experiment.measuring import environment

    def fail() -> str:
        raise ZeroDivisionError("no\ncpu")

    def nothing(name: str) -> str:
        return "not installed" if name == "pandas" else "1.0"

    with monkeypatch.context() as patch:
        patch.setattr(environment, "cpu_model", fail)
        patch.setattr(environment, "_version", nothing)
        told = {finding.what: finding for finding in doctor.examine_machine()}
    assert told["versions"].found == told["machine"].found == "ZeroDivisionError: no cpu"
    assert told["cache"].status == "ok"
    with monkeypatch.context() as patch:
        patch.setattr(environment, "_version", nothing)
        told = {finding.what: finding for finding in doctor.examine_machine()}
    assert told["packages"].mend == "python -m pip install pandas"
    assert not doctor.is_ok(list(told.values()))


# ---------------------------------------------------------------- schema


@pytest.mark.slow
def test_every_shipped_config_fits_the_schema() -> None:
    schema = json.loads(svmbench("schema").out)
    assert schema == config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    # jsonschema calls nothing of ours, and takes more than twice as long where it is traced.
    validate = untraced(jsonschema.Draft202012Validator(schema).validate)
    for path in shipped_configs():
        validate(yaml.load(path.read_text(), yaml.CSafeLoader))


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"sed": 1}, []),
        ({"blocks": [{"name": "b", "protocol": "fitt"}]}, ["blocks", 0, "protocol"]),
        ({"timeout_s": "long"}, ["timeout_s"]),
        ({"datasets": [{"label_column": "x"}]}, ["datasets", 0]),
        ({"datasets": [3]}, ["datasets", 0]),
        ({"solvers": [{"params": {}}]}, ["solvers", 0]),
    ],
)
def test_the_schema_marks_mistakes(change: dict[str, Any], at: list[Any]) -> None:
    right = {
        "title": "x",
        "datasets": ["a9a", "a9a[:100]", {"file": "my.svm"}, {"name": "w8a", "sizes": ["50%"]}],
        "solvers": [{"name": "alsvm", "grid": {"C": {"base": 2, "exponents": [1]}}}],
        "blocks": [{"name": "b", "protocol": "cv"}],
    }
    checker = jsonschema.Draft202012Validator(config_schema())
    assert list(checker.iter_errors(right)) == []
    errors = list(checker.iter_errors({**right, **change}))
    assert at in [list(error.absolute_path) for error in errors]


def test_the_schema_offers_names_to_complete() -> None:
    definitions = config_schema()["$defs"]
    name = definitions["SolverSpec"]["properties"]["name"]["anyOf"][0]["enum"]
    assert name == solvers_of_the_suite()


# ---------------------------------------------------------------- warm-up and race


@pytest.mark.slow
def test_warmup_compiles_what_it_names() -> None:
    ended = svmbench("warmup", "test-works", "liblinear-l1")
    assert ended.code == 0
    assert [line.split(":")[0] for line in ended.out.splitlines()] == ["test-works", "liblinear-l1"]
    several = svmbench("warmup", "liblinear-l1", "test-works", "dcd-l1", "--jobs", 2)
    assert several.code == 0, several.said
    names = sorted(line.split(":")[0] for line in several.out.splitlines())  # as they are ready
    assert names == ["dcd-l1", "liblinear-l1", "test-works"]
    wrong = svmbench("warmup", "liblinear-l1", "liblinaer-l1")
    assert wrong.code == 2
    assert wrong.out == ""  # every name is checked first
    assert "did you mean 'liblinear-l1'?" in wrong.err


@pytest.mark.slow
def test_compiling_elsewhere_leaves_code_that_is_loaded_here(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = ("warmup", "alsvm", "alsvm-batch", "--jobs", "2")
    done = subprocess.run([*COMMAND, *words], env=environment, check=False)
    assert done.returncode == 0
    compiled = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert compiled
    again = subprocess.run([*COMMAND, *words[:-2]], env=environment, check=False)
    assert again.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == compiled


def test_a_race_of_one_line() -> None:
    words = ("time", "breast-cancer", "--rounds", 3, "--rows", 200)
    racers = ("--solver", "test-works", "C=2", "--vs", "test-slow", "--vs", "liblinear-l2", "C=.5")
    ended = svmbench(*words, *racers)
    assert ended.code == 0, ended.said
    lines = ended.out.splitlines()
    assert lines[0] == "breast-cancer: 200 rows, 3 rounds, one thread"
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        "solver",
        "test-works C=2",
        "test-slow",
        "liblinear-l2 C=.5",
    ]
    assert lines[5].startswith("test-slow takes ")
    assert lines[6].startswith("liblinear-l2 C=.5 takes ")
    notes = [line for line in lines if line.startswith("note: ")]
    assert any(line.startswith("note: the solvers minimise different problems") for line in notes)
    told = json.loads(svmbench(*words, *racers, "--json").out)
    assert [one["solver"] for one in told["ratios"]] == ["test-slow", "liblinear-l2 C=.5"]
    for one in told["ratios"]:
        low, high = one["range"]
        assert 0 < low <= one["ratio"] <= high
    objectives = {one["solver"]: one["objective"] for one in told["solvers"]}
    source = data.load("breast-cancer")
    assert objectives["liblinear-l2 C=.5"] < 0.5 * len(source.y)


def test_a_race_to_equal_objective_takes_a_ladder() -> None:
    ladder = "tol=1,0.1,0.001"
    ended = svmbench(
        "time", "breast-cancer", "--rounds", 3, "--tolerance", "0.01", "--json",
        "--solver", "liblinear-l2", ladder, "--vs", "liblinear-l2-dual", ladder,
    )  # fmt: skip
    assert ended.code == 0, ended.said
    told = json.loads(ended.out)
    assert all(one["excess_objective"] <= 0.01 for one in told["solvers"])
    assert told["ratios"][0]["ratio"] > 0


def test_a_file_may_race(tmp_path: Path) -> None:
    rows = "".join(f"{'+1' if i % 2 else '-1'} 1:{i % 7} 2:{i % 2 + i % 3}\n" for i in range(60))
    (tmp_path / "my.svm").write_text(rows)
    words = ("--solver", "test-works", "--vs", "liblinear-l2", "--rounds", 2)
    ended = svmbench("time", tmp_path / "my.svm", *words)
    assert ended.code == 0, ended.said
    assert ended.out.startswith(f"{tmp_path / 'my.svm'}: 60 rows, 2 rounds")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["a9b", "--solver", "alsvm", "--vs", "pegasos"], 2, "unknown data set 'a9b'; did you"),
        (["digits", "--solver", "alsmv", "--vs", "x"], 2, "unknown solver 'alsmv'; did you mean"),
        (["digits", "--solver", "alsvm", "tol=1", "--vs", "x"], 2, "unknown parameter of alsvm"),
        (["digits", "--solver", "alsvm", "C=", "--vs", "x"], 2, "'C=' is not of the form KEY=VAL"),
        (["digits", "C=1", "--solver", "alsvm", "--vs", "x"], 2, "unexpected extra argument"),
        (["digits", "--solver", "alsvm", "--vs", "alsvm"], 2, "alsvm against itself needs other"),
        (["digits", "--solver", "alsvm"], 2, "Missing option '--vs'"),
        (
            ["breast-cancer", "--solver", "test-raises", "--vs", "test-works"],
            1,
            "the race ended without a result: RuntimeError: the matrix is not what it was",
        ),
        (
            ["breast-cancer", "--solver", "test-hangs", "--vs", "test-works", "--timeout", "1"],
            1,
            "the race ended without a result: stopped after 1 s",
        ),
        (
            ["digits", "--solver", "alsvm", "--vs", "alsvm", "C=-1"],
            2,
            "alsvm C=-1: C must be positive and finite, got -1",
        ),
        (
            ["digits", "--solver", "dcd-l1", "tol=1,0", "--vs", "alsvm"],
            2,
            "dcd-l1 tol=1,0: tol must be positive and finite, got 0",
        ),
        (["digits", "--solver", "", "--vs", "alsvm"], 2, "a solver's name is empty"),
        (["digits", "--solver", "alsvm", "--vs", "  "], 2, "a solver's name is empty"),
        (
            ["digits", "--solver", "csvc", "kernel=a:b", "--vs", "x"],
            2,
            "a label can't contain ':' or",
        ),
        (["x" * 300, "--solver", "alsvm", "--vs", "pegasos"], 2, "unknown data set 'xxx"),
        (
            ["digits", "--solver", "alsvm", "--vs", "pegasos", "--tolerance", "nan"],
            2,
            "Invalid value for '--tolerance': nan is not a finite number",
        ),
    ],
)
def test_what_a_race_cannot_do_is_a_sentence(words: list[str], code: int, sentence: str) -> None:
    ended = svmbench("time", *words)
    assert ended.code == code, ended.said
    assert sentence in ended.err
    assert "Traceback" not in ended.said
    assert ended.out == ""


def test_a_ratio_is_the_others_time_over_the_firsts() -> None:
    racers = [racing.parse_racer(words) for words in ("test-works", "pegasos max_iter=200000")]
    entry, settings = {"name": "breast-cancer"}, racing.RaceSettings(rounds=3)
    told = racing.time_solvers(entry, racers, settings)
    assert told["ratios"][0]["ratio"] > 3
    back = racing.time_solvers(
        {"name": "breast-cancer"}, racers[::-1], racing.RaceSettings(rounds=3)
    )
    assert back["ratios"][0]["ratio"] < 1 / 3


@pytest.mark.slow
def test_a_paper_has_the_data_sets_that_stand_in_for_its_own() -> None:
    names = datasets.names_with_stand_ins("cpsp")
    assert set(data.names_of_paper("cpsp")) < set(names)
    assert names[-1] == "reuters"
