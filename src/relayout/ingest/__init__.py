"""Declared sources to tables, batch by batch: assignment, schema, plan, advice; `run` gives the batches to Spark."""
