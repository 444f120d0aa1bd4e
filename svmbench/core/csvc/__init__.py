"""The production C-SVC: one quadratic program, solved on a matrix or by working sets.

Problem (``problem`` has the table of the SVMs that are of this form)
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high,   kept sums of beta.
    For the C-SVC beta_i = y_i alpha_i, p = y, the bounds are 0 and C y_i, and one sum is kept: 0.
Variables, as in Fan, Chen and Lin 2005
    v = p - K beta, the gradient, which is their -y_i grad f(alpha)_i.
    I_up: the samples with beta_i < high_i. I_low: the samples with beta_i > low_i.
    m(alpha) = max of v over I_up, M(alpha) = min of v over I_low.
    The search ends once m - M <= tol (LIBSVM's eps).

Who calls whom::

    estimator.CSVC.fit
      |-- two classes ------------> solver.solve_qp
      |                               |-- stored matrix, < 500 samples --> smo.shrinking_steps
      |                               |-- up to 2,000 samples -----------> smo.steps_on_matrix
      |                               |-- more --------------------------> working_sets, which takes
      |                               |                                    smo.steps_on_matrix
      |                               '-- float32: solver.check_in_float64, and go on
      |-- more classes -----------> pairs.solve_pairs
      |                               |-- steps -------------------------> the acts of smo
      |                               |-- float32: the check of solver, and go on
      |                               '-- pairs that float32 can't solve -> solver.solve_qp
      '-- solve_along, values of C -> path.along_c ----------------------> smo.shrinking_steps

Which module does what, in the order of use
    estimator.py     ``CSVC``: parameters in, model out
    problem.py       the problem as arrays; m(alpha) and M(alpha), thresholds, the duality gap
    solver.py        ``solve_qp``: THE ONE PLACE THAT CHOOSES THE METHOD; refinement; stopping rule
    smo.py           the steps on a matrix: select_working_set, solve_pair, update_gradient, shrink
    working_sets.py  more than 2,000 samples: steps inside working sets, rows made when needed
    pairs.py         the pairs of several classes on rows that they share
    path.py          ascending values of C on one matrix, as one compiled function

Index spaces, each with its own word
    whole 0 ... n_samples - 1  every sample of the kernel source; the row cache names rows by it
      > active                 those that may still change: ``ActiveSamples`` (whole, ascending)
          > working set        those that steps are taken on: ``WorkingSetSearch`` (active)
    slot                       the place of a row in memory: ``RowCache`` (one a whole sample)

Reasons for the choices
    - Kernel rows in float32 take half the memory and time. Their error of 1e-7 grows to 1e-5 in
      the gradient: a solution counts only once the gradient near the gap was computed in float64.
    - Below 500 samples everything is float64: a check costs more than float32 saves.
    - Up to 2,000 samples the full matrix is computed: choosing rows costs more than making them.
    - Working sets let most steps read a small block that stays in the cache of the processor.
Papers
    Fan, Chen and Lin 2005 (WSS 2); Joachims 1999 (working sets, shrinking).
"""

from svmbench.core.csvc.estimator import CSVC
from svmbench.core.csvc.problem import QPProblem, make_qp, start_of_sum, thresholds
from svmbench.core.csvc.solver import QPResult, ShareOfMargin, solve_qp

__all__ = [
    "CSVC",
    "QPProblem",
    "QPResult",
    "ShareOfMargin",
    "make_qp",
    "solve_qp",
    "start_of_sum",
    "thresholds",
]
