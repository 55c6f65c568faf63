"""Beam search against a search through all targets."""

import itertools

from bert_tf.seq2seq import beam_search

import numpy as np
import pytest
import tensorflow as tf

START, END, PAD = 3, 2, 0
TOKENS, LONGEST, SOURCES = 4, 4, 3


def table():
    """Returns logits of the next token, by source, position and last token."""
    rng = np.random.default_rng(5)
    return rng.normal(0, 1.5, [SOURCES, LONGEST, TOKENS, TOKENS])


def predictor(beams):
    """Returns a model that looks logits up, and counts cached tokens."""
    logits = tf.constant(table(), tf.float32)

    def predict(ids, position, caches):
        owners = tf.range(tf.shape(ids)[0]) // beams
        places = tf.fill(tf.shape(owners), position)
        where = tf.stack([owners, places, ids[:, -1]], axis=-1)
        new = tf.cast(ids[:, -1:], tf.float32)[:, tf.newaxis, :, tf.newaxis]
        kept = [(tf.concat([k, new], 2), v) for k, v in caches]
        for k, _ in kept:
            # What was kept for a beam is of its own tokens.
            same = k[:, 0, :, 0] == tf.cast(ids, tf.float32)
            tf.debugging.Assert(tf.reduce_all(same), [k, ids])
        return tf.gather_nd(logits, where), kept

    none = tf.zeros([SOURCES * beams, 1, 0, 1])
    return beam_search.Predictor(predict, [(none, none)])


def search(beams, alpha):
    return beam_search.Search(
        START, END, PAD, TOKENS, LONGEST, beams=beams, alpha=alpha
    )


def found(beams, alpha):
    @tf.function(autograph=False)
    def run():
        return beam_search.find(
            predictor(beams), tf.constant(SOURCES), search(beams, alpha)
        )

    result = run()
    rows = result["target_ids"].numpy().tolist()
    return rows, result["score"].numpy()


def best_of_all(alpha):
    """Returns the best target of each source among all, and its score."""
    logits = table()
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for source in range(SOURCES):
        scored = {}
        for target in itertools.product(range(TOKENS), repeat=LONGEST):
            length = target.index(END) + 1 if END in target else LONGEST
            own = target[:length]
            before = (START, *own)
            total = sum(
                logs[source, i, before[i], own[i]] for i in range(length)
            )
            scored[own] = total / ((5 + length) / 6) ** alpha
        best = max(scored, key=scored.__getitem__)
        yield [*best, *[PAD] * (LONGEST - len(best))], scored[best]


@pytest.mark.parametrize("alpha", [0, 0.6, 1, 3])
def test_enough_beams_find_the_best_of_all(alpha):
    rows, scores = found(TOKENS**LONGEST, alpha)
    expected = list(best_of_all(alpha))
    assert rows == [row for row, _ in expected]
    np.testing.assert_allclose(scores, [x for _, x in expected], rtol=1e-5)


def test_one_beam_takes_the_most_likely_token():
    logits = table()
    expected = []
    for source in range(SOURCES):
        row: list[int] = []
        last = START
        while len(row) < LONGEST and last != END:
            last = int(logits[source, len(row), last].argmax())
            row.append(last)
        expected.append([*row, *[PAD] * (LONGEST - len(row))])
    # The length penalty would prefer longer ones.
    assert found(1, 2.0)[0] == expected == found(1, 0.0)[0]


@pytest.mark.slow
def test_penalty_prefers_longer_targets():
    lengths = [
        sum(np.count_nonzero(row) for row in found(16, alpha)[0])
        for alpha in (0, 5)
    ]
    assert lengths[0] < lengths[1]


@pytest.mark.parametrize(
    "wrong", [{"beams": 0}, {"alpha": -0.5}, {"max_length": 0}]
)
def test_bad_searches(wrong):
    (name,) = wrong
    values = {"beams": 2, "alpha": 0.0, "max_length": 3} | wrong
    with pytest.raises(ValueError, match=f"`{name}` must be at least"):
        beam_search.Search(START, END, PAD, TOKENS, **values)
