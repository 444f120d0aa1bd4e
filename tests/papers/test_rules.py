"""Texts and rules of claims: quoted, dated, hashed, and as strict as the papers' words."""

import csv
import json
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from claimed_runs import SCENES, Kept, added, wobble

from svmbench.base.errors import ConfigError
from svmbench.base.paper_folders import papers
from svmbench.experiment.config.requested_metrics import reported_metrics
from svmbench.papers import judging
from svmbench.papers.judging.entries import LINEAR_WINDOW, read_claims
from svmbench.papers.judging.measures import answer_most
from svmbench.papers.srbo.checks import ARTIFICIAL
from svmbench.report.reading import published

ROOT = Path(__file__).resolve().parents[2]
ALL = {claim.id: claim for claim in judging.read_all_claims()}


def judged(name, folder, claims=ALL):
    (found,) = judging.judge([claims[name]], judging.gather_evidence([folder]))
    return found


def changed(name, folder, edit):
    kept = Kept()
    SCENES[name].build(kept)
    kept.edit(edit)
    return judged(name, kept.write(folder))


def given():
    """Return what stands in the files of the papers that ship, by claim."""
    return {
        name: claim
        for paper in papers().values()
        for name, claim in tomllib.loads(
            (paper.folder / "claims.toml").read_text(encoding="utf-8")
        ).items()
    }


def test_every_claim_has_the_papers_words_their_place_and_the_date_of_its_rule():
    for name, claim in given().items():
        assert claim["quote"].strip(), name
        assert claim["where"].strip(), name
        # Nobody is to believe by default that a rule is older than its records, or younger.
        assert isinstance(claim["after_records"], bool), name
        assert "decided_by" not in claim
    assert all(claim.page for claim in ALL.values() if claim.paper == "smo")  # the only with pages


def test_every_metric_that_a_claim_reads_is_one_that_protocols_or_scores_report():
    reported = set(reported_metrics())
    for claim in ALL.values():
        assert set(claim.metrics) <= reported, claim.id


def test_a_file_of_claims_may_name_what_records_hold_and_nothing_else(tmp_path):
    text = (papers()["smo"].folder / "claims.toml").read_text(encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('["cpu_time_s"]', '["predict_time_s"]', 1))
    with pytest.raises(ConfigError, match=r"smo-1: unknown metric 'predict_time_s'"):
        judging.read_all_claims(path)
    (first, *_) = judging.read_all_claims(path, metrics=reported_metrics())
    assert first.metrics == ("predict_time_s",)


def test_a_rules_hash_is_of_statement_rule_uncertainty_and_limits(tmp_path):
    claim = ALL["smo-1"]
    others = [
        replace(claim, statement="Else."),
        replace(claim, rule="else"),
        replace(claim, uncertainty="else"),
        replace(claim, limits={**claim.limits, "gap": 2.0}),
    ]
    assert len({one.rule_hash for one in (claim, *others)}) == 5
    same = [replace(claim, printed="1"), replace(claim, quote="Other."), replace(claim, page="9")]
    assert {one.rule_hash for one in same} == {claim.rule_hash}
    found = changed("smo-1", tmp_path, lambda cell: None)
    kept = json.loads(json.dumps(found.to_json()))
    assert kept["rule_hash"] == claim.rule_hash
    assert (kept["fixed"], kept["after_records"]) == (claim.fixed, True)
    assert (kept["quote"], kept["page"]) == (claim.quote, "14")


