"""Use any scikit-learn class as a solver, by its dotted path in a config.

A thin adapter adds the contract's three steps to the class and doesn't change its results. The
class declares no problem, so its objective is unknown, and only its scores and times are compared.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin

from svmbench.base.errors import SvmbenchError
from svmbench.baselines.templates import BINARY
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import Declaration

#: Packages whose classes need no ``--trust``.
TRUSTED = ("sklearn",)
#: The kernels of scikit-learn's SVMs.
FOREIGN_KERNELS = ("linear", "poly", "rbf", "sigmoid")


class Foreign:
    """An adapter that lets the suite train, time and record a foreign class like a solver."""

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Convert the inputs to float64, C-ordered or CSR, as the class itself would."""
        kept = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        return TrainingData(X=kept, y=y)

    def train(self, data: TrainingData) -> Self:
        """Call the class's own `fit`."""
        self.fit(data.X) if data.y is None else self.fit(data.X, data.y)  # type: ignore[attr-defined, redundant-expr]
        n_iter = getattr(self, "n_iter_", None)
        if not isinstance(n_iter, int):
            # An integer is left as it is: it may be a property, which can't be set.
            self.n_iter_ = 1 if n_iter is None else int(np.max(n_iter))
        self.stop_reason_ = "not told"
        self.counters_: dict[str, int] = {}
        support = getattr(self, "support_", None)
        if support is not None:
            self.counters_["support_vectors"] = len(support)
        return self

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Do nothing, because the problem of the class is unknown."""
        return self


@cache
def adapted(path: str) -> Any:
    """Return the class at a dotted path, with the contract of a solver.

    Parameters
    ----------
    path : str
        For example ``sklearn.svm.NuSVC``; with :data:`~svmbench.baselines.templates.BINARY` at its
        end, the class separates two classes only.

    Raises
    ------
    svmbench.base.errors.SvmbenchError
        If the class doesn't exist, or is neither a classifier nor a novelty detector.
    """
    dotted = path.removesuffix(BINARY)
    module, _, name = dotted.rpartition(".")
    try:
        wrapped = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        is_here = Path(f"{module.partition('.')[0]}.py").is_file() and module not in sys.modules
        hint = "; PYTHONPATH=. has modules of this folder found" if is_here else ""
        raise SvmbenchError(f"there is no class {dotted!r}: {error}{hint}") from error
    except Exception as error:  # an import may raise anything
        raise SvmbenchError(
            f"{module} can't be imported: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(wrapped, type) and issubclass(wrapped, BaseEstimator)):
        raise SvmbenchError(f"{dotted} is not an estimator: it doesn't derive from BaseEstimator")
    novelty = issubclass(wrapped, OutlierMixin)
    if not (novelty or issubclass(wrapped, ClassifierMixin)):
        raise SvmbenchError(f"{dotted} is neither a classifier nor a novelty detector")
    declaration = Declaration(
        name=path,
        problem="",
        summary=f"the class {dotted}",
        reference=f"{module.partition('.')[0]}'s own implementation",
        kernels=_kernels(wrapped),
        task="one-class" if novelty else "binary" if dotted != path else "multiclass",
    )
    fields = {"declaration": declaration, "wrapped": wrapped, "__module__": __name__}
    return type(name, (Foreign, wrapped), fields)


def _kernels(wrapped: type) -> tuple[str, ...]:
    """Return the kernels of a linear class, or of one with a parameter `kernel` like SVC's."""
    if any(base.__name__ == "LinearClassifierMixin" for base in wrapped.__mro__):
        return ("linear",)
    kernel = inspect.signature(wrapped).parameters.get("kernel")
    return FOREIGN_KERNELS if kernel is not None and kernel.default in FOREIGN_KERNELS else ()


def why_not_taken(path: str, *, trust: bool = False) -> str:
    """Return the reason why the class at a dotted path can't be used, or an empty text.

    Importing a module runs its code. Therefore, without `trust`, a class outside scikit-learn is
    refused before the import.
    """
    if path.endswith(".py"):
        module = PurePath(path).stem
        return (
            f"{path} is a file: name a class in it as {module}.Class, with --trust and with its"
            " folder in PYTHONPATH"
        )
    if "/" in path:
        return (
            f"{path} is neither a class nor a known program; a program is named with its files, as"
            f" '{path} {{train}} {{model}}', and needs --trust"
        )
    if not (trust or is_trusted(path)):
        return (
            f"{path} is not a class of scikit-learn; other classes need --trust, because the import"
            " runs their code"
        )
    try:
        adapted(path)
    except SvmbenchError as error:
        return str(error)
    return ""


def is_trusted(path: str) -> bool:
    """Return True if a class belongs to a package that needs no ``--trust``."""
    return path.partition(".")[0] in TRUSTED
