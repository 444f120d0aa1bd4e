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
    dataset = entry(parse_name(name).base)
    return {
        "dataset": dataset.name,
        "what": dataset.title,
        "task": dataset.task,
        "rows": dataset.n_samples,
        "features": dataset.n_features,
        "counts": list(dataset.counts),
        "test rows": dataset.n_test,
        "test counts": list(dataset.test_counts),
        "density": dataset.density,
        "where": prepare.status(dataset.name, mirror),
        "papers": {
            paper: printed_in_words(dataset, statement)
            for paper, statement in dataset.papers.items()
        },
        "derivation": " ".join(derivation_in_words(dataset)),
        "notes": " ".join(dataset.notes),
        "files": [f"{file.name} ({verification(file)})" for file in dataset.files],
        "urls": [shown_address(file.url) for file in dataset.files if file.url],
        "licence": dataset.licence,
        "citation": dataset.citation,
        "homepage": dataset.homepage,
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
        ``columns`` and ``missing values``; ``read as``, if numbers are texts such as 12%;
        ``left out``, if row names were; ``dataset`` instead of
        ``file``, ``what``, ``label``, ``licence`` and ``homepage`` for a data set of OpenML.

    Raises
    ------
    DataError
        If the file can't be read.
    """
    wanted = openml.reference(path)
    further: dict[str, Any] = {}
    if wanted is None and not label_column:
        facts = load_own(path, text=text, impute=impute).facts
    else:
        table = Table(path, label_column, form=form)
        if not table.is_sparse:
            X, _ = table.columns
            missing = frames.missing_values(X)
            how_text = text or frames.DEFAULT_TEXT
            _, steps = frames.encoder(X, text=how_text, impute=True, scale=False)
            further["columns"] = steps[: 1 + (X.shape[1] > len(frames.numeric_columns(X)))]
            treatment = "filled in" if impute else "refused unless --impute is given"
            further["missing values"] = f"{missing}: {treatment}" if missing else "none"
            impute = impute or bool(missing)
        facts = table.dataset(text, impute=impute).facts
        if wanted is not None:
            further |= _of_openml(wanted, table.bunch)
    return {
        "file" if wanted is None else "dataset": path if wanted is None else wanted.name,
        "task": facts["task"],
        "rows": facts["n_samples"],
        "features": facts["n_features"],
        "counts": dict(zip(facts["classes"], facts["counts"], strict=True)),
        "density": f"{facts['density']:.3g}",
        **further,
        **({"read as": "; ".join(facts["read_as"])} if "read_as" in facts else {}),
        **({"left out": " and ".join(facts["left_out"])} if "left_out" in facts else {}),
        "sha256": next(iter(facts["files"].values())),
    }


def _of_openml(wanted: openml.Reference, bunch: Any) -> dict[str, Any]:
    """Return OpenML's facts about a data set, as lines of its card."""
    about = bunch.details
    return {
        "what": (
            f"{line(about.get('name', ''), 100)}, version {line(about.get('version', '?'), 20)}"
        ),
        "label": frames.listed([line(name, 100) for name in bunch.target_names]),
        "licence": line(about.get("licence") or "not stated", 100),
        "homepage": f"https://www.openml.org/d/{wanted.number}",
    }


def list_datasets(mirror: str | None = None) -> list[dict[str, Any]]:
    """Return one line of a list for each registered data set, for ``svmbench list datasets``.

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
            "rows": dataset.n_samples,
            "test": dataset.n_test,
            "features": dataset.n_features,
            "classes": shown_n_classes(dataset),
            "density": "" if dataset.density is None else f"{dataset.density:.3g}",
            "task": dataset.task,
            "papers": ", ".join(dataset.papers),
            "licence": dataset.licence,
            "where": prepare.status(name, mirror),
        }
        for name, dataset in registry().items()
    ]


def shown_n_classes(dataset: DatasetEntry) -> int | str:
    """Return the number of classes of an entry, or "" if it is unknown."""
    return len(dataset.counts) or (2 if dataset.task == "binary" else "")


def was_prepared(dataset: DatasetEntry) -> bool:
    """Return True if the data set was ever prepared; else its counts come from a publication."""
    return dataset.density is not None


def verification(file: SourceFile) -> str:
    """Return a description of the verification of a file."""
    if file.rebuilt and file.sha256:
        return f"sha256 known for the mirror's copy only, since {file.rebuilt}"
    if file.sha256:
        return "sha256 known"
    if file.md5:
        return "md5 of the official file known"
    return "unverified until the first fetch, which checks the counts and records the hash"


def expected(dataset: DatasetEntry, statement: Statement) -> dict[str, Any]:
    """Return the counts of an entry as the paper counts them, with test rows or without."""
    counts = list(dataset.counts)
    if statement.parts == "all" and dataset.test_counts:
        counts = [a + b for a, b in zip(dataset.counts, dataset.test_counts, strict=True)]
    return {
        "n_samples": dataset.n_samples + (dataset.n_test if statement.parts == "all" else 0),
        "n_features": dataset.n_features,
        "counts": counts,
    }


def stated(statement: Statement) -> dict[str, Any]:
    """Return the counts that a paper prints."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key in ("n_samples", "n_features", "counts")
        if (value := getattr(statement, key)) is not None
    }


