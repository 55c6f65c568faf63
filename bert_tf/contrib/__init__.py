"""Encoders that few people need: a module each, which registers its own.

Modules here import the package; nothing in the package imports them by name.
"""
