"""What runs inside Spark tasks: whole files in, laid out files out; no session, no table, no commit."""
