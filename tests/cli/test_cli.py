"""The command line: what it prints, what it ends with, and that errors are sentences."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from runs import COMMAND, cells_of, svmbench, wait_until, without_signs, write_config

import svmbench as package
from svmbench.base.errors import ConfigError
from svmbench.cli import cli
from svmbench.cli.fetching import Fetching
from svmbench.cli.progress import Watcher
from svmbench.data.many import Event, FetchOutcome

pytestmark = pytest.mark.usefixtures("workshop")

ROOT = Path(__file__).resolve().parents[2]


def in_own_process(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("command", [[], *([name] for name in cli.list_commands(None))], ids=str)
def test_help_is_a_page_to_act_on(command: list[str]) -> None:
    ended = svmbench(*command, "--help")
    assert ended.code == 0
    assert f"Usage: svmbench {' '.join(command)}" in ended.out
    assert (
        "svmbench " + (command[0] if command else "run quickstart") in ended.out.split("\n", 1)[1]
    )
    assert svmbench(*command, "-h").out == ended.out


def test_help_lists_the_commands_in_the_order_of_use() -> None:
    out = svmbench("--help").out
    places = [out.index(f"\n  {name} ") for name in cli.list_commands(None)]
    assert places == sorted(places)
    assert svmbench("--version").out == f"svmbench, version {package.__version__}\n"


def test_help_imports_none_of_the_libraries_that_take_long() -> None:
    main = "import svmbench.cli as cli; cli.main()"  # which no fork of a loaded process runs
    words = [sys.executable, "-X", "importtime", "-c", main, "--help"]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert {"click", "svmbench.cli"} <= imported
    slow = {"numpy", "scipy", "numba", "sklearn", "pandas", "pydantic", "rich", "yaml"}
    assert not slow & imported
    assert len(imported) < 400


def test_the_package_is_a_command_too() -> None:
    words = [sys.executable, "-m", "svmbench", "list", "solver"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Invalid value for" in done.stderr


@pytest.mark.parametrize(
    ("what", "column", "known"),
    [
        ("solvers", "solver", {"alsvm", "liblinear-l1", "test-works"}),
        ("datasets", "dataset", {"a9a", "breast-cancer", "covtype"}),
        ("configs", "config", {"quickstart", "alsvm_table2"}),
        ("papers", "paper", {"alsvm", "smo", "srbo"}),
        ("protocols", "protocol", {"nested-cv", "race", "facts"}),
        ("scores", "score", {"accuracy", "auc"}),
        ("plot-kinds", "kind", {"bars", "scaling", "convergence"}),
        ("formats", "format", {"markdown", "latex"}),
    ],
)
def test_lists(what: str, column: str, known: set[str]) -> None:
    rows = json.loads(svmbench("list", what, "--json").out)
    assert known <= {row[column] for row in rows}
    printed = svmbench("list", what)
    assert printed.code == 0
    lines = printed.out.splitlines()
    assert lines[0].split() == " ".join(rows[0]).split()
    assert [line.split()[0] for line in lines[1:]] == [row[column] for row in rows]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("alsvm", ["solver      alsvm", "paper       alsvm", "parameters  C = 1.0"]),
        ("liblinear-l1", ["paper       none: a baseline"]),
        ("a9a", ["dataset      a9a", "rows         32,561", "counts       24,720, 7,841"]),
    ],
)
def test_describe(name: str, lines: list[str]) -> None:
    ended = svmbench("describe", name)
    assert ended.code == 0
    assert set(lines) <= set(ended.out.splitlines())
    facts = ended.out.partition("\ndeviations")[0]  # which are prose
    assert not set("{[") & set(facts)
    assert json.loads(svmbench("describe", name, "--json").out)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["describe", "alsmv"], 2, "unknown solver or data set 'alsmv'; did you mean 'alsvm'?"),
        (["fetch", "a9b"], 2, "unknown data set 'a9b'; did you mean 'a9a'?"),
        (["fetch", "@alsmv"], 2, "did you mean 'alsvm'?"),
        (["fetch"], 2, "name a data set, @PAPER, or --all"),
        (["run", "quickstrat"], 2, "no such config file; did you mean 'quickstart'?"),
        (["run", "quickstart", "--profile", "quik"], 2, "unknown profile 'quik'; did you mean"),
        (
            ["run", "quickstart", "--set", "blocks.x.folds=2"],
            2,
            "there is no item 'x' (there is: scaling, nested-cv)",
        ),
        (["run", "."], 2, ". is a folder; a config is a YAML file"),
        (["claims", "."], 1, ". has no results: name run folders"),
        (["refresh"], 1, "there is no folder results here: name the results to measure again"),
        (["run", "quickstart", "--set", "sed=2"], 2, "unknown key 'sed'; did you mean 'seed'?"),
        (["run", "quickstart", "--only", "colour=red"], 2, "--only colour=red: expected solver=…"),
        (["table", "no-such-folder"], 1, "no-such-folder"),
        (["run", "x" * 300], 2, "xxx: File name too long"),
        (["validate", "x" * 300], 2, "xxx: File name too long"),
        (["compare", "x" * 300, "."], 1, "xxx: File name too long"),
    ],
)
def test_errors_are_one_sentence(
    words: list[str], code: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = svmbench(*words)
    assert ended.code == code
    assert ended.out == ""
    assert sentence in ended.err
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []  # nothing was begun


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rum", "quickstart"], "No such command 'rum'; did you mean 'run'?"),
        (["run", "quickstart", "--jbos", "2"], "no option '--jbos'; did you mean '--jobs'?"),
        (["run", "quickstart", "--\x1b[2J"], "there is no option '--"),
        (["run"], "Missing argument 'CONFIG'"),
        (["run", "quickstart", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["run", "quickstart", "--timeout", "-1"], "Invalid value for '--timeout'"),
        (["list", "solver"], "Invalid value for"),
        (["compare", "a", "b", "--slowdown", "nan"], "'--slowdown': nan is not a finite number"),
        *(
            (["run", "quickstart", option, value], f"'{option}': {value} is not a finite number")
            for option in ("--timeout", "--memory", "--budget")
            for value in ("nan", "inf")
        ),
    ],
)
def test_usage_errors_end_with_2(words: list[str], sentence: str) -> None:
    ended = svmbench(*words)
    assert ended.code == 2
    assert sentence.lower() in ended.err.lower()
    assert "Traceback" not in ended.err
    assert ended.err.startswith("svmbench: ")
    assert ended.err.endswith("--help' shows what there is)\n")
    assert ended.err[:-1].isprintable()


def test_validate_names_every_error_of_every_file(tmp_path: Path) -> None:
    broken = tmp_path / "a.yaml"
    broken.write_text(
        "title: t\ndatasets: [breast-cancr]\nsolvers:\n  - {name: alsmv}\n"
        "  - {name: alsvm, params: {c: 1}}\nblocks:\n  - {name: b, protocol: cv}\n"
    )
    twice = tmp_path / "b.yaml"
    twice.write_text("title: t\ntitle: u\n")
    ended = svmbench("validate", broken, twice, ROOT / "configs" / "quickstart.yaml", "nowhere")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        f"{broken}:2:12: datasets[0]: unknown data set 'breast-cancr'; did you mean"
        " 'breast-cancer'?",
        f"{broken}:4:6: solvers[0]: unknown solver 'alsmv'; did you mean 'alsvm'?",
        f"{broken}:5:28: solvers[1]: solver 'alsvm' has no parameter 'c'; did you mean 'C'?",
        f"{twice}:1:1: blocks: the key 'blocks' is missing",
        f"{twice}:2:1: the key 'title' is given twice",
        "nowhere: no such config file ('svmbench list configs' shows those that ship with"
        " svmbench)",
    ]
    assert ended.out == f"{ROOT}/configs/quickstart.yaml: ok (2 blocks, profiles quick, paper)\n"


def test_a_negative_c_is_an_error_with_its_place(tmp_path: Path) -> None:
    config = write_config(tmp_path, [{"name": "alsvm", "grid": {"C": [1.0, -2.0]}}])
    ended = svmbench("run", config, "--output", tmp_path / "out")
    assert ended.code == 2
    assert "solvers[0].grid: C must be positive and finite, got -2.0" in ended.err
    assert f"{config}:" in ended.err
    assert not (tmp_path / "out").exists()


def test_fetch_says_what_it_has_and_what_it_has_not() -> None:
    ended = svmbench("fetch", "breast-cancer", "covtype")
    assert ended.code == 1
    first, second = ended.out.splitlines()
    assert first == "breast-cancer: ready (569 × 30, scikit-learn, counts checked)"
    assert second.startswith("covtype: not available: it is not cached, and downloads are not")
    assert "https://" in second
    headline, hint = ended.err.splitlines()
    assert headline == "1 of 2 data sets are not available"
    assert ended.said.count("covtype: ") == 1
    assert "--mirror (or SVMBENCH_MIRROR) names a folder" in hint
    again = svmbench("fetch", "breast-cancer")
    assert (again.code, again.out, again.err) == (0, first + "\n", "")


def test_a_quiet_fetch_says_only_what_went_wrong() -> None:
    done = svmbench("fetch", "breast-cancer", "-q")
    assert (done.code, done.said) == (0, "")
    done = svmbench("fetch", "breast-cancer", "pima", "--quiet")
    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith(
        "1 of 2 data sets are not available:\n  pima: it is not cached, and downloads are not"
    )


def test_a_fetch_on_a_terminal_shows_a_bar() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    facts = {"n_samples": 1605, "n_features": 123, "n_test": 30956, "verified": "sha256"}
    facts["source"] = "official"
    with Fetching(console) as fetching:
        fetching.event(Event("start", "a1a"))
        fetching.event(Event("bytes", "a1a", "a1a.t", 500_000, 1_000_000))
        fetching._bar.refresh()  # type: ignore[union-attr]
        fetching.event(Event("done", "a1a", outcome=FetchOutcome("a1a", "prepared", facts=facts)))
    shown = screen.getvalue()
    assert "a1a: a1a.t" in shown
    assert "0.5/1.0 MB" in shown
    assert "a1a: ready (1,605 × 123 + 30,956 test rows, sha256 verified)\n" in shown


@pytest.fixture(scope="module")
def small_run(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run a small part of the shipped quickstart as a user would; return folder and output."""
    folder = tmp_path_factory.mktemp("small")
    words = ["quickstart", "--output", str(folder / "out")]
    only = "solver=alsvm,solver=liblinear-l1,dataset=breast-cancer,dataset=synthetic-linear"
    ended = svmbench("run", *words, "--only", only, "--set", "blocks.scaling.sizes=[200, 400, 800]")
    assert ended.code == 0, ended.said
    return folder / "out", ended.out


