"""Read the records of a run folder as a stream, and keep the newest record of each cell.

To save memory, only the values that a report shows are kept, and names and equal settings are
stored once: a run of 100,000 records takes about 200 MB.
"""

from __future__ import annotations

import io
import lzma
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from svmbench.base.errors import DamagedResultsError, ResultsError
from svmbench.base.files import exists_in_results, open_file
from svmbench.schema.record import Record, canonical, parse_record, record_lines

#: The file of records that a run writes.
RECORDS = "runs.jsonl"
#: The file of records in a kept folder.
COMPRESSED_RECORDS = "runs.jsonl.xz"
#: Largest number of bytes that compressed records may expand to; 100,000 records have 120 MB.
MAX_DECOMPRESSED_RECORDS_BYTES = 2 << 30
#: Largest number of lines of compressed records.
MAX_COMPRESSED_RECORDS_LINES = 2_000_000
#: Largest dictionary of the xz file in bytes.
_XZ_MEMORY = 192 << 20
#: A record and the plan's entry with the same key must agree in these fields.
NAMED_BY_RECORD = ("dataset", "solver", "fold")
_Kept = TypeVar("_Kept")


class NewestRecords(Generic[_Kept]):
    """The newest records of the wanted cells in a run folder.

    Runs only append to the file, so the last line of a key is its newest record.

    Parameters
    ----------
    wanted : set of str
        Keys of cells.
    convert : callable
        Function from a record and its line to the values to keep.

    Attributes
    ----------
    cells : dict
        The kept values by key.
    points : dict of str to dict
        The kept values by key and point, without the points of searches.
    unplanned : dict of str to str
        Environments of recorded cells outside `wanted`, by key.
    """

    def __init__(self, wanted: Collection[str], convert: Callable[[Record, bytes], _Kept]) -> None:
        self.wanted = wanted
        self.cells: dict[str, _Kept] = {}
        self.points: dict[str, dict[str, _Kept]] = {}
        self.unplanned: dict[str, str] = {}
        self._convert = convert

    def read(self, run_dir: Path) -> list[str]:
        """Read the records of a folder; return a note for each kind of unreadable line.

        Raises
        ------
        svmbench.base.errors.ResultsError
            If the file can't be read.
        """
        path = next(
            filter(exists_in_results, (run_dir / RECORDS, run_dir / COMPRESSED_RECORDS)), None
        )
        if path is None:
            return []
        unreadable, torn = 0, False
        try:
            with open_file(path) as stream:
                for line in _lines(stream if path.name == RECORDS else _Decompressed(stream)):
                    record = parse_record(line)
                    if record is not None:
                        self._take(record, line)
                    elif not line.strip():
                        continue
                    elif line.endswith(b"\n"):
                        unreadable += 1
                    else:
                        torn = True
        except OSError as error:
            raise ResultsError(f"can't read {path}: {error.strerror or error}") from error
        except (lzma.LZMAError, EOFError, ValueError) as error:
            raise DamagedResultsError(f"can't read {path}: {error}") from error
        notes = []
        if unreadable:
            lines = plural("line", unreadable)
            notes.append(f"{unreadable} unreadable {lines} of {path.name} skipped.")
        if torn:
            notes.append(f"The last line of {path.name} is torn (a killed run) and was skipped.")
        return notes

    def _take(self, record: Record, line: bytes) -> None:
        key = record["key"]
        if record["kind"] == "cell":
            if key in self.wanted:
                self.cells[key] = self._convert(record, line)
            else:
                self.unplanned[key] = str(record.get("environment") or "")
        elif key in self.wanted and all(
            isinstance(record.get(name), dict) for name in ("dimensions", "metrics")
        ):
            self.points.setdefault(key, {})[record["point"]] = self._convert(record, line)


@dataclass(frozen=True, slots=True)
class ShownValues:
    """The values of a record that a report shows."""

    status: str
    reason: str
    metrics: Mapping[str, Any]
    spread: Mapping[str, Any]
    counters: Mapping[str, Any]
    params: Mapping[str, Any]
    undefined: Mapping[str, str]
    contended: bool
    data_sha256: str | None
    environment: str
    folds: int
    trace: tuple[tuple[float, ...], ...]
    dimensions: Mapping[str, Any]
    stop_reason: str
    warnings: tuple[str, ...]
    wall_s: float
    #: Data set, solver and fold as the record itself names them.
    named: tuple[Any, ...]

    @classmethod
    def of(cls, record: Mapping[str, Any], store: ValueStore) -> ShownValues:
        """Select the values of a record."""
        return cls(
            status=sys.intern(record.get("status") or ""),
            # A finished race says in its stop reason why some of its solvers have no ratio.
            reason=sys.intern(one_line(record.get("reason") or _race_notes(record))),
            metrics=store.names(record.get("metrics") or {}),
            spread=store.names(record.get("spread") or {}),
            counters=store(record.get("counters") or {}),
            params=store(record.get("params") or {}),
            undefined=store(record.get("undefined") or {}),
            contended=bool(record.get("contended")),
            data_sha256=sys.intern(digest) if (digest := record.get("data_sha256")) else None,
            environment=sys.intern(record.get("environment") or ""),
            folds=int(record.get("folds") or 0),
            trace=tuple(tuple(row) for row in record.get("trace") or ()),
            dimensions=store(dimensions_of(record)),
            stop_reason=sys.intern(one_line(record.get("stop_reason"))),
            warnings=tuple(
                sys.intern(one_line(warning)) for warning in record.get("warnings") or ()
            ),
            wall_s=float(record.get("wall_s") or 0.0),
            named=store.tuple_of(record.get(name) for name in NAMED_BY_RECORD),
        )


