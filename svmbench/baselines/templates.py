"""Parse the command templates of an external program, and fill in their placeholders.

A command is split into words as a shell would, and then the placeholders in each word are filled,
so that a path with spaces or quotes stays one word. No shell is involved. The two commands, joined
by ``&&``, are the name of the program in cells.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
#: A word that needs no quotes.
_UNQUOTED = re.compile(r"[\w@%+=:,./{}-]+")
_AND = " && "
#: End of the name of a foreign class or a program that separates two classes only.
BINARY = " (binary)"
#: Placeholders of files in the training command.
TRAIN_FILES = ("train", "model")
#: Placeholders of files in the prediction command.
PREDICT_FILES = ("test", "model", "output")
#: Words with a meaning in a shell.
_SHELL_WORDS = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"}

#: Known programs by a word, with the commands from their documentation and their kernel.
SHIPPED = {
    # LIBSVM and LIBLINEAR, as Debian installs them.
    "svm-train": (
        "svm-train -s 0 -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "svm-predict {test} {model} {output}",
        "rbf",
    ),
    "liblinear-train": (
        "liblinear-train -s 2 -B 1 -c {C} -e {tol} {train} {model}",
        "liblinear-predict {test} {model} {output}",
        "linear",
    ),
    # SVM-light (Joachims); RBF kernel.
    "svm_learn": (
        "svm_learn -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "svm_classify {test} {model} {output}",
        "rbf",
    ),
    # SVM-perf (Joachims), error rate. Its C weighs the mean loss times 100, unlike the suite's C.
    "svm_perf_learn": (
        "svm_perf_learn -l 2 -c {C_perf} -e {tol} {train} {model}",
        "svm_perf_classify {test} {model} {output}",
        "linear",
    ),
    # LaSVM (Bordes, Ertekin, Weston, Bottou); RBF kernel.
    "la_svm": (
        "la_svm -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "la_test {test} {model} {output}",
        "rbf",
    ),
    # LibCVM (Tsang, Kocsor, Kwok). Its programs have LIBSVM's names: link them under these names.
    "cvm-train": (
        "cvm-train -s 6 -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "cvm-predict {test} {model} {output}",
        "rbf",
    ),
}


@dataclass(frozen=True)
class Commands:
    """The words of the two commands of a program; the second may be empty."""

    train: tuple[str, ...]
    predict: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The placeholders of parameters, in their order."""
        names = _placeholders(self.train) + _placeholders(self.predict)
        return tuple(
            dict.fromkeys(name for name in names if name not in {*TRAIN_FILES, *PREDICT_FILES})
        )

    @property
    def program(self) -> str:
        """The file name of the training program."""
        return Path(self.train[0]).name

    @property
    def name(self) -> str:
        """Both commands in one line, which `read_template` parses."""
        both = (self.train, self.predict)
        return _AND.join(" ".join(map(_quoted, words)) for words in both if words)

    def fingerprint(self) -> str:
        """Return a hash of the programs' files and of other files named in the commands."""
        digest = hashlib.sha256()
        for words in (self.train, self.predict):
            files = [shutil.which(words[0]) if words else None, *words[1:]]
            for path in (Path(file) for file in files if file and not _PLACEHOLDER.search(file)):
                if path.is_file():
                    with path.open("rb") as stream:
                        digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:20]

    def missing(self) -> str:
        """Return the first program that is not installed, or an empty text."""
        programs = [words[0] for words in (self.train, self.predict) if words]
        return next((name for name in programs if shutil.which(name) is None), "")


def shipped_program(program: str) -> tuple[str, str, str] | None:
    """Return the commands and the kernel of a known program, by its word or its path."""
    return SHIPPED.get(Path(program.strip()).name)


def is_program(name: str) -> bool:
    """Return True if the name of a solver is the commands of a program."""
    return "{train}" in name


def commands(program: str, predict: str = "") -> Commands:
    """Parse the two commands of a program.

    Parameters
    ----------
    program : str
        The training command, or a word in `SHIPPED`, or the path of a program of that name.
    predict : str
        The prediction command; empty if the suite reads the model.

    Raises
    ------
    ValueError
        If a command can't be split into words, lacks the placeholder of a file, or needs a shell.
    """
    if shipped := shipped_program(program):
        path = _quoted(program.strip())
        program = f"{path} {shipped[0].partition(' ')[2]}"
        predict = predict or shipped[1]
    parsed = Commands(_words(program, "program"), _words(predict, "predict") if predict else ())
    for words, needed, key in (
        (parsed.train, TRAIN_FILES, "program"),
        (parsed.predict, PREDICT_FILES, "predict"),
    ):
        for file in needed if words else ():
            if file not in _placeholders(words):
                known = f" (known programs: {', '.join(SHIPPED)})" if len(words) == 1 else ""
                msg = f"'{key}' needs the placeholder {{{file}}} for the {_FILES[file]}{known}"
                raise ValueError(msg)
        for word in words:
            if word in _SHELL_WORDS or _AND in word:
                msg = f"'{key}' runs without a shell, so it can't contain {word!r}; use a script"
                raise ValueError(msg)
    for file in _placeholders(parsed.train):
        if file in PREDICT_FILES and file not in TRAIN_FILES:
            msg = f"'program' can't contain {{{file}}}, which only 'predict' gets"
            raise ValueError(msg)
    return parsed


_FILES = {
    "train": "file of training rows",
    "model": "file of the model",
    "test": "file of test rows",
    "output": "file of predictions",
}


def read_template(name: str) -> Commands:
    """Parse the name of a program into its commands.

    Raises
    ------
    ValueError
        As for `commands`.
    """
    program, _, predict = name.removesuffix(BINARY).partition(_AND)
    return commands(program, predict)


def fill_template(words: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """Fill the placeholders in the words of a command."""
    return [_PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word) for word in words]


def _words(command: str, key: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        msg = f"'{key}' can't be split into words: {str(error).lower()}"
        raise ValueError(msg) from error
    if not words or not words[0]:
        msg = f"'{key}' is empty; it must name a program"
        raise ValueError(msg)
    if _PLACEHOLDER.search(words[0]):
        msg = f"'{key}' begins with a placeholder; it must begin with the name of a program"
        raise ValueError(msg)
    return words


def _quoted(word: str) -> str:
    return word if _UNQUOTED.fullmatch(word) else shlex.quote(word)


def _placeholders(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for word in words for name in _PLACEHOLDER.findall(word))
