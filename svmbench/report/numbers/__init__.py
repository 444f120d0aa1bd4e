"""Numbers from records: statistics, estimates, comparisons, and boards over many runs."""
