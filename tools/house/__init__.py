"""How much code there is, and how much of it a reader opens."""
