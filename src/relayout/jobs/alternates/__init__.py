"""Keeping alternates in step with their bases: found, made, filled, followed, taken away."""
