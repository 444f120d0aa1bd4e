"""Linear solvers: one weight vector, one algorithm a file."""
