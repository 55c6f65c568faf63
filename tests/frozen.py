"""Imported last by the fork server.

Prepares everything that processes share: imported modules are neither copied
nor scanned for cycles by them, and tables of all characters exist already.
"""

import gc

from bert_tf.text import text_graph

for do_lower_case in (False, True):
    text_graph._table(text_graph.Rules(do_lower_case, do_lower_case, True))
gc.collect()
gc.freeze()
