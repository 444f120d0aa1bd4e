"""Read the models that programs write, in the formats of LIBSVM, LIBLINEAR and SVM-light.

The suite evaluates its objective on such a model with its own kernels. The first word of the file
identifies the format. A model in another format, or with more than two classes, is not an error;
only its predictions are used.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from svmbench.base.errors import ProgramError
from svmbench.base.escape import line
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.contract.problems import PROBLEMS, Values
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.models.kernel_base import Expansion


@dataclass(frozen=True)
class ReadModel:
    """A two-class model that a program wrote.

    Attributes
    ----------
    decide : callable
        Function from inputs of shape (n_samples, n_features) to f, positive for the class +1.
    square : float
        ``||w||^2``, with the squared weight of the constant feature if the offset is absorbed.
    problem : str
        Name in `PROBLEMS` of the solved problem; empty if it is unknown.
    coefficients : ndarray or None
        ``alpha_i y_i`` of the support vectors; None for a linear model.
    model : Expansion or (ndarray, float, float)
        The expansion over the support vectors; or w, the offset, and the value of the constant
        feature that absorbs it.
    """

    decide: Callable[[Any], np.ndarray]
    square: float
    problem: str
    coefficients: np.ndarray | None = None
    model: Expansion | tuple[np.ndarray, float, float] | None = None

    def objective(self, X: Any, y: np.ndarray, C: float) -> float:
        """Return the primal value of the problem on samples with labels ±1."""
        values = Values(f=self.decide(X), square=self.square, y=y)
        return PROBLEMS[self.problem].primal(values, C)


def read_model(path: Path, n_features: int) -> ReadModel | None:
    """Read a model; return None if its format is unknown or it has more than two classes.

    Parameters
    ----------
    path : Path
    n_features : int
        Number of features of the training inputs.

    Raises
    ------
    svmbench.base.errors.ProgramError
        If a model in a known format is damaged.
    """
    content = path.read_bytes()
    for sign, called, reader in _FORMATS:
        if content.startswith(sign):
            try:
                return reader(content, n_features)
            except (ValueError, LookupError, ArithmeticError) as error:
                missing = isinstance(error, LookupError)
                problem = f"{line(error, 200)} is missing" if missing else line(error, 200)
                raise ProgramError(
                    f"its model in the format of {called} can't be read: {problem}"
                ) from error
    return None


def _libsvm(content: bytes, n_features: int) -> ReadModel | None:
    """Read a model of LIBSVM, ThunderSVM or LaSVM."""
    head, vectors = split_at_vectors(content)
    header = header_of(head)
    if header["svm_type"] != ["c_svc"] or header["nr_class"] != ["2"]:
        return None
    function = kernel_of(header)
    if function is None:
        return None
    sign = _sign(header["label"])
    points, coefficients = support_vectors_of(vectors, n_features, int(header["total_sv"][0]))
    return _expansion(function, points, sign * coefficients, -sign * float(header["rho"][0]))


def split_at_vectors(content: bytes) -> tuple[bytes, bytes]:
    """Return the header of LIBSVM's model, and its support vectors; ThunderSVM adds a blank."""
    parts = re.split(rb"\nSV *\n", content, maxsplit=1)
    if len(parts) < 2:
        msg = "it has no support vectors"
        raise ValueError(msg)
    return parts[0], parts[1]


def kernel_of(header: dict[str, list[str]]) -> KernelFunction | None:
    """Return the kernel that the header of LIBSVM's model names; None for a precomputed one."""
    kernel = {"polynomial": "poly"}.get(header["kernel_type"][0], header["kernel_type"][0])
    if kernel not in KERNELS:
        return None
    return KernelFunction(
        kernel,
        float(header.get("gamma", ["1"])[0]),
        int(header.get("degree", ["3"])[0]),
        float(header.get("coef0", ["0"])[0]),
    )


