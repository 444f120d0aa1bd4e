"""The production C-SVC: one quadratic program, solved on a matrix or by working sets.

Problem (``problem`` lists the SVMs that have this form)
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high,   K_ij = k(x_i, x_j);
    fixed sums: for each group of variables, the sum of beta stays as at the start.
    For the C-SVC beta_i = y_i alpha_i, p = y, the bounds are 0 and C y_i, and e'beta = 0 is fixed.
Variables, as in Fan, Chen and Lin 2005
    v = p - K beta, the gradient, which is their -y_i grad f(alpha)_i.
    I_up: the samples with beta_i < high_i. I_low: the samples with beta_i > low_i.
    m(alpha) = max of v over I_up, M(alpha) = min of v over I_low.
    The search ends once the violation m - M is at most tol, LIBSVM's eps.

Who calls whom::

    CSVC.fit (contract/base.py) -> KernelSolver.train (models/kernel_base.py) -> CSVC.solve
      |-- two classes ------------> solver.solve_qp
      |                               |-- stored matrix or < 500 samples --> solver.choose_steps
      |                               |-- up to 2,000 samples: a full matrix -> solver.choose_steps;
      |                               |   a lazy one of few features -> solver.Refinement.
      |                               |   steps_on_lazy_matrix (calls smo.steps_on_matrix)
      |                               |-- more ----------------------------> working_sets (calls
      |                               |                                      smo.steps_on_matrix)
      |                               '-- float32 --> solver.check_in_float64, then more steps
      |-- more classes -----------> pairs.solve_pairs
      |                               |-- steps ---------------------------> select_j … of smo
      |                               |-- float32 --> solver.judge_check, then more steps
      |                               '-- pairs that float32 can't solve ---> solver.solve_qp
      '-- CSVC.solve_along (a path of values of C) -> path.along_c --------> smo.shrinking_steps

What each module does, in the order of use
    estimator.py     ``CSVC``: parameters in, model out
    problem.py       the problem as arrays; m(alpha) and M(alpha), thresholds, the duality gap
    solver.py        ``solve_qp``, the entry for one problem; choice of the method; refinement;
                     stopping rule
    smo.py           steps in phases: select_working_set, solve_pair, update_gradient, shrink
    working_sets.py  more than 2,000 samples: steps inside working sets; ends early if most are free
    pairs.py         one problem per pair of classes; all pairs share kernel rows
    path.py          ascending values of C on one matrix, as one compiled function

Indices: what a position counts, from the largest set to the smallest
    sample       0 ... n_samples - 1, all samples of the kernel source; keys of the row cache
    active       positions of the samples that may still change (``ActiveSamples``), ascending
    working set  positions, among the active samples, of those that steps may change now
    slot         where a kernel row is in memory (``RowCache``); each cached sample has one slot

Reasons for the choices
    - Kernel rows in float32 take half the memory and time. Their error of 1e-7 grows to 1e-5 in
      the gradient. So a solution is returned only once v is computed in float64 for every sample
      that could violate: those with v close enough to m or M to decide m - M.
    - Below 500 samples everything is float64: a check costs more than float32 saves.
    - Up to 2,000 samples the full matrix is computed, unless few rows turn out to be enough.
    - With working sets, most steps read a small block of values that stays in the CPU's cache.
Papers
    Fan, Chen and Lin 2005 (WSS 2); Joachims 1999 (working sets, shrinking).
"""

from svmbench.core.csvc.estimator import CSVC
from svmbench.core.csvc.problem import QPProblem, make_qp, start_of_sum, thresholds
from svmbench.core.csvc.solver import QPResult, RelativeTolerance, solve_qp

__all__ = [
    "CSVC",
    "QPProblem",
    "QPResult",
    "RelativeTolerance",
    "make_qp",
    "solve_qp",
    "start_of_sum",
    "thresholds",
]
