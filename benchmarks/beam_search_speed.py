r"""How fast an encoder-decoder writes texts, with and without cached keys.

    python -m benchmarks.beam_search_speed --tokens=64 --batch=16
    python -m benchmarks.beam_search_speed --model_dir=run --input_file=a.txt

The model has random weights, and its targets have the full length; or it is the
model of a run, which translates the first lines of a file and ends its targets.
Prints tokens/s of targets.
"""

import argparse
import dataclasses
import itertools
import time

from bert_tf import vocabularies
from bert_tf.checkpoints import formats, trained_models
from bert_tf.contrib import encoder_decoders
from bert_tf.encoders import families
from bert_tf.seq2seq import (
    beam_search,
    decoder,
    seq2seq_model,
    seq2seq_options,
)
from bert_tf.text import text_graph

import numpy as np
import tensorflow as tf


def _speed(function, inputs, pad):
    """Returns tokens/s of a call, after a call that traces."""
    function(inputs)  # Traced.
    start = time.perf_counter()
    ids = function(inputs)["target_ids"].numpy()
    return np.count_nonzero(ids != pad) / (time.perf_counter() - start)


def _random(args):
    """Returns a model, its search and its inputs."""
    config = encoder_decoders.VaswaniConfig(
        vocab_size=args.vocabulary,
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.hidden // 64,
        intermediate_size=4 * args.hidden,
    )
    rng = np.random.default_rng(0)
    ids = rng.integers(5, args.vocabulary, [args.batch, args.source])
    search = beam_search.Search(
        start=2,
        end=args.vocabulary,  # Is never predicted.
        pad=-1,
        tokens=args.vocabulary,
        max_length=args.tokens,
    )
    model = decoder.Seq2Seq(families.make(config))
    return model, search, {"input_ids": tf.constant(ids, tf.int32)}


def _trained(args):
    """Returns the model of a run, its search and its inputs."""
    source = formats.open_checkpoint(args.model_dir)
    if source.config is None:
        raise SystemExit(f"{args.model_dir} has no config.")
    model = decoder.Seq2Seq(families.make(source.config))
    trained_models.restore(model, source, "seq2seq")
    path = vocabularies.path_in(args.model_dir)
    if path is None:
        raise SystemExit(f"{args.model_dir} has no vocabulary.")
    vocabulary = vocabularies.open(path, args.lower)
    with open(args.input_file, encoding="utf-8") as file:
        lines = [x.rstrip("\n") for x in itertools.islice(file, args.batch)]
    tokenizer = text_graph.make_tokenizer(vocabulary)
    inputs = tokenizer.pack(tokenizer.tokenize(lines), None, args.tokens, False)
    search = seq2seq_model.make_search(
        vocabulary, seq2seq_options.Generation(args.tokens)
    )
    return model, search, inputs


def main():
    """Prints a line for each number of beams."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        *(("tokens", 64), ("batch", 16), ("source", 32)),
        *(("hidden", 256), ("layers", 3), ("vocabulary", 8000)),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("model_dir", "input_file"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--lower", action="store_true", help="of texts")
    args = parser.parse_args()
    model, search, inputs = (_trained if args.model_dir else _random)(args)
    for beams in (1, 4):
        speeds = {}
        for caches in (True, False):
            model.search = dataclasses.replace(
                search, beams=beams, caches=caches
            )
            function = tf.function(lambda x: model(x))
            speeds[caches] = _speed(function, inputs, search.pad)
        print(
            f"{beams} beams, max {args.tokens} tokens: "
            f"{speeds[True]:,.0f} tokens/s with caches, "
            f"{speeds[False]:,.0f} without: "
            f"{speeds[True] / speeds[False]:.1f} times as fast"
        )


if __name__ == "__main__":
    main()
