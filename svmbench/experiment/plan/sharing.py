"""Nodes of the plan: scaled inputs and distances that several cells share."""

from __future__ import annotations

from typing import Any, cast

import scipy.sparse as sp

from svmbench.experiment.config.models import Config
from svmbench.experiment.plan.keys import hash_of
from svmbench.experiment.protocols import folds
from svmbench.experiment.protocols.declare import Protocol
from svmbench.experiment.settings.blocks import TrainingBlock
from svmbench.experiment.settings.cells import (
    ArraySpec,
    CellSpec,
    NodeSpec,
    SharedArrays,
    protocol_settings,
)


def shared_arrays(
    protocol: Protocol, spec: CellSpec, source: Any, distance_bytes: int
) -> SharedArrays | None:
    """Return the shared inputs of a cell; None if the cell reads the data set itself.

    Parameters
    ----------
    protocol : Protocol
    spec : dict
        A cell's specification.
    source : Dataset
    distance_bytes : int
        Size of the squared distances among the arrays; 0 for none.
    """
    scaled = protocol.scalings[spec["scaling"]]
    is_whole = spec["n_rows"] == source.X.shape[0] and spec["n_features_kept"] is None
    if not scaled.before and is_whole and not distance_bytes:
        return None
    settings = protocol_settings(spec)
    names = (*ArraySpec.__annotations__, *scaled.by)
    deciding = {name: settings[name] for name in names if name in settings}
    node_spec = cast(NodeSpec, deciding)
    node_spec["distances"] = distance_bytes > 0
    share = spec["n_rows"] / max(1, source.X.shape[0])
    sparse = sp.issparse(source.X) and "inputs" not in spec
    stored = source.X.nnz * 12 if sparse else source.X.shape[0] * source.X.shape[1] * 8
    size = int(stored * share) + distance_bytes
    return SharedArrays(key=hash_of(node_spec), spec=node_spec, bytes=size)


def searches_by_distances(protocol: Protocol, config: Config, block: TrainingBlock) -> bool:
    """Return True if a search of a block uses shared squared distances."""
    from svmbench.baselines.catalogue import solver_class
    from svmbench.experiment.protocols.kernel_search import takes_part

    # Inputs that a protocol scales anew in each fold share no distances.
    scaled_once = protocol.scalings[block.scaling].before or block.scaling == "none"
    return (
        "distances" in protocol.shares
        and scaled_once
        and any(
            takes_part(solver_class(s.name), dict(s.params), s.grid_points())
            for s in config.solvers_of(block)
        )
    )


def distance_bytes_of(config: Config, spec: CellSpec) -> int:
    """Return the size in bytes of the squared distances of a cell's rows; 0 if they are not made.

    They are not made if they exceed half of a cell's memory, which leaves too little for a kernel
    matrix.
    """
    size = folds.distance_bytes(spec)
    return size if size <= config.memory_gb * 2**30 / 2 else 0