def test_quickstart_makes_tables_and_plots(small_run: tuple[Path, str]) -> None:
    folder, out = small_run
    assert "[12/12] " in out
    for name in ("table.csv", "tables.md", "accuracy.csv", "times.md", "scaling.svg"):
        assert (folder / name).stat().st_size > 0
    # The overview has the first table, the best solvers and two places, in 80 columns.
    assert "\nsize 'quick': " in out
    assert "; --profile paper runs the paper's own size\n" in out
    overview = out.partition("[12/12] ")[2].splitlines()[1:]
    header = next(line for line in overview if line.startswith("data set"))
    assert re.split(r"  +", header)[1:3] == ["solver", "train time (s)"]
    rows = [line for line in overview if re.match(r"(breast-cancer|synthetic-linear)  ", line)]
    begins = header.index("train time (s)")
    assert len(rows) >= 2
    assert all(line[begins - 1] == " " != line[begins] for line in rows), overview
    assert any(line.startswith("best ") and "accuracy" in line for line in overview)
    assert overview[-3:-1] == [
        f"tables: {folder / 'tables.md'}",
        f"plot: {folder / 'scaling.png'}",
    ]
    # A loaded machine marks its times, in a sentence of any length.
    free = (str(folder), "other programs had the processor")
    assert all(len(line) <= 80 or any(text in line for text in free) for line in overview), overview
    assert (folder / "scaling.png").read_bytes().startswith(b"\x89PNG")
    assert "Missing cells" in (folder / "tables.md").read_text()
    assert {c["status"] for c in cells_of(folder).values()} == {"ok"}
    assert "\x1b" not in out


