"""Prediction of masked words in texts."""
