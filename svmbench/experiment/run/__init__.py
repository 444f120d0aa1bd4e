"""Running cells: `session` goes from request to records, `loop` over cells; `worker` runs one."""
