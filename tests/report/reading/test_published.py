"""The alias table: every printed name is reachable, and only under the right name."""

import pytest

from svmbench.base.paper_folders import papers
from svmbench.report.reading.published import PrintedNumber, has_table, lookup, numbers

OURS = {
    "covertype": "covtype",
    "german": "german.numer",
    "liblinear": "liblinear-l1",
}


@pytest.mark.parametrize("row", numbers("alsvm"), ids=lambda r: f"{r.table}-{r.dataset}-{r.solver}")
def test_every_number_of_alsvm_is_found_under_the_suites_names(row: PrintedNumber):
    found = lookup(
        "alsvm",
        row.table,
        OURS.get(row.dataset, row.dataset),
        row.metric,
        OURS.get(row.solver, row.solver),
        kernel="linear",
    )
    assert found == row.value


def test_known_numbers():
    assert lookup("alsvm", "table2", "covtype", "train_time_s", "liblinear-l1") == 1592
    assert lookup("sgdlssvm", "table2", "a9a", "accuracy_pct", "cpsp", "rbf") is not None
    assert lookup("smo", "adult_linear", "a9a[:6414]", "train_time_s", "smo") == lookup(
        "smo", "adult_linear", "a5a", "train_time_s", "smo"
    )
    assert (
        lookup("smo", "adult_linear", "a9a", "train_time_s", "smo", dimensions={"rows": 1605})
        == 0.4
    )
    # The file has 32,561 rows, the paper counts 32,562.
    whole = lookup("smo", "adult_linear", "a9a", "train_time_s", "smo", dimensions={"rows": 32561})
    assert whole == lookup("smo", "adult_linear", "a9a", "train_time_s", "smo") == 163.6


def test_the_same_rows_before_a_scaling_are_the_papers():
    assert lookup("alsvm", "table2", "shuttle-1-2", "train_time_s", "alsvm") == 0.7
    assert lookup("alsvm", "table1", "shuttle-1-2", "n_samples", None) == 34145


@pytest.mark.parametrize("dataset", ["cod-rna-train", "poker-train-0-2"])
@pytest.mark.parametrize("metric", ["train_time_s", "accuracy_pct"])
def test_a_stand_in_has_no_printed_number(dataset, metric):
    for paper in ("alsvm", "sgdlssvm"):
        for solver in ("alsvm", "sgd-lssvm"):
            assert lookup(paper, "table2", dataset, metric, solver) is None


def test_a_word_that_the_paper_uses_for_something_else_finds_nothing():
    # The suite's svm-perf is linear, its adult the raw UCI file, its cpu_time_s that of one fit.
    assert lookup("sgdlssvm", "table2", "a9a", "accuracy_pct", "svm-perf") is None
    assert (
        lookup("smo", "adult_linear", "adult", "train_time_s", "smo", dimensions={"rows": 1605})
        is None
    )
    assert lookup("nlsgd", "table3", "iris", "cpu_time_s", "nl-sgd") is None
    assert lookup("nlsgd", "table3", "iris", "nested_cv_cpu_time_s", "nl-sgd") is not None


def test_an_ambiguous_kernel_finds_nothing():
    assert lookup("srbo", "table8", "adult", "accuracy_pct", "nu-svm-dcdm") is None
    assert lookup("srbo", "table8", "adult", "accuracy_pct", "nu-svm-dcdm", "rbf") is not None
    assert lookup("alsvm", "table2", "a9a", "accuracy_pct", "alsvm", kernel="rbf") is None


def test_papers_without_printed_tables():
    assert numbers("cpsp") == ()
    assert lookup("cpsp", "table1", "a9a", "accuracy_pct", "cpsp") is None
    assert has_table("alsvm", "table2")
    assert not has_table("alsvm", "table9")


def test_the_alias_table_names_only_what_is_printed():
    for paper, one in papers().items():
        if not numbers(paper):
            continue
        aliases = one.printed
        datasets = {row.dataset for row in numbers(paper)}
        solvers = {row.solver for row in numbers(paper)}
        metrics = {(row.table, row.metric) for row in numbers(paper)}
        sizes = {(row.dataset, row.size) for row in numbers(paper)}
        assert set(aliases.datasets) <= datasets
        assert set(aliases.solvers) <= solvers
        assert {(table, name) for table in aliases.metrics for name in aliases.metrics[table]} <= (
            metrics
        )
        assert {(name, str(size)) for name, size in aliases.subsets.values()} <= sizes


def test_a_swept_parameter_is_a_printed_setting() -> None:
    where = ("nlsgd", "fig6-10", "iris", "accuracy_pct", "nl-sgd", "rbf")
    swept = {"solver.epochs": 2, "solver.output": "last-50"}
    assert lookup(*where, dimensions=swept) == 94.67
    assert lookup(*where, dimensions={**swept, "solver.output": "last-25"}) == 96.0
    assert lookup(*where, dimensions={**swept, "solver.output": "all"}) is None
    assert lookup(*where, dimensions={"solver.epochs": 2}) is None
    # What is printed of a solver as a whole is not printed of each of its settings.
    whole = ("smo", "adult_linear", "a9a", "train_time_s", "smo", "linear")
    assert lookup(*whole) == 163.6
    assert lookup(*whole, dimensions={"solver.tol": 0.1}) is None
