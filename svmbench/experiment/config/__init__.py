"""Reading a config: `yaml_source` parses YAML, `loader` makes a `Config` or reports the mistakes.

All mistakes are reported at once, each with its line and column.
"""
