"""Files from records: `builder` for a run folder, and other forms of its content."""
