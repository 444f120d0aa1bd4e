"""Memory and descendants of processes, and the CPU's description, as /proc or psutil has them.

psutil is used on systems without /proc. On Linux, psutil lacks counters that are needed here
(anonymous memory, a resettable peak, the size of the data segment). It also takes too much CPU time
from a fit that is being measured: to find the descendants of a process it looks at all processes,
which takes 1.5 ms with 110 of them. The kernel's own list takes 0.05 ms.
"""

from __future__ import annotations

import contextlib

from svmbench.experiment.measuring import measure
from svmbench.experiment.measuring.measure import status_bytes

#: Largest number of descendants of a process; a process with more is ended.
_MAX_DESCENDANTS = 1000
#: Shared memory of at least this many bytes is examined mapping by mapping, which takes time.
_MIN_SHARED_BYTES = 32 << 20


def cpu_facts() -> dict[str, str]:
    """Return the kernel's entries for the first CPU by their names; empty outside Linux."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in (measure.PROC / "cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
    return facts


def mapped_libraries() -> int | None:
    """Return how many pieces of shared libraries this process has mapped; None outside Linux.

    Modules of Python's standard library don't count: they have no pools of threads.
    """
    with contextlib.suppress(OSError):
        maps = (measure.PROC / "self" / "maps").read_bytes()
        return maps.count(b".so") - maps.count(b"/lib-dynload/")
    return None


def open_descriptors() -> list[int] | None:
    """Return this process's open file descriptors; None where the kernel can't list them."""
    with contextlib.suppress(OSError):
        return [int(entry.name) for entry in (measure.PROC / "self" / "fd").iterdir()]
    return None


def rename_process(name: str) -> None:
    """Set the name of this process in lists of processes, at most 15 bytes, if the kernel can."""
    with contextlib.suppress(OSError):
        (measure.PROC / "self" / "comm").write_text(name)


def own_bytes(pid: int | None = None) -> int:
    """Return a process's resident memory without the pages of files.

    The kernel counts mapped files of a memory file system among the shared. Those are the run's
    arrays, in a scratch folder there, so they are taken off where they matter. Outside Linux it is
    all resident memory, mapped files among it. Of a process that has ended it is 0.

    Parameters
    ----------
    pid : int, optional
        The process's id; default: this one.
    """
    if not _has_proc():
        import psutil

        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(pid).memory_info().rss)
        return 0
    which = "self" if pid is None else str(pid)
    sizes = status_bytes(which)
    shared = sizes.get("RssShmem", 0)
    if shared > _MIN_SHARED_BYTES:
        shared = _shared_without_arrays(which)
    return sizes.get("RssAnon", 0) + shared


def _shared_without_arrays(which: str) -> int:
    total, counts = 0, False
    with (
        contextlib.suppress(OSError),
        (measure.PROC / which / "smaps").open(errors="replace") as lines,
    ):
        for line in lines:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                name = " ".join(words[5:])
                # "s" for shared; what has a name is /dev/zero, /memfd:…, /dev/shm/… or a file.
                counts = words[1].endswith("s") and not name.endswith(".npy")
                counts &= name.startswith(("/dev/zero", "/memfd:", "/dev/shm/", "/SYSV"))
            elif counts and words[0] == "Rss:":
                total += int(words[1]) * 1024
    return total


def descendants(pid: int) -> list[int]:
    """Return the ids of the processes that one has forked, and of theirs."""
    if not _has_proc():
        import psutil

        with contextlib.suppress(psutil.Error):
            below = psutil.Process(pid).children(recursive=True)
            return [process.pid for process in below[:_MAX_DESCENDANTS]]
        return []
    pids: list[int] = []
    todo = [pid]
    while todo and len(pids) < _MAX_DESCENDANTS:
        for path in (measure.PROC / str(todo.pop()) / "task").glob("*/children"):
            with contextlib.suppress(OSError):
                new = [int(number) for number in path.read_text().split()]
                pids += new
                todo += new
    return pids


def _has_proc() -> bool:
    return (measure.PROC / "self").exists()
