"""Kernel solvers, one algorithm a file, and the machinery that several of them share."""
