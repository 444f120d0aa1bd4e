"""Races with certificates: boards of solvers, tiers, and solvers that are not where they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_runs import planned, record, write_run

import svmbench
from svmbench.experiment.protocols.certified import Certificates, share_bounds
from svmbench.report.numbers.certified import Board, boards
from svmbench.report.numbers.ratios import ratios
from svmbench.report.output.builder import Content, read_content
from svmbench.report.output.formats.markdown import markdown_table
from svmbench.report.tables.grids import grid_of
from svmbench.report.tables.layout import wide_csv
from svmbench.site import Material, build_site


class Liar:
    """A class that shows weights and says that it converged."""

    stop_reason_ = "converged"

    def __init__(self, w: np.ndarray) -> None:
        self.coef_, self.intercept_, self.C = w[None, :], np.zeros(1), 1.0
        self.loss, self.fit_intercept = "hinge", False


def liars() -> dict[str, Any]:
    """Return an honest model and three that are not what they claim, with their rows."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1, -1)
    honest = svmbench.DCDL1(C=1.0, fit_intercept=False, tol=1e-10).fit(X, y)
    w = honest.coef_[0]
    # Half the steps of sub-gradient descent from zero.
    half = np.zeros(3)
    for t in range(1, 11):
        inside = y * (X @ half) < 1.0
        half -= 0.1 / t * (half - (y[inside, None] * X[inside]).sum(axis=0))
    models = {"honest": honest, "sign": Liar(-w), "half": Liar(half), "scaled": Liar(0.2 * w)}
    found = {name: Certificates(name, X, y) for name in models}
    for name, model in models.items():
        found[name].add(0, model)
    share_bounds(list(found.values()))
    metrics: dict[str, Any] = {"n_train": 60}
    for name, one in found.items():
        one.report([0], metrics, [])
        metrics |= {f"cpu_time_s:{name}": 0.5 if name == "honest" else 0.1}
    metrics |= {f"ratio:honest:{name}": 0.2 for name in ("sign", "half", "scaled")}
    return metrics


@pytest.fixture(scope="module")
def lies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cell = planned("race", "toy", "honest|sign|half|scaled", protocol="race", kernel="linear")
    table = {"name": "t", "title": "Lies", "block": "race", "rows": "dataset", "columns": "solver",
             "metrics": ["ratio", "cpu_time_s", "certified_gap", "solved_1e-2_pct",
                         "claims_true_pct"], "published": None}  # fmt: skip
    place = tmp_path_factory.mktemp("lies") / "race"
    return write_run(place, [cell], [record(cell, liars(), stop_reason="")], [table], paper="")


def test_a_solver_that_lies_is_marked_and_never_the_best(lies: Path) -> None:
    content = read_content(lies)
    text = markdown_table(grid_of(content.run, content.tables[0], in_seconds=True))
    (row,) = [line for line in text.splitlines() if line.startswith("| toy")]
    cells = dict(
        zip(
            [f"{c[0]}.{m}" for c, m in content.tables[0].columns],
            [one.strip() for one in row.split("|")[2:-1]],
            strict=True,
        )
    )
    assert cells["honest.cpu_time_s"] == "0.500"
    assert [cells[f"{name}.cpu_time_s"] for name in ("sign", "half", "scaled")] == ["0.100¶"] * 3
    assert cells["honest vs sign.ratio"] == "0.200¶"
    assert [cells[f"{name}.claims_true_pct"] for name in ("honest", "sign")] == ["100.00", "0.00"]
    assert "¶ Not for equal work, and not compared: sign and half and scaled stopped" in text
    assert wide_csv(content.run, content.tables[0]).count("ok, false claim") == 6
    # The liars are the fastest five times over, and nobody's best.
    grid = grid_of(content.run, content.tables[0])
    (_, boxes) = grid.rows[0]
    assert not any(one.best for one in boxes if one.text.marks)


def test_a_solver_that_lies_is_marked_on_the_site(lies: Path, tmp_path: Path) -> None:
    build_site(Material(folders=(lies.parent,)), tmp_path / "site")
    text = (tmp_path / "site" / "papers" / "others.html").read_text()
    assert text.count("¶</td>") == 6
    assert "¶ Not for equal work" in text


