"""The active samples of a search, and what the ones that were dropped get back at its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmbench.core.csvc.box import Box, Limits, gap_of_box, limits
from svmbench.core.kernels.float32_rows import WIDTH, Rows
from svmbench.core.kernels.threads import Crew

#: Columns of rows that are used once: a block of them stays in the second-level cache. A multiple
#: of the width of the products behind them, so that threads change no product's shape: another
#: shape can have another last bit.
PASSING = WIDTH


def subtract_kernel(
    rows: Rows, samples: np.ndarray, factors: np.ndarray, columns: Any, v: np.ndarray, crew: Crew
) -> None:
    """Take ``factors @ K[samples][:, columns]`` off `v`, by rows that are never written out.

    Parameters
    ----------
    rows : Rows
    samples, factors : ndarray of shape (m,)
    columns : object
        From ``rows.columns``.
    v : ndarray of shape (n,)
        One value a column; changed in place.
    crew : Crew
        Each of its threads takes some of the columns.
    """

    def take_off(first: int, end: int) -> None:
        rows.take_off(samples, factors, columns, (first, end), v)

    if rows.shares:
        crew.share(len(v), PASSING, take_off)
    else:
        take_off(0, len(v))


class Active:
    """The samples that still take part, with their variables side by side.

    Parameters
    ----------
    members : ndarray of int of shape (n,)
        Positions in the whole problem, ascending.
    box, beta, v : Box, ndarray of shape (n_samples,), ndarray of shape (n_samples,)
        The whole problem, its variables and their gradient; `finish` brings the last two up to
        date.

    Attributes
    ----------
    members : ndarray of int of shape (n,)
    box, beta, v : Box, ndarray of shape (n,), ndarray of shape (n,)
        Of the members.
    """

    def __init__(self, members: np.ndarray, box: Box, beta: np.ndarray, v: np.ndarray) -> None:
        self.members = members
        self.box, self.beta, self.v = box.take(members), beta[members], v[members]
        self._box, self._beta, self._v = box, beta, v
        outside = np.ones(len(v), dtype=bool)
        outside[members] = False
        self._shed = [(np.flatnonzero(outside), beta.copy())]

    def limits(self) -> Limits:
        """Return what can go up and down; see :func:`~svmbench.core.csvc.box.limits`."""
        return limits(self.box, self.beta, self.v)

    def duality_gap(self) -> float:
        """Return it for all samples, those that were dropped with the gradient that they had."""
        self._write_back()
        return gap_of_box(self._box, self._beta, self._v)

    def shed(self, stays: np.ndarray) -> None:
        """Drop the samples where `stays` is False; their gradient is what it is now."""
        self._write_back()
        self._shed.append((self.members[~stays], self._beta.copy()))
        kept = np.flatnonzero(stays)
        self.members, self.box = self.members[kept], self.box.take(kept)
        self.beta, self.v = self.beta[kept], self.v[kept]

    def _write_back(self) -> None:
        self._beta[self.members], self._v[self.members] = self.beta, self.v

    def finish(self, rows: Rows, crew: Crew) -> None:
        """Bring the whole problem up to date.

        A sample that was dropped lacks what has changed since: of those that were left, and of
        these only the ones that still moved.
        """
        self._write_back()
        for members, before in self._shed:
            change = self._beta - before
            moved = np.flatnonzero(change)
            if not len(members) or not len(moved):
                continue
            v = self._v[members]
            subtract_kernel(rows, moved, change[moved], rows.columns(members), v, crew)
            self._v[members] = v
        self._shed.clear()