def test_a_verdict_says_that_its_rule_is_younger_than_its_records(tmp_path):
    SCENES["smo-1"].build(kept := Kept())
    kept.write(tmp_path)
    note = f"The rule was fixed on {ALL['smo-1'].fixed}, after the first results had been seen."
    assert note in judged("smo-1", tmp_path).notes
    (place,) = tmp_path.rglob("environment-*.json")
    content = json.loads(place.read_text())

    def notes(began, fixed):
        place.write_text(json.dumps({**content, "load": [{"at": began, "average": None}]}))
        claim = replace(ALL["smo-1"], fixed=fixed, after_records=False)
        return [one for one in judged("smo-1", tmp_path, {"smo-1": claim}).notes if "rule" in one]

    assert notes("2026-11-22T15:00:00+00:00", "2026-11-21") == []
    (younger,) = notes("2026-11-22T15:00:00+00:00", "2026-11-23")
    assert younger == "The rule was fixed on 2026-11-23; the oldest record is of 2026-11-22."
    place.write_text(json.dumps({**content, "load": 3}))
    assert judged("smo-1", tmp_path).notes[-1] == note


#: Claims of growth that is linear, or at most linear.
LINEAR_CLAIMS = {
    *("alsvm-4", "smo-5", "fosvm-2", "cpsp-5"),
    *("sgdlssvm-4", "sgdlssvm-7"),
}


#: Every rule that there was, with the date that it stands under: a line for each form.
KEPT_RULES = ROOT / "tests" / "papers" / "rules.csv"


def rule_problems(claims, kept):
    """Yield a sentence for each rule that differs from the kept one of its date, or is not kept."""
    hashes = {(row["claim"], row["fixed"]): row["hash"] for row in kept}
    for claim in claims:
        before = hashes.get((claim.id, claim.fixed))
        line = f"{claim.id},{claim.fixed},{claim.rule_hash}"
        if before is None:
            yield f"{claim.id}: its rule is not kept; append {line} to {KEPT_RULES.name}"
        elif before != claim.rule_hash:
            yield (
                f"{claim.id}: statement, rule, uncertainty or limits changed and the date "
                f"{claim.fixed} did not; give it today's, and append it to {KEPT_RULES.name}"
            )


def kept_rules():
    with KEPT_RULES.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_changed_rule_has_a_new_date():
    kept = kept_rules()
    assert list(rule_problems(ALL.values(), kept)) == []
    assert len({(row["claim"], row["fixed"]) for row in kept}) == len(kept)
    newest = {row["claim"]: row["fixed"] for row in sorted(kept, key=lambda row: row["fixed"])}
    assert newest == {claim.id: claim.fixed for claim in ALL.values()}
    claim = ALL["smo-1"]
    (said,) = rule_problems([replace(claim, limits={**claim.limits, "gap": 0.5})], kept)
    assert said.startswith("smo-1: statement, rule, uncertainty or limits changed and the date ")
    (said,) = rule_problems([replace(claim, fixed="2099-01-01")], kept)
    assert f"append smo-1,2099-01-01,{claim.rule_hash} to rules.csv" in said


def test_linear_is_one_window_everywhere():
    assert LINEAR_WINDOW == {"linear_low": 0.8, "linear_high": 1.2}
    having = {name for name, claim in ALL.items() if LINEAR_WINDOW.keys() & claim.limits.keys()}
    assert having == LINEAR_CLAIMS
    for name in having:
        own = ALL[name].limits
        assert {
            key: own[key] for key in LINEAR_WINDOW if key in own
        }.items() <= LINEAR_WINDOW.items()
        # No file has numbers of its own for it.
        assert not LINEAR_WINDOW.keys() & given()[name].get("limits", {}).keys()
    page = " ".join((ROOT / "docs" / "claims.md").read_text(encoding="utf-8").split())
    low, high = LINEAR_WINDOW.values()
    assert (
        f"if its 95 % interval overlaps {low} to {high} and is at most 0.4 wide, in every" in page
    )


def rows(paper, table, metric):
    return [
        one for one in published.numbers(paper)
        if (table is None or re.fullmatch(table, one.table)) and one.metric == metric
    ]  # fmt: skip


def exponents(*tables):
    return [
        one.value for table in tables for one in rows("smo", table, "scaling_exponent")
    ]  # fmt: skip


