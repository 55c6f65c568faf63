"""Encoders and vocabularies that few people need, which modules register.

Modules here import the package; nothing in the package imports them by name.
"""

# Imports all modules here, in an order in which each finds what it needs.
from bert_tf.encoders import families  # noqa: F401
