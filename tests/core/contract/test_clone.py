"""Pickles of another version are told of; what was unpickled, and any estimator, has its repr."""

import functools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from small_problems import make_problem

import svmbench
from svmbench import CSVC, NuPath, OneVsOne
from svmbench.baselines import catalogue

ESTIMATORS = {name: catalogue.solver(name) for name in sorted(catalogue.solvers())}
ESTIMATORS |= {"one-vs-one": OneVsOne(CSVC()), "nu-path": NuPath()}

each_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@functools.cache
def fitted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(ESTIMATORS[name]).fit(*make_problem(n=30, d=3))


def of_another_version(model, version):
    """Return the pickle of an estimator as another version would have made it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmbench, "__version__", version)
        return pickle.dumps(model)


@each_estimator
def test_a_pickle_of_this_version_is_loaded_in_silence(name):
    model = fitted(name)
    X, _ = make_problem(n=30, d=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InconsistentVersionWarning)
        again = pickle.loads(pickle.dumps(model))
    assert set(vars(again)) == set(vars(model))
    values = "predict" if name == "one-vs-one" else "decision_function"
    assert np.array_equal(getattr(again, values)(X), getattr(model, values)(X))


@each_estimator
def test_a_pickle_of_another_version_says_so(name):
    content = of_another_version(fitted(name), "0.0.7")
    said = rf"{type(ESTIMATORS[name]).__name__} was pickled by svmbench 0\.0\.7, and this is svmbe"
    with pytest.warns(InconsistentVersionWarning, match=said):
        again = pickle.loads(content)
    again.set_params(**again.get_params(deep=False))
    # What it is pickled by now is this version.
    assert pickle.loads(pickle.dumps(again)).get_params(deep=False).keys() == (
        ESTIMATORS[name].get_params(deep=False).keys()
    )


@each_estimator
def test_a_state_that_lacks_what_was_no_parameter_then_has_its_default(name):
    model = fitted(name)
    for parameter, value in ESTIMATORS[name].get_params(deep=False).items():
        if parameter == "estimator":
            continue
        old = clone(ESTIMATORS[name])
        state = {**vars(model)}
        del state[parameter]
        with pytest.warns(InconsistentVersionWarning, match="by an older version of svmbench"):
            old.__setstate__(state)
        assert repr(old) == repr(model)
        assert repr(getattr(old, parameter)) == repr(value)


@each_estimator
def test_every_estimator_has_a_repr_whatever_its_parameters(name):
    model = fitted(name)
    kind = type(model).__name__
    assert repr(model) == repr(ESTIMATORS[name])
    assert repr(model).startswith(f"{kind}(")
    assert kind in model._repr_html_()
    for parameter in model.get_params(deep=False):
        for odd in (None, "word", 0.25, np.float64(7.5), np.arange(3), {"a": 1}, [1, 2]):
            changed = clone(ESTIMATORS[name])
            setattr(changed, parameter, odd)
            assert repr(changed).startswith(f"{kind}(")
            assert f"{parameter}=" in repr(changed) or odd in (None, 0.25)
