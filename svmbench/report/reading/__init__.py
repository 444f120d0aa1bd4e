"""What a run folder has: `folders` finds it, `records` reads it, `newest` picks the results."""
