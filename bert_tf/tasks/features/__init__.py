"""Vectors of pieces, words and texts."""
