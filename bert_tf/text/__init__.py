"""Tokenizers in the TensorFlow graph, and learning of vocabularies."""
