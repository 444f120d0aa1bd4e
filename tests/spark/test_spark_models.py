"""Spark's solvers against those in memory: models, passes, partitions, folds, bad input."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import framed, need_spark, problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import dump_svmlight_file

need_spark()

from svmbench.base.errors import DataError, SvmbenchError  # noqa: E402
from svmbench.baselines.liblinear import LiblinearL2  # noqa: E402
from svmbench.core.linear import least_squares  # noqa: E402
from svmbench.core.linear.alsvm_batch import ALSVMBatch  # noqa: E402
from svmbench.spark import ALSVMSpark, L2SVMSpark  # noqa: E402
from svmbench.spark.rows import folds_by_content  # noqa: E402
from svmbench.spark.text import LineError, located  # noqa: E402

GRID = [2.0**e for e in range(-10, 11, 2)]


def counted(frame):
    """Return a frame whose rows count themselves whenever they are read, and the count."""
    count = frame.sparkSession.sparkContext.accumulator(0)

    def tick(batches):
        for batch in batches:
            count.add(batch.num_rows)
            yield batch

    return frame.mapInArrow(tick, frame.schema), count


def same(model, oracle, tolerance):
    scale = np.max(np.abs(oracle.coef_))
    assert_allclose(model.coef_, oracle.coef_, rtol=0, atol=tolerance * scale)
    assert_allclose(model.intercept_, oracle.intercept_, rtol=0, atol=tolerance * scale)


def every(search):
    return [model for row in (*search.models, search.all_rows) for model in row]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_whole_grid_with_all_folds_is_one_pass_and_the_models_of_memory(spark, sparse):
    X, y = problem()
    folds = np.arange(len(y)) % 5
    frame, count = counted(framed(spark, X, y, sparse=sparse, fold=folds).repartition(3))
    found = ALSVMSpark(intercept_scaling=2.0).search(frame, GRID, 5, fold="fold")
    assert count.value == len(y)
    assert found.counters == {"passes": 1, "visits": len(y)}
    signs = 2.0 * y - 1.0
    for fold in range(5):
        train, test = folds != fold, folds == fold
        for c in (0, 5, 10):
            oracle = ALSVMBatch(GRID[c], intercept_scaling=2.0).fit(X[train], y[train])
            model = found.models[fold][c]
            same(model, oracle, 1e-10)
            assert_allclose(model.objective_, oracle.objective_, rtol=1e-10)
            losses = (1.0 - signs[test] * oracle.decision_function(X[test])) ** 2
            assert_allclose(found.held_out_loss[fold, c], np.mean(losses), rtol=1e-9)
    whole = ALSVMBatch(GRID[4], intercept_scaling=2.0).fit(X, y)
    same(found.all_rows[4], whole, 1e-10)
    assert_array_equal(found.all_rows[4].predict(X), whole.predict(X))
    least = np.argmin(found.held_out_loss.mean(axis=0))
    assert found.best is found.all_rows[least]


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_partitions_don_t_change_the_models(spark, offset):
    X, y = problem(offset=offset)
    frame = framed(spark, X, y)
    one, *others = [
        ALSVMSpark().search(frame.repartition(k), [0.01, 10.0], 3, seed=1) for k in (1, 4, 13)
    ]
    oracle = ALSVMBatch(10.0).fit(X, y)
    for other in others:
        for ours, theirs in zip(every(other), every(one), strict=True):
            same(ours, theirs, 1e-12)
    assert_allclose(one.all_rows[1].decision_function(X), oracle.decision_function(X), atol=1e-10)
    rest = folds_by_content(X, 3, seed=1) != 0
    trained = ALSVMBatch(10.0).fit(X[rest], y[rest])
    assert_allclose(one.models[0][1].decision_function(X), trained.decision_function(X), atol=1e-10)


def test_empty_partitions_and_no_constant_feature(spark):
    X, y = problem(60)
    frame = framed(spark, X, y).repartition(4, "label")
    assert frame.rdd.glom().map(len).collect().count(0) >= 2
    same(
        ALSVMSpark(fit_intercept=False).fit(frame), ALSVMBatch(fit_intercept=False).fit(X, y), 1e-12
    )
    oracle = LiblinearL2(tol=1e-9, fit_intercept=False).fit(X, y)
    model = L2SVMSpark(tol=1e-4, fit_intercept=False).fit(frame)
    assert_allclose(model.objective_, oracle.objective_, rtol=1e-6)


def test_files_and_columns_of_numbers_give_the_same_model(spark, tmp_path: Path):
    X, y = problem(80)
    oracle = ALSVMBatch().fit(X, y)
    text = tmp_path / "a b.svm"
    dump_svmlight_file(X, y, str(text), zero_based=False)
    assert_allclose(ALSVMSpark().fit(text).coef_, oracle.coef_, rtol=1e-10)
    table = spark.createDataFrame(
        [(*map(float, row), int(label)) for row, label in zip(X, y, strict=True)],
        ["a", "b", "c", "d", "e", "class"],
    )
    table.write.parquet(str(tmp_path / "table"))
    model = ALSVMSpark(features=list("abcde"), label="class").fit(str(tmp_path / "table"))
    same(model, oracle, 1e-12)
    labels = model.transform(table, "said").toPandas()
    assert list(labels.columns) == ["a", "b", "c", "d", "e", "class", "said"]
    assert_array_equal(labels["said"], model.predict(labels[list("abcde")].to_numpy()))


def test_arrays_take_the_way_of_every_solver(spark):
    X, y = problem(90)
    labels = np.where(y == 1, "yes", "no")
    splits = [(np.flatnonzero(np.arange(90) % 3 != f), np.arange(f, 90, 3)) for f in range(3)]
    for inputs in (X, sp.csr_array(X)):
        model, oracle = ALSVMSpark(C=0.5), ALSVMBatch(C=0.5).fit(inputs, labels)
        same(model.fit(inputs, labels), oracle, 1e-12)
        assert_allclose(model.objective_, oracle.objective_, rtol=1e-12)
        assert_array_equal(model.predict(inputs), oracle.predict(inputs))
    ours, theirs = (
        list(model.path(model.prepare(X, labels), None, "C", [0.1, 3.0], splits))
        for model in (ALSVMSpark(), ALSVMBatch())
    )
    for one, two in zip(ours, theirs, strict=True):
        same(one.solution, two.solution, 1e-12)
    assert [point.statistics["passes"] for point in ours] == [1, 0, 0, 0, 0, 0]


def test_a_second_pass_where_the_sums_are_not_enough(spark):
    draw = np.random.default_rng(5)
    X = draw.normal(size=(80, 3))
    X[:, 2] = X[:, 1] + 1e-7 * draw.normal(size=80)
    X *= 1e3
    y = (X[:, 0] > 200.0 * draw.normal(size=80)).astype(int)
    oracle = ALSVMBatch(C=1e6).fit(X, y)
    frame, count = counted(framed(spark, X, y).repartition(3))
    model = ALSVMSpark(C=1e6).fit(frame)
    assert model.stop_reason_ == oracle.stop_reason_ == least_squares.BY_SAMPLES
    assert count.value == model.counters_["visits"] == 160
    assert model.counters_["passes"] == 2
    assert_allclose(model.decision_function(X), oracle.decision_function(X), rtol=0, atol=1e-7)


def test_more_features_than_sums_are_formed_of_take_conjugate_gradients(spark):
    X, y = problem(200, 40)
    folds = np.arange(len(y)) % 3
    frame = framed(spark, X, y, sparse=True, fold=folds).repartition(2)
    sums = ALSVMSpark().search(frame, [0.01, 1.0], 3, fold="fold")
    with pytest.warns(UserWarning, match=r"the sums of 40 features and 3 folds take 0 MiB, more"):
        steps = ALSVMSpark(max_sums_mb=0.01).search(frame, [0.01, 1.0], 3, fold="fold")
    for model, oracle in zip(every(steps), every(sums), strict=True):
        assert model.stop_reason_ == "conjugate gradients"
        same(model, oracle, 1e-8)
        assert_allclose(model.objective_, oracle.objective_, rtol=1e-9)
    most = max(model.counters_["conjugate_gradient_steps"] for model in steps.all_rows)
    assert 5 < most <= steps.counters["passes"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # exactly what the limit allows: sums
        limit = 8 * 41**2 / 2**20
        assert ALSVMSpark(max_sums_mb=limit).fit(frame).counters_["passes"] == 1


@pytest.mark.parametrize(("sparse", "C"), [(False, 1.0), (True, 0.1)])
def test_the_squared_hinge_against_liblinear(spark, sparse, C):
    X, y = problem(250, 4)
    frame, count = counted(framed(spark, X, y, sparse=sparse).repartition(2))
    model = L2SVMSpark(C=C, tol=1e-7).fit(frame)
    oracle = LiblinearL2(C=C, tol=1e-10).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert_allclose(model.objective_, oracle.objective_, rtol=1e-10)
    assert_allclose(model.coef_, oracle.coef_, rtol=0, atol=1e-5)
    w = np.append(model.coef_[0], model.intercept_[0])
    Z, signs = np.column_stack([X, np.ones(len(X))]), 2.0 * y - 1.0
    gradient = w - 2.0 * C * Z.T @ (signs * np.maximum(0.0, 1.0 - signs * (Z @ w)))
    assert np.linalg.norm(gradient) <= 1e-7 * 2.0 * C * np.linalg.norm(Z.T @ signs)
    assert_allclose(model.gradient_norm_, np.linalg.norm(gradient), atol=1e-9)
    work = model.counters_
    assert work["passes"] == 2 + work["steps"] + work["conjugate_gradient_steps"]
    assert count.value == len(y)  # the rows are read once, and stay with the executors
    assert_array_equal(model.predict(X), oracle.predict(X))


def refused(spark, folder: Path):
    """Yield data, what to do with them, and what is said."""
    X, y = problem(30)
    good = framed(spark, X, y)
    three = framed(spark, X, np.arange(30) % 3).repartitionByRange(3, "label")
    hole = X.copy()
    hole[7, 2] = np.nan
    yield three, ALSVMSpark().fit, "third beside"
    yield three, L2SVMSpark().fit, "there are more than two labels, for example 0, 1, 2"
    yield framed(spark, hole, y), L2SVMSpark().fit, "there are NaN or infinite values"
    yield framed(spark, hole, y), ALSVMSpark().fit, "there are NaN or infinite values"
    yield good.where("label = 1"), ALSVMSpark().fit, "the data has one class only"
    yield good.where("label = 1"), L2SVMSpark().fit, "the data has one class only: 1"
    yield good.where("label = 7"), ALSVMSpark().fit, "there are no rows"
    yield good.where("label = 7"), L2SVMSpark().fit, "there are no rows"
    yield good, ALSVMSpark(n_features=4).fit, "there is a feature 5, beyond the last, 4"
    yield good, L2SVMSpark(n_features=4).fit, "the index 5 is above the last feature, 4"
    yield good, ALSVMSpark(label="y").fit, "there is no column 'y'; there are features, label"
    yield good, ALSVMSpark(features="label").fit, "has the type double; it must hold vectors"
    yield [1], lambda data: ALSVMSpark().search(data, [1.0]), "must be a Spark DataFrame or a path"
    yield str(folder / "none.svm"), ALSVMSpark().fit, "Spark can't read the data: "

    def three_folds(data):
        return ALSVMSpark().search(data, [1.0], 3, fold="fold")

    two_of_three = 2 * (np.arange(30) % 2)
    yield framed(spark, X, y, fold=two_of_three), three_folds, "fold 1 of 0 … 2 has no rows"
    lonely = np.where(y == 1, 0, 1 + np.arange(30) % 2)
    yield framed(spark, X, y, fold=lonely), three_folds, "training part of fold 0 has one class"
    wrong = folder / "wrong.svm"
    wrong.write_text("1 1:2\n-1 1:two\n")
    place = f"{wrong}, line 2, column 4: the value 'two' is not a finite number"
    yield wrong, ALSVMSpark().fit, place
    yield wrong, L2SVMSpark().fit, place
    wide = folder / "wide.svm"
    wide.write_text("1 1:2\n\n1 1:3\n-1 2:1 7:3\n")
    for solver in (ALSVMSpark(n_features=5), L2SVMSpark(n_features=5)):
        yield wide, solver.fit, f"{wide}, line 4: the index 7 is above the last feature, 5"


def test_what_can_t_be_used_is_one_sentence(spark, tmp_path: Path):
    for data, act, sentence in refused(spark, tmp_path):
        with pytest.raises((SvmbenchError, ValueError)) as caught:
            act(data)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "Traceback" not in str(caught.value)


def test_a_line_that_can_t_be_read_is_named_wherever_it_lies(spark, tmp_path: Path):
    """In any partition and batch, of any file of a folder, whatever the names."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    folder = tmp_path / "50% of all rows"
    folder.mkdir()
    good = [f"{1 - 2 * (i % 2)} 1:{i} 3:{i % 7}" for i in range(1, 1001)]
    for name, number in (("a.svm", 0), ("b [c].svm", 777)):
        lines = [*good]
        if number:
            lines[number - 1] = "1 1:5 3:x"
        (folder / name).write_text("\n".join(lines) + "\n")
    try:
        assert spark.read.text(str(folder)).rdd.getNumPartitions() > 3
        with pytest.raises(DataError) as caught:
            ALSVMSpark().fit(folder)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    said = f"{folder}/b [c].svm, line 777, column 7: the value 'x' is not a finite number"
    assert str(caught.value) == said


def test_a_line_that_is_gone_is_told_by_its_beginning(spark, tmp_path: Path):
    path = tmp_path / "a,b.svm"  # of which Spark can't be asked the numbers
    path.write_text("1 1:2\n-1 1:two\n")
    beginning = f"{path}, the line '-1 1:two', column 4: the value 'two' is not a finite number"
    with pytest.raises(DataError) as caught:
        ALSVMSpark().fit(path)
    assert str(caught.value) == beginning
    path.unlink()
    assert located(LineError(str(path), "-1 1:two", ", column 4")).reason == ", column 4"


def test_parameters_out_of_range():
    with pytest.raises(ValueError, match="C must be a positive finite number"):
        ALSVMSpark(C=0.0).fit("none.svm")
    with pytest.raises(ValueError, match="max_sums_mb must be a positive finite number"):
        ALSVMSpark(max_sums_mb=0).fit("none.svm")
    with pytest.raises(ValueError, match="a search needs 2 folds or more"):
        ALSVMSpark().search("none.svm", [1.0], 1)
    with pytest.raises(DataError, match="LIBSVM text has no column of folds"):
        ALSVMSpark().search("none.svm", [1.0], 2, fold="fold")
