"""Configs: grids, profiles, overrides, and errors that name every place at once."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runs import write_config

from svmbench.base.errors import ConfigError, suggestion
from svmbench.baselines.catalogue import solvers
from svmbench.core.nu import qp_solvers
from svmbench.data import registry
from svmbench.experiment.config import checks
from svmbench.experiment.config.findings import Findings
from svmbench.experiment.config.loader import (
    apply_profile,
    check_config,
    find_config,
    load_config,
    shipped_configs,
)
from svmbench.experiment.config.models import Config
from svmbench.experiment.config.yaml_source import YamlSource
from svmbench.experiment.protocols import protocols
from svmbench.papers.judging.cuts import _COUNTS

GOOD = """\
title: A test
datasets: [breast-cancer]
solvers:
  - {name: alsvm, grid: {C: {base: 2, exponents: {start: -3, stop: 3, step: 3}}}}
  - {name: liblinear-l1, params: {tol: 1e-2}}
blocks:
  - {name: cv, protocol: cv, folds: 3}
  - {name: nested, protocol: nested-cv}
tables:
  - {name: t, block: cv}
profiles:
  quick: {folds: 2, max_samples: 50, grid: {C: [1.0]}, params: {liblinear-l1: {tol: 0.5}}}
  paper: {}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return path


def problems_of(tmp_path: Path, text: str) -> list[str]:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        check_config(path)
    return [p.replace(str(path), "c.yaml") for p in caught.value.problems]


@pytest.mark.parametrize("name", ["race", "nested-race", "calls", "check", "simulate"])
def test_a_block_without_scores_refuses_their_keys(tmp_path: Path, name: str) -> None:
    """A search that chose by accuracy, and a column that no cell fills, would pass for others."""
    text = GOOD.replace("protocol: cv, folds: 3", f"protocol: {name}, scores: [auc]")
    text = text.replace("block: cv}", "block: cv, metrics: [auc_pct]}").replace("folds: 2, ", "")
    said = problems_of(tmp_path, text)
    unread = f"blocks[0].scores: protocol {name!r} has no scores, and the key does nothing"
    assert any(unread in one for one in said)
    assert any("block 'cv' gives no metric 'auc_pct': it has no scores" in one for one in said)


def test_a_key_of_blocks_is_told_where_it_belongs(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "select_by: auc\n" + GOOD) == [
        "c.yaml:1:1: select_by: unknown key 'select_by' of a config: it is a key of a block"
    ]


