"""The results folder of a run, and its record file: a line for each finished cell or point.

Only one process writes the file. It appends whole lines and syncs each to the disk. A last line
that a power cut or a full disk left incomplete is cut off at the next start. Any other damaged
line, and any line of another schema, is skipped with a note, and its cell runs again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import lzma
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from filelock import FileLock, Timeout

from svmbench.base import files
from svmbench.base.errors import ConfigError, ResultsError
from svmbench.data import archives
from svmbench.schema.record import (
    RECORD_SCHEMA,
    CellRecord,
    Identity,
    PointRecord,
    Record,
    parse_record,
    record_lines,
    shortened,
)

RUNS = "runs.jsonl"
#: Folder of the arrays that plots need, one file for each cell.
ARTIFACTS = "artifacts"
_ENVIRONMENT = re.compile(r"[0-9a-f]+")
#: Number of bytes that are read at a time to find the end of the last whole line.
_PIECE_BYTES = 1 << 20


class RunFolder:
    """A results folder that one run writes to.

    Use it as a context manager: it holds the folder's lock while it is open.

    Parameters
    ----------
    path : Path
    config : str, optional
        The name of the run's config. Default: a folder of any config is accepted.

    Attributes
    ----------
    path : Path
    cells : dict of str to CellRecord
        The newest record of each cell key.
    points : dict of str to dict of str to PointRecord
        The recorded points of each cell key, by the point's own id.
    notes : list of str
        A sentence for each line of records that was repaired or skipped.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the folder can't be written, or another run is writing to it.
    svmbench.base.errors.ConfigError
        If the folder has the results of another config.
    """

    def __init__(self, path: Path, config: str | None = None) -> None:
        if config is not None:
            _refuse_another(path, config)
        self.path = path
        self.cells: dict[str, CellRecord] = {}
        self.points: dict[str, dict[str, PointRecord]] = {}
        self.notes: list[str] = []
        self._fd = -1
        try:
            path.mkdir(parents=True, exist_ok=True)
            files.make_folder(self.scratch)
            # Refuse a symbolic link in place of the lock file: filelock would follow it.
            os.close(files.open_to_append(path / ".lock"))
        except OSError as error:
            raise _cant_write(path, error) from error
        self._lock = FileLock(path / ".lock")

    @property
    def scratch(self) -> Path:
        """Folder for shared arrays and for the points of running cells.

        A cell's points are removed with its record, the arrays once no cell is left to run.
        """
        return self.path / ".scratch"

    def __enter__(self) -> Self:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise _in_use(self.path) from error
        except OSError as error:
            raise _cant_write(self.path, error) from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._lock.release()

    def append(self, record: Record) -> None:
        """Write one record, completely or not at all.

        Raises
        ------
        svmbench.base.errors.ResultsError
            If the disk is full or the file can't be written (earlier records stay readable), or if
            the folder or its record file was removed, renamed or replaced.
        """
        # The schema is the first field, and that of this version.
        content = {"schema": RECORD_SCHEMA} | shortened(record) | {"schema": RECORD_SCHEMA}
        line = (json.dumps(content, allow_nan=False) + "\n").encode()
        self.check()
        start = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, start)
            raise ResultsError(
                f"can't write {self.path / RUNS}: {error.strerror or error};"
                " all records so far are safe; the same command continues the run"
            ) from error
        self._remember(record)

    def check(self) -> None:
        """Check that the folder's path still leads to the record file that is open.

        Raises
        ------
        svmbench.base.errors.ResultsError
            If the folder or its record file was removed, renamed or replaced.
        """
        opened = os.fstat(self._fd)
        try:
            present = (self.path / RUNS).lstat()
        except OSError:
            present = None
        if present is None or (present.st_dev, present.st_ino) != (opened.st_dev, opened.st_ino):
            change = "is not there any more" if present is None else "is another file now"
            raise ResultsError(
                f"{self.path / RUNS} {change}: the results folder was removed, renamed or replaced"
                " during the run, which therefore stops"
            )

    def start_afresh(self) -> None:
        """Rename the record file (``runs-1.jsonl`` …) and begin an empty one."""
        if not self.cells and not self.points:
            shutil.rmtree(self.scratch / "points", ignore_errors=True)
            return
        number = 1
        while files.exists_in_results(self.path / f"runs-{number}.jsonl"):
            number += 1
        os.close(self._fd)
        (self.path / RUNS).rename(self.path / f"runs-{number}.jsonl")
        # Points that a killed run streamed without recording them belong to the renamed file.
        shutil.rmtree(self.scratch / "points", ignore_errors=True)
        self.cells.clear()
        self.points.clear()
        self._open()

    def take_over(self, source: Path, wanted: dict[str, Identity]) -> int:
        """Copy another folder's results of cells with the same keys; return their number.

        A key covers the data, the settings and the solver's code, so cells with the same key have
        the same result. Each copied record names the environment in which it was measured. Records
        and files of this folder are not replaced.

        Parameters
        ----------
        source : Path
            A run folder; it is not changed.
        wanted : dict of str to Identity
            By cell key, the identity in this run of each cell without a result.

        Raises
        ------
        svmbench.base.errors.ResultsError
            If `source` has no records, or they can't be written here.
        """
        records = records_of(source, self.notes)
        newest = {r["key"]: r for r in records if r["kind"] == "cell" and r["key"] in wanted}
        finished: dict[str, CellRecord] = {}
        for key, result in newest.items():
            if result["status"] != "ok":
                continue
            # A result must name its environment; the name is also part of a file's name.
            name = result.get("environment")
            if isinstance(name, str) and _ENVIRONMENT.fullmatch(name):
                finished[key] = result
            else:
                self.notes.append(f"{source / RUNS}: passed over cell {key}: it has no environment")
        for record in records:
            if record["kind"] != "point" or record["key"] not in finished:
                continue
            if record["point"] not in self.points.get(record["key"], {}):
                self.append(record)
        for name in sorted({result["environment"] for result in finished.values()}):
            self._copy(
                source / f"environment-{name}.json",
                "what its results were measured on is not known here",
            )
        for key, result in finished.items():
            # Before the record: once a cell is recorded, it is not run again to make its artifact.
            if files.exists_in_results(artifact := artifact_of(source, key)):
                self._copy(artifact, "its plot lacks this cell", ARTIFACTS)
            self.append({**result, **wanted[key]})
        return len(finished)

    def _copy(self, file: Path, consequence: str, folder: str = "") -> None:
        """Copy a file of another folder, unless its name is taken; note an error."""
        if files.exists_in_results(self.path / folder / file.name):
            return
        try:
            content = files.read_bytes(file, within=file.parents[bool(folder)])
        except OSError as error:
            self.notes.append(f"can't read {file}: {error.strerror or error}; {consequence}")
        else:
            self.write_file(file.name, content, folder)

    def write_file(self, name: str, content: str | bytes, folder: str = "") -> None:
        """Write a file atomically, in the subfolder `folder` if one is given.

        Raises
        ------
        svmbench.base.errors.ResultsError
            If the file can't be written; an earlier version stays.
        """
        target = self.path / folder / name
        try:
            files.make_folder(target.parent)
        except OSError as error:
            raise ResultsError(f"can't write {target}: {error.strerror or error}") from error
        written = content.encode() if isinstance(content, str) else content
        files.write_bytes(target, written, within=self.path)

    def take_artifact(self, key: str, made: Path) -> None:
        """Move the arrays that a cell may have written to the scratch folder to `ARTIFACTS`.

        Raises
        ------
        svmbench.base.errors.ResultsError
            If the file can't be moved.
        """
        if not files.exists_in_results(made):
            return
        target = artifact_of(self.path, key)
        try:
            files.make_folder(target.parent)
            made.replace(target)
        except OSError as error:
            raise ResultsError(f"can't write {target}: {error.strerror or error}") from error

    def _open(self) -> None:
        try:
            self._fd = files.open_to_append(self.path / RUNS)
            self._lock_records()
            files.clear_of_links(self.scratch)
            self._mend_last_line()
            for record in read_records(self.path, self.notes):
                self._remember(record)
        except OSError as error:
            raise ResultsError(
                f"can't open {self.path / RUNS}: {error.strerror or error}"
            ) from error

    def _lock_records(self) -> None:
        """Lock the record file itself, too: somebody may have removed the lock file."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            self._fd = -1
            raise _in_use(self.path) from None
        except OSError:  # the file system has no locks: rely on the lock file
            return

    def _mend_last_line(self) -> None:
        """Cut off a last line without a newline: the run was killed while it wrote that line."""
        end = size = os.fstat(self._fd).st_size
        keep = 0
        while end and not keep:
            start = max(0, end - _PIECE_BYTES)
            newline = os.pread(self._fd, end - start, start).rfind(b"\n")
            keep, end = start + newline + 1 if newline >= 0 else 0, start
        if keep < size:
            os.ftruncate(self._fd, keep)
            self.notes.append(
                f"{self.path / RUNS}: cut off an unfinished last line; its cell runs again"
            )

    def _remember(self, record: Record) -> None:
        if record["kind"] == "point":
            self.points.setdefault(record["key"], {})[record["point"]] = record
        else:
            self.cells[record["key"]] = record


