"""What coverage need not follow is left out, and nothing else."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from untraced import FOREIGN, leave_out_foreign_work, untraced


def inner() -> None:
    return None


def foreign() -> None:
    inner()


def foreign_and_wrong() -> None:
    raise ValueError("wrong")


def test_foreign_work_is_not_followed_and_what_comes_after_is() -> None:
    entered: list[str] = []

    def trace(frame: FrameType, event: str, _value: Any) -> Any:
        entered.append(f"{event} {frame.f_code.co_name}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        untraced(foreign)()
        with pytest.raises(ValueError, match="wrong"):
            untraced(foreign_and_wrong)()
        inner()
    finally:
        sys.settrace(before)
    assert not {"call foreign", "call foreign_and_wrong"} & {*entered}
    assert entered.count("call inner") == 1
    # Each wrapper is left as often as it is entered: a tracer keeps count.
    assert entered.count("call quiet") == entered.count("return quiet") == 2


def test_what_is_named_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.figure
    import numba.core.dispatcher

    places = [
        (numba.core.dispatcher.Dispatcher, "compile"),
        (matplotlib.figure.Figure, "savefig"),
    ]
    assert len(places) == len(FOREIGN)
    before = [getattr(*place) for place in places]
    for place, value in zip(places, before, strict=True):
        monkeypatch.setattr(*place, value)  # put back afterwards
    leave_out_foreign_work()
    assert [getattr(*place).__wrapped__ for place in places] == before
