"""Solvers of other packages and programs, wrapped in the contract of this suite."""
