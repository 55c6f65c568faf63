"""Classes and numbers for texts and pairs: GLUE's tasks, own files."""