def test_grid_in_powers(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert config.solvers[0].grid_points() == [{"C": 0.125}, {"C": 1.0}, {"C": 8.0}]
    assert config.solvers[1].grid_points() == [{}]
    assert config.solvers[1].params == {"tol": 0.01}


def test_grid_of_two_parameters_varies_the_last_fastest(tmp_path: Path) -> None:
    text = GOOD.replace(
        "grid: {C: {base: 2, exponents: {start: -3, stop: 3, step: 3}}}",
        "grid: {C: [1, 2], gamma: [3, 4]}",
    )
    config = load_config(write(tmp_path, text))
    assert config.solvers[0].grid_points() == [
        {"C": 1, "gamma": 3},
        {"C": 1, "gamma": 4},
        {"C": 2, "gamma": 3},
        {"C": 2, "gamma": 4},
    ]


def test_profile_cuts(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    quick = apply_profile(config, "quick")
    assert quick.blocks[0].folds == 2  # type: ignore[attr-defined]
    assert not hasattr(quick.blocks[1], "folds")  # of another protocol
    assert [block.max_samples for block in quick.blocks] == [50, 50]
    assert quick.solvers[0].grid_points() == [{"C": 1.0}]
    assert quick.solvers[1].params == {"tol": 0.5}
    assert apply_profile(config, "paper") == config
    with pytest.raises(ConfigError, match="unknown profile 'quik'; did you mean 'quick'"):
        apply_profile(config, "quik")


def test_a_profile_chooses_data_sets_of_all_blocks_or_of_one(tmp_path: Path) -> None:
    text = GOOD.replace("[breast-cancer]", "[breast-cancer, iris]")

    def names_of(cut: str) -> list[list[str]]:
        config = load_config(write(tmp_path, text.replace("quick: {", f"quick: {{{cut}, ")))
        quick = apply_profile(config, "quick")
        return [[spec.name for spec in quick.datasets_of(block)] for block in quick.blocks]

    both = ["breast-cancer", "iris"]
    block = load_config(write(tmp_path, text)).blocks[0].name
    assert names_of("datasets: [iris]") == [["iris"], ["iris"]]
    assert names_of(f"datasets: {{{block}: [iris]}}") == [["iris"], both]
    assert names_of(f"datasets: {{{block}: []}}") == [both]  # the block is left out
    cut = (
        "datasets: {"
        + ", ".join(f"{b.name}: []" for b in load_config(write(tmp_path, text)).blocks)
        + "}"
    )
    with pytest.raises(ConfigError, match="profile 'quick': its data sets leave out every block"):
        names_of(cut)


def test_every_error_at_once_with_place_and_suggestion(tmp_path: Path) -> None:
    text = (
        GOOD.replace("name: alsvm,", "name: alsmv,")
        .replace("[breast-cancer]", "[breast-cancr]")
        .replace("{tol: 1e-2}", "{tool: 1e-2}")
    )
    assert problems_of(tmp_path, text) == [
        "c.yaml:2:12: datasets[0]: unknown data set 'breast-cancr'; did you mean 'breast-cancer'?",
        "c.yaml:4:6: solvers[0]: unknown solver 'alsmv'; did you mean 'alsvm'?",
        "c.yaml:5:35: solvers[1]: solver 'liblinear-l1' has no parameter 'tool';"
        " did you mean 'tol'?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "protocol: cv",
            "protocol: nested_cv",
            "c.yaml:7:16: blocks[0].protocol: 'nested_cv' is none of",
        ),
        ("folds: 3", "fold: 3", "blocks[0].fold: unknown key 'fold'; did you mean 'folds'?"),
        ("folds: 3", "folds: 1", "c.yaml:7:30: blocks[0].folds: should be at least 2, not 1"),
        (
            "title: A test",
            "titel: A test",
            "c.yaml:1:1: titel: unknown key 'titel'; did you mean 'title'?",
        ),
        ("title: A test\n", "", "the key 'title' is missing"),
        ("{tol: 1e-2}", "{C: -1}", "solvers[1].params: C must be positive and finite, got -1"),
        ("{tol: 1e-2}", "{C: abc}", "C must be positive and finite, got 'abc'"),
        ("{tol: 1e-2}", "{C: .inf}", "C must be positive and finite, got inf"),
        ("{tol: 1e-2}", "{C: .nan}", "C must be positive and finite, got nan"),
        ("{tol: 1e-2}", "{C: 0}", "solvers[1].params: C must be positive and finite, got 0"),
        (
            "C: {base: 2, exponents: {start: -3, stop: 3, step: 3}}",
            "C: [1, 0]",
            "solvers[0].grid: C must be positive and finite, got 0",
        ),
        ("C: {base: 2, exponents: {start: -3, stop: 3, step: 3}}", "C: []", "solvers[0].grid.C"),
        ("start: -3", "start: 5", "an empty range: stop 3 is below start 5"),
        (
            "block: cv",
            "block: nestd",
            "c.yaml:10:15: tables[0]: unknown block 'nestd'; did you mean 'nested'?",
        ),
        (
            "profiles:",
            "plots: [{name: p, kind: bars, block: cv, beside: nestd}]\nprofiles:",
            "plots[0]: unknown block 'nestd'; did you mean 'nested'?",
        ),
        (
            "profiles:",
            "plots: [{name: p, kind: decision, block: cv, beside: nested}]\nprofiles:",
            "plots[0]: a plot of kind decision shows one block, so it can't have 'beside'",
        ),
        ("name: nested,", "name: cv,", "another block is already called 'cv'"),
        (
            "name: liblinear-l1",
            "name: alsvm",
            "solver 'alsvm' stands twice; give one of them a label",
        ),
        ("datasets: [breast-cancer]\n", "", "no data sets"),
        (
            "[breast-cancer]",
            "[iris, breast-cancer, iris]",
            "c.yaml:2:33: datasets[2]: data set 'iris' stands twice",
        ),
        (
            "[breast-cancer]",
            "[{file: a/data.csv}, {file: b/data.csv}]",
            "datasets[1]: data set 'data.csv' stands twice; give one of them a name",
        ),
        (
            "folds: 3}",
            "folds: 3, datasets: [iris, iris]}",
            "c.yaml:7:57: blocks[0].datasets[1]: data set 'iris' stands twice",
        ),
        (
            "name: liblinear-l1",
            "name: liblinear-l1, label: 'a:b'",
            "c.yaml:5:26: solvers[1].label: a label can't contain ':' or '|', which separate",
        ),
        ("name: liblinear-l1", "name: liblinear-l1, label: 'a|b'", "solvers[1].label: a label"),
        ("exponents: {start: -3, stop: 3, step: 3}", "exponents: [1, 5000]", "2 to the power of 5"),
        ("stop: 3,", "stop: 1500,", "2 to the power of 1500 is too large a number"),
        (
            "protocol: cv, folds: 3",
            "protocol: race, precision: double",
            "blocks[0].precision: unknown key 'precision'",
        ),
        *(
            (
                "protocol: cv, folds: 3",
                f"protocol: {protocol}, scaling: every-fold",
                f"c.yaml:7:{28 + len(protocol)}: blocks[0].scaling: protocol '{protocol}' can't"
                " scale so: 'every-fold' is none of outer-fold, all-rows, none",
            )
            for protocol in ("holdout", "fit", "race", "nested-race")
        ),
        *(
            (
                "title: A test",
                f"title: t\n{limit}: {value}",
                f"c.yaml:2:1: {limit}: should be a finite number, not {value[1:]}",
            )
            for limit in ("memory_gb", "scratch_gb", "timeout_s")
            for value in (".nan", ".inf")
        ),
    ],
)
def test_one_error(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    found = problems_of(tmp_path, GOOD.replace(old, new, 1))
    assert any(expected in line for line in found), found
    assert all(line.startswith("c.yaml:") for line in found)


QUICK = "{folds: 2, max_samples: 50, grid: {C: [1.0]}, params: {liblinear-l1: {tol: 0.5}}}"


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("{max_samples: -5}", "12:11: profiles.quick.max_samples: should be at least 0, not -5"),
        ("{sizes: [0]}", "12:11: profiles.quick.sizes: a size is a number of rows or a percentage"),
        ("{sizes: [all]}", "12:11: profiles.quick.sizes: a size is a number of rows or a percent"),
        ("{features: [0]}", "12:22: profiles.quick.features[0]: should be at least 1, not 0"),
        (
            "{timeout_s: .inf}",
            "12:11: profiles.quick.timeout_s: should be a finite number, not inf",
        ),
        ("{datasets: []}", "12:11: profiles.quick.datasets: should have at least 1 item, not 0"),
        ("{grid: {C: [-1]}}", "12:18: profiles.quick.grid: C must be positive and finite, got -1"),
        (
            "{params: {alsvm: {tol: 0}}}",
            "12:28: profiles.quick.params.alsvm: tol must be positive and finite, got 0",
        ),
        (
            "{datasets: [breast-cancr]}",
            "12:22: profiles.quick: this config has no data set 'breast-cancr'; did you mean"
            " 'breast-cancer'?",
        ),
        (
            "{datasets: {vc: [breast-cancer]}}",
            "12:22: profiles.quick: this config has no block 'vc'",
        ),
        (
            "{datasets: {cv: [breast-cancr]}}",
            "12:27: profiles.quick: this config has no data set 'breast-cancr'; did you mean",
        ),
        (
            "{grid: {c: [1]}}",
            "12:18: profiles.quick: no solver searches 'c' here; did you mean 'C'",
        ),
        (
            "{params: {alsmv: {C: 1}}}",
            "12:20: profiles.quick: no solver is called 'alsmv' here; did you mean 'alsvm'?",
        ),
        (
            "{params: {alsvm: {c: 1}}}",
            "12:28: profiles.quick: solver 'alsvm' has no parameter 'c'; did you mean 'C'?",
        ),
    ],
)
def test_a_profile_is_checked_as_a_block_is(tmp_path: Path, profile: str, expected: str) -> None:
    assert QUICK in GOOD
    assert problems_of(tmp_path, GOOD.replace(QUICK, profile))[0].startswith(f"c.yaml:{expected}")


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ("C: {base: 2}", "4:26: solvers[0].grid.C.exponents: the key 'exponents' is missing"),
        (
            "C: {base: 2, exponents: 4}",
            "4:39: solvers[0].grid.C.exponents: should be a list, not 4",
        ),
        ("C: 3", "4:26: solvers[0].grid.C: should be a list, not 3"),
        ("C: [[1]]", "4:30: solvers[0].grid.C[0]: a value is a number, a word, true, false or"),
    ],
)
def test_a_value_that_may_have_two_forms_has_one_error(
    tmp_path: Path, grid: str, expected: str
) -> None:
    text = GOOD.replace("C: {base: 2, exponents: {start: -3, stop: 3, step: 3}}", grid)
    (found,) = problems_of(tmp_path, text)
    assert found.startswith(f"c.yaml:{expected}")


