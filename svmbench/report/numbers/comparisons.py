"""Compare algorithms over folds and data sets: intervals, tests and profiles.

The folds of one data set share training rows, so that a plain t-test underestimates the variance:
:func:`corrected_t_test` uses Nadeau and Bengio's correction, as
`statistics.paired_difference` does. Ranks are compared over data sets (Demšar
2006): by Wilcoxon's signed ranks for two algorithms (`statistics.signed_rank`),
with Holm's correction for several tests, and by Friedman's test with a critical difference for all
algorithms. Dolan and Moré's profiles show times over problems. SciPy provides the distributions
(`scipy.stats` in Friedman's test alone, since its import takes long).

References
----------
C. Nadeau, Y. Bengio: Inference for the generalization error. Machine Learning 52, 2003.
J. Demšar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
S. Holm: A simple sequentially rejective multiple test procedure. Scand. J. Statistics 6, 1979.
E. B. Wilson: Probable inference, the law of succession, and statistical inference. JASA 22, 1927.
E. Dolan, J. Moré: Benchmarking optimization software with performance profiles. Math. Prog. 91,
2002.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from svmbench.report.numbers.statistics import Interval, average_ranks, mean_sd, student_quantile


def average_difference(
    differences: Sequence[Sequence[float]],
    test_to_train: Sequence[float],
    *,
    level: float = 0.95,
) -> Interval:
    """Return paired differences averaged over data sets, with a confidence interval.

    Each data set has the same weight. The variance comes from the means of the data sets, each
    corrected as in `paired_difference`, with Welch and Satterthwaite's degrees of freedom.
    The interval covers the uncertainty of the folds for these data sets.

    Parameters
    ----------
    differences : sequence of sequences of float
        One sequence for each data set, with a difference for each fold; no interval if a data set
        has a single difference.
    test_to_train : sequence of float
        Test rows over training rows, for each data set.
    level : float, default=0.95

    Raises
    ------
    ValueError
        Without data sets, or if the two differ in length.
    """
    parts = [mean_sd(values) for values in differences]
    if not parts or len(parts) != len(test_to_train):
        raise ValueError("every data set needs its differences and its share of test rows")
    mean = math.fsum(value for value, _ in parts) / len(parts)
    if any(sd is None for _, sd in parts):
        return Interval(mean)
    counts = [len(values) for values in differences]
    variances = [
        (sd or 0.0) ** 2 * (1.0 / n + share) / len(parts) ** 2
        for (_, sd), n, share in zip(parts, counts, test_to_train, strict=True)
    ]
    total = math.fsum(variances)
    if total == 0.0:
        return Interval(mean, mean, mean)
    freedom = total**2 / math.fsum(v**2 / (n - 1) for v, n in zip(variances, counts, strict=True))
    half = student_quantile((1.0 + level) / 2.0, freedom) * math.sqrt(total)
    return Interval(mean, mean - half, mean + half)


#: Up to this many pairs, the p-value comes from all permutations.
MAX_EXACT_RANK_PAIRS = 7


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation with its two-sided p-value."""

    rho: float
    p: float


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> RankCorrelation:
    """Return Spearman's rank correlation; 0 with p = 1 if all values of one side are equal.

    For up to seven pairs the p-value is exact, from all permutations.

    Raises
    ------
    ValueError
        For fewer than two values or unequal lengths.
    """
    if len(x) != len(y) or len(x) < 2:
        raise ValueError("a correlation needs two or more pairs")
    if len(set(x)) == 1 or len(set(y)) == 1:
        return RankCorrelation(0.0, 1.0)
    ranks = [average_ranks(side) - (len(x) + 1) / 2.0 for side in (x, y)]
    size = math.sqrt(float(ranks[0] @ ranks[0]) * float(ranks[1] @ ranks[1]))
    rho = min(1.0, max(-1.0, float(ranks[0] @ ranks[1]) / size))
    if len(x) <= MAX_EXACT_RANK_PAIRS:
        orders = np.array(list(permutations(ranks[1])))
        p = float(np.mean(np.abs(orders @ ranks[0]) / size >= abs(rho) - 1e-12))
    elif abs(rho) == 1.0:
        p = 0.0
    else:
        freedom = len(x) - 2
        p = 2.0 * _student_tail(abs(rho) * math.sqrt(freedom / (1.0 - rho**2)), freedom)
    return RankCorrelation(rho, p)


