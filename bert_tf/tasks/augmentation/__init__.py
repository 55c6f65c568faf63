"""More rows for a table: words that a masked language model puts in place."""
