"""A vocabulary of another kind, defined outside of the package.

Its tokens are separated by white space, and its sequences differ from BERT's in
every part of a template.
"""

import dataclasses
import pathlib
from typing import ClassVar

from bert_tf import tokenization, vocabularies
from bert_tf.text import graph_rows

import numpy as np
import tensorflow as tf


class Tokenizer:
    """Splits at spaces."""

    def __init__(self, ids):
        self._ids = ids

    def tokenize(self, text):
        return text.split()

    def tokenize_with_offsets(self, text):
        tokens, start = [], 0
        for piece in text.split():
            start = text.index(piece, start)
            tokens.append(tokenization.Token(piece, start, start + len(piece)))
            start += len(piece)
        return tokens

    def convert_tokens_to_ids(self, tokens):
        return [self._ids.get(token, 3) for token in tokens]


class Bulk:
    """Splits many texts at spaces."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def tokenize(self, texts):
        ids = [self._tokenizer.convert_tokens_to_ids(x.split()) for x in texts]
        flat = [x for row in ids for x in row]
        return np.array(flat, np.int32), np.array([len(row) for row in ids])


@dataclasses.dataclass(frozen=True)
class Signs(vocabularies.Vocabulary):
    """`<mask> <s> first </s> </s> second </s>`, padded with token 1.

    The first text and padding are in segment 1, the second text in 3.
    """

    kind: ClassVar[str] = "signs"

    @classmethod
    def parse(cls, contents, do_lower_case, name):
        del do_lower_case, name
        return cls(tuple(contents["signs.txt"].decode().split("\n")))

    @property
    def own_files(self):
        return {"signs.txt": "\n".join(self.pieces).encode()}

    @property
    def special(self):
        return vocabularies.Special(
            pad=vocabularies.SpecialToken("<pad>", 1),
            unk=vocabularies.SpecialToken("<unk>", 3),
            cls=vocabularies.SpecialToken("<s>", 0),
            sep=vocabularies.SpecialToken("</s>", 2),
            mask=vocabularies.SpecialToken("<mask>", 4),
        )

    @property
    def template(self):
        return vocabularies.Template(
            before=(4, 0), between=(2, 2), after=(2,), segments=(1, 3), pooled=1
        )

    @property
    def spellings(self):
        return [vocabularies.Spelling(piece, None) for piece in self.pieces]

    def own_tokenizer(self):
        return Tokenizer(self.ids)

    def own_bulk_tokenizer(self):
        return Bulk(self.own_tokenizer())


class GraphTokenizer(graph_rows.Tokenizer):
    """Splits at ASCII spaces, in the graph, with the offsets of tokens."""

    def __init__(self, vocabulary):
        super().__init__(vocabulary)
        keys = tf.constant(list(vocabulary.pieces))
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(keys))),
            vocabulary.special.unk.id,
        )

    def tokenize(self, texts):
        words = tf.strings.split(texts)
        return words.with_values(self._table.lookup(words.values))

    def tokenize_with_offsets(self, texts):
        chars = tf.strings.unicode_split(texts, "UTF-8", errors="ignore")
        is_word = tf.strings.regex_full_match(chars.flat_values, r"[^ \t\n]")
        lengths = chars.row_lengths()
        places = tf.ragged.range(lengths).flat_values
        none = tf.constant([False])
        goes_on = tf.concat([none, is_word[:-1]], 0) & (places > 0)
        is_last = places == tf.gather(lengths - 1, chars.value_rowids())
        ends = is_word & (is_last | ~tf.concat([is_word[1:], none], 0))
        places = tf.cast(places, tf.int32)
        starts = tf.boolean_mask(places, is_word & ~goes_on)
        ends = tf.boolean_mask(places, ends) + 1
        return graph_rows.Tokens(self.tokenize(texts), starts, ends)


def _open(path, say):
    del say
    return {"signs.txt": pathlib.Path(path).read_bytes()}


ROW = vocabularies.Kind(("signs.txt",), (".signs",), _open, Signs.parse)
VOCABULARY = Signs(
    ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz")
)
