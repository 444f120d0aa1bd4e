"""What training leaves behind: an expansion over points, for two classes or many.

expansion.py
    The model of every kernel solver: points, signed coefficients, offset.
kernel_base.py, kernel_classifier.py, novelty_base.py
    Base classes of kernel solvers, of those with classes, and of novelty detectors.
multiclass.py
    One against one, and one against the rest.
pairs.py, pair_training.py, joint_pairs.py, shared_points.py, several.py
    Pairs of classes: their votes, their training one by one or together, and their common points.
"""
