"""Running cells: `session` runs a request, `loop` goes over its cells, `worker` runs one cell."""
