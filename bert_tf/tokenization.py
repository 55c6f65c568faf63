"""Splits text into the word pieces of a BERT vocabulary.

The pieces are those of the original's tokenizer, character for character:
clean the text, put spaces around CJK characters, optionally lower-case and
strip accents, split at white space and punctuation, then take the longest
matching piece from the left. `text_ops` runs the same rules in the graph.

    tokenizer = tokenization.FullTokenizer("vocab.txt", do_lower_case=True)
    tokenizer.tokenize("UNwanted, running")  # un ##want ##ed , runn ##ing
"""

import functools
import re
import typing
from collections.abc import Iterable, Iterator, Mapping

from bert_tf import characters, input_files

from absl import logging
from etils import epath

UNKNOWN = "[UNK]"
SPECIAL_TOKENS = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")

# A piece that continues a word starts with this.
SUFFIX_INDICATOR = "##"
# Longer words become one [UNK].
MAX_CHARS_PER_WORD = 200

# Words repeat: with this many remembered, English text is almost never split
# twice. The bound keeps a large corpus from filling the memory.
_CACHED_WORDS = 1 << 16

_UNCASED_CHECKPOINTS = (
    "uncased_L-24_H-1024_A-16",
    "uncased_L-12_H-768_A-12",
    "multilingual_L-12_H-768_A-12",
    "chinese_L-12_H-768_A-12",
)
_CASED_CHECKPOINTS = (
    "cased_L-12_H-768_A-12",
    "cased_L-24_H-1024_A-16",
    "multi_cased_L-12_H-768_A-12",
)


class Token(typing.NamedTuple):
    """A word piece and the characters `text[start:end]` it comes from."""

    piece: str
    start: int
    end: int


# ---- Vocabulary --------------------------------------------------------------


def read_vocab(
    vocab_file: epath.PathLike, say: bool = True, flag: str = "vocab_file"
) -> str:
    """Returns the text of a vocabulary, as `normalize_vocab` does.

    Args:
        vocab_file: one piece per line.
        say: whether to log what was changed; for processes that read the same
            file as others.
        flag: that names it, for the errors.

    Raises:
        ValueError: if the file is not UTF-8.
    """
    input_files.check(vocab_file, flag)
    input_files.check_can_be_read_again(vocab_file)
    data = epath.Path(vocab_file).read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = input_files.explain_text(data[:64])
        if problem:
            raise ValueError(
                f"{vocab_file} can't be read: {problem}."
            ) from error
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{vocab_file}, line {line}: a vocabulary must be UTF-8 text. "
            f"Received: byte={data[error.start]:#x}"
        ) from error
    return normalize_vocab(text, vocab_file, say)


def normalize_vocab(
    text: str, vocab_file: epath.PathLike, say: bool = True
) -> str:
    """Returns the text of a vocabulary as Unix and the original write it.

    That is, without what editors on Windows add to a file: a byte-order mark,
    carriage returns (the original's reader drops them all), and empty lines at
    the end. All else stays, U+2028 as well, which is a piece of the released
    Chinese vocabulary. What is kept beside weights, and hashed to tell one
    vocabulary from another, is this text.

    Args:
        text: of the file.
        vocab_file: its name, to be logged.
        say: whether to log what was changed, once in a process.
    """
    done = []
    if text.startswith("\ufeff"):
        text = text[1:]
        done.append("the byte-order mark left out")
    if "\r" in text:
        # Without any LF, CR ends a line, as on old Macs.
        text = text.replace("\r", "" if "\n" in text else "\n")
        done.append("the line ends made LF")
    # Blanks and tabs are taken for nothing here: no piece is made of them.
    end = re.search(r"\n([ \t]*\n)*[ \t]*\Z", text)
    if end and end.group() != "\n":
        text = text[: end.start() + 1]
        done.append("empty lines at the end left out")
    if done and say:
        _say_once(f"{vocab_file} is read with {' and '.join(done)}.")
    return text