def averages(table, metric):
    return {
        (kind, solver): published.lookup("nlsgd", table, f"average-{kind}", metric, solver)
        for kind in ("small", "medium")
        for solver in ("mn-svm", "nn-isda", "nl-sgd")
    }


def largest_leads():
    found = []
    for pattern in ("(adult|web)_linear", "(adult|web)_rbf"):
        times = {(one.table, one.size, one.solver): one.value
                 for one in rows("smo", pattern, "train_time_s")}  # fmt: skip
        found.append(
            max(value / times[table, size, "smo"]
                for (table, size, solver), value in times.items() if solver == "chunking")
        )  # fmt: skip
    return found


def written(text):
    return [
        float(one.replace(",", "")) for one in re.findall(r"(?<![\w.])[-+]?\d[\d,.]*\d|\d", text)
    ]


def from_accuracies():
    found = averages("table2", "accuracy_pct")
    return [
        round(found[kind, "nl-sgd"] - found[kind, rival], 2)
        for kind in ("small", "medium")
        for rival in ("mn-svm", "nn-isda")
    ]


def from_times():
    found = averages("table3", "nested_cv_cpu_time_s")
    return [
        found[kind, rival] / found[kind, "nl-sgd"]
        for kind in ("small", "medium")
        for rival in ("mn-svm", "nn-isda")
    ]


#: The printed numbers of claims whose tables are in published/, made of these.
PRINTED = {
    "smo-1": lambda: exponents("adult_linear"),
    "smo-2": lambda: exponents("adult_rbf"),
    "smo-3": lambda: exponents("web_linear"),
    "smo-4": lambda: [*exponents("web_rbf"), 2, 6],
    "smo-5": lambda: exponents("separable_linear"),
    "smo-6": lambda: exponents("noise_linear", "noise_rbf"),
    "smo-9": largest_leads,
    "nlsgd-1": from_accuracies,
    "nlsgd-2": from_times,
    "srbo-2": lambda: [max(one.value for one in rows("srbo", "table[4-7]", "speedup"))],
    "srbo-4": lambda: [
        sum(one.value < 0.05 for one in rows("srbo", "table12", "wilcoxon_p")),
        len(rows("srbo", "table12", "wilcoxon_p")),
    ],
}


def wins(table, metric, first, second):
    found = [one for one in rows("srbo", table, metric) if one.solver in {first, second}]
    values = {(one.dataset, one.solver): one.value for one in found}
    names = {name for name, _ in values}
    return [sum(values[name, first] > values[name, second] for name in names), len(names)]


def speedups(table):
    return {one.dataset: one.value for one in rows("srbo", table, "speedup")}


def more_with_rbf():
    linear, rbf = speedups("table4"), speedups("table5")
    both = linear.keys() & rbf.keys()
    return [sum(rbf[name] > linear[name] for name in both), len(both)]


def screened():
    found = [50.0]
    for table in ("table4", "table5", "table6", "table7"):
        values = [one.value for one in rows("srbo", table, "screening_ratio_pct")]
        found += [sum(value > 50.0 for value in values), len(values)]
    return found


def accelerated():
    values = [one.value for one in rows("srbo", "table1[01]", "speedup")]
    return [sum(value > 1.0 for value in values), len(values)]


def dense_noise():
    times = {(one.size, one.solver): one.value
             for one in rows("smo", "noise_rbf_storage", "train_time_s")}  # fmt: skip
    return [times["500", "smo-dense"], times["500", "chunking-dense"], 500,
            times["1000", "smo-dense"], times["1000", "chunking-dense"], 1000]  # fmt: skip


def dense_separable():
    times = {(one.size, one.solver): one.value
             for one in rows("smo", "separable_linear_storage", "train_time_s")}  # fmt: skip
    return [
        number
        for size in ("1000", "20000")
        for number in (times[size, "smo-dense"], times[size, "chunking-dense"], float(size))
    ]


