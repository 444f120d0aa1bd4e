"""Linear SVMs for data in a Spark cluster, or for files that Spark reads on one machine.

The modules, in the order of use
    session.py         start a session on this machine; report missing packages
    source.py          find the rows in a data frame, LIBSVM text or Parquet
    rows.py            on the executors: turn Arrow batches into matrices with labels and folds
    text.py            the same for LIBSVM text; locate a malformed line
    tree_aggregate.py  one pass over the rows, merged by ``treeAggregate``
    alsvm.py           ``ALSVMSpark``: all values of C and all folds from the sums of one pass
    search.py          ``SearchResult``: the models of a grid of C and folds
    steps.py           the least-squares problem by conjugate gradients, for many features
    packed.py          blocks of rows that stay on the executors, for several passes
    l2svm.py           ``L2SVMSpark``: the squared hinge, one pass for each product with the Hessian
    plugin.py          declare both solvers for ``svmbench run``, by ``SVMBENCH_PLUGINS``

The modules import PySpark when it is first used. `rows.py`, `text.py`, `packed.py`,
`tree_aggregate.py` and `svmbench.core` run on the executors, which need this package, NumPy, SciPy,
Numba and PyArrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svmbench.spark.alsvm import ALSVMSpark as ALSVMSpark
    from svmbench.spark.l2svm import L2SVMSpark as L2SVMSpark
    from svmbench.spark.session import local_session as local_session
    from svmbench.spark.session import ship as ship

_HOMES = {
    "ALSVMSpark": "alsvm",
    "L2SVMSpark": "l2svm",
    "local_session": "session",
    "ship": "session",
}

__all__ = ["ALSVMSpark", "L2SVMSpark", "local_session", "ship"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        msg = f"module 'svmbench.spark' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(f"svmbench.spark.{_HOMES[name]}"), name)
