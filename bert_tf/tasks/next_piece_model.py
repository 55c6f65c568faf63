"""Exports a left-to-right model as a SavedModel that continues raw text.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/next/1")
    model(tf.constant(["The cat sat on"]))  # See `piece`.

A text that is too long is read from its end. In a left-to-right model, tokens
do not see later positions, so sequences are laid out as in training.

Shapes: B texts, S sequence length, V tokens, K tokens predicted per text.
"""

import functools
from collections.abc import Mapping

from bert_tf import heads, modeling, vocabularies
from bert_tf.errors import InputError
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.text import graph_windows, long_documents, text_graph

import tensorflow as tf

_Batch = Mapping[str, tf.Tensor]


class _NextPieceModule(tf.Module):
    def __init__(
        self,
        model: heads.BertNextPiece,
        config: modeling.BertConfig,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
        top_k: int,
    ):
        super().__init__()
        self.tokenizer = text_graph.make_tokenizer(vocabulary)
        self._length = max_seq_length
        self._template = vocabulary.template
        served = inference.make_inference_model(model)
        self.weights = served.variables
        pieces = tf.constant(list(vocabulary.pieces))
        spelled, spaces = zip(*vocabulary.spellings, strict=True)
        spelled, goes_on = tf.constant(spelled), [x is False for x in spaces]

        def best(batch: _Batch, places: tf.Tensor) -> tuple[tf.Tensor, ...]:
            """Returns scores and ids of tokens after `places` [B], [B, K]."""
            encoder = served.bert
            x = encoder(batch, None, places[:, tf.newaxis]).sequence
            words = encoder.embeddings.word_embeddings
            logits = tf.cast(served.next_piece(x, words)[:, 0], tf.float32)
            own = inference.without_padding(logits, len(pieces))
            values, found = tf.math.top_k(own, top_k)
            total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
            return tf.exp(values - total), found

        def serve(text):
            (text,) = serving_inputs.shaped(text)
            batch, counts = self._rows(text)
            places = len(self._template.before) + counts - 1
            scores, found = best(batch, places)
            behind = _ready_to_append(text, tf.gather(goes_on, found))
            return {
                "piece": tf.gather(pieces, found),
                "score": scores,
                "text": tf.strings.join([behind, tf.gather(spelled, found)]),
            }

        def serve_scores(text):
            (text,) = serving_inputs.shaped(text)
            batch, counts = self._rows(text)
            # Without a token before it, nothing predicts the first.
            scored = counts if self._template.before else counts - 1
            found = graph_windows.in_parts(
                lambda parts: self._log_probabilities(
                    served(dict(zip(batch, parts[:-1], strict=True))),
                    parts[0],
                    parts[-1],
                ),
                [*batch.values(), counts],
                tf.TensorSpec([None], tf.float32),
                max_seq_length * config.vocab_size,
            )
            return {"log_probability": found, "count": scored}

        def serve_ids(input_ids, input_mask, segment_ids):
            batch = serving_inputs.as_batch(
                input_ids, input_mask, segment_ids, config
            )
            is_token = batch["input_mask"] > 0  # [B, S]
            places = tf.where(is_token, tf.range(tf.shape(is_token)[1]), 0)
            scores, found = best(batch, tf.reduce_max(places, axis=1))
            return {
                "piece": tf.gather(pieces, found),
                "piece_id": found,
                "score": scores,
            }

        function = functools.partial(tf.function, autograph=False)
        texts = [serving_inputs.TEXTS]
        self.serve = function(serve, texts)
        self.serve_text = self.serve
        self.serve_scores = function(serve_scores, texts)
        self.serve_ids = function(serve_ids, [serving_inputs.IDS] * 3)
        # Makes the loaded model callable.
        self.__call__ = self.serve

    def _rows(self, texts: tf.Tensor) -> tuple[_Batch, tf.Tensor]:
        """Returns sequences of texts [B], and each text's token count."""
        room = self._length - self._template.special(1)
        pieces = self.tokenizer.tokenize(texts)
        rows, _ = long_documents.LongDocuments("tail").cut(pieces, room)
        batch = self.tokenizer.pack(rows, None, self._length, False)
        counts = tf.cast(rows.row_lengths(), tf.int32)
        if not self._template.before:
            counts = serving_inputs.only_if(
                tf.reduce_all(counts > 0),
                "Each text must have tokens, as no token is put before it.",
                {"counts": counts},
            )["counts"]
        return batch, counts

    def _log_probabilities(
        self, logits: tf.Tensor, ids: tf.Tensor, counts: tf.Tensor
    ) -> tf.Tensor:
        """Sums the log-probabilities of each text's tokens, [rows].

        Logits are [rows, S, V], ids [rows, S], and counts the number of tokens
        of each text, [rows].
        """
        following = ids[:, 1:]
        logits = logits[:, :-1]
        chosen = tf.gather(logits, following, batch_dims=2)  # [rows, S - 1]
        found = chosen - tf.reduce_logsumexp(logits, axis=-1)
        # The position of each token in its text.
        front = len(self._template.before) - 1
        place = tf.range(tf.shape(following)[1]) - front  # [S - 1]
        is_text = (place >= 0) & (place < counts[:, tf.newaxis])
        return tf.reduce_sum(tf.where(is_text, found, 0.0), axis=1)


def _ready_to_append(texts: tf.Tensor, goes_on: tf.Tensor) -> tf.Tensor:
    """Returns texts [B] ready for a token to be appended, [B, K].

    Adds a space, unless the token continues the last word.
    """
    lacks_space = tf.strings.regex_full_match(texts, r"(?s:.*[^ \t\r\n])")
    opened = tf.where(lacks_space, tf.strings.join([texts, " "]), texts)
    return tf.where(goes_on, texts[:, tf.newaxis], opened[:, tf.newaxis])


def next_piece(
    model: heads.BertNextPiece,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
    top_k: int,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signature `serving_default` takes `text` (string [B]) and returns the
    `top_k` most likely next tokens: `piece` and `text`, the text followed by
    the token (string), and `score`, a probability (float32); each [B, top_k].
    `serve_text` is the same. `serve_scores` takes `text` and returns
    `log_probability` (float32 [B]), the sum of the log-probabilities of the
    text's tokens, each conditioned on the tokens before it, and `count` (int32
    [B]), the number of these tokens.

    `serve_ids` takes `input_ids`, `input_mask` and `segment_ids` (int32 [B, S])
    and returns predictions for the position after each sequence's last token:
    `piece` (string), `piece_id` (int32) and `score` (float32), each [B, top_k].

    If a text is longer than `max_seq_length` allows, its last tokens are read.
    Raises InputError for invalid arguments.
    """
    saved_model.check_fits(config, vocabulary, max_seq_length)
    if not 1 <= top_k <= len(vocabulary.pieces):
        raise InputError(
            "`top_k` must be at least 1 and at most the number of tokens, "
            f"{len(vocabulary.pieces)}. Received: top_k={top_k}"
        )
    module = _NextPieceModule(model, config, vocabulary, max_seq_length, top_k)
    return saved_model.of_module(
        *(module, "next_piece", config, vocabulary),
        ("serve", "serve_text", "serve_scores", "serve_ids"),
        max_seq_length=max_seq_length,
        top_k=top_k,
    )
