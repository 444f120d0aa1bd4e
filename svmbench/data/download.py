"""Bringing one file over HTTP: bounded, retried, resumed, locked against a second process.

requests does the talking. pooch (which is built on it) has no resume, so that is added here: a
partial file stays beside its target and the next attempt asks for the rest. So are the bounds that
neither has: of a transfer's bytes, of its time over all attempts, and of its pace.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests
import urllib3
from filelock import FileLock

from svmbench.base import paths
from svmbench.base.errors import DataUnavailableError
from svmbench.data.entries import file_name, shown_address

#: ``progress(done, total)`` in bytes; `total` is None where the server doesn't say.
Progress = Callable[[int, int | None], None]

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
#: Seconds until an answer's head is whole, redirections included.
HEAD_TIMEOUT = 60.0
#: Seconds that a transfer may take, with all its attempts.
DEADLINE = 3600.0
#: The slowest pace that is waited for, in bytes a second, once so many seconds have passed.
SLOWEST = 1024.0
PACE_AFTER = 30.0
ATTEMPTS = 4
PAUSE = 0.5
CHUNK = 1 << 16


class NotThereError(DataUnavailableError):
    """The server answers, and says that it doesn't have the file."""


class _RetryError(Exception):
    """An attempt failed in a way that another may not."""


class _GivenUpError(Exception):
    """The transfer failed in a way that another attempt would not mend."""


@dataclass(frozen=True)
class Download:
    """A file that was asked for, and whether this call brought it or found it there."""

    place: Path
    is_new: bool


def download(
    url: str,
    folder: Path,
    progress: Progress | None = None,
    max_bytes: int | None = None,
    *,
    again: bool = False,
) -> Download:
    """Bring the file at `url` into `folder`.

    A file that is there already is left as it is. A download that was cut off continues where it
    stopped if the server can do that, and starts again if it can't.

    Parameters
    ----------
    url : str
        http or https address.
    folder : Path
        Where it goes, under the URL's own file name.
    progress : callable, optional
        Called with (bytes so far, bytes in all or None) after every piece.
    max_bytes : int, optional
        The most bytes that it may have; what is longer is not kept.
    again : bool, default=False
        Bring it even if it is there; the file that is there stays until the new one is whole.

    Raises
    ------
    NotThereError
        If the server has no such file.
    DataUnavailableError
        If it can't be reached, keeps failing, sends too much, or takes too long; in one sentence
        with the URL, but for what may be secret in it.
    """
    name = file_name(url)
    why = paths.why_unfit(name)
    if why:
        raise DataUnavailableError(
            f"the address names the file {name!r}, which {why} ({shown_address(url)})"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with FileLock(target.with_name(target.name + ".lock")):
        if target.exists() and not again:
            return Download(target, is_new=False)
        transfer = _Transfer(url, target.with_name(target.name + ".part"), progress, max_bytes)
        transfer.all_attempts()
        transfer.partial.replace(target)
        return Download(target, is_new=True)


class _Transfer:
    """One file on its way: what bounds it and what it has come to."""

    def __init__(
        self, url: str, partial: Path, progress: Progress | None, max_bytes: int | None
    ) -> None:
        self.url = url
        self.partial = partial
        self.progress = progress
        self.max_bytes = float("inf") if max_bytes is None else max_bytes
        self.deadline = time.monotonic() + DEADLINE

    def all_attempts(self) -> None:
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                self._attempt()
            except _GivenUpError as error:
                reason = str(error)
                break
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
            except (ValueError, OSError) as error:  # a head that no library makes sense of
                reason = f"the answer makes no sense ({type(error).__name__})"
            else:
                return
        raise DataUnavailableError(f"{reason} ({shown_address(self.url)})")

    def _attempt(self) -> None:
        have = self.partial.stat().st_size if self.partial.exists() else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "svmbench"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with answered(self.url, headers) as answer:
            if answer.status_code in (404, 403, 410):
                raise NotThereError(f"the server has no such file ({shown_address(self.url)})")
            if answer.status_code == 416:  # the partial file is longer than the file: start again
                self.partial.unlink()
                raise _RetryError("the partial download did not fit the file")
            if answer.status_code not in (200, 206):
                raise _RetryError(f"the server answered {answer.status_code}")
            if answer.status_code == 200:
                have = 0
            elif not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                self.partial.unlink()
                raise _RetryError("the server sent another range than was asked for")
            self._body(answer, have, _announced(answer, have))

    def _body(self, answer: requests.Response, have: int, total: int | None) -> None:
        if total is not None and total > self.max_bytes:
            raise _GivenUpError(self._too_long())
        began, start = time.monotonic(), have
        with self.partial.open("ab" if have else "wb") as out:
            # read1 hands over what has arrived; iter_content would wait for a whole chunk and lose
            # its beginning when the connection ends.
            while piece := answer.raw.read1(CHUNK):
                out.write(piece)
                have += len(piece)
                if self.progress is not None:
                    self.progress(have, total)
                if have > self.max_bytes:
                    out.close()
                    self.partial.unlink(missing_ok=True)
                    raise _GivenUpError(self._too_long())
                self._keep_pace(have - start, time.monotonic() - began)
        if total is not None and have != total:
            raise _RetryError(f"the connection ended after {have:,} of {total:,} bytes")

    def _too_long(self) -> str:
        return f"the file has more than the {self.max_bytes:,} bytes that it may have"

    def _keep_pace(self, came: int, seconds: float) -> None:
        if time.monotonic() > self.deadline:
            raise _GivenUpError(f"the transfer was not over after {DEADLINE:g} s")
        if seconds > PACE_AFTER and came < SLOWEST * seconds:
            raise _GivenUpError(
                f"the server sends too slowly: {came:,} bytes in {seconds:.0f} s; what has come is"
                " kept, and another fetch goes on from there"
            )


def answered(url: str, headers: dict[str, str], *, head_only: bool = False) -> requests.Response:
    """Return an answer whose body is still to come, within `HEAD_TIMEOUT`.

    The library bounds each wait for bytes; a head of which a byte comes every second would keep it
    for hours. So it waits in a thread, which is left behind when the time is over.

    Raises
    ------
    requests.RequestException
        If there is no answer.
    """
    outcome: list[requests.Response | BaseException] = []

    def ask() -> None:
        send = requests.head if head_only else requests.get
        waits = (CONNECT_TIMEOUT, READ_TIMEOUT)
        try:
            outcome.append(send(url, headers=headers, stream=True, timeout=waits))
        except BaseException as error:
            outcome.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(HEAD_TIMEOUT)
    if not outcome:
        raise requests.ReadTimeout("Read timed out.")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _announced(answer: requests.Response, have: int) -> int | None:
    """Return how many bytes there will be in all, where the server says so in digits."""
    length = answer.headers.get("Content-Length", "").strip()
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        return None
    return have + int(length)


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
