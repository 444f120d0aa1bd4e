"""Read the registry of data sets: files, derivations, expected counts and sources.

``datasets.toml`` has one table for each data set. An entry may be ``based_on`` another entry: it
inherits the fields that it doesn't set (``mnist-1-vs-7`` is ``mnist`` with two classes kept).
All entries are checked when the registry is read; an error names the data set and the field.
``SVMBENCH_DATASETS`` names further files with entries of the same form.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from svmbench.base import paper_folders, paths
from svmbench.base.errors import ConfigError, UnknownNameError
from svmbench.base.toml_source import count_values, read_toml
from svmbench.base.validation_messages import none_of, sentence
from svmbench.data.entries import DatasetEntry, Statement, Strict

#: Largest number of values in all entries, with inherited values; the shipped entries have 4,500.
MAX_REGISTRY_VALUES = 100_000

#: After this many mistakes, the remaining entries are not read.
MAX_REPORTED_PROBLEMS = 500


@cache
def _read(registry_files: tuple[Path, ...]) -> dict[str, DatasetEntry]:
    """Return the entries of all files; a file may use origins and entries of earlier files."""
    raw: dict[str, Any] = {}
    origins: dict[str, Any] = {}
    entries: dict[str, DatasetEntry] = {}
    problems: list[str] = []
    n_values = 0
    for file in registry_files:
        added = _parsed(file)
        own_origins = added.pop("origin", {})
        if not _is_table_of_tables(own_origins):
            problems.append(f"{file.name}: origin: must be a table of tables")
            own_origins = {}
        origins |= own_origins
        for name in added:
            if name in raw:
                problems.append(f"{file.name}: {name}: is already registered")
            elif not isinstance(added[name], dict):
                problems.append(
                    f"{file.name}: {_shown(name)}: must be a table, not {_shown(added[name])}"
                )
        new = [name for name in added if name not in raw and isinstance(added[name], dict)]
        raw |= {name: added[name] for name in new}
        for name in new:
            try:
                resolved = _resolved(name, raw, origins)
                n_values += count_values(resolved)
                if n_values > MAX_REGISTRY_VALUES or len(problems) > MAX_REPORTED_PROBLEMS:
                    too_many = (
                        f"with this entry there are more than {MAX_REGISTRY_VALUES:,} values,"
                        " inherited values included"
                        if n_values > MAX_REGISTRY_VALUES
                        else "the remaining entries were not checked"
                    )
                    problems.append(f"{file.name}: {_shown(name)}: {too_many}")
                    break
                entries[name] = DatasetEntry.model_validate(resolved)
            except ValidationError as error:
                problems += [f"{file.name}: {message}" for message in _sentences(name, error)]
            except ConfigError as error:
                problems += [f"{file.name}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    return entries


@cache
def _stated(registry_files: tuple[Path, ...], folders: tuple[Path, ...]) -> dict[str, DatasetEntry]:
    """Return the entries of all files, with the printed counts in the papers' folders."""
    entries = dict(_read(registry_files))
    known = paper_folders.papers()
    problems = [
        f"{name}: papers: {none_of(paper, list(known))}"
        for name, dataset in entries.items()
        for paper in dataset.papers
        if paper not in known
    ]
    stated: dict[str, dict[str, Statement]] = {}
    for paper in (each for each in known.values() if each.folder in folders):
        for name, printed in paper.datasets.items():
            where = f"{paper.key}/paper.toml: datasets: {_shown(name)}"
            if name not in entries:
                if not paper.ships:  # a test checks the shipped papers
                    problems.append(f"{where}: no such data set is registered")
                continue
            try:
                stated.setdefault(name, {})[paper.key] = Statement.model_validate(dict(printed))
            except ValidationError as error:
                problems += [f"{where}: {sentence(mistake)}" for mistake in error.errors()]
    if problems:
        raise ConfigError(problems[:MAX_REPORTED_PROBLEMS])
    for name, statements in stated.items():
        papers = {**statements, **entries[name].papers}
        entries[name] = entries[name].model_copy(update={"papers": papers})
    return entries


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _sentences(name: str, error: ValidationError) -> list[str]:
    """Return a sentence for each invalid field, with its value."""
    sentences = []
    for mistake in error.errors():
        where = ".".join(_shown(part).strip("'") for part in mistake["loc"])
        entry = f"{_shown(name).strip(chr(39))}{f': {where}' if where else ''}"
        sentences.append(f"{entry}: {sentence(mistake)}")
    return sentences


def _parsed(path: Path) -> dict[str, Any]:
    """Return the content of a file, after a check that its texts are printable."""
    try:
        return read_toml(path, path.name)
    except OSError as error:
        raise ConfigError(
            f"{paths.FURTHER_REGISTRIES}: {path} can't be read: {error.strerror}"
        ) from None


