"""The papers' data sets: registry, download, preparation, and memory-mapped arrays.

::

    from svmbench import data

    data.names()                    # all registered names
    data.names_of_paper("alsvm")    # the data sets of one paper
    data.ensure("a9a")              # fetch and prepare, unless it is cached
    data.load("a9a").X              # mapped read-only
    data.load("ijcnn1+test[:90000]")
    data.load_file("my.csv", label_column="class")
    data.open_blocks("larger-than-memory.libsvm")  # one block of rows in memory

Submodules are imported when a name is first used, so that ``--help`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svmbench.data.blocks import ArrayBlocks, FileBlocks, open_blocks
    from svmbench.data.card import dataset_card, file_card, list_datasets
    from svmbench.data.dataset import Dataset
    from svmbench.data.entries import DatasetEntry
    from svmbench.data.many import Event, FetchOutcome, fetch_many
    from svmbench.data.novelty import as_novelty
    from svmbench.data.on_disk import does_not_fit, scan
    from svmbench.data.outlines import outline
    from svmbench.data.prepare import FilesRead, ensure, load, status, why_unavailable
    from svmbench.data.registry import (
        check_dataset_name,
        datasets_by_paper,
        entry,
        names,
        names_of_paper,
        parse_name,
    )
    from svmbench.data.userfile import load_file

_HOMES = {
    "ArrayBlocks": "blocks",
    "Dataset": "dataset",
    "DatasetEntry": "entries",
    "Event": "many",
    "FetchOutcome": "many",
    "FileBlocks": "blocks",
    "FilesRead": "prepare",
    "as_novelty": "novelty",
    "check_dataset_name": "registry",
    "dataset_card": "card",
    "datasets_by_paper": "registry",
    "does_not_fit": "on_disk",
    "ensure": "prepare",
    "entry": "registry",
    "fetch_many": "many",
    "file_card": "card",
    "list_datasets": "card",
    "load": "prepare",
    "load_file": "userfile",
    "names": "registry",
    "names_of_paper": "registry",
    "open_blocks": "blocks",
    "outline": "outlines",
    "parse_name": "registry",
    "scan": "on_disk",
    "status": "prepare",
    "why_unavailable": "prepare",
}

__all__ = [
    "ArrayBlocks",
    "Dataset",
    "DatasetEntry",
    "Event",
    "FetchOutcome",
    "FileBlocks",
    "FilesRead",
    "as_novelty",
    "check_dataset_name",
    "dataset_card",
    "datasets_by_paper",
    "does_not_fit",
    "ensure",
    "entry",
    "fetch_many",
    "file_card",
    "list_datasets",
    "load",
    "load_file",
    "names",
    "names_of_paper",
    "open_blocks",
    "outline",
    "parse_name",
    "scan",
    "status",
    "why_unavailable",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module when the name is first used."""
    if name not in _HOMES:
        msg = f"module 'svmbench.data' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    value = getattr(import_module(f"svmbench.data.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
