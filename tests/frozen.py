"""Imported by the server of processes, after all else.

What was imported is the same in all of them: they need not copy it, nor look in
it for cycles. Neither need they make the tables of all characters.
"""

import gc

from bert_tf.text import graph

for do_lower_case in (False, True):
    graph._table(graph.Rules(do_lower_case, do_lower_case, True))
gc.collect()
gc.freeze()
