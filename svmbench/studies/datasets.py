"""Data sets from words of the command line: registered names, files, OpenML's numbers, papers."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmbench.base.errors import ConfigError, DataError
from svmbench.base.paths import is_file

if TYPE_CHECKING:
    from svmbench.data.frames import TableForm

#: The options that say how a table is written, in an error message.
FORM_OPTIONS = "--sep, --encoding, --decimal, --no-header, --drop and --na"


def dataset_entry(
    dataset: str,
    label: str | None = None,
    text: str | None = None,
    impute: bool = False,
    form: TableForm | None = None,
) -> dict[str, Any]:
    """Return a data set as an entry of a config: name, file or number, with label and encoding.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown name, and for options of tables if the data set is no table.
    """
    from svmbench.data import openml, parse_name
    from svmbench.data.frames import DEFAULT_TEXT

    if reference := openml.reference(dataset):
        if form:
            raise ConfigError(f"{FORM_OPTIONS} are options for files")
        options = {
            "sha256": reference.sha256,
            "label_column": label,
            "text": text,
            "impute": impute,
        }
        return {
            "openml": reference.number,
            **{key: value for key, value in options.items() if value},
        }
    if (text or impute) and not label:
        raise ConfigError(
            "--text and --impute are options for a table with a header; --label is missing"
        )
    if form and not label:
        raise ConfigError(f"{FORM_OPTIONS} are options for a table; --label is missing")
    if not is_file(dataset):
        parse_name(dataset)
        if label:
            raise ConfigError(
                f"--label is an option for a table, and {dataset} is a registered data set"
            )
        return {"name": dataset}
    if not label:
        return {"file": dataset}
    entry = {"file": dataset, "label_column": label, "text": text or DEFAULT_TEXT}
    return {**entry, "impute": True} if impute else entry


@contextlib.contextmanager
def written_plainly(
    entries: list[dict[str, Any]], form: TableForm | None
) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries, with copies of the tables in the form that configs read.

    The copies have the names of the tables, and are deleted at the end.
    """
    from svmbench.data import frames, userfile

    if form is None:
        yield entries
        return
    with tempfile.TemporaryDirectory(prefix="svmbench-tables-") as folder:
        copied = []
        for number, entry in enumerate(entries):
            if "file" not in entry:
                copied.append(entry)
                continue
            path, target = Path(entry["file"]), Path(folder, f"{number}.csv")
            changes = frames.write_plainly(path, entry["label_column"], form, target)
            userfile.warn_of(path.name, changes)
            copied.append({"name": entry["file"], **entry, "file": str(target)})
        yield copied


def race_entries(
    names: Sequence[str],
    label: str | None = None,
    text: str | None = None,
    impute: bool = False,
    form: TableForm | None = None,
) -> list[dict[str, Any]]:
    """Return an entry of a config for each data set of a race.

    Parameters
    ----------
    names : sequence of str
        Registered names, files, and ``openml:NUMBER``.
    label : str, optional
        The column of classes of the files; of data sets of OpenML if there are no files.
    text : str, optional
        The encoding of columns of words, of files and of data sets of OpenML.
    impute : bool, default False
        True to fill in missing values of files and of data sets of OpenML.
    form : TableForm, optional
        The form of the files, such as their separator.

    Raises
    ------
    svmbench.base.errors.ConfigError
        For an unknown name, and for options of tables without a table.
    """
    from svmbench.data import openml

    of_openml = [name for name in names if openml.reference(name)]
    files = [name for name in names if name not in of_openml and is_file(name)]
    labelled = files or of_openml  # a label of files doesn't fit OpenML's data sets
    if not labelled and (label or text or impute or form):
        raise ConfigError(
            "--label, --text, --impute and the options on the form of a table are for tables, but"
            " no -d names a file or a data set of OpenML"
        )
    return with_distinct_names(
        [
            dataset_entry(
                name,
                label if name in labelled else None,
                text,
                impute,
                # Without files, dataset_entry refuses the form with its own message.
                form if name in files or not files else None,
            )
            if name in files or name in of_openml
            else dataset_entry(name)
            for name in names
        ]
    )


def with_distinct_names(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries; files with equal names are named by their given paths."""
    names = [Path(entry["file"]).name for entry in entries if "file" in entry]
    return [
        {**entry, "name": entry["file"]}
        if "file" in entry and names.count(Path(entry["file"]).name) > 1
        else entry
        for entry in entries
    ]


def training_rows(
    dataset: str, label: str | None, mirror: str | None, form: TableForm | None
) -> tuple[Any, Any]:
    """Return the rows of a registered data set or a file, with the labels that the file has."""
    import numpy as np

    from svmbench import data
    from svmbench.data.userfile import Table

    if form and not (label and is_file(dataset)):
        raise ConfigError(f"{FORM_OPTIONS} are options for a file with a --label")
    if form:
        loaded = Table(dataset, label, form=form).dataset()
    elif is_file(dataset):
        loaded = data.load_file(dataset, label_column=label)
        if n_columns := loaded.facts.get("n_columns"):
            raise DataError(
                f"{dataset} has {n_columns:,} columns, most of them without a value; number the"
                " columns of the file and of the model from 1 on without gaps"
            )
    else:
        data.parse_name(dataset)
        data.ensure(dataset, mirror=mirror)
        loaded = data.load(dataset)
    names = np.array(loaded.facts["classes"])
    codes = np.unique(loaded.y)
    return loaded.X, names[np.searchsorted(codes, loaded.y)]


def datasets_named(names: Sequence[str], *, all_: bool = False) -> list[str]:
    """Return the data sets that some names stand for, each once.

    Parameters
    ----------
    names : sequence of str
        Names of data sets, and ``@KEY`` for all data sets of a paper.
    all_ : bool, default False
        True for every registered data set.

    Raises
    ------
    svmbench.base.errors.ConfigError
        Without any name.
    svmbench.base.errors.UnknownNameError
        For a data set that is not registered.
    """
    from svmbench import data

    if all_:
        return data.names()
    if not names:
        raise ConfigError("name a data set, @PAPER, or --all ('svmbench list datasets' shows them)")
    wanted: list[str] = []
    for name in names:
        wanted += names_with_stand_ins(name[1:]) if name.startswith("@") else [name]
    for name in wanted:
        data.parse_name(name)
    return list(dict.fromkeys(wanted))


def names_with_stand_ins(paper: str) -> list[str]:
    """Return a paper's data sets, then the stand-ins of its configs."""
    from svmbench import data
    from svmbench.base.paper_folders import papers
    from svmbench.experiment.config.find import find_config
    from svmbench.experiment.config.loader import load_config

    names = list(data.names_of_paper(paper))
    for name in papers()[paper].configs:
        try:
            config = load_config(find_config(name))
        except ConfigError:  # the paper doesn't ship, and its config is not here
            continue
        specs = [spec for block in config.blocks for spec in config.datasets_of(block)]
        names += [data.parse_name(spec.name).base for spec in specs if not spec.is_own]
    return list(dict.fromkeys(names))
