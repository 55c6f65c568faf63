"""Learns a WordPiece vocabulary from text, or extends one.

Words are split like by the tokenizer that will use the vocabulary. The
`tokenizers` library builds the tokens: it merges the most frequent pair of
tokens again and again.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import tokenization, vocab_files
from bert_tf.errors import InputError

# Max distinct words in memory (300 MB). English Wikipedia has 10 million.
MAX_WORDS = 2_000_000
# Max distinct strings between spaces that are collected before they are split,
# and max characters of collected text: Chinese has hardly any spaces.
_MAX_STRINGS = 500_000
_MAX_GATHERED = 1 << 27
# Copies of a word that are passed to the trainer at a time.
_MAX_COPIES = 10_000
# Number of steps in which the tokens of an extension are chosen: the savings of
# a token depend on the tokens chosen before.
_STEPS = 20
# Tokens that count as saved for each word that is no longer [UNK], and as lost
# for each that becomes it.
_KNOWN = 10


class Counts(collections.Counter[str]):
    """How often each string occurs.

    To bound the memory, the rarest strings may be dropped. `forgotten` is the
    number of their occurrences, which the counts do not include.
    """

    forgotten: int = 0


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The number of words of a text, of their tokens and of [UNK] words."""

    words: int
    pieces: int
    unknown: int


def count_words(
    texts: Iterable[str],
    do_lower_case: bool,
    max_words: int = MAX_WORDS,
    **settings: Any,
) -> Counts:
    """Counts the words of lines or paragraphs as the BERT tokenizer finds them.

    Beyond `max_words` distinct words, the rarest are dropped, starting with
    those seen once. The settings are keyword arguments of
    `tokenization.BasicTokenizer`.
    """
    tokenizer = tokenization.BasicTokenizer(do_lower_case, **settings)
    words = Counts()
    for strings in count_strings(texts):
        for string, count in strings.items():
            for word in tokenizer.tokenize(string):
                words[word] += count
        words = without_rarest(words, max_words)
    return words


def without_rarest(words: Counts, max_words: int) -> Counts:
    """Drops the rarest words, starting at count one, down to `max_words`."""
    if len(words) <= max_words:
        return words
    kept, rarest = dict(words), 0
    while len(kept) > max_words:
        rarest += 1
        kept = {word: count for word, count in kept.items() if count > rarest}
    found = Counts(kept)
    dropped = sum(words.values()) - sum(kept.values())
    found.forgotten = words.forgotten + dropped
    return found


def count_strings(
    texts: Iterable[str],
    split: Callable[[str], list[str]] = lambda text: text.split(" "),
) -> Iterator[collections.Counter[str]]:
    """Counts strings between spaces, in bounded batches: words repeat."""
    strings: collections.Counter[str] = collections.Counter()
    characters = 0
    for text in texts:
        strings.update(split(text))
        characters += len(text)
        if len(strings) > _MAX_STRINGS or characters > _MAX_GATHERED:
            yield strings
            strings, characters = collections.Counter(), 0
    yield strings


def check_room(vocab_size: int, num_unused: int) -> None:
    """Raises InputError if reserved tokens leave no room for others."""
    reserved = num_unused + len(tokenization.SPECIAL_TOKENS)
    if reserved >= vocab_size:
        raise InputError(
            f"{reserved} reserved rows leave no room for tokens. Make "
            "`vocab_size` larger or `num_unused` smaller. Received: "
            f"vocab_size={vocab_size}, num_unused={num_unused}"
        )


