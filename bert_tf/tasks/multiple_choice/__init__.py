"""The best of several endings."""
