"""From a config to cells: `planner` lists them, `keys` says what code and data each stands for."""