def learn(
    words: Mapping[str, int],
    vocab_size: int,
    min_frequency: int = 2,
    max_characters: int = 1000,
    num_unused: int = 99,
) -> list[str]:
    """Learns the tokens of a vocabulary; equal arguments give equal lists.

    Adjacent tokens that occur together `min_frequency` times are merged. Words
    with characters other than the `max_characters` most frequent ones become
    [UNK]. `num_unused` tokens are reserved for the user's own words; with 99,
    as in the released English vocabularies, [UNK] has id 100.

    Returns:
        The tokens by id: [PAD], [unused...], [UNK], [CLS], [SEP], [MASK],
        characters, longer tokens; `vocab_size` at most. All characters can
        begin a word, also those that do not in this text.

    Raises:
        InputError: No word can be spelt, or the characters alone exceed
            `vocab_size`.
    """
    if not words:
        raise InputError("The text holds no words")
    check_room(vocab_size, num_unused)
    pad, *special = tokenization.SPECIAL_TOKENS
    unused = [f"[unused{number}]" for number in range(num_unused)]
    reserved = [pad, *unused, *special]
    spelt = _spelt_with(words, max_characters)
    if not spelt:
        raise InputError(
            "No word of the text could be spelt: all are longer than "
            f"{tokenization.MAX_CHARS_PER_WORD} characters, or have others "
            "than the most frequent ones. Is the text in --input_format, and "
            "has it spaces? Else make `max_characters` larger. "
            f"Received: max_characters={max_characters}"
        )
    characters = _characters(spelt)
    if len(reserved) + len(characters) > vocab_size:
        raise InputError(
            f"{len(reserved)} reserved rows and {len(characters)} characters, "
            "at the beginning of words and inside, leave no room for longer "
            "tokens. Make `vocab_size` larger or `max_characters` or "
            f"`num_unused` smaller. Received: vocab_size={vocab_size}, "
            f"max_characters={max_characters}, num_unused={num_unused}"
        )
    size = vocab_size - len(reserved)
    return reserved + _train(spelt, size, min_frequency, characters)


def _characters(spelt: Mapping[str, int]) -> list[str]:
    """Returns one-character tokens, for the beginning of words and inside."""
    first = {word[0] for word in spelt}
    later = {char for word in spelt for char in word[1:]}
    return [
        *sorted(first),
        *(tokenization.SUFFIX_INDICATOR + char for char in sorted(later)),
        # The trainer adds them in any case, beyond its `vocab_size`.
        *sorted(later - first),
    ]


def _train(
    spelt: Mapping[str, int],
    size: int,
    min_frequency: int,
    characters: list[str],
) -> list[str]:
    # Only this function needs it, and it takes 20 MB to install.
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    tokenizer = tokenizers.Tokenizer(models.WordPiece())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        # Equally frequent pairs are merged in the order of their ids. The
        # trainer would number the characters at random; as special tokens they
        # are numbered in this order.
        special_tokens=characters,
        continuing_subword_prefix=tokenization.SUFFIX_INDICATOR,
        show_progress=False,
    )
    tokenizer.train_from_iterator(copies(spelt), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=lambda piece: ids[piece])


def copies(words: Mapping[str, int]) -> Iterator[str]:
    """Repeats each word as often as it occurs, in strings of bounded size."""
    for word, count in sorted(words.items()):
        for done in range(0, count, _MAX_COPIES):
            yield f"{word} " * min(_MAX_COPIES, count - done)


def count_characters(words: Mapping[str, int]) -> collections.Counter[str]:
    """Counts the characters of words."""
    frequency: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        for char in word:
            frequency[char] += count
    return frequency


def most_frequent(
    frequency: Mapping[str, int], max_characters: int
) -> frozenset[str]:
    """Returns the `max_characters` most frequent characters."""
    ranked = sorted(frequency, key=lambda char: (-frequency[char], char))
    return frozenset(ranked[:max_characters])


def _spelt_with(
    words: Mapping[str, int], max_characters: int
) -> dict[str, int]:
    kept = most_frequent(count_characters(words), max_characters)
    return {
        word: count
        for word, count in words.items()
        if kept.issuperset(word)
        and len(word) <= tokenization.MAX_CHARS_PER_WORD
    }


# ---- Extend -----------------------------------------------------------------


