"""Kernel models: an expansion over points, for two classes or many, and base classes of solvers.

kernel_base.py, novelty_base.py
    The model of every kernel solver: points, signed coefficients, offset. Base classes of kernel
    solvers, of those with classes, and of novelty detectors.
multiclass.py
    One-vs-one classification: training of all pairs of classes, one by one or together.
pairs.py, ovo_model.py
    Pairs of classes and their votes; all pairs as one problem; their models over shared points.
certificates.py
    Bounds on the distance of a model from its optimum, computed from the model.
"""
