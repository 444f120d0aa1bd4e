"""A Dask scheduler: its address, a client that unpickles nothing, and workers on this machine.

Dask's own protocol carries pickles, and reading a pickle runs code. The client of a run reads each
pickle as None; it exchanges plain text (JSON) only.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from svmbench.base.errors import ConfigError, MissingPackageError, SvmbenchError
from svmbench.base.escape import line

#: Prefix of an address that starts workers on this machine.
LOCAL = "local:"
#: Seconds within which a scheduler must answer.
SCHEDULER_TIMEOUT_S = 20.0
#: True in the tasks of a client that reads every pickle as None.
_takes_no_pickles: ContextVar[bool] = ContextVar("takes_no_pickles", default=False)


def check_address(address: str) -> None:
    """Check the address of a scheduler, and that Dask is installed.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the address is invalid.
    svmbench.base.errors.MissingPackageError
        If Dask is not installed.
    """
    number = address.removeprefix(LOCAL)
    if address.startswith(LOCAL):
        is_valid = number.isdecimal() and int(number) > 0
    else:
        scheme, _, rest = address.partition("://")
        is_valid = scheme.isalpha() and bool(rest)
    if not is_valid:
        raise ConfigError(
            f"--cluster takes a scheduler's address, such as tcp://host:8786, or local:4 for four"
            f" workers on this machine, not {line(address, 100)!r}"
        )
    from importlib.util import find_spec

    if find_spec("distributed") is None:
        raise MissingPackageError("--cluster needs Dask: pip install '.[dask]'")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a scheduler, or start one with workers on this machine; yield its client.

    Parameters
    ----------
    address : str
        ``tcp://host:port``, ``tls://host:port`` (with the certificates that Dask's configuration
        names), or ``local:<workers>``.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If Dask is not installed, the address is invalid, or no scheduler answers there.
    """
    check_address(address)
    from distributed import Client

    with contextlib.ExitStack() as stack:
        stack.enter_context(_silent("distributed"))
        target: Any = address
        if address.startswith(LOCAL):
            target = stack.enter_context(_local_cluster(int(address.removeprefix(LOCAL))))
        else:
            stack.enter_context(_without_pickles())
        try:
            client = Client(
                target, timeout=SCHEDULER_TIMEOUT_S, set_as_default=False, deserializers=["msgpack"]
            )
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            message = f"no Dask scheduler answers at {address}: {line(error, 200)}"
            raise SvmbenchError(message) from error
        stack.enter_context(client)
        for topic in ("print", "warn"):  # their handlers print and unpickle what a worker sends
            client.unsubscribe_topic(topic)
        yield client


def result_of(future: Any) -> Any:
    """Return the result of a finished task, with a single request.

    If a worker can't send the result, ``Future.result`` would request it forever, and the task
    would run again each time.

    Raises
    ------
    Exception
        Any exception of Dask, if the worker can't send the result, or if it does not arrive within
        `SCHEDULER_TIMEOUT_S`.
    """
    client = future.client

    async def ask() -> Any:
        return await client.scheduler.gather(keys=[future.key])

    return client.sync(ask, callback_timeout=SCHEDULER_TIMEOUT_S)["data"][future.key]


@contextmanager
def _local_cluster(number: int) -> Iterator[Any]:
    """Start a scheduler and workers in threads of this process, without open ports.

    Cells still run in processes of their own, with memory limits independent of Dask's.
    """
    import dask
    from distributed import LocalCluster

    settings: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # Don't drop workers after a stop of this process (Ctrl-Z), which stops them as well.
        "distributed.scheduler.worker-ttl": None,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=number,
            processes=False,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            worker_dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
    ):

        async def close_pages() -> None:
            for node in (cluster.scheduler, *cluster.workers.values()):
                node.http_server.stop()

        cluster.sync(close_pages)
        yield cluster


@contextmanager
def _without_pickles() -> Iterator[None]:
    """Make a client that is created in this context read every pickle as None.

    Dask has no setting for this. Its function that reads pickles is replaced by one that checks in
    which client's tasks it is called; other clients of the process still read pickles.
    """
    from distributed.protocol import dask_deserialize, pickle

    if not hasattr(pickle.loads, "reads"):
        reads = pickle.loads

        def loads(x: Any, **buffers: Any) -> Any:
            return None if _takes_no_pickles.get() else reads(x, **buffers)

        loads.reads = reads  # type: ignore[attr-defined]
        pickle.loads = loads
        # Without its pickled type, an object's content is read as None, too.
        dask_deserialize.register(None, lambda _header, _frames: None)
    token = _takes_no_pickles.set(True)
    try:
        yield
    finally:
        _takes_no_pickles.reset(token)


@contextmanager
def _silent(package: str) -> Iterator[None]:
    """Silence a package's loggers; errors are reported in exceptions instead."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith(package)]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
