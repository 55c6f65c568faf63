"""TFRecords: their types, writing, reading, masking, and the pipeline."""
