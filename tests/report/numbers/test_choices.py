"""Which solver to take: README, FAQ, ``svmbench try`` and the first page agree."""

from __future__ import annotations

import re
from pathlib import Path

from svmbench.baselines.catalogue import solvers
from svmbench.report.numbers.certified import RANKED_AT, Board, CertifiedStanding
from svmbench.report.numbers.choices import CHOICES, HEAD, choices, standing_of
from svmbench.report.numbers.ratios import Leader
from svmbench.studies.trying import CANDIDATES

ROOT = Path(__file__).resolve().parents[3]
TAKEN = {task: solver for task, solver, _ in CHOICES}


def test_readme_has_the_table() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text[text.index("## Which solver to take") :].splitlines()
    place = lines.index(f"| {' | '.join(HEAD)} |") + 2
    shown = [line.split(" | ") for line in lines[place : place + len(CHOICES)]]
    assert [(one[0].removeprefix("| "), one[1]) for one in shown] == [
        (task, f"`{solver}`") for task, solver in TAKEN.items()
    ]


def test_the_faq_names_the_same_solvers() -> None:
    text = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    section = text[text.index("## Which solver should I use?") :].split("\n## ")[0]
    named = re.findall(r"`([\w-]+)`", section)
    assert named[: len(CHOICES)] == list(TAKEN.values())


def test_try_prefers_them_among_solvers_of_their_kind() -> None:
    known = solvers()
    is_linear = {name: known[name].kernels == ("linear",) for name, _, _ in CANDIDATES}
    first = {kind: next(n for n, one in is_linear.items() if one is kind) for kind in (True, False)}
    assert first == {True: TAKEN["a linear classifier"], False: TAKEN["a kernel classifier"]}


def test_every_choice_is_a_solver_of_its_problem() -> None:
    known = solvers()
    assert [known[solver].problem for solver in TAKEN.values()] == [
        "hinge", "squared-hinge", "one-class", "nu-svc",
    ]  # fmt: skip


def test_reasons_say_how_much_was_measured() -> None:
    leaders = {
        "kernel classifier, up to 5,000 rows, against LIBSVM": [
            Leader("csvc", 3.28, 1.12, 22.0, 41, is_exact=True)
        ],
        "linear classifier, against LIBLINEAR": [
            Leader("newton-l2", 1.63, 0.526, 9.09, 4, is_exact=True)
        ],
    }
    assert [one.why for one in choices([], leaders)] == [
        "CPU time of LIBSVM over its own: 3.28 (median of 41 problems, up to 5,000 rows;"
        " 1.12–22.0)",
        "CPU time of LIBLINEAR over its own: 1.63 (median of 4 problems, too few to rank;"
        " 0.526–9.09)",
        "not measured",
        "not measured",
    ]


def test_a_solver_knows_its_places_on_the_boards() -> None:
    """On a board with three solvers one of them solves nothing."""
    standings = (
        CertifiedStanding("a", {RANKED_AT: 0}, 1, 0, ("x",), None, None, None, None),
        CertifiedStanding("b", {RANKED_AT: 5}, 5, 5, (), 2.5, 1.0, 4.0, None),
        CertifiedStanding("c", {RANKED_AT: 6}, 5, 5, (), 1.0, 1.0, 1.5, 1),
    )
    board = Board("A kernel: C = 1", "perf", (), standings)
    assert standing_of("a", [board]) == []
    assert standing_of("b", [board, board]) == 2 * [
        "A kernel: 2.50 times the time of each problem's fastest solver in the median of 5"
        " problems, to a certified gap of 1e-3; place 2 of 3."
    ]
