"""SentencePiece in the graph, equal to `vocabularies.sentence_pieces`.

A table of all code points, built from the Python tokenizer's own rules,
normalizes the text; tensorflow-text's FastSentencepieceTokenizer applies the
model's rules and finds the tokens of each word; a table of ids separates
numbers from their commas. All ops except TFText>FastSentencepieceTokenize are
TensorFlow's own, and TensorFlow Serving supports them all.

Shapes: B texts, N code points of all texts, M after normalization, W words of
all texts, P tokens of all texts.
"""

import dataclasses
import functools
from collections.abc import Callable

from bert_tf import characters
from bert_tf.text import graph_code_tables, graph_rows
from bert_tf.vocabularies import (
    sentence_models,
    sentence_pieces,
    sentence_tokenizers,
)

import numpy as np
import tensorflow as tf
import tensorflow_text as text

# Texts that need no table.
_PLAIN = r"[\t\n\r -~]*"


@dataclasses.dataclass(frozen=True)
class _Table:
    """The effect of normalization on each code point, with R distinct rules.

    The first rule leaves a code point unchanged; all others replace it by
    `outputs[start : start + count]`.
    """

    rule: np.ndarray  # [0x110000] int32
    start: np.ndarray  # [R] int32
    count: np.ndarray  # [R] int32
    outputs: np.ndarray  # [outputs] int32, code points
    sigma_kind: np.ndarray  # [0x110000] int32


@functools.cache
def _table(normalize_char: Callable[[str], str], do_lower_case: bool) -> _Table:
    """Builds the table from the Python tokenizer's rules (half a second)."""
    rules: dict[str | None, int] = {None: 0}
    rule = np.zeros(characters.CODE_POINTS, np.int32)
    sigma_kind = np.zeros(characters.CODE_POINTS, np.int32)
    chars = characters.assigned()  # the others stay unchanged
    if do_lower_case:
        sigma_kind[list(map(ord, chars))] = characters.sigma_kinds(chars)
    for char in chars:
        output = normalize_char(char)
        if do_lower_case and output != "Σ":
            # The rule of the final sigma needs the capital.
            output = "".join(x if x == "Σ" else x.lower() for x in output)
        if output != char:
            rule[ord(char)] = rules.setdefault(output, len(rules))
    outputs = [output or "" for output in rules]
    count = np.array([1, *map(len, outputs[1:])], np.int32)
    return _Table(
        rule=rule,
        start=np.concatenate([[0], np.cumsum(list(map(len, outputs)))[:-1]]),
        count=count,
        outputs=np.array([ord(x) for x in "".join(outputs)], np.int32),
        sigma_kind=sigma_kind,
    )


