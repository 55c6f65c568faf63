"""Tokenizers in the graph that return character offsets.

As in `tokenization.FullTokenizer.tokenize_with_offsets`, offsets count
characters, here of the text as TensorFlow decodes it, without invalid bytes.

Shapes: B texts, N characters of all texts, M after normalization, P tokens.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bert_tf import characters, vocabularies
from bert_tf.text import (
    graph_added_tokens,
    graph_byte_pairs,
    graph_rows,
    graph_symbols,
    sentence_piece_offsets,
    text_graph,
)
from bert_tf.vocabularies import (
    byte_pairs,
    fairseq_sentence_pieces,
    sentence_pieces,
    symbols,
    word_pieces,
)

import tensorflow as tf


class Tokenizer(Protocol):
    """A tokenizer that returns character offsets."""

    vocabulary: vocabularies.Vocabulary

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of each text, [B, (tokens)] int32."""

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Splits texts [B] into tokens."""


class OffsetTokenizer(text_graph.BertTokenizer):
    """A BertTokenizer that also returns character offsets."""

    def __init__(
        self, vocab: Sequence[str], do_lower_case: bool, **settings: Any
    ):
        super().__init__(vocab, do_lower_case, **settings)
        self._accents = tf.constant(
            [
                ord(x)
                for x in characters.assigned()
                if unicodedata.category(x) == "Mn"
            ]
        )

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Splits UTF-8 texts [B] into tokens; invalid bytes are skipped."""
        parts = self.normalize(texts)  # [B]
        words = None
        if not self._words.tokenize_chinese_chars:
            words = tf.strings.split(parts)  # [B, (words)]
            parts = words.values
        ids, first, end = self._wordpiece.tokenize_with_offsets(parts)
        codes, offsets = tf.strings.unicode_decode_with_offsets(parts, "UTF-8")
        # Both bytes and characters are counted over all texts.
        sizes = tf.strings.length(parts, unit="BYTE")
        before = tf.cumsum(tf.cast(sizes, tf.int64), exclusive=True)
        places = offsets.values + tf.gather(
            before, graph_rows.row_ids(codes)
        )  # [M]
        before = tf.gather(before, graph_rows.row_ids(ids))  # [P]
        first = graph_rows.search(places, first.values + before)
        last = graph_rows.search(places, end.values + before) - 1
        # Spaces are not counted, because normalization changes them.
        is_word = tf.cast(codes.values > ord(" "), tf.int32)
        number = tf.cumsum(is_word) - 1  # [M]
        starts, ends = self.origins(texts)
        if words is not None:
            ids = words.with_values(ids).merge_dims(1, 2)
        return graph_rows.Tokens(
            ids,
            tf.gather(starts, tf.gather(number, first)),
            tf.gather(ends, tf.gather(number, last)),
        )

    def origins(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the start and end of each word character in its text, int32.

        The number of characters that one character becomes never depends on its
        neighbours, so counting is enough to align the two sides. Spaces are
        skipped.
        """
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        codes, rows = decoded.values, graph_rows.row_ids(decoded)  # [N]
        width = self.widths(codes)  # [N]
        # A stripped accent belongs to the letter that it modifies.
        place = graph_rows.search(self._accents, codes)
        place = tf.minimum(place, tf.size(self._accents) - 1)
        is_accent = (tf.gather(self._accents, place) == codes) & (width == 0)
        letters = tf.where(~is_accent)  # [letters, 1]
        size = tf.size(codes, tf.int64)
        ends = tf.tensor_scatter_nd_update(
            tf.range(size),
            letters,
            tf.concat([tf.squeeze(letters, 1), [size]], 0)[1:],
        )
        ends = tf.minimum(ends, tf.gather(decoded.row_limits(), rows))
        text_starts = tf.gather(decoded.row_starts(), rows)
        starts = tf.range(size) - text_starts
        chars = graph_rows.repeats(width)
        return (
            tf.gather(tf.cast(starts, tf.int32), chars),
            tf.gather(tf.cast(ends - text_starts, tf.int32), chars),
        )

    def widths(self, codes: tf.Tensor) -> tf.Tensor:
        """Returns the number of word characters of each code point, [N]."""
        output = tf.gather(self._output, self._rule.lookup(codes))  # [N, 3]
        stays = (output >= 0) | (output == text_graph._ITSELF)
        stays &= output != ord(" ")
        return tf.math.count_nonzero(stays, axis=-1, dtype=tf.int32)


# Kind of vocabulary -> function that creates its tokenizer.
TOKENIZERS: dict[str, Callable[[Any], Tokenizer]] = {
    byte_pairs.BytePairs.kind: graph_byte_pairs.OffsetTokenizer,
    word_pieces.WordPiece.kind: OffsetTokenizer.of_vocabulary,
    fairseq_sentence_pieces.FairseqSentencePieces.kind: (
        sentence_piece_offsets.OffsetTokenizer
    ),
    sentence_pieces.SentencePieces.kind: sentence_piece_offsets.OffsetTokenizer,
    symbols.Symbols.kind: graph_symbols.SymbolTokenizer,
}


def register(kind: str, make: Callable[[Any], Tokenizer]) -> None:
    """Registers the tokenizer with offsets for a kind of vocabulary.

    `make` takes the vocabulary. Raises InputError if the kind has another one.
    """
    graph_rows.register(TOKENIZERS, kind, make, "with offsets")


def make_tokenizer(vocabulary: vocabularies.Vocabulary) -> Tokenizer:
    """Creates the tokenizer with offsets of a vocabulary."""
    graph_rows.import_tokenizers(vocabulary)
    plain = TOKENIZERS[vocabulary.tokenizer_kind](vocabulary)
    if not vocabulary.added:
        return plain
    return graph_added_tokens.AddedTokenizer(plain, vocabulary)
