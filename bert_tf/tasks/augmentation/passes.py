"""Sequences that show a text with some of its words masked.

As in TinyBERT, a sequence is a pair: the masked text and the unchanged text. If
there is no room for both, it is the masked text alone. Unlike TinyBERT, a
sequence masks several words, which is proportionally faster. The masked words
are spread as far apart as possible, so that each mask keeps its neighbours.

Shapes: S tokens per sequence, P masks per sequence.
"""

from typing import NamedTuple

from bert_tf import vocabularies
from bert_tf.tasks.augmentation import words

# In a pair, this is half of the masked text, which fits most of the replaceable
# words; the other text has no masks.
MASKED_SHARE = 0.25


class Pass(NamedTuple):
    """A sequence with masks.

    Attributes:
        ids: The token ids, [S].
        segments: The segment ids, [S].
        `places`: Positions of the masks, [P].
    """

    ids: list[int]
    segments: list[int]
    places: list[int]


def length(
    text: words.Text, vocabulary: vocabularies.Vocabulary, max_seq_length: int
) -> int:
    """Returns the approximate length: a mask may replace several tokens."""
    whole = 2 * len(text.ids) + vocabulary.template.special(2)
    return min(whole, max_seq_length)


def shares(
    text: words.Text,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
    masked_share: float = MASKED_SHARE,
) -> list[range]:
    """Returns the indices of the words that each sequence masks.

    Each word is masked once. A sequence masks at most `masked_share` of its
    tokens, but at least one word.
    """
    pieces = length(text, vocabulary, max_seq_length)
    count = len(text.words)
    rows = -(-count // max(1, int(masked_share * pieces)))
    return [range(i, count, rows) for i in range(rows)]


def lay_out(
    text: words.Text,
    masked: range,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> Pass:
    """Returns the sequence with some words masked by one token each."""
    template = vocabulary.template
    first: list[int] = []
    places: list[int] = []
    done = 0
    for number in masked:
        word = text.words[number]
        first += text.ids[done : word.first]
        places.append(len(template.before) + len(first))
        first.append(vocabulary.special.mask.id)
        done = word.last
    first += text.ids[done:]
    room = max(0, max_seq_length - template.special(2) - len(first))
    ids, segments = template.row(first, text.ids[:room])
    return Pass(ids, segments, places)
