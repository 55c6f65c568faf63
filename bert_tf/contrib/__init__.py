"""Encoders that few people need: a module each, which registers its own.

Modules here import the package; nothing in the package imports them by name.
"""

# Imports all modules here, in an order in which each finds what it needs.
from bert_tf.encoders import families  # noqa: F401