def _svm_light(content: bytes, n_features: int) -> ReadModel | None:
    """Read a model of SVM-light or SVM-perf: lines of a value and its meaning, then vectors."""
    first, *lines = content.split(b"\n")
    del first
    meant: dict[str, str] = {}
    at, value, meaning = 0, "", ""
    for at, text in enumerate(lines):  # noqa: B007 - used after the loop
        value, mark, meaning = text.decode("ascii").partition("#")
        if not mark:
            break
        meant[meaning.strip()] = value.strip()
        if meaning.strip().startswith("threshold b"):
            break
    kernel = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid"}.get(meant["kernel type"])
    if kernel is None:
        return None
    function = KernelFunction(
        kernel,
        float(meant["kernel parameter -g" if kernel == "rbf" else "kernel parameter -s"]),
        int(meant["kernel parameter -d"]),
        float(meant["kernel parameter -r"]),
    )
    if not meaning.strip().startswith("threshold b"):
        msg = "it ends before its threshold b"
        raise ValueError(msg)
    vectors = b"\n".join(text.partition(b"#")[0] for text in lines[at + 1 :])
    number = int(meant["number of support vectors plus 1"]) - 1
    points, coefficients = support_vectors_of(vectors, n_features, number)
    return _expansion(function, points, coefficients, -float(value))


#: The problem of each of LIBLINEAR's solvers.
LIBLINEAR_PROBLEMS = {
    "L2R_L2LOSS_SVC_DUAL": "squared-hinge",
    "L2R_L2LOSS_SVC": "squared-hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
}


def _liblinear(content: bytes, n_features: int) -> ReadModel | None:
    head, separator, rows = content.partition(b"\nw\n")
    if not separator:
        msg = "it has no weights"
        raise ValueError(msg)
    header = header_of(head)
    if header["nr_class"] != ["2"] or header["solver_type"] == ["MCSVM_CS"]:
        return None
    bias, known = float(header["bias"][0]), int(header["nr_feature"][0])
    weights = _sign(header["label"]) * np.array([float(word) for word in rows.split()])
    if len(weights) != known + (bias >= 0) or known > n_features:
        msg = f"it has {len(weights)} weights for {known} of {n_features} features"
        raise ValueError(msg)
    # The program doesn't know trailing features that are zero in all rows.
    w = np.zeros(n_features)
    w[:known] = weights[:known]
    b = float(weights[known] * bias) if bias > 0 else 0.0
    return ReadModel(
        decide=lambda X: np.asarray(X @ w).ravel() + b,
        square=float(weights @ weights),
        problem=LIBLINEAR_PROBLEMS.get(header["solver_type"][0], ""),
        model=(w, b, max(bias, 0.0)),
    )


#: First word of a model file, name of the format, function that reads it.
_FORMATS: tuple[tuple[bytes, str, Callable[[bytes, int], ReadModel | None]], ...] = (
    (b"svm_type ", "LIBSVM", _libsvm),
    (b"solver_type ", "LIBLINEAR", _liblinear),
    (b"SVM-light ", "SVM-light", _svm_light),
)


def header_of(head: bytes) -> dict[str, list[str]]:
    """Return the values in the header of a model by name."""
    split = [text.split() for text in head.decode("ascii").splitlines()]
    return {words[0]: words[1:] for words in split if len(words) > 1}


def _sign(labels: list[str]) -> float:
    """Return +1 if f is positive for the class +1, which then has the first label; else -1."""
    return 1.0 if float(labels[0]) > 0 else -1.0


def support_vectors_of(text: bytes, n_features: int, number: int) -> tuple[Any, np.ndarray]:
    """Return the support vectors as CSR, and their coefficients."""
    points, coefficients = sp.csr_array((0, n_features)), np.zeros(0)
    if text.strip():
        points, coefficients = load_svmlight_file(
            io.BytesIO(text), n_features=n_features, zero_based=False
        )
    if len(coefficients) != number:
        msg = f"it has {len(coefficients)} support vectors, but its header says {number}"
        raise ValueError(msg)
    return sp.csr_array(points), coefficients


def _expansion(
    function: KernelFunction, points: Any, coefficients: np.ndarray, b: float
) -> ReadModel:
    model = Expansion(function, points, coefficients, b)

    def decide(X: Any) -> np.ndarray:
        # Points and rows must both be sparse.
        return model.decide(X) if sp.issparse(X) else model.decide(sp.csr_array(X))

    return ReadModel(
        decide=decide,
        square=model.squared_norm() if len(coefficients) else 0.0,
        problem="hinge",
        coefficients=coefficients,
        model=model,
    )
