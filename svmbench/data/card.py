"""Descriptions of data sets for ``describe``, ``list datasets`` and the documentation."""

from __future__ import annotations

from typing import Any

from svmbench.base.escape import line
from svmbench.data import frames, openml, prepare
from svmbench.data.entries import (
    DatasetEntry,
    Derivation,
    Reading,
    SourceFile,
    Statement,
    shown_address,
)
from svmbench.data.registry import entry, parse_name, registry
from svmbench.data.userfile import Table, load_own


def dataset_card(name: str, mirror: str | None = None) -> dict[str, Any]:
    """Return all facts about a data set, for the terminal.

    Parameters
    ----------
    name : str
        A registered name; rows and parts after the name are ignored.
    mirror : str, optional
        Where to look, for ``where``; default ``SVMBENCH_MIRROR``.

    Returns
    -------
    card : dict
        ``dataset``, ``what``, ``task``, ``rows``, ``features``, ``counts`` (rows of each class;
        empty if they were never seen), ``test rows``, ``test counts``, ``density``, ``where``
        (:func:`svmbench.data.status`), ``papers`` (for each, the printed counts and their agreement
        with the data), ``derivation``, ``notes``, ``files``, ``licence``, ``citation`` and
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


def file_card(
    path: str,
    label_column: str | None = None,
    text: str | None = None,
    impute: bool = False,
    form: frames.TableForm | None = None,
) -> dict[str, Any]:
    """Return the facts about a user's file or a data set of OpenML, for the terminal.

    Parameters
    ----------
    path : str
        A file, or ``openml:NUMBER``.
    label_column, text, impute
        As for :func:`svmbench.load`. Missing values of a table with a header are counted.
    form : TableForm, optional
        How the text of a table is written.

    Returns
    -------
    card : dict
        ``file``, ``rows``, ``features`` (after the encoding), ``counts`` (rows of each class),
        ``density``, ``sha256`` of the uncompressed file; for a table with a header also
        ``columns`` and ``missing values``; ``left out``, if row names were; ``dataset`` instead of
        ``file``, ``what``, ``label``, ``licence`` and ``homepage`` for a data set of OpenML.

    Raises
    ------
    DataError
        If the file can't be read.
    """
    wanted = openml.reference(path)
    told: dict[str, Any] = {}
    if wanted is None and not label_column:
        facts = load_own(path, text=text, impute=impute).facts
    else:
        table = Table(path, label_column, form=form)
        if not table.is_sparse:
            X, _ = table.columns
            missing = frames.missing_values(X)
            how_text = text or frames.DEFAULT_TEXT
            _, said = frames.encoder(X, text=how_text, impute=True, scale=False)
            told["columns"] = said[: 1 + (X.shape[1] > len(frames.numeric_columns(X)))]
            how = "filled in" if impute else "refused unless --impute is given"
            told["missing values"] = f"{missing}: {how}" if missing else "none"
            impute = impute or bool(missing)
        facts = table.dataset(text, impute=impute).facts
        if wanted is not None:
            told |= _of_openml(wanted, table.bunch)
    return {
        "file" if wanted is None else "dataset": path if wanted is None else wanted.name,
        "task": facts["task"],
        "rows": facts["n_samples"],
        "features": facts["n_features"],
        "counts": dict(zip(facts["classes"], facts["counts"], strict=True)),
        "density": f"{facts['density']:.3g}",
        **told,
        **({"left out": " and ".join(facts["left_out"])} if "left_out" in facts else {}),
        "sha256": next(iter(facts["files"].values())),
    }


def _of_openml(wanted: openml.Reference, bunch: Any) -> dict[str, Any]:
    """Return what OpenML says of a data set, as lines of its card."""
    said = bunch.details
    return {
        "what": f"{line(said.get('name', ''), 100)}, version {line(said.get('version', '?'), 20)}",
        "label": frames.listed([line(name, 100) for name in bunch.target_names]),
        "licence": line(said.get("licence") or "not stated", 100),
        "homepage": f"https://www.openml.org/d/{wanted.number}",
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
            "classes": shown_n_classes(one),
            "density": "" if one.density is None else f"{one.density:.3g}",
            "task": one.task,
            "papers": ", ".join(one.papers),
            "licence": one.licence,
            "where": prepare.status(name, mirror),
        }
        for name, one in registry().items()
    ]


def shown_n_classes(one: DatasetEntry) -> int | str:
    """Return the number of classes of an entry, or "" if it is unknown."""
    return len(one.counts) or (2 if one.task == "binary" else "")


def was_prepared(one: DatasetEntry) -> bool:
    """Return True if the data set was ever prepared; else its counts come from a publication."""
    return one.density is not None


def verification(file: SourceFile) -> str:
    """Return a description of the verification of a file."""
    if file.rebuilt and file.sha256:
        return f"sha256 known for the mirror's copy only, since {file.rebuilt}"
    if file.sha256:
        return "sha256 known"
    if file.md5:
        return "md5 of the official file known"
    return "unverified until the first fetch, which checks the counts and records the hash"


def expected(one: DatasetEntry, said: Statement) -> dict[str, Any]:
    """Return the counts of an entry as the paper counts them, with test rows or without."""
    counts = list(one.counts)
    if said.parts == "all" and one.test_counts:
        counts = [a + b for a, b in zip(one.counts, one.test_counts, strict=True)]
    return {
        "n_samples": one.n_samples + (one.n_test if said.parts == "all" else 0),
        "n_features": one.n_features,
        "counts": counts,
    }


def stated(said: Statement) -> dict[str, Any]:
    """Return the counts that a paper prints."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key in ("n_samples", "n_features", "counts")
        if (value := getattr(said, key)) is not None
    }


def printed_differences(one: DatasetEntry, said: Statement) -> list[str]:
    """Return a sentence for each printed count that differs from the data set."""
    have = expected(one, said)
    return [
        f"{key} is {have[key]}, printed as {value}"
        for key, value in stated(said).items()
        if value != have[key]
    ]


def printed_in_words(one: DatasetEntry, said: Statement) -> str:
    """Describe the paper's counts of a data set, with the reasons for differences."""
    words = []
    if said.stands_in_for:
        words.append(f"stands in for {said.stands_in_for}")
    elif said.published_as:
        words.append(f"printed as {said.published_as}")
    differ = printed_differences(one, said)
    if differ:
        words.append("; ".join(differ) + f" ({said.why})")
    elif stated(said):
        words.append(
            "counts as printed" if was_prepared(one) else "counts as printed, not seen yet"
        )
    elif said.why:
        words.append(said.why)
    return ", ".join(words) or "used without printed counts"


def derivation_in_words(one: DatasetEntry) -> list[str]:
    """Return sentences that describe the steps from the files to the data set."""
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
