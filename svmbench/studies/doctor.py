"""Checks of this machine, with a remedy for each problem."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from svmbench.base import loaded_libraries, paths

#: The doctor warns if the cache has less free space, in GiB; the largest prepared set takes 2.
MIN_FREE_CACHE_GIB = 4.0


BYTES_PER_GIB = 2**30


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    what : str
        What was checked.
    found : str
        The state that was found.
    status : str
        ``"ok"``, ``"note"`` (works, but …) or ``"broken"``.
    mend : str
        A remedy, if the status is not ``"ok"``.
    """

    what: str
    found: str
    status: str = "ok"
    mend: str = ""


def examine_machine() -> list[Finding]:
    """Make all checks, without changes and without downloads.

    Returns
    -------
    findings : list of Finding
        In the order in which problems are best mended.
    """
    checks: list[Callable[[], Iterator[Finding]]] = [
        _versions,
        _solvers,
        _machine,
        _cache,
        _mirror,
        _datasets,
        _measuring,
    ]
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        except Exception as error:  # a check that fails is itself a finding
            what = check.__name__.strip("_")
            message = " ".join(f"{type(error).__name__}: {error}".split())
            findings.append(
                Finding(what, message, "broken", "--debug with any command shows where")
            )
    return findings


def to_json(findings: list[Finding]) -> dict[str, Any]:
    """Return the findings as JSON values, and ``ok``, which is False if one is broken."""
    return {"ok": is_ok(findings), "findings": [asdict(finding) for finding in findings]}


def is_ok(findings: list[Finding]) -> bool:
    """Return True if no finding has the status broken."""
    return all(finding.status != "broken" for finding in findings)


def _versions() -> Iterator[Finding]:
    from svmbench import __version__
    from svmbench.experiment.measuring import environment

    yield Finding("svmbench", f"{__version__} in {paths.PACKAGE}")
    yield Finding("python", f"{platform.python_version()} in {sys.prefix}")
    facts = environment.environment_facts(1)
    lacking = [name for name, version in facts["packages"].items() if version == "not installed"]
    has = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    if lacking:
        mend = f"python -m pip install {' '.join(lacking)}"
        yield Finding("packages", has, "broken", mend)
    else:
        yield Finding("packages", has)
    yield Finding("BLAS", "; ".join(facts["blas"]) or "unknown")


def _solvers() -> Iterator[Finding]:
    for module, built_from in (
        ("liblinear.liblinear", "liblinear-official"),
        ("libsvm.svm", "libsvm-official"),
    ):
        try:
            importlib.import_module(module)
        except Exception as error:
            mend = f"python -m pip install --force-reinstall {built_from} (it needs g++ and make)"
            yield Finding(built_from, f"can't be loaded: {error}", "broken", mend)
    plugins = os.environ.get("SVMBENCH_PLUGINS", "")
    try:
        from svmbench.baselines.catalogue import solvers

        number = len(solvers())
    except Exception as error:
        mend = "install svmbench again (in a checkout: make setup)"
        if plugins:
            mend = "check SVMBENCH_PLUGINS, and that PYTHONPATH names the folder of your modules"
        yield Finding("solvers", " ".join(str(error).split()), "broken", mend)
        return
    yield Finding("solvers", f"{number}" + (f", with those of {plugins}" if plugins else ""))


def _machine() -> Iterator[Finding]:
    from svmbench.experiment.measuring import environment

    cores = os.cpu_count() or 1
    yield Finding("CPU", f"{environment.cpu_model()}, {cores} cores")
    load = environment.load_average()
    if load and load[0] > cores / 2:
        mend = "times will vary; races, which decide claims about speed, are robust to this"
        yield Finding("load", f"{load[0]:g} on {cores} cores", "note", mend)
    elif load:
        yield Finding("load", f"{load[0]:g} on {cores} cores")
    limits = [
        f"{name}={os.environ[name]}"
        for name in loaded_libraries.THREAD_VARIABLES
        if name in os.environ
    ]
    yield Finding(
        "threads",
        f"{', '.join(limits) or 'not set'}; in a run, cells have as many as the config says",
    )
    if not sys.platform.startswith("linux"):
        mend = "memory limits and the clean-up after a killed run need Linux"
        yield Finding("system", platform.platform(), "note", mend)


