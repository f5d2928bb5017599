"""What was done, as values: batches, fingerprints, stamps; and what is open because of it."""
