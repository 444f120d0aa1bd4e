"""The contract of solvers: base classes, declaration, problems. No kernel code.

base.py
    `Solver`: `prepare`, `train`, `evaluate_objective`; labels are ±1 inside, any two outside;
    weights of classes and samples; warnings of converged models that are of no use.
declaration.py, registry.py
    The form of a declaration; `declare`, which checks it, and every declared solver.
sklearn_bases.py
    scikit-learn's base classes, with types; pickles that know the version that made them.
docstrings.py
    Texts of parameters and attributes, inherited by the docstrings of solvers.
problems.py
    The optimisation problems: primal, dual and gap, from decision values.
linear_base.py
    What linear solvers share.
without_objective.py
    Linear solvers that minimise no objective.
"""
