"""Tokenizers in the graph, for tf.data and SavedModels.

The WordPiece tokenizer equals the one in `tokenization`. A table of all code
points, built from the Python tokenizer's own rules, normalizes the text;
tensorflow-text's FastWordpieceTokenizer then finds the tokens. Printable ASCII
needs no table, only lower-casing. All ops except
FastWordpieceTokenizeWithOffsets are TensorFlow's own, and TensorFlow Serving
supports them all.

Shapes: B texts, N code points of all texts, M after normalization.
"""

import dataclasses
import functools
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from bert_tf import characters, tokenization, vocabularies
from bert_tf.errors import InputError
from bert_tf.text import (
    graph_added_tokens,
    graph_byte_pairs,
    graph_code_tables,
    graph_rows,
    graph_sentence_pieces,
    graph_symbols,
)
from bert_tf.vocabularies import (
    byte_pairs,
    fairseq_sentence_pieces,
    sentence_pieces,
    symbols,
    word_pieces,
)

import numpy as np
import tensorflow as tf
import tensorflow_text as text

_MAX_CHARS = tokenization.MAX_CHARS_PER_WORD
# Max bytes of a token in FastWordpieceTokenizer.
_MAX_BYTES = 256
_SPACE = ord(" ")

# Texts that need no table: printable ASCII with words within the limit.
_PLAIN = rf"[!-~]{{0,{_MAX_CHARS}}}(?:[\t\n\r ]+[!-~]{{0,{_MAX_CHARS}}})*"

# Punctuation in such texts.
ASCII_MARK = r"[!-/:-@\[-`{-~]"

# Outputs of a code point other than code points (which are >= 0).
_NOTHING = -1
_ITSELF = -2
# No output either, but marks are not reordered across it.
_BARRIER = -3


class Rules(NamedTuple):
    """How texts are normalized: the settings of the Python tokenizer."""

    do_lower_case: bool
    strips_accents: bool
    tokenize_chinese_chars: bool

    def clean(self, char: str) -> str:
        """Cleans a character, and puts spaces around a Chinese one."""
        if self.tokenize_chinese_chars:
            return characters.clean(char)
        return characters.clean_only(char)

    def change(self, text: str) -> str:
        """Lower-cases a text and strips accents, as configured."""
        text = text.lower() if self.do_lower_case else text
        return (
            unicodedata.normalize("NFD", text) if self.strips_accents else text
        )


@dataclasses.dataclass(frozen=True)
class _Table:
    """The effect of normalization on each code point, with R distinct rules."""

    rule: np.ndarray  # [0x110000] int32
    output: np.ndarray  # [R, 3] int32: code points, or the constants above
    sigma_kind: np.ndarray  # [R] int32
    needs_context: np.ndarray  # [R] bool: a sigma, or a mark that may move
    marks: np.ndarray  # [marks] int32, sorted: the marks that may move
    mark_class: np.ndarray  # [marks] int32: their combining classes


@functools.cache
def _table(words: Rules) -> _Table:
    """Builds the table from the Python tokenizer's rules (about a second)."""
    rules: dict[tuple[tuple[int, ...], int, bool], int] = {}
    # The first rule is for all code points that are not assigned.
    rules[(_ITSELF,), characters.OTHER, False] = 0
    rule = np.zeros(characters.CODE_POINTS, np.int32)
    # CJK blocks contain unassigned code points, to which the rule applies, too.
    others = (
        x for x in characters.all_cjk() if unicodedata.category(x) == "Cn"
    )
    chars = sorted([*characters.assigned(), *others])
    combining = frozenset(ord(x) for x in chars if unicodedata.combining(x))
    marks: set[int] = set()
    cleaned = list(map(words.clean, chars))
    lowered_texts = characters.change_each(words.change, cleaned)
    kinds = characters.sigma_kinds(chars)
    # Most characters are letters that stay as they are, maybe between spaces.
    # All of them have one of two rules.
    rule_of_form: dict[str, int] = {}
    for char, clean, lowered, kind in zip(
        chars, cleaned, lowered_texts, kinds, strict=True
    ):
        code = ord(char)
        # No rule for marks, spaces or punctuation is about these.
        is_letter = kind == characters.OTHER and (
            unicodedata.category(char)[0] == "L" and not char.isascii()
        )
        form = lowered.replace(char, "x") if is_letter else ""
        if form in rule_of_form:
            rule[code] = rule_of_form[form]
            continue
        output = _output(lowered, words.strips_accents)
        moving = combining.intersection(output)
        needs_context = words.do_lower_case and code == graph_rows.SIGMA
        if words.strips_accents:
            needs_context |= bool(moving)
            marks |= moving
        output = tuple(_ITSELF if x == code != _SPACE else x for x in output)
        key = (output, kind if clean else characters.IGNORED, needs_context)
        rule[code] = rules.setdefault(key, len(rules))
        if form in ("x", " x "):
            rule_of_form[form] = rule[code]
    sorted_marks = sorted(marks)
    width = max(len(output) for output, _, _ in rules)
    padded = [x + (_NOTHING,) * (width - len(x)) for x, _, _ in rules]
    return _Table(
        rule=rule,
        output=np.array(padded, np.int32),
        sigma_kind=np.array([kind for _, kind, _ in rules], np.int32),
        needs_context=np.array([needs for _, _, needs in rules]),
        marks=np.array(sorted_marks, np.int32),
        mark_class=np.array([_combining(x) for x in sorted_marks], np.int32),
    )


