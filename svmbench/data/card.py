"""What a person is told of a data set: ``describe``, ``list datasets`` and the docs' table."""

from __future__ import annotations

from typing import Any

from svmbench.data import prepare
from svmbench.data.registry import Derivation, Entry, Reading, Statement, entry, parse_name


def describe(name: str, mirror: str | None = None) -> dict[str, Any]:
    """Return everything there is to say of a data set.

    Parameters
    ----------
    name : str
        A registered name; a prefix or parts are left aside.
    mirror : str, optional
        Where to look, for ``status``; default ``SVMBENCH_MIRROR``.

    Returns
    -------
    card : dict
        ``name``, ``title``, ``task``, ``rows``, ``features``, ``classes`` (number), ``counts``,
        ``test_rows``, ``test_counts``, ``density`` (None if it was never seen), ``papers`` (for
        each: ``published_as``, ``stands_in_for``, ``states``, ``agrees``, ``why``), ``licence``,
        ``citation``, ``homepage``, ``derivation`` (sentences), ``notes``, ``files`` (``name``,
        ``url``, ``verified``), ``status`` and ``cached``.

    Raises
    ------
    UnknownNameError
        If there is no such data set.
    """
    one = entry(parse_name(name).base)
    return {
        "name": one.name,
        "title": one.title,
        "task": one.task,
        "rows": one.n_samples,
        "features": one.n_features,
        "classes": len(one.counts) or (2 if one.task == "binary" else None),
        "counts": list(one.counts),
        "test_rows": one.n_test,
        "test_counts": list(one.test_counts),
        "density": one.density,
        "papers": {paper: _printed(one, said) for paper, said in one.papers.items()},
        "licence": one.licence,
        "citation": one.citation,
        "homepage": one.homepage,
        "derivation": derivation_in_words(one),
        "notes": list(one.notes),
        "files": [
            {"name": file.name, "url": file.url, "verified": _verified(one, file)}
            for file in one.files
        ],
        "status": prepare.status(one.name, mirror),
        "cached": prepare.is_cached(one),
    }


def _verified(one: Entry, file: Any) -> str:
    if file.sha256 and not file.rebuilt:
        return "sha256"
    if file.md5:
        return "md5 of the official file as served"
    if file.rebuilt:
        return f"sha256 of the mirror's copy; the official file is unverified: {file.rebuilt}"
    return "unverified: counts are checked, and the hash is recorded at the first fetch"


def _printed(one: Entry, said: Statement) -> dict[str, Any]:
    """Return a paper's numbers of a data set beside the verified ones."""
    states = {
        key: list(value) if isinstance(value, tuple) else value
        for key in ("n_samples", "n_features", "counts")
        if (value := getattr(said, key)) is not None
    }
    expected = {
        "n_samples": one.n_samples + (one.n_test if said.parts == "all" else 0),
        "n_features": one.n_features,
        "counts": list(one.counts),
    }
    return {
        "published_as": said.published_as or said.stands_in_for or one.name,
        "stands_in_for": said.stands_in_for,
        "states": states,
        "agrees": all(expected[key] == value for key, value in states.items()),
        "why": said.why,
    }


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
    for column, rule in reading.encode.items():
        if rule == "alphabetical":
            said.append(f"Column {column}: words numbered in alphabetical order.")
        elif rule == "one-hot":
            said.append(f"Column {column}: one 0/1 feature for each word.")
        else:
            pairs = ", ".join(f"{word} = {number:g}" for word, number in rule.items())  # type: ignore[union-attr]
            said.append(f"Column {column}: {pairs}.")
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
