"""Learns a vocabulary of symbols from text, by counting the symbols."""

from collections.abc import Iterable, Mapping

from bert_tf.errors import InputError
from bert_tf.text import learning
from bert_tf.vocabularies import symbols


def count(
    texts: Iterable[str], max_symbols: int = learning.MAX_WORDS
) -> learning.Counts:
    """Counts the symbols of lines or paragraphs.

    Beyond `max_symbols` distinct symbols, the rarest are dropped, starting with
    those seen once.
    """
    found = learning.Counts()
    for strings in learning.count_strings(texts, str.split):
        found.update(strings)
        found = learning.without_rarest(found, max_symbols)
    return found


def check_room(vocab_size: int) -> None:
    """Raises InputError if the special tokens leave no room for symbols."""
    least = len(symbols.SPECIAL) + 1
    if vocab_size < least:
        raise InputError(
            f"A vocabulary of symbols has {least} at least: the special ones "
            "and one of the text. Make `vocab_size` larger. "
            f"Received: vocab_size={vocab_size}"
        )


def learn(
    counts: Mapping[str, int], vocab_size: int, min_frequency: int = 2
) -> symbols.Symbols:
    """Takes the most frequent symbols, up to `vocab_size` with special tokens.

    Symbols that occur less often than `min_frequency`, names of special tokens
    and symbols that UTF-8 can't encode are skipped. Equal arguments give equal
    vocabularies. Raises InputError if no symbols are left.
    """
    check_room(vocab_size)
    kept = [
        symbol
        for symbol, number in counts.items()
        if number >= min_frequency
        and symbol not in symbols.SPECIAL
        and symbol.encode("utf-8", "ignore").decode() == symbol
    ]
    if not kept:
        raise InputError(
            "The text holds no symbol that occurs often enough. Make "
            "`min_frequency` smaller, or give other text. Received: "
            f"min_frequency={min_frequency}, {len(counts)} different symbols"
        )
    kept.sort(key=lambda symbol: (-counts[symbol], symbol))
    room = vocab_size - len(symbols.SPECIAL)
    return symbols.Symbols((*symbols.SPECIAL, *kept[:room]))


def coverage(
    vocabulary: symbols.Symbols, counts: learning.Counts
) -> tuple[int, int]:
    """Returns the number of symbols in the text, and how many become [UNK].

    Symbols dropped from the counts are included in both.
    """
    total = sum(counts.values()) + counts.forgotten
    known = sum(counts[x] for x in vocabulary.known if x in counts)
    return total, total - known
