"""Linear SVMs of data that lie in a Spark cluster, or that Spark reads on one machine.

Which file does what, in the order of use
    session.py   a session on this machine; what is missing here or on the executors, in a sentence
    source.py    a data frame, or the path of LIBSVM text or Parquet, as rows to be read
    rows.py      on the executors: batches of Arrow as matrices, dense or CSR, with labels and folds
    text.py      the same of LIBSVM text; which line can't be read
    passes.py    one pass over the rows, folded by ``treeAggregate``; what it read, and refused
    alsvm.py     ``ALSVMSpark``: every C and fold from the sums of one pass
    search.py    ``Search``: what a grid of C and folds has found
    steps.py     the same by conjugate gradients, for more features than sums are formed of
    l2svm.py     ``L2SVMSpark``: the squared hinge, a pass for each product with its Hessian
    plugin.py    both as solvers of ``svmbench run``, for ``SVMBENCH_PLUGINS``

No module here imports PySpark before it is used. What runs on executors is in `rows.py`,
`text.py`, `passes.py` and `svmbench.core`: they need this package, NumPy, SciPy, Numba and PyArrow.
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
