"""A tolerance relative to the margin, for the problems whose margin is not 1.

Problem
    The ν-SVC, the one-class SVM and SVDD. A C-SVC's margin is 1, so that its tolerance is a share
    of the margin. The margin of the others is rho (of SVDD the squared radius), which can be of any
    size: where it is below LIBSVM's absolute tolerance, that tolerance accepts nearly any point.
Rule
    The largest violation is at most ``tol * min(1, rho)``, both in the box's scale, but need not be
    below the rounding of the gradient. Where rho is at least 1, that is LIBSVM's rule.
A margin that is 0
    The optimum of the ν-SVC is w = 0, rho = 0 where the reduced convex hulls of the classes meet
    (Crisp and Burges 1999), and that of the one-class SVM where the origin lies in the reduced
    convex hull. Then no violation is small relative to rho. A margin is proven as soon as the
    primal value is below 0, the value of w = 0: the duality gap is then below the absolute value of
    the dual. The search goes on for a limited number of steps while that is not so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from svmbench.core.csvc.box import Box, gap_of_box, limits
from svmbench.core.csvc.whole_matrix import CONVERGED, MAX_ITER, NO_MARGIN, STALLED

#: A gradient is not known better than so many roundings of the largest kernel value times the sum
#: of the multipliers.
ROUNDINGS = 8.0

#: The next violation to reach: as a share of the one that is asked for, once there is a margin; and
#: of the last one while there is none.
SHORT, CLOSER = 0.9, 0.1

#: Without a margin the search goes on for so many steps a sample, or for so many times the steps
#: that it has taken, whichever is more.
STEPS_A_SAMPLE, STEPS_AGAIN = 10, 3


@dataclass(frozen=True)
class ShareOfMargin:
    """A tolerance relative to the margin.

    Attributes
    ----------
    tol : float
    margin : callable
        Returns the margin in the box's scale, of the variables and their gradient.
    can_vanish : bool
        Whether a margin of 0 means that the problem has no solution but w = 0.
    """

    tol: float
    margin: Callable[[np.ndarray, np.ndarray], float]
    can_vanish: bool = True


class Tolerance:
    """The violation and the number of steps at which a search looks up.

    Parameters
    ----------
    share : ShareOfMargin or None
        None where the tolerance is absolute.
    tol, max_iter : float, int
    box : Box
    diagonal : ndarray of shape (n,)
        Of the kernel matrix.
    start : (ndarray, ndarray)
        The variables at the start, and their gradient.

    Attributes
    ----------
    now : float
        The violation to reach.
    most : int
        Steps in all after which to stop.
    """

    def __init__(
        self,
        share: ShareOfMargin | None,
        tol: float,
        max_iter: int,
        box: Box,
        diagonal: np.ndarray,
        start: tuple[np.ndarray, np.ndarray],
    ) -> None:
        self.share, self.box, self.now = share, box, tol
        self.most = self.max_iter = max_iter
        if share is None:
            return
        beta, v = start
        size = float(np.max(np.abs(diagonal), initial=0.0)) * float(np.sum(np.abs(beta)))
        size += float(np.max(np.abs(box.linear), initial=0.0))
        self.rounding = ROUNDINGS * np.finfo(np.float64).eps * size
        # The violation at the start has the scale of the kernel, whatever is added to features.
        self.now = max(tol * min(1.0, limits(box, beta, v).gap), self.rounding)

    def settle(self, reason: int, steps: int, beta: np.ndarray, v: np.ndarray) -> int | None:
        """Return why the search is over; or None, and set what it goes on with.

        Parameters
        ----------
        reason : int
            Why it stopped at `now` or `most`: a position in ``REASONS``.
        steps : int
            Taken in all.
        beta, v : ndarray of shape (n,)
        """
        share = self.share
        if share is None or (reason == MAX_ITER and steps >= self.max_iter):
            return reason
        violation = limits(self.box, beta, v).gap
        if share.can_vanish and not has_margin(self.box, beta, v):
            if self.most == self.max_iter:
                more = max(STEPS_A_SAMPLE * len(v), STEPS_AGAIN * steps)
                self.most = min(steps + more, self.max_iter)
            if reason == STALLED or violation <= self.rounding or steps >= self.most:
                return NO_MARGIN
            self.now = max(CLOSER * violation, self.rounding)
            return None
        self.most = self.max_iter
        wanted = max(share.tol * min(1.0, abs(share.margin(beta, v))), self.rounding)
        if violation <= wanted:
            return CONVERGED
        if reason == STALLED:
            return STALLED
        self.now = max(SHORT * wanted, self.rounding)
        return None


def has_margin(box: Box, beta: np.ndarray, v: np.ndarray) -> bool:
    """Return whether the duality gap proves that w is not 0 at the optimum of a ν-problem."""
    dual = 0.5 * float(beta @ (box.linear + v))
    return gap_of_box(box, beta, v) < abs(dual)
