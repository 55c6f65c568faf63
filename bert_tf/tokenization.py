"""Splits text into the WordPiece tokens of a BERT vocabulary.

The tokens equal the original tokenizer's, character for character:
clean the text, put spaces around CJK characters, optionally lower-case and
strip accents, split at white space and punctuation, then take the longest
matching token from the left. `text_graph` runs the same rules in the graph.

    tokenizer = tokenization.FullTokenizer("vocab.txt", do_lower_case=True)
    tokenizer.tokenize("UNwanted, running")  # un ##want ##ed , runn ##ing
"""

import re
import typing
from collections.abc import Iterable, Iterator, Mapping

from bert_tf import characters
from bert_tf.errors import InputError
from bert_tf.vocab_files import (
    SPECIAL_TOKENS,
    SUFFIX_INDICATOR,
    UNKNOWN,
    check_casing,
    load_vocab,
)

# The original has it here, too.
from bert_tf.vocab_files import (
    validate_case_matches_checkpoint as validate_case_matches_checkpoint,
)

from etils import epath

# Longer words become one [UNK].
MAX_CHARS_PER_WORD = 200

# Words repeat: with this many in the cache, English words are almost never
# split twice. The limit bounds the memory for large corpora.
_CACHED_WORDS = 1 << 16


class Token(typing.NamedTuple):
    """A token and its characters `text[start:end]`."""

    text: str
    start: int
    end: int


# ---- Text --------------------------------------------------------------------


def convert_to_unicode(text: str | bytes) -> str:
    """Returns `text` as `str`; invalid UTF-8 is skipped."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise InputError(
        f"`text` must be str or bytes. Received: text={text!r} "
        f"(of type {type(text).__name__})"
    )


def printable_text(text: str | bytes) -> str:
    """Returns `text` in a form to print or log."""
    return convert_to_unicode(text)


def whitespace_tokenize(text: str) -> list[str]:
    """Splits at runs of white space."""
    return text.split()


def convert_by_vocab(vocab: Mapping, items: Iterable) -> list:
    """Looks up tokens or ids; a missing one is a KeyError."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(
    vocab: Mapping[str, int], tokens: Iterable[str]
) -> list[int]:
    """Returns the ids of the tokens."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(
    inv_vocab: Mapping[int, str], ids: Iterable[int]
) -> list[str]:
    """Returns the tokens of the ids."""
    return convert_by_vocab(inv_vocab, ids)


class BasicTokenizer:
    """Splits text into words and punctuation marks.

    The original lower-cases each word, this class the whole text. The result is
    the same: no rule of lower-casing (only the rule of the final sigma has
    context) or of decomposition reaches across white space.

    Args:
        do_lower_case: Whether to lower-case.
        strip_accents: Whether to strip accents; by default like
            `do_lower_case`.
        tokenize_chinese_chars: Whether each Chinese character is a word.
    """

    def __init__(
        self,
        do_lower_case: bool = True,
        *,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ):
        self.do_lower_case = do_lower_case
        self.strip_accents = characters.strips_accents(
            do_lower_case, strip_accents
        )
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self._clean = (
            characters.CLEAN
            if tokenize_chinese_chars
            else characters.CLEAN_ONLY
        )
        self._widths: dict[str, int] = {}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of `text`, normalized."""
        text = convert_to_unicode(text).translate(self._clean)
        text = characters.normalize(
            text, self.do_lower_case, self.strip_accents
        )
        return whitespace_tokenize(text.translate(characters.SPLIT_PUNCTUATION))

    def character_spans(self, text: str) -> list[tuple[int, int]]:
        """Returns the span in `text` of each character of its words.

        The number of characters that one character becomes never depends on its
        neighbours, so counting is enough to align the two sides.
        """
        spans: list[tuple[int, int]] = []
        for index, char in enumerate(text):
            width = self._widths.get(char)
            if width is None:
                width = self._widths[char] = sum(map(len, self.tokenize(char)))
            spans.extend([(index, index + 1)] * width)
            # A stripped accent belongs to the letter that it modifies.
            if not width and not characters.strip_accent(char) and spans:
                start, end = spans[-1]
                if end == index:
                    spans[-1] = (start, index + 1)
        return spans


