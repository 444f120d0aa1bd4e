"""What bounds the aims that are missed, from the kept records: bounds.csv, and the page's table.

    python results/perf/bounds.py

The shares of ``results/smo/parts.csv`` give two ratios beside the measured one: that of a call in
which all but kernel values (and the check of the inputs) took no time, and that of one in which
only these and the steps took time. If the aim is below the first ratio, other parts leave room;
if it is above, only faster kernel values can reach it. For `fit` of `csvc` and of `nu-svc` the
measured ratio is that of parts.csv itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).resolve().parent.parent
PAGE = RESULTS / "perf" / "README.md"
_TABLE = re.compile(r"(<!-- bounds -->\n).*?(<!-- /bounds -->)", re.DOTALL)
WORDS = {"csvc": "SVC", "nu-svc": "NuSVC"}
#: A parameter in the page's words.
NU = " \N{GREEK SMALL LETTER NU} ="
#: Aims of `fit` beside scikit-learn's, in the median of small sets; of several classes.
AIMS = {
    "digits": 6.0,
    "optdigits": 6.0,
    "usps-esl": 6.0,
    "synthetic-11x48": 1.0,
    "synthetic-26x231": 3.0,
}
OTHER_AIM = 4.0
#: Aims of two threads, and of a value of a path in ms.
TWO_THREADS, PATH_MS = 1.75, 3.0


class Record(NamedTuple):
    """A row of a kept table: a measured ratio, its aim, and the call of parts.csv that it is of."""

    words: str
    aim: float
    file: str  # below results
    column: str
    dataset: str
    call: str
    data: str  # of parts.csv, which has its own names of shares of a data set
    key: str = "dataset"


KERNEL, ONE_CLASS = "smo/perf_library-idle", "fosvm/perf_oneclass-small-nu"
PEERS, CASES = "alsvm/perf_linear-hinge/dcd-l1-peers.csv", "perf/weakest_cases.csv"
HARD = "fit csvc, C = 32, gamma = 2"
RECORDS = (
    Record(
        *("`predict` in single precision", 25.0, f"{KERNEL}/predict-ijcnn1.csv"),
        *("csvc-single vs libsvm.ratio", "ijcnn1", "predict csvc, single precision", "ijcnn1"),
    ),
    Record(
        *("a later `fit`", 9.0, f"{KERNEL}/later-ijcnn1.csv"),
        *("csvc vs SVC.ratio", "ijcnn1", HARD, "ijcnn1"),
    ),
    Record(
        *("a later `fit`", 9.0, f"{KERNEL}/later-cod-rna.csv", "csvc vs libsvm.ratio"),
        *("cod-rna-train", "fit csvc, C = 1, gamma = 0.1", "cod-rna-train"),
    ),
    Record(
        *("training alone", 30.0, "smo/perf_kernel-again/ijcnn1.csv", "csvc vs libsvm.ratio"),
        *("ijcnn1", "train csvc, C = 1, gamma = 0.0455", "ijcnn1"),
    ),
    *(
        Record(
            *(f"training of `one-class`, {given}", 3.0, f"{ONE_CLASS}/{block}.csv"),
            *(f"one-class vs {theirs}.ratio", data, f"train one-class, {given}", data),
        )
        for given, block, theirs, data in (
            ("nu = 0.05", "small-nu", "libsvm-oneclass", "svmguide1"),
            ("nu = 0.01", "smaller-nu", "libsvm-oneclass", "svmguide1"),
            ("nu = 0.05, gamma = 50", "narrow", "libsvm-tight", "electrical"),
        )
    ),
    *(
        Record(
            *("`nu-svc` at equal accuracy", 2.5, CASES, "ratio", case),
            *(f"fit nu-svc, nu = {nu}", data, "case"),
        )
        for data, nu, case in (
            ("digits", "0.05", "digits, nu 0.05"),
            ("dermatology", "0.1", "dermatology, nu 0.1"),
            ("glass.scale", "0.2", "glass.scale, nu 0.2"),
            ("svmguide3", "0.3", "svmguide3, nu 0.3"),
        )
    ),
    Record(
        *("`newton-l2`", 1.3, "alsvm/perf_linear-newton/newton-l2.csv"),
        *("newton-l2 vs liblinear-l2.ratio", "mnist-t10k-even-odd"),
        *("train newton-l2, tol = 0.03", "mnist-t10k-even-odd"),
    ),
    *(
        Record(
            *("`dcd-l1` beside ReHLine", 2.0, PEERS, "dcd-l1 vs rehline-l1.ratio", data),
            *("train dcd-l1, tol = 0.12", data),
        )
        for data in ("svmguide1", "banknote", "wine-quality", "digits-even-odd")
    ),
    *(
        Record(
            *("search by duality gap", 2.5, "nlsgd/liquidsvm.csv", "ratio", data),
            *("search csvc", data, "data"),
        )
        for data in ("splice", "a9a")
    ),
)


def rows_of(path: str) -> list[dict[str, str]]:
    """Return the rows of a kept table."""
    with (RESULTS / path).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def line_of(words: str, data: str, aim: float, ratio: float, part: dict[str, str]) -> dict:
    """Return a line of bounds.csv."""
    shares = [int(part[f"{of}_pct"]) for of in ("values", "validation", "steps", "rest")]
    left, steps, rest = sum(shares[:2]), shares[2], shares[3]
    of_values = 100.0 * ratio / left if left else None
    with_steps = 100.0 * ratio / (left + steps)
    if ratio >= aim:
        verdict = "reached"
    elif of_values is not None and of_values < aim:
        verdict = "yes"
    else:
        # Without the rest the aim may be out of reach still.
        verdict = "no: steps" if with_steps < aim or steps > rest else "no: the rest"
    shown = {"of_values": of_values, "with_steps": with_steps}
    return {"row": words, "data": data, "aim": f"{aim:g}", "measured": f"{ratio:.2f}"} | {
        **{name: "" if value is None else f"{value:.1f}" for name, value in shown.items()},
        "steps_pct": steps, "rest_pct": rest, "bounded": verdict,
    }  # fmt: skip


def lines() -> Iterator[dict[str, Any]]:
    """Yield the lines of bounds.csv."""
    parts = {(part["call"], part["data"]): part for part in rows_of("smo/parts.csv")}
    for (call, data), part in parts.items():
        if part["ratio"]:
            name = call.split()[1]
            words, aim = f"`fit` of `{name}` beside {WORDS[name]}", AIMS.get(data, OTHER_AIM)
            yield line_of(words, data, aim, float(part["ratio"]), part)
    for record in RECORDS:
        # Of several lines of a case the last one is at equal accuracy.
        kept = [row for row in rows_of(record.file) if row[record.key] == record.dataset][-1]
        part = parts[record.call, record.data]
        yield line_of(record.words, record.data, record.aim, float(kept[record.column]), part)


def other_lines() -> Iterator[dict[str, Any]]:
    """Yield the lines of aims that are no ratio to another program."""
    parts = {(part["call"], part["data"]): part for part in rows_of("smo/parts.csv")}
    part = parts["fit csvc, C = 1, gamma = 0.0455", "a9a"]
    wall = next(row for row in rows_of(f"{KERNEL}/threads.csv") if row["dataset"] == "a9a")
    ratio = float(wall["csvc.wall_time_s"]) / float(wall["csvc-2-threads.wall_time_s"])
    # Two threads halve kernel values alone.
    bound = 1.0 / (1.0 - int(part["values_pct"]) / 200.0)
    yield {
        "row": "two threads, wall time; kernel values take half of it", "data": "a9a",
        "aim": f"{TWO_THREADS:g}", "measured": f"{ratio:.2f}", "of_values": f"{bound:.2f}",
        "with_steps": "", "steps_pct": part["steps_pct"], "rest_pct": part["rest_pct"],
        "bounded": "yes" if bound < TWO_THREADS else "no: the rest",
    }  # fmt: skip
    newest: dict[str, dict[str, str]] = {}
    for row in rows_of("srbo/vanishing_path.csv"):
        if row["data"] == "cmc":
            newest[row["gamma"]] = row
    for gamma, row in newest.items():
        ms = float(row["vanishing_ms"])
        systems = ms * float(row["vanishing_factors_pct"]) / 100.0
        yield {
            "row": "path of `nu-svm` without a margin, ms a value; linear systems alone",
            "data": f"cmc, gamma {gamma}", "aim": f"{PATH_MS:g}", "measured": f"{ms:.1f}",
            "of_values": f"{systems:.1f}", "with_steps": "", "steps_pct": "", "rest_pct": "",
            "bounded": "yes" if systems > PATH_MS else "no: the rest",
        }  # fmt: skip


def main() -> None:
    """Write bounds.csv and the table of the page."""
    all_lines = [*lines(), *other_lines()]
    path = PAGE.with_name("bounds.csv")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, all_lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(all_lines)
    table = [
        "| row | data | aim | measured | only kernel values | with steps | bounded |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    table += [
        f"| {line['row'].replace(' nu =', NU)} (`results/perf/bounds.csv`) | {line['data']} "
        f"| {line['aim']} | {line['measured']} | {line['of_values'] or '–'} "
        f"| {line['with_steps'] or '–'} | {line['bounded']} |"
        for line in all_lines
    ]
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda m: m[1] + "\n".join(table) + "\n" + m[2], page), "utf-8")


if __name__ == "__main__":
    main()
