"""Reading and writing checkpoints in every supported format.

`formats` opens and writes all of them. Each format has a module for its files
and a table of its names: `original`, `huggingface`, `keras_hub`. An open
checkpoint is an `opened.Checkpoint`, with the original's names.
"""
