"""Finding a data set's files: the mirror, then the official address; never unverified by accident.

A file's bytes are trusted after one of these, in this order: the sha256 of its uncompressed bytes
is an accepted one; the md5 of the official file as served is the published one; or nothing was
published for that copy, in which case the counts must fit, the hash is recorded at the first
fetch, later fetches must give the same bytes, and the data set's facts say "unverified".
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from filelock import FileLock

from svmbench import paths
from svmbench.data import download
from svmbench.data.download import NotThereError, Progress
from svmbench.data.registry import Entry, SourceFile
from svmbench.errors import DataError, DataUnavailableError

SUFFIXES = ("", ".xz", ".bz2", ".gz")


@dataclass(frozen=True)
class Fetched:
    """A file's uncompressed bytes and where they are from.

    Attributes
    ----------
    file : SourceFile
        What was asked for.
    content : bytes
        Uncompressed.
    sha256 : str
        Of `content`.
    verified : str
        ``"sha256"``, ``"md5"`` or ``"unverified"``.
    source : str
        ``"mirror"`` or ``"official"``.
    """

    file: SourceFile
    content: bytes
    sha256: str
    verified: str
    source: str


def configured_mirror(mirror: str | None = None) -> str | None:
    """Return the mirror in force: the argument, else ``SVMBENCH_MIRROR``, else None."""
    return mirror or os.environ.get("SVMBENCH_MIRROR") or None


def may_go_online(mirror: str | None, official: bool | None) -> bool:
    """Whether official addresses may be asked: as told, else if there is no mirror to keep to."""
    if official is not None:
        return official
    return configured_mirror(mirror) is None and not os.environ.get("SVMBENCH_OFFLINE")


def is_url(mirror: str) -> bool:
    """Whether a mirror is behind HTTP rather than a folder."""
    return mirror.startswith(("http://", "https://"))


def on_mirror(file: SourceFile, mirror: str) -> list[Path]:
    """Return the places of `file` in a mirror folder, plain or compressed, in any sub-folder.

    Raises
    ------
    DataUnavailableError
        If the folder does not exist.
    """
    root = Path(mirror).expanduser()
    if not root.is_dir():
        raise DataUnavailableError(f"the mirror {mirror} is not a folder")
    index = _index(root, root.stat().st_mtime_ns)
    return [
        place
        for name in (file.name, *file.aliases)
        for suffix in SUFFIXES
        for place in index.get(name + suffix, ())
    ]


@lru_cache(maxsize=8)
def _index(root: Path, _changed: int) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for folder, _, files in os.walk(root):
        for name in files:
            found.setdefault(name, []).append(Path(folder) / name)
    for places in found.values():
        places.sort()
    return found


def get(
    entry: Entry,
    file: SourceFile,
    *,
    mirror: str | None = None,
    official: bool | None = None,
    progress: Progress | None = None,
) -> Fetched:
    """Return the verified, uncompressed bytes of one of a data set's files.

    Raises
    ------
    DataUnavailableError
        If it is in none of the places that may be asked; one sentence with the official address.
    DataError
        If it is there and its bytes are not what they should be.
    """
    where = configured_mirror(mirror)
    said = ""
    if where is not None:
        try:
            if is_url(where):
                return _from_mirror_url(entry, file, where, progress)
            places = on_mirror(file, where)
            if places:
                return _from_places(entry, file, places)
            said = f"the mirror has no {file.name}"
        except NotThereError:
            said = f"the mirror has no {file.name}"
        except DataUnavailableError as error:
            said = str(error)
    if may_go_online(mirror, official):
        if file.url is None:
            raise DataUnavailableError(
                f"{entry.name}: {said + ', and ' if said else ''}there is no official address for "
                f"{file.name}; a mirror that holds it is needed (see {entry.homepage})"
            )
        try:
            return _from_official(entry, file, progress)
        except DataUnavailableError as error:
            raise DataUnavailableError(
                f"{entry.name}: {said + '; ' if said else ''}{file.name} can't be downloaded: "
                f"{error}"
            ) from None
    raise DataUnavailableError(f"{entry.name}: {why_missing(entry, file, said)}")


def why_missing(entry: Entry, file: SourceFile, said: str = "") -> str:
    """Return the sentence for a file that this machine can't have without the internet."""
    reason = said or "it is not cached and going online was ruled out"
    if file.url is None:
        return f"{reason}, and it has no official address (see {entry.homepage})"
    return f"{reason}; get it with 'svmbench fetch {entry.name}' where the internet is ({file.url})"


def _from_places(entry: Entry, file: SourceFile, places: list[Path]) -> Fetched:
    """Return the first copy on the mirror that is right; complain about the first otherwise."""
    complaint: DataError | None = None
    for place in places:
        try:
            content = decompressed(_stored(place), place.name)
            return _verified(entry, file, content, "mirror", place.name)
        except DataError as error:
            complaint = complaint or error
    assert complaint is not None
    raise complaint