class WordpieceTokenizer:
    """Splits words into tokens, longest match first."""

    def __init__(
        self,
        vocab: Mapping[str, int],
        unk_token: str = UNKNOWN,
        max_input_chars_per_word: int = MAX_CHARS_PER_WORD,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        self._longest = max(map(len, vocab), default=0)
        self._cache: dict[str, list[str]] = {}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of words: unaffable -> un, ##aff, ##able."""
        pieces: list[str] = []
        for word in whitespace_tokenize(convert_to_unicode(text)):
            pieces.extend(self.split(word))
        return pieces

    def split(self, word: str) -> list[str]:
        """Returns the tokens of one word; the caller must not change them."""
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = self._split(word) or [self.unk_token]
            # Such words may be long, and are rarely the same.
            if len(word) > self.max_input_chars_per_word:
                return pieces
            if len(self._cache) >= _CACHED_WORDS:
                self._cache.clear()
            self._cache[word] = pieces
        return pieces

    def _split(self, word: str) -> list[str]:
        """Returns the tokens of a word, empty if it cannot be spelt."""
        if len(word) > self.max_input_chars_per_word:
            return []
        pieces: list[str] = []
        start, prefix = 0, ""
        while start < len(word):
            longest = min(len(word), start + self._longest - len(prefix))
            for end in range(longest, start, -1):
                piece = prefix + word[start:end]
                if piece in self.vocab:
                    break
            else:
                return []
            pieces.append(piece)
            start, prefix = end, SUFFIX_INDICATOR
        return pieces


class FullTokenizer:
    """Splits text into WordPiece tokens, optionally with character offsets.

    Args:
        vocab_file: The vocabulary, one token per line.
        do_lower_case: Lower-case and strip accents; must be as in training.
        keep_special_tokens: Keep `[MASK]` and other special tokens in the text
            whole. The original splits them.
        strip_accents: Whether to strip accents, if not like `do_lower_case`.
        tokenize_chinese_chars: Whether each Chinese character is a word.
    """

    def __init__(
        self,
        vocab_file: epath.PathLike,
        do_lower_case: bool = True,
        keep_special_tokens: bool = False,
        *,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ):
        vocab = load_vocab(vocab_file)
        check_casing(vocab, do_lower_case, vocab_file, strip_accents)
        words = BasicTokenizer(
            do_lower_case,
            strip_accents=strip_accents,
            tokenize_chinese_chars=tokenize_chinese_chars,
        )
        self._set_vocab(vocab, words, keep_special_tokens)

    @classmethod
    def from_vocab(
        cls,
        vocab: Mapping[str, int],
        do_lower_case: bool = True,
        keep_special_tokens: bool = False,
        *,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ) -> typing.Self:
        """Creates a tokenizer from a vocabulary that is not in a file."""
        tokenizer = cls.__new__(cls)
        words = BasicTokenizer(
            do_lower_case,
            strip_accents=strip_accents,
            tokenize_chinese_chars=tokenize_chinese_chars,
        )
        tokenizer._set_vocab(dict(vocab), words, keep_special_tokens)
        return tokenizer

    def _set_vocab(
        self,
        vocab: dict[str, int],
        words: BasicTokenizer,
        keep_special_tokens: bool,
    ) -> None:
        self.vocab = vocab
        self.inv_vocab = {index: piece for piece, index in vocab.items()}
        self.do_lower_case = words.do_lower_case
        self.basic_tokenizer = words
        self.wordpiece_tokenizer = WordpieceTokenizer(vocab)
        kept = [token for token in SPECIAL_TOKENS if token in vocab]
        self._special = (
            re.compile("|".join(map(re.escape, kept)))
            if keep_special_tokens and kept
            else None
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of `text`."""
        pieces: list[str] = []
        for _, part, is_special in self._parts(convert_to_unicode(text)):
            if is_special:
                pieces.append(part)
                continue
            for word in self.basic_tokenizer.tokenize(part):
                pieces.extend(self.wordpiece_tokenizer.split(word))
        return pieces

    def tokenize_with_offsets(self, text: str | bytes) -> list[Token]:
        """Returns the tokens of `text` with their character offsets.

        A stripped accent belongs to the letter before it; `[UNK]` covers its
        whole word; tokens of one character (a Hangul syllable) have the same
        offsets.
        """
        tokens: list[Token] = []
        for offset, part, is_special in self._parts(convert_to_unicode(text)):
            if is_special:
                tokens.append(Token(part, offset, offset + len(part)))
                continue
            spans = self.basic_tokenizer.character_spans(part)
            position = 0
            for word in self.basic_tokenizer.tokenize(part):
                for piece, width in self._pieces_and_widths(word):
                    start, _ = spans[position]
                    position += width
                    _, end = spans[position - 1]
                    tokens.append(Token(piece, offset + start, offset + end))
        return tokens

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of the tokens."""
        return convert_by_vocab(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens of the ids."""
        return convert_by_vocab(self.inv_vocab, ids)

    def _parts(self, text: str) -> Iterator[tuple[int, str, bool]]:
        """Yields start and text of each part, and if it is a special token."""
        position = 0
        if self._special:
            for match in self._special.finditer(text):
                yield position, text[position : match.start()], False
                yield match.start(), match.group(), True
                position = match.end()
        yield position, text[position:], False

    def _pieces_and_widths(self, word: str) -> Iterator[tuple[str, int]]:
        """Yields each token of the word and how many characters it spans."""
        position = 0
        for piece in self.wordpiece_tokenizer.split(word):
            if piece == UNKNOWN:
                width = len(word)
            elif position:
                width = len(piece) - len(SUFFIX_INDICATOR)
            else:
                width = len(piece)
            position += width
            yield piece, width
