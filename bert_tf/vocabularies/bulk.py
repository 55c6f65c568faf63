"""Splits large amounts of text into ids, with NumPy.

Among a million words of English only a few tens of thousands are distinct.
These tokenizers find words as runs of bytes, identify each by a 64-bit hash,
and call the Python tokenizer only for new words. They do not need TensorFlow,
whose import takes seconds and 600 MB in every worker process.

Shapes: B bytes of all texts, W words, T texts, N tokens of all texts.
"""

import array
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import characters, tokenization

import numpy as np

# Max bytes of text at a time, so that the arrays stay in the CPU cache.
_BATCH_BYTES = 1 << 18

# The probability that two of ten million words have the same hash is 3e-6.
_MULTIPLIER = 0x9E3779B97F4A7C15
_SLOT_BITS = 20
# The cache is cleared at this many words, or tokens of words (about 300 MB): a
# sentence of Chinese without ASCII punctuation counts as a word.
_MAX_WORDS = 1 << 20
_MAX_PIECES = 1 << 25

# JSON may have half a surrogate pair, a character for the Python tokenizer.
_ENCODING = ("utf-8", "surrogatepass")

_MAX_CHARS = tokenization.MAX_CHARS_PER_WORD

# The only letter whose lower case depends on text beyond punctuation.
_SIGMA = "Σ"


