"""Counts that a config may stand for: computed before a list is made, and refused with a place."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from svmbench.base.errors import ConfigError
from svmbench.experiment.config import counts
from svmbench.experiment.config.counts import _count_block
from svmbench.experiment.config.loader import apply_profile, load_config, shipped_configs
from svmbench.experiment.plan.planner import make_plan
from svmbench.experiment.protocols import protocols
from svmbench.experiment.settings.blocks import SolverSpec, TrainingBlock
from svmbench.experiment.settings.values import MAX_EXPONENTS, MAX_FOLDS

HEAD = "title: t\ndatasets: [breast-cancer]\n"
SWEPT = "{base: 1.01, exponents: {start: 0, stop: 199}}"
THREE = f"{{solver.C: {SWEPT}, solver.gamma: {SWEPT}, solver.tol: {SWEPT}}}"

BOMBS = {
    "exponents": (
        "solvers: [{name: csvc, grid: {C: {base: 2, exponents: {start: 0, stop: 9999999}}}}]\n"
        "blocks: [{name: b, protocol: cv}]\n",
        "solvers[0].grid.C.exponents: a range of 10,000,000 values, more than the 1,000 of one",
    ),
    "swept exponents": (
        "solvers: [{name: csvc}]\nblocks: [{name: b, protocol: cv, "
        "sweep: {solver.C: {base: 1, exponents: {start: 0, stop: 9999999}}}}]\n",
        "sweep.solver.C.exponents: a range of 10,000,000 values",
    ),
    "exponents of a profile": (
        "solvers: [{name: csvc, grid: {C: [1]}}]\nblocks: [{name: b, protocol: cv}]\n"
        "profiles: {paper: {grid: {C: {base: 1, exponents: {start: 0, stop: 9999999}}}}}\n",
        "profiles.paper.grid.C.exponents: a range of 10,000,000 values",
    ),
    "folds": (
        "solvers: [{name: csvc}]\nblocks: [{name: b, protocol: nested-cv, "
        "outer_folds: 10000000, inner_folds: 10000000, run_folds: 10000000}]\n",
        "blocks[0].outer_folds: should be at most 1000, not 10000000",
    ),
    "folds of a profile": (
        "solvers: [{name: csvc}]\nblocks: [{name: b, protocol: nested-cv}]\n"
        "profiles: {paper: {run_folds: 1000000000000000000}}\n",
        "profiles.paper.run_folds: should be at most 1000, not 1000000000000000000",
    ),
    "sweeps multiplied": (
        f"solvers: [{{name: csvc}}]\nblocks: [{{name: b, protocol: cv, sweep: {THREE}}}]\n",
        "blocks[0]: up to here there are 8,000,000 cells",
    ),
    "grids multiplied": (
        f"solvers: [{{name: csvc, grid: {THREE.replace('solver.', '')}}}]\n"
        "blocks: [{name: b, protocol: cv}]\n",
        "blocks[0]: up to here there are 8,000,000 grid points in all cells",
    ),
    "folds, sweeps and grids multiplied": (
        "solvers: [{name: csvc, grid: {C: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}]\n"
        f"blocks: [{{name: b, protocol: nested-cv, outer_folds: 600, sweep: {{solver.tol: {SWEPT}"
        "}}]\n",
        "blocks[0]: up to here there are 120,000 cells",
    ),
    "all blocks together": (
        "solvers: [{name: csvc}]\nblocks:\n"
        + "".join(
            f"  - {{name: b{i}, protocol: nested-cv, outer_folds: 900}}\n" for i in range(99)
        ),
        "blocks[55]: up to here there are 50,400 cells",
    ),
    "by a profile": (
        "solvers: [{name: csvc}]\nblocks: [{name: b, protocol: cv, sweep: {rows: [10], "
        "solver.C: [1], solver.tol: [1]}}]\n"
        f"profiles: {{paper: {{}}, all: {{sweep: {{solver.C: {SWEPT}, solver.tol: {SWEPT}, "
        "rows: [2, 3, 4]}}}\n",
        "blocks[0]: up to here there are 120,000 cells (data sets, solvers, folds and swept values"
        " multiplied) with the profile 'all', more than 50,000",
    ),
    "threads": ("threads: 1000000\nsolvers: []\nblocks: []\n", "threads: should be at most 1024"),
    "memory": ("memory_gb: 1e300\nsolvers: []\nblocks: []\n", "memory_gb: should be at most 1e+08"),
    "a label": (
        f"solvers: [{{name: csvc, label: {'x' * 300}}}]\nblocks: [{{name: b, protocol: cv}}]\n",
        "solvers[0].label: should have at most 200 characters, not 300",
    ),
    "a title": (f"paper: {'x' * 5000}\n", "a text of 5,000 characters, more than the 4,096 of one"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_config_that_stands_for_too_much_is_refused_with_its_place(
    name: str, tmp_path: Path
) -> None:
    text, said = BOMBS[name]
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + text)
    began = time.process_time()
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert time.process_time() - began < 5.0
    assert any(f"{path}:" in problem and said in problem for problem in caught.value.problems), (
        caught.value.problems
    )


def test_what_is_counted_is_what_there_is() -> None:
    for path in shipped_configs():
        config = load_config(path)
        for name in config.profiles:
            cut = apply_profile(config, name)
            for block in cut.blocks:
                if not isinstance(block, TrainingBlock):
                    continue
                places = sum(
                    math.prod(map(len, block.swept(dataset).values()))
                    for dataset in cut.datasets_of(block)
                )
                solvers: list[SolverSpec] = cut.solvers_of(block)
                points = sum(len(spec.grid_points()) for spec in solvers)
                folds = len(protocols()[block.protocol].folds_to_run(block))
                is_each = protocols()[block.protocol].cell == "solver"
                n_cells = places * folds * (len(solvers) if is_each else 1)
                assert _count_block(cut, block) == (n_cells, places * folds * points), path


def test_the_plan_has_as_many_cells_as_were_counted(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        HEAD + "solvers: [{name: csvc}, {name: dcd-l2}]\nblocks:\n"
        "  - {name: a, protocol: nested-cv, outer_folds: 3, sizes: [50, 100], features: [2, 3, 4],"
        " sweep: {solver.C: [1, 2]}}\n"
        "  - {name: b, protocol: cv, datasets: [{name: breast-cancer, sizes: [20, 30, 40]}]}\n"
        "  - {name: c, protocol: facts}\n"
    )
    config = load_config(path)
    counted = sum(_count_block(config, block)[0] for block in config.blocks)
    assert counted == 2 * 3 * 2 * 3 * 2 + 2 * 3 + 1
    assert len(make_plan(config, "c", "paper").cells) == counted


def test_what_ships_is_far_below_the_bounds() -> None:
    for path in shipped_configs():
        config = load_config(path)
        cuts = [apply_profile(config, name) for name in config.profiles]
        for cut in cuts:
            cells, points = map(sum, zip(*(_count_block(cut, b) for b in cut.blocks), strict=True))
            assert 10 * cells < counts.MAX_CONFIG_CELLS
            assert 5 * points < counts.MAX_CONFIG_POINTS
    assert MAX_EXPONENTS >= 1000
    assert MAX_FOLDS >= 1000


@pytest.mark.parametrize(
    ("of_block", "of_profile", "place"),
    [
        ("outer_folds: 3, run_folds: 4", "{}", "blocks[0]: block"),
        ("run_folds: 6", "{}", "blocks[0]: block"),
        ("outer_folds: 3", "{run_folds: 4}", "profiles.quick: block"),
        ("outer_folds: 9, run_folds: 4", "{outer_folds: 3}", "profiles.quick: block"),
        ("outer_folds: 3, run_folds: 3", "{run_folds: 2}", ""),
        ("outer_folds: 3, outer_repeats: 2, run_folds: 6", "{}", ""),
        ("outer_folds: 3, outer_repeats: 2, run_folds: 7", "{}", "blocks[0]: block"),
        ("outer_folds: 3, outer_repeats: 2, run_folds: 4", "{outer_repeats: 1}", "profiles.quick"),
        ("outer_folds: 4, run_folds: 0", "{outer_folds: 3, run_folds: 3}", ""),
    ],
)
def test_no_more_folds_run_than_there_are(
    tmp_path: Path, of_block: str, of_profile: str, place: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        HEAD + "solvers: [{name: csvc, grid: {C: [1, 2]}}]\nblocks:\n"
        f"  - {{name: a, protocol: nested-cv, {of_block}}}\n"
        f"profiles: {{paper: {{}}, quick: {of_profile}}}\n"
    )
    if not place:
        load_config(path)
        return
    with pytest.raises(
        ConfigError, match=r"runs \d folds \(run_folds\) of \d \(outer_folds"
    ) as said:
        load_config(path)
    assert place in str(said.value)
