"""Programs for the tests: small scripts that speak the formats of others, or go wrong.

Each is this file under another name. Those that train keep the first rows as support vectors, with
coefficients that can be told beforehand, and are no solvers at all.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Rows that become support vectors, and the threshold: f = sum of alpha y K - THRESHOLD.
KEPT, ALPHA, THRESHOLD = 7, 0.25, 0.125

Row = tuple[float, dict[int, float]]


def rows_of(path: str) -> list[Row]:
    rows = []
    for text in Path(path).read_text().splitlines():
        label, *pairs = text.split()
        rows.append((float(label), {int(p.split(":")[0]): float(p.split(":")[1]) for p in pairs}))
    return rows


def vector(row: dict[int, float]) -> str:
    return " ".join(f"{index}:{value!r}" for index, value in row.items())


def rbf(a: dict[int, float], b: dict[int, float], gamma: float) -> float:
    square = sum((a.get(i, 0.0) - b.get(i, 0.0)) ** 2 for i in {*a, *b})
    return math.exp(-gamma * square)


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def learn_svm_light(words: list[str]) -> None:
    train, model = words[-2:]
    kept = rows_of(train)[:KEPT]
    gamma = option(words, "-g") if "-g" in words else "1"
    head = [
        "SVM-light Version V6.02",
        f"{'2' if '-g' in words else '0'} # kernel type",
        "3 # kernel parameter -d ",
        f"{gamma} # kernel parameter -g ",
        "1 # kernel parameter -s ",
        "1 # kernel parameter -r ",
        "empty# kernel parameter -u ",
        "30 # highest feature index ",
        "569 # number of training documents ",
        f"{KEPT + 1} # number of support vectors plus 1 ",
        f"{THRESHOLD} # threshold b, each following line is a SV (starting with alpha*y)",
    ]
    lines = [f"{ALPHA * label!r} {vector(row)} #" for label, row in kept]
    Path(model).write_text("\n".join([*head, *lines]) + "\n")


def classify_svm_light(words: list[str]) -> None:
    test, model, output = words[-3:]
    lines = Path(model).read_text().splitlines()
    is_rbf, gamma = lines[1].startswith("2"), float(lines[3].split("#")[0])
    points = [line.split("#")[0].split() for line in lines[11:]]
    kept = [
        (float(p[0]), {int(q.split(":")[0]): float(q.split(":")[1]) for q in p[1:]}) for p in points
    ]
    out = []
    for _, row in rows_of(test):
        f = -float(lines[10].split("#")[0])
        for coefficient, point in kept:
            linear = sum(value * row.get(index, 0.0) for index, value in point.items())
            f += coefficient * (rbf(point, row, gamma) if is_rbf else linear)
        out.append(f"{f!r}")
    Path(output).write_text("\n".join(out) + "\n")


def learn_libsvm(words: list[str], kind: str = "c_svc", label: str = "1 -1") -> None:
    train, model = words[-2:]
    kept = rows_of(train)[:KEPT]
    first = float(label.split()[0])
    head = [
        f"svm_type {kind}", "kernel_type rbf", f"gamma {option(words, '-g')}", "nr_class 2",
        f"total_sv {KEPT}", f"rho {THRESHOLD * first}", f"label {label}", f"nr_sv {KEPT} 0", "SV",
    ]  # fmt: skip
    lines = [f"{ALPHA * y * first!r} {vector(row)} " for y, row in kept]
    Path(model).write_text("\n".join([*head, *lines]) + "\n")


def say_plus_one(words: list[str]) -> None:
    """Predict the class +1 throughout."""
    test, _, output = words[-3:]
    Path(output).write_text("1\n" * len(rows_of(test)))


def go_wrong(words: list[str]) -> None:
    how, *files = words
    if how == "fails":
        print("working\n\x1b[31mno room left\x1b[0m", file=sys.stderr)
        sys.exit(3)
    if how == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hangs":
        Path(files[-1]).write_text(str(os.getpid()))
        time.sleep(600)
    if how == "stops":
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(600)
    if how == "keeps-stopping":
        while True:
            os.kill(os.getppid(), signal.SIGSTOP)
    if how == "hoards":
        held = []
        while True:
            held.append(b"x" * (32 << 20))
            time.sleep(0.05)
    if how == "forks":
        detached = [sys.executable, "-S", "-c", "import time; time.sleep(600)", files[0]]
        child = subprocess.Popen(detached, start_new_session=True)
        Path(files[0]).write_text(str(child.pid))
    if how == "damaged":
        Path(files[-1]).write_text("svm_type c_svc\nkernel_type rbf\nnr_class 2\nSV\n0.5 1:x\n")
    if how in ("other", "forks", "prints"):
        Path(files[-1]).write_text("a model of its own kind\n")
    if how == "prints":
        sys.stdout.write("x" * (5 << 20) + "\n#iter = 41\n")


def predict_wrong(words: list[str]) -> None:
    how, test, _, output = words
    n = len(rows_of(test))
    text = {"few": "1\n" * (n - 1), "words": "1\nyes\n" * n, "empty": "", "nan": "nan\n" * n}[how]
    Path(output).write_text(text)


PROGRAMS = {
    "svm_learn": learn_svm_light,
    "svm_classify": classify_svm_light,
    "svm_perf_learn": learn_svm_light,
    "svm_perf_classify": classify_svm_light,
    "la_svm": learn_libsvm,
    "la_test": say_plus_one,
    "cvm-train": lambda words: learn_libsvm(words, kind="cvc"),
    "cvm-predict": say_plus_one,
    "turned": lambda words: learn_libsvm(words, label="-1 1"),
    "go-wrong": go_wrong,
    "predict-wrong": predict_wrong,
}


def install(folder: Path) -> Path:
    """Put every program into a folder; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        path = folder / name
        path.write_text(f"#!/usr/bin/env -S {sys.executable} -S\n{Path(__file__).read_text()}")
        path.chmod(0o755)
    return folder


if __name__ == "__main__":
    PROGRAMS[Path(sys.argv[0]).name](sys.argv[1:])