def _combining(code: int) -> int:
    return unicodedata.combining(chr(code))


def _output(string: str, strips_accents: bool) -> tuple[int, ...]:
    """Returns the output of a clean character, regardless of neighbours."""
    output: list[int] = []
    for part in string:
        if strips_accents and unicodedata.category(part) == "Mn":
            if not _combining(ord(part)):
                output.append(_BARRIER)
        elif part.isspace():
            output.append(_SPACE)
        else:
            output.extend(map(ord, characters.split_punctuation(part)))
    return tuple(output)


@functools.lru_cache(maxsize=4)
def _wordpiece_model(
    vocab: tuple[str, ...], unknown: str, is_split: bool
) -> np.ndarray:
    """Builds the model of FastWordpieceTokenizer (0.1 s or more): uint8.

    Args:
        vocab: The tokens that it may find.
        unknown: The token of other words.
        is_split: Whether texts are already split into words.
    """
    model = text.build_fast_wordpiece_model(
        list(vocab),
        # The limit of characters is checked before. A code point has at most 4
        # bytes.
        4 * _MAX_CHARS,
        tokenization.SUFFIX_INDICATOR,
        unknown,
        is_split,
        False,
    )
    return np.frombuffer(model, np.uint8)


class BertTokenizer(graph_rows.Tokenizer):
    """Splits texts into WordPiece ids and packs them for the model.

    `vocab` lists the tokens by id. `do_lower_case` and the settings (keyword
    arguments of `tokenization.BasicTokenizer`) must be the same as in training.
    """

    def __init__(
        self, vocab: Sequence[str], do_lower_case: bool, **settings: Any
    ):
        vocabulary = word_pieces.WordPiece(
            tuple(vocab), do_lower_case, **settings
        )
        super().__init__(vocabulary)
        self.do_lower_case = do_lower_case
        self._words = Rules(
            do_lower_case,
            characters.strips_accents(do_lower_case, vocabulary.strip_accents),
            vocabulary.tokenize_chinese_chars,
        )
        table = _table(self._words)
        self._rule = graph_code_tables.CodeTable(self.rules_of(table.rule))
        self._output = tf.constant(table.output)
        self._sigma_kind = tf.constant(table.sigma_kind)
        self._needs_context = tf.constant(table.needs_context)
        self._marks = tf.constant(table.marks)
        self._mark_class = tf.constant(table.mark_class)
        # A private-use code point that is in no token, to get [UNK].
        used = set().union(*vocab)
        self._unknown = next(
            x for x in range(0xE000, 0xF900) if chr(x) not in used
        )
        model = _wordpiece_model(
            tuple(_without_unreachable(vocab)),
            vocabulary.special.unk.text,
            # The op's own splitting separates Chinese characters.
            not vocabulary.tokenize_chinese_chars,
        )
        self._wordpiece = text.FastWordpieceTokenizer(
            model_buffer=tf.constant(model), token_out_type=tf.int32
        )

    @classmethod
    def of_vocabulary(cls, vocabulary: word_pieces.WordPiece) -> Self:
        """Creates the tokenizer of a vocabulary, without its added tokens."""
        return cls(
            vocabulary.own_pieces,
            vocabulary.do_lower_case,
            **vocabulary.own_settings,
        )

    def rules_of(self, usual: np.ndarray) -> np.ndarray:
        """Returns the number of the rule of each code point, [0x110000].

        Subclasses may return a copy in which some numbers differ.
        """
        return usual

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are skipped.
        """
        normalized = self.normalize(texts)
        if self._words.tokenize_chinese_chars:
            return self._wordpiece.tokenize(normalized)
        words = tf.strings.split(normalized)  # [B, (words)]
        return self._wordpiece.tokenize(words).merge_dims(1, 2)

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns texts [B] as words and marks with spaces between them."""
        is_plain = tf.strings.regex_full_match(texts, _PLAIN)  # [B]
        plain = tf.strings.lower(texts) if self.do_lower_case else texts
        if not self._words.tokenize_chinese_chars:
            plain = tf.strings.regex_replace(plain, ASCII_MARK, r" \0 ")
        others = tf.where(~is_plain)  # [others, 1]
        normalized = self._normalize_by_table(tf.gather_nd(texts, others))
        return tf.tensor_scatter_nd_update(plain, others, normalized)

    def _normalize_by_table(self, texts: tf.Tensor) -> tf.Tensor:
        # With a space at each end, no rule applies across texts.
        codes = tf.strings.unicode_decode(
            tf.strings.join([" ", texts, " "]), "UTF-8", errors="ignore"
        )
        rows = graph_rows.row_ids(codes)  # [N]
        codes = codes.values  # [N]
        rules = self._rule.lookup(codes)  # [N]
        if self.do_lower_case or self._words.strips_accents:
            codes, rows = tf.cond(
                tf.reduce_any(tf.gather(self._needs_context, rules)),
                lambda: self._map_in_context(codes, rules, rows),
                lambda: self._map(codes, rules, rows),
            )
        else:
            codes, rows = self._map(codes, rules, rows)
        codes = self.limit_words(codes)  # [M]
        ragged = graph_rows.of_sorted_rows(
            codes, rows, tf.size(texts, tf.int64)
        )
        return tf.strings.unicode_encode(ragged, "UTF-8")

    def _map(
        self,
        codes: tf.Tensor,
        rules: tf.Tensor,
        rows: tf.Tensor,
        keep_barriers: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Replaces each code point by its output: [N] -> [M]."""
        output = tf.gather(self._output, rules)  # [N, 3]
        output = tf.where(output == _ITSELF, tf.expand_dims(codes, 1), output)
        is_kept = output >= 0
        if keep_barriers:
            is_kept |= output == _BARRIER
        kept = tf.where(is_kept)  # [M, 2]
        places, _ = tf.unstack(kept, axis=1)  # [M]
        return tf.gather_nd(output, kept), tf.gather(rows, places)

    def _map_in_context(
        self, codes: tf.Tensor, rules: tf.Tensor, rows: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Like `_map`, for rules with context: final sigmas and marks."""
        if self.do_lower_case:
            codes = self.mark_final_sigmas(codes, rules)
        codes, rows = self._map(codes, self._rule.lookup(codes), rows, True)
        if self._words.strips_accents:
            codes = self._order_marks(codes)
        kept = tf.where(codes != _BARRIER)
        return tf.gather_nd(codes, kept), tf.gather_nd(rows, kept)

    def mark_final_sigmas(
        self, codes: tf.Tensor, rules: tf.Tensor
    ) -> tf.Tensor:
        """Replaces capital sigmas that end a word by small final ones."""
        kinds = tf.gather(self._sigma_kind, rules)
        return graph_rows.final_sigmas(codes, kinds)

    def _order_marks(self, codes: tf.Tensor) -> tf.Tensor:
        """Sorts each run of marks by combining class, as NFD does.

        Accents are stripped before; a few others, such as musical ones, remain.
        """
        place = graph_rows.search(self._marks, codes)
        place = tf.minimum(place, tf.size(self._marks) - 1)
        is_mark = tf.gather(self._marks, place) == codes
        mark_class = tf.where(is_mark, tf.gather(self._mark_class, place), 0)
        run = tf.cumsum(tf.cast(~is_mark, tf.int64))
        # Combining classes are below 256.
        key = run * 256 + tf.cast(mark_class, tf.int64)
        order = tf.argsort(key, stable=True)
        return tf.gather(codes, order)

    def limit_words(self, codes: tf.Tensor) -> tf.Tensor:
        """Replaces words of more than 200 characters by unknown ones, [M]."""
        is_space = codes == _SPACE  # [M]
        spaces = tf.cast(tf.squeeze(tf.where(is_space), 1), tf.int32)
        # Every text starts and ends with a space, so words are between spaces.
        is_long = spaces[1:] - spaces[:-1] - 1 > _MAX_CHARS

        def replace() -> tf.Tensor:
            word = tf.cumsum(tf.cast(is_space, tf.int32)) - 1
            in_long = tf.gather(tf.pad(is_long, [[0, 1]]), word)
            return tf.where(in_long & ~is_space, self._unknown, codes)

        return tf.cond(tf.reduce_any(is_long), replace, lambda: codes)


def _without_unreachable(vocab: Sequence[str]) -> list[str]:
    """Replaces tokens with white space or control characters by placeholders.

    The Python tokenizer never finds such tokens, because no word contains these
    characters; FastWordpieceTokenizer would find them or reject them. It also
    rejects tokens that are longer than any word. Raises InputError for a token
    that can be a word but that the op does not accept.
    """
    words = tokenization.BasicTokenizer(do_lower_case=False)

    def is_reachable(piece: str) -> bool:
        piece = piece.removeprefix(tokenization.SUFFIX_INDICATOR)
        if len(piece) > _MAX_CHARS:
            return False
        if len(piece.encode("utf-8", "replace")) > _MAX_BYTES:
            raise InputError(
                "A token of the vocabulary must have at most "
                f"{_MAX_BYTES} bytes in UTF-8: remove it, or replace its line "
                f"by a name such as [unused1]. Received: {piece[:20]!r}..., "
                f"{len(piece.encode())} bytes"
            )
        return piece != "" and "".join(words.tokenize(piece)) == piece

    return [
        piece if is_reachable(piece) else f"[unreachable {index}]"
        for index, piece in enumerate(vocab)
    ]


# ---- Any vocabulary ----------------------------------------------------------


# Kind of vocabulary -> function that creates its tokenizer.
TOKENIZERS: dict[str, Callable[[Any], graph_rows.Tokenizer]] = {
    byte_pairs.BytePairs.kind: graph_byte_pairs.BytePairTokenizer,
    word_pieces.WordPiece.kind: BertTokenizer.of_vocabulary,
    fairseq_sentence_pieces.FairseqSentencePieces.kind: (
        graph_sentence_pieces.SentencePieceTokenizer
    ),
    sentence_pieces.SentencePieces.kind: (
        graph_sentence_pieces.SentencePieceTokenizer
    ),
    symbols.Symbols.kind: graph_symbols.SymbolTokenizer,
}


def register(kind: str, make: Callable[[Any], graph_rows.Tokenizer]) -> None:
    """Registers the graph tokenizer for a kind of vocabulary.

    `make` takes the vocabulary. Raises InputError if the kind has another one.
    """
    graph_rows.register(TOKENIZERS, kind, make, "in the graph")


def make_tokenizer(vocabulary: vocabularies.Vocabulary) -> graph_rows.Tokenizer:
    """Returns the tokenizer of a vocabulary, which equal ones may share."""
    graph_rows.import_tokenizers(vocabulary)
    make = TOKENIZERS[vocabulary.tokenizer_kind]
    # Tensors that are made in a graph belong to it.
    if not tf.executing_eagerly() or not _is_told_by_fields(vocabulary):
        return _create(vocabulary, make)
    return _shared(vocabulary, make)


def _is_told_by_fields(vocabulary: vocabularies.Vocabulary) -> bool:
    """Returns whether equal vocabularies are sure to split texts alike."""
    # A custom class may keep more in other attributes, or in lists.
    if "__dataclass_params__" not in vars(type(vocabulary)):
        return False
    try:
        hash(vocabulary)
    except TypeError:
        return False
    return True


def _create(
    vocabulary: vocabularies.Vocabulary, make: Callable[[Any], Any]
) -> graph_rows.Tokenizer:
    tokenizer = make(vocabulary)
    if vocabulary.added:
        tokenizer = graph_added_tokens.AddedTokenizer(tokenizer, vocabulary)
    # A function in the graph, so that the signatures of an export share it. Set
    # here, as tokenizers, also of users, define a plain method.
    tokenizer.tokenize = tf.function(
        tokenizer.tokenize,
        [tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    return tokenizer


# A run tokenizes its data and exports with equal vocabularies: the tokenizer is
# traced once.
_shared = functools.lru_cache(maxsize=4)(_create)
