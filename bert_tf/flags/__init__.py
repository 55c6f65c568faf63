"""Flags: how scripts define, read, explain and keep them."""
