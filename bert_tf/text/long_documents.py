"""Which part of a long document the model reads: an end, both ends, or all.

Head and tail together worked best for classifying texts of 512 tokens and more
(Sun et al. 2019, "How to Fine-Tune BERT for Text Classification?", section
5.3.1). Averaging the logits of windows that all have the document's label is
from Pappagari et al. 2019, "Hierarchical Transformers for Long Document
Classification", section 3, without their second network. Here all windows of a
document together have the weight of one short document.

Shapes: B documents, W windows of all documents, C classes.
"""

import dataclasses

from bert_tf import options
from bert_tf.errors import InputError

import numpy as np
import tensorflow as tf

METHODS = options.LONG_DOCUMENTS
_WINDOWS = "windows"
# 128 of 510 tokens, Sun et al.
_HEAD_SHARE = 128 / 510


@dataclasses.dataclass(frozen=True)
class LongDocuments:
    """How documents with more tokens than fit are cut.

    `method` is one of METHODS; `stride` is the distance in tokens from one
    window to the next, None for half a window.
    """

    method: str = "head"
    stride: int | None = None

    def __post_init__(self):
        if self.method not in METHODS:
            raise InputError(
                f"Expected one of {', '.join(METHODS)}. "
                f"Received: long_documents={self.method}"
            )
        if self.stride is not None and self.method != _WINDOWS:
            raise InputError(
                "--window_stride belongs to --long_documents=windows. "
                f"Received: long_documents={self.method}"
            )

    @property
    def keeps_rows(self) -> bool:
        """Whether `cut` leaves all to the tokenizer, which keeps the head."""
        return self.method == "head"

    @property
    def in_windows(self) -> bool:
        """Whether a document may become several sequences."""
        return self.method == _WINDOWS

    def check(self, room: int) -> None:
        """Raises InputError if windows would skip tokens between them."""
        if self.stride is not None and not 0 < self.stride <= room:
            raise InputError(
                "--window_stride must be from 1 to the pieces of a window, "
                f"{room}. Received: window_stride={self.stride}"
            )

    def cut(
        self, pieces: tf.RaggedTensor, room: int
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Cuts documents [B, (tokens)] to `room` tokens, except for heads.

        Returns:
            The sequences [W, (tokens)], and the document number of each: [W].
        """
        lengths = tf.cast(pieces.row_lengths(), tf.int32)  # [B]
        last = tf.maximum(lengths - room, 0)  # where the last window begins
        documents = tf.range(tf.size(lengths))
        if self.keeps_rows:
            return pieces, documents
        if self.method == "tail":
            return _slice(pieces, documents, last, room)
        if self.method == "head_tail":
            head = round(room * _HEAD_SHARE)
            first, _ = _slice(pieces, documents, tf.zeros_like(last), head)
            start = tf.maximum(lengths - (room - head), head)
            rest, _ = _slice(pieces, documents, start, room - head)
            return tf.concat([first, rest], axis=1), documents
        stride = self.stride or max(room // 2, 1)
        number = -(-last // stride) + 1  # [B]
        index = tf.ragged.range(number)  # [B, (windows)]
        documents = tf.cast(index.value_rowids(), tf.int32)  # [W]
        # The last window ends with the document and is as long as the others.
        starts = tf.minimum(index.values * stride, tf.gather(last, documents))
        return _slice(pieces, documents, starts, room)


def _slice(
    pieces: tf.RaggedTensor, documents: tf.Tensor, starts: tf.Tensor, room: int
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Takes up to `room` tokens of each document from its start position."""
    first = tf.cast(tf.gather(pieces.row_starts(), documents), tf.int32)
    lengths = tf.cast(tf.gather(pieces.row_lengths(), documents), tf.int32)
    starts = tf.minimum(starts, lengths)
    ends = tf.minimum(starts + room, lengths)
    places = tf.ragged.range(first + starts, first + ends)
    rows = places.with_values(tf.gather(pieces.values, places.values))
    return rows, documents


def average(
    logits: np.ndarray, documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Averages the logits [W, C] of each document's windows.

    The windows of a document are adjacent in `documents` [W].

    Returns:
        The averages [B, C], and the index of each document's first window: [B].
    """
    first = np.flatnonzero(np.diff(documents, prepend=documents[0] - 1))
    windows = np.diff(first, append=len(documents))  # [B]
    sums = np.add.reduceat(logits.astype(np.float64), first)
    return sums / windows[:, np.newaxis], first
