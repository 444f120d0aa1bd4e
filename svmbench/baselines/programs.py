"""Use an external program as a solver, by two commands in a config.

The program gets its rows in LIBSVM's text format, with all digits of a float64. Writing them counts
as conversion. `launching` measures the time of the program itself. If `program_models` can read the
model and a parameter is called C, the suite evaluates its objective; otherwise only the predictions
are used.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
import weakref
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from svmbench.base.errors import ConfigError, ProgramError
from svmbench.base.escape import line
from svmbench.baselines import templates
from svmbench.baselines.clock import count_programs_only
from svmbench.baselines.launching import Ended, launch
from svmbench.baselines.liblinear import iterations_of
from svmbench.baselines.program_models import ReadModel, read_model
from svmbench.baselines.templates import Commands
from svmbench.core.contract.base import TrainingData, now
from svmbench.core.contract.declaration import Declaration

#: Number of rows that are formatted at a time.
_ROWS_PER_WRITE = 4096


class Folder:
    """A temporary folder that is deleted with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="svmbench-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Program(ClassifierMixin, BaseEstimator):
    """A solver that runs a program; `program` makes a subclass for each pair of commands.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels. The program gets -1 and +1 in their order; for more than two classes 1, 2, ….
    objective_ : float or None
        Primal value of the problem that the program solved; None if it is unknown.
    n_iter_ : int
        Iterations that the program printed in the style of LIBSVM or LIBLINEAR; else 1.
    peak_memory_mb_ : float
        Largest resident memory of the program, MiB.
    """

    declaration: ClassVar[Declaration]
    commands: ClassVar[Commands]

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Check the parameters and write the training rows.

        Raises
        ------
        ValueError
            If a placeholder has no value, or if there is only one class.
        svmbench.base.errors.ProgramError
            If the program is not installed.
        """
        missing = [name for name in self.commands.parameters if getattr(self, name) is None]
        if missing:
            msg = f"{self.commands.program} needs a value for {{{missing[0]}}}"
            raise ValueError(msg)
        if absent := self.commands.missing():
            raise ProgramError(f"the program {absent!r} is not installed (it is not in PATH)")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            msg = f"{self.commands.program} needs samples of two classes; there is one"
            raise ValueError(msg)
        self.n_features_in_ = X.shape[1]
        folder = Folder()
        signs = self._file_labels(codes)
        write_libsvm_rows(folder.path / "train", X, signs)
        X = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        return TrainingData(X=X, y=signs.astype(np.float64), native=folder)

    def fit(self, X: Any, y: Any) -> Self:
        """Write the rows, run the program, and read its model."""
        data = self.prepare(X, y)
        return self.train(data).evaluate_objective(data)

    def train(self, data: TrainingData) -> Self:
        """Run the program.

        Raises
        ------
        svmbench.base.errors.ProgramError
            If it fails, or writes no model.
        """
        self.folder_ = Folder()
        self.__dict__.pop("model_", None)  # left from an earlier training
        files = {"train": data.native.path / "train", "model": self.folder_.path / "model"}
        with count_programs_only() as program_times:
            ended = self._run(self.commands.train, files, "model")
            program_times.append(ended)
        output = ended.out + ended.err
        self.n_iter_ = iterations_of(output)
        self.stop_reason_ = "max_iter" if "reaching max number" in output else "not told"
        self.counters_: dict[str, int] = {"iterations": self.n_iter_}
        self.peak_memory_mb_ = ended.peak_memory_mb
        self.objective_: float | None = None
        return self

    def evaluate_objective(self, data: TrainingData) -> Self:
        """Read the model and evaluate its objective, if the format and C are known."""
        if self.model_ is None:
            return self
        C, coefficients = getattr(self, "C", None), self.model_.coefficients
        if coefficients is not None:
            self.counters_["support_vectors"] = len(coefficients)
        if self.model_.problem and isinstance(C, int | float):
            self.objective_ = self.model_.objective(data.X, data.y, float(C))
            if coefficients is not None:
                bounded = int(np.sum(np.abs(coefficients) >= float(C)))
                self.counters_["bounded_support_vectors"] = bounded
        return self

    @staticmethod
    def cpu_clock() -> float:
        """Return the CPU seconds of this process and of its programs."""
        return now()[1]

    @cached_property
    def model_(self) -> ReadModel | None:
        """The model of the program; None if its format is unknown."""
        is_binary = len(self.classes_) == 2
        return read_model(self._model_file, self.n_features_in_) if is_binary else None

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels of rows, by the prediction command or by the model.

        Raises
        ------
        svmbench.base.errors.ProgramError
            If the command fails, or doesn't write one prediction for each row.
        """
        if not self.commands.predict:
            if self.model_ is None:
                raise ProgramError(
                    f"{self.commands.program} wrote a model in an unknown format or with"
                    " several classes; add 'predict' to the config"
                )
            return self.classes_[(self.model_.decide(X) >= 0).astype(np.intp)]
        folder = self.folder_.path
        files = {"test": folder / "test", "model": self._model_file, "output": folder / "output"}
        files["output"].unlink(missing_ok=True)
        with count_programs_only() as program_times:
            # The program must not see the labels.
            write_libsvm_rows(
                files["test"], X, np.broadcast_to(self._file_labels(0), (X.shape[0],))
            )
            program_times.append(self._run(self.commands.predict, files, "output"))
            return self.classes_[self._read_predictions(files["output"], X.shape[0])]

    @property
    def decision_function(self) -> Any:
        """Function from rows to decision values, for models in a known format."""
        if self.model_ is None:
            msg = f"{self.commands.program} wrote no model that gives decision values"
            raise AttributeError(msg)
        return self.model_.decide

    @property
    def _model_file(self) -> Path:
        return self.folder_.path / "model"

    def _file_labels(self, codes: Any) -> np.ndarray:
        """Return the labels for the program's files, from the indices of classes."""
        codes = np.asarray(codes)
        return np.where(codes == 1, 1, -1) if len(self.classes_) == 2 else codes + 1

    def _run(self, words: tuple[str, ...], files: dict[str, Path], output: str) -> Ended:
        """Run a command; check that it wrote the file of the placeholder `output`."""
        values = {name: _text(getattr(self, name)) for name in self.commands.parameters}
        filled = templates.fill_template(
            words, values | {name: str(path) for name, path in files.items()}
        )
        filled[0] = str(Path(shutil.which(filled[0]) or filled[0]).absolute())
        ended = launch(filled)
        if not files[output].is_file() or not files[output].stat().st_size:
            raise ProgramError(
                f"{Path(filled[0]).name} ended without an error but didn't write {{{output}}}"
            )
        return ended

    def _read_predictions(self, path: Path, number: int) -> np.ndarray:
        """Return the indices of the predicted classes, from labels or two-class decision values."""
        program = Path(self.commands.predict[0]).name
        rows = path.read_bytes().split(b"\n")
        rows = rows[:-1] if rows[-1].strip() == b"" else rows
        try:
            values = np.array([float(row) for row in rows])
        except ValueError:
            line_number, row = next(
                (i, r) for i, r in enumerate(rows, start=1) if not _is_number(r)
            )
            shown = line(row.decode(errors="replace"), 40)
            raise ProgramError(
                f"{program} wrote {shown!r}, not a number, in line {line_number} of its predictions"
            ) from None
        if len(values) != number:
            raise ProgramError(f"{program} wrote {len(values)} predictions for {number} rows")
        if not np.isfinite(values).all():
            what = "NaN" if np.isnan(values).any() else "infinity"
            raise ProgramError(f"{program} wrote {what} among its predictions")
        if len(self.classes_) == 2:
            self._check_signs(values, program)
            return (values >= 0).astype(np.intp)
        known = self._file_labels(np.arange(len(self.classes_)))
        if not np.isin(values, known).all():
            wrong = float(values[~np.isin(values, known)][0])
            raise ProgramError(
                f"{program} predicted class {wrong:g}; the classes are {known[0]} to {known[-1]}"
            )
        return values.astype(np.intp) - 1

    def _check_signs(self, values: np.ndarray, program: str) -> None:
        """Raise an error unless the signs of the values are the classes.

        Decision values of one sign are believed if the model is in a known format.
        """
        if np.isin(values, (-1, 1)).all():
            return
        are_integers = values == np.round(values)
        if are_integers.all():
            wrong = values[~np.isin(values, (-1, 1))][0]
            raise ProgramError(
                f"{program} predicted class {wrong:g}; the classes of the training file are -1 and"
                " +1"
            )
        missing = "negative" if (values >= 0).all() else "positive" if (values <= 0).all() else ""
        if missing and self.model_ is None:
            raise ProgramError(
                f"{program} wrote values from {values.min():g} to {values.max():g}, none of them"
                f" {missing}; write the labels -1 and +1 of the training file, or decision values"
                " of both signs"
            )


