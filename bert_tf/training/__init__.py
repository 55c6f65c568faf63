"""The loop, what it runs on, and what it tells."""