def _stored(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError as error:
        raise DataError(f"{place} can't be read: {error.strerror or error}") from None


def _from_mirror_url(
    entry: Entry, file: SourceFile, root: str, progress: Progress | None
) -> Fetched:
    folders = dict.fromkeys((file.folder, ""))
    for folder in folders:
        for name in (file.name, *file.aliases):
            for suffix in (".xz", ".bz2", ".gz", ""):
                url = "/".join(filter(None, (root.rstrip("/"), folder, name + suffix)))
                try:
                    place = download.download(url, _downloads("mirror", root), progress)
                except NotThereError:
                    continue
                return _checked_download(entry, file, place, "mirror")
    raise NotThereError(f"the mirror has no {file.name}")


def _from_official(entry: Entry, file: SourceFile, progress: Progress | None) -> Fetched:
    assert file.url is not None
    place = download.download(file.url, _downloads("official", file.url), progress)
    return _checked_download(entry, file, place, "official")


def _downloads(kind: str, key: str) -> Path:
    """Return the folder for one source: equal file names of two sources must not meet."""
    return (
        paths.cache_dir() / "downloads" / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    )


def _checked_download(entry: Entry, file: SourceFile, place: Path, source: str) -> Fetched:
    """Verify a download; one that is wrong is removed, so that the next fetch starts afresh."""
    try:
        served = place.read_bytes()
        if source == "official" and file.md5 is not None:
            _compare(entry, file, "md5", hashlib.md5(served).hexdigest(), (file.md5,))
        content = decompressed(served, place.name, file.member)
        return _verified(entry, file, content, source, place.name)
    except DataError:
        place.unlink(missing_ok=True)
        raise


def _verified(entry: Entry, file: SourceFile, content: bytes, source: str, place: str) -> Fetched:
    digest = hashlib.sha256(content).hexdigest()
    binding = file.sha256 and not (source == "official" and file.rebuilt)
    if digest in file.sha256:
        verified = "sha256"
    elif source == "official" and file.md5 is not None:
        verified = "md5"
    elif binding:
        raise _mismatch(entry, place, "sha256", digest, file.sha256)
    else:
        verified = "unverified"
        _recorded(entry, file, digest, source)
    return Fetched(file, content, digest, verified, source)


def _compare(
    entry: Entry, file: SourceFile, kind: str, found: str, accepted: tuple[str, ...]
) -> None:
    if found not in accepted:
        raise _mismatch(entry, file.name, kind, found, accepted)


def _mismatch(
    entry: Entry, place: str, kind: str, found: str, accepted: tuple[str, ...]
) -> DataError:
    expected = " or ".join(value[:12] + "…" for value in accepted)
    return DataError(
        f"{entry.name}: {place} has the {kind} {found[:12]}… where {expected} is expected: "
        "the file is damaged or is another version"
    )


def _recorded(entry: Entry, file: SourceFile, digest: str, source: str) -> None:
    """Compare with the hash that the first fetch of an unverified file left.

    Recording is :func:`record`'s, after the counts fitted.
    """
    known = _known_hashes().get(f"{source}:{file.name}")
    if known is not None and known != digest:
        raise _mismatch(entry, file.name, "sha256", digest, (known,))


def _hashes_file() -> Path:
    return paths.cache_dir() / "first-fetch-hashes.json"


def _known_hashes() -> dict[str, str]:
    place = _hashes_file()
    return json.loads(place.read_text()) if place.exists() else {}


def record(fetched: Fetched) -> None:
    """Remember the hash of an unverified file whose content passed every check."""
    if fetched.verified != "unverified":
        return
    place = _hashes_file()
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        known = _known_hashes()
        known[f"{fetched.source}:{fetched.file.name}"] = fetched.sha256
        temporary = place.with_suffix(".tmp")
        temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
        temporary.replace(place)


def decompressed(content: bytes, name: str, member: str | None = None) -> bytes:
    """Return the uncompressed bytes of a file, told by its name's ending.

    Parameters
    ----------
    content : bytes
        As stored.
    name : str
        The file's name; .xz, .bz2, .gz and .zip (with `member`) are unpacked.
    member : str, optional
        The path inside a zip archive.

    Raises
    ------
    DataError
        If the archive is damaged, cut off or lacks the member.
    """
    try:
        if member is not None:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return archive.read(member)
        if name.endswith(".xz"):
            return lzma.decompress(content)
        if name.endswith(".bz2"):
            return bz2.decompress(content)
        if name.endswith(".gz"):
            return gzip.decompress(content)
    except KeyError:
        raise DataError(f"{name} has no member {member!r}") from None
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{name} can't be uncompressed: {error}") from None
    return content
