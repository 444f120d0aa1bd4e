"""Numerical tools that know nothing of SVMs.

arrays.py
    Arrays as compiled loops want them.
submatrix.py
    Parts of a stored matrix.
qp.py, conjugate_gradient.py
    A small quadratic program; conjugate gradients.
seeded.py
    The random generator of every compiled loop.
prefetch.py
    A hint to the processor that memory is read soon.
"""