def _cache() -> Iterator[Finding]:
    cache = paths.cache_dir()
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        mend = "make it writable, or name another folder in SVMBENCH_CACHE"
        yield Finding("cache", f"{cache} can't be written", "broken", mend)
        return
    free = shutil.disk_usage(existing).free / BYTES_PER_GIB
    size = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) / BYTES_PER_GIB
    state = f"{cache}, {size:.1f} GiB, {free:.1f} GiB free"
    if free < MIN_FREE_CACHE_GIB:
        mend = "make room, or name another folder in SVMBENCH_CACHE"
        yield Finding("cache", state, "note", mend)
    else:
        yield Finding("cache", state)
    yield from _compiled()


def _compiled() -> Iterator[Finding]:
    from svmbench.base import compiled

    if compiled.JIT_DISABLED:
        mend = "unset NUMBA_DISABLE_JIT: without it loops run as plain Python, slowly"
        yield Finding("compiled code", "off", "note", mend)
        return
    if compiled.FOLDER is None:
        mend = "each process compiles anew; name a writable folder in SVMBENCH_CACHE"
        yield Finding("compiled code", "no folder to keep it", "note", mend)
        return
    loops = list(compiled.FOLDER.rglob("*.nbi"))
    if loops:
        yield Finding("compiled code", f"{len(loops)} loops kept for these versions and this CPU")
    else:
        mend = "'svmbench warmup' compiles now what the first run would compile otherwise"
        yield Finding("compiled code", "none kept for these versions and this CPU", "note", mend)


def _mirror() -> Iterator[Finding]:
    from svmbench.data.entries import shown_address
    from svmbench.data.fetch import configured_mirror, is_url

    mirror = configured_mirror()
    if mirror is None:
        offline = os.environ.get("SVMBENCH_OFFLINE")
        state = (
            "none, and SVMBENCH_OFFLINE forbids downloads from the official addresses"
            if offline
            else "none"
        )
        mend = "SVMBENCH_MIRROR names a folder or URL with the files; without it they are "
        mend += "downloaded from their official addresses"
        yield Finding("mirror", state, "note", mend)
    elif is_url(mirror):
        yield _mirror_url(mirror)
    elif not paths.expanded(mirror).is_dir():
        mend = "name an existing folder in SVMBENCH_MIRROR, or unset it"
        yield Finding("mirror", f"{shown_address(mirror)} is not a folder", "broken", mend)
    else:
        yield Finding("mirror", mirror)


def _mirror_url(mirror: str) -> Finding:
    import requests

    from svmbench.data.download import response_within_timeout
    from svmbench.data.entries import shown_address

    shown = shown_address(mirror)
    try:
        response_within_timeout(mirror, {}, head_only=True).close()
    except requests.RequestException as error:
        mend = "check the address in SVMBENCH_MIRROR and the network, or unset it"
        return Finding("mirror", f"{shown}: {type(error).__name__}", "broken", mend)
    return Finding("mirror", f"{shown} answers")


def _datasets() -> Iterator[Finding]:
    from svmbench import data

    where: dict[str, list[str]] = {}
    for name in data.names():
        where.setdefault(data.status(name), []).append(name)
    kinds = ("cached", "built-in", "mirror", "official", "nowhere")
    state = ", ".join(f"{len(where[kind])} {kind}" for kind in kinds if kind in where)
    lacking = where.get("nowhere", [])
    if lacking:
        mend = f"these need a mirror that has them: {', '.join(lacking)}"
        yield Finding("data sets", state, "note", mend)
    else:
        yield Finding("data sets", state)


def _measuring() -> Iterator[Finding]:
    from svmbench.experiment.measuring.measure import CLEAR_REFS

    if os.access(CLEAR_REFS, os.W_OK):
        yield Finding("memory peaks", "can be measured")
    else:
        mend = "peak_memory_mb stays empty; nothing else depends on it"
        yield Finding("memory peaks", f"{CLEAR_REFS} can't be written", "note", mend)
