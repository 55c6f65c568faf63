"""GPT-1's BPE in the graph, with TensorFlow's own ops only.

Texts are split into words as for an uncased BERT, and the characters of words
are merged like the bytes of byte pairs.

Shapes: B texts, W words of all texts, R distinct words of several tokens, M
characters of those words, P tokens of all texts.
"""

from typing import Any

from bert_tf import vocab_files
from bert_tf.contrib import word_end_pairs
from bert_tf.text import graph_byte_pairs, graph_offsets, graph_rows, text_graph

import numpy as np
import tensorflow as tf

# The words need no vocabulary; BertTokenizer needs these tokens and one word.
_NO_WORDS = (*vocab_files.SPECIAL_TOKENS, "a")
_SOFT_HYPHEN = 0xAD  # Left out of texts.
_PRIVATE = (
    *range(0xE000, 0xF900),
    *range(0xF0000, 0xFFFFE),
    *range(0x100000, 0x10FFFE),
)


class _Words(text_graph.BertTokenizer):
    """Words of any length, with the two rules of word_end_pairs.py."""

    def rules_of(self, usual: np.ndarray) -> np.ndarray:
        """Leaves out characters for private use."""
        found = usual.copy()
        found[list(_PRIVATE)] = found[_SOFT_HYPHEN]
        return found

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words of texts [B], [B, (words)] string."""
        marks = text_graph.ASCII_MARK
        return tf.strings.split(
            tf.strings.regex_replace(self.normalize(texts), marks, r" \0 ")
        )

    def limit_words(self, codes: tf.Tensor) -> tf.Tensor:
        """Words have no limit."""
        return codes

    def mark_final_sigmas(
        self, codes: tf.Tensor, rules: tf.Tensor
    ) -> tf.Tensor:
        """Sigmas that end a word are as all others."""
        del rules
        return codes


class _WordsWithOffsets(_Words, graph_offsets.OffsetTokenizer):
    """The same words, and the characters that they come from."""


class WordEndPairTokenizer(graph_byte_pairs.BytePairTokenizer):
    """Splits texts into the ids of tokens and packs them for the model."""

    _splitter_class: Any = _Words

    def __init__(self, vocabulary: word_end_pairs.WordEndPairs):
        graph_rows.Tokenizer.__init__(self, vocabulary)
        self._splitter = self._splitter_class(_NO_WORDS, True)
        self.set_merges(vocabulary, _whole_words(vocabulary))
        ids, unknown = vocabulary.ids, vocabulary.special.unk.id
        end = word_end_pairs.END
        # The ids of characters inside of words, and at their ends.
        self._inside, self._last = (
            tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    tf.constant([-1, *map(ord, found)], tf.int32),
                    tf.constant([unknown, *found.values()], tf.int32),
                ),
                unknown,
            )
            for found in (
                {x: i for x, i in ids.items() if len(x) == 1},
                {
                    x[0]: i
                    for x, i in ids.items()
                    if len(x) == 1 + len(end) and x.endswith(end)
                },
            )
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are skipped.
        """
        words = self._splitter.words(texts)
        found = graph_byte_pairs.Words(words.values, words.value_rowids())
        return self.split_words(found, tf.size(texts, tf.int64))

    def symbols(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the id of each character of words, and its word: [M]."""
        codes = tf.strings.unicode_decode(words, "UTF-8")  # [R, (chars)]
        flat, rows = codes.values, codes.value_rowids()  # [M]
        places = tf.range(tf.size(flat, tf.int64)) + 1
        is_last = places == tf.gather(codes.row_limits(), rows)
        ids = tf.where(
            is_last, self._last.lookup(flat), self._inside.lookup(flat)
        )
        return ids, rows


class OffsetTokenizer(WordEndPairTokenizer):
    """A WordEndPairTokenizer that also returns character offsets."""

    _splitter_class = _WordsWithOffsets

    def __init__(self, vocabulary: word_end_pairs.WordEndPairs):
        super().__init__(vocabulary)
        sizes = map(word_end_pairs.spelled_length, vocabulary.pieces)
        self._sizes = tf.constant(list(sizes))

    def tokenize_with_offsets(self, texts: tf.Tensor) -> graph_rows.Tokens:
        """Splits UTF-8 texts [B] into tokens; invalid bytes are skipped."""
        ids = self.tokenize(texts)
        sizes = tf.gather(self._sizes, ids.values)  # [P]
        limits = tf.cumsum(sizes)
        starts, ends = self._splitter.origins(texts)  # of all words' characters
        return graph_rows.Tokens(
            ids,
            tf.gather(starts, limits - sizes),
            tf.gather(ends, limits - 1),
        )


def _whole_words(
    vocabulary: word_end_pairs.WordEndPairs,
) -> tuple[list[bytes], list[int]]:
    """Returns the words that are a single token, and their ids."""
    model, end = vocabulary.model(), word_end_pairs.END
    found = {
        piece.removesuffix(end).encode(): index
        for piece, index in vocabulary.ids.items()
        if piece.endswith(end)
        and [x.id for x in model.tokenize(piece.removesuffix(end))] == [index]
    }
    return list(found), list(found.values())


text_graph.register(word_end_pairs.WordEndPairs.kind, WordEndPairTokenizer)
graph_offsets.register(word_end_pairs.WordEndPairs.kind, OffsetTokenizer)
