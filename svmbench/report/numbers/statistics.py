"""Statistics for the papers' statements: intervals of differences, exponents, crossings, tests.

The line, the ranks and the signed-rank test are computed here and not by `scipy.stats`, because
importing it takes 0.7 s more CPU time than importing `scipy.special`, a quarter of the time of
`svmbench claims`. `tests/report/numbers/test_numbers_statistics.py` compares them with SciPy's.

C. Nadeau, Y. Bengio: Inference for the generalization error. Machine Learning 52, 2003.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

#: Sums of squares of larger values would overflow.
_SQUARES_BELOW = 1e150
#: Largest numbers of pairs whose signed-rank test is exact, without tied differences and with them
#: (as SciPy has them).
_MAX_EXACT_SIGNED_PAIRS, _MAX_EXACT_TIED_PAIRS = 50, 13


def student_quantile(probability: float, freedom: float) -> float:
    """Return a quantile of Student's t distribution with `freedom` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def average_ranks(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the ranks of values, from 1 for the smallest; equal values share their mean rank."""
    _, positions, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2.0)[positions]


def mean_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the sample standard deviation (n − 1) of `values`.

    Sums are exact (`math.fsum`), so that the order of the folds doesn't matter. The standard
    deviation of a single value is None.

    Raises
    ------
    ValueError
        If there are no values.
    """
    if not values:
        raise ValueError("the mean of no values is undefined")
    largest = max(abs(value) for value in values)
    if largest > _SQUARES_BELOW and len(values) > 1:
        mean, sd = mean_sd([value / largest for value in values])
        return mean * largest, None if sd is None else sd * largest
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1))


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval; `low` and `high` are None without an interval.

    `single` is True if the interval rests on the margin of times that were measured once.
    """

    value: float
    low: float | None = None
    high: float | None = None
    single: bool = False

    def spelt(self, places: int = 2) -> str:
        """Return the value with its interval in brackets."""
        text = f"{self.value:+.{places}f}"
        if self.low is not None and self.high is not None:
            text += f" [{self.low:+.{places}f}, {self.high:+.{places}f}]"
        return text.replace("-", "−")


def paired_difference(
    differences: Sequence[float], *, test_to_train: float = 0.0, level: float = 0.95
) -> Interval:
    """Return the mean of paired differences over folds, with a confidence interval.

    Parameters
    ----------
    differences : sequence of float
        One difference for each fold.
    test_to_train : float, default=0.0
        Test rows over training rows: with r folds the variance of the mean is
        ``(1/r + test_to_train)`` times that of a difference (Nadeau and Bengio 2003, section 3).
        0 for independent folds, which gives the plain t-interval.
    level : float, default=0.95

    Raises
    ------
    ValueError
        Without differences, or if `test_to_train` is negative.
    """
    if test_to_train < 0.0:
        raise ValueError("the share of test rows must not be negative")
    mean, sd = mean_sd(differences)
    if sd is None:
        return Interval(mean)
    n = len(differences)
    half = student_quantile((1.0 + level) / 2.0, n - 1) * sd * math.sqrt(1.0 / n + test_to_train)
    return Interval(mean, mean - half, mean + half)


def welch_difference(
    first: tuple[float, float, int], second: tuple[float, float, int], *, level: float = 0.95
) -> Interval:
    """Return the difference of two means with Welch's interval.

    Parameters
    ----------
    first, second : tuple of (float, float, int)
        Mean, sample standard deviation and number of values, at least two.
    level : float, default=0.95
    """
    value = first[0] - second[0]
    variances = [sd**2 / n for _, sd, n in (first, second)]
    total = math.fsum(variances)
    if total == 0.0:
        return Interval(value, value, value)
    freedom = total**2 / math.fsum(
        v**2 / (n - 1) for v, (_, _, n) in zip(variances, (first, second), strict=True)
    )
    half = student_quantile((1.0 + level) / 2.0, freedom) * math.sqrt(total)
    return Interval(value, value - half, value + half)


