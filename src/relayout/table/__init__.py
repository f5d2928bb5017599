"""The values relayout reasons about and their algebra; no I/O, no clock, no engine."""
