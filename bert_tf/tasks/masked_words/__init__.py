"""Words for the gaps of a text."""
