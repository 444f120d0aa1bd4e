"""Reading and writing of files in results folders without following symbolic links.

A results folder may be a clone, an archive or a colleague's. The folder given to a command may be a
link. Below that folder no link is followed, and only regular files are opened: a pipe would block
its reader, ``/dev/zero`` would fill the memory, and a link would read or overwrite a file
elsewhere. All commands use this module to open files of results folders.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from svmbench.base.errors import ResultsError
from svmbench.base.paths import opened_regular

#: Largest number of bytes of a file that is read as a whole.
MAX_WHOLE_BYTES = 128 << 20
#: Largest numbers of bytes of a JSON file, and of its commas and opening brackets, which limit the
#: number of its values. The largest kept plan has 191 kB with 540 cells and 9,371 of these signs.
#: The limits are 350 and 266 times as high: enough for 144,000 such cells; a config has at most
#: 50,000.
MAX_JSON_BYTES, MAX_JSON_SIGNS = 64 << 20, 2_500_000
#: Largest number of bytes of a file that is read or copied in pieces.
MAX_STREAMED_BYTES = 8 << 30
#: Part of the name of temporary files, which replace a folder's files once they are complete.
_PARTIAL = ".partial-"
_LINK = "it is a link, and no link in a results folder is followed"
#: renameat2's flag to exchange two paths, and the folder that paths are relative to.
_RENAME_EXCHANGE, _AT_FDCWD = 2, -100


def open_file(
    path: Path, most: int = MAX_STREAMED_BYTES, *, within: Path | None = None
) -> BinaryIO:
    """Open a regular file of a results folder for reading.

    Parameters
    ----------
    path : Path
    most : int, default 8 GiB
        Largest number of bytes of the file.
    within : Path, optional
        The folder below which no link is followed. Default: the folder of the file.

    Raises
    ------
    OSError
        If the file can't be read, is a link or not a regular file, or is larger; `strerror` is the
        reason.
    """
    with _folder_of(path, within) as folder:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        with _links_named(path):
            descriptor = os.open(path.name, flags, dir_fd=folder)
    return opened_regular(descriptor, path, most)


def read_bytes(path: Path, most: int = MAX_WHOLE_BYTES, *, within: Path | None = None) -> bytes:
    """Return the content of a regular file of a results folder; errors as in `open_file`."""
    with open_file(path, most, within=within) as stream:
        # Read the present size: the file may grow meanwhile, and `read` allocates what it requests.
        return stream.read(os.fstat(stream.fileno()).st_size)


def read_text(path: Path, most: int = MAX_WHOLE_BYTES) -> str:
    """Return the text of a file (UTF-8), with unchanged line ends.

    Raises
    ------
    OSError, UnicodeDecodeError
        If the file can't be read, or is not UTF-8.
    """
    return read_bytes(path, most).decode("utf-8")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of a results folder.

    Raises
    ------
    OSError
        If the file can't be read or is too large.
    RecursionError
        If it is nested too deep.
    ValueError
        If it is not JSON in UTF-8, or has NaN, infinity, or more than `MAX_JSON_SIGNS` commas
        and opening brackets.
    """
    content = read_bytes(path, MAX_JSON_BYTES)
    n_signs = sum(map(content.count, (b",", b"[", b"{")))
    if n_signs > MAX_JSON_SIGNS:
        raise ValueError(
            f"it has {n_signs:,} commas and opening brackets; at most {MAX_JSON_SIGNS:,}"
            " are allowed"
        )
    return json.loads(content.decode("utf-8"), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def open_to_append(path: Path) -> int:
    """Open a regular file for reading and appending; create it if it is missing.

    Returns
    -------
    int
        The file descriptor.

    Raises
    ------
    OSError
        If the file can't be opened, or is a link or not a regular file; `strerror` is the reason.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    with _links_named(path):
        descriptor = os.open(path, flags, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def exists_in_results(path: Path) -> bool:
    """Return True if a name exists in a results folder, even as a broken link."""
    return os.path.lexists(path)


def make_folder(path: Path) -> Path:
    """Make a folder in a results folder if it is missing; return its path.

    Raises
    ------
    OSError
        If it can't be made, or is a link or not a folder; `strerror` is the reason.
    """
    with suppress(FileExistsError):
        path.mkdir()
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, _LINK, str(path))
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return path


def write_bytes(
    path: Path, content: bytes | Iterable[bytes], *, within: Path | None = None
) -> Path:
    """Replace a file by `content`, which may come in pieces, in one step; return its path.

    The bytes go to a new file in the same folder, which is then renamed. So no reader sees an
    unfinished file, even if the writer is killed. A link of this name is replaced, too.

    Raises
    ------
    ResultsError
        If the folder can't be written.
    """
    partial = f"{_PARTIAL}{secrets.token_hex(8)}"
    try:
        with _folder_of(path, within) as folder:
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(partial, flags, 0o644, dir_fd=folder), "wb") as stream:
                    stream.writelines([content] if isinstance(content, bytes) else content)
                os.replace(partial, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise
    except OSError as error:
        raise ResultsError(f"can't write {path}: {error.strerror or error}") from error
    return path


def write_text(path: Path, content: str | Iterable[str]) -> Path:
    """Replace a file by a text (UTF-8, unchanged line ends) like :func:`write_bytes`."""
    pieces = [content] if isinstance(content, str) else content
    return write_bytes(path, (piece.encode("utf-8") for piece in pieces))


def copy(source: Path, target: Path, *, within: Path | None = None) -> None:
    """Copy a regular file of a results folder to a new file.

    Parameters
    ----------
    source, target : Path
    within : Path, optional
        The folder of the source below which no link is followed; see :func:`open_file`.

    Raises
    ------
    OSError
        If the source can't be read (see :func:`open_file`), or the target exists.
    """
    with open_file(source, within=within) as stream, target.open("xb") as made:
        shutil.copyfileobj(stream, made, 1 << 20)


def remove(*paths: Path) -> None:
    """Remove files; missing ones are ignored.

    Raises
    ------
    ResultsError
        If a file can't be removed.
    """
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ResultsError(f"can't remove {path}: {error.strerror or error}") from error


def clear_of_links(folder: Path) -> None:
    """Remove links, pipes and the like below a folder, and unfinished files of killed writers.

    Raises
    ------
    OSError
        If one of them can't be removed.
    """
    for root, folders, names in os.walk(folder):
        for path in (Path(root, name) for name in (*folders, *names)):
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or path.name.startswith(_PARTIAL):
                path.unlink()


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces the folder `target` if no error occurs.

    On Linux and most file systems, both are exchanged in one step, so that a killed process leaves
    either the former folder or the new one at `target`. Elsewhere the former folder is moved away
    first; after a kill, the next call for the same target moves it back.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    restore(target)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    made, former = scratch / "made", scratch / "former"
    scratch.mkdir(mode=0o700)
    descriptor = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # tells `restore` that this process lives
        made.mkdir()
        yield made
        if not exists_in_results(target):
            made.rename(target)
        elif not _exchange(made, target):
            target.rename(former)
            try:
                made.rename(target)
            except BaseException:
                former.rename(target)
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(descriptor)


def restore(target: Path) -> None:
    """Move back the folder that a killed :func:`replaced` moved away; remove its other folders."""
    for scratch in sorted(target.parent.glob(f".{_plain(target.name)}.{'[0-9a-f]' * 8}")):
        if scratch.is_symlink() or not scratch.is_dir():
            continue
        descriptor = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (scratch / "former").is_dir() and not exists_in_results(target):
                (scratch / "former").rename(target)
            shutil.rmtree(scratch, ignore_errors=True)
        except OSError:  # another process holds the lock, or there are no locks
            continue
        finally:
            os.close(descriptor)


def restore_below(root: Path) -> None:
    """Move back all folders, at any depth, that killed processes moved away."""
    for former in sorted(root.rglob(f".*.{'[0-9a-f]' * 8}/former")):
        name = former.parent.name[1:].rpartition(".")[0]
        restore(former.parent.with_name(name))


def _plain(name: str) -> str:
    """Return a glob pattern that matches only a name."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def _exchange(path: Path, other: Path) -> bool:
    """Exchange two paths in one step; return False if the system can't."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(path), os.fsencode(other)
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
        return False
    raise OSError(number, os.strerror(number), str(other))


@contextmanager
def _folder_of(path: Path, within: Path | None) -> Iterator[int]:
    """Open the folder of a file, without following links below `within`."""
    top = path.parent if within is None else within
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(top, flags)
    try:
        folder = top
        for name in path.parent.relative_to(top).parts:
            folder = folder / name
            with _links_named(folder):
                below = os.open(name, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _links_named(path: Path) -> Iterator[None]:
    """Replace the system's error for a link, which is misleading, by a clear one."""
    try:
        yield
    except OSError as error:
        if path.is_symlink():
            raise OSError(errno.ELOOP, _LINK, str(path)) from error
        raise OSError(error.errno, error.strerror, str(path)) from error
