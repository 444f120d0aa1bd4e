"""Novelty detection: models of normal samples, learnt from normal samples alone.

Problem
    min_alpha  1/2 alpha' K alpha,   sum alpha = 1,   0 <= alpha_i <= u;
    w = sum_i alpha_i phi(x_i),  f(x) = <w, phi(x)> - rho,  normal where f(x) >= 0.
The bound u
    1/(nu N)    the one-class SVM: at most a share nu of the samples lies outside
    none        hard margin: none does, and rho = min_i <w, phi(x_i)> = ||w||^2
    1/N         every sample has the same weight: the Parzen window, whose f is a density
Which file does what
    one_class.py  ``one-class``: the nu-SVM of one class, on csvc's rows and working sets
    min_norm.py   the same with the linear kernel on many samples: Wolfe's algorithm
    svdd.py       ``svdd``: the smallest ball; for RBF the same model
    kde.py        ``kde``: the Gaussian Parzen window with the threshold at its nu-quantile
    active_qp.py  the hard-margin problem on a small set that grows by a point at a time
    fosvm.py      ``fosvm1``, ``fosvm2``: Algorithm 1 of the FOSVM paper with its two selections
References
    Schölkopf, Platt, Shawe-Taylor, Smola and Williamson 2001; Tax and Duin 2004; the FOSVM paper.
"""
