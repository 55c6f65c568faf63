"""Exports models as SavedModels and to other runtimes."""
