"""The encoders, their table, and their building blocks: layers and ops."""
