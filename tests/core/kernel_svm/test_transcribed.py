"""SVM-light's and Osuna's methods, step by step beside plain transcriptions of their rules.

A transcription has a kernel matrix, sorts all samples at each step and computes every gradient
anew. It follows the multipliers of the solver, since the inner program ends within a tolerance,
and asks at each step whether the rule chooses the same set and whether that was then optimal.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_problems import make_problem, needs_jit

from svmbench.core.kernel_svm import decomposition
from svmbench.core.kernel_svm.decomposition import Osuna, SVMLight, Taking
from svmbench.core.kernels.kernels import KernelFunction, KernelSource


class Printed:
    """What both methods know: all multipliers, and the gradient by its definition."""

    def __init__(self, K, y, C, tol):
        self.K, self.y, self.C, self.tol = K, y, C, tol
        self.beta = np.zeros(len(y))
        self.low, self.high = np.minimum(0.0, C * y), np.maximum(0.0, C * y)

    def gradient(self):
        return self.y - self.K @ self.beta

    def extremes(self, among):
        """The worst of what can go up and of what can go down: their gradients and positions."""
        v = self.gradient()
        up = [k for k in among if self.beta[k] < self.high[k]]
        down = [k for k in among if self.beta[k] > self.low[k]]
        first, last = max(up, key=lambda k: v[k]), min(down, key=lambda k: v[k])
        return v[first], v[last], first, last

    def agree(self, own, theirs, order):
        """Both sets are by the rule: they differ in samples alone that `order` can't tell apart."""
        assert len(set(theirs)) == len(own)
        assert_allclose(np.sort(order[list(theirs)]), np.sort(order[own]), atol=1e-9)

    def move(self, chosen, beta):
        """Take over what the inner program found, and see that it was solved."""
        self.beta[chosen] = beta
        top, bottom, *_ = self.extremes(chosen)
        assert top - bottom <= self.tol


