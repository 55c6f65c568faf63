r"""How fast an encoder-decoder writes texts, with and without cached keys.

    python -m benchmarks.beam_search_speed --tokens=64 --batch=16

The model has random weights, and its targets have the full length. Prints
tokens/s of finished targets.
"""

import argparse
import time

from bert_tf.contrib import encoder_decoders
from bert_tf.encoders import families
from bert_tf.seq2seq import beam_search, decoder

import numpy as np
import tensorflow as tf


def _seconds(function, inputs):
    """Returns the seconds of a call, after a call that traces."""
    function(inputs)  # Traced.
    start = time.perf_counter()
    function(inputs)["target_ids"].numpy()
    return time.perf_counter() - start


def main():
    """Prints a line for each number of beams."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        *(("tokens", 64), ("batch", 16), ("source", 32)),
        *(("hidden", 256), ("layers", 3), ("vocabulary", 8000)),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    config = encoder_decoders.VaswaniConfig(
        vocab_size=args.vocabulary,
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.hidden // 64,
        intermediate_size=4 * args.hidden,
    )
    model = decoder.Seq2Seq(families.make(config))
    rng = np.random.default_rng(0)
    ids = rng.integers(5, args.vocabulary, [args.batch, args.source])
    inputs = {"input_ids": tf.constant(ids, tf.int32)}
    for beams in (1, 4):
        speeds = {}
        for caches in (True, False):
            model.search = beam_search.Search(
                start=2,
                end=args.vocabulary,  # Is never predicted.
                pad=0,
                tokens=args.vocabulary,
                max_length=args.tokens,
                beams=beams,
                caches=caches,
            )
            seconds = _seconds(tf.function(lambda x: model(x)), inputs)
            speeds[caches] = args.batch * args.tokens / seconds
        print(
            f"{beams} beams, {args.tokens} tokens: "
            f"{speeds[True]:,.0f} tokens/s with caches, "
            f"{speeds[False]:,.0f} without: "
            f"{speeds[True] / speeds[False]:.1f} times as fast"
        )


if __name__ == "__main__":
    main()
