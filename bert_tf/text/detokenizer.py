"""Converts token IDs to texts in the graph, for vocabularies of all kinds.

Shapes: B texts, T tokens, V vocabulary.
"""

import re

from bert_tf import vocabularies
from bert_tf.vocabularies import byte_pair_files, byte_pairs, word_pieces

import tensorflow as tf

# Spaces that WordPiece adds: before closing punctuation, around an apostrophe
# in a word, and after an opening bracket.
_CLOSING = r" ([.,!?;:%)\]}])"
_APOSTROPHE = r"([\pL\pN]) ' ([\pL])"
_OPENING = r"([(\[{]) "
# Bytes in vocabularies of SentencePiece, such as <0x0A>.
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "\u2581"


def spelled(vocabulary: vocabularies.Vocabulary) -> list[bytes]:
    """Returns the bytes of each token, with the space before it, [V].

    Special tokens have none.
    """
    special = {token.id for token in vars(vocabulary.special).values()}
    found = []
    for number, (piece, spelling) in enumerate(
        zip(vocabulary.pieces, vocabulary.spellings, strict=True)
    ):
        space = b"" if spelling.space is False else b" "
        if number in special:
            found.append(b"")
        elif match := _BYTE.fullmatch(piece):
            found.append(bytes([int(match[1], 16)]))
        elif vocabulary.kind == byte_pairs.BytePairs.kind:
            found.append(_of_byte_pairs(piece))
        else:
            text = spelling.text.replace(_SPACE, " ")
            found.append(space + text.encode())
    return found


def _of_byte_pairs(piece: str) -> bytes:
    """Returns the bytes of a byte-level token, complete characters or not."""
    by_char = {char: i for i, char in enumerate(byte_pair_files.BYTES)}
    if not by_char.keys() >= set(piece):
        return piece.encode()
    return bytes(by_char[char] for char in piece)


class Detokenizer(tf.Module):
    """Joins tokens to texts."""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        super().__init__()
        self._spelled = tf.constant(spelled(vocabulary))
        self._is_word_piece = vocabulary.kind == word_pieces.WordPiece.kind

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the texts [B] of token IDs [B, T], as UTF-8.

        Special tokens are skipped, as is the space before the first word.
        WordPiece does not keep the spaces around punctuation; they are put
        where English has them. Bytes that are no UTF-8 become U+FFFD.
        """
        tokens = tf.gather(self._spelled, ids)  # [B, T]
        texts = tf.strings.strip(tf.strings.reduce_join(tokens, axis=-1))
        if self._is_word_piece:
            for pattern, new in (
                (_CLOSING, r"\1"),
                (_OPENING, r"\1"),
                (_APOSTROPHE, r"\1'\2"),
            ):
                texts = tf.strings.regex_replace(texts, pattern, new)
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
