"""The checks of `relayout doctor`: each returns findings, or raises what it met, and leaves nothing behind."""