def test_an_override_that_is_wrong_is_named_in_full(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--set solvers\.0\.params\.tol=\[1, 2\]: "):
        load_config(write(tmp_path, GOOD), ("solvers.0.params.tol=[1, 2]",))


def test_an_override_may_take_away_what_a_profile_cuts(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("quick: {folds: 2,", "quick: {datasets: [breast-cancer],"))
    fewer = ("datasets=[iris]", "solvers=[{name: pegasos}]")
    check_config(path, fewer)
    with pytest.raises(ConfigError, match="no data set 'irs'; did you mean 'iris'"):
        check_config(path, (*fewer, "profiles.quick.datasets=[irs]"))


def test_a_data_set_is_checked_as_a_block_is(tmp_path: Path) -> None:
    for own, expected in (
        ("features: [0]", "datasets[0].features[0]: should be at least 1, not 0"),
        ("params: {alsvm: {C: -1}}", "datasets[0].params.alsvm: C must be positive and finite"),
    ):
        text = GOOD.replace("[breast-cancer]", f"[{{name: iris, {own}}}]")
        assert expected in problems_of(tmp_path, text)[0]


def test_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    config = load_config(path, ("seed=7", "blocks.cv.folds=4", "solvers.1.params.tol=1e-3"))
    assert config.seed == 7
    assert config.blocks[0].folds == 4
    assert config.solvers[1].params["tol"] == 0.001
    for wrong in ("seed", "blocks.nowhere.folds=2", "seed=no", "title.x=1"):
        with pytest.raises(ConfigError):
            load_config(path, (wrong,))


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'quickstart'\?"):
        find_config("quickstrat")
    with pytest.raises(ConfigError, match="no such config file"):
        find_config(str(tmp_path / "quickstart.yaml"))
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a UTF-8 text file"):
        load_config(binary)
    with pytest.raises(ConfigError, match="a config is a mapping"):
        load_config(write(tmp_path, "- 1\n"))
    with pytest.raises(ConfigError, match="a config is a mapping"):
        load_config(write(tmp_path, ""))


@pytest.mark.parametrize("path", shipped_configs(), ids=lambda p: p.stem)
def test_shipped_configs_are_valid_in_every_profile(path: Path) -> None:
    config = check_config(path)
    wanted = {"quick", "paper"} if config.paper else {"quick"}  # the paper's own protocol, too
    assert wanted <= set(config.profiles)
    for profile in config.profiles:
        cut = apply_profile(config, profile)
        assert all(cut.datasets_of(block) for block in cut.blocks)


def test_an_optional_solver_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    peer = {"name": "no-such-peer", "optional": True}
    block = {"protocol": "race", "pairs": [["alsvm", "falsvm"], ["alsvm", "no-such-peer"]]}
    path = write_config(tmp_path, ["alsvm", "falsvm", peer], block)
    config = check_config(path)
    cut = apply_profile(config, "quick")
    assert [spec.shown for spec in cut.solvers] == ["alsvm", "falsvm"]
    assert cut.blocks[0].pairs == [["alsvm", "falsvm"]]


def test_an_optional_solver_whose_package_is_missing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        qp_solvers.LIBRARIES, "qp", ("no_such_package", qp_solvers.LIBRARIES["qp"][1])
    )
    peer = {"name": "nu-svm", "label": "peer", "params": {"solver": "qp"}, "optional": True}
    path = write_config(tmp_path, ["alsvm", peer])
    assert [spec.shown for spec in apply_profile(check_config(path), "quick").solvers] == ["alsvm"]
    path = write_config(tmp_path, ["alsvm", {**peer, "optional": False}])
    with pytest.raises(ConfigError, match=r"needs the package no_such_package.*pip install"):
        check_config(path)


