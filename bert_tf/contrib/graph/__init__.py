"""Tokenizers in the graph for the vocabularies of contrib.

A vocabulary names its module here, which is imported with the first tokenizer:
tensorflow_text may be missing where models are only trained.
"""
