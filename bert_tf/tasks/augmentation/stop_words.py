"""Stop words: words with little meaning, which are never replaced."""

from bert_tf.tasks import tables

# TinyBERT's list without "don't", which is three words to a tokenizer.
_WORDS = """
a about above after again against ain all am an and any are aren as at be
because been before being below between both but by can couldn d did didn do
does doesn doing don down during each few for from further had hadn has hasn
have haven having he her here hers herself him himself his i if in into is isn
it its itself just ll m ma me mightn more most mustn my myself needn no nor
not now o of off on once only or other our ours ourselves out over own re s
same shan she should shouldn so some such t than that the their theirs them
themselves then there these they this those through to too under until up ve
very was wasn we were weren while will with won wouldn y you your yours
yourself yourselves
"""
ENGLISH = frozenset(_WORDS.split())


def read(path: str) -> frozenset[str]:
    """Reads stop words, one per line; InputError if the file is not text."""
    words = (line.strip().lower() for _, line in tables.lines(path))
    return frozenset(words) - {""}
