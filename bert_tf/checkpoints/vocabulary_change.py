"""Moves a checkpoint to another vocabulary, with rows for new tokens.

A new token starts as the mean of the tokens that the old vocabulary splits it
into, which is how the model has read it until now; [unused] rows hold noise.
Shapes: V tokens of the new vocabulary, D hidden size.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from bert_tf import tokenization, vocabularies
from bert_tf.checkpoints import names, opened
from bert_tf.errors import InputError
from bert_tf.vocabularies import word_pieces

import numpy as np


@dataclasses.dataclass(frozen=True)
class Counts:
    """Numbers of kept, new and unknown tokens in the new vocabulary."""

    kept: int
    new: int
    unknown: int  # of the new: nothing of them is in the old vocabulary


def change_vocab(
    source: opened.Checkpoint, vocab: vocabularies.Files
) -> tuple[opened.Checkpoint, Counts]:
    """Returns the checkpoint for another vocabulary, without training state.

    The new vocabulary may have any length. Raises InputError if the source's
    config or vocabulary is unknown, or if a vocabulary is not WordPiece: rows
    of new tokens are made of the old tokens that spell them.
    """
    if source.vocab is None or source.config is None:
        raise InputError(
            f"The vocabulary and the config of {source.path} must be known to "
            "give it another vocabulary: give --vocab_file and "
            "--bert_config_file."
        )
    old = _word_pieces(source.vocab, f"The vocabulary of {source.path}").ids
    new = _word_pieces(vocab, "The new vocabulary").pieces
    rows = [[old[p]] if p in old else _split(p, old) for p in new]
    is_new = [piece not in old for piece in new]
    unknown = sum(row == [old[tokenization.UNKNOWN]] for row in rows) - (
        tokenization.UNKNOWN in new
    )

    tables = names.by_piece(source.config)

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        values = source.read(wanted)
        return {
            name: _means(value, rows) if name in tables else value
            for name, value in values.items()
        }

    changed = dataclasses.replace(
        source,
        shapes={
            name: (len(new), *shape[1:]) if name in tables else shape
            for name, shape in source.shapes.items()
        },
        read=read,
        config=dataclasses.replace(source.config, vocab_size=len(new)),
        vocab=vocab,
        state=(),
    )
    return changed, Counts(len(new) - sum(is_new), sum(is_new), unknown)


def _word_pieces(
    vocab: vocabularies.Files, name: str
) -> vocabularies.Vocabulary:
    vocabulary = vocabularies.read(vocab, False, name)
    if not isinstance(vocabulary, word_pieces.WordPiece):
        raise InputError(
            f"{name}: a model can be given another vocabulary where both are "
            f"of word pieces. Received: kind={vocabulary.kind}"
        )
    return vocabulary


def _means(table: np.ndarray, rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the mean of the given table rows, for each list of rows."""
    means = [table[list(places)].mean(axis=0) for places in rows]
    return np.stack(means).astype(table.dtype)


def _split(piece: str, vocab: Mapping[str, int]) -> list[int]:
    """Returns a new token's old ids, longest match first; else [UNK]."""
    mark = tokenization.SUFFIX_INDICATOR
    text = piece.removeprefix(mark)
    start, ids = 0, []
    while start < len(text):
        prefix = mark if start or piece.startswith(mark) else ""
        for end in range(len(text), start, -1):
            if (found := vocab.get(prefix + text[start:end])) is not None:
                ids.append(found)
                start = end
                break
        else:
            return [vocab[tokenization.UNKNOWN]]
    return ids or [vocab[tokenization.UNKNOWN]]