PRINTED |= {
    "smo-10": dense_noise,
    "smo-13": dense_separable,
    "smo-11": lambda: [
        end(one.value for one in rows("smo", None, "scaling_exponent") if one.solver == solver)
        for solver in ("smo", "chunking")
        for end in (min, max)
    ],
    "nlsgd-5": lambda: [
        published.lookup("nlsgd", "table2", "eukaryotic", "accuracy_pct", solver)
        for solver in ("nl-sgd", "mn-svm", "nn-isda")
    ],
    "srbo-6": lambda: [
        *wins("table6", "auc_pct", "oc-svm", "kde"), *wins("table7", "auc_pct", "oc-svm", "kde")
    ],
    "srbo-7": screened,
    "srbo-8": accelerated,
    "srbo-9": more_with_rbf,
}  # fmt: skip
#: Numbers that a paper has in its text alone.
IN_TEXT = {"smo-7", "alsvm-7", "alsvm-9", "sgdlssvm-3", "fosvm-3"}


def test_every_printed_number_is_held_to_the_tables_or_stands_in_the_text_alone():
    with_numbers = {name for name, claim in ALL.items() if re.search(r"\d", claim.printed)}
    assert with_numbers == set(PRINTED) | IN_TEXT


@pytest.mark.parametrize("name", PRINTED)
def test_printed_values_are_those_of_the_published_tables(name):
    assert written(ALL[name].printed) == pytest.approx(list(PRINTED[name]()), rel=0.03)


def test_the_statement_of_average_accuracies_names_each_with_its_solver():
    found = averages("table2", "accuracy_pct")
    said = ALL["nlsgd-1"].statement
    for kind in ("small", "medium"):
        assert found[kind, "mn-svm"] > found[kind, "nn-isda"]
        place = [said.index(f"{found[kind, one]:.2f}") for one in ("nl-sgd", "mn-svm", "nn-isda")]
        assert place == sorted(place)
    assert ALL["nlsgd-2"].limits["mn_svm_small"] == 8.0


@pytest.mark.parametrize("n_wrong", [0, 1])
def test_a_rule_at_full_size_counts_where_the_other_rule_was_not_run(n_wrong, tmp_path):
    """Another profile lends such a set, which hides no wrong case of the full one."""

    def full(cell):
        if cell["dataset"] == "banknote" and cell["solver"] == "printed":
            cell["status"], cell["metrics"] = "no record", {}
        elif cell["dataset"] == "banknote":
            cell["metrics"]["n_wrong"] = n_wrong

    for name, edit in (("paper", full), ("thinned", lambda cell: cell.update(profile="thinned"))):
        SCENES["srbo-1"].build(kept := Kept())
        kept.edit(edit)
        kept.write(tmp_path / name)
    parts = {part.what: part for part in judged("srbo-1", tmp_path).parts}
    corrected = parts["bounds corrected, profile paper"]
    assert corrected.holds is (n_wrong == 0)
    assert "of 400 cases on 2 sets" in corrected.measured
    assert "of 200 cases on 1 sets" in parts["the rule as printed, profile paper"].measured
    assert "the rule as printed, profile thinned" in parts
    assert "bounds corrected, profile thinned" not in parts  # all of it was at full size


def test_that_no_set_is_so_sparse_is_open_while_sets_were_not_run(tmp_path):
    def left(cell):
        SCENES["cpsp-11"].edit(cell)
        if cell["dataset"] == "ijcnn1":
            cell["status"], cell["metrics"] = "failed", {}

    (part,) = changed("cpsp-11", tmp_path, left).parts
    assert part.holds is None
    assert "of 4 sets" in part.measured


