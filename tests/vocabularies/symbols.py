"""A vocabulary of another kind, defined outside of the package.

Its pieces are what white space separates, and its rows are laid out otherwise
than BERT's in all that a template says.
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
        ids = [
            self._tokenizer.convert_tokens_to_ids(text.split())
            for text in texts
        ]
        flat = [x for row in ids for x in row]
        return np.array(flat, np.int32), np.array([len(row) for row in ids])


@dataclasses.dataclass(frozen=True)
class Symbols(vocabularies.Vocabulary):
    """`<s> first </s> </s> second </s>`, filled up with 1, in one segment."""

    kind: ClassVar[str] = "symbols"

    @classmethod
    def parse(cls, contents, do_lower_case, name):
        del do_lower_case, name
        return cls(tuple(contents["symbols.txt"].decode().split("\n")))

    @property
    def files(self):
        return {"symbols.txt": "\n".join(self.pieces).encode()}

    @property
    def settings(self):
        return {}

    @property
    def special(self):
        return vocabularies.Special(
            pad=vocabularies.Piece("<pad>", 1),
            unk=vocabularies.Piece("<unk>", 3),
            cls=vocabularies.Piece("<s>", 0),
            sep=vocabularies.Piece("</s>", 2),
            mask=vocabularies.Piece("<mask>", 4),
        )

    @property
    def missing(self):
        return ()

    @property
    def template(self):
        return vocabularies.Template(
            before=(4, 0), between=(2, 2), after=(2,), segments=(0, 3), pooled=1
        )

    @property
    def continues(self):
        return np.zeros(len(self.pieces), bool)

    @property
    def spellings(self):
        return [vocabularies.Spelling(piece, None) for piece in self.pieces]

    def tokenizer(self):
        return Tokenizer(self.ids)

    def bulk_tokenizer(self):
        return Bulk(self.tokenizer())


class GraphTokenizer(graph_rows.Tokenizer):
    """Splits at spaces, in the graph."""

    def tokenize(self, texts):
        words = tf.strings.split(texts)
        keys = tf.constant(list(self.vocabulary.pieces))
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(keys))), 3
        )
        return words.with_values(table.lookup(words.values))


def _open(path, say):
    del say
    return {"symbols.txt": pathlib.Path(path).read_bytes()}


ROW = vocabularies.Kind(
    files=("symbols.txt",),
    endings=(".symbols",),
    open=_open,
    read=Symbols.parse,
)

VOCABULARY = Symbols(
    ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz")
)
