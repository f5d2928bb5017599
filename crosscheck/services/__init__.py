"""Real services on 127.0.0.1, each a context manager that stops what it started."""