def follow_svm_light(K, y, C, tol, q, taken):
    """Joachims 1999, sections 11.3 and 11.4, along the working sets that were `taken`."""
    state, n, iteration, n_checks, n_least = Printed(K, y, C, tol), len(y), 0, 0, len(y)
    while True:
        active, at_work = list(range(n)), np.full(n, iteration)
        while True:
            top, bottom, *_ = state.extremes(active)
            if top - bottom <= 2.0 * tol:
                break
            v, b = state.gradient(), 0.5 * (top + bottom)
            up = [k for k in active if v[k] > b and state.beta[k] < state.high[k]]
            down = [k for k in active if v[k] < b and state.beta[k] > state.low[k]]
            chosen = [
                *sorted(up, key=lambda k: -v[k])[: q // 2],
                *sorted(down, key=lambda k: v[k])[: q // 2],
            ]
            theirs, beta, n_active = taken[iteration]
            assert len(active) == n_active
            state.agree(chosen, theirs, v)
            state.move(theirs, beta)
            iteration += 1
            if iteration % 10 == 0:
                top, bottom, *_ = state.extremes(active)
                v, b = state.gradient(), 0.5 * (top + bottom)
                for k in active:
                    held_up = state.beta[k] == state.high[k] and v[k] > b
                    held_down = state.beta[k] == state.low[k] and v[k] < b
                    if not (held_up or held_down):
                        at_work[k] = iteration
                left = [k for k in active if iteration - at_work[k] < 100]
                if 2 <= len(left) <= 0.9 * len(active):
                    active = left
                    n_least = min(n_least, len(active))
        n_checks += 1
        top, bottom, *_ = state.extremes(range(n))
        if top - bottom <= 2.0 * tol:
            assert iteration == len(taken)
            return state.beta, n_checks, n_least


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize(
    ("q", "C", "tol", "fails_a_check"),
    [(2, 30.0, 2e-3, True), (4, 10.0, 1e-4, False)],
    ids=["again", "once"],
)
def test_svm_light_takes_the_printed_working_sets(q, C, tol, fails_a_check, monkeypatch):
    all_checks, least = [], []
    # Rounding decides the order of steps, and so how many samples are left out of one problem:
    # what has to happen, has to happen in one of several.
    for seed in (0, 5, 1):
        X, y = make_problem(seed=seed, n=150, d=4, density=1.0)
        y = y.astype(float)
        K = KernelFunction("rbf", 0.5).between(X, X)
        solution, taken = solve_and_note(SVMLight(C=C, tol=tol, q=q), K, y, monkeypatch)
        beta, n_checks, n_least = follow_svm_light(K, y, C, tol, q, taken)
        assert_allclose(solution.coefficients, beta, atol=1e-9)
        assert solution.counters["checks"] == n_checks
        all_checks.append(n_checks)
        least.append(n_least)
    assert min(least) < 0.5 * 150
    # The check of all samples finds some that were left out wanting.
    assert not fails_a_check or max(all_checks) > 1


def solve_and_note(model, K, y, monkeypatch):
    """Solve; return the solution and, of each step, working set, multipliers, samples in play."""
    taken, step = [], Taking.step

    def noted(taking, chosen, tol):
        steps = step(taking, chosen, tol)
        taken.append((taking.members[chosen], taking.variables.beta[chosen], len(taking.members)))
        return steps

    with monkeypatch.context() as patch:
        patch.setattr(Taking, "step", noted)
        return model.solve(KernelSource.precomputed(K), y), taken


def follow_osuna(K, y, C, tol, q, taken):
    """Any set that holds a violator makes progress; which one is this package's own rule."""
    state, n = Printed(K, y, C, tol), len(y)
    positive = [k for k in range(n) if y[k] > 0][: q // 2]
    negative = [k for k in range(n) if y[k] < 0][: q - len(positive)]
    members = sorted(positive + negative)
    since = dict.fromkeys(members, 0)
    step = 0
    while True:
        top, bottom, first, last = state.extremes(range(n))
        if top - bottom <= 2.0 * tol:
            assert step == len(taken)
            return state.beta
        if step > 0:
            v, b = state.gradient(), 0.5 * (top + bottom)
            can_rise, can_fall = state.beta < state.high, state.beta > state.low
            violation = np.full(n, -np.inf)
            violation[can_rise] = v[can_rise] - b
            violation[can_fall] = np.maximum(violation[can_fall], b - v[can_fall])
            pair = {first, last}
            may_leave = [k for k in members if k not in pair]
            missing = [k for k in pair if k not in members]
            others = [k for k in range(n) if k not in members and violation[k] > tol]
            others = sorted(set(others) - pair, key=lambda k: -violation[k])
            most = min(max(2, q // 2), len(may_leave))
            entering = sorted([*missing, *others][:most])
            is_free = can_rise & can_fall
            bound = sorted((k for k in may_leave if not is_free[k]), key=lambda k: violation[k])
            free = sorted((k for k in may_leave if is_free[k]), key=lambda k: since[k])
            leaving = [*bound, *free][: len(entering)]
            came = sorted(set(taken[step][0]) - set(members))
            went = sorted(set(members) - set(taken[step][0]))
            state.agree(entering, came, violation)
            state.agree(leaving, went, np.where(is_free, 1.0, violation))
            assert sorted(since[k] for k in went) == sorted(since[k] for k in leaving)
            since |= dict.fromkeys(came, step)
        members = taken[step][0]
        state.move(*taken[step])
        step += 1


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize(("q", "C"), [(10, 1.0), (24, 20.0), (6, 100.0)])
def test_osuna_exchanges_by_its_rule(q, C, monkeypatch):
    X, y = make_problem(n=150, d=4, density=1.0)
    y, tol = y.astype(float), 1e-4
    K = KernelFunction("rbf", 0.5).between(X, X)
    taken, optimise = [], decomposition.FixedSizeSet.optimise

    def noted(chosen, variables, tol):
        steps = optimise(chosen, variables, tol)
        taken.append((chosen.members.copy(), variables.beta[chosen.members]))
        return steps

    monkeypatch.setattr(decomposition.FixedSizeSet, "optimise", noted)
    solution = Osuna(C=C, tol=tol, q=q).solve(KernelSource.precomputed(K), y)
    assert len(taken) >= 10
    assert_allclose(solution.coefficients, follow_osuna(K, y, C, tol, q, taken), atol=1e-9)
