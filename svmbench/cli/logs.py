"""Log of the steps of a run with the time of day: ``-v`` prints it, ``--log-file`` writes it.

Without one of the two options, nothing is logged. The log is for people; programs read the results
folder.
"""

from __future__ import annotations

import logging
from pathlib import Path

from svmbench.base.errors import ResultsError

#: The logger of all steps.
LOG = logging.getLogger("svmbench")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False

_FORMAT = "%(asctime)s %(message)s"


def start_logging(*, verbose: bool, file: Path | None) -> None:
    """Start to show steps on standard error, or to append them to a file, or both.

    Raises
    ------
    svmbench.base.errors.ResultsError
        If the file can't be written.
    """
    if verbose:
        handler: logging.Handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT, datefmt="%H:%M:%S"))
        # Errors are printed as sentences already.
        handler.addFilter(lambda record: record.levelno < logging.ERROR)
        LOG.addHandler(handler)
    if file is not None:
        try:
            handler = logging.FileHandler(file, encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"can't write {file}: {error.strerror or error}") from error
        handler.setFormatter(logging.Formatter(_FORMAT))
        LOG.addHandler(handler)
    if verbose or file is not None:
        LOG.setLevel(logging.INFO)


def stop_logging() -> None:
    """Close what :func:`start_logging` opened."""
    for handler in LOG.handlers[:]:
        if not isinstance(handler, logging.NullHandler):
            LOG.removeHandler(handler)
            handler.close()
    LOG.setLevel(logging.NOTSET)