@functools.cache
def _say_once(line: str) -> None:
    """Logs a line once in this process: checkpoints are opened repeatedly."""
    logging.info("%s", line)


def load_vocab(
    vocab_file: epath.PathLike, say: bool = True, flag: str = "vocab_file"
) -> dict[str, int]:
    """Reads a vocabulary of one piece per line; the line number is the id.

    Args:
        vocab_file: its file.
        say: as of `read_vocab`.
        flag: likewise.

    Raises:
        ValueError: if the file is not UTF-8, has a piece twice or an empty line
            before others, or lacks `[UNK]`.
    """
    return parse_vocab(read_vocab(vocab_file, say, flag), vocab_file)


def parse_vocab(text: str, vocab_file: epath.PathLike) -> dict[str, int]:
    """Reads what `read_vocab` returned; `vocab_file` is for the errors."""
    lines = text.split("\n")
    if not lines[-1]:  # The newline that ends the last line.
        lines.pop()
    # First: what is another file has wrong lines as well.
    if UNKNOWN not in map(str.strip, lines):
        problem = input_files.explain_text(text[:64].encode())
        if problem:
            raise ValueError(
                f"{vocab_file} is not a BERT vocabulary: {problem}. Give the "
                "vocab.txt of the model."
            )
        raise ValueError(
            f"{vocab_file} is not a BERT vocabulary: it lacks the piece "
            f"{UNKNOWN!r}, which stands for unknown words. Give the vocab.txt "
            "of the model. "
            # A file of another kind may be one long line.
            f"Received: {len(lines)} pieces, the first "
            f"{[line.strip()[:20] for line in lines[:3]]}"
        )
    vocab: dict[str, int] = {}
    for index, line in enumerate(lines):
        # Only the newline is cut before the check: the released Chinese
        # vocabulary holds U+2028, which is white space and so strips to "".
        piece = line.strip()
        if not line or piece in vocab:
            problem = _line_problem(index, vocab.get(piece) if line else None)
            raise ValueError(
                f"{vocab_file}, line {index + 1}: {problem} "
                f"Received: line={line!r}"
            )
        vocab[piece] = index
    return vocab


def vocab_text(pieces: Iterable[str]) -> str:
    """Returns the text that `parse_vocab` reads as these pieces."""
    # An empty piece was white space in its file, as U+2028 in the released
    # Chinese vocabulary. An empty line would be refused.
    return "".join(f"{piece or chr(0x2028)}\n" for piece in pieces)


def _line_problem(index: int, earlier: int | None) -> str:
    """Says what is wrong with an empty line, or with the second of a piece.

    Args:
        index: of the line.
        earlier: index of the line that has the piece already.
    """
    # No text has such a piece: brackets are split off.
    if earlier is None:
        return (
            "a vocabulary must not hold empty lines, but at its end. Where the "
            "model has a row for it, write a name that no text has, such as "
            f"[unused-{index + 1}]; else remove the line."
        )
    return (
        f"this piece is already on line {earlier + 1}. The original takes the "
        f"last: give line {earlier + 1} a name that no text has, such as "
        f"[unused-{earlier + 1}]. The rows of the weights stay where they are."
    )


def check_row_pieces(vocab: Iterable[str], vocab_file: epath.PathLike) -> None:
    """Raises ValueError unless the pieces are there that every row has.

    Args:
        vocab: its pieces.
        vocab_file: as of `check_casing`.
    """
    missing = sorted({"[CLS]", "[SEP]"} - set(vocab))
    if missing:
        raise ValueError(
            f"{vocab_file} lacks the piece {missing[0]!r}, which the model "
            "reads beside every text. Give the vocabulary that the model was "
            "trained with, or one that extends it."
        )


