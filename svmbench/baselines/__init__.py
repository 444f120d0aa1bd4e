"""Other people's solvers behind this project's contract: what the papers are compared with."""
