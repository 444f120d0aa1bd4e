"""Tables and plots of the frame that a run returns."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

import svmbench
from svmbench.base.errors import UnknownNameError


@pytest.fixture
def frame() -> pd.DataFrame:
    """Two data sets, two solvers, two folds; one cell failed."""
    times = {("a9a", "smo"): [4.0, 2.0], ("a9a", "csvc"): [1.0, 1.0], ("w8a", "smo"): [5.0, 7.0]}
    rows = [
        {"dataset": d, "solver": s, "fold": i, "status": "ok", "train_time_s": t}
        for (d, s), values in times.items()
        for i, t in enumerate(values)
    ]
    return pd.DataFrame([*rows, {"dataset": "w8a", "solver": "csvc", "status": "failed"}])


def test_a_table_has_the_means_in_the_order_of_the_frame(frame: pd.DataFrame) -> None:
    made = svmbench.table(frame, ["train_time_s"])
    assert list(made.index) == ["a9a", "w8a"]
    assert list(made.columns) == [("smo", "train_time_s"), ("csvc", "train_time_s")]
    assert made.loc["a9a"].tolist() == [3.0, 1.0]
    assert made.loc["w8a", ("smo", "train_time_s")] == 6.0
    assert pd.isna(made.loc["w8a", ("csvc", "train_time_s")])


@pytest.mark.parametrize("kind", ["bar", "barh", "line"])
def test_a_plot_has_a_series_for_each_solver(frame: pd.DataFrame, kind: str) -> None:
    made = svmbench.plot(frame, kind, y="train_time_s")
    assert isinstance(made, Figure)
    (axes,) = made.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["smo", "csvc"]
    label = axes.get_xlabel() if kind == "barh" else axes.get_ylabel()
    assert label == "train time (s)"
    if kind == "bar":
        assert sorted(bar.get_height() for bar in axes.patches if bar.get_height() > 0) == [1, 3, 6]


def test_a_column_that_is_not_there_is_a_sentence(frame: pd.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'train_time_s'"):
        svmbench.plot(frame, y="train_times")
    with pytest.raises(UnknownNameError, match="unknown column 'accuracy_pct'"):
        svmbench.table(frame)