def check_casing(
    vocab: Iterable[str], do_lower_case: bool, vocab_file: epath.PathLike
) -> None:
    """Checks `do_lower_case` against the pieces of the vocabulary.

    Lower-casing and stripping accents change no piece of an uncased vocabulary
    and change a third of a cased one. Names in brackets do not count, nor do
    pieces without letters; a vocabulary of a script without case fits both.

    Args:
        vocab: its pieces.
        do_lower_case: of the tokenizer.
        vocab_file: its file, or another name that begins a sentence, such as
            "The vocabulary of the checkpoint".

    Raises:
        ValueError: if the vocabulary contradicts `do_lower_case`.
    """
    words = [
        piece.removeprefix(SUFFIX_INDICATOR)
        for piece in vocab
        if not re.fullmatch(r"\[.+\]|<.+>", piece)
    ]
    cased = [word for word in words if word.lower() != word.upper()]
    changed = [
        word for word in cased if characters.lower_and_strip(word) != word
    ]
    # One in a hundred: users put words of their own into the unused places.
    if do_lower_case and len(changed) * 100 > len(cased):
        raise ValueError(
            f"{vocab_file} is cased: lower-casing and accent "
            f"stripping change {len(changed)} of its {len(cased)} pieces "
            f"with letters, for example {changed[:3]}. Set "
            "`--do_lower_case=False` or give an uncased vocabulary. "
            f"Received: do_lower_case={do_lower_case}"
        )
    if not do_lower_case and cased and not changed:
        raise ValueError(
            f"{vocab_file} is uncased: none of its "
            f"{len(cased)} pieces with letters has an upper-case or accented "
            "one. Set `--do_lower_case=True` or give a cased vocabulary. "
            f"Received: do_lower_case={do_lower_case}"
        )


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Checks `do_lower_case` against the name of a released checkpoint.

    Raises:
        ValueError: if the folder's name says that the model has other casing.
    """
    match = re.match(
        r".*?([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or ""
    )
    if match is None:
        return
    name = match.group(1)
    wrong = _CASED_CHECKPOINTS if do_lower_case else _UNCASED_CHECKPOINTS
    if name in wrong:
        raise ValueError(
            f"The checkpoint {name!r} was trained on "
            f"{'cased' if do_lower_case else 'lower-cased'} text: set "
            f"`--do_lower_case={not do_lower_case}`. "
            f"Received: do_lower_case={do_lower_case}, "
            f"init_checkpoint={init_checkpoint!r}"
        )


# ---- Text --------------------------------------------------------------------


def convert_to_unicode(text: str | bytes) -> str:
    """Returns `text` as `str`; invalid UTF-8 is left out."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(
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
    """Looks up pieces or ids; a missing one is a KeyError."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(
    vocab: Mapping[str, int], tokens: Iterable[str]
) -> list[int]:
    """Returns the ids of the pieces."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(
    inv_vocab: Mapping[int, str], ids: Iterable[int]
) -> list[str]:
    """Returns the pieces of the ids."""
    return convert_by_vocab(inv_vocab, ids)


