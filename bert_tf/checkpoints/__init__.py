"""Weights in and out, whatever the format.

`formats` opens and writes any of them. Each has a module with its files and a
table of its names: `original`, `huggingface`, `keras_hub`. Between them a BERT
is an `opened.Checkpoint`, under the original's names.
"""
