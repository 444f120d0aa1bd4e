"""Download one file over HTTP, with bounds, retries, resumption and a lock.

The module uses requests. pooch, which is built on requests, can't resume a download: here, a
partial file stays beside its target, and the next attempt asks for the rest. Neither library bounds
the bytes of a transfer, its time over all attempts, or its pace; this module does.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import requests
import urllib3
from filelock import FileLock

from svmbench.base import paths
from svmbench.base.errors import DataUnavailableError
from svmbench.data.entries import file_name, shown_address

#: ``progress(done, total)`` in bytes; `total` is None if the server doesn't state it.
DownloadProgress = Callable[[int, int | None], None]

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
#: Seconds until the head of the response is complete, with redirections.
HEAD_TIMEOUT_S = 60.0
#: Seconds that a transfer may take, over all attempts.
TRANSFER_TIMEOUT_S = 3600.0
#: Lowest accepted pace in bytes per second, checked after `PACE_CHECK_AFTER_S` seconds.
LOWEST_BYTES_PER_S = 1024.0
PACE_CHECK_AFTER_S = 30.0
MAX_ATTEMPTS = 4
RETRY_PAUSE_S = 0.5
CHUNK_BYTES = 1 << 16
#: Ending of the file beside a partial download with the version of the downloaded file.
VERSION_SUFFIX = ".version"


class NotThereError(DataUnavailableError):
    """The server answered that it doesn't have the file."""


class _RetryError(Exception):
    """An attempt failed, and another attempt may succeed."""


class _GivenUpError(Exception):
    """The transfer failed, and another attempt would fail, too."""


@dataclass(frozen=True)
class Download:
    """A requested file; `is_new` is False if the file existed before the call."""

    place: Path
    is_new: bool


def download(
    url: str,
    folder: Path,
    progress: DownloadProgress | None = None,
    max_bytes: int | None = None,
    *,
    again: bool = False,
) -> Download:
    """Download the file at `url` into `folder`.

    An existing file is left unchanged. An interrupted download continues if the server supports
    ranges and still has the same version of the file, by its ETag or date and its length; otherwise
    it starts again.

    Parameters
    ----------
    url : str
        http or https address.
    folder : Path
        Target folder; the file has the name in the URL.
    progress : callable, optional
        Called with (bytes so far, total bytes or None) after each piece.
    max_bytes : int, optional
        Largest size in bytes; a longer file is not kept.
    again : bool, default=False
        True to download an existing file again; the old file stays until the new one is complete.

    Raises
    ------
    NotThereError
        If the server has no such file.
    DataUnavailableError
        If the server can't be reached, keeps failing, sends too many bytes, or takes too long. The
        message has the URL without user, password and query.
    """
    name = file_name(url)
    reason = paths.why_unfit(name)
    if reason:
        raise DataUnavailableError(
            f"the file name {name!r} in the address {reason} ({shown_address(url)})"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with FileLock(target.with_name(target.name + ".lock")):
        if target.exists() and not again:
            return Download(target, is_new=False)
        transfer = _Transfer(url, target.with_name(target.name + ".part"), progress, max_bytes)
        transfer.all_attempts()
        transfer.partial.replace(target)
        transfer.version_file.unlink(missing_ok=True)
        return Download(target, is_new=True)


class _Transfer:
    """The download of one file: its bounds and its progress."""

    def __init__(
        self, url: str, partial: Path, progress: DownloadProgress | None, max_bytes: int | None
    ) -> None:
        self.url = url
        self.partial = partial
        self.progress = progress
        self.max_bytes = float("inf") if max_bytes is None else max_bytes
        self.deadline = time.monotonic() + TRANSFER_TIMEOUT_S
        self.version_file = partial.with_name(partial.name + VERSION_SUFFIX)
        self.version = _read_version(self.version_file)

    def all_attempts(self) -> None:
        reason = ""
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                time.sleep(RETRY_PAUSE_S * 2 ** (attempt - 1))
            try:
                self._attempt()
            except _GivenUpError as error:
                reason = str(error)
                break
            except _RetryError as error:
                reason = str(error)
            except requests.ConnectionError as error:
                reason = network_reason(error)
                if "name resolution" in reason or "refused" in reason:
                    break  # no retries on an offline machine
                if isinstance(error, requests.ConnectTimeout) and attempt:
                    break  # nor after two connection timeouts
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                reason = network_reason(error)
            except (ValueError, OSError) as error:  # a malformed response head
                reason = f"the response is malformed ({type(error).__name__})"
            else:
                return
        raise DataUnavailableError(f"{reason} ({shown_address(self.url)})")

    def _attempt(self) -> None:
        n_bytes = self.partial.stat().st_size if self.partial.exists() else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "svmbench"}
        if self.version is None:  # nothing tells which version the first part belongs to
            n_bytes = 0
        if n_bytes and self.version is not None:
            headers["Range"] = f"bytes={n_bytes}-"
            if validator := self.version.validator:
                headers["If-Range"] = validator
        with response_within_timeout(self.url, headers) as answer:
            if answer.status_code in (404, 403, 410):
                raise NotThereError(f"the server has no such file ({shown_address(self.url)})")
            if answer.status_code == 416:  # the partial file is too long: start again
                self.partial.unlink()
                raise _RetryError("the partial download did not fit the file")
            if answer.status_code not in (200, 206):
                raise _RetryError(f"the server answered {answer.status_code}")
            if answer.status_code == 200:
                n_bytes = 0
            elif not answer.headers.get("Content-Range", "").startswith(f"bytes {n_bytes}-"):
                self.partial.unlink()
                raise _RetryError("the server sent a different range than requested")
            version = _Version.of(answer)
            if n_bytes and not version.continues(self.version):
                self.partial.unlink()
                self.version = None
                raise _RetryError("the server has another version of the file now")
            if not n_bytes:
                self._keep_version(version)
            self._body(answer, n_bytes, _announced(answer, n_bytes))

    def _body(self, answer: requests.Response, n_bytes: int, total: int | None) -> None:
        if total is not None and total > self.max_bytes:
            raise _GivenUpError(self._too_long())
        started, start = time.monotonic(), n_bytes
        with self.partial.open("ab" if n_bytes else "wb") as out:
            # read1 returns the bytes that have arrived; iter_content would wait for a whole chunk
            # and lose its beginning when the connection ends.
            while piece := answer.raw.read1(CHUNK_BYTES):
                out.write(piece)
                n_bytes += len(piece)
                if self.progress is not None:
                    self.progress(n_bytes, total)
                if n_bytes > self.max_bytes:
                    out.close()
                    self.partial.unlink(missing_ok=True)
                    raise _GivenUpError(self._too_long())
                self._keep_pace(n_bytes - start, time.monotonic() - started)
        if total is not None and n_bytes != total:
            raise _RetryError(f"the connection ended after {n_bytes:,} of {total:,} bytes")

    def _keep_version(self, version: _Version) -> None:
        """Note the version of the file that begins; without a validator, for this process alone."""
        self.partial.unlink(missing_ok=True)
        self.version = version
        if version.etag or version.modified:
            self.version_file.write_text(json.dumps(asdict(version)), encoding="utf-8")
        else:
            self.version_file.unlink(missing_ok=True)

    def _too_long(self) -> str:
        return f"the file has more than the allowed {self.max_bytes:,} bytes"

    def _keep_pace(self, n_bytes: int, seconds: float) -> None:
        if time.monotonic() > self.deadline:
            raise _GivenUpError(f"the transfer was not complete after {TRANSFER_TIMEOUT_S:g} s")
        if seconds > PACE_CHECK_AFTER_S and n_bytes < LOWEST_BYTES_PER_S * seconds:
            raise _GivenUpError(
                f"the server sends too slowly: {n_bytes:,} bytes in {seconds:.0f} s; they are kept,"
                " and the next fetch continues from there"
            )


