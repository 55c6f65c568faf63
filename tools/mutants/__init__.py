"""Mutation testing: small faults in the code that tests should detect."""