@dataclass(frozen=True)
class PowerLaw:
    """The fit ``y = factor * x**exponent``.

    Attributes
    ----------
    exponent : float
        Slope of the least-squares line through (log x, log y).
    low, high : float or None
        95 % confidence interval of the exponent (Student's t with n − 2 degrees of freedom); None
        with fewer than three points, which leave no degree of freedom.
    factor : float
        The value of the line at x = 1.
    n_points : int
        Number of points fitted.
    """

    exponent: float
    low: float | None
    high: float | None
    factor: float
    n_points: int

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.exponent:.2f} (no interval: {self.n_points} points)"
        return f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}]"

    def at(self, x: float) -> float:
        """Return the fitted value at `x`."""
        return self.factor * x**self.exponent


def fit_power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw | None:
    """Fit an exponent by least squares in log–log, as Platt (1998) does for training times.

    Parameters
    ----------
    x, y : sequences of float
        Positive and finite, of equal length.

    Returns
    -------
    PowerLaw or None
        None with fewer than two distinct x, where there is no line to fit.

    Raises
    ------
    ValueError
        On values that have no logarithm, or unequal lengths.
    """
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if xs.shape != ys.shape:
        raise ValueError(f"x and y differ in length: {xs.size} and {ys.size}")
    if not (np.isfinite(xs) & np.isfinite(ys) & (xs > 0) & (ys > 0)).all():
        raise ValueError("a power law can be fitted to positive finite values only")
    if np.unique(xs).size < 2:
        return None
    log_x, log_y = np.log(xs), np.log(ys)
    from_mean = log_x - log_x.mean()
    squares = float(from_mean @ from_mean)
    slope = float(from_mean @ (log_y - log_y.mean())) / squares
    factor = math.exp(float(log_y.mean() - slope * log_x.mean()))
    low = high = None
    if xs.size >= 3:
        residuals = log_y - log_y.mean() - slope * from_mean
        error = math.sqrt(float(residuals @ residuals) / (xs.size - 2) / squares)
        half = student_quantile(0.975, xs.size - 2) * error
        low, high = slope - half, slope + half
    return PowerLaw(slope, low, high, factor, int(xs.size))


@dataclass(frozen=True)
class Crossing:
    """The crossings of two curves.

    Attributes
    ----------
    at : tuple of float
        Every x at which the first curve changes from below the second to above it or back.
    upward : tuple of bool
        True for each crossing at which the first curve rises above the second.
    start, end : float or None
        The common range of x of both curves; None if there is none.
    first_starts_below : bool or None
        True if the first curve is lower where the curves first differ; None if they never differ.
    heights : tuple of float
        The value of both curves at each x of `at`.
    """

    at: tuple[float, ...]
    upward: tuple[bool, ...]
    start: float | None
    end: float | None
    first_starts_below: bool | None
    heights: tuple[float, ...] = ()

    def sentence(self, first: str, second: str, quantity: str) -> str:
        """Describe the crossings of `first` and `second` along the axis `quantity`."""
        if self.start is None or self.end is None:
            return f"{first} and {second} have no common range of {quantity}"
        within = f"{quantity} {self.start:.4g} to {self.end:.4g}"
        if self.first_starts_below is None:
            return f"{first} and {second} are equal for {within}"
        if not self.at:
            side = "below" if self.first_starts_below else "above"
            return f"no crossing in range ({first} stays {side} {second} for {within})"
        steps = ", ".join(
            f"{'rises above' if up else 'falls below'} {second} at {x:.4g}"
            for x, up in zip(self.at, self.upward, strict=True)
        )
        return f"{first} {steps} ({within})"


