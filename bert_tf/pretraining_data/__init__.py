"""Creates pre-training records from text, without TensorFlow."""
