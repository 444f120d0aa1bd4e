"""Settings of a config: single values, the settings that blocks share, and cells."""
