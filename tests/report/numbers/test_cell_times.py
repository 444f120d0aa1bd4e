"""Forecasts of times agree with recorded times that they have not seen."""

import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from svmbench.report.numbers.cell_times import (
    Forecaster,
    Timed,
    Work,
    n_fits,
    timed_cells,
    values_a_row,
    whole_work_of,
    work_of,
)
from svmbench.report.reading.folders import our_runs
from svmbench.report.reading.records import CellResult, Run, read_run
from svmbench.schema.record import CELL_OVERHEAD_S, duration_text

ROOT = Path(__file__).resolve().parents[3]
WORK = Work("c", "b", "cv", "smo", "rbf", "a9a", 1000.0, 100.0, 10.0)


def quadratic(work):
    return CELL_OVERHEAD_S + 1e-6 * work.rows**2 * (work.fits / 10.0) ** 0.9


def test_a_forecast_follows_rows_and_fits_of_the_same_solver():
    sizes = [replace(WORK, rows=float(2**k)) for k in range(7, 16)]
    forecaster = Forecaster(Timed(one, quadratic(one)) for one in sizes)
    for asked in (replace(WORK, rows=2.0**18), replace(WORK, rows=2.0**14, fits=240.0)):
        found = forecaster.seconds(asked)
        assert found == pytest.approx(quadratic(asked), rel=0.35)
    # What was measured itself is forecast as it was measured.
    assert forecaster.seconds(sizes[3]) == pytest.approx(quadratic(sizes[3]))


def test_a_forecast_follows_swept_values_as_their_records_grow():
    def of(rows, n_basis, dataset="a9a"):
        swept = (("solver.n_basis", float(n_basis)),)
        work = replace(WORK, rows=float(rows), dataset=dataset, swept=swept)
        return Timed(work, CELL_OVERHEAD_S + 1e-7 * rows * n_basis**2)

    known = [of(rows, k, name) for name in ("a9a", "web") for rows in (1000, 4000)
             for k in (10, 20, 50, 100, 200)]  # fmt: skip
    asked = [of(32000, k) for k in (10, 100, 1000)]
    told = [Forecaster(known).seconds(one.work) for one in asked]
    for found, one in zip(told, asked, strict=True):
        assert found == pytest.approx(one.seconds, rel=0.35)
    # A number that never varied in records changes nothing.
    plain = Forecaster([Timed(WORK, 5.0)])
    other = replace(WORK, swept=(("solver.tol", 1e-6),))
    assert plain.seconds(other) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("paper", "dataset", "values"),
    [
        ("cpsp", "a9a", 123 * 0.1128),  # from its entry alone
        ("cpsp", "reuters", 8315 * 0.0053),
        ("sgdlssvm", "mushrooms", 112 * 0.1875),  # printed features
        ("nlsgd", "reuters+test", 8315 * 0.0053),
        ("cpsp", "no-such-set", 0.0),
    ],
)
def test_the_features_of_work_are_those_of_a_sample_that_are_not_0(paper, dataset, values):
    assert values_a_row(paper, dataset) == pytest.approx(values, rel=0.01)


def test_the_same_data_set_counts_more_than_another():
    slow = [Timed(replace(WORK, dataset="web", rows=900.0 + k), 100.0) for k in range(3)]
    assert Forecaster([Timed(WORK, 2.0), *slow]).seconds(replace(WORK, block="d")) < 10.0


def test_a_solver_without_records_has_no_forecast_and_a_race_that_of_its_like():
    race = replace(WORK, solver="smo|chunking")
    forecaster = Forecaster([Timed(race, 5.0)])
    assert forecaster.seconds(replace(WORK, solver="osuna")) is None
    assert forecaster.seconds(replace(WORK, solver="smo|osuna")) == pytest.approx(5.0)
    assert Forecaster([]).seconds(WORK) is None


def test_work_has_the_fits_of_the_profile_and_of_the_full_protocol():
    grid = {"sgd-lssvm": {"C": 3, "gamma": 3}}
    whole_grid = {"sgd-lssvm": {"C": 11, "gamma": 11}}
    run = Run(Path("r"), "sgdlssvm_table2", "sgdlssvm", "t", "medium", "", {}, (), (), (), {},
              counts={"cv": {"folds": 3, "max_samples": 4000, "grids": grid}},
              full_counts={"cv": {"folds": 5, "max_samples": 0, "grids": whole_grid}})  # fmt: skip
    cell = CellResult("k", "cv", "cv", "sgdlssvm", "ijcnn1", "rbf", "sgd-lssvm", None, "ok",
                      metrics={"n_train": 3200, "n_test": 800}, wall_s=7.0)  # fmt: skip
    own, whole = work_of(run, cell), whole_work_of(run, cell)
    assert (own.rows, own.fits) == (4000.0, 3 * 3 * 3)
    assert (whole.rows, whole.fits) == (49990.0, 11 * 11 * 5)
    run = replace(run, cells=(cell, replace(cell, dimensions={"C": 1.0}), replace(cell, key="q",
                  wall_s=0.0)))  # fmt: skip
    assert [one.seconds for one in timed_cells(run)] == [7.0]  # points of a cell share its time


