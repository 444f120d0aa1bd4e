"""Protocol ``facts``: what a data set is, for tables of data sets."""

from __future__ import annotations

import numpy as np

from svmbench.experiment.blocks import Block
from svmbench.experiment.protocols.declare import protocol
from svmbench.experiment.protocols.task import Outcome, Task, open_dataset


class Facts(Block):
    """What data sets are: one cell a data set, and no solver."""


@protocol(
    "facts",
    settings=Facts,
    caption="what the data sets are",
    cell="data set",
    metrics=("n_samples", "n_features", "n_classes", "density_pct", "largest_class_pct"),
)
def facts(task: Task) -> Outcome:
    """Report what a data set is: rows, features, classes, density."""
    source = open_dataset(task.spec)
    n_samples, n_features = source.X.shape
    nonzero = source.X.nnz if hasattr(source.X, "nnz") else int(np.count_nonzero(source.X))
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
