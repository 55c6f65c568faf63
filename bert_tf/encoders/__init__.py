"""The encoders and their table, and what they compute with: layers, ops."""
