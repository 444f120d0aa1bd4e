"""ν-SVMs, most of them without a free offset: solvers, and safe screening along a path.

Problem (``box_qp`` says which SVMs it is)
    min_a  1/2 a'Q a + q'a,   0 <= a_i <= 1,   e'a = total: ν-SVM and one-class SVM in one scale.
Variables
    a; d = Q a + q, the gradient, where d_i with q = 0 is l times the papers' y_i <w, phi(x_i)>;
    v = -d; gap = a'd - min <d, s> over the feasible s, which bounds the distance of the objective
    from the optimum.
Abbreviations
    SRBO: safe screening rule with bi-level optimization, of Yang, Chen, Zhang, Xu, Shi and Zhao.
    DCDM: dual coordinate descent method, their Algorithm 2. DVI: screening of C-SVMs by the dual
    problem via variational inequalities (Wang, Wonka and Ye 2014). WSS 2: the choice of a pair by
    second-order information (Fan, Chen and Lin 2005).
Which file does what, in the order of use
    nu_svc.py        ``NuSVC``, whose offset is free: not of this form, solved by ``csvc``
    nu_pairs.py      its pairs of more than two classes, trained together on shared kernel rows
    nu_problem.py    its problem; the range of nu, and the warning where there is no margin
    nu_svm.py, c_svm.py   the other estimators, each with a path along nu or C
    nu_path.py       ``NuPath``: a whole path of nu from Python, in the paper's scale
    full_matrix.py   base class of the estimators: Q in memory, made once for a path
    path.py          the path: delta, screening test, the remaining problem, each timed
    screening.py     balls that hold w, bounds of the margin, the multipliers that they settle
    qp_solvers.py    the solvers by name: QP libraries in place of the paper's quadprog (MATLAB),
                     and those of the next three files:
      pairwise.py        ``dcdm``: single multipliers; ``dcdm-pairwise``: pairs, then if needed
      block_pivoting.py  many multipliers at a time, and
      interior.py        interior points
    box_qp.py        the problem as arrays; gap, margin, order statistics
"""
