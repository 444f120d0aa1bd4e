"""Every parameter and attribute of every estimator is described, and none that isn't there."""

import inspect
from dataclasses import KW_ONLY, dataclass

import pytest
from small_problems import make_problem

from svmbench import NuPath
from svmbench.base.compiled import JIT_DISABLED
from svmbench.baselines import catalogue
from svmbench.core.contract.docstrings import ATTRIBUTES, PARAMETERS, document, entries

NAMES = sorted(catalogue.solvers())
CLASSES = [*map(catalogue.solver_class, NAMES), NuPath]

#: Attributes that `fit` leaves with some parameters or more than two classes alone.
SOMETIMES = {"estimators_", "trace_", "gradient_trace_", "times_", "screening_", "screened_"}


def shown(cls, title):
    """Return the headers of one section as help(cls) shows them, by name."""
    lines = iter(inspect.getdoc(cls).splitlines())
    for line in lines:
        if line == title:
            break
    next(lines)
    found, texts, names = {}, {}, []
    for line in lines:
        if not line:
            break
        if line[0] != " ":
            names = line.split(" : ")[0].split(", ")
            found |= dict.fromkeys(names, line)
        else:
            texts |= dict.fromkeys(names, line)
    assert texts.keys() == found.keys(), "a header without a text"
    return found


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_parameter_has_a_text_and_its_default(cls):
    described = shown(cls, "Parameters")
    parameters = inspect.signature(cls).parameters
    assert list(described) == list(parameters)
    for name, parameter in parameters.items():
        kind, _, default = described[name].removeprefix(f"{name} : ").partition(", default=")
        assert kind
        # The text of a default is Python.
        assert eval(default) == parameter.default


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_placeholder_is_left(cls):
    assert "{kernels}" not in cls.__doc__
    assert "{problem}" not in cls.__doc__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_attribute_that_is_described_is_there(cls):
    if JIT_DISABLED:
        pytest.skip("some solvers take minutes in plain Python")
    X, y = make_problem(n=40, d=4)
    model = cls().fit(X, y)
    lacking = {name for name in shown(cls, "Attributes") if not hasattr(model, name)}
    of_other_points = hasattr(model, "expansion_") and model.expansion_.rows is None
    assert lacking <= SOMETIMES | ({"support_"} if of_other_points else set())


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_estimator_is_compared_and_shown_as_an_object(cls):
    assert cls.__eq__ is object.__eq__
    assert cls.__hash__ is object.__hash__
    assert repr(cls()) == f"{cls.__name__}()"


class Base:
    """A kind of estimators.

    Parameters
    ----------
    rate : float
        Length of a step,
        above 0.
    name : str
        Of the kind.

    Attributes
    ----------
    rate_ : float
        The last one.
    first_, second_ : int
        Two numbers.
    """


def test_a_text_comes_from_the_nearest_class_that_has_one():
    @document
    @dataclass(eq=False)
    class Own(Base):
        """An estimator.

        Parameters
        ----------
        name
            Of this one.
        unknown : int
            Not among the parameters.

        Attributes
        ----------
        second_ : float
            Another number.

        Examples
        --------
        None.
        """

        rate: float = 0.5
        _: KW_ONLY
        name: str = "x"
        more: int = 3

    assert inspect.getdoc(Own) == inspect.cleandoc(
        """An estimator.

        Parameters
        ----------
        rate : float, default=0.5
            Length of a step,
            above 0.
        name : str, default="x"
            Of this one.
        more : default=3

        Attributes
        ----------
        second_ : float
            Another number.
        rate_ : float
            The last one.
        first_ : int
            Two numbers.

        Examples
        --------
        None.
        """
    )
    assert document(Own) is Own
    once = Own.__doc__
    assert document(Own).__doc__ == once


def test_a_plain_constructor_is_documented_as_well():
    @document
    class Plain(Base):
        """An estimator with a constructor of its own."""

        def __init__(self, rate=0.1):
            self.rate = rate

    assert list(entries(Plain.__doc__, PARAMETERS)) == ["rate"]
    assert "rate : float, default=0.1\n    Length of a step," in Plain.__doc__
    assert list(entries(Plain.__doc__, ATTRIBUTES)) == ["rate_", "first_", "second_"]


def test_no_docstring_no_text():
    class Silent(Base):
        def __init__(self, rate=0.1):
            self.rate = rate

    assert document(Silent).__doc__ is None
