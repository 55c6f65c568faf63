"""Tables of all code points in the graph, and the expansion of characters.

Shapes: Q texts, N characters of all texts.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bert_tf import characters

import numpy as np
import tensorflow as tf

_BITS = 8
_PAGE = 1 << _BITS


class Decoded(NamedTuple):
    """The characters of all texts, and where they begin in their text."""

    codes: tf.Tensor  # [N] int32
    offsets: tf.Tensor  # [N] int64
    splits: tf.Tensor  # [Q + 1] int64, where texts begin and end


def decode(texts: tf.Tensor) -> Decoded:
    """Returns the characters of valid UTF-8 texts [Q]."""
    codes, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    return Decoded(codes.values, offsets.values, codes.row_splits)


class CodeTable(tf.Module):
    """A number for each code point; most pages of 256 are alike."""

    def __init__(self, table: np.ndarray):
        """`table` is [0x110000] int32."""
        super().__init__()
        pages: dict[bytes, int] = {}
        numbers = [
            pages.setdefault(page.tobytes(), len(pages))
            for page in table.reshape(-1, _PAGE)
        ]
        self._pages = tf.constant(np.frombuffer(b"".join(pages), table.dtype))
        self._numbers = tf.constant(numbers)

    def lookup(self, codes: tf.Tensor) -> tf.Tensor:
        """Returns the numbers of code points [N], int32."""
        page = tf.gather(self._numbers, tf.bitwise.right_shift(codes, _BITS))
        inside = tf.bitwise.bitwise_and(codes, _PAGE - 1)
        return tf.gather(self._pages, page * _PAGE + inside)


class Expander(tf.Module):
    """Replaces characters by normalized forms of several characters."""

    def __init__(self, forms: Mapping[str, str]):
        super().__init__()
        numbers = np.zeros(characters.CODE_POINTS, np.int32)
        numbers[list(map(ord, forms))] = range(1, len(forms) + 1)
        self._numbers = CodeTable(numbers)
        counts = np.array([1, *map(len, forms.values())], np.int64)
        self._counts = tf.constant(counts)
        self._starts = tf.constant(np.cumsum(counts) - counts)
        joined = "".join(forms.values())
        self._outputs = tf.constant([0, *map(ord, joined)])

    def counts(self, decoded: Decoded) -> tf.RaggedTensor:
        """Returns the size of each character's form, [Q, (N)]."""
        counts = tf.gather(self._counts, self._numbers.lookup(decoded.codes))
        return tf.RaggedTensor.from_row_splits(
            counts, decoded.splits, validate=False
        )

    def expand(
        self, texts: tf.Tensor, decoded: Decoded
    ) -> tuple[tf.Tensor, Decoded]:
        """Expands texts [Q]; `decoded` has their characters."""
        numbers = self._numbers.lookup(decoded.codes)  # [N]

        def replace() -> tuple[tf.Tensor, Decoded]:
            counts = self.counts(decoded)
            size = tf.size(numbers)
            place = tf.repeat(tf.range(size), counts.values)
            before = tf.cumsum(counts.values, exclusive=True)
            inside = tf.range(tf.size(place, tf.int64))
            inside -= tf.gather(before, place)
            number = tf.gather(numbers, place)
            outputs = tf.gather(
                self._outputs, tf.gather(self._starts, number) + inside
            )
            same = tf.gather(decoded.codes, place)
            rows = tf.RaggedTensor.from_value_rowids(
                tf.where(number > 0, outputs, same),
                tf.gather(counts.value_rowids(), place),
                nrows=counts.nrows(),
                validate=False,
            )
            expanded = tf.strings.unicode_encode(rows, "UTF-8")
            return expanded, decode(expanded)

        return tf.cond(
            tf.reduce_any(numbers > 0), replace, lambda: (texts, decoded)
        )
