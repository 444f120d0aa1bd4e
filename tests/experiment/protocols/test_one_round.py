"""What is wrong with a config is told in one round, with the value, in words of our own."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from svmbench.base.errors import ConfigError
from svmbench.experiment.config.loader import check_config, shipped_configs

WRONG = """\
titel: A test
seed: abc
datasets: [breast-cancr, {file: nowhere.csv}]
solvers:
  - {name: alsmv, grid: {C: {base: 2, exponents: {start: -3, stop: 3, step: 3}}}}
  - {name: csvc, params: {kernel: rfb, gama: 2, tol: -1}}
  - {name: csvc, label: b, grid: {kernel: [rbf, rfb]}, params: {cache_mb: many}}
  - {name: [1]}
blocks:
  - {name: cv, protocol: cv, folds: x}
  - {name: nested, protocol: nested_cv, sizs: 3}
  - {name: r, protocol: race, scores: [acc], pairs: [[csvc, lib]]}
tables:
  - {name: t, block: cv, metrics: [acuracy_pct, foo, auc_pct], rows: size}
  - {name: "a b", block: c}
  - {name: u, block: nested, rows: folds}
plots:
  - {name: p, block: cv, x: siez, y: tme, kind: scalng}
  - {name: q, block: cv, x: params.D, series: sovler, dataset: a9a, crossing: [csvc, lib]}
