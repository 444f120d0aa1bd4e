"""The production kernel SVM: one problem, solved on a matrix or on rows made when needed.

Problem (``box`` says which SVMs it is)
    max_beta  p'beta - 1/2 beta'K beta,   low <= beta <= high,   kept sums of beta;
    for the C-SVC beta_i = y_i alpha_i, p = y, bounds 0 and C y_i, and the one sum is 0.
Variables
    beta; v = p - K beta, their gradient; a sample can go `up` where beta < high, `down` where
    beta > low; gap = the largest v of what can go up - the smallest of what can go down, and the
    search ends once it is at most tol (LIBSVM's eps).
Index spaces, each with its own word
    whole 0 … n_samples - 1   every sample of the kernel source; what the store calls its rows by
      > active                those that may still change: ``Active.members`` (whole, ascending)
          > working set       those that steps are taken on: ``BlockSearch.working`` (active)
    slot                      where the store keeps a row: ``RowStore.slots`` (one a whole sample)
Which file does what, in the order of use
    classifier.py    ``CSVC``: parameters in, model out; a path of C on one matrix
    box.py           the problem as arrays; its limits, gap and thresholds
    driver.py        ``solve_box``: THE ONE PLACE THAT CHOOSES THE METHOD; rounds until checked
    margin_tolerance.py  tolerances relative to rho, and what to do where it is 0
    whole_matrix.py  steps on a matrix in memory: pairs, pairs within groups, two on their own
    growing_matrix.py  the same on rows that are made when a step first needs them
    passes.py        what such a step does over all samples, vectorised
    narrowing.py     pairs among the samples that still move; the duality gap as an end
    c_path.py        all values of C one after another on a matrix, as one compiled function
    all_pairs.py     all pairs of several classes on rows that they share
    pair_loops.py    its compiled loops
    working_sets.py  more samples than that: steps within working sets, shrinking
    active.py        the samples that are still active, and the gradients of the others
    exact.py         the gradient in double precision, where it matters
Of core/kernels
    float32_rows     kernel rows in single precision, from dense, binary or any inputs
    difference_rows  the same from differences of coordinates, for few or unscaled features
    threads          threads for these and the gradient, on request; the model is bitwise the same
References
    Fan, Chen and Lin 2005 (choice of the pair); Joachims 1999 (working sets, shrinking).
"""

from svmbench.core.csvc.box import Box, fill, make_box, thresholds
from svmbench.core.csvc.classifier import CSVC
from svmbench.core.csvc.driver import Found, solve_box
from svmbench.core.csvc.margin_tolerance import ShareOfMargin

__all__ = ["CSVC", "Box", "Found", "ShareOfMargin", "fill", "make_box", "solve_box", "thresholds"]
