"""Multiple choice: selects the best of several endings."""