@dataclass(frozen=True)
class _Version:
    """The version of a file as a server states it; `total` is its length in bytes or -1."""

    etag: str
    modified: str
    total: int

    @classmethod
    def of(cls, answer: requests.Response) -> _Version:
        """Return the version that the head of a response names."""
        response_headers = answer.headers
        length = response_headers.get("Content-Length", "")
        if answer.status_code == 206:
            length = response_headers.get("Content-Range", "").rpartition("/")[2]
        is_length = length.isascii() and length.isdigit() and len(length) < 16
        return cls(
            response_headers.get("ETag", "")[:1000],
            response_headers.get("Last-Modified", "")[:1000],
            int(length) if is_length else -1,
        )

    @property
    def validator(self) -> str:
        """The value for If-Range, which allows no weak ETag."""
        return self.modified if not self.etag or self.etag.startswith("W/") else self.etag

    def continues(self, begun: _Version | None) -> bool:
        """Return True if a download that began with another response may go on with this one."""
        if begun is None or self.total not in (-1, begun.total) or begun.total == -1:
            return False
        return not any(
            earlier and earlier != present
            for earlier, present in ((begun.etag, self.etag), (begun.modified, self.modified))
        )


def _read_version(path: Path) -> _Version | None:
    """Return the version of a partial file that an earlier process noted, if it did."""
    try:
        content = json.loads(paths.read_regular(path, 1 << 14))
        etag, modified, total = (content[name] for name in ("etag", "modified", "total"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_whole = isinstance(etag, str) and isinstance(modified, str) and isinstance(total, int)
    return _Version(etag, modified, total) if is_whole else None


def response_within_timeout(
    url: str, headers: dict[str, str], *, head_only: bool = False
) -> requests.Response:
    """Send a request and return the response once its head is complete, within `HEAD_TIMEOUT_S`.

    requests bounds each wait for bytes, but a server that sends one byte of the head each second
    would block it for hours. Therefore a thread waits, and it is abandoned after the timeout.

    Raises
    ------
    requests.RequestException
        If there is no response.
    """
    outcome: list[requests.Response | BaseException] = []

    def ask() -> None:
        send = requests.head if head_only else requests.get
        waits = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
        try:
            outcome.append(send(url, headers=headers, stream=True, timeout=waits))
        except BaseException as error:
            outcome.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(HEAD_TIMEOUT_S)
    if not outcome:
        raise requests.ReadTimeout("Read timed out.")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _announced(answer: requests.Response, n_bytes: int) -> int | None:
    """Return the total number of bytes if the server states it in digits, else None."""
    length = answer.headers.get("Content-Length", "").strip()
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        return None
    return n_bytes + int(length)


def network_reason(error: Exception) -> str:
    """Return a short reason for a network failure, without the library's nested messages."""
    text = str(error)
    if isinstance(error, requests.ConnectTimeout):
        return "the server did not answer in time"
    if isinstance(error, requests.Timeout) or "timed out" in text:
        return "the connection stalled"
    for sign in ("NameResolutionError", "Name or service", "getaddrinfo", "name resolution"):
        if sign in text:
            return "no internet here (name resolution failed)"
    if "refused" in text:
        return "the connection was refused"
    if "unreachable" in text:
        return "no internet here (network unreachable)"
    return f"the connection failed ({type(error).__name__})"
