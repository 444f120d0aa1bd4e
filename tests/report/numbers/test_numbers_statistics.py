"""Exponents, crossings and tests against answers known on paper, in print or from SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from svmbench.report.numbers.statistics import (
    average_ranks,
    crossing,
    fit_power_law,
    mean_sd,
    signed_rank,
    win_draw_loss,
)
from svmbench.report.reading.published import numbers

PRINTED = [row for row in numbers("smo") if row.metric == "scaling_exponent"]


def test_mean_and_sample_deviation():
    assert mean_sd([1.0, 2.0, 6.0]) == (3.0, pytest.approx(math.sqrt(7)))
    assert mean_sd([5.0]) == (5.0, None)
    huge, spread = mean_sd([1e308, 1.5e308, 0.5e308])
    assert huge == pytest.approx(1e308)
    assert spread == pytest.approx(0.5e308)
    assert mean_sd([0.1, 0.2, 0.3]) == mean_sd([0.3, 0.1, 0.2])
    with pytest.raises(ValueError, match="no values"):
        mean_sd([])


def test_an_exact_power_law_is_recovered():
    x = [10.0, 20.0, 50.0, 400.0]
    fit = fit_power_law(x, [3e-6 * value**1.7 for value in x])
    assert fit.exponent == pytest.approx(1.7, abs=1e-12)
    assert fit.factor == pytest.approx(3e-6)
    assert fit.low == pytest.approx(1.7, abs=1e-6)
    assert fit.high == pytest.approx(1.7, abs=1e-6)
    assert fit.at(100.0) == pytest.approx(3e-6 * 100**1.7)


def test_the_interval_is_students():
    # log-log points (0,0), (1,1), (2,1): slope 1/2, residuals -1/6, 1/3, -1/6, s = sqrt(1/6),
    # standard error s / sqrt(2), t(0.975; 1) = 12.7062.
    fit = fit_power_law([1.0, math.e, math.e**2], [1.0, math.e, math.e])
    half = 12.706204736 * math.sqrt(1 / 6) / math.sqrt(2)
    assert fit.exponent == pytest.approx(0.5)
    assert (fit.low, fit.high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))


def test_too_few_points_are_said_to_be():
    fit = fit_power_law([1.0, 10.0], [2.0, 200.0])
    assert (fit.exponent, fit.low, fit.high) == (pytest.approx(2.0), None, None)
    assert "no interval: 2 points" in str(fit)
    assert fit_power_law([5.0, 5.0], [1.0, 2.0]) is None
    assert fit_power_law([], []) is None
    with pytest.raises(ValueError, match="positive"):
        fit_power_law([1.0, 2.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="length"):
        fit_power_law([1.0, 2.0], [1.0])


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: f"{row.table}-{row.solver}")
def test_platts_exponents_come_out_of_his_times(row):
    points = [
        (float(r.size), r.value)
        for r in numbers("smo")
        if (r.table, r.solver, r.metric) == (row.table, row.solver, "train_time_s")
    ]
    fit = fit_power_law(*zip(*points, strict=True))
    assert fit.exponent == pytest.approx(row.value, abs=0.15)
    assert fit.low < fit.exponent < fit.high


def test_there_are_fourteen_printed_exponents():
    assert len(PRINTED) == 14


def test_crossing_by_interpolation():
    # x² and 900 x cross at 900; the second curve is sampled elsewhere.
    found = crossing([100, 1000, 2000], [1e4, 1e6, 4e6], [50, 700, 3000], [45e3, 63e4, 27e5])
    assert found.at == (pytest.approx(900.0),)
    assert found.upward == (True,)
    assert found.heights == (pytest.approx(810_000.0),)
    assert (found.start, found.end) == (pytest.approx(100), pytest.approx(2000))
    assert found.sentence("a", "b", "features") == ("a rises above b at 900 (features 100 to 2000)")


def test_crossing_back_and_forth_and_touching():
    x = [1, 2, 4, 8, 16]
    found = crossing(x, [1, 4, 4, 1, 1], x, [2, 2, 2, 2, 2])
    assert found.upward == (True, False)
    assert found.at == (pytest.approx(math.sqrt(2)), pytest.approx(4 * math.sqrt(2)))
    assert crossing(x, [1, 2, 1, 1, 1], x, [2] * 5).at == ()
    assert crossing(x, [1, 2, 4, 4, 4], x, [2] * 5).at == (pytest.approx(2),)


def test_curves_that_are_equal_for_a_while_cross_in_the_middle_of_that():
    x = [1, 2, 4, 8, 16, 32, 64]
    # Equal at 4, 8 and 16: between the first and the last of these, not beside one of them.
    found = crossing(x, [1, 1, 2, 2, 2, 4, 4], x, [2] * 7)
    assert found.at == (pytest.approx(8),)
    found = crossing(x, [1, 1, 1, 2, 2, 4, 4], x, [2] * 7)
    assert found.at == (pytest.approx(math.sqrt(8 * 16)),)


def test_no_crossing_is_an_answer():
    x = [50, 500]
    below = crossing(x, [1, 2], x, [3, 4]).sentence("a", "b", "features")
    assert below == "no crossing in range (a stays below b for features 50 to 500)"
    assert "stays above" in crossing(x, [5, 6], x, [3, 4]).sentence("a", "b", "features")
    assert "no common range" in crossing(x, [1, 2], [600, 700], [1, 2]).sentence("a", "b", "n")
    assert "are equal" in crossing(x, [1, 2], x, [1, 2]).sentence("a", "b", "n")


def test_signed_rank_by_hand():
    # Differences 1, -2, 3, 4, 0: ranks 1, 2, 3, 4; W+ = 8, W- = 2; exact two-sided p = 0.375.
    found = signed_rank([2, 1, 5, 8, 3], [1, 3, 2, 4, 3])
    assert (found.n, found.w_plus, found.w_minus) == (4, 8.0, 2.0)
    assert found.p == pytest.approx(0.375)
    assert found.p == pytest.approx(stats.wilcoxon([1, -2, 3, 4]).pvalue)
    assert signed_rank([1, 2], [1, 2]).p == 1.0
    with pytest.raises(ValueError, match="length"):
        signed_rank([1], [1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5, 13, 14, 50, 51, 80])
@pytest.mark.parametrize("tied", [False, True])
def test_signed_ranks_are_scipys(n, tied):
    rng = np.random.default_rng(n)
    differences = rng.integers(1, 9, n) * rng.choice([-1, 1], n) if tied else rng.normal(0.2, 1, n)
    found = signed_rank(differences.tolist(), [0.0] * n)
    # Before SciPy 1.14, ties have the normal approximation unless this is asked for.
    method = stats.PermutationMethod() if tied and 1 < n <= 13 else "auto"
    both = stats.wilcoxon(differences, method=method)
    assert found.p == pytest.approx(both.pvalue, rel=1e-12)
    expected = stats.wilcoxon(differences, alternative="greater", method=method)
    assert found.w_plus == expected.statistic
    assert found.p_greater == pytest.approx(expected.pvalue, rel=1e-12)


def test_ranks_are_scipys():
    values = [3.0, 1.0, 3.0, 2.0, 3.0, -1.0, 2.0]
    assert average_ranks(values).tolist() == stats.rankdata(values).tolist()


def test_a_power_law_is_scipys_line():
    x, y = [1.0, 3.0, 10.0, 25.0, 100.0], [2.0, 5.0, 31.0, 60.0, 400.0]
    fit, line = fit_power_law(x, y), stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, 3) * line.stderr
    assert fit.exponent == pytest.approx(line.slope, rel=1e-12)
    assert fit.factor == pytest.approx(math.exp(line.intercept), rel=1e-12)
    assert (fit.low, fit.high) == pytest.approx((line.slope - half, line.slope + half), rel=1e-12)


#: Table XII of the SRBO paper from its own tables: rank sum, Z and p as printed. Its W+ is the sum
#: of the ranks where screening is slower; p is left out where the print does not follow from it.
TABLE_12 = [
    ("table4", "nu-svm", 20, None, 0.0402),
    ("table5", "nu-svm", 39, -3.46, None),
    ("table6", "oc-svm", 47, -3.26, 0.0003),
    ("table7", "oc-svm", 38, -3.49, None),
    ("table10", "nu-svm-quadprog", 0, None, 0.0020),
    ("table11", "nu-svm-quadprog", 3, None, 0.0098),
    ("table11", "nu-svm-dcdm", 1, None, 0.0039),
]


@pytest.mark.parametrize(("table", "solver", "ranks", "z", "p"), TABLE_12)
def test_signed_rank_gives_a_published_table(table, solver, ranks, z, p):
    times = {
        (row.dataset, row.solver): row.value
        for row in numbers("srbo")
        if row.table == table and row.metric == "train_time_s"
    }
    sets = sorted({dataset for dataset, _ in times})
    plain = [times[dataset, solver] for dataset in sets]
    screened = [times[dataset, f"srbo-{solver}"] for dataset in sets]
    found = signed_rank(plain, screened)
    assert found.n == len(sets)
    assert found.w_minus == ranks
    if z is not None:
        assert -found.z == pytest.approx(z, abs=0.011)
    if p is not None:
        assert found.p_greater == pytest.approx(p, abs=6e-5)
    assert sum(win_draw_loss(screened, plain)) == len(sets)


def test_win_draw_loss():
    assert win_draw_loss([1.0, 2.0, 3.0], [2.0, 2.0, 1.0]) == (1, 1, 1)
    assert win_draw_loss([90.0, 80.0], [80.0, 80.4], better="higher") == (1, 0, 1)
    assert win_draw_loss([90.0, 80.0], [80.0, 80.4], better="higher", near=0.01) == (1, 1, 0)
    # Near is relative to the larger of the two, on either side.
    assert win_draw_loss([10.0, 11.0], [11.0, 10.0], near=0.095) == (0, 2, 0)
    assert win_draw_loss([10.0, 11.0], [11.0, 10.0], near=0.09) == (1, 0, 1)
    with pytest.raises(ValueError, match="differ in length"):
        win_draw_loss([1.0], [])
