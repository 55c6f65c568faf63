"""Labels of words: named entities, parts of speech."""
