"""Vectors of tokens, words or whole lines: BERT as a feature extractor.

The choices of layers are those of the paper (section 5.3, table 7).

Shapes:
- B: lines of a batch     S: sequence length     D: hidden size
- K: vectors of a token, one for each layer asked for
- n: tokens or words of a line; 1 if the line has one vector
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from bert_tf import distribution, modeling, options, text_ops, tokenization

import numpy as np
import tensorflow as tf

UNITS = options.UNITS
_PAIR = re.compile(r"^(.*) \|\|\| (.*)$", re.DOTALL)
# Kernels prefer lengths that are a multiple of this.
_MULTIPLE = 8
# Of the texts, and of the vectors, that are kept in memory at a time.
_MOST_CHARACTERS = 1 << 24
_MOST_BYTES = 1 << 29


# ---- What of the layers -----------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which layers' outputs make the vectors.

    Attributes:
        name: A key of CHOICES.
        layers: Of "layers": numbers from 0, negative from the last.
        weights: Of "weighted_sum_last_four", from the last layer down; equal
            and adding up to 1 if there are none.
    """

    name: str = "layers"
    layers: tuple[int, ...] = (-1, -2, -3, -4)
    weights: tuple[float, ...] = ()

    def check(self, number: int) -> None:
        """Raises ValueError if a model of so many layers has not these."""
        if self.name not in CHOICES:
            raise ValueError(
                f"`features` must be one of {', '.join(CHOICES)}. "
                f"Received: features={self.name}"
            )
        if self.weights and (
            self.name != "weighted_sum_last_four" or len(self.weights) != 4
        ):
            raise ValueError(
                "`layer_weights` are four, and go with "
                "features=weighted_sum_last_four. Received: layer_weights="
                f"{','.join(map(str, self.weights))}, features={self.name}"
            )
        if self.name == "layers":
            wrong = [i for i in self.layers if not -number <= i < number]
            if wrong or not self.layers:
                raise ValueError(
                    f"The model's layers are numbered 0 to {number - 1}, or "
                    f"-{number} to -1 from the end. "
                    f"Received: layers={','.join(map(str, self.layers))}"
                )
        least = {"second_to_last": 2}.get(self.name, 1)
        least = 4 if self.name.endswith("last_four") else least
        if number < least:
            raise ValueError(
                f"features={self.name} needs a model of at least {least} "
                f"layers. Received: one of {number}"
            )

    @property
    def names(self) -> tuple[int | str, ...]:
        """What to call each of the K vectors."""
        return self.layers if self.name == "layers" else (self.name,)

    def select(self, outputs: modeling.BertOutputs) -> tf.Tensor:
        """Returns the vectors of all tokens, [B, S, K, D or more]."""
        if self.name == "layers":
            return tf.stack([outputs.layers[i] for i in self.layers], axis=2)
        return CHOICES[self.name](self, outputs)[:, :, tf.newaxis]


def _weighted_sum(choice: Choice, outputs: modeling.BertOutputs) -> tf.Tensor:
    weights = choice.weights or (0.25,) * 4
    last = outputs.layers[:-5:-1]
    return tf.add_n([w * x for w, x in zip(weights, last, strict=True)])


CHOICES: Mapping[str, Callable[[Choice, modeling.BertOutputs], tf.Tensor]] = {
    "layers": Choice.select,
    "embeddings": lambda _, outputs: outputs.embeddings,
    "second_to_last": lambda _, outputs: outputs.layers[-2],
    "last": lambda _, outputs: outputs.layers[-1],
    "weighted_sum_last_four": _weighted_sum,
    "concat_last_four": lambda _, x: tf.concat(x.layers[:-5:-1], axis=-1),
    "sum_all": lambda _, outputs: tf.add_n(outputs.layers),
    "mean_all": lambda _, x: tf.add_n(x.layers) / len(x.layers),
}


def pool(vectors: tf.Tensor, input_mask: tf.Tensor, unit: str) -> tf.Tensor:
    """Makes one vector of each line's, where the unit is a line.

    Args:
        vectors: [B, S, K, D].
        input_mask: [B, S].
        unit: Of UNITS. "mean" is that over all tokens, [CLS] and [SEP] too,
            as in sentence-transformers.

    Returns:
        [B, S, K, D] for tokens and words, or [B, 1, K, D].
    """
    if unit == "cls":
        return vectors[:, :1]
    if unit == "mean":
        mask = tf.cast(input_mask, vectors.dtype)[:, :, tf.newaxis, tf.newaxis]
        total = tf.reduce_sum(vectors * mask, axis=1, keepdims=True)
        return total / tf.reduce_sum(mask, axis=1, keepdims=True)
    return vectors


# What a vector of zeros is divided by, as in PyTorch's normalize.
_LEAST_LENGTH = 1e-12