def _race_notes(record: Mapping[str, Any]) -> Any:
    return record.get("stop_reason") if "|" in str(record.get("solver")) else ""


class SharedNamesMapping(Mapping[str, Any]):
    """A mapping that shares its names with other mappings and has only its values.

    Parameters
    ----------
    positions : dict of str to int
        Index of the value of each name; shared.
    values : tuple
    """

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: dict[str, int], values: tuple[Any, ...]) -> None:
        self._positions = positions
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[self._positions[name]]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or the default."""
        index = self._positions.get(name)
        return default if index is None else self._values[index]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __repr__(self) -> str:
        return repr(dict(self))


class ValueStore:
    """A store in which equal mappings, and the names in mappings, exist only once."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Any]] = {}
        self._positions: dict[tuple[str, ...], dict[str, int]] = {}
        self._counts: dict[int, int] = {}
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def names(self, values: dict[str, Any]) -> Mapping[str, Any]:
        """Return the mapping with shared names and shared whole numbers."""
        if not values:
            return self(values)
        names = tuple(values)
        if names not in self._positions:
            self._positions[names] = {sys.intern(name): index for index, name in enumerate(names)}
        share = self._counts.setdefault
        shared = tuple(share(each, each) if type(each) is int else each for each in values.values())
        return SharedNamesMapping(self._positions[names], shared)

    def tuple_of(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Return the values as a tuple, or an equal one."""
        items = tuple(values)
        return self._tuples.setdefault(items, items)

    def __call__(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the mapping, or an equal one; callers must not change it."""
        text = repr(values)  # distinguishes 1, 1.0 and True
        if text not in self._seen:
            self._seen[text] = {sys.intern(name): value for name, value in values.items()}
        return self._seen[text]


class _Decompressed(io.RawIOBase):
    """The content of a compressed file as a stream of limited length.

    A small file must not expand to gigabytes, and a truncated file must raise an error.
    """

    def __init__(self, compressed: BinaryIO) -> None:
        self._compressed = compressed
        self._stream = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        self._left = MAX_DECOMPRESSED_RECORDS_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        piece = b""
        while not piece and not self._stream.eof:
            more = self._compressed.read(1 << 16) if self._stream.needs_input else b""
            if self._stream.needs_input and not more:
                raise EOFError("it ends before its end-of-stream marker")
            piece = self._stream.decompress(more, len(buffer))
        if not piece and (self._stream.unused_data or self._compressed.read(1)):
            raise ValueError("there are bytes after its end-of-stream marker")
        self._left -= len(piece)
        if self._left < 0:
            raise ValueError(f"it has more than {MAX_DECOMPRESSED_RECORDS_BYTES:,} bytes")
        buffer[: len(piece)] = piece
        return len(piece)


def _lines(content: BinaryIO | _Decompressed) -> Iterator[bytes]:
    """Yield the lines of a file; raise an error for a compressed file with too many lines."""
    if not isinstance(content, _Decompressed):
        yield from (line for _, line in record_lines(content))
        return
    for number, line in record_lines(io.BufferedReader(content, 1 << 16)):
        if number > MAX_COMPRESSED_RECORDS_LINES:
            raise ValueError(f"it has more than {MAX_COMPRESSED_RECORDS_LINES:,} lines")
        yield line


def dimensions_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the swept values of a plan's entry or a record, by present names."""
    given = entry.get("dimensions")
    if not isinstance(given, Mapping):
        given = {old: entry.get(old) for old in ("size", "n_features_kept")}
    return {canonical(name): value for name, value in given.items() if value is not None}


def one_line(text: Any) -> str:
    """Return a text as one line."""
    return " ".join(str(text or "").split())


def plural(noun: str, count: int) -> str:
    """Return a noun in the singular or the plural, according to a count."""
    return noun if count == 1 else f"{noun}s"