@pytest.mark.parametrize("solver", ["smo-dense", "chunking-dense"])
def test_a_lead_at_every_size_is_open_where_a_planned_size_was_not_run(solver, tmp_path):
    def left(status):
        def edit(cell):
            if cell["solver"] == solver and cell["dimensions"]["rows"] == 5000:
                cell |= {"status": status, "metrics": {}, "reason": "a budget"}

        return edit

    (part,) = changed("smo-13", tmp_path / "budget", left("not run")).parts
    assert part.holds is None
    assert part.measured.endswith("at 2 of 2 sizes; no result of separable (5,000 rows)")
    # What ends at its time limit is slower than what does not.
    (part,) = changed("smo-13", tmp_path / "limit", left("timeout")).parts
    assert part.holds is (True if solver == "smo-dense" else None)


def test_a_majority_is_open_while_open_answers_could_turn_it():
    assert answer_most([True, True, False]).holds is True
    assert answer_most([True, False]).holds is False  # no more than half
    assert answer_most([True, True, None, False]).holds is None
    assert answer_most([True, True], 5).holds is None
    assert answer_most([True] * 3, 5).holds is True
    assert answer_most([False] * 3, 5).holds is False
    assert answer_most([False] * 2, 5).holds is None
    assert answer_most([True] * 3 + [False], 4, 0.75).holds is False


def test_a_method_that_leads_at_one_size_keeps_cpsp_from_dominating(tmp_path):
    def lead(cell):
        if (cell["solver"], cell["dimensions"].get("solver.n_basis")) == ("lasvm", 50):
            cell["metrics"]["accuracy_pct"] += 6.0

    found = changed("cpsp-2", tmp_path, lead)
    answers = {part.what: part.holds for part in found.parts}
    assert {what for what, holds in answers.items() if holds is not True} == {
        what for what in answers if what.endswith("beside lasvm")
    }  # fmt: skip
    assert answers["a9a, beside lasvm"] is answers["ijcnn1, beside lasvm"] is False
    (part,) = (one for one in found.parts if one.what == "a9a, beside lasvm")
    assert "−2.00 points at k = 50 at worst, +" in part.measured  # ahead by the area


def test_ocr0_where_all_do_well_is_no_part_of_what_cpsp_claims_of_sampled_vectors(tmp_path):
    def as_good(cell):
        if cell["dataset"] == "mnist-0-vs-rest":
            cell["metrics"]["accuracy_pct"] = 95.0

    found = changed("cpsp-1", tmp_path, as_good)
    assert not [one for one in found.parts if one.holds is not True]
    assert "mnist-0-vs-rest, beside the exact" in {part.what for part in found.parts}
    # Three of five sets are most; two are not known to be.
    two = changed("cpsp-1", tmp_path / "two", added("accuracy_pct", 0.0))
    assert {one.holds for one in two.parts if one.what.startswith("most sets")} == {True}

    def only_two(cell):
        if cell["dataset"].startswith("mnist"):
            cell["status"], cell["metrics"] = "failed", {}

    few = changed("cpsp-1", tmp_path / "few", only_two)
    assert {one.holds for one in few.parts if one.what.startswith("most sets")} == {None}


def test_iterations_as_a_root_of_precision_are_no_logarithm(tmp_path):
    def root(cell):
        cell["metrics"]["n_iter"] = round(100 / math.sqrt(cell["dimensions"]["solver.tol"]))

    # A line through 100·10^(k/2), k = 1 … 6, has an R² of 0.66; through their first three, 0.92.
    found = changed("sgdlssvm-5", tmp_path / "root", root)
    assert {part.holds for part in found.parts} == {False}

    def offset(cell):
        cell["metrics"]["n_iter"] += 50_000

    found = changed("sgdlssvm-5", tmp_path / "offset", offset)
    assert {part.holds for part in found.parts} == {True}


@pytest.mark.parametrize(
    ("time", "holds"),
    [
        (lambda n: 20.0 + 2e-3 * n, True),  # a part that does not depend on N
        (lambda n: 20.0 * wobble(n), False),  # flat
        (lambda n: 60.0 - 1e-3 * n, False),  # falling
        (lambda n: 1e-9 * n**2.5, False),
    ],
)
def test_a_time_on_a_rising_line_is_linear_and_neither_a_flat_one_nor_a_power(
    time, holds, tmp_path
):
    def edit(cell):
        if cell["block"] == "examples":
            n = cell["metrics"]["n_train"]
            cell["metrics"]["cpu_time_s"] = time(n)

    parts = changed("cpsp-5", tmp_path, edit).parts
    assert {part.holds for part in parts if "in k" not in part.what} == {holds}