def unit_length(vectors: tf.Tensor) -> tf.Tensor:
    """Divides vectors [..., D] by their lengths: dot products are cosines."""
    length = tf.norm(vectors, axis=-1, keepdims=True)
    return vectors / tf.maximum(length, _LEAST_LENGTH)


# ---- Lines ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the input, as the model reads it.

    Attributes:
        index: Its number, from 0.
        ids: Of its pieces, with [CLS] and [SEP].
        segments: 0 or 1 for each piece.
        words: Its words, where words are wanted.
        starts: The place of each word's first piece.
        ends: The place behind its last.
        is_cut: Whether it was too long.
    """

    index: int
    ids: Sequence[int]
    segments: Sequence[int]
    words: Sequence[str] = ()
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    is_cut: bool = False


class Reader:
    """Makes `Line`s of texts, or of pairs of texts with ` ||| ` between."""

    def __init__(
        self,
        vocab: Sequence[str],
        do_lower_case: bool,
        max_seq_length: int,
        by_word: bool,
    ):
        """Traces its graph.

        Args:
            vocab: The pieces by id.
            do_lower_case: As the model was trained.
            max_seq_length: The most pieces of a line, [CLS] and [SEP] too.
            by_word: Whether to remember which pieces are which word's.
        """
        tokenizer = text_ops.BertTokenizer(vocab, do_lower_case)
        self._special = tokenizer.cls_id, tokenizer.sep_id
        self._unknown = list(vocab).index(tokenization.UNKNOWN)
        self._length = max_seq_length
        self._by_word = by_word
        self._tokenize = tf.function(
            tokenizer.tokenize,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    def read(self, texts: Sequence[str], first: int) -> list[Line]:
        """Returns a line for each text; `first` is the number of the first."""
        parts: list[str] = []
        for text in texts:
            match = _PAIR.match(text.strip())
            parts += match.groups() if match else (text.strip(), "")
        pieces = self._pieces(parts)
        return [
            self._line(
                first + i, parts[2 * i : 2 * i + 2], pieces[2 * i : 2 * i + 2]
            )
            for i in range(len(texts))
        ]

    def _pieces(self, parts: Sequence[str]) -> list[list[list[int]]]:
        """Returns the pieces of each word of each part.

        Where words are not wanted, a part counts as one word.
        """
        if not self._by_word:
            return [[ids] for ids in self._tokenize(parts).to_list()]
        split = [part.split() for part in parts]
        words = list(itertools.chain.from_iterable(split))
        # A word of control characters only has no pieces, and needs a vector.
        ids = iter(
            x or [self._unknown] for x in self._tokenize(words).to_list()
        )
        return [list(itertools.islice(ids, len(part))) for part in split]

    def _line(
        self,
        index: int,
        parts: Sequence[str],
        pieces: Sequence[list[list[int]]],
    ) -> Line:
        first, second = (list(itertools.chain(*part)) for part in pieces)
        room = self._length - (3 if second else 2)
        lengths = _fitting(len(first), len(second), room)
        cls_id, sep_id = self._special
        ids = [cls_id, *first[: lengths[0]], sep_id]
        segments = [0] * len(ids)
        if second:
            ids += [*second[: lengths[1]], sep_id]
            segments += [1] * (lengths[1] + 1)
        is_cut = sum(lengths) < len(first) + len(second)
        if not self._by_word:
            return Line(index, ids, segments, is_cut=is_cut)
        words, starts, ends = [], [], []
        for part, part_pieces, place, length in zip(
            parts, pieces, (1, lengths[0] + 2), lengths, strict=True
        ):
            at, stop = place, place + length
            for word, its_pieces in zip(part.split(), part_pieces, strict=True):
                if at >= stop:
                    break
                words.append(word)
                starts.append(at)
                at = min(at + len(its_pieces), stop)
                ends.append(at)
        return Line(index, ids, segments, words, starts, ends, is_cut)


def _fitting(first: int, second: int, room: int) -> tuple[int, int]:
    """Returns the lengths that are left when the longer text loses pieces.

    The second loses where both are the same length, as in the original.
    """
    half = room // 2
    if first + second <= room:
        return first, second
    first = min(first, max(room - second, room - half))
    return first, min(second, room - first)


# ---- Vectors ----------------------------------------------------------------


class Extractor:
    """Applies a model to lines, those of about one length together."""

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        model: modeling.Bert,
        choice: Choice,
        unit: str,
        batch_size: int,
        max_seq_length: int,
        normalize: bool = False,
    ):
        """Prepares the graph.

        Args:
            strategy: Where to compute.
            model: Made under its scope.
            choice: Which layers.
            unit: Of UNITS.
            batch_size: Lines at a time, over all replicas.
            max_seq_length: Of the lines.
            normalize: Whether each vector is to have the length 1.
        """
        choice.check(model.config.num_hidden_layers)
        distribution.check_batch_size(strategy, "batch_size", batch_size)
        self._strategy = strategy
        self._unit = unit
        self._batch_size = batch_size
        self._length = max_seq_length
        self._normalize = normalize
        # One shape on TPUs, and equal shares for replicas.
        self._is_fixed = distribution.is_tpu(strategy)
        self._fills = self._is_fixed or strategy.num_replicas_in_sync > 1

        def vectors(ids, input_mask, segments):  # [B, S] each
            inputs = {
                "input_ids": ids,
                "input_mask": input_mask,
                "segment_ids": segments,
            }
            found = choice.select(model(inputs))
            found = tf.cast(pool(found, input_mask, unit), tf.float32)
            # Those of words are made of these.
            is_whole = normalize and unit != "word"
            return unit_length(found) if is_whole else found

        spec = tf.TensorSpec([None, None], tf.int32)

        @tf.function(input_signature=[spec] * 3, autograph=False)
        def run(*inputs):
            if strategy.num_replicas_in_sync == 1:
                return strategy.run(vectors, inputs)
            shares = [_shares(strategy, x) for x in inputs]
            return strategy.gather(strategy.run(vectors, shares), axis=0)

        self._run = run

    def extract(
        self,
        lines: Sequence[Line],
        done: Callable[[int], None] = lambda _: None,
    ) -> list[np.ndarray]:
        """Returns the vectors of each line, [n, K, D] float32, in order.

        Args:
            lines: From a reader.
            done: Called with the number of lines of each batch.
        """
        order = sorted(range(len(lines)), key=lambda i: -len(lines[i].ids))
        found: list[np.ndarray] = [np.zeros(0)] * len(lines)
        for start in range(0, len(lines), self._batch_size):
            places = order[start : start + self._batch_size]
            batch = [lines[i] for i in places]
            vectors = self._run(*self._pad(batch)).numpy()
            for i, line, values in zip(places, batch, vectors, strict=False):
                found[i] = self._unpad(line, values)
            done(len(batch))
        return found

    def _pad(self, lines: Sequence[Line]) -> list[np.ndarray]:
        longest = max(len(line.ids) for line in lines)
        length = min(-(-longest // _MULTIPLE) * _MULTIPLE, self._length)
        if self._is_fixed:
            length = self._length
        rows = self._batch_size if self._fills else len(lines)
        ids, mask, segments = np.zeros([3, rows, length], np.int32)
        # Rows that fill the batch attend to something: no NaN comes of it.
        mask[:, 0] = 1
        for i, line in enumerate(lines):
            size = len(line.ids)
            ids[i, :size] = line.ids
            mask[i, :size] = 1
            segments[i, :size] = line.segments
        return [ids, mask, segments]

    def _unpad(self, line: Line, vectors: np.ndarray) -> np.ndarray:
        """Takes a line's vectors from those of its batch, [S, K, D]."""
        if self._unit == "token":
            return vectors[: len(line.ids)]
        if self._unit != "word":
            return vectors
        if not line.words:
            return vectors[:0]
        # A word's vector is the mean of its pieces'.
        words = means(vectors, np.array(line.starts), np.array(line.ends))
        return unit_length(words).numpy() if self._normalize else words


