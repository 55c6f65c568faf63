"""Text to ids in the graph; learning of vocabularies."""