@pytest.mark.parametrize("name", ["draws", "points"])  # the second: in older plans
@pytest.mark.parametrize(("n_train", "fits"), [(2000.0, 2 * 24 * 3), (2499.0, 2 * 8 * 3)])
def test_work_of_a_sample_has_the_fits_of_the_drawn_values(n_train, fits, name):
    counts = {"gammas": 12, "before": 2, name: {"0": 24, "2500": 8},
              "grids": {"nu-svm": {"nu": 986}, "srbo-nu-svm": {"nu": 986}}}  # fmt: skip
    run = Run(Path("r"), "srbo_table5", "srbo", "t", "paper", "", {}, (), (), (), {},
              counts={"sample": counts}, full_counts={"sample": counts})  # fmt: skip
    cell = CellResult("k", "sample", "screening-sample", "srbo", "wine", "rbf",
                      "nu-svm|srbo-nu-svm", None, "ok",
                      metrics={"n_train": n_train, "n_test": 1.0}, wall_s=7.0)  # fmt: skip
    assert work_of(run, cell).fits == whole_work_of(run, cell).fits == fits


@pytest.mark.parametrize("name", ["neighbour_pairs", "runs"])  # the second: in older plans
def test_work_of_neighbours_has_the_fits_of_their_pairs(name):
    counts = {"gammas": 12, name: {"0": 0, "2500": 50}, "grids": {}}
    n_values = {"nu-svm": 986, "c-svm-bounded": 12}
    assert n_fits(n_values, counts, 2499.0) == (986 + 12) * 12
    assert n_fits(n_values, counts, 2500.0) == (100 + 12) * 12


@pytest.mark.parametrize(("rows", "fits"), [(60_000.0, 24 / 12 + 1), (5_000.0, 24), (0.0, 24)])
def test_work_of_a_search_on_a_sample_is_its_share_of_the_rows_and_one_fit(rows, fits):
    assert n_fits({"cpsp": 24}, {"validation": 0.2, "choose_rows": 5_000}, rows) == fits


def test_work_of_a_solver_for_which_another_chooses_is_a_fit_a_fold():
    counts = {"folds": 5, "choose_with": ["libsvm"],
              "grids": {name: {"C": 11, "gamma": 11} for name in ("libsvm", "csvc")}}  # fmt: skip
    run = Run(Path("r"), "t", "sgdlssvm", "t", "paper", "", {}, (), (), (), {},
              counts={"chosen": counts}, full_counts={"chosen": counts})  # fmt: skip
    cell = CellResult("k", "chosen", "chosen-cv", "sgdlssvm", "a9a", "rbf", "libsvm", None, "ok",
                      metrics={"n_train": 26048.0, "n_test": 6513.0}, wall_s=7.0)  # fmt: skip
    assert work_of(run, cell).fits == 5
    assert work_of(run, replace(cell, solver="csvc")).fits == 5 * 121


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3, "less than a minute"), (60, "about 1 minute"), (3000, "about 50 minutes"),
     (5400, "about 1.5 hours"), (3600 * 123, "about 120 hours")],
)  # fmt: skip
def test_a_forecast_is_said_no_more_exactly_than_it_is(seconds, said):
    assert duration_text(seconds) == said


@pytest.fixture(scope="module")
def timed():
    """The recorded times of each kept run of a paper's experiment, by its folder's name."""
    runs = [read_run(folder) for folder in our_runs([ROOT / "results"])]
    return {run.path.name: timed_cells(run) for run in runs if not run.name.startswith("perf_")}


@pytest.mark.slow
def test_forecasts_agree_with_kept_times_left_out(timed, capsys):
    groups, of_solver = {}, {}
    for one in (one for cells in timed.values() for one in cells):
        work = one.work
        groups.setdefault((work.config, work.dataset, work.solver, work.kernel), []).append(one)
        of_solver.setdefault(work.solver, []).append(one)
    sums = []  # forecast and recorded seconds of all cells of a data set and a solver
    for place, own in groups.items():
        out = {id(one) for one in own}
        others = [one for one in of_solver[place[2]] if id(one) not in out]
        forecaster = Forecaster(others)
        found = [(forecaster.seconds(one.work), one.seconds) for one in own]
        told = [(forecast, seconds) for forecast, seconds in found if forecast is not None]
        if sum(seconds for _, seconds in told) > 5.0:
            sums.append(tuple(map(sum, zip(*told, strict=True))))
    factors = [max(told / took, took / told) for told, took in sums]
    told, truth = (sum(column) for column in zip(*sums, strict=True))
    with capsys.disabled():
        middle = statistics.median(factors)
        print(f"\n{len(factors)} data sets of a solver left out: median factor {middle:.2f}, "
              f"sum {told / 3600:.1f} h of {truth / 3600:.1f} h")  # fmt: skip
    assert len(factors) > 200
    assert statistics.median(factors) < 2.5
    assert abs(math.log(told / truth)) < math.log(3.0)


@pytest.mark.slow
def test_three_in_five_whole_runs_are_forecast_within_a_factor_of_three(timed, capsys):
    factors = {}
    for name, own in timed.items():
        if sum(one.seconds for one in own) > 60.0:
            others = (one for other, cells in timed.items() if other != name for one in cells)
            forecaster = Forecaster(others)
            pairs = [(forecaster.seconds(one.work), one.seconds) for one in own]
            told, took = zip(*((told, took) for told, took in pairs if told), strict=True)
            factors[name] = sum(told) / sum(took)
    near = [name for name, factor in factors.items() if 1 / 3 < factor < 3]
    with capsys.disabled():
        print(f"\n{len(near)} of {len(factors)} runs left out are within a factor of three")
    assert len(near) > 0.6 * len(factors)
    # Growth in the number of basis vectors.
    assert all(1 / 4 < factors[name] < 4 for name in ("cpsp_fig1", "cpsp_fig2", "cpsp_fig3"))
