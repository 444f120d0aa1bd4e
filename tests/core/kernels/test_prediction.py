"""Evaluation of kernel models: every way against differences in plain NumPy, in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from small_problems import make_problem, needs_jit

from svmbench.base.compiled import JIT_DISABLED
from svmbench.core.contract.declaration import KERNELS
from svmbench.core.csvc import CSVC
from svmbench.core.kernels import prediction
from svmbench.core.kernels.kernels import KernelFunction
from svmbench.core.kernels.prediction import BitTiles, DenseTiles, SparseTiles, weighted_sums
from svmbench.core.kernels.products import gauss_double
from svmbench.core.models.kernel_base import Expansion
from svmbench.core.models.ovo_model import SharedPoints
from svmbench.core.models.pairs import Pairs
from svmbench.core.oneclass.one_class import OneClass
from svmbench.core.oneclass.svdd import SVDD

#: More than a tile of points and two blocks of rows, where loops are compiled.
N_POINTS, N_ROWS = (20, 13) if JIT_DISABLED else (1101, 301)

DENSE, CSR = np.asarray, sp.csr_array
RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def same_numbers(monkeypatch):
    """Draw the same numbers for a test, whichever tests ran before it."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(7))


def sparse(n, d, share):
    return RNG.normal(size=(n, d)) * (RNG.random((n, d)) < share)


def bits(n, d, value=1.0):
    return value * (RNG.random((n, d)) < 0.2)


#: Inputs by name, with the maker of tiles that should serve them (as CSR) and a gamma.
INPUTS = {
    "dense": (lambda n: RNG.normal(size=(n, 40)), DenseTiles, 0.02),
    "few features": (lambda n: RNG.normal(size=(n, 3)), DenseTiles, 0.5),
    "one feature": (lambda n: RNG.normal(size=(n, 1)), DenseTiles, 0.5),
    "offset": (lambda n: 1e8 + RNG.normal(size=(n, 5)), DenseTiles, 0.2),
    "two places": (
        lambda n: 1e8 * RNG.integers(0, 2, (n, 1)) + RNG.normal(size=(n, 7)),
        DenseTiles,
        0.2,
    ),
    "bits": (lambda n: bits(n, 70), BitTiles, 0.05),
    "bits of 0.3": (lambda n: bits(n, 130, 0.3), BitTiles, 0.5),
    "sparse": (lambda n: sparse(n, 500, 0.02), SparseTiles, 0.1),
}


def values_of(function, X, Z):
    """Return the kernel matrix of dense inputs, RBF from differences."""
    if function.name == "rbf":
        distances = np.array([np.sum((Z - x) ** 2, axis=1) for x in X])
        return np.exp(-function.gamma * distances)
    P = X @ Z.T
    if function.name == "linear":
        return P
    P = function.gamma * P + function.coef0
    return P**function.degree if function.name == "poly" else np.tanh(P)


def problem(name, n_rows=N_ROWS, n_points=N_POINTS, kernel="rbf"):
    make, maker, gamma = INPUTS[name]
    function = KernelFunction(kernel, gamma=gamma, degree=3, coef0=0.5)
    return function, make(n_points), RNG.normal(size=n_points), make(n_rows), maker


def expected(function, Z, c, X):
    """Return the sums, and how large they would be without cancellation."""
    K = values_of(function, X, Z)
    return K @ c, np.abs(K) @ np.abs(c)


def assert_sums(sums, function, Z, c, X, rtol):
    right, size = expected(function, Z, c, X)
    assert sums.shape == right.shape
    assert np.all(np.abs(sums - right) <= rtol * size)  # a row of zeros has size 0
    assert np.ptp(right) > 1e3 * rtol * np.max(size)


