"""Text classification and regression: GLUE's tasks and custom files."""