class BasicTokenizer:
    """Splits text into words and punctuation marks.

    The original lower-cases word by word. Doing it to the whole text is the
    same: no rule of lower-casing (the final sigma's is the only one that looks
    around) or of decomposition reaches across white space.
    """

    def __init__(self, do_lower_case: bool = True):
        self.do_lower_case = do_lower_case
        self._widths: dict[str, int] = {}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of `text`, normalized."""
        text = convert_to_unicode(text).translate(characters.CLEAN)
        if self.do_lower_case:
            text = characters.lower_and_strip(text)
        return whitespace_tokenize(text.translate(characters.SPLIT_PUNCTUATION))

    def character_spans(self, text: str) -> list[tuple[int, int]]:
        """Returns where in `text` each character of its words comes from.

        How many characters one character becomes never depends on its
        neighbours, so counting is enough to line up the two sides.
        """
        spans: list[tuple[int, int]] = []
        for index, char in enumerate(text):
            width = self._widths.get(char)
            if width is None:
                width = self._widths[char] = sum(map(len, self.tokenize(char)))
            spans.extend([(index, index + 1)] * width)
            # A stripped accent belongs to the letter it stands on.
            if not width and not characters.strip_accent(char) and spans:
                start, end = spans[-1]
                if end == index:
                    spans[-1] = (start, index + 1)
        return spans


class WordpieceTokenizer:
    """Splits words into pieces, longest match first."""

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
        """Returns the pieces of words that `BasicTokenizer` produced.

        For example "unaffable" -> ["un", "##aff", "##able"].
        """
        pieces: list[str] = []
        for word in whitespace_tokenize(convert_to_unicode(text)):
            pieces.extend(self.split(word))
        return pieces

    def split(self, word: str) -> list[str]:
        """Returns the pieces of one word; the caller must not change them."""
        pieces = self._cache.get(word)
        if pieces is None:
            pieces = self._split(word) or [self.unk_token]
            if len(self._cache) >= _CACHED_WORDS:
                self._cache.clear()
            self._cache[word] = pieces
        return pieces

    def _split(self, word: str) -> list[str]:
        """Returns the pieces of the word, none if it cannot be spelt."""
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
    """Splits text into word pieces and finds them in the text.

    Args:
        vocab_file: the vocabulary, one piece per line.
        do_lower_case: lower-case and strip accents; must be as in training.
        keep_special_tokens: keep `[MASK]` and the other special tokens that
            stand in the text whole. The original takes them apart.
    """

    def __init__(
        self,
        vocab_file: epath.PathLike,
        do_lower_case: bool = True,
        keep_special_tokens: bool = False,
    ):
        vocab = load_vocab(vocab_file)
        check_casing(vocab, do_lower_case, vocab_file)
        self._set_vocab(vocab, do_lower_case, keep_special_tokens)

    @classmethod
    def from_vocab(
        cls,
        vocab: Mapping[str, int],
        do_lower_case: bool = True,
        keep_special_tokens: bool = False,
    ) -> typing.Self:
        """Makes a tokenizer of a vocabulary that is not in a file."""
        tokenizer = cls.__new__(cls)
        tokenizer._set_vocab(dict(vocab), do_lower_case, keep_special_tokens)
        return tokenizer

    def _set_vocab(
        self,
        vocab: dict[str, int],
        do_lower_case: bool,
        keep_special_tokens: bool,
    ) -> None:
        self.vocab = vocab
        self.inv_vocab = {index: piece for piece, index in vocab.items()}
        self.do_lower_case = do_lower_case
        self.basic_tokenizer = BasicTokenizer(do_lower_case)
        self.wordpiece_tokenizer = WordpieceTokenizer(vocab)
        kept = [token for token in SPECIAL_TOKENS if token in vocab]
        self._special = (
            re.compile("|".join(map(re.escape, kept)))
            if keep_special_tokens and kept
            else None
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the pieces of `text`."""
        pieces: list[str] = []
        for _, part, is_special in self._parts(convert_to_unicode(text)):
            if is_special:
                pieces.append(part)
                continue
            for word in self.basic_tokenizer.tokenize(part):
                pieces.extend(self.wordpiece_tokenizer.split(word))
        return pieces

    def tokenize_with_offsets(self, text: str | bytes) -> list[Token]:
        """Returns the pieces of `text` and the characters they come from.

        Offsets count characters of the `str`. A stripped accent counts to the
        letter before it; `[UNK]` covers its whole word; pieces of one and the
        same character (a Hangul syllable) share its offsets.
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
        """Returns the ids of the pieces."""
        return convert_by_vocab(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces of the ids."""
        return convert_by_vocab(self.inv_vocab, ids)

    def _parts(self, text: str) -> Iterator[tuple[int, str, bool]]:
        """Yields start and text of each part; True if a special token."""
        position = 0
        if self._special:
            for match in self._special.finditer(text):
                yield position, text[position : match.start()], False
                yield match.start(), match.group(), True
                position = match.end()
        yield position, text[position:], False

    def _pieces_and_widths(self, word: str) -> Iterator[tuple[str, int]]:
        """Yields each piece of the word and how many characters it spans."""
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
