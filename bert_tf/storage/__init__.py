"""Files and file systems: finding, checking, locking."""
