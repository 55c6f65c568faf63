"""What the data of each task says: files, texts, labels, metrics."""
