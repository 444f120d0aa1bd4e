"""What an executor does with batches of Arrow: no Java is needed here."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import tracemalloc

import beyond
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

beyond.need(package="pyarrow", install="pip install '.[spark]'")

import pyarrow as pa  # noqa: E402

from svmbench.core.linear.statistics import Statistics  # noqa: E402
from svmbench.spark.frames import Predict  # noqa: E402
from svmbench.spark.l2svm import PassArguments, curvature, losses  # noqa: E402
from svmbench.spark.packed import Pack, PackedBlock, PartitionWork  # noqa: E402
from svmbench.spark.rows import (  # noqa: E402
    FoldAssignment,
    VectorRows,
    folds_by_content,
    matrix,
)
from svmbench.spark.text import TextRows  # noqa: E402
from svmbench.spark.tree_aggregate import (  # noqa: E402
    Folded,
    Merge,
    Refusal,
    leave_out_of_collections,
)


class Counter:
    value = 0

    def add(self, number):
        self.value += number


def vectors(rows):
    """Return vectors as Spark lays them out: lists dense, (size, indices, values) sparse ones."""
    dense = [isinstance(row, list) for row in rows]
    return pa.StructArray.from_arrays(
        [
            pa.array([int(each) for each in dense], pa.int8()),
            pa.array(
                [None if each else r[0] for each, r in zip(dense, rows, strict=True)], pa.int32()
            ),
            pa.array(
                [None if each else r[1] for each, r in zip(dense, rows, strict=True)],
                pa.list_(pa.int32()),
            ),
            pa.array(
                [r if each else r[2] for each, r in zip(dense, rows, strict=True)],
                pa.list_(pa.float64()),
            ),
        ],
        ["type", "size", "indices", "values"],
    )


def batch(features, labels, folds=None):
    arrays = [features, pa.array(labels, pa.float64())]
    names = ["features", "label"]
    if folds is not None:
        arrays.append(pa.array(folds, pa.float64()))
        names.append("fold")
    return pa.RecordBatch.from_arrays(arrays, names)


def test_dense_vectors_are_a_view_of_their_values():
    column = vectors([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    X = matrix(column)
    assert_array_equal(X, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    values = column.field(3).values.to_numpy()
    assert np.shares_memory(X, values)
    assert_array_equal(matrix(column.slice(1)), [[4.0, 5.0, 6.0]])


def test_sparse_vectors_are_csr_and_dense_ones_among_them_too():
    column = vectors([(3, [0, 2], [1.0, 3.0]), [0.0, 5.0, 0.0], (3, [], [])])
    X = matrix(column)
    assert sp.issparse(X)
    assert_array_equal(X.toarray(), [[1.0, 0.0, 3.0], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0]])
    assert_array_equal(matrix(column.slice(1)).toarray(), X.toarray()[1:])


def test_lists_of_numbers_are_rows():
    assert_array_equal(matrix(pa.array([[1, 2], [3, 4]])), [[1.0, 2.0], [3.0, 4.0]])
    assert np.isnan(matrix(pa.array([[1.0, None]]))[0, 1])


def test_a_partition_of_sparse_rows_never_is_a_dense_matrix():
    """2,000 rows of 1,500 features, of which each has two, would be 24 MB."""
    n, d = 2000, 1500
    rows = [
        (d, [i % d, d - 1] if i % d < d - 1 else [d - 1], [1.0, 2.0][: 1 + (i % d < d - 1)])
        for i in range(n)
    ]
    read = VectorRows()
    one = batch(vectors(rows), np.arange(n) % 2)
    tracemalloc.start()
    X, y, _ = read(one)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.nnz <= 2 * n
    assert peak < 1e6
    A = Statistics(1).update(X, y).sums(0.0).A
    assert A[d - 1, d - 1] == pytest.approx(4.0 * (n - 1) + 1.0)


def test_text_is_read_in_batches_of_lines():
    lines = pa.RecordBatch.from_arrays([pa.array(["1 1:2 3:4", "", "-1 2:5 # a word"])], ["value"])
    X, y, folds = TextRows("a.svm")(lines)
    assert_array_equal(X.toarray(), [[2.0, 0.0, 4.0], [0.0, 5.0, 0.0]])
    assert_array_equal(y, [1.0, -1.0])
    assert folds is None
    X, y, _ = TextRows("a.svm")(lines.slice(1, 1))
    assert X.shape[0] == len(y) == 0


def test_sparse_batches_are_added_together_and_widths_may_differ():
    lines = ["1 1:2", "-1 3:4", "", "1 5:1 6:1", "-1 2:3"]
    batches = [pa.RecordBatch.from_arrays([pa.array([line])], ["value"]) for line in lines]
    added, visits = [], Counter()

    def add(found, block):
        added.append(len(block[1]))
        return found.update(*block)

    partition = Folded(TextRows("a", FoldAssignment(2)), lambda: Statistics(2), add, visits)
    (result,) = partition(iter(batches))
    found = pickle.loads(result.column(0)[0].as_py())
    X, y, folds = TextRows("a", FoldAssignment(2))(
        pa.RecordBatch.from_arrays([pa.array(lines)], ["value"])
    )
    whole = Statistics(2).update(X, y, folds)
    assert_array_equal(found.sums(1.0).A, whole.sums(1.0).A)
    assert_array_equal(found.counts, whole.counts)
    assert added == [4]
    assert visits.value == 4


def test_a_fold_depends_on_the_row_alone():
    draw = np.random.default_rng(0)
    X = np.where(draw.random((5000, 6)) < 0.5, 0.0, draw.standard_normal((5000, 6)))
    folds = folds_by_content(X, 5, seed=3)
    order = draw.permutation(len(X))
    assert_array_equal(folds_by_content(X[order], 5, seed=3), folds[order])
    assert_array_equal(folds_by_content(sp.csr_array(X), 5, seed=3), folds)
    assert_array_equal(folds_by_content(np.where(X == 0.0, -0.0, X), 5, seed=3), folds)
    assert np.mean(folds_by_content(X, 5, seed=4) == folds) < 0.25
    # The sizes of folds are those of a fair draw: within four standard deviations.
    assert np.all(np.abs(np.bincount(folds) - 1000) < 4 * np.sqrt(5000 * 0.2 * 0.8))


def test_folds_of_inputs_of_two_values_are_fair_too():
    X = np.array([[(i >> j) & 1 for j in range(12)] for i in range(4096)], dtype=float)
    counts = np.bincount(folds_by_content(X, 4, seed=0))
    assert np.all(np.abs(counts - 1024) < 4 * np.sqrt(4096 * 0.25 * 0.75))


GOOD = vectors([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("read", "given", "sentence"),
    [
        (VectorRows(), batch(GOOD, [0.0, None]), "a row has no label (null)"),
        (VectorRows(), batch(pa.array([[1.0], None]), [0, 1]), "a row has no features (null)"),
        (
            VectorRows(),
            batch(vectors([[1.0], [1.0, 2.0]]), [0, 1]),
            "the vectors have 1 to 2 features, not all the same",
        ),
        (
            VectorRows(),
            batch(vectors([(3, [3], [1.0])]), [0]),
            "a vector has the feature 4, above the last, 3",
        ),
        (VectorRows(), batch(vectors([[1.0, np.nan]]), [0]), "there are NaN or infinite values"),
        (
            VectorRows(),
            batch(vectors([(2, [0], [np.inf])]), [0]),
            "there are NaN or infinite values",
        ),
        (VectorRows(), batch(pa.array([[1.0, None]]), [0]), "there are NaN or infinite values"),
        (
            VectorRows(),
            batch(vectors([[1.0], [1.0], [1.0]]), [0, 1, 2]),
            "the label 2.0 is a third beside 0.0, 1.0; the problem has two classes",
        ),
        (VectorRows(), batch(GOOD, [np.nan, 1]), "the label nan is a third"),
        (
            VectorRows(FoldAssignment(2, given=True)),
            batch(GOOD, [0, 1], [0, 2]),
            "a row has the fold 2, not one of 0 … 1",
        ),
        (
            VectorRows(FoldAssignment(2, given=True)),
            batch(GOOD, [0, 1], [0.5, 1]),
            "a row has the fold 0.5, not one of 0 … 1",
        ),
        (
            VectorRows(FoldAssignment(2, given=True)),
            batch(GOOD, [0, 1], [None, 1]),
            "a row has the fold nan, not one of 0 … 1",
        ),
        (
            TextRows("my file.svm"),
            pa.RecordBatch.from_arrays([pa.array(["1 1:2", "1 1:two"])], ["value"]),
            "my file.svm, the line '1 1:two', column 3: the value 'two' is not a finite number",
        ),
    ],
)
def test_what_a_partition_can_t_use_is_a_sentence_in_the_result_s_place(read, given, sentence):
    visits = Counter()
    folds = read.folds.number
    partition = Folded(read, lambda: Statistics(folds), lambda s, block: s.update(*block), visits)
    (result,) = partition(iter([given]))
    refusal = pickle.loads(result.column(0)[0].as_py())
    assert isinstance(refusal, Refusal)
    assert sentence in refusal.reason
    assert "\n" not in refusal.reason
    assert visits.value == 0


def test_a_feature_beyond_the_number_that_was_given():
    partition = Folded(
        VectorRows(), lambda: Statistics(1, 1), lambda s, block: s.update(*block), Counter()
    )
    (result,) = partition(iter([batch(GOOD, [0, 1])]))
    refusal = pickle.loads(result.column(0)[0].as_py())
    assert refusal.reason == "there is a feature 2, beyond the last, 1"


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_squared_hinge_s_passes_sum_up_what_its_definition_says(form, bias):
    draw = np.random.default_rng(2)
    X, y = draw.standard_normal((40, 3)), np.where(draw.random(40) < 0.5, -1.0, 1.0)
    Z = np.column_stack([X, np.full(40, bias)]) if bias else X
    w, v = draw.standard_normal((2, Z.shape[1]))
    slack = np.maximum(0.0, 1.0 - y * (Z @ w))
    active = slack > 0.0
    assert 5 < active.sum() < 35
    block = PackedBlock(form(X), y, None)
    found = losses(block, PassArguments(w[np.newaxis], bias))
    assert_allclose(found, [slack @ slack, *(y * slack) @ Z], rtol=1e-12)
    found = curvature(block, PassArguments(np.stack([w, v]), bias))
    assert_allclose(found, Z[active].T @ (Z[active] @ v), rtol=1e-12)


def test_of_two_refusals_the_same_is_told_whatever_the_order():
    both = Merge(lambda one, two: one + two)
    refused = [Refusal.of(ValueError("b")), Refusal.of(ValueError("a")), 3, None]
    assert both(both(refused[0], 3), refused[1]).reason == "a"
    assert both(refused[1], both(None, refused[0])).reason == "a"
    assert both(None, None) is None
    assert both(1, both(None, 2)) == 3


def test_nothing_here_or_in_the_package_imports_pyspark_before_it_is_used():
    code = (
        "import sys, svmbench, svmbench.spark, svmbench.spark.alsvm, svmbench.spark.l2svm;"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "call",
    [
        Folded(TextRows("a", FoldAssignment(2)), list, list.append, Counter()),
        Pack(TextRows("a", FoldAssignment(2))),
        PartitionWork(len, Merge(max)),
        Predict(np.ones(1), 0.0, np.array([-1.0, 1.0]), "a"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_executor_leaves_its_modules_out_of_collections(call):
    """PySpark collects garbage after each task, and would look through all modules."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    leave_out_of_collections.cache_clear()
    try:
        list(call([]))
        assert gc.get_freeze_count() > 10_000
        gc.unfreeze()
        list(call([]))
        assert gc.get_freeze_count() < 10_000, "garbage of later tasks would stay"
    finally:
        if frozen:
            gc.freeze()
