"""Better files for the rows of a table: which files, in which groups, and why."""
