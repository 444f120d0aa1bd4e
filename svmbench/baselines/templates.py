"""What a config says of a program: the words of two commands, with places to be filled in.

A command is split into words once, as a shell would, and then each word has its places filled, so
that a path with spaces or quotes stays one word. No shell sees any of it. Joined by ``&&`` the two
commands are the program's name, by which a cell knows it.
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

_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
#: A word that needs no quotes.
_PLAIN = re.compile(r"[\w@%+=:,./{}-]+")
_AND = " && "
#: The files that svmbench fills in: of the first command, and of the second.
TO_TRAIN, TO_PREDICT = ("train", "model"), ("test", "model", "output")
#: What would mean something to a shell.
_OF_SHELLS = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"}

#: Programs by a word, with the commands that they are called by, as their authors document them.
SHIPPED = {
    # LIBSVM and LIBLINEAR, as Debian installs them.
    "svm-train": (
        "svm-train -s 0 -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "svm-predict {test} {model} {output}",
    ),
    "liblinear-train": (
        "liblinear-train -s 2 -B 1 -c {C} -e {tol} {train} {model}",
        "liblinear-predict {test} {model} {output}",
    ),
    # SVM-light (Joachims); RBF kernel.
    "svm_learn": (
        "svm_learn -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "svm_classify {test} {model} {output}",
    ),
    # SVM-perf (Joachims): error rate. Its C weighs the mean loss times 100, and so is no C of ours.
    "svm_perf_learn": (
        "svm_perf_learn -l 2 -c {C_perf} -e {tol} {train} {model}",
        "svm_perf_classify {test} {model} {output}",
    ),
    # LaSVM (Bordes, Ertekin, Weston, Bottou); RBF kernel.
    "la_svm": (
        "la_svm -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "la_test {test} {model} {output}",
    ),
    # LibCVM (Tsang, Kocsor, Kwok), whose programs have LIBSVM's names: to be linked under others.
    "cvm-train": (
        "cvm-train -s 6 -t 2 -c {C} -g {gamma} -e {tol} {train} {model}",
        "cvm-predict {test} {model} {output}",
    ),
}


@dataclass(frozen=True)
class Commands:
    """The words of a program's two commands; those of the second may be missing."""

    train: tuple[str, ...]
    predict: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The places that parameters fill, in the order in which they stand."""
        places = _places(self.train) + _places(self.predict)
        return tuple(dict.fromkeys(name for name in places if name not in {*TO_TRAIN, *TO_PREDICT}))

    @property
    def program(self) -> str:
        """What the first command runs, without its folder."""
        return Path(self.train[0]).name

    @property
    def name(self) -> str:
        """Both commands in one line, from which `read` makes them again."""
        both = (self.train, self.predict)
        return _AND.join(" ".join(map(_quoted, words)) for words in both if words)

    def fingerprint(self) -> str:
        """Return a hash of the programs' files, and of files that are words of the commands."""
        digest = hashlib.sha256()
        for words in (self.train, self.predict):
            files = [shutil.which(words[0]) if words else None, *words[1:]]
            for path in (Path(file) for file in files if file and not _PLACE.search(file)):
                if path.is_file():
                    with path.open("rb") as stream:
                        digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:20]

    def missing(self) -> str:
        """Return the first program that is not here, or nothing."""
        programs = [words[0] for words in (self.train, self.predict) if words]
        return next((name for name in programs if shutil.which(name) is None), "")


def is_program(name: str) -> bool:
    """Return whether a solver's name is that of a program: its commands."""
    return "{train}" in name


def commands(program: str, predict: str = "") -> Commands:
    """Return what a config says of a program.

    Parameters
    ----------
    program : str
        The command that trains, or the word of one of `SHIPPED`.
    predict : str
        The command that predicts; empty where the model that is written will do.

    Raises
    ------
    ValueError
        In a sentence, for what can't be split into words, has no place for a file, or would need a
        shell.
    """
    if program.strip() in SHIPPED:
        shipped = SHIPPED[program.strip()]
        program, predict = shipped[0], predict or shipped[1]
    made = Commands(_words(program, "program"), _words(predict, "predict") if predict else ())
    for words, needed, key in (
        (made.train, TO_TRAIN, "program"),
        (made.predict, TO_PREDICT, "predict"),
    ):
        for file in needed if words else ():
            if file not in _places(words):
                known = f" (known by a word: {', '.join(SHIPPED)})" if len(words) == 1 else ""
                msg = f"'{key}' has no {{{file}}}, where the {_FILES[file]} is filled in{known}"
                raise ValueError(msg)
        for word in words:
            if word in _OF_SHELLS or _AND in word:
                msg = f"'{key}' is handed to no shell, and {word!r} would be a word of the command"
                raise ValueError(msg)
    for file in _places(made.train):
        if file in TO_PREDICT and file not in TO_TRAIN:
            msg = f"'program' can't have {{{file}}}, which only 'predict' is given"
            raise ValueError(msg)
    return made


_FILES = {
    "train": "file of training rows",
    "model": "file of the model",
    "test": "file of test rows",
    "output": "file of predictions",
}


def read(name: str) -> Commands:
    """Return the commands that a name stands for.

    Raises
    ------
    ValueError
        As `commands` does.
    """
    program, _, predict = name.partition(_AND)
    return commands(program, predict)


def fill(words: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """Return a command's words with their places filled, one word each."""
    return [_PLACE.sub(lambda place: values.get(place[1], place[0]), word) for word in words]


def _words(command: str, key: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        msg = f"'{key}' can't be split into words: {str(error).lower()}"
        raise ValueError(msg) from error
    if not words or not words[0]:
        msg = f"'{key}' names no program"
        raise ValueError(msg)
    if _PLACE.search(words[0]):
        msg = f"'{key}' begins with a place to be filled in; a program is named outright"
        raise ValueError(msg)
    return words


def _quoted(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _places(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for word in words for name in _PLACE.findall(word))