def unused_rows(pieces: Sequence[str]) -> list[int]:
    """Returns the ids of the [unused] tokens of a vocabulary."""
    return [
        row
        for row, piece in enumerate(pieces)
        if vocab_files.UNUSED.fullmatch(piece)
    ]


def extend(
    pieces: Sequence[str],
    words: Mapping[str, int],
    candidates: Iterable[str],
    appended: int = 0,
) -> list[str]:
    """Replaces the [unused] tokens of a vocabulary by tokens of other text.

    Chooses the `candidates` that make the text the shortest, where a word that
    is no longer [UNK], or becomes it, counts as ten tokens. `appended` is the
    number of tokens to add at the end. Once no candidate saves a token, the
    remaining tokens stay [unused] or are not appended. Raises InputError for a
    vocabulary without [unused] tokens.
    """
    rows = unused_rows(pieces)
    if not rows and not appended:
        raise InputError(
            "The vocabulary has no [unused] rows to fill. Append rows by "
            "--num_appended, or learn a new one, without --extend_vocab"
        )
    extended = [*pieces, *([""] * appended)]
    rows += range(len(pieces), len(extended))
    step = -(-len(rows) // _STEPS)
    # Longer words are [UNK] with any vocabulary, and take minutes each.
    words = {
        word: count
        for word, count in words.items()
        if len(word) <= tokenization.MAX_CHARS_PER_WORD
    }
    while rows:
        saved = _savings(words, set(extended), set(candidates))
        best = sorted(saved, key=lambda piece: (-saved[piece], piece))[:step]
        if not best:
            break
        for row, piece in zip(rows, best, strict=False):
            extended[row] = piece
        rows = rows[len(best) :]
    # Only an appended empty line means that nothing was found for it. Within
    # the vocabulary it is a token of white space, and later ids must not shift.
    return [
        piece
        for row, piece in enumerate(extended)
        if piece or row < len(pieces)
    ]


def _savings(
    words: Mapping[str, int], pieces: set[str], candidates: set[str]
) -> dict[str, int]:
    """Counts the tokens that each candidate saves in the text."""
    saved: collections.Counter[str] = collections.Counter()
    candidates = candidates - pieces
    for word, count in words.items():
        ends = _ends(word, 0, pieces)
        if ends is None:
            for place in range(len(word)):
                if (piece := _piece(word, place, place + 1)) in candidates:
                    saved[piece] += count * _KNOWN
            continue
        for before, (start, end) in enumerate(
            zip([0, *ends], ends, strict=False)
        ):
            # Only candidates longer than the current token can save any.
            for longer in range(end + 1, len(word) + 1):
                if (piece := _piece(word, start, longer)) in candidates:
                    rest = _ends(word, longer, pieces)
                    if rest is None:
                        saved[piece] -= count * _KNOWN
                    else:
                        now = before + 1 + len(rest)
                        saved[piece] += count * (len(ends) - now)
    return {piece: count for piece, count in saved.items() if count > 0}


def _ends(word: str, start: int, pieces: set[str]) -> list[int] | None:
    """Returns the ends of the tokens of a word from `start`, None if [UNK]."""
    ends = []
    while start < len(word):
        for end in range(len(word), start, -1):
            if _piece(word, start, end) in pieces:
                ends.append(end)
                start = end
                break
        else:
            return None
    return ends


def _piece(word: str, start: int, end: int) -> str:
    prefix = tokenization.SUFFIX_INDICATOR if start else ""
    return prefix + word[start:end]


def coverage(pieces: Iterable[str], words: Mapping[str, int]) -> Coverage:
    """Counts the tokens and [UNK] words that a vocabulary gives for words."""
    vocab = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = tokenization.WordpieceTokenizer(vocab)
    number = unknown = 0
    for word, count in words.items():
        split = tokenizer.split(word)
        number += count * len(split)
        unknown += count * (split == [tokenization.UNKNOWN])
    return Coverage(sum(words.values()), number, unknown)
