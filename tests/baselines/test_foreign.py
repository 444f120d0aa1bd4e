"""Foreign classes: trained as they are, with what a record needs beside."""

import numpy as np
import pytest
from small_problems import make_problem

from svmbench.base.errors import SvmbenchError
from svmbench.baselines.foreign import adapted, is_trusted


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("sklearn.svm.SVC", {"C": 2.0}),  # n_iter_ is an array
        ("sklearn.linear_model.RidgeClassifier", {}),  # None
        ("sklearn.naive_bayes.GaussianNB", {}),  # not there
        # A property, which can't be set.
        ("sklearn.ensemble.HistGradientBoostingClassifier", {"max_iter": 3}),
    ],
)
def test_a_class_computes_what_it_does_alone(path, params):
    X, y = make_problem(n=60, d=4)
    model = adapted(path)(**params)
    model.train(model.prepare(X, y)).evaluate_objective(None)
    alone = adapted(path).wrapped(**params).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ >= 1
    assert all(isinstance(count, int) for count in model.counters_.values())


def test_what_a_class_is_for_is_seen():
    X, _ = make_problem(n=40, d=3)
    novelty = adapted("sklearn.svm.OneClassSVM")
    assert novelty.declaration.task == "one-class"
    model = novelty(nu=0.3)
    model.train(model.prepare(X, None))
    assert model.counters_["support_vectors"] == len(model.support_)
    assert set(model.predict(X)) == {-1, 1}
    for path, sentence in (
        ("sklearn.svm.SVR", "neither a classifier nor a novelty detector"),
        ("sklearn.svm.Nothing", "there is no class"),
        ("SVC", "there is no class"),
        ("sklearn.svm.l1_min_c", "is not an estimator"),
    ):
        with pytest.raises(SvmbenchError, match=sentence):
            adapted(path)
    assert is_trusted("sklearn.svm.SVC")
    assert not is_trusted("sklearnex.svm.SVC")
