"""The working set of a 1-slack cutting-plane loop over projections: cuts, weights and their QP."""

from __future__ import annotations

import numpy as np

from svmbench.core.numeric.qp import simplex_qp

#: A cut that has had no weight in this many QPs in a row is dropped.
PATIENCE = 50

#: Pair steps of one QP; a QP that needs more goes on at the next cut.
QP_STEPS = 200_000

#: Pair steps of all QPs together for each cut that is allowed.
STEPS_A_CUT = 500


class WorkingSet:
    """The cuts in use: their projections, their Gram matrix and their weights."""

    def __init__(
        self,
        n_samples: int,
        total: float,  # sum of the weights: N C
    ) -> None:
        self.total = total
        # (n_cuts, n_basis): coordinates of the projections, of which the first is the cut c = 0
        self.P = np.zeros((1, 0))
        self.H = np.zeros((1, 1))  # (n_cuts, n_cuts): P P'
        self.Deltas = np.zeros(1)  # (n_cuts,): shares of violated samples
        self.alpha = np.array([total])  # (n_cuts,): weights
        # uint8 (n_cuts, n_samples): the cuts themselves; empty once the basis is full
        self.members = np.zeros((1, n_samples), dtype=np.uint8)
        self._idle = np.zeros(1, dtype=np.int64)
        self.n_dropped = 0

    @property
    def w(self) -> np.ndarray:
        """Coordinates of the weighted sum of the cuts, shape (n_basis,)."""
        return self.alpha @ self.P

    def dual(self) -> float:
        """Return the dual value of the weights in the span."""
        return float(self.Deltas @ self.alpha) - 0.5 * float(np.sum(self.w**2))

    def lengthen(self, coordinates: np.ndarray) -> None:
        """Append a coordinate to each projection, shape (n_cuts,)."""
        self.P = np.column_stack([self.P, coordinates])
        self.H += np.outer(coordinates, coordinates)

    def add(self, p: np.ndarray, Delta: float, violated: np.ndarray | None) -> None:
        """Append a cut, of weight 0; `violated` are its members where they still matter."""
        products = self.P @ p
        last = np.array([[p @ p]])
        self.H = np.block([[self.H, products[:, None]], [products[None, :], last]])
        self.P, self.Deltas = np.vstack([self.P, p]), np.append(self.Deltas, Delta)
        self.alpha, self._idle = np.append(self.alpha, 0.0), np.append(self._idle, 0)
        if violated is not None:
            self.members = np.vstack([self.members, violated])

    def forget_members(self) -> None:
        """Give back the memory of the cuts' members: a full basis does not ask for them."""
        self.members = self.members[:0]

    def optimise(
        self,
        gap: float,
        most: int = QP_STEPS,  # pair steps that are left; one QP takes no more than `QP_STEPS`
    ) -> int:
        """Solve the QP to a gap, drop cuts that are idle, return the number of pair steps."""
        most = min(most, QP_STEPS)
        steps, _ = simplex_qp(self.H, self.Deltas, self.total, self.alpha, gap, most)
        self._idle = np.where(self.alpha > 0.0, 0, self._idle + 1)
        self._idle[0] = 0
        if np.any(self._idle > PATIENCE):
            kept = np.flatnonzero(self._idle <= PATIENCE)
            self.n_dropped += len(self._idle) - len(kept)
            self.H, self.P = self.H[np.ix_(kept, kept)], self.P[kept]
            self.Deltas, self.alpha, self._idle = (
                self.Deltas[kept],
                self.alpha[kept],
                self._idle[kept],
            )
            if len(self.members):
                self.members = self.members[kept]
        return steps
