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
    """Refuse what is no address of a scheduler, and any where Dask is not installed.

    Raises
    ------
    svmbench.base.errors.ConfigError, svmbench.base.errors.MissingPackageError
        In a sentence.
    """
    number = address.removeprefix(LOCAL)
    if address.startswith(LOCAL):
        is_one = number.isdecimal() and int(number) > 0
    else:
        scheme, _, rest = address.partition("://")
        is_one = scheme.isalpha() and bool(rest)
    if not is_one:
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
        In a sentence, if Dask is not installed, the address is none, or nobody answers there.
    """
    check_address(address)
    from distributed import Client

    with contextlib.ExitStack() as stack:
        stack.enter_context(_silent("distributed"))
        where: Any = address
        if address.startswith(LOCAL):
            where = stack.enter_context(_workers_here(int(address.removeprefix(LOCAL))))
        else:
            stack.enter_context(_without_pickles())
        try:
            client = Client(
                where, timeout=SCHEDULER_TIMEOUT_S, set_as_default=False, deserializers=["msgpack"]
            )
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            said = f"no Dask scheduler answers at {address}: {line(error, 200)}"
            raise SvmbenchError(said) from error
        stack.enter_context(client)
        for topic in ("print", "warn"):  # their handlers print and unpickle what a worker sends
            client.unsubscribe_topic(topic)
        yield client


def result_of(future: Any) -> Any:
    """Return the result of a finished task, asked for once.

    ``Future.result`` asks for ever for what a worker can't send, and has the task run again each
    time.

    Raises
    ------
    Exception
        Whatever Dask raises; if it can't be sent, or does not come within `SCHEDULER_TIMEOUT_S`.
    """
    client = future.client

    async def ask() -> Any:
        return await client.scheduler.gather(keys=[future.key])

    return client.sync(ask, callback_timeout=SCHEDULER_TIMEOUT_S)["data"][future.key]


@contextmanager
def _workers_here(number: int) -> Iterator[Any]:
    """Have a scheduler and workers in threads of this process; none of them opens a port.

    Cells have processes of their own all the same, with limits of memory outside of Dask's.
    """
    import dask
    from distributed import LocalCluster

    settings: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # A process that is stopped (Ctrl-Z) hears of its own workers as late as of itself.
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
    """Have a client that is made here take every pickle for None.

    Dask has no setting for that. Its reader of pickles is replaced by one that asks in whose tasks
    it is called; other clients of the process read theirs.
    """
    from distributed.protocol import dask_deserialize, pickle

    if not hasattr(pickle.loads, "reads"):
        reads = pickle.loads

        def loads(x: Any, **buffers: Any) -> Any:
            return None if _takes_no_pickles.get() else reads(x, **buffers)

        loads.reads = reads  # type: ignore[attr-defined]
        pickle.loads = loads
        # What follows a pickled type is None as well.
        dask_deserialize.register(None, lambda _header, _frames: None)
    token = _takes_no_pickles.set(True)
    try:
        yield
    finally:
        _takes_no_pickles.reset(token)


@contextmanager
def _silent(package: str) -> Iterator[None]:
    """Keep a package from logging: what matters of it is said in sentences here."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith(package)]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
