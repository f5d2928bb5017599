"""Plans, receipts, rows and errors as text, JSON and metrics; touches no table and starts no engine."""
