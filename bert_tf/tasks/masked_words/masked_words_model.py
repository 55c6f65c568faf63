"""Exports a masked language model as a SavedModel: raw text in, words out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/words/1")
    model(tf.constant(["The [MASK] sat on the [MASK]."]))  # See `piece`.

Texts of any length are read in overlapping windows. Each `[MASK]` is predicted
in the window that shows the most context on both sides of it.

Shapes: B texts, M masks of all texts, A parts of all texts, W windows, S
sequence length, P masks per window, K tokens predicted per mask.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

from bert_tf import heads, modeling, vocabularies
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.tasks.masked_words import masked_texts
from bert_tf.text import graph_rows, graph_windows, text_graph

import tensorflow as tf

# Maps inputs to scores and ids of the best tokens, [rows, P, K].
_Best = Callable[[Mapping[str, tf.Tensor]], tuple[tf.Tensor, tf.Tensor]]


class _MaskedWordsModule(tf.Module):
    def __init__(
        self,
        best: _Best,
        weights: Sequence[tf.Variable],
        config: modeling.BertConfig,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
        top_k: int,
    ):
        super().__init__()
        self.tokenizer = text_graph.make_tokenizer(vocabulary)
        self.weights = weights
        self._vocabulary = vocabulary
        self._room = max_seq_length - vocabulary.template.special(1)
        self._mask_id = vocabulary.special.mask.id
        self._best = best
        pieces = tf.constant(list(vocabulary.pieces))
        texts, spaces = zip(*vocabulary.spellings, strict=True)
        self._spelled = tf.constant(texts)  # [V]
        self._has_space = tf.constant([x is True for x in spaces])
        self._goes_on = tf.constant([x is False for x in spaces])

        def serve(text):
            (text,) = serving_inputs.shaped(text)
            parts = tf.strings.split(text, masked_texts.MASK)  # [B, (parts)]
            parts = _check_room(text, parts, top_k)
            scores, found = self._find(parts)  # [M, K]
            counts = parts.row_lengths() - 1  # [B]
            filled = self._filled(text, parts, counts, found)
            return {
                "piece": _by_text(tf.gather(pieces, found), counts, top_k),
                "score": _by_text(scores, counts, top_k),
                "text": _by_text(filled, counts, top_k),
                "count": tf.cast(counts, tf.int32),
            }

        def serve_ids(input_ids, input_mask, segment_ids, masked_lm_positions):
            inputs = serving_inputs.as_batch(
                input_ids, input_mask, segment_ids, config
            )
            inputs |= _places(masked_lm_positions, inputs["input_ids"])
            scores, found = self._best(inputs)  # [B, P, K]
            return {
                "piece": tf.gather(pieces, found),
                "piece_id": found,
                "score": scores,
            }

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, [serving_inputs.TEXTS])
        self.serve_text = self.serve
        self.serve_ids = function(serve_ids, [serving_inputs.IDS] * 4)
        # Makes the loaded model callable.
        self.__call__ = self.serve

    def _find(self, parts: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns scores and ids of the best tokens for each mask, [M, K]."""
        tokens, lengths = self._tokens(parts)
        windows = graph_windows.cut(lengths, self._room)
        masks = tf.squeeze(tf.where(tokens == self._mask_id), 1)  # [M]
        # Only windows with a mask are read.
        read, window = tf.unique(windows.find(masks), tf.int64)
        windows = windows.take(read)
        ids, mask = graph_windows.layout(tokens, windows, self._vocabulary)
        front = len(self._vocabulary.template.before)
        places = masks - tf.gather(windows.starts, window) + front
        places = graph_rows.of_sorted_rows(
            tf.cast(places, tf.int32), window, tf.size(read, tf.int64)
        )  # [W, (masks)]
        padded = places.to_tensor()
        # The model needs at least one position.
        missing = tf.cast(tf.shape(padded)[1] == 0, tf.int32)
        padded = tf.pad(padded, [[0, 0], [0, missing]])
        scores, found = graph_windows.in_parts(
            self._best_of_windows,
            (ids, mask, padded),
            (
                tf.TensorSpec([None, None, None], tf.float32),
                tf.TensorSpec([None, None, None], tf.int32),
            ),
        )  # [W, P, K]
        column = tf.ragged.range(places.row_lengths()).flat_values
        at = tf.stack([window, column], axis=-1)  # [M, 2]
        return tf.gather_nd(scores, at), tf.gather_nd(found, at)

    def _best_of_windows(
        self, inputs: Sequence[tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        ids, mask, places = inputs  # [rows, S], [rows, S], [rows, P]
        return self._best(
            {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": tf.fill(
                    tf.shape(ids), self._vocabulary.template.segments[0]
                ),
                "masked_lm_positions": places,
            }
        )

    def _tokens(self, parts: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the tokens of all texts, and each text's token count."""
        rows = graph_rows.row_ids(parts)
        place = tf.range(tf.size(rows, tf.int64))
        texts = parts.flat_values  # [A]
        if self._vocabulary.before_words:
            # The space before a masked word belongs to its token.
            is_last = place == tf.gather(parts.row_limits() - 1, rows)
            closed = tf.strings.regex_replace(texts, r"\s+$", "")
            texts = tf.where(is_last, texts, closed)
        tokens = self.tokenizer.tokenize(texts)  # [A, (tokens)]
        is_behind = place > tf.gather(parts.row_starts(), rows)
        masks = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(is_behind)], self._mask_id),
            tf.cast(is_behind, tf.int64),
            validate=False,
        )
        # Puts each mask before its part. Masks stay separate rows: oneDNN has
        # no kernel to concatenate rows on many CPUs, and TensorFlow logs that.
        order = tf.stack([place, place + tf.size(rows, tf.int64)], axis=1)
        tokens = tf.gather(
            tf.concat([masks, tokens], axis=0), tf.reshape(order, [-1])
        )  # [2 A, (tokens)]
        lengths = tf.math.unsorted_segment_sum(
            tokens.row_lengths(), tf.repeat(rows, 2), parts.nrows()
        )
        return tokens.flat_values, lengths

    def _filled(
        self,
        texts: tf.Tensor,
        parts: tf.RaggedTensor,
        counts: tf.Tensor,
        found: tf.Tensor,
    ) -> tf.Tensor:
        """Returns texts with masks filled with tokens, [M, K].

        A token that continues a word removes the space before it; a token with
        a leading space adds the space if it is missing.
        """
        size = len(masked_texts.MASK)
        lengths = tf.strings.length(parts.flat_values) + size  # bytes, [A]
        before = tf.cumsum(tf.strings.length(texts) + size, exclusive=True)
        rows = graph_rows.row_ids(parts)
        ends = tf.cumsum(lengths) - tf.gather(before, rows)
        # A mask follows each part but a text's last one.
        place = tf.range(tf.size(rows, tf.int64))
        is_masked = place < tf.gather(parts.row_limits() - 1, rows)
        starts = tf.gather_nd(ends, tf.where(is_masked)) - size
        texts = tf.gather(texts, graph_rows.repeats(counts))  # [M]
        head = tf.strings.substr(texts, tf.zeros_like(starts), starts)
        tail = tf.strings.substr(texts, starts + size, tf.strings.length(texts))
        closed = tf.strings.regex_replace(head, "[ \t\r\n]+$", "")
        lacks_space = tf.strings.regex_full_match(head, r"(?s:.*[^ \t\r\n])")
        opened = tf.where(lacks_space, tf.strings.join([head, " "]), head)

        def choose(is_chosen, chosen, others):  # [M, K]
            of_pieces = tf.gather(is_chosen, found)
            return tf.where(of_pieces, chosen[:, tf.newaxis], others)

        heads = choose(self._has_space, opened, head[:, tf.newaxis])
        heads = choose(self._goes_on, closed, heads)
        tails = tf.broadcast_to(tail[:, tf.newaxis], tf.shape(found))
        return tf.strings.join([heads, tf.gather(self._spelled, found), tails])