def artifact_of(folder: Path, key: str) -> Path:
    """Return the file in a run folder with the arrays of a cell that plots need."""
    return folder / ARTIFACTS / f"{key}.npz"


def _cant_write(path: Path, error: OSError) -> ResultsError:
    file = error.filename or path
    return ResultsError(f"can't write to {file}: {error.strerror or error}")


def _in_use(path: Path) -> ResultsError:
    return ResultsError(f"another run is writing to {path}; wait for it, or name another --output")


def _refuse_another(path: Path, config: str) -> None:
    """Raise ConfigError if a folder has another config's plan: its tables would be overwritten."""
    try:
        name = files.read_json(path / "plan.json")["config"]["name"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # no plan, or a damaged one, which is written again
    if isinstance(name, str) and name != config:
        raise ConfigError(
            f"{path} has the results of the config {name!r}, not of {config!r}; name another"
            " --output"
        )


def refuse_foreign(path: Path, plan: Mapping[str, Any]) -> None:
    """Refuse a folder in which the run would overwrite a file that no run wrote.

    Tables and plots of an earlier run in the folder may be overwritten.

    Parameters
    ----------
    path : Path
        The results folder; it may be missing.
    plan : mapping
        The content of the run's ``plan.json``, of which ``tables`` and ``plots`` are read.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If there is such a file.
    """
    names = written_names(plan)
    existing = {name for name in names if files.exists_in_results(path / name)}
    if "plan.json" in existing:
        try:
            earlier = files.read_json(path / "plan.json")
            existing -= written_names(earlier)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if files.exists_in_results(path / RUNS):  # a run wrote this plan, which is damaged
                return
    if existing:
        raise ConfigError(
            f"{path} has {min(existing)}, which no run wrote, and this one would replace it;"
            " name another --output"
        )


def written_names(plan: Mapping[str, Any]) -> set[str]:
    """Return the names of the files, other than records, that a run of a plan writes.

    Raises
    ------
    KeyError, TypeError
        If the plan is malformed.
    """
    tables = {f"{spec['name']}.{suffix}" for spec in plan["tables"] for suffix in ("csv", "md")}
    suffixes = (".svg", ".png", "-exponents.csv")
    plots = {f"{spec['name']}{suffix}" for spec in plan["plots"] for suffix in suffixes}
    return {"plan.json", "table.csv", "tables.md"} | tables | plots


def read_records(folder: Path, notes: list[str] | None = None) -> Iterator[Record]:
    """Yield the records of a folder in the order in which they were written.

    Damaged lines, and lines of another schema, are skipped; each adds a sentence to `notes`.
    """
    path = folder / RUNS
    packed = path.with_name(f"{RUNS}.xz")
    is_packed = not files.exists_in_results(path) and files.exists_in_results(packed)
    with files.open_file(packed if is_packed else path) as stored:
        stream = archives.opened(stored, ".xz") if is_packed else stored
        size = 0
        for number, line in record_lines(cast(BinaryIO, stream)):
            size += len(line)
            if is_packed and size > archives.MAX_UNPACKED_BYTES:
                raise OSError(
                    errno.EFBIG, f"it has more than {archives.MAX_UNPACKED_BYTES:,} bytes"
                )
            record = parse_record(line)
            if record is not None:
                yield record
            elif notes is not None and line.strip():
                notes.append(f"{path}:{number}: passed over a damaged line")


def check_reusable(source: Path, output: Path) -> None:
    """Check that results can be copied from one folder to another.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If `source` has no readable records, or is `output`.
    """
    if source.resolve() == output.resolve():
        raise ConfigError(f"--reuse {source}: this is the run's own results folder")
    records_of(source)


def records_of(source: Path, notes: list[str] | None = None) -> list[Record]:
    """Return the records of another run's folder.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the folder has no records, or they can't be read.
    """
    try:
        return list(read_records(source, notes))
    except FileNotFoundError as error:
        raise ResultsError(f"{source} is no run folder: it has no {RUNS}") from error
    except (OSError, EOFError, lzma.LZMAError) as error:
        why = getattr(error, "strerror", None) or error
        raise ResultsError(f"can't read {source / RUNS}: {why}") from error
