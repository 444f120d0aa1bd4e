"""Packs: one file that takes a run to another machine.

A pack is a ZIP archive without compression. It has the plan, the records as ``runs.jsonl.xz``,
their environments, and ``manifest.json`` with the schema, the version of svmbench, and the sha256
of every file and data set. The same run gives the same bytes.

A pack may come from anyone: :func:`unpack_pack` copies only the files that a pack may have, up to
their largest sizes, into a new folder, checks them there, and runs nothing. The manifest stays in
the folder of an added run and marks it as contributed.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
import shutil
import stat
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from svmbench.base.errors import DamagedResultsError, ResultsError
from svmbench.base.escape import line
from svmbench.base.files import (
    MAX_JSON_BYTES,
    exists_in_results,
    open_file,
    read_bytes,
    write_bytes,
)
from svmbench.base.version import __version__
from svmbench.report.output.kept import compress_records
from svmbench.report.reading import shapes
from svmbench.report.reading.folders import is_contributed
from svmbench.report.reading.newest import COMPRESSED_RECORDS
from svmbench.report.reading.records import read_run, result_lines, used_environments
from svmbench.schema.rechecks import MANIFEST

#: The schema of a pack's manifest, and that of the plan in it.
PACK_SCHEMA, PLAN_SCHEMA = 1, 1
#: Largest number of bytes of a pack; the largest kept run has 0.6 MB.
MAX_PACK_BYTES = 256 << 20
#: Largest number of bytes of an environment or a manifest, and of files of a pack.
MAX_FACTS_BYTES, MAX_PACK_FILES = 1 << 20, 64
#: Largest number of bytes of each file of a pack, by its name.
_ALLOWED = {MANIFEST: MAX_FACTS_BYTES, "plan.json": MAX_JSON_BYTES,
            COMPRESSED_RECORDS: MAX_PACK_BYTES}  # fmt: skip
_ENVIRONMENT_FILE = re.compile(r"environment-[0-9a-zA-Z]{1,64}\.json", re.ASCII)
_MANIFEST_SHAPE: shapes.Shape = {
    "schema": int,
    **dict.fromkeys(("svmbench", "config", "profile"), str),
    "files": {"*": {"bytes": int, "sha256": str}},
    "datasets": {"*": [str]},
}
#: The end of a ZIP archive without a comment, and the mark before it in one of over 4 GiB.
_END, _ZIP64 = struct.Struct("<4s4H2LH"), b"PK\x06\x07"
_ZIP_ERRORS = (zipfile.BadZipFile, EOFError, ValueError, RuntimeError, OverflowError, struct.error)


@dataclass(frozen=True)
class Manifest:
    """The facts that a pack states of itself.

    Attributes
    ----------
    config, profile : str
    version : str
        The version of svmbench that packed it.
    datasets : dict of str to tuple of str
        By name, the sha256 of the content of each data set that results rest on.
    files : dict of str to str
        By name, the sha256 of each file.
    """

    config: str
    profile: str
    version: str
    datasets: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]

    @property
    def folder_name(self) -> str:
        """A name for the folder of the run: other content has another name."""
        name = f"{Path(self.config).stem}-{self.profile}".lower()
        digest = hashlib.sha256(json.dumps(dict(self.files), sort_keys=True).encode()).hexdigest()
        return f"{re.sub(r'[^a-z0-9_]+', '-', name).strip('-')[:80] or 'run'}-{digest[:8]}"


def write_pack(run_dir: Path, target: Path) -> Manifest:
    """Write the results of a run to one file.

    Parameters
    ----------
    run_dir : Path
        A run folder, kept or not.
    target : Path
        A new file.

    Raises
    ------
    ResultsError
        If the folder has no result or was itself added from a pack, an environment is missing, or
        the file is there already or can't be written.
    """
    if is_contributed(run_dir):
        raise ResultsError(f"{run_dir} was added from a pack: pass that pack on instead")
    if exists_in_results(target):
        raise ResultsError(f"{target} is there already: name another file with -o")
    content = read_run(run_dir)
    lines = list(result_lines(run_dir))
    if not any(record.get("status") == "ok" for record in lines):
        raise ResultsError(f"{run_dir} has no result to pack")
    names = used_environments(content.cells)
    packed = {
        "plan.json": _bytes_of(run_dir / "plan.json"),
        COMPRESSED_RECORDS: compress_records(lines),
    }
    for name in sorted(names):
        file = f"environment-{name}.json"
        packed[file] = _bytes_of(run_dir / file)
    files = {
        name: {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
        for name, part in packed.items()
    }
    stated = {
        "schema": PACK_SCHEMA,
        "svmbench": __version__,
        "config": content.name,
        "profile": content.profile,
        "files": files,
        "datasets": _datasets_of(lines),
    }
    manifest = json.dumps(stated, indent=1, sort_keys=True).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, part in {MANIFEST: manifest, **packed}.items():
            entry = zipfile.ZipInfo(name)  # of 1980: the bytes don't depend on the time
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, part)
    if made.tell() > MAX_PACK_BYTES:
        raise ResultsError(f"{run_dir} makes a pack of more than {MAX_PACK_BYTES:,} bytes")
    write_bytes(target, made.getvalue())
    return _manifest(stated)


def unpack_pack(pack: Path, folder: Path) -> Manifest:
    """Copy a pack's files to an empty folder, and check them there.

    The content of data sets is not checked here, since this package opens none.

    Raises
    ------
    DamagedResultsError
        If the file is not a pack, is damaged, has a file that no pack may have, contradicts its
        manifest or itself, or is of an unknown schema or a later version.
    ResultsError
        If a file can't be read or written.
    """
    try:
        with open_file(pack, MAX_PACK_BYTES) as stream:
            _extract(pack, stream, folder)
    except (OSError, *_ZIP_ERRORS) as error:
        # `zipfile` seeks before the start of the file if the beginning of an archive is missing.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise ResultsError(f"can't read {pack}: {error.strerror or error}") from error
        raise _refused(pack, f"it is damaged, or no pack ({line(error, 100)})") from error
    try:
        return _checked(pack, folder)
    except DamagedResultsError as error:
        message = str(error)
        if message.startswith(f"{pack} is refused"):
            raise
        raise _refused(
            pack, message.replace(f"{folder}/", "").replace(str(folder), "it")
        ) from error


def _extract(pack: Path, stream: BinaryIO, folder: Path) -> None:
    """Copy the files of an archive that are regular, stored as they are, and allowed."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _END.size - 20))
    tail = stream.read()
    # Read by hand first: `zipfile` would make an object of each of millions of entries.
    end = tail[-_END.size :]
    mark, *_, number, listed, _, comment = (
        _END.unpack(end) if len(end) == _END.size else (b"", 0, 0, 0, 0, 0)
    )
    if mark != b"PK\x05\x06" or comment or _ZIP64 in tail:
        raise _refused(pack, "it is damaged, or no pack that 'svmbench pack' wrote")
    if number > MAX_PACK_FILES or listed > MAX_FACTS_BYTES:
        raise _refused(pack, f"it has more than the {MAX_PACK_FILES} files that a pack may have")
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        for entry in entries:
            _check_entry(pack, entry)
        names = [entry.filename for entry in entries]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise _refused(pack, f"it has {twice!r} twice")
        if sum(entry.file_size for entry in entries) > size:
            raise _refused(pack, "its files overlap")
        for entry in entries:
            with archive.open(entry) as part, (folder / entry.filename).open("xb") as made:
                shutil.copyfileobj(part, made, 1 << 20)


