"""What a config may say: single values, the settings that blocks share, and what a cell is."""
