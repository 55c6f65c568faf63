"""Texts to be cut into segments, and the resulting segments."""

import random

from bert_tf.pretraining_data import pretraining_sequences, segments

import numpy as np


def make_text(lengths, first_key=0):
    """Returns documents of sentences with these numbers of tokens."""
    return segments.Text(
        pretraining_sequences.borders([x for doc in lengths for x in doc]),
        pretraining_sequences.borders([len(doc) for doc in lengths]),
        np.arange(first_key, first_key + len(lengths), dtype=np.uint64),
    )


def random_lengths(seed=0, number=40, sentences=12, tokens=30):
    rng = random.Random(seed)
    return [
        [rng.randint(1, tokens) for _ in range(rng.randint(1, sentences))]
        for _ in range(number)
    ]


def document_starts(text):
    return text.sentences[text.documents]


def documents_of(text, tokens):
    """Returns the document that each token belongs to."""
    return np.searchsorted(document_starts(text), tokens, side="right") - 1


def cut(function, text, *args, repetitions=1, seed=1):
    """Returns the ranges of several repetitions."""
    parts = [function(text, *args, seed, i) for i in range(repetitions)]
    names = ("starts", "ends", "labels")
    return segments.Ranges(
        *(np.concatenate([getattr(x, name) for x in parts]) for name in names)
    )
