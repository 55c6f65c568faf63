"""Sequences of two segments, against the steps of ELECTRA's program.

Those are of ExampleBuilder in google-research/electra,
build_pretraining_dataset.py, but that sequences are reached without special
tokens, and that a segment's sentences stay together.
"""

from bert_tf.pretraining_data import pretraining_sequences, segments
from tests import pretraining_documents as documents
from tests.pretraining_data.segment_texts import (
    document_starts,
    make_text,
    random_lengths,
)

import pytest

_MOST = 61


def _reference(lengths, chances, short_seq_prob):
    """First and second segments as lists of (document, token)."""
    draws = {
        name: chances.of_sentences(getattr(segments, name)).tolist()
        for name in ("TARGET", "IS_SHORT", "CHOICE", "CUT")
    }
    number, found = 0, []
    for document, sizes in enumerate(lengths):
        sentences, token = [], 0
        for size in sizes:
            tokens = [(document, token + i) for i in range(size)]
            sentences.append((number, tokens))
            number, token = number + 1, token + size
        current: list[tuple[int, list]] = []
        total, target = 0, 0
        for place, (index, tokens) in enumerate(sentences):
            if not current:
                target = _MOST
                if draws["IS_SHORT"][index] < short_seq_prob:
                    target = 5 + int(draws["TARGET"][index] * (_MOST - 4))
            current.append((index, tokens))
            total += len(tokens)
            if total >= target or place == len(sentences) - 1:
                found.append(_pair(current, target, draws))
                current, total = [], 0
    return found


def _pair(current, target, draws):
    half = target // 2
    if draws["CHOICE"][current[0][0]] < 0.1:
        half = 100_000
    first: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    for index, tokens in current:
        fits = len(first) + len(tokens) < half and not second
        by_chance = not second and len(first) < half
        by_chance = by_chance and draws["CUT"][index] < 0.5
        if not first or fits or by_chance:
            first = first + tokens
        else:
            second = second + tokens
    first = first[:_MOST]
    return first, second[: _MOST - len(first)]


@pytest.mark.parametrize("short_seq_prob", [0, 0.05, 1])
def test_segments_are_electras(short_seq_prob):
    lengths = [*random_lengths(), [200, 3], [1], [30, 31], [70]]
    text = make_text(lengths)
    found = pretraining_sequences.two_segments(
        text, _MOST, short_seq_prob, 1, 2
    )
    chances = segments.Chances(text, 1, 2)
    expected = _reference(lengths, chances, short_seq_prob)
    begins = document_starts(text)
    assert len(found.starts) == len(expected)
    for starts, ends, pair in zip(
        found.starts, found.ends, expected, strict=True
    ):
        for start, end, tokens in zip(starts, ends, pair, strict=True):
            wanted = [begins[document] + token for document, token in tokens]
            assert list(range(start, end)) == wanted
    assert not found.labels.any()


def test_a_tenth_has_one_segment():
    text = make_text([[1] * 200_000])
    found = pretraining_sequences.two_segments(text, _MOST, 0, 1, 0)
    single = (found.ends - found.starts)[:, 1] == 0
    documents.assert_share(single[:-1].sum(), len(single) - 1, 0.1)