def crossing(
    x_first: Sequence[float],
    y_first: Sequence[float],
    x_second: Sequence[float],
    y_second: Sequence[float],
) -> Crossing:
    """Find the crossings of two measured curves, by interpolation in log–log.

    Parameters
    ----------
    x_first, y_first, x_second, y_second : sequences of float
        The positive points of both curves in any order. Their x may differ.

    Returns
    -------
    Crossing
        May be without crossings.

    Raises
    ------
    ValueError
        On values that have no logarithm.
    """
    curves = []
    for x, y in ((x_first, y_first), (x_second, y_second)):
        xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if not (np.isfinite(xs) & np.isfinite(ys) & (xs > 0) & (ys > 0)).all():
            raise ValueError("curves are compared in log–log: all values must be positive")
        order = np.argsort(xs, kind="stable")
        curves.append((np.log(xs[order]), np.log(ys[order])))
    (x1, y1), (x2, y2) = curves
    if not x1.size or not x2.size or max(x1[0], x2[0]) > min(x1[-1], x2[-1]):
        return Crossing((), (), None, None, None)
    start, end = max(x1[0], x2[0]), min(x1[-1], x2[-1])
    grid = np.unique(np.concatenate([x1, x2, [start, end]]))
    grid = grid[(grid >= start) & (grid <= end)]
    difference = np.interp(grid, x1, y1) - np.interp(grid, x2, y2)
    # Skip points of equality: a touch without a change of side is not a crossing.
    sided = np.flatnonzero(difference)
    at, upward = [], []
    for left, right in pairwise(sided):
        if (difference[left] < 0) == (difference[right] < 0):
            continue
        if right - left > 1:
            where = (grid[left + 1] + grid[right - 1]) / 2
        else:
            share = difference[left] / (difference[left] - difference[right])
            where = grid[left] + share * (grid[right] - grid[left])
        at.append(math.exp(where))
        upward.append(bool(difference[right] > 0))
    below = bool(difference[sided[0]] < 0) if sided.size else None
    heights = tuple(math.exp(float(np.interp(math.log(where), x1, y1))) for where in at)
    return Crossing(tuple(at), tuple(upward), math.exp(start), math.exp(end), below, heights)


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired samples, two-sided.

    Attributes
    ----------
    n : int
        Number of pairs that differ; equal pairs are left out.
    w_plus, w_minus : float
        Rank sums of the positive and the negative differences.
    p : float
        Two-sided p-value; 1 when no pair differs.
    p_greater : float
        p-value of the alternative that the first is greater; 1 if no pair differs.
    z : float or None
        The normal approximation of `w_plus`, without a correction for ties; None when no pair
        differs.
    """

    n: int
    w_plus: float
    w_minus: float
    p: float
    p_greater: float = 1.0
    z: float | None = None


def signed_rank(first: Sequence[float], second: Sequence[float]) -> SignedRank:
    """Compare paired results (one pair for each data set) by Wilcoxon's signed-rank test.

    Parameters
    ----------
    first, second : sequences of float
        The paired values, of equal length.

    Raises
    ------
    ValueError
        On unequal lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"paired samples differ in length: {len(first)} and {len(second)}")
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    difference = difference[difference != 0]
    n = int(difference.size)
    if n == 0:
        return SignedRank(0, 0.0, 0.0, 1.0)
    ranks = average_ranks(np.abs(difference))
    w_plus = float(ranks[difference > 0].sum())
    mean, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
    is_tied = np.unique(ranks).size < n
    if n <= (_MAX_EXACT_TIED_PAIRS if is_tied else _MAX_EXACT_SIGNED_PAIRS):
        # Add pair after pair to the distribution of twice the sum of the positive ranks.
        chances = np.ones(1)
        for rank in (2.0 * ranks).astype(int):
            chances = 0.5 * (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0)))
        index = round(2.0 * w_plus)
        greater, less = float(chances[index:].sum()), float(chances[: index + 1].sum())
    else:
        from scipy.special import ndtr

        # The variance, corrected for ties, is a quarter of the sum of squared ranks.
        score = (w_plus - mean) / math.sqrt(float(ranks @ ranks) / 4.0)
        greater, less = float(ndtr(-score)), float(ndtr(score))
    p = min(1.0, 2.0 * min(greater, less))
    z = (w_plus - mean) / math.sqrt(variance)
    return SignedRank(n, w_plus, n * (n + 1) / 2 - w_plus, p, greater, z)


def win_draw_loss(
    first: Sequence[float], second: Sequence[float], *, better: str = "lower", near: float = 0.0
) -> tuple[int, int, int]:
    """Count the pairs in which the first is better than the second, equal, and worse.

    Parameters
    ----------
    first, second : sequences of float
        Paired values.
    better : {"lower", "higher"}
    near : float
        Relative difference that counts as equality.

    Raises
    ------
    ValueError
        On unequal lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"paired samples differ in length: {len(first)} and {len(second)}")
    sign = 1.0 if better == "higher" else -1.0
    wins = draws = 0
    for ours, theirs in zip(first, second, strict=True):
        if abs(ours - theirs) <= near * max(abs(ours), abs(theirs)):
            draws += 1
        elif sign * (ours - theirs) > 0.0:
            wins += 1
    return wins, draws, len(first) - wins - draws
