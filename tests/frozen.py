"""Imported by the server of processes, after all else.

What was imported is the same in all of them: they need not copy it, nor look in
it for cycles.
"""

import gc

gc.collect()
gc.freeze()
