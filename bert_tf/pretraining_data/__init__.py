"""From text to records for pre-training. No TensorFlow."""
