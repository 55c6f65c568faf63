"""Converts sentences to TFRecords: labels are at words' first tokens."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bert_tf import phases
from bert_tf.errors import counted
from bert_tf.records import record_types, shuffled_writer
from bert_tf.tasks.tagging import conll, tagging_words

import numpy as np
from absl import logging

_BATCH_SIZE = 1024
_Row = dict[str, np.ndarray]


class Encoder:
    """Writes the words of sentences, in windows if there are too many.

    The positions with `label_weights` 1, in order of the records, are the words
    of the file, each exactly once.
    """

    def __init__(
        self, word_pieces: tagging_words.WordPieces, max_seq_length: int
    ):
        self._word_pieces = word_pieces
        self._vocabulary = word_pieces.vocabulary
        self._length = max_seq_length

    def write(
        self,
        path: str,
        groups: Iterable[Sequence[conll.Sentence]],
        labels: Sequence[str],
        seed: int | None = None,
    ) -> record_types.RecordFile:
        """Writes a file of groups of sentences that are read together.

        Words without a label get label 0. Records are in the texts' order
        unless a seed shuffles them.
        """
        label_ids = {label: i for i, label in enumerate(labels)}
        texts = 0

        def rows() -> Iterator[_Row]:
            nonlocal texts
            for sentences in phases.tracked(
                groups, "Cutting into pieces", "texts"
            ):
                texts += 1
                yield from self.rows(sentences, label_ids)

        remaining = rows()
        with shuffled_writer.writer(path, seed) as writer:
            while batch := list(itertools.islice(remaining, _BATCH_SIZE)):
                columns = {n: np.stack([r[n] for r in batch]) for n in batch[0]}
                writer.write_all(record_types.TAGGING.encode_batch(columns))
        logging.info(
            "Read %s for %s, in %s.",
            counted(texts, "text"),
            os.path.basename(path),
            counted(writer.records, "window"),
        )
        return record_types.RecordFile(
            path, writer.records, record_types.TAGGING, self._length
        )

    def rows(
        self,
        sentences: Sequence[conll.Sentence],
        label_ids: Mapping[str, int],
    ) -> Iterator[_Row]:
        """Yields the windows of a text."""
        words = [self._word_pieces(x) for s in sentences for x in s.words]
        pieces = np.fromiter(itertools.chain.from_iterable(words), np.int64)
        lengths = [len(ids) for ids in words]
        firsts = np.cumsum([0, *lengths[:-1]])
        labels = np.zeros(len(pieces), np.int64)
        known = [label_ids[x] for s in sentences for x in s.labels]
        labels[firsts] = known or 0
        weights = np.zeros(len(pieces), np.float32)
        weights[firsts] = 1
        room = self._length - self._vocabulary.template.special(1)
        cut = tagging_words.windows(len(pieces), room)
        ends = np.append(cut.borders[1:], len(pieces))
        for start, begin, end in zip(
            cut.starts, cut.borders, ends, strict=True
        ):
            part = slice(start, start + room)
            own = weights[part].copy()
            own[: begin - start] = 0
            own[end - start :] = 0
            yield self._row(pieces[part], labels[part], own)

    def _row(
        self, pieces: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> _Row:
        template = self._vocabulary.template
        ids, segments = template.row(pieces.tolist())
        row: _Row = {
            name: np.zeros(self._length, np.int64)
            for name in ("input_ids", "input_mask", "segment_ids", "label_ids")
        }
        row["label_weights"] = np.zeros(self._length, np.float32)
        row["input_ids"] += self._vocabulary.special.pad.id
        row["input_ids"][: len(ids)] = ids
        row["input_mask"][: len(ids)] = 1
        row["segment_ids"] += template.segments[0]
        row["segment_ids"][: len(ids)] = segments
        front = len(template.before)
        own = slice(front, front + len(pieces))
        row["label_ids"][own] = labels
        row["label_weights"][own] = weights
        return row
