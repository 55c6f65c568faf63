"""Data augmentation: a masked language model replaces words of a table."""