@pytest.mark.parametrize("of_points", [DENSE, CSR])
@pytest.mark.parametrize("of_rows", [DENSE, CSR])
@pytest.mark.parametrize("name", INPUTS)
def test_every_input_as_by_differences(name, of_rows, of_points):
    function, Z, c, X, _ = problem(name)
    sums = weighted_sums(function, of_points(Z), c, of_rows(X))
    assert_sums(sums, function, Z, c, X, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["dense", "bits", "bits of 0.3", "sparse"])
@pytest.mark.parametrize("form", [DENSE, CSR])
def test_every_kernel(kernel, name, form):
    function, Z, c, X, _ = problem(name, kernel=kernel)
    assert_sums(weighted_sums(function, form(Z), c, form(X)), function, Z, c, X, rtol=1e-13)


@pytest.mark.parametrize("name", INPUTS)
def test_who_makes_the_values(name):
    function, Z, _, X, maker = problem(name, n_rows=5, n_points=9)
    [(first, tiles)] = prediction._makers(function, CSR(Z), CSR(X), "double")
    assert first == 0
    assert type(tiles) is maker


def test_sparse_rows_meet_dense_points():
    function, Z, c, X, _ = problem("sparse")
    assert_sums(weighted_sums(function, Z, c, CSR(X)), function, Z, c, X, rtol=1e-13)


def test_bits_of_two_values_are_no_bits():
    # Values of 1 on one side and of 2 on the other, and a side of zeros alone.
    function = KernelFunction("rbf", gamma=0.05)
    Z, c = bits(30, 20), RNG.normal(size=30)
    for X in (bits(9, 20, 2.0), np.zeros((9, 20)), np.where(bits(9, 20) > 0, 2.0, 1.0)):
        right, _ = expected(function, Z, c, X)
        assert_allclose(weighted_sums(function, Z, c, X), right, rtol=1e-12)


def test_stored_zeros_are_no_bits():
    X = CSR(bits(20, 70))
    X.data[::3] = 0.0
    function, c = KernelFunction("rbf", gamma=0.05), RNG.normal(size=20)
    right, _ = expected(function, X.toarray(), c, X.toarray())
    assert_allclose(weighted_sums(function, X, c, X), right, rtol=1e-12)


def test_points_in_parts(monkeypatch):
    function, Z, c, X, _ = problem("dense")
    whole = weighted_sums(function, Z, c, X)
    monkeypatch.setattr(prediction, "DENSE_POINTS_BYTES", 0)
    parts = list(prediction._makers(function, Z, X, "double"))
    assert [first for first, _ in parts] == list(range(0, N_POINTS, prediction.TILE_POINTS))
    assert_allclose(weighted_sums(function, Z, c, X), whole, rtol=1e-10)


@pytest.mark.parametrize("name", ["dense", "few features", "offset"])
def test_single_is_within_its_bound(name):
    function, Z, c, X, _ = problem(name)
    tiles = DenseTiles(function, Z, X, "single")
    assert tiles.dtype == np.float32
    sums = weighted_sums(function, Z, c, X, precision="single")
    assert np.any(sums != weighted_sums(function, Z, c, X))
    right, _ = expected(function, Z, c, X)
    assert np.max(np.abs(sums - right)) < 2e-6 * np.sum(np.abs(c))


def test_single_takes_double_where_it_would_not_suffice():
    # Two places 1e8 apart, whose coordinates float32 does not hold.
    function, Z, c, X, _ = problem("two places")
    assert DenseTiles(function, Z, X, "single").dtype == np.float64
    assert_sums(weighted_sums(function, Z, c, X, precision="single"), function, Z, c, X, rtol=1e-12)


