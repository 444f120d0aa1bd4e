"""Claims as data, from a paper's ``claims.toml`` or from a file with other limits."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from svmbench.base.errors import ConfigError, suggestion
from svmbench.base.escape import line
from svmbench.base.toml_source import read_toml
from svmbench.report.reading.newest import plural

#: Largest limit of a claim.
MAX_CLAIM_LIMIT = 1e9

#: The limits of a linear exponent in every claim. A rule that names one of them uses this value,
#: unless its claim sets another one.
LINEAR_WINDOW = {"linear_low": 0.8, "linear_high": 1.2}

#: How a claim quantifies: one failed part contradicts `EVERY`; `MOST` is supported if more than
#: half of all parts hold. `VALUE` (a number) and `ORDER` (one thing comes before another) are
#: judged alike: mixed if some parts hold and as many or fewer fail.
EVERY, MOST, VALUE, ORDER = QUANTIFIERS = ("every", "most", "value", "order")

_REQUIRED = ("where", "quote", "statement", "rule", "uncertainty", "fixed")
_TEXTS = (*_REQUIRED, "page", "printed", "command")
_LISTS = ("configs", "metrics", "stand_ins")
_KNOWN = ("paper", *_TEXTS, *_LISTS, "limits", "after_records", "quantifier")
#: Number of hexadecimal digits of a rule's hash.
_HASH_DIGITS = 16

#: The sentences in which a limit's name in braces stands for its value, and such a name.
_WITH_LIMITS = ("rule", "uncertainty")
_NAMED = re.compile(r"\{(\w{1,60})\}")


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, with the rule that decides it.

    Attributes
    ----------
    id, paper, where : str
        The claim's name here, its paper, and the table, figure or section that makes it.
    quote, page : str
        The paper's own words, with "…" for words that are left out, and their page if it has one.
    statement, rule, uncertainty : str
        The claim, the sentence that decides it, and the uncertainty that the rule considers. A file
        names a limit in its rule by braces, as in ``at most {points} points``.
    quantifier : str
        One of `QUANTIFIERS`.
    fixed : str
        The date (ISO) of the present form of the rule, its limits and the statement.
    after_records : bool
        Whether records of the experiment had been seen by then. Default: True.
    printed : str
        The numbers that the paper prints for the claim, if they are few.
    limits : dict of str to float
        The limits, by the names that the check knows.
    metrics : tuple of str
        The metrics that the check reads, in its order.
    configs : tuple of str
        The configs whose runs decide it.
    stand_ins : tuple of str
        Data sets that stand in for the paper's own, about which they prove nothing.
    command : str
        The command that makes the records, if they don't come from a run of a config.
    """

    id: str
    paper: str
    where: str
    quote: str
    statement: str
    rule: str
    uncertainty: str
    fixed: str
    after_records: bool = True
    quantifier: str = VALUE
    page: str = ""
    printed: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    command: str = ""

    @property
    def rule_hash(self) -> str:
        """The first 16 hexadecimal digits of SHA-256 over what decides a claim."""
        content: list[Any] = [self.quantifier, self.statement, self.rule, self.uncertainty]
        content.append(sorted(self.limits.items()))
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_HASH_DIGITS]

    def rule_date_note(self, first_record: str = "") -> str:
        """Return a sentence if the rule is younger than its records, else an empty text.

        Parameters
        ----------
        first_record : str, default=""
            The date (ISO) of the oldest record that is judged; "" where no record says it.
        """
        if self.after_records:
            return f"The rule was fixed on {self.fixed}, after the first results had been seen."
        if first_record and first_record < self.fixed:
            return f"The rule was fixed on {self.fixed}; the oldest record is of {first_record}."
        return ""

    def place(self) -> str:
        """Return the table, figure or section with its page, where there is one."""
        return f"{self.where}, page {self.page}" if self.page else self.where

    def commands(self) -> list[str]:
        """Return the commands that make the records."""
        runs = [f"svmbench run {config} --profile paper" for config in self.configs]
        return runs + ([self.command] if self.command else [])

    def limits_text(self) -> str:
        """Return the limits as text."""
        return ", ".join(
            f"{name.replace('_', ' ')} {value:g}" for name, value in self.limits.items()
        )


