"""Bringing one file over HTTP: bounded, retried, resumed, locked against a second process.

requests does the talking. pooch (which is built on it) has no resume, so what is added here is
that alone: a partial file stays beside its target and the next attempt asks for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
import urllib3
from filelock import FileLock

from svmbench.errors import DataUnavailableError

#: ``progress(done, total)`` in bytes; `total` is None where the server doesn't say.
Progress = Callable[[int, int | None], None]

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
ATTEMPTS = 4
PAUSE = 0.5
CHUNK = 1 << 16


class NotThereError(DataUnavailableError):
    """The server answers, and says that it doesn't have the file."""


class _RetryError(Exception):
    """An attempt failed in a way that another may not."""


def file_name(url: str) -> str:
    """Return the last part of a URL's path."""
    return unquote(Path(urlsplit(url).path).name)


def download(url: str, folder: Path, progress: Progress | None = None) -> Path:
    """Bring the file at `url` into `folder` and return its path.

    A file that is there already is returned as it is. A download that was cut off continues where
    it stopped if the server can do that, and starts again if it can't.

    Parameters
    ----------
    url : str
        http or https address.
    folder : Path
        Where it goes, under the URL's own file name.
    progress : callable, optional
        Called with (bytes so far, bytes in all or None) after every piece.

    Raises
    ------
    NotThereError
        If the server has no such file.
    DataUnavailableError
        If it can't be reached or keeps failing, in one sentence with the URL.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file_name(url)
    with FileLock(target.with_name(target.name + ".lock")):
        if target.exists():
            return target
        partial = target.with_name(target.name + ".part")
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                _attempt(url, partial, progress)
            except _RetryError as error:
                reason = str(error)
            except requests.ConnectionError as error:
                reason = _why(error)
                if "name resolution" in reason or "refused" in reason:
                    break  # an offline machine is told so at once
                if isinstance(error, requests.ConnectTimeout) and attempt:
                    break  # and one whose packets vanish waits for two timeouts
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                reason = _why(error)
            else:
                partial.replace(target)
                return target
        raise DataUnavailableError(f"{reason} ({url})")


def _attempt(url: str, partial: Path, progress: Progress | None) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    headers = {"Accept-Encoding": "identity", "User-Agent": "svmbench"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with requests.get(
        url, headers=headers, stream=True, timeout=(CONNECT_TIMEOUT, READ_TIMEOUT)
    ) as answer:
        if answer.status_code in (404, 403, 410):
            raise NotThereError(f"the server has no such file ({url})")
        if answer.status_code == 416:  # the partial file is longer than the file: start again
            partial.unlink()
            raise _RetryError("the partial download did not fit the file")
        if answer.status_code not in (200, 206):
            raise _RetryError(f"the server answered {answer.status_code} {answer.reason}")
        if answer.status_code == 200:
            have = 0
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            partial.unlink()
            raise _RetryError("the server sent another range than was asked for")
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        with partial.open("ab" if have else "wb") as out:
            # read1 hands over what has arrived; iter_content would wait for a whole chunk and lose
            # its beginning when the connection ends.
            while piece := answer.raw.read1(CHUNK):
                out.write(piece)
                have += len(piece)
                if progress is not None:
                    progress(have, total)
        if total is not None and have != total:
            raise _RetryError(f"the connection ended after {have:,} of {total:,} bytes")


def _why(error: Exception) -> str:
    """Return a few words on a network failure, without the library's nested messages."""
    text = str(error)
    if isinstance(error, requests.ConnectTimeout):
        return "the server did not answer in time"
    if isinstance(error, requests.Timeout) or "Read timed out" in text:
        return "the connection stalled"
    for sign in ("NameResolutionError", "Name or service", "getaddrinfo", "name resolution"):
        if sign in text:
            return "no internet here (name resolution failed)"
    if "refused" in text:
        return "the connection was refused"
    if "unreachable" in text:
        return "no internet here (network unreachable)"
    return f"the connection failed ({type(error).__name__})"
