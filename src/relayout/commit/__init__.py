"""The only room that changes the world: tables, batches, the ledger; every commit carries its stamp."""
