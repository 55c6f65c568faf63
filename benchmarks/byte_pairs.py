"""Times byte pairs in the graph and in bulk against other tokenizers.

    python -m benchmarks.byte_pairs

All tokenize the same English, the documentation that comes with Python, with a
vocabulary learned from it, on one thread. KerasHub's remembers words: so it is
new for its one round on a few lines, and on words of which it has seen none,
each word of the text once, after a line of others. Prints the speed of each.
"""

import functools
import json
import pydoc_data.topics
import time
from collections.abc import Callable

from bert_tf.text import byte_pairs, learning_byte_pairs

import keras_hub
import tensorflow as tf
import tokenizers
from tokenizers import models, pre_tokenizers

_ROUNDS = 5
# A few lines, so that KerasHub's has seen few of their words before.
_FEW = 400
_WORDS_OF_LINE = 10


def _best_seconds(function: Callable[[], object], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _show(
    name: str, lines: list[str], work: Callable[[], object], rounds: int
) -> None:
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    speed = megabytes / _best_seconds(work, rounds)
    print(f"{name:40} {speed:8.3f} MB/s", flush=True)


def _each_once(lines: list[str]) -> list[str]:
    """Returns lines of other lines' words, each of which stands there once."""
    words = list(dict.fromkeys(" ".join(lines).split()))
    return [
        " ".join(words[i : i + _WORDS_OF_LINE])
        for i in range(0, len(words), _WORDS_OF_LINE)
    ]


def main() -> None:
    """Measures all in turn."""
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    topics = pydoc_data.topics.topics.values()
    lines = [line for text in topics for line in text.splitlines() if line]
    words = learning_byte_pairs.count_words(lines)
    vocabulary = learning_byte_pairs.learn(words, vocab_size=4000)
    bulk = vocabulary.bulk_tokenizer()
    tokenizer = byte_pairs.BytePairTokenizer(vocabulary)
    in_graph = tf.function(tokenizer.tokenize, autograph=False)
    # It remembers words from round to round, which is to its advantage.
    merges = list(vocabulary.merges)
    library = tokenizers.Tokenizer(models.BPE(dict(vocabulary.ids), merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    few, unseen = lines[:_FEW], _each_once(lines)
    for name, asked in (("few lines", few), ("words never seen", unseen)):
        theirs = keras_hub.tokenizers.BytePairTokenizer(
            json.loads(vocabulary.files["vocab.json"]),
            [" ".join(pair) for pair in merges],
        )
        theirs(["0"])  # Its graph is made, and our words are new to it.
        work = functools.partial(theirs, asked)
        _show(f"KerasHub, new, {name}", asked, work, 1)
    in_graph(tf.constant(few))
    batch = tf.constant(unseen)
    _show("in the graph, words never seen", unseen, lambda: in_graph(batch), 3)
    batch, small = tf.constant(lines), tf.constant(few)
    _show("in the graph, same few lines", few, lambda: in_graph(small), 3)
    _show("in the graph", lines, lambda: in_graph(batch), _ROUNDS)
    _show(
        "tokenizers, line by line",
        lines,
        lambda: [library.encode(line).ids for line in lines],
        _ROUNDS,
    )
    _show("in bulk", lines, lambda: bulk.tokenize(lines), _ROUNDS)


if __name__ == "__main__":
    main()