def test_hundreds_of_misspelt_names_are_told_at_once(tmp_path: Path) -> None:
    names = [f"{i:03}-{'abcdefgh'[i % 8] * 12}-{i % 7}" for i in range(400)]
    solvers = "\n".join(f"  - {{name: csvc, label: {name}}}" for name in names)
    pairs = "\n".join(f"      - [{name}, {name}x]" for name in names)
    text = (
        f"title: t\ndatasets: [iris]\nsolvers:\n{solvers}\n"
        f"blocks:\n  - name: b\n    protocol: race\n    pairs:\n{pairs}\n"
    )
    path = tmp_path / "x.yaml"
    path.write_text(text)
    began = time.process_time()
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert time.process_time() - began < 10  # 33 s when each was compared with all
    assert len(caught.value.problems) == len(names)
    for name, said in zip(names, caught.value.problems, strict=True):
        assert f"did you mean {name!r}?" in said


@pytest.mark.parametrize("name", [*solvers(), *registry.names()])
def test_a_slip_of_the_fingers_is_understood(name: str) -> None:
    known = [*solvers(), *registry.names()]
    for slip in (name[1:], name[:-1], f"{name}s", name[1::-1] + name[2:], name.upper()):
        nearest = difflib.get_close_matches(slip.lower(), known, n=1, cutoff=0.6)
        said = suggestion(slip, known)
        assert bool(said) == bool(nearest)
        if said:
            found = said.split("'")[1]
            likeness = difflib.SequenceMatcher(None, slip.lower(), found).ratio()
            assert likeness > 0.9 * difflib.SequenceMatcher(None, slip.lower(), nearest[0]).ratio()