class Words:
    """A tokenizer with the same ids as one in Python, word by word.

    Subclasses for kinds of vocabularies set `_reference`, the tokenizer in
    Python.

    Args:
        is_word: [256] bool, the bytes that belong to words.
        is_mark: [256] bool, the bytes that are a word each. All other bytes
            separate words.
        same_case: Whether ASCII capitals have the same ids as small letters.
    """

    _reference: Any
    # One byte after each text that belongs to no word.
    _SEPARATOR = b"\n"

    def __init__(
        self, is_word: np.ndarray, is_mark: np.ndarray, same_case: bool
    ):
        self._is_word, self._is_mark = is_word, is_mark
        rng = np.random.default_rng(0)
        self._values = rng.integers(2**64, size=256, dtype=np.uint64)
        if same_case:
            upper = np.arange(ord("A"), ord("Z") + 1)
            self._values[upper] = self._values[upper + 32]
        self._powers = _powers(_MULTIPLIER, _BATCH_BYTES)
        self._inverses = _powers(pow(_MULTIPLIER, -1, 2**64), _BATCH_BYTES)
        self._forget()

    def _ids(self, text: str) -> list[int]:
        """Returns the ids of a word, or of a whole text."""
        return self._reference.ids(text)

    def _is_whole(self, text: str) -> bool:
        """Returns whether a text must not be split into words."""
        del text
        return False

    def _forget(self) -> None:
        self._numbers: dict[int, int] = {}  # hash -> number of the word
        self._pieces = array.array("i")
        self._ends = array.array("q", [0])  # in `_pieces`, by number
        # The first word of each slot, found without a search.
        self._slot_hash = np.zeros(1 << _SLOT_BITS, np.uint64)
        self._slot_number = np.zeros(1 << _SLOT_BITS, np.int64)

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns all token ids [N] int32, and the number for each text [T]."""
        ids: list[np.ndarray] = []
        lengths: list[np.ndarray] = []
        batch: list[bytes] = []
        size = 0
        for text in texts:
            encoded = text.encode(*_ENCODING)
            alone = self._is_whole(text) or len(encoded) >= _BATCH_BYTES
            if batch and (alone or size + len(encoded) >= _BATCH_BYTES):
                _append(self._tokenize_batch(batch), ids, lengths)
                batch, size = [], 0
            if alone:
                own = np.array(self._ids(text), np.int32)
                _append((own, np.array([len(own)])), ids, lengths)
            else:
                batch.append(encoded)
                size += len(encoded) + 1
        if batch:
            _append(self._tokenize_batch(batch), ids, lengths)
        if not ids:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        return np.concatenate(ids), np.concatenate(lengths)

    def _tokenize_batch(
        self, texts: list[bytes]
    ) -> tuple[np.ndarray, np.ndarray]:
        # Separators keep the words of adjacent texts apart.
        joined = self._SEPARATOR.join(texts) + self._SEPARATOR
        data = np.frombuffer(joined, np.uint8)  # [B]
        starts, ends = self._find_words(data)  # [W]
        numbers = self._number(
            joined, starts, ends, self._hash(data, starts, ends)
        )
        piece_ends = np.frombuffer(self._ends, np.int64)
        pieces = np.frombuffer(self._pieces, np.int32)
        first = piece_ends[numbers]  # [W]
        counts = piece_ends[numbers + 1] - first  # [W]
        total = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(counts, out=total[1:])
        place = np.arange(total[-1]) + np.repeat(first - total[:-1], counts)
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        words = np.searchsorted(starts, np.cumsum(sizes))  # before each end
        return pieces[place], np.diff(total[words], prepend=0)

    def _find_words(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns starts and ends of words: runs of bytes, or single marks."""
        is_word = self._is_word[data]  # [B]
        is_mark = self._is_mark[data]  # [B]
        starts, ends = is_word.copy(), is_word.copy()
        starts[1:] &= ~is_word[:-1]
        ends[:-1] &= ~is_word[1:]
        return (
            np.flatnonzero(starts | is_mark),
            np.flatnonzero(ends | is_mark) + 1,
        )

    def _hash(
        self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """Hashes each word: the sum of value(byte) * multiplier^position."""
        sums = np.zeros(len(data) + 1, np.uint64)
        values = self._values[data]
        values *= self._powers[: len(data)]
        np.cumsum(values, out=sums[1:])
        # The inverse makes positions relative to the start of the word. Zero
        # marks an empty slot; a word has it only with the probability above.
        return (sums[ends] - sums[starts]) * self._inverses[starts]

    def _number(
        self,
        joined: bytes,
        starts: np.ndarray,
        ends: np.ndarray,
        hashes: np.ndarray,
    ) -> np.ndarray:
        """Returns the numbers of words, and assigns one to each new word."""
        if len(self._numbers) > _MAX_WORDS or len(self._pieces) > _MAX_PIECES:
            self._forget()
        slots = hashes >> np.uint64(64 - _SLOT_BITS)
        numbers = self._slot_number[slots]  # [W]
        others = np.flatnonzero(self._slot_hash[slots] != hashes)
        unique, first, inverse = np.unique(
            hashes[others], return_index=True, return_inverse=True
        )
        words = [
            joined[start:end]
            for start, end in zip(
                starts[others[first]].tolist(),
                ends[others[first]].tolist(),
                strict=True,
            )
        ]
        found = np.fromiter(
            map(self._number_of, unique.tolist(), words), np.int64, len(words)
        )
        numbers[others] = found[inverse]
        slots = slots[others[first]]
        is_free = self._slot_hash[slots] == 0
        self._slot_hash[slots[is_free]] = unique[is_free]
        self._slot_number[slots[is_free]] = found[is_free]
        return numbers

    def _number_of(self, key: int, word: bytes) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._pieces.extend(self._ids(word.decode(*_ENCODING)))
            self._ends.append(len(self._pieces))
        return number


class BulkTokenizer(Words):
    """A tokenizer with the same ids as `tokenization.FullTokenizer`.

    Text is split at ASCII white space and around ASCII punctuation. No rule of
    cleaning, lower-casing or decomposition reaches across these, except for the
    capital sigma. The parts are single words, or a few words if they have
    non-ASCII characters. `vocab` maps tokens to ids.
    """

    def __init__(
        self, vocab: Mapping[str, int], do_lower_case: bool, **settings: Any
    ):
        """Also takes the keyword arguments of `BasicTokenizer`."""
        self._reference = tokenization.FullTokenizer.from_vocab(
            vocab, do_lower_case, **settings
        )
        super().__init__(*byte_classes(), do_lower_case)

    def _is_whole(self, text: str) -> bool:
        return _SIGMA in text

    def _ids(self, text: str) -> list[int]:
        tokenizer = self._reference
        if text.isascii() and text.isalnum():
            # A single word, which needs no cleaning and perhaps no splitting.
            text = text.lower() if tokenizer.do_lower_case else text
            number = tokenizer.vocab.get(text)
            if number is not None and len(text) <= _MAX_CHARS:
                return [number]
            pieces = tokenizer.wordpiece_tokenizer.split(text)
        else:
            pieces = tokenizer.tokenize(text)
        return tokenizer.convert_tokens_to_ids(pieces)


def _append(
    result: tuple[np.ndarray, np.ndarray],
    ids: list[np.ndarray],
    lengths: list[np.ndarray],
) -> None:
    ids.append(result[0])
    lengths.append(result[1])


def byte_classes() -> tuple[np.ndarray, np.ndarray]:
    """Returns for each byte if it belongs to words, and if it is a mark."""
    is_mark = np.zeros(256, bool)
    is_space = np.zeros(256, bool)
    is_space[[ord(char) for char in " \t\n\r"]] = True
    for code in range(128):
        is_mark[code] = characters.split_punctuation(chr(code)) != chr(code)
    # Control characters are removed, which joins the text around them.
    return ~(is_mark | is_space), is_mark


def _powers(base: int, count: int) -> np.ndarray:
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors)
