"""Certificates of a race's models: bounds on their distance from the optimum, computed untimed.

A certificate takes about the time of predicting the training rows. The lower bound of the optimum
is the best bound of all racers with the same problem. If weights without multipliers have an
objective that is farther than 1e-6, relatively, above that bound, a search (see `certify_part`)
looks for a better bound, once for each problem.
"""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from svmbench.base.errors import SvmbenchError
from svmbench.experiment.protocols.turns import Costs

#: Relative gaps at which a model counts as solved, as metrics name them.
ACCURACIES = ("1e-2", "1e-3", "1e-5")

#: The metrics of a model's certificate.
CERTIFIED_METRICS = (
    *("certified_objective", "certified_bound", "certified_gap", "claims_true_pct"),
    *(f"solved_{accuracy}_pct" for accuracy in ACCURACIES),
)

#: A solver that says it converged is believed if its relative gap is at most this.
TRUE_CLAIM = 1e-2

#: With this number of rows or more, the objective of a kernel model is estimated from a sample.
MIN_SAMPLED_ROWS = 1_000_000

#: The stop reason of classes and programs, which report none.
NO_STOP_REASON = "not told"

#: An objective below a bound by more than this share is an error.
CONTRADICTION = 1e-6


class Certificates:
    """The certificates of one racer's models, by their settings."""

    #: Whether the settings are the outer folds of one model selection.
    are_folds = False

    def __init__(self, name: str, X: Any, y: Any) -> None:
        self.name, self.X, self.y = name, X, y
        self.by_setting: dict[Hashable, Any] = {}  # a Certificate for each setting
        self.identities: dict[Hashable, str] = {}
        self.claims: dict[Hashable, str] = {}  # how it claims that it converged; "" if it doesn't
        # By identity, the lowest objective of weights with the parts of its model.
        self.weights: dict[str, tuple[float, list[Any]]] = {}

    @classmethod
    def of_folds(cls, folds: Sequence[Certificates]) -> Certificates:
        """Join the certificates of one racer's models on several outer folds."""
        together = cls(folds[0].name, None, None)
        together.are_folds = True
        for fold, of_fold in enumerate(folds):
            together.by_setting |= {
                (fold, setting): certificate for setting, certificate in of_fold.by_setting.items()
            }
            together.claims |= {(fold, setting): claim for setting, claim in of_fold.claims.items()}
        return together

    def add(self, setting: Hashable, model: Any) -> None:
        """Certify the model of a setting, if the model shows a solution that can be certified."""
        self.add_models(setting, [(model, self.X, self.y)])

    def add_models(self, setting: Hashable, models: Sequence[tuple[Any, Any, Any]]) -> None:
        """Certify the models of a setting together, each with its training rows and labels."""
        from svmbench.baselines.certify import Asked, certify_part, parts_of, sum_of

        try:
            parts = [part for model in models for part in parts_of(*model, Asked())]
            is_large = self.X.shape[0] >= MIN_SAMPLED_ROWS
            certified = [certify_part(part, search=False, sample=is_large) for part in parts]
        except (SvmbenchError, ValueError, ArithmeticError, AttributeError):
            return
        certificate = sum_of(certified, self.X.shape[0])
        identity = " | ".join(dict.fromkeys(part.identity for part in parts)) + f" {len(parts)}"
        self.by_setting[setting], self.identities[setting] = certificate, identity
        claims = [claim_of(model) for model, _, _ in models]
        self.claims[setting] = claims[0] if all(claims) else ""
        lowest = self.weights.get(identity, (certificate.primal + 1.0, []))[0]
        if certificate.shows == "weights" and certificate.primal < lowest:
            self.weights[identity] = certificate.primal, parts

    def report(
        self, settings: Sequence[Hashable], metrics: dict[str, Any], notes: list[str]
    ) -> None:
        """Add the certified metrics of some settings' models.

        For several settings, these are the largest gap and the shares of solved settings; for outer
        folds, also the sums of objectives and of bounds.
        """
        shown = [self.by_setting[setting] for setting in settings if setting in self.by_setting]
        if not shown or len(shown) < len(settings):
            return
        name, gaps = self.name, [certificate.relative_gap for certificate in shown]
        if n_sampled := max(certificate.n_sampled or 0 for certificate in shown):
            notes.append(
                f"{name}'s objective was estimated on {n_sampled:,} of {shown[0].n_samples:,} rows"
            )
        is_one = len(shown) == 1 or self.are_folds
        if is_one:
            bounds = [certificate.dual for certificate in shown if certificate.dual is not None]
            metrics[f"certified_objective:{name}"] = sum(
                certificate.primal for certificate in shown
            )
            metrics[f"certified_bound:{name}"] = sum(bounds) if len(bounds) == len(shown) else None
        known = [gap for gap in gaps if gap is not None]
        metrics[f"certified_gap:{name}"] = max(known) if len(known) == len(gaps) else None
        for accuracy in ACCURACIES:
            solved = [certificate.solved_to(float(accuracy)) for certificate in shown]
            metrics[f"solved_{accuracy}_pct:{name}"] = 100.0 * sum(solved) / len(solved)
        # Without a bound a claim is not known to be false.
        claimed = [
            (self.by_setting[setting], self.claims[setting])
            for setting in settings
            if self.claims[setting] and self.by_setting[setting].dual is not None
        ]
        if claimed:
            false = [
                (certificate, claim)
                for certificate, claim in claimed
                if not certificate.solved_to(TRUE_CLAIM)
            ]
            n_true = len(claimed) - len(false)
            metrics[f"claims_true_pct:{name}"] = 100.0 * n_true / len(claimed)
            # The loose settings of a ladder are meant to be inaccurate.
            if is_one and false:
                where = f" on {len(false)} of {len(shown)} outer folds" if self.are_folds else ""
                gaps = [certificate.relative_gap for certificate, _ in false]
                notes.append(
                    f"{name} {false[0][1]}, which is not certified{where}: {excess_in_words(gaps)}"
                )

    def report_times(
        self,
        accuracies: Iterable[float],
        costs: Mapping[Any, Costs],
        metrics: dict[str, Any],
    ) -> None:
        """Enter the least CPU time in which a setting certainly reaches each accuracy.

        Times are medians over the rounds, summed over the values of C; None if one is not reached.
        """
        for accuracy in accuracies:
            total: float | None = 0.0
            for C in dict.fromkeys(setting[0] for setting in costs):
                medians = [
                    statistics.median(costs[setting].cpu)
                    for setting, certificate in self.by_setting.items()
                    if setting in costs and setting[0] == C and certificate.solved_to(accuracy)  # type: ignore[index]
                ]
                total = None if total is None or not medians else total + min(medians)
            metrics[f"cpu_time_to_{accuracy_name(accuracy)}_s:{self.name}"] = total


