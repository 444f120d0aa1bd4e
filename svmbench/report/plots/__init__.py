"""Plots from records: `curves` reads them, `kinds` and `axes` draw them, `drawing` writes them."""
