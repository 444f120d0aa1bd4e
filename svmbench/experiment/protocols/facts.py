"""Protocol ``facts``: facts about a data set, for tables of data sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.row_blocks import open_rows
from svmbench.experiment.protocols.task import Outcome, Task, open_dataset
from svmbench.experiment.settings.blocks import Block


class Facts(Block):
    """Protocol ``facts``: counts of data sets, one cell a data set, without a solver."""


@protocol(
    "facts",
    settings=Facts,
    caption="what the data sets are",
    cell="data set",
    metrics=("n_samples", "n_features", "n_classes", "density_pct", "largest_class_pct"),
)
def facts(task: Task) -> Outcome:
    """Report facts about a data set: rows, features, classes, density."""
    source = open_dataset(task.spec)
    n_samples, n_features = source.X.shape
    nonzero = sum(_nonzero(X) for X, *_ in open_rows(task.spec)[0])
    labels, counts = np.unique(np.asarray(source.y), return_counts=True)
    return {
        "metrics": {
            "n_samples": n_samples,
            "n_features": n_features,
            "n_classes": len(labels),
            "density_pct": 100.0 * nonzero / max(1, n_samples * n_features),
            "largest_class_pct": 100.0 * counts.max() / counts.sum(),
        },
        "spread": {},
        "counters": {
            f"class {label}": int(count) for label, count in zip(labels, counts, strict=True)
        },
        "params": {},
    }


def _nonzero(X: Any) -> int:
    return int(X.nnz if sp.issparse(X) else np.count_nonzero(X))
