"""Alternates: which there are, which are due and why, and how fresh they are; values only."""
