"""The sides of a benchmark: the same work done by relayout, by Spark, and by DuckDB alone."""
