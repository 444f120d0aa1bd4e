"""Statistics against published examples, and against what they must reduce to."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

from svmbench.report.numbers.comparisons import (
    average_difference,
    corrected_t_test,
    friedman,
    holm,
    performance_profile,
    rank_correlation,
    share_interval,
)
from svmbench.report.numbers.statistics import Interval, paired_difference, welch_difference

#: Hollander and Wolfe (1973), page 140: three methods of rounding first base, 22 players, seconds;
#: in the documentation of R's friedman.test.
ROUNDING = [
    (5.40, 5.50, 5.55), (5.85, 5.70, 5.75), (5.20, 5.60, 5.50), (5.55, 5.50, 5.40),
    (5.90, 5.85, 5.70), (5.45, 5.55, 5.60), (5.40, 5.40, 5.35), (5.45, 5.50, 5.35),
    (5.25, 5.15, 5.00), (5.85, 5.80, 5.70), (5.25, 5.20, 5.10), (5.65, 5.55, 5.45),
    (5.60, 5.35, 5.45), (5.05, 5.00, 4.95), (5.50, 5.50, 5.40), (5.45, 5.55, 5.50),
    (5.55, 5.55, 5.35), (5.45, 5.50, 5.55), (5.50, 5.45, 5.25), (5.65, 5.60, 5.40),
    (5.70, 5.65, 5.55), (6.30, 6.30, 6.25),
]  # fmt: skip

#: Demšar (2006), Table 6: ranks of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf by AUC on 14 data sets.
DEMSAR = [
    (4, 3, 2, 1), (1, 2, 3, 4), (4, 1, 2, 3), (4, 1, 3, 2), (4, 2, 3, 1), (1, 2.5, 4, 2.5),
    (3, 2, 4, 1), (2.5, 2.5, 4, 1), (4, 3, 2, 1), (2.5, 2.5, 2.5, 2.5), (4, 2.5, 1, 2.5),
    (3, 2, 4, 1), (4, 1, 2, 3), (3, 1, 4, 2),
]  # fmt: skip


def test_friedman_is_that_of_rounding_first_base():
    found = friedman(ROUNDING, better="lower")
    assert found.chi_square == pytest.approx(11.143, abs=5e-4)
    assert found.p == pytest.approx(0.003805, abs=5e-7)
    assert found.n == 22


def test_average_ranks_and_the_critical_difference_are_demsars():
    found = friedman(DEMSAR, better="lower")
    assert found.ranks == pytest.approx((3.143, 2.000, 2.893, 1.964), abs=5e-4)
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)
    turned = friedman([tuple(-rank for rank in row) for row in DEMSAR], better="higher")
    assert turned.ranks == found.ranks


def test_friedman_of_what_is_alike_finds_nothing():
    found = friedman([(1.0, 1.0, 1.0)] * 5)
    assert (found.chi_square, found.p, found.ranks) == (0.0, 1.0, (2.0, 2.0, 2.0))


@pytest.mark.parametrize("results", [[], [(1, 2, 3)], [(1, 2), (2, 1)], [(1, 2, 3), (1, 2)]])
def test_friedman_refuses_what_it_cannot_compare(results):
    with pytest.raises(ValueError, match=r"data set|three or more"):
        friedman(results)


def test_holm_rejects_what_demsars_example_rejects():
    """Demšar (2006), section 3.2.2: p-values .016, .019, .607 against .017, .025, .05."""
    corrected = holm([0.019, 0.607, 0.016])
    assert corrected == pytest.approx([0.048, 0.607, 0.048])
    assert [p < 0.05 for p in corrected] == [True, False, True]
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_corrected_test_is_the_plain_one_where_folds_share_nothing():
    differences = [0.3, -0.1, 0.4, 0.25, 0.1]
    t, p = corrected_t_test(differences, 0.0)
    plain = stats.ttest_1samp(differences, 0.0)
    assert (t, p) == pytest.approx((plain.statistic, plain.pvalue))
    interval = paired_difference(differences)
    low, high = plain.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_the_correction_is_nadeau_and_bengios():
    """Variance (1/r + n2/n1) s²: with ten folds of a tenth, t shrinks by sqrt(0.1/(0.1 + 1/9))."""
    differences = [0.3, -0.1, 0.4, 0.25, 0.1, 0.2, 0.0, 0.15, 0.3, 0.1]
    plain, _ = corrected_t_test(differences, 0.0)
    t, p = corrected_t_test(differences, 1.0 / 9.0)
    assert t == pytest.approx(plain * math.sqrt(0.1 / (0.1 + 1.0 / 9.0)))
    assert p == pytest.approx(2.0 * stats.t.sf(t, 9))
    interval = paired_difference(differences, test_to_train=1.0 / 9.0)
    half = stats.t.ppf(0.975, 9) * np.std(differences, ddof=1) * math.sqrt(0.1 + 1.0 / 9.0)
    assert interval.high - interval.value == pytest.approx(half)


@pytest.mark.slow
def test_the_corrected_test_gives_the_example_of_scikit_learn():
    """Its page "Statistical comparison of models using grid search" prints t and one-sided p."""
    X, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_val_score(SVC(kernel=kernel, random_state=0), X, y, scoring="roc_auc", cv=folds)
        for kernel in ("rbf", "linear")
    )
    t, p = corrected_t_test(list(rbf - linear), 10 / 90)
    assert (round(t, 3), round(p / 2.0, 3)) == (0.750, 0.227)


def test_one_difference_has_no_interval():
    assert paired_difference([0.5]) == Interval(0.5)
    assert average_difference([[1.0, 2.0], [0.5]], [0.25, 0.25]) == Interval(1.0)
    with pytest.raises(ValueError, match="at least two"):
        corrected_t_test([0.5], 0.25)
    assert corrected_t_test([0.5, 0.5], 0.25) == (math.inf, 0.0)
    assert corrected_t_test([0.0, 0.0], 0.25) == (0.0, 1.0)


def test_the_average_over_one_set_is_the_paired_difference():
    differences = [0.3, -0.1, 0.4, 0.25, 0.1]
    one = average_difference([differences], [0.25])
    assert (one.low, one.high) == pytest.approx(
        (lambda i: (i.low, i.high))(paired_difference(differences, test_to_train=0.25))
    )
    # Two alike: half the variance, twice the degrees of freedom.
    two = average_difference([differences, differences], [0.25, 0.25])
    ratio = stats.t.ppf(0.975, 8) / stats.t.ppf(0.975, 4) / math.sqrt(2.0)
    assert two.high - two.value == pytest.approx(ratio * (one.high - one.value))


def test_welch_is_scipys():
    first, second = [1.0, 1.2, 0.9, 1.4], [2.0, 2.5, 1.7, 3.0, 2.2]
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    ours = welch_difference(
        *((float(np.mean(x)), float(np.std(x, ddof=1)), len(x)) for x in (first, second))
    )
    assert (ours.low, ours.high) == pytest.approx((found.low, found.high))
    assert welch_difference((1.0, 0.0, 3), (0.5, 0.0, 3)) == Interval(0.5, 0.5, 0.5)


def test_rank_correlation_of_few_is_exact():
    """All 24 orders of four: two are as far from none as a perfect one."""
    found = rank_correlation([1, 2, 3, 4], [9, 7, 5, 1])
    assert (found.rho, found.p) == pytest.approx((-1.0, 2 / 24))
    found = rank_correlation([1, 2, 3, 4], [1, 3, 2, 4])
    assert found.rho == pytest.approx(0.8)
    assert found.p == pytest.approx(1 / 3)  # the known table: 0.167 to one side
    many = list(range(20))
    found = rank_correlation(many, [(7 * k) % 20 for k in many])
    theirs = stats.spearmanr(many, [(7 * k) % 20 for k in many])
    assert (found.rho, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert rank_correlation([1, 2], [3, 3]).p == 1.0


def test_profiles_count_problems_within_a_factor_of_the_best():
    """Three problems: a is best on two and fails on the third; b takes twice as long on one."""
    profile = performance_profile({"a": [1.0, 2.0, None], "b": [2.0, 1.0, 5.0]})
    assert profile == {"a": [(1.0, 1 / 3), (2.0, 2 / 3)], "b": [(1.0, 2 / 3), (2.0, 1.0)]}
    assert performance_profile({"a": [None], "b": [None]}) == {"a": [], "b": []}
    with pytest.raises(ValueError, match="positive"):
        performance_profile({"a": [0.0]})
    with pytest.raises(ValueError, match="every problem"):
        performance_profile({"a": [1.0], "b": [1.0, 2.0]})


def test_an_interval_is_written_with_its_sign():
    assert Interval(-1.5, -2.0, -1.0).spelt() == "−1.50 [−2.00, −1.00]"
    assert Interval(0.25).spelt(1) == "+0.2"


def test_the_interval_of_a_share_is_wilsons():
    # Solved by hand: |k/n - p| = z sqrt(p (1 - p) / n).
    for end in share_interval(5 / 9, 9):
        assert abs(5 / 9 - end) == pytest.approx(1.959964 * (end * (1 - end) / 9) ** 0.5, rel=1e-5)
    low, high = share_interval(0.0, 9)
    assert low == 0.0
    assert 0.2 < high < 0.4


@pytest.mark.parametrize(("count", "n"), [(0, 9), (5, 9), (9, 9), (1, 400)])
def test_the_interval_of_a_share_is_scipys(count, n):
    low, high = share_interval(count / n, n)
    expected = stats.binomtest(count, n).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-12, abs=1e-15)
