"""Types of a config's settings: single values, settings that blocks share, and cells."""