def test_single_takes_differences_of_what_it_holds():
    # Integers up to 1e4: float32 has them as they are, but not their products.
    function = KernelFunction("rbf", gamma=1e-3)
    centres = 1e4 * np.arange(2)[RNG.integers(0, 2, N_POINTS), np.newaxis]
    Z, c = centres + RNG.integers(0, 30, (N_POINTS, 6)), RNG.normal(size=N_POINTS)
    tiles = DenseTiles(function, Z, Z, "single")
    assert tiles.dtype == np.float32
    assert tiles.rows(0, 5)[2]
    sums = weighted_sums(function, Z, c, Z, precision="single")
    right, _ = expected(function, Z, c, Z)
    assert np.max(np.abs(sums - right)) < 2e-6 * np.sum(np.abs(c))


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("precision", prediction.PRECISIONS)
def test_threads_do_not_change_a_bit(name, precision):
    function, Z, c, X, _ = problem(name)
    for form in (DENSE, CSR):
        one, three = (
            weighted_sums(function, form(Z), c, form(X), precision=precision, n_jobs=n)
            for n in (1, 3)
        )
        assert_array_equal(one, three)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("precision", prediction.PRECISIONS)
def test_pairs_of_classes_share_the_values(name, precision):
    function, Z, _, X, _ = problem(name)
    # Two small classes, and one that is larger than a tile.
    starts, n = np.array([0, 5, 9, len(Z)]), len(Z)
    C, b = RNG.normal(size=(2, n)), RNG.normal(size=3)
    shared = SharedPoints(function, CSR(Z), np.arange(n), starts, C, b, Pairs(np.arange(3)))
    together = shared.decide(CSR(X), precision=precision)
    for p, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
        own = np.zeros(n)
        for row, c in ((second - 1, first), (first, second)):
            own[starts[c] : starts[c + 1]] = C[row, starts[c] : starts[c + 1]]
        alone = b[p] + weighted_sums(function, CSR(Z), own, CSR(X), precision=precision)
        assert_allclose(together[:, p], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", [DENSE, CSR])
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_and_little(form, kernel):
    function = KernelFunction(kernel, gamma=0.1)
    X, _ = make_problem(n=9, d=5)
    empty = Expansion(function, form(X[:0]), np.zeros(0), 0.25)
    assert_array_equal(empty.decide(form(X)), np.full(9, 0.25))
    one = Expansion(function, form(X[:1]), np.array([2.0]), 0.25)
    assert one.decide(form(X[:0])).shape == (0,)
    assert_allclose(one.decide(form(X[3:4])), 2.0 * values_of(function, X[3:4], X[:1])[0] + 0.25)
    zeros = np.zeros((3, 5))
    assert_allclose(one.decide(form(zeros)), 2.0 * values_of(function, zeros, X[:1])[:, 0] + 0.25)


def test_a_row_far_away_gets_the_offset():
    function, Z, c, X, _ = problem("few features")
    X[0] = 1e100
    sums = weighted_sums(function, Z, c, X)
    assert sums[0] == pytest.approx(0.0, abs=1e-200)
    assert_allclose(sums[1:], expected(function, Z, c, X[1:])[0], atol=1e-9)
    assert_allclose(weighted_sums(function, Z, c, X, precision="single"), sums, atol=1e-9)


def test_the_exponential_is_right_to_the_last_bit():
    t = -np.concatenate([np.linspace(0.0, 2.0, 4001), np.linspace(2.0, 700.0, 4001)])
    P = 0.5 * t[np.newaxis]
    gauss_double(P, np.zeros(1), np.zeros(len(t)), 1.0)
    right = np.exp(t.astype(np.longdouble))
    assert np.max(np.abs(P[0] / right - 1)) < 2.5e-16
    far = np.array([[-1e300, -1e5]])
    gauss_double(far, np.zeros(1), np.zeros(2), 1.0)
    assert np.all((far >= 0.0) & (far < 1e-300))


@pytest.fixture
def model():
    X, y = make_problem(n=60, d=6)
    return CSVC(C=10.0, gamma=0.7).fit(X, y), X


@pytest.mark.parametrize("solver", [CSVC, OneClass, SVDD])
def test_what_a_user_asks_for(solver):
    X, y = make_problem(n=60, d=6)
    model = solver(gamma=0.7).fit(X, y)
    f = model.decision_function(X)
    single = model.decision_function(X, precision="single")
    assert_allclose(single, f, atol=1e-5 * np.sum(np.abs(model.dual_coef_)))
    assert np.any(single != f)
    assert_array_equal(model.decision_function(X, n_jobs=2), f)
    assert_array_equal(model.predict(X, precision="single", n_jobs=-1), model.predict(X))


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_several_classes_have_the_same_options(shape, kernel):
    X, _ = make_problem(n=60, d=6)
    y = np.arange(60) % 3
    X = X if kernel == "rbf" else X @ X.T
    model = CSVC(kernel=kernel, gamma=0.7, decision_function_shape=shape, break_ties=False)
    model.fit(X, y)
    f = model.decision_function(X)
    single = model.decision_function(X, precision="single")
    assert_allclose(single, f, atol=1e-4)
    assert np.any(single != f) == (kernel == "rbf")
    assert_array_equal(model.decision_function(X, n_jobs=2), f)
    assert_array_equal(model.predict(X, n_jobs=2), model.predict(X))
    for method in (model.decision_function, model.predict):
        with pytest.raises(ValueError, match="precision must be"):
            method(X, precision="half")


def test_inputs_that_symmetry_makes_equal_stay_equal():
    corners, middle = np.eye(3), np.full((1, 3), 1.0 / 3.0)
    function = KernelFunction("rbf", 1.0)
    sums = np.column_stack([weighted_sums(function, corners, one, middle) for one in np.eye(3)])
    assert len(set(sums[0])) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "half"}, "precision must be 'double' or 'single', got precision='half'"),
        ({"n_jobs": 0}, "n_jobs must be an integer of at least 1, got n_jobs=0"),
        ({"n_jobs": 1.5}, "n_jobs must be an integer of at least 1, got n_jobs=1.5"),
    ],
)
def test_a_bad_option_is_told(model, options, message):
    for method in (model[0].decision_function, model[0].predict):
        with pytest.raises(ValueError, match=message):
            method(model[1], **options)


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_that_overflow_are_told(kernel):
    X, y = make_problem(n=30, d=4)
    model = CSVC(kernel=kernel, gamma=0.5, degree=5).fit(X, y)
    for form in (DENSE, CSR):
        with pytest.raises(ValueError, match=r"X has values of up to 1e\+308, whose squares"):
            model.predict(form(np.full((2, 4), 1e308)))


