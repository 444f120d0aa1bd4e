"""Linear solvers: one algorithm (or one family that shares its derivation) a file."""
