"""What a person is told of a data set: ``describe``, ``list datasets`` and the docs' table."""

from __future__ import annotations

from typing import Any

from svmbench.data import prepare
from svmbench.data.entries import Derivation, Entry, Reading, SourceFile, Statement, shown_address
from svmbench.data.registry import entry, parse_name, registry


def describe(name: str, mirror: str | None = None) -> dict[str, Any]:
    """Return everything there is to say of a data set, for the terminal.

    Parameters
    ----------
    name : str
        A registered name; a prefix or parts are left aside.
    mirror : str, optional
        Where to look, for ``where``; default ``SVMBENCH_MIRROR``.

    Returns
    -------
    card : dict
        ``dataset``, ``what``, ``task``, ``rows``, ``features``, ``counts`` (rows of each class;
        empty if they were never seen), ``test rows``, ``test counts``, ``density``, ``where``
        (:func:`svmbench.data.status`), ``papers`` (for each, what it prints and whether that is
        what the data set has), ``derivation``, ``notes``, ``files``, ``licence``, ``citation`` and
        ``homepage``: words, numbers, lists of them, and one dict of words.

    Raises
    ------
    UnknownNameError
        If there is no such data set.
    """
    one = entry(parse_name(name).base)
    return {
        "dataset": one.name,
        "what": one.title,
        "task": one.task,
        "rows": one.n_samples,
        "features": one.n_features,
        "counts": list(one.counts),
        "test rows": one.n_test,
        "test counts": list(one.test_counts),
        "density": one.density,
        "where": prepare.status(one.name, mirror),
        "papers": {paper: printed_in_words(one, said) for paper, said in one.papers.items()},
        "derivation": " ".join(derivation_in_words(one)),
        "notes": " ".join(one.notes),
        "files": [f"{file.name} ({verification(file)})" for file in one.files],
        "urls": [shown_address(file.url) for file in one.files if file.url],
        "licence": one.licence,
        "citation": one.citation,
        "homepage": one.homepage,
    }


def list_rows(mirror: str | None = None) -> list[dict[str, Any]]:
    """Return one short row for each registered data set, for ``svmbench list datasets``.

    Parameters
    ----------
    mirror : str, optional
        Where to look, for ``where``; default ``SVMBENCH_MIRROR``.

    Returns
    -------
    rows : list of dict
        ``dataset``, ``rows``, ``test``, ``features``, ``classes``, ``density``, ``task``,
        ``papers``, ``licence``, ``where`` (:func:`svmbench.data.status`).
    """
    return [
        {
            "dataset": name,
            "rows": one.n_samples,
            "test": one.n_test,
            "features": one.n_features,
            "classes": n_classes(one),
            "density": "" if one.density is None else f"{one.density:.3g}",
            "task": one.task,
            "papers": ", ".join(one.papers),
            "licence": one.licence,
            "where": prepare.status(name, mirror),
        }
        for name, one in registry().items()
    ]


def n_classes(one: Entry) -> int | str:
    """Return how many classes an entry has, or "" where they were never seen."""
    return len(one.counts) or (2 if one.task == "binary" else "")


def was_seen(one: Entry) -> bool:
    """Whether the data set was ever prepared: otherwise its numbers are its page's or a paper's."""
    return one.density is not None


def verification(file: SourceFile) -> str:
    """Return how the bytes of a file are verified, in words."""
    if file.rebuilt and file.sha256:
        return f"sha256 known of the mirror's copy alone, since {file.rebuilt}"
    if file.sha256:
        return "sha256 known"
    if file.md5:
        return "md5 of the official file known"
    return "unverified until its first fetch: its counts are checked and its hash is kept"


def expected(one: Entry, said: Statement) -> dict[str, Any]:
    """Return an entry's numbers as a paper would count them: some count test rows too."""
    counts = list(one.counts)
    if said.parts == "all" and one.test_counts:
        counts = [a + b for a, b in zip(one.counts, one.test_counts, strict=True)]
    return {
        "n_samples": one.n_samples + (one.n_test if said.parts == "all" else 0),
        "n_features": one.n_features,
        "counts": counts,
    }