def _check_entry(pack: Path, entry: zipfile.ZipInfo) -> None:
    """Refuse a file that no pack may have."""
    name, shown = entry.filename, line(repr(entry.orig_filename), 80)
    max_bytes = MAX_FACTS_BYTES if _ENVIRONMENT_FILE.fullmatch(name) else _ALLOWED.get(name)
    if max_bytes is None or entry.orig_filename != name:
        raise _refused(pack, f"it has {shown}, which is no file of a pack")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise _refused(pack, f"{shown} in it is a link or no regular file")
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise _refused(pack, f"{shown} in it is compressed or encrypted")
    if entry.file_size > max_bytes:
        raise _refused(pack, f"{shown} in it has more than {max_bytes:,} bytes")


def _checked(pack: Path, folder: Path) -> Manifest:
    """Check the files of a pack against its manifest and one another; return the manifest."""
    if missing := [name for name in _ALLOWED if not exists_in_results(folder / name)]:
        raise _refused(pack, f"it has no {missing[0]}")
    stated = shapes.read_checked_json(folder / MANIFEST)
    schema = stated.get("schema") if isinstance(stated, dict) else None
    if schema != PACK_SCHEMA:
        shown = line(repr(schema), 40)
        raise _refused(pack, f"its schema is {shown}; only schema {PACK_SCHEMA} can be read")
    wrong = shapes.mismatch(stated, _MANIFEST_SHAPE)
    lacking = [name for name in _MANIFEST_SHAPE if stated.get(name) is None]
    if wrong or lacking:
        raise _refused(pack, f"its manifest: {wrong or f'{lacking[0]} is missing'}")
    _check_files(pack, folder, stated["files"])
    _check_version(pack, MANIFEST, stated["svmbench"])
    plan = shapes.read_checked_json(folder / "plan.json")
    schema = plan.get("schema") if isinstance(plan, dict) else None
    if schema != PLAN_SCHEMA:
        shown = line(repr(schema), 40)
        raise _refused(
            pack, f"the schema of its plan is {shown}; only schema {PLAN_SCHEMA} can be read"
        )
    content = read_run(folder)
    if content.notes:
        raise _refused(pack, f"its records: {content.notes[0].rstrip('.')}")
    lines = list(result_lines(folder))
    if not any(record.get("status") == "ok" for record in lines):
        raise _refused(pack, "it has no result")
    for name in used_environments(content.cells):
        facts = content.environments.get(name) or {}
        if not all(facts.get(fact) for fact in ("cpu", "blas", "packages", "svmbench")):
            raise _refused(
                pack, f"environment {line(name, 40)} of its records is missing or incomplete"
            )
        _check_version(pack, f"environment-{name}.json", facts["svmbench"])
    if (content.name, content.profile) != (stated["config"], stated["profile"]):
        raise _refused(pack, "config and profile of its plan are not those of its manifest")
    if stated["datasets"] != _datasets_of(lines):
        raise _refused(pack, "its records name other data than its manifest")
    return _manifest(stated)


