"""Steps of the solver that fits reach only where single precision misleads them."""

import numpy as np
import pytest

from svmbench.core.csvc import smo, solver
from svmbench.core.csvc.solver import CHECK_SAFETY, CHECK_WIDTH, choose_steps, correct_near
from svmbench.core.numeric.arrays import raw


def test_the_samples_that_are_checked_grow_with_the_error_that_was_found() -> None:
    """The values that decide lie just outside the first width, and are off by more than it."""
    tol = 0.1
    v = np.array([0.0, 1.5 * CHECK_WIDTH * tol, 2.0 * CHECK_SAFETY * 0.9, 1e3])
    true = v + np.array([0.9, -0.5, 0.1, 0.1])
    widths: list[float] = []

    def near(width: float) -> np.ndarray:
        widths.append(width)
        return np.abs(v) < width

    done, error = correct_near(near, lambda at: true[at], found := v.copy(), tol)
    assert done.tolist() == [True, True, False, False]
    assert found.tolist() == [true[0], true[1], v[2], v[3]]
    assert error == pytest.approx(0.9)
    # What was left unchecked is further away than the safety times the largest error.
    assert widths[-1] >= CHECK_SAFETY * 0.9


def test_samples_are_checked_once_where_the_values_were_right() -> None:
    v = np.array([0.0, 0.2, 5.0])
    asked: list[int] = []

    def exact(at: np.ndarray) -> np.ndarray:
        asked.extend(at.tolist())
        return v[at]

    done, error = correct_near(lambda width: v < width, exact, v.copy(), 0.1)
    assert asked == [0, 1]
    assert done.tolist() == [True, True, False]
    assert error == 0.0


@pytest.mark.parametrize(
    ("n_sums", "tests_gap", "is_refined", "expected"),
    [
        (1, False, False, "steps_with_shrinking"),
        (1, True, False, "steps_with_shrinking"),
        (1, False, True, "steps_on_matrix"),
        (1, True, True, "steps_until_gap"),
        (2, False, False, "steps_with_shrinking"),
        (2, False, True, "steps_with_shrinking"),
        (2, True, False, "steps_until_gap"),
        (2, True, True, "steps_until_gap"),
        (0, False, False, "steps_on_matrix"),
        (0, False, True, "steps_on_matrix"),
        (0, True, False, "steps_until_gap"),
        (0, True, True, "steps_until_gap"),
    ],
)
def test_the_steps_that_fit_a_problem_on_a_full_matrix(n_sums, tests_gap, is_refined, expected):
    chosen = choose_steps(n_sums, tests_gap=tests_gap, is_refined=is_refined)
    assert chosen is getattr(solver, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_pair_of_a_step_is_the_first_of_equals_that_may_move(dtype):
    rng = np.random.default_rng(0)
    n, begin, end = 700, 13, 690
    # Few different values: many ties, also between variables inside and outside of I_up.
    v = rng.integers(0, 4, n) / 4.0
    up, down = (np.where(rng.random(n) < 0.3, 0.0, -np.inf).astype(np.float32) for _ in range(2))
    rows = raw(rng.integers(0, 3, (2, n)).astype(dtype).ravel() / dtype(4))
    diag, part, expected = raw(np.ones(n, dtype)), np.arange(begin, end), v.copy()
    expected[part] -= 0.5 * (rows[part] - rows[n + part])
    m = smo.update_gradient(v, up, begin, end, rows, begin, n + begin, 0.5)
    np.testing.assert_array_equal(v, expected)
    rises = part[up[part] == 0.0]
    assert m == v[rises].max()
    i = smo.select_i(v, up, begin, end, m)
    assert i == rises[np.argmax(v[rises])]
    best, violation = smo.select_j(v, down, begin, end, rows, begin, diag, begin, m, diag[i])
    falls = part[down[part] == 0.0]
    scores = np.maximum(m - v[falls], 0.0) ** 2 / np.maximum(2.0 - 2.0 * rows[falls], 1e-12)
    assert smo.chosen_j(best) == falls[np.argmax(scores)]
    assert violation == m - v[falls].min()
    # Nothing in I_up, and nothing in I_low that violates.
    assert smo.update_gradient(v, np.full_like(up, -np.inf), 0, n, rows, 0, n, 0.0) == -np.inf
    assert smo.chosen_j(smo.select_j(v, down, 0, n, rows, 0, diag, 0, -9.0, diag[0])[0]) == -1
