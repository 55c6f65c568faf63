"""Serves SavedModels over HTTP with the REST API of TensorFlow Serving."""