def _resolved(name: str, raw: dict[str, Any], origins: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry, with those inherited from its origin and its base."""
    fields = dict(raw[name])
    base = fields.pop("based_on", None)
    if base is not None:
        if not isinstance(base, str) or base not in raw:
            raise ConfigError(f"{name}: based on the unknown entry {_shown(base)}")
        if "based_on" in raw[base]:
            raise ConfigError(f"{name}: based on {base!r}, which is itself based on another")
        inherited = _resolved(base, raw, origins)
        inherited = {k: v for k, v in inherited.items() if k not in ("papers", "name")}
    else:
        origin = fields.pop("origin", None)
        if origin is not None and (not isinstance(origin, str) or origin not in origins):
            raise ConfigError(f"{name}: origin {_shown(origin)} is not in the file's origin table")
        inherited = {} if origin is None else origins[origin]
    return {**inherited, **fields, "name": name}


def check_dataset_name(name: str) -> None:
    """Raise an error if a name selects no data set.

    Raises
    ------
    UnknownNameError
        If there is no such data set; the message suggests the most similar name.
    ConfigError
        If the parts or rows of the name don't exist.
    """
    parse_name(name)


def registry() -> dict[str, DatasetEntry]:
    """Return all entries by name: ``datasets.toml``, ``SVMBENCH_DATASETS`` and papers' folders.

    Raises
    ------
    ConfigError
        If a file has mistakes; the message has a sentence for each.
    """
    folders = tuple(paper.folder for paper in paper_folders.papers().values())
    of_papers = (folder / "datasets.toml" for folder in folders)
    files = (*paths.registry_files(), *(file for file in of_papers if file.is_file()))
    return _stated(files, folders)


def names() -> list[str]:
    """Return the names of all registered data sets, in the registry's order."""
    return list(registry())


def entry(name: str) -> DatasetEntry:
    """Return the entry of a registered name without rows or parts.

    Raises
    ------
    UnknownNameError
        If the name is unknown; the message suggests the most similar name.
    """
    known = registry()
    if name not in known:
        raise UnknownNameError("data set", name, list(known))
    return known[name]


def datasets_by_paper() -> dict[str, list[str]]:
    """Return, for each paper, the names of its data sets, in the registry's order."""
    names_by_paper: dict[str, list[str]] = {paper: [] for paper in paper_folders.papers()}
    for name, dataset in registry().items():
        for paper in dataset.papers:
            names_by_paper[paper].append(name)
    return names_by_paper


def names_of_paper(paper: str) -> list[str]:
    """Return the names of a paper's data sets.

    Raises
    ------
    UnknownNameError
        If the paper is unknown; the message suggests the most similar one.
    """
    known = datasets_by_paper()
    if paper not in known:
        raise UnknownNameError("paper", paper, list(known))
    return known[paper]


class NameParts(Strict):
    """The parts of a name: ``ijcnn1+test[:90000]`` has a base, both parts, and a range of rows."""

    base: str
    with_test: bool = False
    start: int | None = None
    stop: int | None = None

    @property
    def whole(self) -> bool:
        """True if the selection is the whole registered data set."""
        return not self.with_test and self.start is None and self.stop is None


_NAME = re.compile(
    r"(?P<base>[^\[\]+]+)(?P<test>\+test)?(\[(?P<start>\d*):(?P<stop>\d*)\])?", re.ASCII
)


def parse_name(name: str) -> NameParts:
    """Split the name of a data set into base, parts and rows.

    Parameters
    ----------
    name : str
        ``base``, ``base+test``, ``base[start:stop]`` or both together; rows count from 0.

    Raises
    ------
    ConfigError
        If the name is malformed, or if the range is empty or too large.
    UnknownNameError
        If there is no such data set.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"{name!r} is not the name of a data set; a name may end with '+test' and with "
            "rows as in 'a9a[:6414]'"
        )
    dataset = entry(match["base"])
    with_test = match["test"] is not None
    if with_test and not dataset.n_test:
        raise ConfigError(f"{name!r}: {dataset.name} has no test part")
    start = int(match["start"]) if match["start"] else None
    stop = int(match["stop"]) if match["stop"] else None
    n_rows = dataset.n_samples + (dataset.n_test if with_test else 0)
    if (stop is not None and stop > n_rows) or (start or 0) >= (n_rows if stop is None else stop):
        raise ConfigError(f"{name!r}: {dataset.name} has {n_rows:,} rows, numbered from 0")
    return NameParts(base=dataset.name, with_test=with_test, start=start, stop=stop)