def claim_of(model: Any) -> str:
    """Return in words how a model claims that it converged, or "" if it doesn't.

    A class or a program that doesn't report why it stopped counts as claiming it, unless it did as
    many iterations as its `max_iter` allows.
    """
    reason = getattr(model, "stop_reason_", NO_STOP_REASON)
    max_iter, n_iter = getattr(model, "max_iter", None), getattr(model, "n_iter_", 0)
    is_early = isinstance(max_iter, int) and 0 < max_iter <= np.max(n_iter)
    if reason == NO_STOP_REASON:
        return "" if is_early else "ended as if it had converged"
    return "says that it converged" if reason == "converged" else ""


def accuracy_name(accuracy: float) -> str:
    """Return an accuracy as metrics name it: 1e-3."""
    mantissa, _, exponent = f"{accuracy:e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def excess_in_words(gaps: Sequence[float | None]) -> str:
    """Return in words how far objectives may be from the optimum."""
    known = [gap for gap in gaps if gap is not None]
    if len(known) < len(gaps):
        return "no share of the optimum bounds the excess of its objective"
    return f"its objective may be {100 * max(known):.3g} % above the optimum"


def share_bounds(racers: Sequence[Certificates]) -> None:
    """Give every certificate the best bound that any racer has for the same problem.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If an objective is below the bound of its problem: then one of the two is wrong.
    """
    from svmbench.baselines.certify import certify_part, sum_of

    bounds: dict[str, tuple[float, str]] = {}
    for racer in racers:
        for setting, certificate in racer.by_setting.items():
            identity = racer.identities[setting]
            known = bounds.get(identity, (-float("inf"), ""))
            if certificate.dual is not None and certificate.dual > known[0]:
                bounds[identity] = certificate.dual, racer.name
    for identity in {identity for racer in racers for identity in racer.weights}:
        lowest = min(
            (racer.weights[identity] for racer in racers if identity in racer.weights),
            key=lambda pair: pair[0],
        )
        dual, name = bounds.get(identity, (-float("inf"), ""))
        if lowest[0] - dual <= 0.1 * float(ACCURACIES[-1]) * abs(lowest[0]):
            continue
        parts = [certify_part(part) for part in lowest[1]]
        better = sum_of(parts, parts[0].n_samples).dual
        if better is not None and better > dual:
            bounds[identity] = better, name or "a quadratic program"
    for racer in racers:
        for setting, certificate in racer.by_setting.items():
            dual, name = bounds.get(racer.identities[setting], (-float("inf"), ""))
            is_whole = certificate.n_sampled is None
            if is_whole and certificate.primal < dual - CONTRADICTION * max(
                abs(dual), abs(certificate.primal)
            ):
                raise SvmbenchError(
                    f"the objective of {racer.name}, {certificate.primal:.10g}, is below the bound"
                    f" {dual:.10g} that {name} gives for the same problem"
                )
            racer.by_setting[setting] = certificate.with_bound(dual if name else None)
