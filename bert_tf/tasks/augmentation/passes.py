"""Rows of the model that show a text with some of its words masked.

As TinyBERT's, a row is the masked text and then the text as it is, as a pair;
of a text that leaves no room for both, the masked one alone. Otherwise than
there, a row masks more than one word, which is as much quicker. The words of a
row stand as far apart as they can, so that a mask's neighbours are there to be
read.

Shapes: S pieces of a row, P masks of it.
"""

from typing import NamedTuple

from bert_tf import vocabularies
from bert_tf.tasks.augmentation import words

# Of a pair that is half of the masked text, where most of the words that may be
# replaced have room; the other text hides nothing.
MASKED_SHARE = 0.25


class Pass(NamedTuple):
    """A row of the model.

    Attributes:
        ids: The pieces, [S].
        segments: Their segment numbers, [S].
        places: Where the masks are in the row, [P].
    """

    ids: list[int]
    segments: list[int]
    places: list[int]


def length(
    text: words.Text, vocabulary: vocabularies.Vocabulary, max_seq_length: int
) -> int:
    """Returns how many pieces a row has about: masks may be of several."""
    whole = 2 * len(text.ids) + vocabulary.template.special(2)
    return min(whole, max_seq_length)


def shares(
    text: words.Text,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
    masked_share: float = MASKED_SHARE,
) -> list[range]:
    """Returns which words of a text each row is to mask: each word once.

    A row masks at most `masked_share` of its pieces, but one word at least.
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
    """Returns the row that masks some words, each as one piece."""
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
