"""Times the tokenizer in the graph against the Python reference.

    python -m benchmarks.tokenization

Both tokenize the same English text, the documentation that comes with Python,
with a vocabulary learned from it, on one core. Prints the speed of each, the
ratio, and the number of texts on which they differ, which must be 0.
"""

import pydoc_data.topics
import time
from collections.abc import Callable

from bert_tf import tokenization
from bert_tf.text import learning, text_graph

import tensorflow as tf

_ROUNDS = 5


def best_seconds(function: Callable[[], object]) -> float:
    """Returns the time of the fastest round, which has the least noise."""
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Measures both in turn and prints the ratio."""
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    topics = pydoc_data.topics.topics.values()
    lines = [line for text in topics for line in text.splitlines() if line]
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    words = learning.count_words(lines, do_lower_case=True)
    pieces = learning.learn(words, vocab_size=8000)
    reference = tokenization.FullTokenizer.from_vocab(
        {piece: i for i, piece in enumerate(pieces)}, do_lower_case=True
    )
    in_graph = text_graph.BertTokenizer(pieces, do_lower_case=True)
    compiled = tf.function(in_graph.tokenize, autograph=False)
    batch = tf.constant(lines)

    def by_reference():
        return [
            reference.convert_tokens_to_ids(reference.tokenize(line))
            for line in lines
        ]

    def by_graph():
        return compiled(batch)

    different = sum(
        ours != theirs
        for ours, theirs in zip(
            by_graph().to_list(), by_reference(), strict=True
        )
    )
    slow, fast = best_seconds(by_reference), best_seconds(by_graph)
    print(f"texts: {len(lines)}, {megabytes:.2f} MB of English")
    print(f"Python reference: {megabytes / slow:6.2f} MB/s")
    print(f"in the graph:     {megabytes / fast:6.2f} MB/s")
    print(f"ratio: {slow / fast:.1f}, different texts: {different}")


if __name__ == "__main__":
    main()
