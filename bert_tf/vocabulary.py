"""Learns a WordPiece vocabulary from text.

The words are those of the tokenizer that will read the vocabulary; the pieces
come from the `tokenizers` library, which joins the most frequent pair of
pieces again and again.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from bert_tf import tokenization


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How a vocabulary splits the words of a text.

    Args:
        words: Words of the text.
        pieces: Pieces that they are split into.
        unknown: Words that become [UNK].
    """

    words: int
    pieces: int
    unknown: int


def count_words(
    lines: Iterable[str], do_lower_case: bool
) -> collections.Counter[str]:
    """Counts the words of text as the BERT tokenizer finds them."""
    tokenizer = tokenization.BasicTokenizer(do_lower_case)
    words: collections.Counter[str] = collections.Counter()
    for line in lines:
        words.update(tokenizer.tokenize(line))
    return words


def learn(
    words: Mapping[str, int],
    vocab_size: int,
    min_frequency: int = 2,
    max_characters: int = 1000,
    num_unused: int = 99,
) -> list[str]:
    """Learns the pieces of a vocabulary.

    Args:
        words: Words and how often each occurs.
        vocab_size: Pieces to learn at most, reserved ones included.
        min_frequency: How often two pieces must follow each other to be
            joined.
        max_characters: The most frequent characters so many are kept; words
            with others become [UNK].
        num_unused: Rows to reserve for words of the user's own. With the 99 of
            the released English vocabularies [UNK] is 100.

    Returns:
        The pieces in the order of their ids: [PAD], [unused...], [UNK], [CLS],
        [SEP], [MASK], characters, longer pieces. Equal arguments give equal
        lists.

    Raises:
        ValueError: There are no words, or the characters alone are more than
            `vocab_size`.
    """
    # Of use to this function only, and 20 MB to install.
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    if not words:
        raise ValueError("The text holds no words")
    pad, *special = tokenization.SPECIAL_TOKENS
    unused = [f"[unused{number}]" for number in range(num_unused)]
    reserved = [pad, *unused, *special]
    spelt = _spelt_with(words, max_characters)
    # Pairs that are as frequent are joined in the order of their ids. The
    # trainer would number the characters at random; as special tokens they
    # are numbered in this order.
    first = sorted({word[0] for word in spelt})
    later = sorted({char for word in spelt for char in word[1:]})
    characters = [
        *first,
        *(tokenization.SUFFIX_INDICATOR + char for char in later),
    ]
    if len(reserved) + len(characters) > vocab_size:
        raise ValueError(
            f"{len(reserved)} reserved rows and {len(characters)} characters, "
            "at the beginning of words and inside, leave no room for longer "
            "pieces. Make `vocab_size` larger or `max_characters` or "
            f"`num_unused` smaller. Received: vocab_size={vocab_size}, "
            f"max_characters={max_characters}, num_unused={num_unused}"
        )
    tokenizer = tokenizers.Tokenizer(models.WordPiece())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size - len(reserved),
        min_frequency=min_frequency,
        special_tokens=characters,
        continuing_subword_prefix=tokenization.SUFFIX_INDICATOR,
        show_progress=False,
    )
    tokenizer.train_from_iterator(
        (f"{word} " * count for word, count in sorted(spelt.items())), trainer
    )
    ids = tokenizer.get_vocab()
    return reserved + sorted(ids, key=lambda piece: ids[piece])


def _spelt_with(
    words: Mapping[str, int], max_characters: int
) -> dict[str, int]:
    """Returns the words that consist of the most frequent characters."""
    frequency: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        for char in word:
            frequency[char] += count
    ranked = sorted(frequency, key=lambda char: (-frequency[char], char))
    kept = frozenset(ranked[:max_characters])
    return {
        word: count
        for word, count in words.items()
        if kept.issuperset(word)
        and len(word) <= tokenization.MAX_CHARS_PER_WORD
    }


def coverage(pieces: Iterable[str], words: Mapping[str, int]) -> Coverage:
    """Counts what a vocabulary makes of words."""
    vocab = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = tokenization.WordpieceTokenizer(vocab)
    number = unknown = 0
    for word, count in words.items():
        split = tokenizer.split(word)
        number += count * len(split)
        unknown += count * (split == [tokenization.UNKNOWN])
    return Coverage(sum(words.values()), number, unknown)