def _student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t exceeds `t`."""
    from scipy.special import stdtr

    return float(stdtr(freedom, -t))


def corrected_t_test(differences: Sequence[float], test_to_train: float) -> tuple[float, float]:
    """Return t and the two-sided p-value of the corrected resampled t-test.

    Parameters
    ----------
    differences : sequence of float
        One difference for each fold or resample; at least two.
    test_to_train : float
        Test rows over training rows.

    Raises
    ------
    ValueError
        With fewer than two differences.
    """
    if len(differences) < 2:
        raise ValueError("a t-test needs at least two differences")
    mean, sd = mean_sd(differences)
    n = len(differences)
    error = float(sd or 0.0) * math.sqrt(1.0 / n + test_to_train)
    if error == 0.0:
        return (0.0, 1.0) if mean == 0.0 else (math.copysign(math.inf, mean), 0.0)
    t = mean / error
    return t, 2.0 * _student_tail(abs(t), n - 1)


def share_interval(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, which is valid near 0 and 1 and for small n.

    Parameters
    ----------
    share : float
        From 0 to 1.
    n : float
        Number of trials, at least 1; need not be whole.
    """
    from scipy.special import ndtri

    z = float(ndtri(0.975))
    middle = (share + z**2 / (2 * n)) / (1.0 + z**2 / n)
    half = z * math.sqrt(share * (1.0 - share) / n + z**2 / (4 * n**2)) / (1.0 + z**2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values with Holm's step-down correction, in their order."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of several algorithms over data sets.

    Attributes
    ----------
    ranks : tuple of float
        Average rank of each algorithm, 1 for the best.
    chi_square, p : float
        Test of the hypothesis that all algorithms are equal, corrected for ties.
    critical_difference : float
        Nemenyi's critical difference of two average ranks.
    n : int
        Number of data sets.
    """

    ranks: tuple[float, ...]
    chi_square: float
    p: float
    critical_difference: float
    n: int


def friedman(
    results: Sequence[Sequence[float]], *, better: str = "higher", level: float = 0.95
) -> Friedman:
    """Compare three or more algorithms over data sets by their ranks.

    Parameters
    ----------
    results : sequence of sequences of float
        One row for each data set, one column for each algorithm.
    better : {"higher", "lower"}
    level : float, default=0.95

    Raises
    ------
    ValueError
        For fewer than three algorithms or two data sets, or rows of different lengths.
    """
    if len({len(row) for row in results}) > 1:
        raise ValueError("every data set needs a result of every algorithm")
    table = np.asarray(results, dtype=float)
    if table.ndim != 2 or table.shape[1] < 3 or table.shape[0] < 2:
        raise ValueError("Friedman's test compares three or more algorithms over two or more sets")
    from scipy import stats

    n, k = table.shape
    ranks = stats.rankdata(-table if better == "higher" else table, axis=1).mean(axis=0)
    if (table == table[:, :1]).all():
        chi_square, p = 0.0, 1.0
    else:
        result = stats.friedmanchisquare(*table.T)
        chi_square, p = float(result.statistic), float(result.pvalue)
    q = float(stats.studentized_range.ppf(level, k, np.inf)) / math.sqrt(2.0)
    critical_difference = q * math.sqrt(k * (k + 1) / (6.0 * n))
    return Friedman(
        tuple(float(rank) for rank in ranks), chi_square, p, critical_difference, int(n)
    )


def performance_profile(
    costs: Mapping[str, Sequence[float | None]],
) -> dict[str, list[tuple[float, float]]]:
    """Return Dolan and Moré's profile of each solver.

    Parameters
    ----------
    costs : mapping of str to sequence of float or None
        Positive cost of each solver on each problem; None if the solver failed.

    Returns
    -------
    dict of str to list of (float, float)
        The steps of each solver, ascending: a factor, and the share of problems that the solver
        solved within this factor of the best cost. Empty for a solver that solved no problem.

    Raises
    ------
    ValueError
        If solvers have different numbers of problems, or a cost is not positive.
    """
    if len({len(of_solver) for of_solver in costs.values()}) > 1:
        raise ValueError("every solver needs a cost, or None, for every problem")
    if any(
        cost is not None and not cost > 0.0 for of_solver in costs.values() for cost in of_solver
    ):
        raise ValueError("costs must be positive")
    problems = list(zip(*costs.values(), strict=True))
    best = [min((cost for cost in row if cost is not None), default=None) for row in problems]
    profiles: dict[str, list[tuple[float, float]]] = {}
    for name, of_solver in costs.items():
        ratios = sorted(
            cost / lowest
            for cost, lowest in zip(of_solver, best, strict=True)
            if cost is not None and lowest is not None
        )
        steps = {ratio: (rank + 1) / len(problems) for rank, ratio in enumerate(ratios)}
        profiles[name] = list(steps.items())
    return profiles
