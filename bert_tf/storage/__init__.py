"""Files and their systems: finding, checking, locking."""
