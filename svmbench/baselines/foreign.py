"""Any class of scikit-learn, or in its style, as a solver: named in a config, declared nowhere.

The class is taken as it is. Between it and the contract (`prepare`, `train`, `certify`) stand a few
lines that change nothing of what it computes. It has no problem: its objective is not known, and it
is compared by its scores and times alone.
"""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin

from svmbench.base.errors import SvmbenchError
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import Declaration

#: Packages whose classes are taken without more.
TRUSTED = ("sklearn",)
#: The kernels of scikit-learn's SVMs.
KERNELS = ("linear", "poly", "rbf", "sigmoid")


class Foreign:
    """What a foreign class needs to be trained, timed and recorded like a solver."""

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Convert the inputs to float64, C-ordered or CSR: what the class would do first."""
        kept = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        return TrainingData(X=kept, y=y)

    def train(self, data: TrainingData) -> Self:
        """Call the class's own `fit`."""
        self.fit(data.X) if data.y is None else self.fit(data.X, data.y)  # type: ignore[attr-defined]
        n_iter = getattr(self, "n_iter_", None)
        if not isinstance(n_iter, int):
            # (An integer may be a property, which can't be set.)
            self.n_iter_ = 1 if n_iter is None else int(np.max(n_iter))
        self.stop_reason_ = "not told"
        self.counters_: dict[str, int] = {}
        support = getattr(self, "support_", None)
        if support is not None:
            self.counters_["support_vectors"] = len(support)
        return self

    def certify(self, data: TrainingData) -> Self:
        """Nothing: the class's problem is not known here."""
        return self


@cache
def adapted(path: str) -> Any:
    """Return the class at a dotted path, with the solver's contract.

    Parameters
    ----------
    path : str
        Such as ``sklearn.svm.NuSVC``.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If there is no such class, or it is neither a classifier nor a novelty detector.
    """
    module, _, name = path.rpartition(".")
    try:
        wrapped = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SvmbenchError(f"there is no class {path!r}: {error}") from error
    except Exception as error:  # whatever a module of others does when it is imported
        raise SvmbenchError(
            f"{module} can't be imported: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(wrapped, type) and issubclass(wrapped, BaseEstimator)):
        raise SvmbenchError(f"{path} is no estimator: it does not derive from BaseEstimator")
    novelty = issubclass(wrapped, OutlierMixin)
    if not (novelty or issubclass(wrapped, ClassifierMixin)):
        raise SvmbenchError(f"{path} is neither a classifier nor a novelty detector")
    declaration = Declaration(
        name=path,
        problem="",
        summary=f"the class {path}",
        reference=f"{module.partition('.')[0]}'s own implementation",
        kernels=_kernels(wrapped),
        task="one-class" if novelty else "multiclass",
    )
    fields = {"declaration": declaration, "wrapped": wrapped, "__module__": __name__}
    return type(name, (Foreign, wrapped), fields)


def _kernels(wrapped: type) -> tuple[str, ...]:
    """Return the kernels of a class that names one by a word, as scikit-learn's SVMs do."""
    kernel = inspect.signature(wrapped).parameters.get("kernel")
    return KERNELS if kernel is not None and kernel.default in KERNELS else ()


def why_not_taken(path: str, *, trust: bool = False) -> str:
    """Return why the class at a dotted path can't take part; empty if it can.

    Importing a module runs its code, so that without `trust` a class from elsewhere than
    scikit-learn is refused unimported.
    """
    if not (trust or is_trusted(path)):
        return (
            f"{path} does not come from scikit-learn, whose classes alone are taken without more;"
            " --trust imports it, which runs its code"
        )
    try:
        adapted(path)
    except SvmbenchError as error:
        return str(error)
    return ""


def is_trusted(path: str) -> bool:
    """Return whether a class comes from a package that is taken without more."""
    return path.partition(".")[0] in TRUSTED
