"""Turns the flags of scripts into models, training plans and data."""
