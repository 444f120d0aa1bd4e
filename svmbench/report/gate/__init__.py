"""Comparisons of two folders of results: `sides` reads them, `compare` finds regressions."""
