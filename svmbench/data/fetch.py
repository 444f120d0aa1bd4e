"""Find the files of a data set on the mirror or at the official address, and verify them.

The checks, in this order:

1. The md5 of the official file as downloaded, if one is published. A file with another md5 is
   refused.
2. The sha256 of the uncompressed bytes. A file with an accepted sha256 is marked "sha256". A file
   with another one is marked "md5" if check 1 was passed, and refused otherwise.
3. If no checksum is known for this source, the counts must agree, the hash is recorded at the first
   fetch, later fetches must give the same bytes, and the data set is marked "unverified".
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
from svmbench.data.archives import COMPRESSION_SUFFIXES, decompressed
from svmbench.data.download import DownloadProgress, NotThereError
from svmbench.data.entries import DatasetEntry, SourceFile, shown_address
from svmbench.data.registry import names

_SHA256_LENGTH = 64
_MAX_HASHES_BYTES = 1 << 22


@dataclass(frozen=True)
class Fetched:
    """The uncompressed bytes of a file, with their source.

    Attributes
    ----------
    file : SourceFile
        The requested file.
    content : bytes
        Uncompressed.
    sha256 : str
        Checksum of `content`.
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
    """Return the mirror: the argument, else ``SVMBENCH_MIRROR``, else None."""
    return mirror or os.environ.get("SVMBENCH_MIRROR") or None


def may_go_online(mirror: str | None, official: bool | None) -> bool:
    """Return True if official addresses may be used; by default only without a mirror."""
    if official is not None:
        return official
    return configured_mirror(mirror) is None and not os.environ.get("SVMBENCH_OFFLINE")


def is_url(mirror: str) -> bool:
    """Return True if a mirror is a URL and not a folder."""
    return mirror.startswith(("http://", "https://"))


def on_mirror(file: SourceFile, mirror: str) -> list[Path]:
    """Return the copies of `file` in a mirror folder and its sub-folders, plain or compressed.

    If no checksum distinguishes files of the same name, and the folder that the registry names has
    a copy, only the copies in this folder are returned.

    Raises
    ------
    DataUnavailableError
        If the folder does not exist.
    """
    root = paths.expanded(mirror)
    if not root.is_dir():
        raise DataUnavailableError(f"the mirror {shown_address(mirror)} is not a folder")
    index = _index(root, root.stat().st_mtime_ns)
    copies = [
        copy
        for name in (file.name, *file.aliases)
        for suffix in COMPRESSION_SUFFIXES
        for copy in index.get(name + suffix, ())
    ]
    in_stated_folder = [
        copy for copy in copies if file.folder and copy.parent == root / file.folder
    ]
    return in_stated_folder if in_stated_folder and not file.sha256 else copies


@lru_cache(maxsize=8)
def _index(root: Path, _changed: int) -> dict[str, list[Path]]:
    candidates_by_name: dict[str, list[Path]] = {}
    for folder, _, files in os.walk(root):
        for name in files:
            candidates_by_name.setdefault(name, []).append(Path(folder) / name)
    for candidates in candidates_by_name.values():
        candidates.sort()
    return candidates_by_name


def get(
    entry: DatasetEntry,
    file: SourceFile,
    *,
    mirror: str | None = None,
    official: bool | None = None,
    progress: DownloadProgress | None = None,
) -> Fetched:
    """Return the verified, uncompressed bytes of one of a data set's files.

    Raises
    ------
    DataUnavailableError
        If no allowed source has the file; the message names the official address.
    DataError
        If the file exists but its bytes are wrong.
    """
    mirror_used = configured_mirror(mirror)
    why = ""
    if mirror_used is not None:
        try:
            if is_url(mirror_used):
                return _from_mirror_url(entry, file, mirror_used, progress)
            candidates = on_mirror(file, mirror_used)
            if candidates:
                return _from_candidates(entry, file, candidates)
            why = f"the mirror has no {file.name}"
        except NotThereError:
            why = f"the mirror has no {file.name}"
        except DataUnavailableError as error:
            why = str(error)
    if may_go_online(mirror, official):
        if file.url is None:
            raise DataUnavailableError(
                f"{entry.name}: {why + ', and ' if why else ''}there is no official address for "
                f"{file.name}; a mirror that has it is needed (see {entry.homepage})"
            )
        try:
            return _from_official(entry, file, progress)
        except DataUnavailableError as error:
            raise DataUnavailableError(
                f"{entry.name}: {why + '; ' if why else ''}{file.name} can't be downloaded: {error}"
                f"{_shipped_copy(entry)}"
            ) from None
    raise DataUnavailableError(f"{entry.name}: {missing_reason(entry, file, why)}")


