"""Wraps any model as a function of lines of text."""
