"""Numerical tools below all solvers.

arrays.py
    Arrays as compiled loops want them.
submatrix.py
    Parts of a stored matrix.
cholesky.py
    Cholesky factors inside compiled loops.
qp.py, conjugate_gradient.py
    A small quadratic program, and the cuts of a cutting-plane loop over it; preconditioned
    conjugate gradients.
random.py
    Random generators: one for Python, one for compiled loops.
"""