def _shares(strategy: tf.distribute.Strategy, x: tf.Tensor) -> tf.Tensor:
    """Gives each replica its rows."""
    size = tf.shape(x)[0] // strategy.num_replicas_in_sync

    def share(context):
        start = size * context.replica_id_in_sync_group
        return x[start : start + size]

    return strategy.experimental_distribute_values_from_function(share)


def means(
    vectors: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Returns the mean of each stretch of vectors, float32 [words, K, D].

    Args:
        vectors: [S, K, D].
        starts: [words], where each begins.
        ends: [words], behind its last.
    """
    # In float64: of a word far back it is the difference of two large sums.
    sums = np.zeros([len(vectors) + 1, *vectors.shape[1:]])
    np.cumsum(vectors, axis=0, out=sums[1:])
    counts = (ends - starts)[:, np.newaxis, np.newaxis]
    return ((sums[ends] - sums[starts]) / counts).astype(np.float32)


def windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cuts a stream into lists that are sorted by length one at a time.

    Args:
        texts: The stream.
        size: The most texts of a list; fewer where they are long.
    """
    window: list[str] = []
    characters = 0
    for text in texts:
        if len(window) == size or characters + len(text) > _MOST_CHARACTERS:
            if window:
                yield window
            window, characters = [], 0
        window.append(text)
        characters += len(text)
    if window:
        yield window


def lines_in_memory(
    choice: Choice, unit: str, hidden_size: int, max_seq_length: int
) -> int:
    """Returns of how many lines the vectors take up to half a gigabyte."""
    values = hidden_size * len(choice.names)
    if choice.name == "concat_last_four":
        values *= 4
    if unit in ("token", "word"):
        values *= max_seq_length
    return max(1, _MOST_BYTES // (4 * values))