class SentencePieceTokenizer(graph_rows.Tokenizer):
    """Splits texts into SentencePiece ids and packs them for the model."""

    def __init__(self, vocabulary: sentence_pieces.SentencePieces):
        super().__init__(vocabulary)
        self.do_lower_case = vocabulary.do_lower_case
        self._quotes = vocabulary.quotes
        table = _table(vocabulary.rules.char, self.do_lower_case)
        self._rule = graph_code_tables.CodeTable(table.rule)
        self._start = tf.constant(table.start, tf.int32)
        self._count = tf.constant(table.count)
        self._outputs = tf.constant(table.outputs)
        self._sigma_kind = graph_code_tables.CodeTable(table.sigma_kind)
        self._sentencepiece = text.FastSentencepieceTokenizer(vocabulary.model)
        processor = sentence_models.processor(vocabulary.model, vocabulary.kind)
        self._cut = sentence_tokenizers.cut_pieces(vocabulary, processor)
        # For each id, the ids that replace it: usually the id itself.
        parts = [
            [part.id for part in self._cut[number]]
            if number in self._cut
            else [number]
            for number in range(len(vocabulary.pieces))
        ]
        sizes = np.array([len(ids) for ids in parts], np.int32)
        self._part_count = tf.constant(sizes)
        self._part_start = tf.constant(np.cumsum(sizes) - sizes, tf.int32)
        self._parts = tf.constant(np.concatenate(parts), tf.int32)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of UTF-8 texts [B]: [B, (tokens)] int32.

        Invalid bytes are skipped.
        """
        texts = self._with_quotes(texts)
        words = tf.strings.split(self._normalize(texts))  # [B, (words)]
        pieces = self._split(words.values)  # [W, (tokens)]
        return tf.RaggedTensor.from_row_splits(
            pieces.values,
            tf.gather(pieces.row_splits, words.row_splits),
            validate=False,
        )

    def _split(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of normalized words [W]: [W, (tokens)] int32."""
        pieces = self._sentencepiece.tokenize(words)
        pieces = pieces.with_row_splits_dtype(tf.int64)
        if not self._cut:
            return pieces
        ids = pieces.values  # [P]
        counts = tf.gather(self._part_count, ids)
        return tf.RaggedTensor.from_row_splits(
            tf.gather(
                self._parts, ranges(tf.gather(self._part_start, ids), counts)
            ),
            tf.gather(
                tf.concat([[0], tf.cumsum(tf.cast(counts, tf.int64))], 0),
                pieces.row_splits,
            ),
            validate=False,
        )

    # ---- Normalize -----------------------------------------------------------

    def _with_quotes(self, texts: tf.Tensor) -> tf.Tensor:
        """Changes a text before all else, as `sentence_tokenizers.Rules`."""
        if self._quotes is None:
            return texts
        return tf.strings.regex_replace(texts, *self._quotes)

    def _normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Normalizes texts up to the rules of the model itself."""
        is_plain = tf.strings.regex_full_match(texts, _PLAIN)  # [B]
        plain = tf.strings.lower(texts) if self.do_lower_case else texts
        others = tf.where(~is_plain)  # [others, 1]
        decoded = tf.strings.unicode_decode(
            tf.gather_nd(texts, others), "UTF-8", errors="ignore"
        )
        rows, _ = self._normalize_codes(decoded)
        normalized = tf.strings.unicode_encode(rows, "UTF-8")
        return tf.tensor_scatter_nd_update(plain, others, normalized)

    def _normalize_codes(
        self, decoded: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Normalizes characters [B, (N)].

        Returns:
            The normalized characters [B, (M)], and the index in [N] of each
            one's source.
        """
        codes, place = self._map(decoded.values)  # [M]
        rows = tf.RaggedTensor.from_value_rowids(
            codes,
            tf.gather(decoded.value_rowids(), place),
            nrows=decoded.nrows(),
            validate=False,
        )
        if self.do_lower_case:
            rows = rows.with_values(self._lower_sigmas(rows))
        return rows, place

    def _map(self, codes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Replaces code points [N] by their outputs [M].

        Returns:
            The outputs, and the index of each one's source code point.
        """
        rule = self._rule.lookup(codes)  # [N]
        counts = tf.gather(self._count, rule)
        place = tf.repeat(tf.range(tf.size(codes)), counts)  # [M]
        outputs = tf.gather(
            self._outputs, ranges(tf.gather(self._start, rule), counts)
        )
        is_itself = tf.gather(rule, place) == 0
        return tf.where(is_itself, tf.gather(codes, place), outputs), place

    def _lower_sigmas(self, rows: tf.RaggedTensor) -> tf.Tensor:
        """Lower-cases capital sigmas in the code points [M]."""
        return tf.cond(
            tf.reduce_any(rows.values == graph_rows.SIGMA),
            lambda: self._lower_in_context(rows),
            lambda: rows.values,
        )

    def _lower_in_context(self, rows: tf.RaggedTensor) -> tf.Tensor:
        """Replaces each capital sigma by a small one, or by a final one."""
        # With a space at each end, no rule applies across texts.
        ends = tf.fill([rows.nrows(), 1], ord(" "))
        spaced = tf.concat([ends, rows, ends], axis=1)
        codes = spaced.flat_values
        kinds = self._sigma_kind.lookup(codes)
        codes = graph_rows.final_sigmas(codes, kinds)
        codes = tf.where(codes == graph_rows.SIGMA, ord("σ"), codes)
        return spaced.with_flat_values(codes)[:, 1:-1].values


def ranges(starts: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns starts[i], starts[i] + 1, ..., `counts[i]` each, joined."""
    before = tf.cumsum(counts, exclusive=True)
    return tf.range(tf.reduce_sum(counts)) + tf.repeat(starts - before, counts)