@cache
def program(name: str) -> Any:
    """Return the solver class of a program.

    Parameters
    ----------
    name : str
        The commands, as in :attr:`Commands.name`.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If the commands are malformed.
    """
    try:
        commands = templates.read_template(name)
    except ValueError as error:
        raise ConfigError(f"{line(name, 100)}: {error}") from error
    declaration = Declaration(
        name=name,
        problem="",
        summary=f"the program {commands.program}",
        reference=f"{commands.program}, as it is installed",
        kernels=(),
        task="binary" if name.endswith(templates.BINARY) else "multiclass",
    )

    def initialise(self: Program, **params: Any) -> None:
        for parameter in commands.parameters:
            setattr(self, parameter, params.pop(parameter, None))
        if params:
            msg = f"{commands.program} has no placeholder for {next(iter(params))}"
            raise TypeError(msg)

    parameters = [
        inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=None)
        for parameter in commands.parameters
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    initialise.__signature__ = inspect.Signature([itself, *parameters])  # type: ignore[attr-defined]
    fields = {
        "__init__": initialise,
        "__module__": __name__,
        "declaration": declaration,
        "commands": commands,
    }
    return type("Program", (Program,), fields)


def why_not_run(name: str, *, trust: bool = False) -> str:
    """Return the reason why a program can't be used, or an empty text, without running it."""
    if trust:
        return ""
    program = templates.read_template(name).program
    return f"{program} is an external program; a run starts it only with --trust"


def write_libsvm_rows(path: Path, X: Any, labels: np.ndarray) -> None:
    """Write rows in LIBSVM's text format, with all digits of each value.

    Parameters
    ----------
    path : Path
    X : ndarray or CSR of shape (n_samples, n_features)
    labels : ndarray of int of shape (n_samples,)
    """
    with path.open("w", encoding="ascii") as stream:
        for start in range(0, X.shape[0], _ROWS_PER_WRITE):
            part = sp.csr_array(X[start : start + _ROWS_PER_WRITE])
            part.sum_duplicates()
            part.eliminate_zeros()
            indices, values = (part.indices + 1).tolist(), part.data.tolist()
            pairs = [f"{index}:{value!r}" for index, value in zip(indices, values, strict=True)]
            for i, label in enumerate(labels[start : start + _ROWS_PER_WRITE].tolist()):
                row = pairs[part.indptr[i] : part.indptr[i + 1]]
                stream.write(" ".join([f"{label:+d}", *row]) + "\n")


def _text(value: Any) -> str:
    """Return the value of a parameter as text for a command."""
    return repr(value) if isinstance(value, float) else str(value)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
