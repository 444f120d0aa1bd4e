"""From a config to cells: `planner` lists them, `keys` hashes the code and data of each."""