def test_the_printed_p_values_of_table_12_stand_beside_ours(tmp_path):
    SCENES["srbo-4"].build(kept := Kept())
    (most,) = (one for one in judged("srbo-4", kept.write(tmp_path)).parts if "most" in one.what)
    shown = re.findall(r"([\w, -]+) \(printed ([\d.]+)\): p ", most.measured)
    assert sorted(float(p) for _, p in shown) == sorted(
        one.value for one in rows("srbo", "table12", "wilcoxon_p")
    )
    assert ("table4", "0.0402") in {(what.strip(), p) for what, p in shown}
    assert ("table8, rbf, dcdm", "0.0313") in {(what.strip(), p) for what, p in shown}


@pytest.mark.parametrize(("settled", "holds"), [(60, True), (40, False)])
def test_the_graphs_of_figure_4_are_part_of_what_screening_settles(settled, holds, tmp_path):
    kept = Kept()
    for block, sets in (("rbf", ARTIFICIAL), ("linear", ARTIFICIAL[:3])):
        for dataset in sets:
            for place, nu in enumerate((0.46, 0.48, 0.5)):
                done = 1.5 * settled if place else 0  # the first one is solved unscreened
                counts = {"left": 100 - done, "screened_zero": done, "screened_one": 0}
                kept.add("srbo_fig4", block, dataset, "srbo-nu-svm", {"objective": 1.0},
                         counters=counts, dims={"solver.nu": nu}, protocol="path")  # fmt: skip
    (part,) = judged("srbo-7", kept.write(tmp_path)).parts
    assert part.holds is holds
    assert (
        part.measured == f"above 50 % in {9 * holds} of 9 graphs, {settled:.1f} to {settled:.1f} %"
    )
    assert part.cut.startswith("3 of 986 values of nu")


def test_sentences_without_a_claim_are_of_papers_and_each_says_why():
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    lines = [
        [cell.strip() for cell in line.strip("| \n").split(" | ")]
        for line in page.partition("## Sentences without a claim")[2].splitlines()
        if line.startswith("|") and not line.startswith(("| paper", "|---"))
    ]
    assert {line[0] for line in lines} <= set(papers())
    assert len(lines) > 10
    assert all(len(line) == 3 and line[1].startswith('"') and line[2] for line in lines)
    named = {name for line in lines for name in re.findall(r"[a-z]+-\d+", line[2])}
    assert named <= set(ALL)


#: Limits that are numbers the paper printed, read by a check beside its rule.
PRINTED_LIMITS = {
    "nlsgd-2": {"mn_svm_small", "nn_isda_small", "mn_svm_medium", "nn_isda_medium"},
    "smo-7": {"separable_linear", "noise_linear", "noise_rbf"},
}


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_limit_is_named_in_its_rule(name):
    claim = given()[name]
    named = set(re.findall(r"\{(\w+)\}", claim["rule"])) | PRINTED_LIMITS.get(name, set())
    assert set(claim.get("limits", {})) == named - LINEAR_WINDOW.keys()
    assert set(ALL[name].limits) == named
    assert "{" not in ALL[name].rule


def test_a_rule_that_names_an_unknown_limit_is_refused(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text(
        '[x-1]\nwhere = "t"\nquote = "q"\nstatement = "s"\nuncertainty = "u"\n'
        'fixed = "2026-11-23"\nafter_records = true\nrule = "at most {point} points"\n'
        "limits = { points = 1.0 }\n"
    )
    with pytest.raises(ConfigError, match=r"unknown limit .point..*points"):
        read_claims(path, metrics=(), paper="x")
