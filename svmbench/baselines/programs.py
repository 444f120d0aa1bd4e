"""Anybody's program as a solver: two commands in a config, run on files.

Rows are handed over in LIBSVM's text format, with every digit that a float64 has. Writing them is
conversion, and in no other time; what the program takes is measured around it (`launching`). Its
model is read where its format is known (`program_models`), so that the suite's own objective is
evaluated on it where one of its parameters is called C; any other is known by its predictions.
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
from svmbench.baselines.clock import handing_over, now
from svmbench.baselines.launching import Ended, launch
from svmbench.baselines.liblinear import iterations_of
from svmbench.baselines.program_models import ReadModel, read_model
from svmbench.baselines.templates import Commands
from svmbench.core.contract.base import TrainingData
from svmbench.core.contract.declaration import Declaration

#: Rows whose text is made at a time.
_ROWS = 4096


class Folder:
    """A folder that goes with the object that holds it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="svmbench-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Program(ClassifierMixin, BaseEstimator):
    """A solver that is a program; `program` makes a class of it for each pair of commands.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels. The program sees -1 and +1 in their order, or 1, 2, … of more than two.
    objective_ : float or None
        Primal value of the problem that its model is a solution of; None where that is not known.
    n_iter_ : int
        As it printed them, in LIBSVM's or LIBLINEAR's words; else 1.
    peak_memory_mb_ : float
        Largest resident memory of the program, MiB.
    """

    declaration: ClassVar[Declaration]
    commands: ClassVar[Commands]

    def prepare(self, X: Any, y: Any) -> TrainingData:
        """Write the training rows; parameters are checked first.

        Raises
        ------
        ValueError
            For a place in the commands that has no value, or a single class.
        svmbench.base.errors.ProgramError
            If the program is not here.
        """
        missing = [name for name in self.commands.parameters if getattr(self, name) is None]
        if missing:
            msg = f"{self.commands.program} needs a value for {{{missing[0]}}}"
            raise ValueError(msg)
        if absent := self.commands.missing():
            raise ProgramError(f"there is no program {absent!r} here (PATH is searched)")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            msg = f"{self.commands.program} needs samples of two classes; there is one"
            raise ValueError(msg)
        self.n_features_in_ = X.shape[1]
        folder = Folder()
        signs = self._written(codes)
        write_rows(folder.path / "train", X, signs)
        kept = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        return TrainingData(X=kept, y=signs.astype(np.float64), native=folder)

    def fit(self, X: Any, y: Any) -> Self:
        """Write the rows, run the program, and read its model: the three steps in a row."""
        data = self.prepare(X, y)
        return self.train(data).certify(data)

    def train(self, data: TrainingData) -> Self:
        """Run the program.

        Raises
        ------
        svmbench.base.errors.ProgramError
            If it fails, or writes no model.
        """
        self.folder_ = Folder()
        self.__dict__.pop("model_", None)  # of an earlier training
        files = {"train": data.native.path / "train", "model": self.folder_.path / "model"}
        with handing_over() as took:
            ended = self._run(self.commands.train, files, "model")
            took.append(ended)
        said = ended.out + ended.err
        self.n_iter_ = iterations_of(said)
        self.stop_reason_ = "max_iter" if "reaching max number" in said else "not told"
        self.counters_: dict[str, int] = {"iterations": self.n_iter_}
        self.peak_memory_mb_ = ended.peak_memory_mb
        self.objective_: float | None = None
        return self

    def certify(self, data: TrainingData) -> Self:
        """Read the model, and evaluate the objective on it, where its format and C are known."""
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
        """Return CPU seconds, those of programs among them."""
        return now()[1]

    @cached_property
    def model_(self) -> ReadModel | None:
        """The model that the program wrote; None where it can't be read."""
        two = len(self.classes_) == 2
        return read_model(self._model_file, self.n_features_in_) if two else None

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels of rows: by the program's own command, or by its model.

        Raises
        ------
        svmbench.base.errors.ProgramError
            If the command fails, or does not write a prediction for each row.
        """
        if not self.commands.predict:
            if self.model_ is None:
                raise ProgramError(
                    f"{self.commands.program} wrote a model of no known format, or of several"
                    " classes, and the config has no 'predict' for it"
                )
            return self.classes_[(self.model_.decide(X) >= 0).astype(np.intp)]
        folder = self.folder_.path
        files = {"test": folder / "test", "model": self._model_file, "output": folder / "output"}
        files["output"].unlink(missing_ok=True)
        with handing_over() as took:
            # What the label of a row is, it is not to see.
            write_rows(files["test"], X, np.broadcast_to(self._written(0), (X.shape[0],)))
            took.append(self._run(self.commands.predict, files, "output"))
            return self.classes_[self._read_predictions(files["output"], X.shape[0])]

    @property
    def decision_function(self) -> Any:
        """Decision values of rows, by a model whose format is known."""
        if self.model_ is None:
            msg = f"{self.commands.program} has no decision values that can be read"
            raise AttributeError(msg)
        return self.model_.decide

    @property
    def _model_file(self) -> Path:
        return self.folder_.path / "model"

    def _written(self, codes: Any) -> np.ndarray:
        """Return what the program sees of classes, by their positions."""
        codes = np.asarray(codes)
        return np.where(codes == 1, 1, -1) if len(self.classes_) == 2 else codes + 1

    def _run(self, words: tuple[str, ...], files: dict[str, Path], made: str) -> Ended:
        """Run one of the commands, and see that it wrote the file that it was to make."""
        values = {name: _text(getattr(self, name)) for name in self.commands.parameters}
        filled = templates.fill(words, values | {name: str(path) for name, path in files.items()})
        filled[0] = str(Path(shutil.which(filled[0]) or filled[0]).absolute())
        ended = launch(filled)
        if not files[made].is_file() or not files[made].stat().st_size:
            raise ProgramError(f"{Path(filled[0]).name} ended well and wrote nothing to {{{made}}}")
        return ended

    def _read_predictions(self, path: Path, number: int) -> np.ndarray:
        """Return the positions of the predicted classes: labels, or, of two, decision values."""
        program = Path(self.commands.predict[0]).name
        rows = path.read_bytes().split(b"\n")
        rows = rows[:-1] if rows[-1].strip() == b"" else rows
        try:
            values = np.array([float(row) for row in rows])
        except ValueError:
            place, row = next((i, r) for i, r in enumerate(rows, start=1) if not _is_number(r))
            shown = line(row.decode(errors="replace"), 40)
            raise ProgramError(
                f"{program} wrote no number in line {place} of its predictions: {shown!r}"
            ) from None
        if len(values) != number:
            raise ProgramError(f"{program} wrote {len(values)} predictions for {number} rows")
        if len(self.classes_) == 2:
            if np.isnan(values).any():
                raise ProgramError(f"{program} wrote NaN among its predictions")
            return (values >= 0).astype(np.intp)
        known = self._written(np.arange(len(self.classes_)))
        if not np.isin(values, known).all():
            wrong = float(values[~np.isin(values, known)][0])
            raise ProgramError(
                f"{program} predicted the class {wrong:g}, and there are {known[0]} to {known[-1]}"
            )
        return values.astype(np.intp) - 1


@cache
def program(name: str) -> Any:
    """Return the class of a program's solver.

    Parameters
    ----------
    name : str
        Its commands, as :attr:`Commands.name` has them.

    Raises
    ------
    svmbench.base.errors.ConfigError
        If these are none.
    """
    try:
        commands = templates.read(name)
    except ValueError as error:
        raise ConfigError(f"{line(name, 100)}: {error}") from error
    declaration = Declaration(
        name=name,
        problem="",
        summary=f"the program {commands.program}",
        reference=f"{commands.program}, as it is installed",
        kernels=(),
        task="multiclass",
    )

    def initialise(self: Program, **params: Any) -> None:
        for parameter in commands.parameters:
            setattr(self, parameter, params.pop(parameter, None))
        if params:
            msg = f"{commands.program} has no place for {next(iter(params))}"
            raise TypeError(msg)

    places = [
        inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=None)
        for parameter in commands.parameters
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    initialise.__signature__ = inspect.Signature([itself, *places])  # type: ignore[attr-defined]
    fields = {
        "__init__": initialise,
        "__module__": __name__,
        "declaration": declaration,
        "commands": commands,
    }
    return type("Program", (Program,), fields)


def why_not_run(name: str, *, trust: bool = False) -> str:
    """Return why a program can't take part; empty if it can. Nothing of it is run."""
    if trust:
        return ""
    return f"{templates.read(name).program} is a program of somebody's; --trust lets a run start it"


def write_rows(path: Path, X: Any, labels: np.ndarray) -> None:
    """Write rows in LIBSVM's text format, every value with the digits that make it again.

    Parameters
    ----------
    path : Path
    X : ndarray or CSR of shape (n_samples, n_features)
    labels : ndarray of int of shape (n_samples,)
    """
    with path.open("w", encoding="ascii") as stream:
        for start in range(0, X.shape[0], _ROWS):
            part = sp.csr_array(X[start : start + _ROWS])
            part.sum_duplicates()
            part.eliminate_zeros()
            indices, values = (part.indices + 1).tolist(), part.data.tolist()
            pairs = [f"{index}:{value!r}" for index, value in zip(indices, values, strict=True)]
            for i, label in enumerate(labels[start : start + _ROWS].tolist()):
                row = pairs[part.indptr[i] : part.indptr[i + 1]]
                stream.write(" ".join([f"{label:+d}", *row]) + "\n")


def _text(value: Any) -> str:
    """Return a parameter's value as the word, or the part of one, that a program reads."""
    return repr(value) if isinstance(value, float) else str(value)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
