"""Any model as a function of lines of text."""
