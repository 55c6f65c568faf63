"""Answers to questions as spans of a paragraph."""