profiles: {}
timeout_s: .inf
seed: 3
"""
SAID = """\
1:1: title: the key 'title' is missing
1:1: titel: unknown key 'titel'; did you mean 'title'?
2:1: seed: should be a whole number, not 'abc'
3:12: datasets[0]: unknown data set 'breast-cancr'; did you mean 'breast-cancer'?
3:27: datasets[1]: there is no file 'nowhere.csv' here
5:6: solvers[0]: unknown solver 'alsmv'; did you mean 'alsvm'?
6:27: solvers[1]: solver 'csvc' has no kernel 'rfb'; did you mean 'rbf'? (it has: linear, rbf,
6:40: solvers[1]: solver 'csvc' has no parameter 'gama'; did you mean 'gamma'?
6:49: solvers[1].params: tol must be positive and finite, got -1
7:35: solvers[2]: solver 'csvc' has no kernel 'rfb'; did you mean 'rbf'? (it has: linear, rbf,
7:56: solvers[2]: solver 'csvc': cache_mb must be a number of MiB, finite and at least 0, got
8:6: solvers[3].name: should be text, not a list of 1
10:30: blocks[0].folds: should be a whole number, not 'x'
11:20: blocks[1].protocol: 'nested_cv' is none of calls,
12:31: blocks[2].scores: protocol 'race' has no scores, and the key does nothing
12:40: blocks[2].scores[0]: unknown score 'acc'; did you mean
14:36: tables[0]: block 'cv' gives no metric 'acuracy_pct'; did you mean 'accuracy_pct'?
14:49: tables[0]: block 'cv' gives no metric 'foo'
14:54: tables[0]: block 'cv' gives no metric 'auc_pct': its scores lack 'auc'
14:64: tables[0]: block 'cv' does not sweep 'size'
15:6: tables[1].name: should begin with a letter or a digit and have letters, digits, '_', '-' and
15:19: tables[1]: unknown block 'c'
16:30: tables[2].rows: a field of a cell is dataset, kernel, solver, rows, features,
18:26: plots[0]: block 'cv' gives no axis 'siez'; did you mean 'size'?
18:35: plots[0]: block 'cv' gives no metric 'tme'
18:43: plots[0].kind: 'scalng' is none of bars,
19:39: plots[1].series: a field of a cell is dataset, kernel, solver, rows, features, point or a
19:55: plots[1]: block 'cv' has no data set 'a9a'
20:1: profiles: should have at least 1 item, not 0
21:1: timeout_s: should be a finite number, not inf
22:1: the key 'seed' is given twice
"""


def problems_of(path: Path, overrides: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        check_config(path, overrides, files=True)
    return caught.value.problems


def test_thirty_mistakes_in_one_round_each_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(WRONG)
    found = [problem.removeprefix(f"{path}:") for problem in problems_of(path)]
    expected = SAID.splitlines()
    assert [each[: len(line)] for each, line in zip(found, expected, strict=False)] == expected
    assert len(found) == len(expected)


GOOD: dict[str, Any] = {
    "title": "A test",
    "seed": 1,
    "timeout_s": 60,
    "datasets": ["breast-cancer", {"name": "iris", "params": {"alsvm": {"C": 2}}}],
    "solvers": [
        {"name": "alsvm", "grid": {"C": {"base": 2, "exponents": {"start": -3, "stop": 3}}}},
        {"name": "liblinear-l1", "params": {"tol": 0.01}},
        {"name": "csvc", "label": "ours", "params": {"kernel": "rbf", "gamma": 0.5}},
    ],
    "blocks": [
        {"name": "cv", "protocol": "cv", "folds": 3, "scores": ["accuracy", "auc"]},
        {"name": "nested", "protocol": "nested-cv", "sweep": {"rows": [100, "50%"]}},
        {"name": "facts", "protocol": "facts"},
    ],
    "tables": [
        {"name": "t", "block": "cv", "metrics": ["auc_pct", "iterations"]},
        {"name": "f", "block": "facts", "columns": "metric", "metrics": ["n_samples"]},
    ],
    "plots": [{"name": "p", "block": "nested", "x": "size", "crossing": ["alsvm", "ours"]}],
    "profiles": {"quick": {"folds": 2, "grid": {"C": [1.0]}, "sweep": {"rows": [50]}}},
}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of everything in a document."""
    if place:
        yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def written(path: Path, document: Any) -> Path:
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def test_the_config_that_is_made_wrong_is_right(tmp_path: Path) -> None:
    assert check_config(written(tmp_path / "c.yaml", GOOD)).title == "A test"


@pytest.mark.parametrize("odd", [None, "zzz", -7, 1.5, True, [], {}, [[1]], {"zz": 1}], ids=repr)
def test_every_value_replaced_is_taken_or_named_and_nothing_else_is(
    tmp_path: Path, odd: object
) -> None:
    n_refused = 0
    for place in places(GOOD):
        document = copy.deepcopy(GOOD)
        holder: Any = document
        for part in place[:-1]:
            holder = holder[part]
        holder[place[-1]] = odd
        path = written(tmp_path / "c.yaml", document)
        try:
            check_config(path, files=True)
        except ConfigError as error:
            n_refused += 1
            for problem in error.problems:
                assert problem.startswith(f"{path}:")
                assert problem.isprintable()
                for raw in ("Input should", "valid ", "pydantic", "validation", "parse", "Value e"):
                    assert raw not in problem, problem
    assert n_refused > 30


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seed=abc", "--set seed=abc: seed: should be a whole number, not 'abc'"),
        ("seeed=7", "--set seeed=7: seeed: unknown key 'seeed'; did you mean 'seed'?"),
        ("blocks.cv.folds=1", "--set blocks.cv.folds=1: blocks[0].folds: should be at least 2,"),
        ("blocks.nestd.folds=3", "there is no item 'nestd'; did you mean 'nested'?"),
        ("blocks.7.folds=3", "--set blocks.7.folds=3: there is no item '7'"),
        ("title.x=1", "--set title.x=1: 'x' can't be looked up inside a plain value"),
        ("seed", "--set seed: expected key=value"),
        ("seed=[1", "--set seed=[1: "),
        ("datasets=[irs]", "--set datasets=[irs]: datasets[0]: unknown data set 'irs'; did you me"),
        ("solvers.1.name=alsmv", "--set solvers.1.name=alsmv: solvers[1]: unknown solver 'alsmv'"),
        ("solvers.ours.params.kernel=rfb", "solver 'csvc' has no kernel 'rfb'; did you mean 'rbf'"),
        ("tables.t.metrics=[foo]", "--set tables.t.metrics=[foo]: tables[0]: block 'cv' gives no"),
    ],
)
def test_an_error_in_set_names_set(tmp_path: Path, override: str, said: str) -> None:
    (found,) = problems_of(written(tmp_path / "c.yaml", GOOD), (override,))
    assert found.startswith("--set ")
    assert said in found


