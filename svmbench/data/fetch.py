"""Finding a data set's files: the mirror, then the official address; never unverified by accident.

A file's bytes are trusted after one of these, in this order: the sha256 of its uncompressed bytes
is an accepted one; the md5 of the official file as served is the published one; or nothing was
published for that copy, in which case the counts must fit, the hash is recorded at the first
fetch, later fetches must give the same bytes, and the data set's facts say "unverified".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from svmbench.base import paths
from svmbench.base.errors import DataError, DataUnavailableError
from svmbench.data import archives, download
from svmbench.data.archives import SUFFIXES, decompressed
from svmbench.data.download import NotThereError, Progress
from svmbench.data.entries import Entry, SourceFile, shown_address

_SHA256_LENGTH = 64
_MOST_HASHES = 1 << 22


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

    Where no checksum tells files of one name apart, those in the folder that the registry states
    are the only ones, if there are any.

    Raises
    ------
    DataUnavailableError
        If the folder does not exist.
    """
    root = paths.expanded(mirror)
    if not root.is_dir():
        raise DataUnavailableError(f"the mirror {shown_address(mirror)} is not a folder")
    index = _index(root, root.stat().st_mtime_ns)
    found = [
        place
        for name in (file.name, *file.aliases)
        for suffix in SUFFIXES
        for place in index.get(name + suffix, ())
    ]
    stated = [place for place in found if file.folder and place.parent == root / file.folder]
    return stated if stated and not file.sha256 else found


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
    official = shown_address(file.url)
    return f"{reason}; get it with 'svmbench fetch {entry.name}' where the internet is ({official})"


def _from_places(entry: Entry, file: SourceFile, places: list[Path]) -> Fetched:
    """Return the first copy on the mirror that is right; complain about the first otherwise.

    Copies that no checksum tells apart have to be the same.
    """
    complaint: DataError | None = None
    first: tuple[Path, Fetched] | None = None
    for place in places:
        try:
            stored = regular(place, file.max_bytes)
            content = decompressed(stored, place.name, max_bytes=file.max_bytes)
            fetched = _verified(entry, file, content, "mirror", place.name)
        except DataError as error:
            complaint = complaint or error
            continue
        if fetched.verified != "unverified":
            return fetched
        if first is None:
            first = place, fetched
        elif first[1].sha256 != fetched.sha256:
            raise DataError(
                f"{entry.name}: {first[0]} and {place} are not the same, and nothing says which is"
                " meant; give its 'folder' or its sha256 in the registry"
            )
    if first is not None:
        return first[1]
    assert complaint is not None
    raise complaint


def regular(place: Path, max_bytes: int | None = None) -> bytes:
    """Return the bytes of a file as stored.

    Raises
    ------
    DataError
        If it can't be read, is a pipe or a device, or is larger than it may be.
    """
    try:
        return paths.read_regular(place, max_bytes or archives.CEILING)
    except OSError as error:
        raise DataError(f"{place} can't be read: {error.strerror or error}") from None


def _from_mirror_url(
    entry: Entry, file: SourceFile, root: str, progress: Progress | None
) -> Fetched:
    folders = dict.fromkeys((file.folder, ""))
    end = re.search(r"[?#]|$", root).start()  # type: ignore[union-attr]  # where its path ends
    for folder in folders:
        for name in (file.name, *file.aliases):
            for suffix in (".xz", ".bz2", ".gz", ""):
                below = "/".join(quote(part) for part in (folder, name + suffix) if part)
                url = root[:end].rstrip("/") + f"/{below}" + root[end:].partition("#")[0]
                try:
                    source = f"{root}/{folder}" if folder else root
                    return _downloaded(entry, file, url, ("mirror", source), progress)
                except NotThereError:
                    continue
    raise NotThereError(f"the mirror has no {file.name}")


def _from_official(entry: Entry, file: SourceFile, progress: Progress | None) -> Fetched:
    assert file.url is not None
    return _downloaded(entry, file, file.url, ("official", file.url), progress)


def _downloads(kind: str, key: str) -> Path:
    """Return the folder for one source: equal file names of two sources must not meet."""
    return (
        paths.cache_dir() / "downloads" / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    )


def _downloaded(
    entry: Entry, file: SourceFile, url: str, source: tuple[str, str], progress: Progress | None
) -> Fetched:
    """Download and verify a file.

    What lay there before this call and is wrong is downloaded again, and replaced once that is
    there; a download that is wrong itself is removed, so that the next fetch starts afresh.
    """
    folder = _downloads(*source)
    most = file.max_bytes or archives.CEILING
    got = download.download(url, folder, progress, most)
    if not got.is_new:
        try:
            return _checked_download(entry, file, got.place, source[0])
        except DataError:
            got = download.download(url, folder, progress, most, again=True)
    try:
        return _checked_download(entry, file, got.place, source[0])
    except DataError:
        got.place.unlink(missing_ok=True)
        raise


def _checked_download(entry: Entry, file: SourceFile, place: Path, source: str) -> Fetched:
    served = regular(place, file.max_bytes)
    if source == "official" and file.md5 is not None:
        _compare(entry, file, "md5", hashlib.md5(served).hexdigest(), (file.md5,))
    content = decompressed(served, place.name, file.member, file.max_bytes)
    return _verified(entry, file, content, source, place.name)


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
    known = _known_hashes().get(_hash_name(file, source))
    if known is not None and known != digest:
        raise _mismatch(entry, file.name, "sha256", digest, (known,))


def _hash_name(file: SourceFile, source: str) -> str:
    """Return the name of a file among those without a checksum: that of its place, not its own."""
    below = "/".join(part for part in (file.folder, file.name) if part)
    return f"{source}:{file.url if source == 'official' else below}"


def _hashes_file() -> Path:
    return paths.cache_dir() / "first-fetch-hashes.json"


def _known_hashes() -> dict[str, str]:
    """Return the hashes that first fetches left; of a damaged file what is whole in it."""
    place = _hashes_file()
    try:
        said = json.loads(paths.read_regular(place, _MOST_HASHES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        said = error
    if not isinstance(said, dict):
        warnings.warn(
            f"{place} was damaged and is begun again: files without a published checksum are"
            " compared with their next fetch",
            stacklevel=4,
        )
        return {}
    return {
        name: digest
        for name, digest in said.items()
        if isinstance(digest, str) and len(digest) == _SHA256_LENGTH
    }


def record(fetched: Fetched) -> None:
    """Remember the hash of an unverified file whose content passed every check."""
    if fetched.verified != "unverified":
        return
    place = _hashes_file()
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        known = _known_hashes()
        known[_hash_name(fetched.file, fetched.source)] = fetched.sha256
        temporary = place.with_suffix(".tmp")
        temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
        temporary.replace(place)