def test_likeness_is_found_in_time_that_no_name_makes_long() -> None:
    known = ["ab" * 30_000 + str(i) for i in range(500)]
    began = time.process_time()
    assert suggestion("ba" * 30_000, known)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("name", protocols())
def test_a_profile_may_cut_every_setting_of_a_protocol(name: str) -> None:
    declared = protocols()[name]
    assert {*declared.setting_names, "max_samples"} <= Config.profile_model().model_fields.keys()


def test_verdicts_count_what_a_profile_may_cut() -> None:
    assert set(_COUNTS) <= Config.profile_model().model_fields.keys()


def test_a_value_that_another_protocols_setting_could_have_is_refused(tmp_path: Path) -> None:
    """Two protocols may have a setting of one name; a block takes the values of its own alone."""
    path = write(tmp_path, GOOD)
    findings = Findings(YamlSource.read(path))
    profile: Any = SimpleNamespace(block_cuts=lambda: {"folds": "many", "max_samples": 50})
    checks._check_cuts(("profiles", "quick"), profile, load_config(path), findings)
    (said,) = findings
    assert said == (
        f"{path}:12:11: profiles.quick.folds: block 'cv': should be a whole number, not 'many'"
    )


def test_of_a_value_one_thing_alone_is_said(tmp_path: Path) -> None:
    findings = Findings(YamlSource.read(write(tmp_path, GOOD)))
    for said in ("should be a number", "should be positive"):
        findings.add_once(("title",), said)
    findings.add_once(("blocks",), "should be a list")
    assert [one.rpartition(": ")[2] for one in findings] == [
        "should be a number",
        "should be a list",
    ]