def printed_differences(dataset: DatasetEntry, statement: Statement) -> list[str]:
    """Return a sentence for each printed count that differs from the data set."""
    counts = expected(dataset, statement)
    return [
        f"{key} is {counts[key]}, printed as {value}"
        for key, value in stated(statement).items()
        if value != counts[key]
    ]


def printed_in_words(dataset: DatasetEntry, statement: Statement) -> str:
    """Describe the paper's counts of a data set, with the reasons for differences."""
    words = []
    if statement.stands_in_for:
        words.append(f"stands in for {statement.stands_in_for}")
    elif statement.published_as:
        words.append(f"printed as {statement.published_as}")
    differ = printed_differences(dataset, statement)
    if differ:
        words.append("; ".join(differ) + f" ({statement.why})")
    elif stated(statement):
        words.append(
            "counts as printed" if was_prepared(dataset) else "counts as printed, not seen yet"
        )
    elif statement.why:
        words.append(statement.why)
    return ", ".join(words) or "used without printed counts"


def derivation_in_words(dataset: DatasetEntry) -> list[str]:
    """Return sentences that describe the steps from the files to the data set."""
    if dataset.builtin:
        arguments = ", ".join(f"{key} = {value}" for key, value in dataset.parameters.items())
        sentences = [f"Made by {dataset.builtin}({arguments})."]
    else:
        parts = {
            part: [f.name for f in dataset.files if f.part == part] for part in ("train", "test")
        }
        sentences = [f"Training rows from {' and '.join(parts['train'])}."]
        if parts["test"]:
            sentences.append(f"Test rows from {' and '.join(parts['test'])}.")
        sentences += _reading_in_words(dataset.reading)
    return sentences + _steps_in_words(dataset.derivation)


def _reading_in_words(reading: Reading) -> list[str]:
    sentences = []
    if reading.drop:
        sentences.append(f"Left out: column {', '.join(map(str, reading.drop))}.")
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
        sentences.append(f"Column {', '.join(columns)}: {words}.")
    if reading.missing is not None:
        treatment = {
            "refuse": "refused",
            "drop": "a reason to leave the row out",
            "mean": "replaced by the mean of the column's training values",
            "category": "a word like any other",
        }[reading.incomplete]
        sentences.append(f"A missing value ({reading.missing}) is {treatment}.")
    if reading.sort_indices:
        sentences.append("Indices out of order are sorted.")
    return sentences


def _steps_in_words(steps: Derivation) -> list[str]:
    sentences = []
    if steps.rows is not None:
        sentences.append(f"Rows {steps.rows[0]:,} up to {steps.rows[1]:,} kept.")
    if steps.select:
        sentences.append(f"Classes kept: {', '.join(steps.select)}.")
    if steps.select_pair_of is not None:
        sentences.append(
            f"The pair of classes kept that has {steps.select_pair_of:,} rows together."
        )
    if steps.drop_features:
        sentences.append(f"Features left out: {', '.join(map(str, steps.drop_features))}.")
    if steps.positive:
        sentences.append(f"Positive: {' or '.join(steps.positive)}; negative: every other class.")
    if steps.novelty is not None:
        sentences.append(
            f"Normal (+1): {' or '.join(steps.novelty.normal)}; abnormal (−1): every other class, "
            f"thinned to {steps.novelty.ratio:g} rows for each normal one "
            f"(seed {steps.novelty.seed})."
        )
    return sentences
