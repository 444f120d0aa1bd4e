"""The contract of solvers: base classes, declaration, problems. No kernel code.

base.py
    `Solver`: `prepare`, `train`, `certify`; two classes of ±1 inside, any two labels outside.
declaration.py, registry.py
    What a solver says of itself; `declare`, which checks that, and every declared solver.
sklearn_bases.py
    scikit-learn's base classes, with types.
docstrings.py
    Texts of parameters and attributes, inherited by the docstrings of solvers.
problems.py
    The optimisation problems: primal, dual and gap, from decision values.
linear_base.py
    What linear solvers share.
weights.py, labels.py
    Weights of classes and samples; what labels may be.
copies.py
    Copies without a fit, and pickles with their version.
useless.py
    Warnings of converged models that are of no use.
"""
