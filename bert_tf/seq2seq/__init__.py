"""Encoder-decoder Transformers, which write a text for a text."""
