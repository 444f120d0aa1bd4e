"""Format numbers, units and statuses for tables and plots."""

from __future__ import annotations

import math

#: Words for the statuses of cells without a value.
STATUS_WORDS = {
    "unavailable": "not available",
    "memory": "out of memory",
    "planned": "not run",
    "other environment": "in another environment",
}

#: Mark of means over some of the folds.
PARTIAL_MARK = "†"
#: Mark of times measured beside other cells of the run.
CONTENDED_MARK = "*"
#: Mark of times measured beside other programs.
DISTURBED_MARK = "‡"
#: Mark of times that are shorter than the clock can tell.
UNRESOLVED_MARK = "§"
#: Mark of times of a racer that says it converged, which its certificate contradicts.
FALSE_CONVERGENCE_MARK = "¶"
MARKS = (PARTIAL_MARK, CONTENDED_MARK, DISTURBED_MARK, UNRESOLVED_MARK, FALSE_CONVERGENCE_MARK)

_LABELS = {
    "n_samples": "samples",
    "n_features": "features",
    "features": "features kept",
    "n_classes": "classes",
    "n_positive": "positive",
    "n_negative": "negative",
    "dataset": "data set",
    "environment_group": "environment",
    "n_train": "training samples",
    "ratio": "times faster",
    "objective_difference": "relative difference of objectives",
    "excess_objective": "objective above the best (relative)",
    "certified_objective": "objective, computed from the model",
    "certified_bound": "lower bound of the optimum",
    "certified_gap": "certified gap (relative)",
    "solved_1e-2_pct": "solved to 1e-2 (%)",
    "solved_1e-3_pct": "solved to 1e-3 (%)",
    "solved_1e-5_pct": "solved to 1e-5 (%)",
    "claims_true_pct": "claimed and true (%)",
    "cpu_time_to_1e-2_s": "CPU time to a gap of 1e-2 (s)",
    "cpu_time_to_1e-3_s": "CPU time to a gap of 1e-3 (s)",
    "cpu_time_to_1e-5_s": "CPU time to a gap of 1e-5 (s)",
    "cpu_time_s": "CPU time (s)",
    "work": "work (the solver's own unit)",
    "n_bound_sv": "bound SVs",
    "n_nonbound_sv": "non-bound SVs",
    "nested_cv_cpu_time_s": "CPU time of the nested CV (s)",
    "unconverged_fits": "fits stopped early",
    "gap_stopped_fits": "fits ended at a duality gap",
    "inner_accuracy_pct": "accuracy in the search (%)",
    "chosen_C": "chosen C",
    "chosen_gamma": "chosen gamma",
    "n_iter": "iterations",
    "n_basis": "basis points",
    "n_candidates": "candidates",
    "tol": "tolerance",
    "left": "multipliers left",
    "speedup": "speed-up",
}
_UNITS = {"_s": "s", "_pct": "%", "_mb": "MiB"}


def is_time_ratio(metric: str) -> bool:
    """Return True for metrics that divide one time by another: 1 means equally fast."""
    return metric in {"ratio", "speedup"}


def is_timing(metric: str) -> bool:
    """Return True for metrics from a clock, which other work on the machine disturbs."""
    return metric.endswith("_s") or is_time_ratio(metric)


def label_of(name: str) -> str:
    """Return the label of a metric or field for headers and axes, with its unit."""
    if name in _LABELS:
        return _LABELS[name]
    for suffix, unit in _UNITS.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} ({unit})"
    plain = name.removeprefix("params.").removeprefix("solver.")
    return _LABELS.get(plain, plain.replace("_", " "))


def quantity(name: str) -> str:
    """Return the label of a metric for sentences, without its unit."""
    return label_of(name).partition(" (")[0]


def status_word(status: str) -> str:
    """Return the word for a status in tables."""
    return STATUS_WORDS.get(status, status)


def decimals(metric: str, value: float) -> int | None:
    """Return the decimals with which `value` is printed; None for scientific notation.

    Times and other magnitudes keep three significant digits, percentages two decimals, counts none.
    """
    if metric.endswith("_pct"):
        return 2
    if metric.endswith("_mb"):
        return 1
    magnitude = abs(value)
    if magnitude == 0 or (float(value).is_integer() and not is_timing(metric)):
        return 0
    if magnitude < 1e-3 or magnitude >= 1e7:
        return None
    # The exponent after rounding to three digits, so that 9.996 becomes 10.0 and not 10.00.
    exponent = int(f"{magnitude:.2e}".split("e")[1])
    return max(0, 2 - exponent)


def number(metric: str, value: float, like: float | None = None) -> str:
    """Return `value` as text, with the decimals of `like` (default: its own)."""
    if not math.isfinite(value):
        return str(value)
    places = decimals(metric, value if like is None else like)
    if places is None:
        return f"{value:.2e}" if like is None else f"{value:.0e}"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def spread_text(metric: str, value: float, spread: float | None) -> str:
    """Return ``± 0.4`` with the decimals of the value, or an empty text without a spread."""
    if spread is None or not math.isfinite(spread):
        return ""
    # A spread that would round to 0 keeps one digit.
    shown = number(metric, spread, like=value)
    if spread > 0 and float(shown) == 0:
        shown = f"{spread:.1g}"
    return f"± {shown}"


def printed_bracket(
    metric: str,
    value: float | None,
    published: float,
    difference: float | None,
    unit: str = "",
) -> str:
    """Return the bracket after a value: the paper's number, and the difference from it.

    Times are compared by their ratio, because the paper's machine was different; all other metrics
    by the signed difference. With a `unit`, it is added to the paper's number.
    """
    printed = f"{published:g}" if abs(published) < 1e6 else f"{published:.0f}"
    printed = f"{printed} {unit}".rstrip()
    if value is None or difference is None:
        return f"[{printed}]"
    if is_timing(metric) and metric.endswith("_s"):
        return f"[{printed}; ×{value / published:.2g}]" if published else f"[{printed}]"
    if difference == 0:
        return f"[{printed}; =]"
    if metric.endswith("_pct"):
        shown = f"{difference:+.1f}"
    elif float(difference).is_integer():
        shown = f"{difference:+.0f}"
    else:
        shown = f"{difference:+.3g}"
    return f"[{printed}; {shown}]"


def csv_number(value: float | None) -> str:
    """Return a number for a CSV file: ten significant digits, empty for None."""
    if value is None:
        return ""
    text = f"{value:.10g}"
    return "0" if text == "-0" else text