def _check_files(pack: Path, folder: Path, stated: Mapping[str, Any]) -> None:
    names = {path.name for path in folder.iterdir()} - {MANIFEST}
    if odd := sorted(names ^ stated.keys()):
        raise _refused(pack, f"its manifest and its files differ: {line(odd[0], 80)}")
    for name in sorted(names):
        digest = hashlib.sha256(read_bytes(folder / name, MAX_PACK_BYTES)).hexdigest()
        if digest != (stated[name] or {}).get("sha256"):
            raise _refused(
                pack, f"the sha256 of {name} is not the one in its manifest: it was changed"
            )


def _check_version(pack: Path, name: str, version: str) -> None:
    """Refuse a version that can't be read or is later than this one."""
    of_pack, of_package = (
        re.match(r"(\d{1,6})\.(\d{1,6})", text) for text in (version, __version__)
    )
    if of_pack is None or of_package is None:
        raise _refused(pack, f"{name} has no version of svmbench: {line(repr(version), 40)}")
    if tuple(map(int, of_pack.groups())) > tuple(map(int, of_package.groups())):
        raise _refused(
            pack, f"it is of svmbench {line(version, 40)}, and this is {__version__}: update first"
        )


def _datasets_of(lines: list[Any]) -> dict[str, list[str]]:
    """Return the sha256 of the data sets that results rest on, by their names."""
    digests_of: dict[str, set[str]] = {}
    for record in lines:
        if record["kind"] == "cell" and record["status"] == "ok" and record.get("dataset"):
            digests_of.setdefault(record["dataset"], set()).add(
                str(record.get("data_sha256") or "")
            )
    return {name: sorted(known) for name, known in sorted(digests_of.items())}


def _manifest(stated: Mapping[str, Any]) -> Manifest:
    return Manifest(
        config=stated["config"],
        profile=stated["profile"],
        version=stated["svmbench"],
        datasets={name: tuple(known) for name, known in stated["datasets"].items()},
        files={name: facts["sha256"] for name, facts in stated["files"].items()},
    )


def _bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise ResultsError(f"can't read {path}: {error.strerror or error}") from error


def _refused(pack: Path, why: str) -> DamagedResultsError:
    return DamagedResultsError(f"{pack} is refused: {why}")
