"""The clock, a call in a process of its own, the machine's description, compiling ahead."""
