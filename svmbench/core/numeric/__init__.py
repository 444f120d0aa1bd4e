"""Numerical tools that know nothing of SVMs.

arrays.py
    Arrays as compiled loops want them.
submatrix.py
    Parts of a stored matrix.
qp.py, conjugate_gradient.py
    A small quadratic program; preconditioned conjugate gradients.
random.py
    Random generators: one for Python, one for compiled loops.
"""