def missing_reason(entry: DatasetEntry, file: SourceFile, cause: str = "") -> str:
    """Return the reason why a file is unavailable without the internet, with a remedy."""
    reason = cause or "it is not cached, and downloads are not allowed"
    if file.url is None:
        return f"{reason}, and it has no official address (see {entry.homepage})"
    official = shown_address(file.url)
    command = f"svmbench fetch {entry.name}"
    online = f"run '{command}' on a machine with internet access ({official})"
    return f"{reason}; {online}{_shipped_copy(entry)}"


def _shipped_copy(entry: DatasetEntry) -> str:
    """Return what names the copy of a data set that scikit-learn ships; "" if it ships none."""
    copy = f"{entry.name}-sklearn"
    return f"; {copy}, scikit-learn's copy, needs no download" if copy in names() else ""


def _from_candidates(entry: DatasetEntry, file: SourceFile, candidates: list[Path]) -> Fetched:
    """Return the first correct copy on the mirror; else raise the error of the first copy.

    Without a checksum, all copies must be equal.
    """
    first_error: DataError | None = None
    first: tuple[Path, Fetched] | None = None
    for path in candidates:
        try:
            stored = read_regular_file(path, file.max_bytes)
            content = decompressed(stored, path.name, max_bytes=file.max_bytes)
            fetched = _verified(entry, file, content, "mirror", path.name)
        except DataError as error:
            first_error = first_error or error
            continue
        if fetched.verified != "unverified":
            return fetched
        if first is None:
            first = path, fetched
        elif first[1].sha256 != fetched.sha256:
            raise DataError(
                f"{entry.name}: {first[0]} and {path} differ, and the registry doesn't"
                " distinguish them; give the file's 'folder' or sha256 in the registry"
            )
    if first is not None:
        return first[1]
    assert first_error is not None
    raise first_error


def read_regular_file(path: Path, max_bytes: int | None = None) -> bytes:
    """Return the stored bytes of a regular file.

    Raises
    ------
    DataError
        If it can't be read, is a pipe or a device, or is too large.
    """
    try:
        return paths.read_regular(path, max_bytes or archives.MAX_UNPACKED_BYTES)
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror or error}") from None


def _from_mirror_url(
    entry: DatasetEntry, file: SourceFile, root: str, progress: DownloadProgress | None
) -> Fetched:
    folders = dict.fromkeys((file.folder, ""))
    end = re.search(r"[?#]|$", root).start()  # type: ignore[union-attr]  # end of its path
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


def _from_official(
    entry: DatasetEntry, file: SourceFile, progress: DownloadProgress | None
) -> Fetched:
    assert file.url is not None
    return _downloaded(entry, file, file.url, ("official", file.url), progress)


def _downloads(kind: str, key: str) -> Path:
    """Return the download folder of one source; sources may have equal file names."""
    return (
        paths.cache_dir() / "downloads" / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    )


