"""The read-only doors: which source files there are, what they hold, and the text of every one as DuckDB reads it."""
