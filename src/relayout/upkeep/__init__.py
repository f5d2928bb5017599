"""The condition of tables: what it costs to read them as they are, and what would mend that."""
