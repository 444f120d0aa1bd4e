"""Keep results as reference: compressed records, with tables and plots made from them.

A kept folder is a run folder with its plan, its environments and its records as ``runs.jsonl.xz``:
the newest record of each cell, in the order of the plan. :func:`rebuild_folder` makes the tables
and plots beside them from the records; :func:`rebuild_differences` compares them with the records.
A folder without records can't be rebuilt, and its ``tables.md`` says so.
"""

from __future__ import annotations

import json
import lzma
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svmbench.base.errors import ResultsError
from svmbench.base.files import (
    copy,
    exists_in_results,
    make_folder,
    read_bytes,
    read_text,
    replaced,
    write_text,
)
from svmbench.report.output.builder import build
from svmbench.report.reading import newest
from svmbench.report.reading.folders import BESIDE_RECORDS
from svmbench.report.reading.newest import COMPRESSED_RECORDS, RECORDS
from svmbench.report.reading.records import read_run, result_lines
from svmbench.schema.record import Record

#: The files of a run folder from which tables and plots are made, besides environments and
#: artifacts.
_SOURCES = ("plan.json", COMPRESSED_RECORDS)
_ARTIFACTS = "artifacts"
#: In an SVG: a number with decimals, and a name that matplotlib makes of a hash.
_NUMBER = re.compile(rb"(?<!\d)\d+\.\d+")
_HASHED_NAME = re.compile(rb"\b[a-zA-Z][0-9a-f]{10}\b")
#: Largest difference of a number (points) between SVGs drawn on two CPUs. They have six decimals.
_LAST_BITS = 2e-6
#: The note in the ``tables.md`` of a folder without records.
NOT_KEPT = (
    "**Records not kept**: these tables and plots are by an earlier version, "
    "and can't be made again from what lies here."
)


def keep_run(run: Path, target: Path) -> Path:
    """Keep a finished run in `target`, which is replaced in one step; return `target`.

    Superseded records, records of an earlier plan and the finished points of searches are left out,
    because no table needs them. Tables and plots are made from the kept records.

    Raises
    ------
    ResultsError
        If `run` isn't a finished run folder, or can't be kept.
    """
    if not (run / "tables.md").is_file():
        raise ResultsError(f"{run} is unfinished: it has no tables.md; run its config to the end")
    content = read_run(run)
    used = {cell.environment for cell in content.cells}
    try:
        with replaced(target) as made:
            # Copy the plan unchanged: it may have fields that this version doesn't know.
            copy(run / "plan.json", made / "plan.json")
            for name in sorted(content.environments.keys() & used):
                file = f"environment-{name}.json"
                copy(run / file, made / file)
            (made / COMPRESSED_RECORDS).write_bytes(compress_records(result_lines(run)))
            _copy_artifacts(run, made, {f"{cell.key}.npz" for cell in content.cells})
            build(made)
    except OSError as error:
        raise _cant("keep it in", run, target, error) from error
    return target


def decompress(folder: Path, target: Path, *, without: Collection[str] = ()) -> Path:
    """Copy a kept folder to a run folder, whose results other runs may reuse; return it.

    Parameters
    ----------
    folder : Path
        A folder with records, compressed or not.
    target : Path
        A new folder.
    without : collection of str
        Keys of cells whose results are left out.

    Raises
    ------
    ResultsError
        If it can't be read or written.
    """
    try:
        target.mkdir(parents=True)
        _copy_sources(folder, target, "plan.json")
    except OSError as error:
        raise _cant("copy it to", folder, target, error) from error
    lines = (json.dumps(line) for line in result_lines(folder) if line["key"] not in without)
    write_text(target / RECORDS, (f"{line}\n" for line in lines))
    return target


def compress_records(records: Iterable[Record]) -> bytes:
    """Compress records as lines; the same records give the same bytes.

    Raises
    ------
    ResultsError
        If there are more records than can be read back.
    """
    compressor = lzma.LZMACompressor(preset=9 | lzma.PRESET_EXTREME)
    pieces, size = [], 0
    for record in records:
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        line = f"{text}\n".encode()
        size += len(line)
        pieces.append(compressor.compress(line))
    number = len(pieces)
    if size > newest.MAX_DECOMPRESSED_RECORDS_BYTES or number > newest.MAX_COMPRESSED_RECORDS_LINES:
        raise ResultsError(
            f"can't pack {number:,} records of {size:,} bytes: at most"
            f" {newest.MAX_COMPRESSED_RECORDS_LINES:,} records of"
            f" {newest.MAX_DECOMPRESSED_RECORDS_BYTES:,} bytes can be read back;"
            " keep its blocks as separate runs"
        )
    return b"".join([*pieces, compressor.flush()])


def folders(root: Path) -> list[Path]:
    """Return the folders of kept tables below `root`, in order, without run folders."""
    candidates = (path.parent for path in root.rglob("tables.md"))
    return sorted(folder for folder in candidates if not (folder / RECORDS).exists())


def has_records(folder: Path) -> bool:
    """Return True if a kept folder has the records for its tables and plots."""
    return all((folder / name).is_file() for name in _SOURCES)