def read_claims(
    path: Path,
    *,
    metrics: Collection[str] | None = None,
    paper: str | None = None,
    limits: Mapping[str, Collection[str]] | None = None,
    like: Collection[Claim] = (),
) -> list[Claim]:
    """Read a file of claims.

    Parameters
    ----------
    path : Path
        TOML: a table for each claim.
    metrics : collection of str, optional
        The metrics that claims may name. Default: any.
    paper : str, optional
        The key of the paper whose file it is: each of its claims is called ``KEY-…``. Without it
        the paper of a claim is that of the claim of the same name in `like`.
    limits : mapping of str to collection of str, optional
        The claims with checks, and the limits that each check reads. Default: neither is checked.
    like : collection of Claim, default=()
        The papers' own claims. A claim of the same name must have as many metrics and configs.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If it can't be read, or has mistakes; with all mistakes.
    """
    try:
        content = read_toml(path, str(path))
    except (OSError, ValueError) as error:  # a zero byte in its name
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"can't read {line(path, 200)}: {reason}") from error
    problems: list[str] = []
    claims = []
    shipped = {claim.id: claim for claim in like}
    for name, given in content.items():
        whose = paper if paper is not None else shipped[name].paper if name in shipped else None
        if limits is not None and name not in limits:
            mistakes = [f"no check is known by this name{suggestion(name, list(limits))}"]
        elif whose is None or not name.startswith(f"{whose}-"):
            nearest = suggestion(name, [*shipped])
            mistakes = [f"no paper has a claim of this name{nearest}"]
        else:
            mistakes = _problems(given, whose, metrics)
            if isinstance(given, dict):
                read = None if limits is None else limits[name]
                mistakes += limit_problems(_limits(given), read) or _unknown_in_braces(given)
        if not mistakes and name in shipped:
            mistakes = _unlike(given, shipped[name])
        problems += [f"{path}: {line(name, 60)}: {problem}" for problem in mistakes]
        if not mistakes and whose is not None:
            claims.append(_claim(name, whose, given))
    if problems:
        raise ConfigError(problems)
    if not claims:
        raise ConfigError(f"{path}: it has no claims")
    return claims


def _claim(name: str, paper: str, given: Mapping[str, Any]) -> Claim:
    lists = {key: tuple(given.get(key, ())) for key in _LISTS}
    texts = {key: " ".join(str(given.get(key, "")).split()) for key in _TEXTS}
    limits = {key: float(value) for key, value in _limits(given).items()}
    after_records = bool(given.get("after_records", True))
    for key in _WITH_LIMITS:
        texts[key] = _NAMED.sub(lambda match: f"{limits[match[1]]:g}", texts[key])
    return Claim(
        id=name, paper=paper, limits=limits, after_records=after_records,
        quantifier=given.get("quantifier", VALUE),
        **texts, **lists,  # type: ignore[arg-type]
    )  # fmt: skip


def _problems(given: Any, paper: str, metrics: Collection[str] | None) -> list[str]:
    """Return one sentence for each mistake in an entry, apart from its limits."""
    if not isinstance(given, dict):
        return ["a claim is a table of keys"]
    problems = [
        f"unknown key {line(key, 60)!r}{suggestion(key, list(_KNOWN))}"
        for key in given
        if key not in _KNOWN
    ]
    problems += [f"{key} is missing" for key in _REQUIRED if not given.get(key)]
    problems += [f"{k} is text" for k in _TEXTS if not isinstance(given.get(k, ""), str)]
    if not isinstance(given.get("after_records", True), bool):
        problems.append("after_records is true or false")
    if given.get("quantifier", VALUE) not in QUANTIFIERS:
        problems.append(f"quantifier is one of {', '.join(QUANTIFIERS)}")
    if isinstance(given.get("fixed"), str) and not _is_date(given["fixed"]):
        problems.append("fixed is a date, as in 2026-11-23")
    for key in _LISTS:
        value = given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            problems.append(f"{key} is a list of names")
            continue
        if key == "metrics" and metrics is not None:
            problems += [
                f"unknown metric {line(text, 60)!r}{suggestion(text, list(metrics))}"
                for text in value
                if text not in metrics
            ]
    if given.get("paper", paper) != paper:
        problems.append(f"paper is {paper!r}")
    return problems


def _limits(given: Mapping[str, Any]) -> Any:
    """Return the limits of an entry, with the limits of linear growth that its rule names."""
    limits = given.get("limits", {})
    names = _NAMED.findall(str(given.get("rule", "")))
    shared = {name: value for name, value in LINEAR_WINDOW.items() if name in names}
    return {**shared, **limits} if isinstance(limits, dict) else limits


def _unknown_in_braces(given: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each name in braces that is not a limit of the claim."""
    known = list(_limits(given))
    return [
        f"{key}: unknown limit {line(name, 60)!r}{suggestion(name, known)}"
        for key in _WITH_LIMITS
        for name in _NAMED.findall(str(given.get(key, "")))
        if name not in known
    ]


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _unlike(given: Mapping[str, Any], shipped: Claim) -> list[str]:
    """Return one sentence for each list with too few or too many names for the check."""
    numbers = {
        key: (len(given.get(key, [])), len(getattr(shipped, key))) for key in ("metrics", "configs")
    }
    return [
        f"{key} has {n} {plural('name', n)} instead of {n_shipped}"
        for key, (n, n_shipped) in numbers.items()
        if n != n_shipped
    ]


def limit_problems(limits: Any, read: Collection[str] | None) -> list[str]:
    """Return one sentence for each mistake in a claim's limits.

    Parameters
    ----------
    limits : mapping of str to float
        The content of a file, unchecked.
    read : collection of str or None
        The limits that the claim's check reads; None if they are unknown.
    """
    if not isinstance(limits, Mapping):
        return ["limits is a table of numbers"]
    problems = [f"limit {name} is missing" for name in read or () if name not in limits]
    for name, value in limits.items():
        if read is not None and name not in read:
            problems.append(f"unknown limit {line(name, 60)!r}{suggestion(name, list(read))}")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            problems.append(f"limit {name} is a number")
        elif not 0 < value <= MAX_CLAIM_LIMIT:  # NaN is not
            problems.append(f"limit {name} is above 0 and at most {MAX_CLAIM_LIMIT:,.0f}")
    return problems
