"""Exports a tagger as a SavedModel: raw text in, entities out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/ner/1")
    model(tf.constant(["Ada Lovelace was born in London."]))["text"]

The model splits words at white space, and punctuation off their ends, as in
files for tagging. Chinese characters are words if `splits_cjk` in the config
says so. It reads texts of any length in windows.

Shapes: B texts, U words of all texts, E entities of all texts, W windows, S
sequence length, C labels.
"""

import functools
from collections.abc import Sequence

from bert_tf import heads, modeling, vocabularies
from bert_tf.errors import InputError
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.tasks.tagging import graph_words, schemes
from bert_tf.text import graph_rows, graph_windows, text_graph

import tensorflow as tf

# ---- From words to labels ---------------------------------------------------


class _Labeller(tf.Module):
    """Maps words to label ids: tokenizer, windows and model."""

    def __init__(
        self,
        model: heads.BertTagger,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = text_graph.make_tokenizer(vocabulary)
        served = inference.make_inference_model(model)
        self.weights = served.variables
        self.splits_punctuation = vocabulary.splits_punctuation
        self._vocabulary = vocabulary
        self._room = max_seq_length - vocabulary.template.special(1)

        def logits(batch: dict[str, tf.Tensor]) -> tf.Tensor:
            return served(batch)

        def best(inputs: Sequence[tf.Tensor]) -> tf.Tensor:
            ids, mask = inputs  # [rows, S]
            batch = {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": tf.fill(
                    tf.shape(ids), vocabulary.template.segments[0]
                ),
            }
            return tf.argmax(logits(batch), axis=-1, output_type=tf.int32)

        # Closures, as the Keras model itself must not be saved.
        self.logits = logits  # Of tokens, [B, S, C]
        self._best = best

    def label(self, words: graph_words.Words, texts: tf.Tensor) -> tf.Tensor:
        """Returns the id of each word's label, [U]; `texts` counts texts."""
        pieces = self._pieces(words.texts)  # [U, (tokens)]
        lengths = pieces.row_lengths()
        firsts = tf.cumsum(lengths, exclusive=True)  # [U]
        per_text = tf.math.unsorted_segment_sum(lengths, words.rows, texts)
        windows = graph_windows.cut(per_text, self._room)
        inputs = graph_windows.layout(
            pieces.flat_values, windows, self._vocabulary
        )
        found = graph_windows.in_parts(
            self._best, inputs, tf.TensorSpec([None, None], tf.int32)
        )  # [W, S]
        window = windows.find(firsts)
        place = firsts - tf.gather(windows.starts, window)
        place += len(self._vocabulary.template.before)
        return tf.gather_nd(found, tf.stack([window, place], axis=-1))

    def _pieces(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of each word, at least one per word."""
        if before := self._vocabulary.before_words:
            words = tf.strings.join([before, words])
        pieces = self.tokenizer.tokenize(words)
        is_empty = pieces.row_lengths() == 0
        unknown = self._vocabulary.special.unk.id
        unknown = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(is_empty)], unknown),
            tf.cast(is_empty, tf.int64),
            validate=False,
        )
        return tf.concat([pieces, unknown], axis=1)


# ---- From labels to entities ------------------------------------------------


class Decoder:
    """Joins the labels of words to entities, as schemes.entities does."""

    def __init__(self, labels: Sequence[str], scheme: str):
        words = [schemes.split_label(label) for label in labels]
        if scheme == schemes.NO_SCHEME:
            self.types = list(labels)
            self._opens = self._inside = [False] * len(labels)
            self._starts = self._ends = [True] * len(labels)
        else:
            spec = schemes.SCHEMES[scheme]
            self.types = [kind for _, kind in words]
            self._opens = [prefix in schemes.OPEN for prefix, _ in words]
            self._inside = [prefix in spec.inside for prefix, _ in words]
            self._starts = [prefix in spec.starts for prefix, _ in words]
            self._ends = [prefix in spec.ends for prefix, _ in words]
        names = sorted(set(self.types))
        self._type_ids = [names.index(kind) for kind in self.types]

    def find(
        self, labels: tf.Tensor, rows: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the first and last word of each entity, both [E].

        `labels` and `rows` (text indices) are for all words, [U].
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
    def __init__(
        self,
        labeller: _Labeller,
        config: modeling.BertConfig,
        labels: Sequence[str],
        scheme: str,
    ):
        super().__init__()
        self.splitter = graph_words.WordSplitter(config.splits_cjk)
        self.labeller = labeller
        decoder = Decoder(labels, scheme)

        def tag(texts, split_punctuation):
            """Returns ragged entities, and the labels of the words."""
            (texts,) = serving_inputs.shaped(texts)
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
            ragged = graph_rows.of_sorted_rows(first, rows, number)
            return (
                {k: ragged.with_values(x) for k, x in entities.items()},
                graph_rows.of_sorted_rows(names, words.rows, number),
            )

        def call(texts):
            return tag(texts, labeller.splits_punctuation)[0]

        def serve(text):
            return _dense(self.__call__(text))

        def serve_words(text):
            entities, names = tag(text, split_punctuation=False)
            return _dense(entities) | {"label": names.to_tensor()}

        def serve_ids(input_ids, input_mask, segment_ids):
            logits = labeller.logits(
                serving_inputs.as_batch(
                    input_ids, input_mask, segment_ids, config
                )
            )
            best = tf.argmax(logits, axis=-1)  # [B, S]
            return {
                "label": tf.gather(tf.constant(list(labels)), best),
                "probabilities": tf.nn.softmax(logits),
                "logits": logits,
            }

        function = functools.partial(tf.function, autograph=False)
        texts = serving_inputs.TEXTS
        self.__call__ = function(call, [texts])
        self.serve = function(serve, [texts])
        self.serve_text = self.serve
        self.serve_words = function(serve_words, [texts])
        self.serve_ids = function(serve_ids, [serving_inputs.IDS] * 3)


def _characters(
    texts: tf.Tensor, rows: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Returns `texts[row][start:end]` in characters, [E]."""
    # Drops invalid bytes, as when words are found. Unlike substr, this needs no
    # copy of a text for each of its entities.
    decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
    first = tf.gather(tf.cast(decoded.row_starts(), tf.int32), rows)
    places = tf.ragged.range(first + starts, first + ends)
    return tf.strings.unicode_encode(
        places.with_values(tf.gather(decoded.values, places.values)), "UTF-8"
    )


def _dense(entities: dict[str, tf.RaggedTensor]) -> dict[str, tf.Tensor]:
    """Pads ragged results, and adds each text's number of entities."""
    return {
        "type": entities["type"].to_tensor(),
        "start": entities["start"].to_tensor(-1),
        "end": entities["end"].to_tensor(-1),
        "text": entities["text"].to_tensor(),
        "count": tf.cast(entities["type"].row_lengths(), tf.int32),
    }


def tagger(
    model: heads.BertTagger,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    labels: Sequence[str],
    scheme: str,
    max_seq_length: int,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signature `serving_default` takes `text` (string [B]) and returns `type`
    and `text` (string), `start` and `end` (int32, in characters, padded with
    -1), each [B, max entities per text], and `count` (int32 [B]). `serve_text`
    is the same. `serve_words` takes texts whose words are already separated by
    white space; it also returns `label` (string), one per word. Without a
    scheme, each word is an entity. The loaded model itself, called with texts,
    returns ragged tensors.

    `serve_ids` takes `input_ids`, `input_mask` and `segment_ids` (int32 [B, S])
    and returns, for each token, `label` (string [B, S]), `probabilities` and
    `logits` (float32 [B, S, C]). A word's label is its first token's;
    outputs for padding are meaningless.

    `scheme` is one of schemes.SCHEMES, or schemes.NO_SCHEME; the order of the
    labels and the length of windows must be as in training. Raises
    InputError for invalid arguments.
    """
    saved_model.check_fits(config, vocabulary, max_seq_length)
    schemes.check_scheme(labels, scheme)
    if len(labels) != model.num_labels:
        raise InputError(
            "`labels` must have a name for each output of the model. "
            f"Received: labels={labels}, the model has {model.num_labels} "
            "outputs"
        )
    labeller = _Labeller(model, vocabulary, max_seq_length)
    module = _TaggerModule(labeller, config, labels, scheme)
    return saved_model.of_module(
        *(module, "tagging", config, vocabulary),
        ("serve", "serve_text", "serve_words", "serve_ids"),
        labels,
        max_seq_length=max_seq_length,
        scheme=scheme,
    )
