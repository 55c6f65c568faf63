"""Serves SavedModels over HTTP, by the REST paths of TensorFlow Serving."""