def test_errors_of_the_file_and_of_the_command_line_in_one_round(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", {**GOOD, "threads": 0})
    found = problems_of(path, ("seed=x", "nowhere", "blocks.cv.folds=0"))
    assert [problem.partition(": ")[0] for problem in found] == [
        "--set nowhere",
        "--set seed=x",
        "--set blocks.cv.folds=0",
        f"{path}:{path.read_text().count(chr(10))}:1",
    ]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("profiles",), {}, "profiles: should have at least 1 item, not 0"),
        (("profiles",), {"../x": {}}, "should begin with a letter or a digit"),
        (("datasets", 1), {"file": "nowhere/data.svm"}, "there is no file 'nowhere/data.svm' here"),
        (("datasets", 1), {"file": "/"}, "there is no file '/' here"),
        (
            ("datasets", 1),
            {"name": "iris", "label_column": "y"},
            "is an option for a table, and this data",
        ),
        (("solvers", 2, "params", "kernel"), "rfb", "has no kernel 'rfb'; did you mean 'rbf'?"),
        (("solvers", 2, "params", "degree"), 0, "degree must be an integer of at least 1, got"),
        (("solvers", 2, "params"), {"maxiter": 3}, "'maxiter'; did you mean 'max_iter'?"),
        (("blocks", 0, "scores"), ["f12"], "unknown score 'f12'; did you mean 'f1'?"),
        (("blocks", 0, "select_by"), "acuracy", "unknown score 'acuracy'; did you mean 'accuracy'"),
        (("tables", 0, "metrics"), ["train_time"], "'train_time'; did you mean 'train_time_s'?"),
        (
            ("tables", 1, "metrics"),
            ["accuracy_pct"],
            "block 'facts' gives no metric 'accuracy_pct'",
        ),
        (("tables", 0, "rows"), "size", "block 'cv' does not sweep 'size'"),
        (("plots", 0, "x"), "features", "does not sweep 'features' (it sweeps rows)"),
        (("plots", 0, "x"), "params.gama", "a parameter 'gama'; did you mean 'gamma'?"),
        (("plots", 0, "y"), "trian_time_s", "'trian_time_s'; did you mean 'train_time_s'?"),
        (("plots", 0, "crossing"), ["alsvm", "csvc"], "block 'nested' has no solver 'csvc'"),
        (("plots", 0, "dataset"), "irs", "block 'nested' has no data set 'irs'; did you mean"),
        (("profiles", "quick", "sweep"), {"features": [3]}, "no block sweeps 'features' here"),
        (("blocks", 0, "name"), 5, "should be text, not 5; put text that looks like another value"),
    ],
)
def test_what_can_not_work_is_not_passed(
    tmp_path: Path, place: tuple[Any, ...], value: object, said: str
) -> None:
    document = copy.deepcopy(GOOD)
    holder: Any = document
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = value
    found = problems_of(written(tmp_path / "c.yaml", document))
    assert any(said in problem for problem in found), found


def test_what_could_not_be_read_is_not_missed(tmp_path: Path) -> None:
    """Who refers to a solver, a block or a data set with another mistake in it makes none."""
    document = copy.deepcopy(GOOD)
    document["solvers"][2]["label"] = "a|b"  # which takes the name that the plot crosses
    document["blocks"][1] = ["no", "block"]
    document["datasets"][1]["file"] = 3
    document["profiles"]["quick"]["datasets"] = ["iris"]
    found = problems_of(written(tmp_path / "c.yaml", document))
    assert len(found) == 3, found


@pytest.mark.parametrize("path", shipped_configs(), ids=lambda path: path.stem)
def test_shipped_configs_ask_for_what_their_blocks_give(path: Path) -> None:
    config = check_config(path)
    asked = sum(len(table.metrics) for table in config.tables) + len(config.plots)
    assert asked