def test_a_solver_has_the_deviations_of_its_name_in_a_file_of_several() -> None:
    said = {
        name: " ".join(svmbench("describe", name).out.partition("deviations")[2].split())
        for name in ("chunking", "osuna", "svm-light", "asvm", "lsvm")
    }
    assert [text[:24] for text in said.values()] == [
        "The threshold is also di", "Whom to exchange is left", "The inner quadratic prog",
        "(Q_BB)^-1 e_B is nu (e_B", "Qu - e is not computed: ",
    ]  # fmt: skip
    assert all("quadratic program" not in said[name] for name in ("chunking", "asvm", "lsvm"))


#: Where a solver does otherwise than its paper, in ways that change what it finds.
DECLARED = {
    "nl-sgd": ("alpha^(t) includes the update of step t.", "1/(lambda t)", "section V says"),
    "srbo-nu-svm": ("relative duality gap of 1e-3", "It is 1e-8 at tol = 1e-6", "order statistics"),
    "nu-svm": ("The start: all multipliers equal", "fit_intercept=False"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_deviations_that_change_results_are_declared_also_those_of_a_solvers_parts(
    name: str,
) -> None:
    said = " ".join(svmbench("describe", name).out.partition("deviations")[2].split())
    assert [one for one in DECLARED[name] if one not in said] == []
    assert "See the modules" not in said


def test_describe_names_the_extra_of_a_solver_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from svmbench.baselines import catalogue

    known = {name: one for name, one in catalogue.solvers().items() if name != "cyanure-l2"}
    monkeypatch.setattr(catalogue, "solvers", lambda: known)
    ended = svmbench("describe", "cyanure-l2")
    assert ended.code == 2
    assert "cyanure-l2 needs the package cyanure" in ended.err
    assert "pip install '.[peers]'" in ended.err


def test_a_results_folder_is_no_config(small_run: tuple[Path, str]) -> None:
    folder, _ = small_run
    ended = svmbench("run", folder)
    assert ended.code == 2
    assert f"{folder} is a results folder, and a run needs a config" in ended.err


def test_the_example_of_set_works_and_plus_appends() -> None:
    words = ["run", "alsvm_table2", "--dry-run", "--only", "solver=csvc,block=cv"]
    ended = svmbench(*words, "--set", "blocks.cv.folds=3", "--set", "solvers.+={name: csvc}")
    assert ended.code == 0, ended.said
    assert "cv · a9a: " in ended.out


def test_plus_appends_to_a_list_that_the_config_leaves_out() -> None:
    plot = "plots.+={name: times, kind: bars, block: cv, x: dataset, y: train_time_s}"
    words = ["run", "alsvm_table2", "--dry-run", "--only", "solver=pegasos,block=cv", "--set", plot]
    ended = svmbench(*words)
    assert ended.code == 0, ended.said
    ended = svmbench(*words, "--set", plot)
    assert ended.code == 2
    assert "times" in ended.err  # the second one has the same name


def test_no_estimate_before_a_tenth_and_a_missing_set_once() -> None:
    from svmbench.cli.progress import Narrator, Watcher

    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, color_system=None)
    watcher = Watcher(console, [SimpleNamespace(cost=1.0)] * 50)  # type: ignore[list-item]
    watcher._work_done = 1.0
    watcher.done = 4
    assert watcher._time_left() == ""
    watcher.done = 5
    assert watcher._time_left().endswith(" left")
    narrator = Narrator(console)
    reasons = [
        "pima: not available: no mirror",
        "a9a: a9a can't be downloaded: no internet here",
        "pima: there is no official address for pima.csv",
    ]
    for said in (*reasons, "next", *reasons):
        narrator.print_line(said)
    printed = screen.getvalue().split("\n")
    assert [printed.count(reason) for reason in reasons] == [1, 1, 1]


def test_table_rebuilds_the_same_bytes(small_run: tuple[Path, str]) -> None:
    folder, _ = small_run
    kept = ("runs.jsonl", "plan.json", "environment")
    built = [p for p in folder.iterdir() if p.is_file() and not p.name.startswith((".", *kept))]
    assert len(built) >= 8
    before = {path.name: path.read_bytes() for path in built}
    for path in built:
        path.unlink()
    assert svmbench("table", folder).code == 0
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_quiet_says_only_what_went_wrong(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works", "test-raises"])
    ended = svmbench("run", config, "--output", tmp_path / "out", "--quiet")
    assert ended.code == 3
    lines = ended.out.splitlines()
    assert lines[0].startswith("failed: breast-cancer · test-raises")
    assert lines[1] == "cells: 1 failed, 1 ok"
    assert len(lines) == 3


@pytest.mark.slow
def test_debug_shows_where_wherever_it_stands() -> None:
    done = in_own_process("run", "nowhere", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ConfigError: nowhere: no such config file" in done.stderr
    with pytest.raises(ConfigError, match="nowhere: no such config file"):
        svmbench("--debug", "run", "nowhere")
    assert svmbench("run", "nowhere").code == 2


def test_an_error_nobody_foresaw_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from svmbench.studies import listing

    def fail() -> list[dict[str, Any]]:
        raise ZeroDivisionError("no\nsuch luck")

    monkeypatch.setitem(listing.LISTS, "papers", fail)
    ended = svmbench("list", "papers")
    assert ended.code == 1
    assert ended.err == "svmbench: ZeroDivisionError: no such luck (--debug shows where)\n"


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["COLORTERM", "NO_COLOR"])
def test_a_run_on_a_terminal_shows_a_bar(tmp_path: Path, variable: str) -> None:
    config = write_config(tmp_path, ["test-slow", "test-raises"], {"protocol": "cv", "folds": 3})
    ours, theirs = pty.openpty()
    unset = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"TERM": "xterm-256color", variable: "1"}
    process = subprocess.Popen(
        [*COMMAND, "run", str(config), "--output", str(tmp_path / "out")],
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 3
    text = shown.decode()
    assert "━" in text
    assert "0/2" in text
    assert "breast-cancer · test-slow · main" in text
    assert "failed: breast-cancer · test-raises · main: RuntimeError" in text
    coloured = re.search(r"\x1b\[[0-9;]*(?:3[0-7]|38;5;\d+)m", text)
    assert bool(coloured) == (variable != "NO_COLOR")


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [*COMMAND, "list", "datasets"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert without_signs(process.stderr.read().decode()) == ""
    assert process.wait(timeout=60) == 0


def test_ctrl_c_before_the_first_cell_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    from svmbench.studies import listing

    monkeypatch.setitem(listing.LISTS, "papers", lambda: signal.raise_signal(signal.SIGINT))
    ended = svmbench("list", "papers")
    assert ended.code == 130
    assert ended.err.strip() == "interrupted"


def test_the_python_interface(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["test-works", "test-raises"])
    frame = package.run(str(config), output=tmp_path / "out")
    assert frame["solver"].tolist() == ["test-works", "test-raises"]
    assert frame["status"].tolist() == ["ok", "failed"]
    assert frame["train_accuracy_pct"][0] > 80
    assert "test-works" in package.solvers()
    assert package.load("breast-cancer").X.shape == (569, 30)
    with pytest.raises(AttributeError, match="attribute runn"):
        package.runn  # noqa: B018


def test_facts_stand_beside_the_printed_ones(tmp_path: Path) -> None:
    # Facts have no kernel: what the paper prints is found whatever kernel its other tables are of.
    (tmp_path / "iris").write_text("1 1:1 2:2 3:1 4:1\n2 1:2 2:1 3:3 4:1\n3 1:2 2:3 3:5 4:2\n")
    config = write_config(
        tmp_path,
        [],
        {"protocol": "facts"},
        paper="nlsgd",
        datasets=[{"file": str(tmp_path / "iris")}],
        tables=[
            {
                "name": "table1",
                "block": "main",
                "columns": "metric",
                "metrics": ["n_samples", "n_features", "n_classes"],
                "published": "table1",
            }
        ],
    )
    assert svmbench("run", config, "--output", tmp_path / "out").code == 0
    table = (tmp_path / "out" / "table1.md").read_text()
    assert "| iris | 3 [150; -147] | 4 [4; =] | 3 [3; =] |" in table.replace("−", "-")


@pytest.mark.slow
def test_a_solver_is_one_import_away() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import svmbench; print(svmbench.solver('alsvm', C=2.0))"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "ALSVM(C=2.0)\n"


def test_a_ratio_without_a_value_does_not_end_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A solver that never comes to what it is timed to has a ratio of none."""
    names = ("dataset", "size", "n_features_kept", "solver", "fold", "block")
    cell = SimpleNamespace(
        identity={**dict.fromkeys(names), "dataset": "a9a", "block": "race"}, cost=1.0
    )
    metrics = {"ratio:alsvm vs dcd-l2": 2.0, "ratio:alsvm vs pegasos": None}
    record = {"status": "ok", "reason": "", "metrics": metrics}
    with Watcher(Console(), [cell]) as watcher:  # type: ignore[list-item]
        watcher.finished(cell, record)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "[1/1] a9a · race: alsvm vs dcd-l2 2×\n"


def test_silence_ends_after_seconds_and_then_seldom(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from svmbench.cli import progress

    # A wait of 0.01 s ends in a line, the next one would be of 100 s.
    monkeypatch.setattr(progress, "FIRST_SIGN_S", 0.01)
    monkeypatch.setattr(progress, "NEXT_SIGN_S", 0.04)
    monkeypatch.setattr(progress, "WAIT_FACTOR", 10_000.0)
    with progress.Waiting("timing csvc"):
        wait_until(lambda: capsys.readouterr().err == "timing csvc: 0 s so far\n", 60)
        time.sleep(0.1)
    with progress.Waiting("quiet", quiet=True):
        time.sleep(0.05)
    monkeypatch.setattr(progress, "FIRST_SIGN_S", 600.0)
    with progress.Waiting("long") as waiting:
        waiting.turn_to("longer", 600.0)
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_short_steps_are_reported_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from svmbench.cli import progress

    with progress.Waiting("site") as waiting:
        waiting.step("judging smo-1")
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(progress, "STEP_SIGN_S", -1.0)
        waiting.step("judging smo-2")
        monkeypatch.setattr(progress, "STEP_SIGN_S", 600.0)
        waiting.step("judging smo-3")
    assert capsys.readouterr().err == "judging smo-2\n"


def test_a_run_says_at_once_what_it_does_and_which_cell_is_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from svmbench.cli import progress
    from svmbench.experiment.plan import planner
    from svmbench.experiment.run.session import Request, plan_run

    said: list[str] = []
    monkeypatch.setattr(planner, "make_plan", lambda *_, **__: said.append("planned"))
    with pytest.raises(AttributeError):
        plan_run(Request("quickstart"), print_line=said.append)
    assert said == ["quickstart (quick): planning its cells", "planned"]
    monkeypatch.setattr(progress, "FIRST_SIGN_S", 0.001)
    names = ("size", "n_features_kept", "solver", "fold")
    shown = {**dict.fromkeys(names), "dataset": "a9a", "block": "cv"}
    cell = SimpleNamespace(identity=shown, cost=1.0)
    heard_so_far = ""

    def heard(text: str) -> bool:
        nonlocal heard_so_far
        heard_so_far += capsys.readouterr().err
        return text in heard_so_far

    with Watcher(Console(), [cell]) as watcher:  # type: ignore[list-item]
        wait_until(lambda: heard("starting a worker"), 60)
        watcher.started(cell)  # type: ignore[arg-type]
        wait_until(lambda: heard("a9a · cv: 0 s so far"), 60)
