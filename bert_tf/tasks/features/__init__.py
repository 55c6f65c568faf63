"""Feature vectors of tokens, words and texts."""