def board_run(place: Path, times: dict[str, list[float | None]], *, true: bool = True) -> Content:
    """Write a ladder's races, one for each data set, and a race at default settings."""
    cells, records = [], []
    n_problems = len(next(iter(times.values())))
    for k in range(n_problems):
        cell = planned("ladder", f"set{k}", "|".join(times), protocol="race", kernel="rbf")
        metrics: dict[str, Any] = {"n_train": 100}
        for name, own in times.items():
            for accuracy in ("1e-2", "1e-3", "1e-5"):
                metrics[f"cpu_time_to_{accuracy}_s:{name}"] = own[k]
        cells.append(cell)
        records.append(record(cell, metrics, stop_reason=""))
    cell = planned("default", "set0", "|".join(times), protocol="race", kernel="rbf")
    metrics = {f"claims_true_pct:{name}": 100.0 if true else 0.0 for name in times}
    metrics |= {f"certified_bound:{name}": 1.0 for name in times}
    cells.append(cell)
    records.append(record(cell, metrics, stop_reason=""))
    blocks = [{"name": "ladder", "title": "A kernel"}, {"name": "default"}]
    return read_content(write_run(place, cells, records, paper="", blocks=blocks))


def made(place: Path, times: dict[str, list[float | None]], **more: Any) -> Board:
    (one,) = boards([("run", board_run(place, times, **more).run)])
    return one


def test_a_board_counts_what_is_solved_and_ranks_in_tiers(tmp_path: Path) -> None:
    n = 8
    one = made(
        tmp_path / "run",
        {
            "slow": [4.0 + k for k in range(n)],
            "quick": [1.0] * n,
            "near": [1.2, 0.9, 1.1, 1.1, 1.3, 0.95, 1.05, 1.1],
            "stuck": [0.1, *[None] * (n - 1)],
        },
    )
    assert [s.solver for s in one.standings] == ["quick", "near", "slow", "stuck"]
    assert [s.tier for s in one.standings] == [1, 1, 2, 2]
    assert [s.solved["1e-3"] for s in one.standings] == [n, n, n, 1]
    assert one.standings[1].ratio == pytest.approx(1.1)
    assert one.standings[3].low == one.standings[3].high == 1.0
    assert one.problems[0].ratio("quick") == pytest.approx(10.0)
    assert one.profiles("1e-3")["stuck"][-1][1] == pytest.approx(1 / n)


def test_fewer_than_five_problems_rank_nobody(tmp_path: Path) -> None:
    one = made(tmp_path / "run", {"quick": [1.0] * 4, "slow": [9.0] * 4})
    assert [s.tier for s in one.standings] == [None, None]


def test_claims_are_those_of_single_settings(tmp_path: Path) -> None:
    times: dict[str, list[float | None]] = {"quick": [1.0] * 5, "slow": [2.0] * 5}
    one = made(tmp_path / "true", times)
    assert [(s.claims, s.true_claims, s.false_on) for s in one.standings] == [(1, 1, ())] * 2
    one = made(tmp_path / "false", times, true=False)
    assert [(s.claims, s.true_claims) for s in one.standings] == [(1, 0)] * 2
    assert one.standings[0].false_on == ("set0",)


def test_a_race_without_certificates_makes_no_board(lies: Path) -> None:
    assert boards([("lies", read_content(lies).run)]) == []


def test_ladders_are_compared_by_their_times_to_a_certified_accuracy(tmp_path: Path) -> None:
    times: dict[str, list[float | None]] = {"csvc": [1.0, 2.0, 1.0], "libsvm": [3.0, 1.0, None]}
    content = board_run(tmp_path / "run", times)
    # The sum over all settings of the ladders is another number.
    cells = [
        replace(cell, metrics={**cell.metrics, "ratio:csvc:libsvm": 70.0})
        for cell in content.run.cells
        if cell.block == "ladder"
    ]
    run = replace(content.run, cells=tuple(cells))
    found = ratios([("run", run)], lambda _, label: label)
    assert [(one.problem, one.value) for one in found] == [
        ("set0 (ladder)", 3.0),
        ("set1 (ladder)", 0.5),
    ]