def _check_room(
    texts: tf.Tensor, parts: tf.RaggedTensor, top_k: int
) -> tf.RaggedTensor:
    """Returns the parts of texts, checked to give few enough filled texts."""
    counts = parts.row_lengths() - 1  # [B]
    sizes = tf.cast(tf.strings.length(texts), tf.int64)  # bytes, [B]
    message = tf.strings.format(
        "{} masks in {} bytes would give too many filled texts. Cut the texts, "
        f"or send fewer at a time. Received: top_k={top_k}",
        [tf.reduce_sum(counts), tf.reduce_sum(sizes)],
    )
    is_room = (
        tf.reduce_sum(counts * sizes) * top_k <= masked_texts.MAX_FILLED_BYTES
    )
    values = {"text": parts.flat_values}
    values = serving_inputs.only_if(is_room, message, values)
    return parts.with_flat_values(values["text"])


def _places(places: tf.Tensor, ids: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns `masked_lm_positions` [B, P], checked against `ids` [B, S].

    The ids must be checked already, so that the first of two errors is raised.
    """
    (places,) = serving_inputs.shaped(places)
    inputs = serving_inputs.checked(
        tf.shape(places)[0] == tf.shape(ids)[0],
        "masked_lm_positions must have a row for each of input_ids.",
        {"masked_lm_positions": places, "input_ids": ids},
    )
    places = {"masked_lm_positions": inputs["masked_lm_positions"]}
    length = tf.shape(ids)[1]
    return serving_inputs.check_ranges(
        "masked_lm_positions must be from 0 to below the length of input_ids.",
        places,
        dict.fromkeys(places, length),
    )


def _best_of(model: inference.Model, tokens: int, top_k: int) -> _Best:
    # A closure: a module with the model as attribute would save its layers.
    def best(inputs):
        logits = model(inputs)  # [rows, P, V]
        own = inference.without_padding(logits, tokens)
        values, found = tf.math.top_k(own, top_k)
        total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        return tf.exp(values - total), found

    return best


def _by_text(x: tf.Tensor, counts: tf.Tensor, top_k: int) -> tf.Tensor:
    """Regroups masks [M, K] by text: [B, max masks per text, K]."""
    rows = tf.RaggedTensor.from_row_lengths(x, counts, validate=False)
    return rows.to_tensor(shape=[None, None, top_k])


def masked_words_finder(
    model: heads.BertMaskedLM,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
    top_k: int,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signature `serving_default` takes `text` (string [B]) and returns the
    `top_k` most likely tokens for each `[MASK]`: `piece` and `text`, the text
    with the token in place of the mask (string), and `score`, a probability
    (float32); each [B, max masks per text, top_k]. `count` (int32 [B]) is the
    number of masks in each text. `serve_text` is the same.

    `serve_ids` takes `input_ids`, `input_mask`, `segment_ids` (int32 [B, S])
    and `masked_lm_positions` (int32 [B, P]), the positions to predict, as in
    training; a row with fewer positions repeats any of them. It returns `piece`
    (string), `piece_id` (int32) and `score` (float32), each [B, P, top_k].

    Raises InputError for invalid arguments.
    """
    saved_model.check_fits(config, vocabulary, max_seq_length)
    masked_texts.check(vocabulary, top_k)
    served = inference.make_inference_model(model)
    return make_export(
        _best_of(served, len(vocabulary.pieces), top_k),
        served.variables,
        *(config, vocabulary, max_seq_length, top_k),
    )


def make_export(
    best: _Best,
    weights: Sequence[tf.Variable],
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
    top_k: int,
) -> saved_model.Export:
    """Returns an export around a function that predicts token ids.

    It has the signatures of `masked_words_finder` and takes raw text; `weights`
    are the variables that `best` reads.
    """
    module = _MaskedWordsModule(
        best, weights, config, vocabulary, max_seq_length, top_k
    )
    return saved_model.of_module(
        *(module, "masked_lm", config, vocabulary),
        ("serve", "serve_text", "serve_ids"),
        max_seq_length=max_seq_length,
        top_k=top_k,
    )
