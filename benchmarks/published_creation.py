"""The original's data creation in plain Python, as a baseline for ours.

The algorithm of google-research/bert (create_pretraining_data.py and
tokenization.py, 2018-2019), with the same costs: all documents in memory as
lists of strings, words split character by character without a cache, masks
chosen token by token, which reads an absl flag each time, and one
`tf.train.Example` after another.
"""

import collections
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.pretraining_data import pretraining_sequences
from tests import tokenizer_rules

import tensorflow as tf
from absl import flags

_FLAGS = flags.FlagValues()
flags.DEFINE_bool("do_whole_word_mask", False, "", flag_values=_FLAGS)
_FLAGS.mark_as_parsed()

Documents = list[list[list[str]]]


class _Masked(NamedTuple):
    position: int
    label: str


class Instance(NamedTuple):
    """A masked pair of segments."""

    tokens: list[str]
    segments: list[int]
    is_random_next: bool
    positions: list[int]
    labels: list[str]


def create(
    lines: Sequence[str],
    tokenizer: tokenizer_rules.Tokenizer,
    settings: pretraining_sequences.Settings,
    path: str,
) -> int:
    """Writes the records of a text; returns their number."""
    rng = random.Random(12345)
    documents: Documents = [[]]
    for line in lines:
        if not line:
            documents.append([])
        elif tokens := tokenizer.pieces(line):
            documents[-1].append(tokens)
    documents = [document for document in documents if document]
    rng.shuffle(documents)
    words = list(tokenizer.vocab)
    instances = [
        instance
        for _ in range(settings.dupe_factor)
        for index in range(len(documents))
        for instance in _of_document(documents, index, words, settings, rng)
    ]
    rng.shuffle(instances)
    with tf.io.TFRecordWriter(path) as writer:
        for instance in instances:
            writer.write(_serialize(instance, tokenizer, settings))
    return len(instances)


def _of_document(
    documents: Documents,
    index: int,
    words: list[str],
    settings: pretraining_sequences.Settings,
    rng: random.Random,
) -> Iterator[Instance]:
    document = documents[index]
    longest = settings.max_seq_length - 3
    target = longest
    if rng.random() < settings.short_seq_prob:
        target = rng.randint(2, longest)
    chunk: list[list[str]] = []
    length = place = 0
    while place < len(document):
        chunk.append(document[place])
        length += len(document[place])
        if place == len(document) - 1 or length >= target:
            cut = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            first = [token for sentence in chunk[:cut] for token in sentence]
            second: list[str] = []
            is_random_next = len(chunk) == 1 or rng.random() < 0.5
            if is_random_next:
                wanted = target - len(first)
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != index:
                        break
                start = rng.randint(0, len(documents[other]) - 1)
                for sentence in documents[other][start:]:
                    second.extend(sentence)
                    if len(second) >= wanted:
                        break
                # The sentences after the cut are used in the next pair.
                place -= len(chunk) - cut
            else:
                for sentence in chunk[cut:]:
                    second.extend(sentence)
            _truncate(first, second, longest, rng)
            tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
            segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            tokens, positions, labels = _mask(tokens, words, settings, rng)
            yield Instance(tokens, segments, is_random_next, positions, labels)
            chunk, length = [], 0
        place += 1


def _truncate(
    first: list[str], second: list[str], longest: int, rng: random.Random
) -> None:
    while len(first) + len(second) > longest:
        tokens = first if len(first) > len(second) else second
        if rng.random() < 0.5:
            del tokens[0]
        else:
            tokens.pop()


def _mask(
    tokens: list[str],
    words: list[str],
    settings: pretraining_sequences.Settings,
    rng: random.Random,
) -> tuple[list[str], list[int], list[str]]:
    candidates: list[list[int]] = []
    for index, token in enumerate(tokens):
        if token == "[CLS]" or token == "[SEP]":
            continue
        if (
            _FLAGS.do_whole_word_mask
            and len(candidates) >= 1
            and token.startswith("##")
        ):
            candidates[-1].append(index)
        else:
            candidates.append([index])
    rng.shuffle(candidates)
    number = max(1, round(len(tokens) * settings.masked_lm_prob))
    number = min(settings.max_predictions_per_seq, number)
    output = list(tokens)
    masked: list[_Masked] = []
    covered: set[int] = set()
    for word in candidates:
        if len(masked) >= number:
            break
        if len(masked) + len(word) > number:
            continue
        if any(index in covered for index in word):
            continue
        for index in word:
            covered.add(index)
            if rng.random() < 0.8:
                token = "[MASK]"
            elif rng.random() < 0.5:
                token = tokens[index]
            else:
                token = words[rng.randint(0, len(words) - 1)]
            output[index] = token
            masked.append(_Masked(index, tokens[index]))
    masked.sort(key=lambda x: x.position)
    return output, [x.position for x in masked], [x.label for x in masked]


def _serialize(
    instance: Instance,
    tokenizer: tokenizer_rules.Tokenizer,
    settings: pretraining_sequences.Settings,
) -> bytes:
    ids = [tokenizer.vocab[token] for token in instance.tokens]
    labels = [tokenizer.vocab[token] for token in instance.labels]
    S, P = settings.max_seq_length, settings.max_predictions_per_seq

    def padded(values: list[int], length: int) -> list[int]:
        values = list(values)
        while len(values) < length:
            values.append(0)
        return values

    features = collections.OrderedDict(
        input_ids=_ints(padded(ids, S)),
        input_mask=_ints(padded([1] * len(ids), S)),
        segment_ids=_ints(padded(instance.segments, S)),
        masked_lm_positions=_ints(padded(instance.positions, P)),
        masked_lm_ids=_ints(padded(labels, P)),
        masked_lm_weights=_floats(
            [1.0] * len(labels) + [0.0] * (P - len(labels))
        ),
        next_sentence_labels=_ints([int(instance.is_random_next)]),
    )
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString()


def _ints(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _floats(values: list[float]) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
