"""Candidate replacements for words, from a masked language model.

Shapes: B rows per batch, S sequence length, P masks per row, V tokens of the
vocabulary, K most likely tokens per mask.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.exporting import inference
from bert_tf.tasks.augmentation import passes, words
from bert_tf.tasks.masked_words import masked_texts

import numpy as np
import tensorflow as tf

# Kernels run faster when lengths are a multiple of this.
_MULTIPLE = 8
# Rows whose lengths differ by less count as equally long.
_ALIKE = 16
# Size of the groups whose maxima are compared first in `_best`.
_GROUP = 64

# The possible replacements of each word of a text.
Candidates = list[list[str]]


def whole_words(vocabulary: vocabularies.Vocabulary) -> np.ndarray:
    """Returns which tokens are whole words, [V] bool.

    These are tokens of letters only (or a symbol) that begin a word and spell
    out text.
    """
    find = words.finder(vocabulary)
    # Where tokens include spaces, one without a space continues a word.
    needs_space = bool(vocabulary.before_words)
    found = np.array(
        [
            find(spelling.text) == [(0, len(spelling.text))]
            and (spelling.space is True or not needs_space)
            for spelling in vocabulary.spellings
        ]
    )
    special = [piece.id for piece in vars(vocabulary.special).values()]
    found[[piece for piece in special if piece >= 0]] = False
    return found & ~vocabulary.goes_on


class Finder:
    """Finds candidates for the words of many texts, in batches."""

    def __init__(
        self,
        model: Callable[[Mapping[str, tf.Tensor]], tf.Tensor],
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
        number: int,
        batch_size: int,
        masked_share: float = passes.MASKED_SHARE,
    ):
        """Prepares the graph.

        Args:
            model: Maps inputs with `masked_lm_positions` to logits, as
                `heads.BertMaskedLM`.
            vocabulary: Vocabulary of the model.
            max_seq_length: Max number of tokens per row.
            number: Number of candidates per word.
            batch_size: Rows per batch.
            masked_share: As in `passes.shares`.

        Raises:
            InputError: The vocabulary has too few words, or no mask token.
        """
        masked_texts.check(vocabulary, top_k=1)
        self._vocabulary = vocabulary
        self._length = max_seq_length
        self._number = number
        self._batch_size = batch_size
        self._masked_share = masked_share
        is_word = whole_words(vocabulary)
        pieces = np.flatnonzero(is_word).tolist()
        self._spelled = [x.text for x in vocabulary.spellings]
        # Words that differ only in case are the same word; symbols are not.
        has_symbols = not vocabulary.splits_punctuation
        self._key: Callable[[str], str] = str if has_symbols else str.lower
        self._alike = collections.defaultdict(set)
        for piece in pieces:
            self._alike[self._key(self._spelled[piece])].add(piece)
        if number >= len(self._alike):
            raise InputError(
                f"The vocabulary has {len(self._alike)} whole words, and "
                "--candidates must be fewer: lower it, or use a model whose "
                f"tokens are words. Received: candidates={number}"
            )
        self._has_case = has_symbols or any(
            self._spelled[x] != self._spelled[x].lower() for x in pieces
        )
        # Enough candidates remain even if all spellings of the word are on top.
        most_alike = max(map(len, self._alike.values()))
        top_k = min(number + most_alike + 1, len(pieces))
        self._run = _best_of(model, is_word, top_k)

    def find(
        self,
        texts: Sequence[words.Text],
        done: Callable[[int], None] = lambda _: None,
    ) -> list[Candidates]:
        """Returns the candidates of each text's words, in order.

        `done` is called with the number of texts that each batch completes.
        """
        found: list[Candidates] = [[[] for _ in text.words] for text in texts]
        how = (self._vocabulary, self._length)
        rows = [
            (number, share)
            for number, text in enumerate(texts)
            for share in passes.shares(text, *how, self._masked_share)
        ]
        # Longest first, so that a lack of memory shows at once. Among equally
        # long rows, those with as many masks are batched together: the encoder
        # skips padding, but the head does not.
        lengths = [passes.length(text, *how) // _ALIKE for text in texts]
        rows.sort(key=lambda x: (-lengths[x[0]], -len(x[1])))
        left = collections.Counter(number for number, _ in rows)
        done(len(texts) - len(left))
        for start in range(0, len(rows), self._batch_size):
            batch = rows[start : start + self._batch_size]
            made = [passes.lay_out(texts[i], x, *how) for i, x in batch]
            best = self._run(*self._pad(made)).numpy()
            for (number, share), of_row in zip(batch, best, strict=True):
                for at, pieces in zip(share, of_row, strict=False):
                    word = texts[number].words[at]
                    ids = texts[number].ids[word.first : word.last]
                    found[number][at] = self._choose(word, ids, pieces.tolist())
            left -= collections.Counter(number for number, _ in batch)
            done(len({number for number, _ in batch} - left.keys()))
        return found

    def _pad(self, rows: Sequence[passes.Pass]) -> list[np.ndarray]:
        longest = max(len(row.ids) for row in rows)
        length = min(-(-longest // _MULTIPLE) * _MULTIPLE, self._length)
        shape = [len(rows), length]
        ids = np.full(shape, self._vocabulary.special.pad.id, np.int32)
        segments = np.full(
            shape, self._vocabulary.template.segments[0], np.int32
        )
        mask = np.zeros(shape, np.int32)
        most = max(len(row.places) for row in rows)
        # Rows with fewer masks read their first position again.
        places = np.zeros([len(rows), most], np.int32)
        for i, row in enumerate(rows):
            size = len(row.ids)
            ids[i, :size] = row.ids
            segments[i, :size] = row.segments
            mask[i, :size] = 1
            places[i, : len(row.places)] = row.places
        return [ids, mask, segments, places]

    def _choose(
        self, word: words.Word, ids: Sequence[int], best: Sequence[int]
    ) -> list[str]:
        """Returns the most likely tokens other than the word, sorted by id.

        Sorting makes the order independent of how scores are rounded, which
        differs between batch sizes.
        """
        same = self._alike.get(self._key(word.text), set())
        if len(ids) == 1:
            same = {*same, *ids}  # For example where accents are stripped.
        chosen = [piece for piece in best if piece not in same]
        texts = [self._spelled[x] for x in sorted(chosen[: self._number])]
        return texts if self._has_case else in_case(word.text, texts)


def in_case(word: str, candidates: list[str]) -> list[str]:
    """Matches the case of lower-case candidates to the word."""
    if len(word) > 1 and word.isupper():
        return [text.upper() for text in candidates]
    if word[0].isupper():
        return [text[0].upper() + text[1:] for text in candidates]
    return candidates


def _best_of(model: Any, is_word: np.ndarray, top_k: int) -> Any:
    """Returns a function that maps rows to their best words, [B, P, K]."""
    left_out = tf.constant(np.where(is_word, 0.0, -np.inf), tf.float32)  # [V]
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[spec] * 4, autograph=False)
    def run(ids, mask, segments, places):
        logits = model(
            {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": segments,
                "masked_lm_positions": places,
            }
        )  # [B, P, V]
        logits = inference.without_padding(logits, len(is_word))
        shape = tf.shape(logits)
        scores = tf.reshape(logits + left_out, [-1, shape[2]])  # [B * P, V]
        best = _best(scores, len(is_word), top_k)
        return tf.reshape(best, [shape[0], shape[1], top_k])

    return run


def _best(scores: tf.Tensor, size: int, top_k: int) -> tf.Tensor:
    """Returns the indices of the highest scores, [R, K], of [R, V].

    Only the K groups with the highest maxima are searched, which takes a
    quarter of the time of a full search.
    """
    groups = -(-size // _GROUP)
    if groups <= top_k:
        return tf.math.top_k(scores, top_k).indices
    scores = tf.pad(
        scores,
        [[0, 0], [0, groups * _GROUP - size]],
        constant_values=-np.inf,
    )
    grouped = tf.reshape(scores, [-1, groups, _GROUP])
    found = tf.math.top_k(tf.reduce_max(grouped, axis=2), top_k).indices
    among = tf.reshape(
        tf.gather(grouped, found, batch_dims=1), [-1, top_k * _GROUP]
    )
    place = tf.math.top_k(among, top_k).indices
    group = tf.gather(found, place // _GROUP, batch_dims=1)
    return group * _GROUP + place % _GROUP
