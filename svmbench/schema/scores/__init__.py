"""What a model is scored by: each score declared once, with all that others need to know of it.

A score is a function from an :class:`Exam` (a fitted model, the rows it is tested on, and what it
says of them) to a number; :func:`score` enters it into :data:`SCORES` with its unit, its direction
and the gate's tolerance. Protocols call :func:`evaluate`; plans carry :func:`describe`, from which
tables, plots and comparisons learn the rest.

A score may be undefined on some rows: the area under the curve of one class is no number. Its
function then raises :class:`Undefined` with the reason, which is recorded in the value's place. No
score is ever NaN, and none that is undefined costs a cell its result.

The contract is in ``contract.py``; every score that ships stands, whole, in ``measures.py``.
"""

from __future__ import annotations

from svmbench.schema.scores import measures
from svmbench.schema.scores.calibration import platt_sigmoid
from svmbench.schema.scores.contract import (
    SCORES,
    Exam,
    Score,
    Undefined,
    decision_values,
    describe,
    evaluate,
    find,
    mark,
    score,
)

__all__ = [
    "SCORES",
    "Exam",
    "Score",
    "Undefined",
    "decision_values",
    "describe",
    "evaluate",
    "find",
    "mark",
    "measures",
    "platt_sigmoid",
    "score",
]