def test_kernel_values_that_overflow_are_told():
    X, y = make_problem(n=30, d=4)
    model = CSVC(kernel="poly", gamma=0.5, degree=5).fit(X, y)
    with pytest.raises(ValueError, match="the poly kernel overflows on these inputs"):
        model.predict(np.full((1, 4), 1e100))


def test_entries_that_are_stored_twice_count_once_together(model):
    fitted, X = model
    rows = CSR(X[:5])
    twice = sp.csr_array(
        (np.repeat(rows.data / 2.0, 2), np.repeat(rows.indices, 2), 2 * rows.indptr),
        shape=rows.shape,
    )
    assert_allclose(fitted.decision_function(twice), fitted.decision_function(X[:5]), rtol=1e-12)


@needs_jit
def test_warming_up_leaves_nothing_to_compile():
    prediction.warm_up_prediction()
    compiled = [each for each in vars(prediction).values() if hasattr(each, "nopython_signatures")]
    known = {each.__name__: list(each.signatures) for each in compiled}
    assert all(known.values())
    for name in INPUTS:
        function, Z, c, X, _ = problem(name)
        for of_rows in (DENSE, CSR):
            for of_points in (DENSE, CSR):
                for precision in prediction.PRECISIONS:
                    weighted_sums(function, of_points(Z), c, of_rows(X), precision=precision)
    assert {each.__name__: list(each.signatures) for each in compiled} == known
