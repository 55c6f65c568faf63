"""Times our byte-pair tokenizers, in graphs and in bulk, against others.

    python -m benchmarks.byte_pairs

All tokenize the same English text, the documentation that comes with Python,
with a vocabulary learned from it, on one thread. KerasHub's caches words, so it
runs only one round: on a few lines, and on each distinct word of the text once,
after it has seen other lines. Prints the speed of each.
"""

import functools
import json
import pydoc_data.topics
import time
from collections.abc import Callable

from bert_tf.text import graph_byte_pairs, learning_byte_pairs

import keras_hub
import tensorflow as tf
import tokenizers
from tokenizers import models, pre_tokenizers

_ROUNDS = 5
# Few lines, so that KerasHub's tokenizer has seen few of their words before.
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
    """Returns lines with each distinct word of other lines once."""
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
    tokenizer = graph_byte_pairs.BytePairTokenizer(vocabulary)
    in_graph = tf.function(tokenizer.tokenize, autograph=False)
    # It caches words across rounds, which is to its advantage.
    merges = list(vocabulary.merges)
    library = tokenizers.Tokenizer(models.BPE(dict(vocabulary.ids), merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    few, unseen = lines[:_FEW], _each_once(lines)
    for name, asked in (("few lines", few), ("words never seen", unseen)):
        theirs = keras_hub.tokenizers.BytePairTokenizer(
            json.loads(vocabulary.files["vocab.json"]),
            [" ".join(pair) for pair in merges],
        )
        theirs(["0"])  # Builds its graph without caching our words.
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
