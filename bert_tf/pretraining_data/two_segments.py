"""Documents -> sequences of two segments of which nothing is learnt: ELECTRA's.

They are filled with sentences as by build_pretraining_dataset.py of
google-research/electra, whose rows have little padding.

Shapes: s sentences, r sequences.
"""

import bisect
import itertools

from bert_tf.pretraining_data import segments

import numpy as np

# Share of the sequences that have one segment, as the texts of some tasks.
_SINGLE = 0.1
# The least tokens of a short sequence.
_SHORTEST = 5


def two_segments(
    text: segments.Text,
    max_tokens: int,
    short_seq_prob: float,
    seed: int,
    repetition: int,
) -> segments.Ranges:
    """Fills sequences with sentences of a document, and cuts in the middle.

    A sequence has as many sentences as reach `max_tokens`, and loses what is
    beyond. A share of `short_seq_prob` has another length to reach. The first
    segment has the sentences of the first half, and the one across the middle
    by the toss of a coin; in a tenth of the sequences it has all.
    """
    chances = segments.Chances(text, seed, repetition)
    shortest = min(_SHORTEST, max_tokens)
    sizes = chances.of_sentences(segments.TARGET) * (max_tokens - shortest + 1)
    is_short = chances.of_sentences(segments.IS_SHORT) < short_seq_prob
    targets = np.where(is_short, shortest + sizes.astype(int), max_tokens)
    targets = targets.tolist()  # [s]
    is_single = (chances.of_sentences(segments.CHOICE) < _SINGLE).tolist()
    is_head = (chances.of_sentences(segments.CUT) < 0.5).tolist()
    starts, documents = text.sentences.tolist(), text.documents.tolist()
    found: list[int] = []
    for first, last in itertools.pairwise(documents):
        while first < last:
            target = targets[first]
            end = bisect.bisect_left(
                starts, starts[first] + target, first + 1, last
            )
            middle = end
            if not is_single[first]:
                half = starts[first] + target // 2
                middle = bisect.bisect_left(starts, half, first + 1, end + 1)
                across = middle - 1
                if middle > end:
                    middle = end
                elif across > first and not is_head[across]:
                    middle = across
            found += (starts[first], starts[middle], starts[end])
            first = end
    start, cut, stop = np.array(found, np.int64).reshape(-1, 3).T
    stop = np.minimum(stop, start + max_tokens)
    cut = np.minimum(cut, stop)
    return segments.Ranges(
        np.stack([start, cut], axis=1),
        np.stack([cut, stop], axis=1),
        np.zeros(len(start), bool),
    )
