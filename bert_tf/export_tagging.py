"""Writes a tagger as a SavedModel: raw text in, entities out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/ner/1")
    model(tf.constant(["Ada Lovelace was born in London."]))["text"]

The model finds the words itself: at white space, with punctuation split off
their ends, as files for tagging have it. Texts of any length are read in
windows, as in training.

Shapes:
- B: texts     U: words of all texts     E: entities of all texts
- W: windows   S: sequence length        C: labels
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bert_tf import export, heads, modeling, text_ops, word_ops
from bert_tf.tasks import tagging

import tensorflow as tf

_TEXTS = tf.TensorSpec([None], tf.string)  # [B]
# Windows that the model reads at a time, however long a text is.
_MOST_WINDOWS = 64


# ---- From words to labels ---------------------------------------------------


class _Windows(NamedTuple):
    """Where texts are cut, in pieces; each [W] int64."""

    rows: tf.Tensor  # the number of the text
    starts: tf.Tensor
    borders: tf.Tensor  # the first piece that belongs to the window
    sizes: tf.Tensor


def _windows(pieces: tf.Tensor, room: int) -> _Windows:
    """Cuts texts of so many pieces, [B], as tagging_inputs.windows does."""
    stride = max(room // 2, 1)
    last = tf.maximum(pieces - room, 0)  # [B]
    count = (last + stride - 1) // stride + 1
    rows = tf.repeat(tf.range(tf.size(count, tf.int64)), count)
    number = tf.ragged.range(count).flat_values  # 0, 1, ... in each text
    starts = tf.minimum(number * stride, tf.gather(last, rows))
    before = tf.concat([[0], starts], 0)[:-1]
    borders = (before + starts + room - 1) // 2 + 1
    return _Windows(
        rows,
        starts,
        tf.where(number > 0, borders, 0),
        tf.minimum(tf.gather(pieces, rows) - starts, room),
    )


class _Labeller(tf.Module):
    """Words -> ids of labels: tokenizer, windows and model."""

    def __init__(
        self,
        model: heads.BertTagger,
        vocab: Sequence[str],
        do_lower_case: bool,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = text_ops.BertTokenizer(vocab, do_lower_case)
        self.weights = [variable.value for variable in model.variables]
        self._unknown = list(vocab).index("[UNK]")
        self._room = max_seq_length - 2

        def best(inputs: Sequence[tf.Tensor]) -> tf.Tensor:
            ids, mask = inputs  # [rows, S]
            batch = {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": tf.zeros_like(ids),
            }
            return tf.argmax(model(batch), axis=-1, output_type=tf.int32)

        self._best = best

    def label(self, words: word_ops.Words, texts: tf.Tensor) -> tf.Tensor:
        """Returns the id of each word's label, [U]; of so many texts."""
        pieces = self._pieces(words.texts)  # [U, (pieces)]
        lengths = pieces.row_lengths()
        firsts = tf.cumsum(lengths, exclusive=True)  # [U]
        per_text = tf.math.unsorted_segment_sum(lengths, words.rows, texts)
        windows = _windows(per_text, self._room)
        offsets = tf.cumsum(per_text, exclusive=True)  # [B]
        offsets = tf.gather(offsets, windows.rows)  # [W]
        ids, mask = self._layout(
            pieces.flat_values, offsets + windows.starts, windows.sizes
        )
        found = _in_parts(self._best, ids, mask)  # [W, S]
        # A text without words has a window whose border is that of the text
        # after it: the last of equal ones is the one with the word.
        borders = offsets + windows.borders
        window = tf.searchsorted(borders, firsts, "right", tf.int64) - 1
        place = firsts - tf.gather(offsets + windows.starts, window) + 1
        return tf.gather_nd(found, tf.stack([window, place], axis=-1))

    def _pieces(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of each word, at least one."""
        pieces = self.tokenizer.tokenize(words)
        is_empty = pieces.row_lengths() == 0
        unknown = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(is_empty)], self._unknown),
            tf.cast(is_empty, tf.int64),
            validate=False,
        )
        return tf.concat([pieces, unknown], axis=1)

    def _layout(
        self, pieces: tf.Tensor, starts: tf.Tensor, sizes: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Lays out `[CLS] pieces [SEP]` for each window: ids, mask [W, S]."""
        longest = tf.reduce_max(tf.concat([[0], sizes], 0))
        column = tf.range(longest + 2)[tf.newaxis]  # [1, S]
        sizes = sizes[:, tf.newaxis]
        # One more, so that there is something where there are no pieces.
        pieces = tf.concat([pieces, [0]], 0)
        place = starts[:, tf.newaxis] + column - 1
        end = tf.size(pieces, tf.int64) - 1
        ids = tf.gather(pieces, tf.clip_by_value(place, 0, end))
        ids = tf.where(column <= sizes, ids, 0)
        ids = tf.where(column == sizes + 1, self.tokenizer.sep_id, ids)
        ids = tf.where(column == 0, self.tokenizer.cls_id, ids)
        return ids, tf.cast(column <= sizes + 1, tf.int32)


def _in_parts(
    function: Callable[[Sequence[tf.Tensor]], tf.Tensor],
    ids: tf.Tensor,
    mask: tf.Tensor,
) -> tf.Tensor:
    """Applies a function to some rows of [W, S] at a time: memory is finite."""
    rows, length = tf.unstack(tf.shape(ids))
    parts = tf.maximum(-(-rows // _MOST_WINDOWS), 1)
    size = tf.maximum(-(-rows // parts), 1)
    padding = [[0, parts * size - rows], [0, 0]]
    shape = [parts, size, length]
    found = tf.map_fn(
        function,
        [tf.reshape(tf.pad(x, padding), shape) for x in (ids, mask)],
        fn_output_signature=tf.int32,
        parallel_iterations=1,
    )
    return tf.reshape(found, [parts * size, length])[:rows]


# ---- From labels to entities ------------------------------------------------


class Decoder:
    """Joins the labels of words to entities, as tagging.entities does."""

    def __init__(self, labels: Sequence[str], scheme: str):
        words = [tagging.split_label(label) for label in labels]
        if scheme == tagging.NO_SCHEME:
            self.types = list(labels)
            self._opens = self._inside = [False] * len(labels)
            self._starts = self._ends = [True] * len(labels)
        else:
            spec = tagging.SCHEMES[scheme]
            self.types = [kind for _, kind in words]
            self._opens = [prefix in tagging.OPEN for prefix, _ in words]
            self._inside = [prefix in spec.inside for prefix, _ in words]
            self._starts = [prefix in spec.starts for prefix, _ in words]
            self._ends = [prefix in spec.ends for prefix, _ in words]
        names = sorted(set(self.types))
        self._type_ids = [names.index(kind) for kind in self.types]

    def find(
        self, labels: tf.Tensor, rows: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the first and last word of each entity, both [E].

        Args:
            labels: int32 [U].
            rows: the text of each word, [U].
        """
        types = tf.gather(self._type_ids, labels)
        goes_on = (
            (rows[:-1] == rows[1:])
            & (types[:-1] == types[1:])
            & tf.gather(self._opens, labels[:-1])
            & tf.gather(self._inside, labels[1:])
        )
        goes_on = tf.concat([tf.zeros_like(labels[:1], tf.bool), goes_on], 0)
        first = tf.cast(tf.where(~goes_on)[:, 0], tf.int32)
        last = tf.concat([first, [tf.size(labels)]], 0)[1:] - 1
        is_entity = tf.gather(self._starts, tf.gather(labels, first))
        is_entity &= tf.gather(self._ends, tf.gather(labels, last))
        found = tf.where(is_entity)[:, 0]
        return tf.gather(first, found), tf.gather(last, found)


class _TaggerModule(tf.Module):
    """Words, tokenizer, model and labels in one."""

    def __init__(
        self,
        labeller: _Labeller,
        labels: Sequence[str],
        scheme: str,
        assets: Sequence[str],
    ):
        super().__init__()
        self.splitter = word_ops.WordSplitter()
        self.labeller = labeller
        self.files = [tf.saved_model.Asset(path) for path in assets]
        decoder = Decoder(labels, scheme)

        def tag(texts, split_punctuation):
            """Returns ragged entities, and the labels of the words."""
            words = self.splitter.split(texts, split_punctuation)
            number = tf.size(texts, tf.int64)
            found = labeller.label(words, number)  # [U]
            first, last = decoder.find(found, words.rows)  # [E]
            rows = tf.gather(words.rows, first)
            starts = tf.gather(words.starts, first)
            ends = tf.gather(words.ends, last)
            entities = {
                "type": tf.gather(decoder.types, tf.gather(found, first)),
                "start": starts,
                "end": ends,
                "text": _characters(texts, rows, starts, ends),
            }
            names = tf.gather(tf.constant(list(labels)), found)
            return (
                {k: _ragged(x, rows, number) for k, x in entities.items()},
                _ragged(names, words.rows, number),
            )

        def call(texts):
            return tag(texts, split_punctuation=True)[0]

        def serve(text):
            return _dense(call(text))

        def serve_words(text):
            entities, names = tag(text, split_punctuation=False)
            return _dense(entities) | {"label": names.to_tensor()}

        function = functools.partial(
            tf.function, autograph=False, input_signature=[_TEXTS]
        )
        self.__call__ = function(call)
        self.serve = function(serve)
        self.serve_words = function(serve_words)


def _ragged(
    values: tf.Tensor, rows: tf.Tensor, number: tf.Tensor
) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_value_rowids(
        values, rows, number, validate=False
    )


def _characters(
    texts: tf.Tensor, rows: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Returns `texts[row][start:end]` in characters, [E]."""
    # Invalid bytes are left out, as when words were found.
    texts = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )
    return tf.strings.substr(
        tf.gather(texts, rows), starts, ends - starts, unit="UTF8_CHAR"
    )


def _dense(entities: dict[str, tf.RaggedTensor]) -> dict[str, tf.Tensor]:
    """Pads ragged results, and says how many entities each text has."""
    return {
        "type": entities["type"].to_tensor(),
        "start": entities["start"].to_tensor(-1),
        "end": entities["end"].to_tensor(-1),
        "text": entities["text"].to_tensor(),
        "count": tf.cast(entities["type"].row_lengths(), tf.int32),
    }


def save_tagger(
    path: str,
    model: heads.BertTagger,
    config: modeling.BertConfig,
    vocab: Sequence[str],
    do_lower_case: bool,
    labels: Sequence[str],
    scheme: str,
    max_seq_length: int,
) -> None:
    """Writes the model as a SavedModel, whole or not at all.

    The signature `serving_default` takes `text` (string [B]) and returns
    `type` and `text` (string), `start` and `end` (int32, in characters, -1
    for none), each [B, most entities of a text], and `count` (int32 [B]).
    `serve_words` takes texts whose words are split already, by white space;
    it returns the same and `label` (string), one for each word. Without a
    scheme each word is an entity. The loaded model itself, called with texts,
    returns ragged tensors.

    Args:
        path: The folder to write.
        model: With its trained weights.
        config: Its architecture.
        vocab: Its pieces, each at the place of its id.
        do_lower_case: Whether it was trained on lower-cased text.
        labels: In the order of training.
        scheme: Of tagging.SCHEMES, or tagging.NO_SCHEME.
        max_seq_length: Pieces of a window, as in training.

    Raises:
        ValueError: if the folder is not empty or the arguments do not fit.
    """
    export.check_target(path)
    config.check_sequence_length(max_seq_length)
    config.check_vocab_size(len(vocab), "The vocabulary")
    tagging.check_scheme(labels, scheme)
    outputs = model.tagging.shape[0]
    if len(labels) != outputs:
        raise ValueError(
            "`labels` must have a name for each output of the model. "
            f"Received: labels={labels}, the model has {outputs} outputs"
        )
    description = {
        "do_lower_case": do_lower_case,
        "max_seq_length": max_seq_length,
        "scheme": scheme,
    }

    def make(
        assets: Sequence[str],
    ) -> tuple[tf.Module, export.Signatures]:
        labeller = _Labeller(model, vocab, do_lower_case, max_seq_length)
        module = _TaggerModule(labeller, labels, scheme, assets)
        return module, {
            "serving_default": module.serve,
            "serve_words": module.serve_words,
        }

    texts = export.asset_texts(config, vocab, labels, description)
    export.save(path, texts, make)