def _downloaded(
    entry: DatasetEntry,
    file: SourceFile,
    url: str,
    source: tuple[str, str],
    progress: DownloadProgress | None,
) -> Fetched:
    """Download and verify a file.

    An older file with wrong bytes is downloaded again, and replaced when the download is complete.
    A new download with wrong bytes is removed, so that the next fetch starts again.
    """
    folder = _downloads(*source)
    limit = file.max_bytes or archives.MAX_UNPACKED_BYTES
    downloaded = download.download(url, folder, progress, limit)
    if not downloaded.is_new:
        try:
            return _checked_download(entry, file, downloaded.place, source[0])
        except DataError:
            downloaded = download.download(url, folder, progress, limit, again=True)
    try:
        return _checked_download(entry, file, downloaded.place, source[0])
    except DataError:
        downloaded.place.unlink(missing_ok=True)
        raise


def _checked_download(entry: DatasetEntry, file: SourceFile, path: Path, source: str) -> Fetched:
    served = read_regular_file(path, file.max_bytes)
    if source == "official" and file.md5 is not None:
        _compare(entry, file, "md5", hashlib.md5(served).hexdigest(), (file.md5,))
    content = decompressed(served, path.name, file.member, file.max_bytes)
    return _verified(entry, file, content, source, path.name)


def _verified(
    entry: DatasetEntry, file: SourceFile, content: bytes, source: str, source_name: str
) -> Fetched:
    digest = hashlib.sha256(content).hexdigest()
    must_match = file.sha256 and not (source == "official" and file.rebuilt)
    if digest in file.sha256:
        verified = "sha256"
    elif source == "official" and file.md5 is not None:
        verified = "md5"
    elif must_match:
        raise _mismatch(entry, source_name, "sha256", digest, file.sha256)
    else:
        verified = "unverified"
        _require_recorded_hash(entry, file, digest, source)
    return Fetched(file, content, digest, verified, source)


def _compare(
    entry: DatasetEntry, file: SourceFile, kind: str, actual: str, accepted: tuple[str, ...]
) -> None:
    if actual not in accepted:
        raise _mismatch(entry, file.name, kind, actual, accepted)


def _mismatch(
    entry: DatasetEntry, source_name: str, kind: str, actual: str, accepted: tuple[str, ...]
) -> DataError:
    expected = " or ".join(value[:12] + "…" for value in accepted)
    return DataError(
        f"{entry.name}: {source_name} has the {kind} {actual[:12]}… instead of {expected}: "
        "the file is damaged or is another version"
    )


def _require_recorded_hash(entry: DatasetEntry, file: SourceFile, digest: str, source: str) -> None:
    """Raise an error if the bytes don't have the hash recorded at an unverified file's first fetch.

    :func:`record` records the hash after the counts were checked.
    """
    known = _known_hashes().get(_hash_name(file, source))
    if known is not None and known != digest:
        raise _mismatch(entry, file.name, "sha256", digest, (known,))


def _hash_name(file: SourceFile, source: str) -> str:
    """Return the key of an unverified file in the table of hashes: its source and address."""
    below = "/".join(part for part in (file.folder, file.name) if part)
    return f"{source}:{file.url if source == 'official' else below}"


def _hashes_file() -> Path:
    return paths.cache_dir() / "first-fetch-hashes.json"


def _known_hashes() -> dict[str, str]:
    """Return the hashes recorded at first fetches; skip damaged entries of their file."""
    file = _hashes_file()
    try:
        content = json.loads(paths.read_regular(file, _MAX_HASHES_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        content = error
    if not isinstance(content, dict):
        warnings.warn(
            f"{file} was damaged and is written again: for files without a published checksum,"
            " the next fetch counts as the first",
            stacklevel=4,
        )
        return {}
    return {
        name: digest
        for name, digest in content.items()
        if isinstance(digest, str) and len(digest) == _SHA256_LENGTH
    }


def record(fetched: Fetched) -> None:
    """Record the hash of an unverified file after its content passed all checks."""
    if fetched.verified != "unverified":
        return
    target = _hashes_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_suffix(".lock")):
        known = _known_hashes()
        known[_hash_name(fetched.file, fetched.source)] = fetched.sha256
        temporary = target.with_suffix(".tmp")
        temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
        temporary.replace(target)