def rebuild_folder(folder: Path) -> list[str]:
    """Rebuild the tables and plots of a kept folder; return a line for each changed file.

    Raises
    ------
    ResultsError
        If it can't be read or written.
    """
    differences = rebuild_differences(folder)
    if not differences:
        return []
    if not has_records(folder):
        path = folder / "tables.md"
        with _file_errors(folder):
            head, _, rest = read_text(path).partition("\n\n")
        write_text(path, f"{head}\n\n{NOT_KEPT}\n\n{rest}")
        return differences
    with _file_errors(folder), replaced(folder) as made:
        _copy_sources(folder, made)
        build(made)
    return differences


def rebuild_differences(folder: Path) -> list[str]:
    """Compare a kept folder with the tables and plots of its records; return the differences.

    Text is compared byte for byte. SVGs drawn by the same version of matplotlib are compared up to
    the last bits of numbers, which differ between CPUs. Of other SVGs and of PNGs, only the
    existence is checked.

    Raises
    ------
    ResultsError
        If it can't be read.
    """
    if not has_records(folder):
        with _file_errors(folder):
            text = read_text(folder / "tables.md")
        return [] if NOT_KEPT in text else [f"{folder}/tables.md: not marked: records not kept"]
    with _file_errors(folder), tempfile.TemporaryDirectory(prefix="svmbench-kept-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        _copy_sources(folder, made)
        build(made, endings=("svg",))
        for drawn in made.glob("*.svg"):
            drawn.with_suffix(".png").touch()  # saves half of the time: PNGs are not compared
        names = {_name(path, top) for top in (folder, made) for path in _files(top)}
        return [
            f"{folder / name}: {problem}"
            for name in sorted(names)
            if (problem := _difference(folder / name, made / name))
        ]


def other_versions(folder: Path) -> list[str]:
    """Return the other versions of matplotlib that drew SVGs of the folder."""
    from importlib.metadata import version

    if not has_records(folder):
        return []
    used = {drawn_by(read_bytes(path)) or "unknown" for path in folder.glob("*.svg")}
    return sorted(used - {version("matplotlib")})


def drawn_by(svg: bytes) -> str:
    """Return the version of matplotlib that drew an SVG, or an empty text."""
    match = re.search(rb"Matplotlib v([\w.+]+)", svg[:4096])
    return match[1].decode() if match else ""


def _difference(original: Path, made: Path) -> str:
    if not made.exists():
        return "the records don't make it"
    if not original.exists():
        return "is missing"
    if original.suffix == ".png":
        return ""
    before, after = read_bytes(original), read_bytes(made)
    is_equal = before == after
    if original.suffix == ".svg" and not is_equal:
        is_equal = drawn_by(before) != drawn_by(after) or _is_same_drawing(before, after)
    return "" if is_equal else "differs from what the records make"


def _is_same_drawing(first: bytes, second: bytes) -> bool:
    """Return True if two SVGs differ in the names of parts and in last bits of numbers alone.

    Matplotlib names a clip path by a hash of its coordinates, last bits included.
    """
    texts = [_NUMBER.split(_with_plain_names(svg)) for svg in (first, second)]
    numbers = [[float(number) for number in _NUMBER.findall(svg)] for svg in (first, second)]
    return texts[0] == texts[1] and all(
        abs(a - b) <= _LAST_BITS for a, b in zip(*numbers, strict=True)
    )


def _with_plain_names(svg: bytes) -> bytes:
    """Return an SVG with the names that matplotlib hashes in the order in which they occur."""
    names: dict[bytes, bytes] = {}
    return _HASHED_NAME.sub(lambda match: names.setdefault(match[0], b"name%d" % len(names)), svg)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _name(path: Path, top: Path) -> str:
    return path.relative_to(top).as_posix()


def _copy_sources(folder: Path, made: Path, *names: str) -> None:
    """Copy the files from which tables and plots of a folder are made."""
    for name in names or _SOURCES:
        copy(folder / name, made / name)
    beside = [folder / name for name in BESIDE_RECORDS if exists_in_results(folder / name)]
    for path in (*folder.glob("environment-*.json"), *beside):
        copy(path, made / path.name)
    if exists_in_results(folder / _ARTIFACTS):
        _copy_artifacts(folder, made, {path.name for path in (folder / _ARTIFACTS).iterdir()})


def _copy_artifacts(folder: Path, made: Path, names: Collection[str]) -> None:
    """Copy the existing arrays of a folder."""
    for name in sorted(names):
        source = folder / _ARTIFACTS / name
        if exists_in_results(source):
            copy(source, make_folder(made / _ARTIFACTS) / name, within=folder)


@contextmanager
def _file_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the file system into one sentence that names the file."""
    try:
        yield
    except OSError as error:
        path = error.filename or folder
        raise ResultsError(f"can't use {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ResultsError(f"can't use the files in {folder}: {error}") from error


def _cant(what: str, run: Path, target: Path, error: OSError) -> ResultsError:
    of = f"{error.filename}: " if error.filename else ""
    return ResultsError(f"{run}: can't {what} {target}: {of}{error.strerror or error}")
