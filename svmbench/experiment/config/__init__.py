"""Reading a config: `yaml_source` reads text, `loader` makes a `Config` of it or names mistakes.

All mistakes are told at once, each with its line and column.
"""
