"""Numba, set up once: the decorator of every inner loop, and a cache that can't go stale.

Numba's own cache notices a changed file but not a change in a function imported from another
one. The cache folder is therefore keyed by a hash of every source file of `core`, of the
versions that shape the machine code, and of the CPU.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from svmbench.base.paths import cache_dir, why_not_private


def _cpu_name() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cache_key() -> str:
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]  # in an archive there are no files to read
    for source in sorted([*root.glob("base/compiled.py"), *root.glob("core/**/*.py")]):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    for package in ("numba", "numpy"):
        digest.update(version(package).encode())
    digest.update(platform.python_version().encode())
    digest.update(_cpu_name().encode())
    return digest.hexdigest()[:16]


def _can_be_used(folder: Path) -> bool:
    """Return True if this user alone can write to a folder: files there are run."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        reason = why_not_private(folder)
    except OSError:
        return False
    if reason:
        warnings.warn(
            f"compiled code is neither read nor kept in {folder}, since {reason}, and could put"
            " code there; let SVMBENCH_CACHE name a folder that you alone can write to",
            RuntimeWarning,
            stacklevel=4,
        )
        return False
    return os.access(folder, os.W_OK)


def _copy_loops(source: Path, folder: Path) -> None:
    """Copy a filled cache that can only be read, unless other users can write to it."""
    try:
        if why_not_private(source):
            return
        # Indices (.nbi) come after the code (.nbc) that they name.
        files = [path for path in source.rglob("*.nb[ci]") if path.is_file()]
        for path in sorted(files, key=lambda file: file.suffix):
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            half = target.with_name(f".{target.name}-{os.getpid()}")
            shutil.copyfile(path, half)
            half.replace(target)
    except OSError:  # the loops that are missing are compiled
        return


def _choose_folder() -> Path | None:
    """Return the folder of compiled code, or None if there is none that can be used.

    If the named one can't be written, or other users can write to it, a folder in the temporary
    one takes its place. It is filled from the named one.
    """
    key = _cache_key()
    named = Path(os.environ.get("NUMBA_CACHE_DIR") or cache_dir() / "numba" / key)
    if _can_be_used(named):
        return named
    try:
        temporary = Path(tempfile.gettempdir()) / f"svmbench-{os.geteuid()}" / "numba" / key
        if not _can_be_used(temporary):
            return None
        if not any(temporary.iterdir()):
            _copy_loops(named, temporary)
    except OSError:
        return None
    return temporary


#: The folder of compiled code, or None if there is none that can be used.
FOLDER: Path | None = _choose_folder()

#: False without a folder. Numba would then write beside the sources, under a key that does go
#: stale; without a cache each process that needs them compiles the loops anew.
CACHED: bool = FOLDER is not None

if FOLDER is not None:
    os.environ["NUMBA_CACHE_DIR"] = str(FOLDER)  # for the processes that this one starts, too

import numba  # noqa: E402  (the cache folder must be named before Numba reads it)

# Whoever imported Numba first (LIBLINEAR's package does) made it read the environment too early.
numba.config.CACHE_DIR = str(FOLDER or "")  # type: ignore[attr-defined]

#: True under ``NUMBA_DISABLE_JIT=1``, where the same loops run as plain Python.
JIT_DISABLED: bool = bool(vars(numba.config)["DISABLE_JIT"])


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile an inner loop: cached on disk, without the GIL, NaN-safe float64 arithmetic.

    ``nogil`` lets a worker's watchdog threads run while the loop does. There is no fastmath:
    convergence tests and NaN checks must mean what they say.
    """
    return numba.njit(cache=CACHED, nogil=True, error_model="numpy")(function)


def _make_wide_vectors() -> Any:
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def wide(typing_context: Any) -> Any:
        """Let the loops of the function that this stands in use vectors of 512 bits."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # llvmlite's own list has no such attribute; LLVM reads what is written.
            attributes = builder.function.attributes
            if isinstance(attributes, set):
                set.add(attributes, '"prefer-vector-width"="512"')
            return context.get_dummy_value()

        return types.void(), emit

    return wide


def _make_prefetch() -> Any:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array.flat[index]`` (C order); no check of the bounds."""

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            items = context.make_array(signature.args[0])(context, builder, args[0]).data
            offset = context.cast(builder, args[1], signature.args[1], types.intp)
            address = builder.bitcast(builder.gep(items, [offset]), cgutils.voidptr_t)
            word = ir.IntType(32)
            hint = builder.module.declare_intrinsic(
                "llvm.prefetch",
                (cgutils.voidptr_t,),
                ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word]),
            )
            # For reading, into every level of the data cache.
            builder.call(hint, [address, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, index), emit

    return prefetch


def _no_hint(*_arguments: Any) -> None:
    """Do nothing: hints to the processor are for compiled code."""


#: Called at the top of a hot loop's function: its loops may use vectors of 512 bits, where LLVM by
#: default takes 256 of a processor that has both. Without AVX-512 it changes nothing.
wide_vectors: Any = _no_hint if JIT_DISABLED else _make_wide_vectors()

#: ``prefetch(array, index)``: this array element is needed soon. A loop over rows in random order
#: spends most of its time waiting for memory; it knows its order, and asking for the rows a few
#: steps early hides the wait. Results never depend on it.
prefetch: Any = _no_hint if JIT_DISABLED else _make_prefetch()


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as :func:`compiled` does, into each caller: for small helpers of a hot loop.

    A call that hands over a tuple of arrays counts a reference to every one of them, which costs
    more than a short loop does.
    """
    return numba.njit(cache=CACHED, nogil=True, error_model="numpy", inline="always")(function)


def compiled_fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as :func:`compiled` does, and let a product and a sum be rounded once, as one.

    Only the flag ``contract``: the order of sums is as written, so that adding a large number and
    taking it away again rounds to an integer.
    """
    return numba.njit(cache=CACHED, nogil=True, error_model="numpy", fastmath={"contract"})(
        function
    )


def compiled_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as :func:`compiled` does, and let sums be reordered so that they vectorise.

    Only the flags ``reassoc``, ``contract`` and ``nsz`` (the sign of a zero may change): NaN and
    infinities still mean what they say, and a result differs from the written order by rounding
    alone.
    """
    return numba.njit(
        cache=CACHED, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
    )(function)
