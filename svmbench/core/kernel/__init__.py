"""Kernel solvers: one algorithm a file, all of the hinge-loss dual with a kernel."""
