"""Show a run: its progress, its age, its tables, plots and files."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from svmbench.base.files import (
    MAX_STREAMED_BYTES,
    copy,
    exists_in_results,
    read_bytes,
    read_text,
    write_bytes,
    write_text,
)
from svmbench.base.paper_folders import papers
from svmbench.report.output.builder import Content, exponents
from svmbench.report.plots.drawing import code_digest, draw_plot, drawing_key
from svmbench.report.plots.kinds import kind_of
from svmbench.report.plots.plot_data import PlotData, exponents_csv
from svmbench.report.reading.folders import BESIDE_RECORDS, origin_of
from svmbench.report.reading.newest import COMPRESSED_RECORDS, RECORDS
from svmbench.report.reading.provenance import describe_environment
from svmbench.report.reading.records import Run, used_environments
from svmbench.report.reading.wording import status_word
from svmbench.report.tables.grids import TableGrid, grid_of
from svmbench.report.tables.layout import wide_csv
from svmbench.report.tables.tidy import tidy_lines
from svmbench.schema.rechecks import Ages
from svmbench.site.ranks import RankingView, show_rankings

#: Largest number of sentences about changes of one run on a page.
_MAX_CHANGES = 6
#: A path of an SVG, and the digits of a coordinate beyond a hundredth.
_PATH, _FINER = re.compile(rb' d="[^"]*"'), re.compile(rb"(?<=\.\d\d)\d+")
#: The text of an entry whose cell has no record.
_NOT_RUN = status_word("not run")
#: Statuses of cells that don't make a run unfinished.
_SETTLED = {"ok", "unavailable", "skipped", "other environment"}


@dataclass(frozen=True)
class Picture:
    """A plot: its file, its alternative text, and the sentences beside it."""

    title: str
    file: str
    alt: str
    sentences: list[str]


@dataclass(frozen=True)
class RunView:
    """A run for a page.

    Attributes
    ----------
    slug, title, name, profile, profile_note : str
        Anchor on its page; title, config and profile.
    command : str
        Command that makes the run.
    done, planned : int
        Number of cells with a result, and of all cells.
    left : str
        Statuses of the other cells, in a few words.
    is_unfinished : bool
        Whether cells are left that could still have a result.
    word, age : str
        ``fresh``, ``rechecked``, ``changed`` or ``older``, and the same with numbers; empty if
        ages were not looked up.
    origin : str
        ``ours``, ``confirmed here`` or ``from elsewhere``.
    changed : tuple of str
        The cells that disagreed when they were run again, and how.
    environments, notes : list of str
        Environments of the run; irregularities of its records.
    grids : list of TableGrid
    rankings : dict of str to list of RankingView
        Rankings by the name of the table.
    pictures : list of Picture
    undrawn : list of (str, str)
        Plots without points, with reasons.
    files : list of (str, str)
        Description and path of each file.
    """

    slug: str
    title: str
    name: str
    profile: str
    profile_note: str
    command: str
    done: int
    planned: int
    left: str
    is_unfinished: bool
    word: str
    age: str
    origin: str
    changed: tuple[str, ...]
    environments: list[str]
    notes: list[str]
    grids: list[TableGrid]
    rankings: dict[str, list[RankingView]]
    pictures: list[Picture]
    undrawn: list[tuple[str, str]]
    files: list[tuple[str, str]]


def show_run(
    content: Content, slug: str, site: Path, known: Ages | None, earlier: Path | None = None
) -> RunView:
    """Write a run's files into a site and return what its page shows.

    A plot and the table of every number are taken from the earlier site if their data and the code
    that makes them are the same.

    Parameters
    ----------
    content : Content
    slug : str
        The name of its folder below ``data/``.
    site : Path
        The folder of the site that is being made.
    known : Ages, optional
        The ages of its results; None if they were not looked up.
    earlier : Path, optional
        The folder of the site that this one replaces.
    """
    run = content.run
    folder = site / "data" / slug
    folder.mkdir(parents=True)
    files = _write_files(content, folder, earlier / "data" / slug if earlier else None)
    pictures, undrawn = [], []
    for plot in content.plots:
        if not plot.panels:
            undrawn.append((plot.spec.heading, plot.gaps))
            continue
        file = f"{plot.spec.name}.svg"
        earlier_file = earlier / "data" / slug / file if earlier else None
        (folder / file).write_bytes(_picture(run, plot, earlier_file))
        pictures.append(
            Picture(plot.spec.heading, f"data/{slug}/{file}", _alt(plot), _sentences(plot))
        )
        if kind_of(plot.spec).fits:
            path = folder / f"{plot.spec.name}-exponents.csv"
            path.write_text(exponents_csv(plot), encoding="utf-8")
            files.append((f"exponents of {plot.spec.heading} (CSV)", path.name))
    counts = Counter(cell.status for cell in run.cells)
    return RunView(
        slug=slug,
        title=run.title,
        name=run.name,
        profile=run.profile or "none",
        profile_note=run.profile_note,
        command=f"svmbench run {run.name} --profile {run.profile or 'quick'}",
        done=counts["ok"],
        planned=len(run.cells),
        left=_left(counts),
        is_unfinished=any(status not in _SETTLED for status in counts),
        word=known.word if known else "",
        age=known.sentence() if known else "",
        origin=origin_of(run.path, known),
        changed=_changed(known) if known else (),
        environments=[describe_environment(run, name) for name in used_environments(run.cells)],
        notes=list(run.notes),
        grids=[_with_results(grid_of(run, table)) for table in content.tables],
        rankings={t.spec.name: show_rankings(run, t, slug, site) for t in content.tables},
        pictures=pictures,
        undrawn=undrawn,
        files=[(what, f"data/{slug}/{name}") for what, name in files],
    )


def _left(counts: Counter[str]) -> str:
    """Return the number of cells of each status but "ok", and what unavailable cells count."""
    texts = []
    for status, number in sorted(counts.items()):
        if status == "unavailable":
            texts.append(
                f"{number} {status_word(status)}, one for each block and solver of a missing set"
            )
        elif status != "ok":
            texts.append(f"{number} {status_word(status)}")
    return ", ".join(texts)


def _with_results(grid: TableGrid) -> TableGrid:
    """Leave out the rows of a table without any result, and say how many they are."""
    rows = [row for row in grid.rows if any(entry.text.value != _NOT_RUN for entry in row[1])]
    notes = list(grid.notes)
    if n_left := len(grid.rows) - len(rows):
        shown = "1 row without any result is" if n_left == 1 else f"{n_left} rows without any"
        shown += "" if n_left == 1 else " result are"
        notes.append((f"{shown} left out; the missing cells below and the CSV name them.",))
    if any(entry.text.value == _NOT_RUN for _, entries in rows for entry in entries):
        notes.append((f"A dot (·) marks a cell that was {_NOT_RUN}.",))
    return replace(grid, rows=rows, notes=notes)


def _picture(run: Run, plot: PlotData, earlier: Path | None) -> bytes:
    """Return the SVG of a plot; its last line says what it was drawn from."""
    ending = f"<!-- drawn from {drawing_key(run, plot)} -->\n".encode()
    if earlier is not None and exists_in_results(earlier):
        content = read_bytes(earlier)
        if content.endswith(ending):
            return content
    return lighter(draw_plot(run, plot, endings=("svg",))["svg"]) + ending


def lighter(svg: bytes) -> bytes:
    """Cut the coordinates of the paths in an SVG to a hundredth of a point."""
    return _PATH.sub(lambda match: _FINER.sub(b"", match[0]), svg)


def _write_files(content: Content, folder: Path, earlier: Path | None) -> list[tuple[str, str]]:
    """Write tables, plan, records and environments; return their descriptions and names."""
    run = content.run
    _write_or_reuse_table(content, folder, earlier)
    files = [("every number (CSV)", "table.csv")]
    for table in content.tables:
        name = f"{table.spec.name}.csv"
        (folder / name).write_text(wide_csv(run, table), encoding="utf-8")
        files.append((f"{table.spec.heading} (CSV)", name))
    records = next(
        (name for name in (RECORDS, COMPRESSED_RECORDS) if exists_in_results(run.path / name)), None
    )
    sources = [("plan (JSON)", "plan.json")]
    sources += [("records (one JSON line each)", records)] if records else []
    sources += [(what, name) for name, what in BESIDE_RECORDS.items()]
    sources += [
        (f"environment {name} (JSON)", f"environment-{name}.json")
        for name in used_environments(run.cells)
    ]
    for what, name in sources:
        if exists_in_results(run.path / name):
            copy(run.path / name, folder / name)
            files.append((what, name))
    return files


def _write_or_reuse_table(content: Content, folder: Path, earlier: Path | None) -> None:
    """Write ``table.csv``, or copy it from an earlier site if its inputs and bytes are unchanged.

    ``table.key`` holds both hashes, since a CSV has no comments.
    """
    inputs_digest = _inputs_digest(content.run)
    if earlier is not None:
        try:
            key = read_text(earlier / "table.key")
            table = read_bytes(earlier / "table.csv")
        except (OSError, UnicodeDecodeError):
            key, table = "", b""
        if key == _table_key(inputs_digest, table):
            write_bytes(folder / "table.csv", table)
            write_text(folder / "table.key", key)
            return
    text = "".join(tidy_lines(content.run, content.tables)).encode()
    write_bytes(folder / "table.csv", text)
    write_text(folder / "table.key", _table_key(inputs_digest, text))


def _table_key(inputs_digest: str, table: bytes) -> str:
    return f"{inputs_digest} {hashlib.sha256(table).hexdigest()}\n"


def _inputs_digest(run: Run) -> str:
    """Return a sha256 of a run's files, of the printed numbers, and of the code of tables."""
    paths = [run.path / name for name in ("plan.json", RECORDS, COMPRESSED_RECORDS)]
    paths += sorted(run.path.glob("environment-*.json"))
    printed = _printed_digest(tuple(paper.folder for paper in papers().values()))
    digest = hashlib.sha256(f"{code_digest()} {printed}".encode())
    for path in filter(exists_in_results, paths):
        content = read_bytes(path, MAX_STREAMED_BYTES)
        digest.update(f"{path.name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


@cache
def _printed_digest(folders: tuple[Path, ...]) -> str:
    """Return a sha256 of the printed numbers and the facts of some papers."""
    digest = hashlib.sha256()
    for path in sorted(
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".csv", ".toml"}
    ):
        digest.update(read_bytes(path))
    return digest.hexdigest()


def _changed(known: Ages) -> tuple[str, ...]:
    """Return the cells that disagreed, in sentences without their ends."""
    lines = list(known.changed.values())
    if len(lines) > _MAX_CHANGES:
        lines = [*lines[:_MAX_CHANGES], f"and {len(lines) - _MAX_CHANGES} more"]
    return tuple(lines)


def _alt(plot: PlotData) -> str:
    """Return the alternative text of a plot."""
    names = list(
        dict.fromkeys(
            series.name for p in plot.panels for series in p.series if series.points or p.grid
        )
    )
    panels = [panel.title for panel in plot.panels if panel.title]
    parts = [f"Plot: {plot.y_label} against {plot.x_label}" if plot.y_label else "Plot"]
    if names:
        parts.append(f"of {', '.join(names)}")
    if len(panels) > 1:
        parts.append(f"in {len(panels)} panels, {', '.join(panels)}")
    return " ".join(parts) + "; its numbers are in the tables and the CSV."


def _sentences(plot: PlotData) -> list[str]:
    fits = exponents(plot) if kind_of(plot.spec).fits else []
    return [*fits, *(f"Crossing: {sentence}." for sentence in plot.crossings)]