def stated(said: Statement) -> dict[str, Any]:
    """Return the numbers that a paper prints."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key in ("n_samples", "n_features", "counts")
        if (value := getattr(said, key)) is not None
    }


def differences(one: Entry, said: Statement) -> list[str]:
    """Return what a paper prints otherwise than the data set has it."""
    have = expected(one, said)
    return [
        f"{key} is {have[key]}, printed as {value}"
        for key, value in stated(said).items()
        if value != have[key]
    ]


def printed_in_words(one: Entry, said: Statement) -> str:
    """Return what a paper prints of a data set, and why where that is something else."""
    words = []
    if said.stands_in_for:
        words.append(f"stands in for {said.stands_in_for}")
    elif said.published_as:
        words.append(f"printed as {said.published_as}")
    differ = differences(one, said)
    if differ:
        words.append("; ".join(differ) + f" ({said.why})")
    elif stated(said):
        words.append("counts as printed" if was_seen(one) else "counts as printed, not seen yet")
    elif said.why:
        words.append(said.why)
    return ", ".join(words) or "used without printed counts"


def derivation_in_words(one: Entry) -> list[str]:
    """Return the sentences that say how a data set is made from its files."""
    if one.builtin:
        arguments = ", ".join(f"{key} = {value}" for key, value in one.parameters.items())
        said = [f"Made by {one.builtin}({arguments})."]
    else:
        parts = {part: [f.name for f in one.files if f.part == part] for part in ("train", "test")}
        said = [f"Training rows from {' and '.join(parts['train'])}."]
        if parts["test"]:
            said.append(f"Test rows from {' and '.join(parts['test'])}.")
        said += _reading_in_words(one.reading)
    return said + _steps_in_words(one.derivation)


def _reading_in_words(reading: Reading) -> list[str]:
    said = []
    if reading.drop:
        said.append(f"Left out: column {', '.join(map(str, reading.drop))}.")
    by_rule: dict[str, list[str]] = {}
    for column, rule in reading.encode.items():
        if isinstance(rule, str):
            words = {
                "alphabetical": "words numbered in alphabetical order",
                "one-hot": "one 0/1 feature for each word",
            }[rule]
        else:
            words = ", ".join(f"{word} = {number:g}" for word, number in rule.items())
        by_rule.setdefault(words, []).append(column)
    for words, columns in by_rule.items():
        said.append(f"Column {', '.join(columns)}: {words}.")
    if reading.missing is not None:
        what = {
            "refuse": "refused",
            "drop": "a reason to leave the row out",
            "mean": "replaced by the mean of the column's training values",
            "category": "a word like any other",
        }[reading.incomplete]
        said.append(f"A missing value ({reading.missing}) is {what}.")
    if reading.sort_indices:
        said.append("Indices out of order are sorted.")
    return said


def _steps_in_words(what: Derivation) -> list[str]:
    said = []
    if what.select:
        said.append(f"Classes kept: {', '.join(what.select)}.")
    if what.select_pair_of is not None:
        said.append(f"The pair of classes kept that has {what.select_pair_of:,} rows together.")
    if what.drop_features:
        said.append(f"Features left out: {', '.join(map(str, what.drop_features))}.")
    if what.rows is not None:
        said.append(f"Rows {what.rows[0]:,} up to {what.rows[1]:,} kept.")
    if what.positive:
        said.append(f"Positive: {' or '.join(what.positive)}; negative: every other class.")
    if what.novelty is not None:
        said.append(
            f"Normal (+1): {' or '.join(what.novelty.normal)}; abnormal (−1): every other class, "
            f"thinned to {what.novelty.ratio:g} rows for each normal one "
            f"(seed {what.novelty.seed})."
        )
    return said
