"""Word tagging: named entities, parts of speech."""
