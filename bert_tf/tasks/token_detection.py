"""Writes a discriminator as a SavedModel: raw text in, replaced tokens out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/replaced/1")
    model(tf.constant(["The chef ate the meal."]))["probability"]

ELECTRA's discriminator predicts for each token whether a generator replaced it.
Texts of any length are read in windows.

Shapes: B texts, P tokens of all texts, W windows, S sequence length.
"""

import functools
from collections.abc import Sequence

from bert_tf import modeling, replaced_tokens, vocabularies
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.text import graph_offsets, graph_windows

import tensorflow as tf


class _DetectorModule(tf.Module):
    def __init__(
        self,
        model: replaced_tokens.BertReplacedTokens,
        config: modeling.BertConfig,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = graph_offsets.make_tokenizer(vocabulary)
        served = inference.make_inference_model(model)
        self.weights = served.variables
        template = vocabulary.template
        room = max_seq_length - template.special(1)
        names = tf.constant(list(vocabulary.pieces))

        def score(inputs: Sequence[tf.Tensor]) -> tf.Tensor:
            ids, mask = inputs  # [rows, S]
            segments = tf.fill(tf.shape(ids), template.segments[0])
            batch = {"input_ids": ids, "input_mask": mask}
            return tf.sigmoid(served(batch | {"segment_ids": segments}))

        def serve(text):
            (text,) = serving_inputs.shaped(text)
            found = self.tokenizer.tokenize_with_offsets(text)
            ids = found.ids  # [B, (tokens)]
            windows = graph_windows.cut(ids.row_lengths(), room)
            inputs = graph_windows.layout(ids.values, windows, vocabulary)
            scores = graph_windows.in_parts(
                score, inputs, tf.TensorSpec([None, None], tf.float32)
            )  # [W, S]
            tokens = tf.range(tf.size(ids.values, tf.int64))  # [P]
            window = windows.find(tokens)
            place = tokens - tf.gather(windows.starts, window)
            place += len(template.before)
            scores = tf.gather_nd(scores, tf.stack([window, place], axis=-1))
            return {
                "token": ids.with_values(
                    tf.gather(names, ids.values)
                ).to_tensor(),
                "start": ids.with_values(found.starts).to_tensor(-1),
                "end": ids.with_values(found.ends).to_tensor(-1),
                "probability": ids.with_values(scores).to_tensor(),
                "count": tf.cast(ids.row_lengths(), tf.int32),
            }

        def serve_ids(input_ids, input_mask, segment_ids):
            batch = serving_inputs.as_batch(
                input_ids, input_mask, segment_ids, config
            )
            return {"probability": tf.sigmoid(served(batch))}

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, [serving_inputs.TEXTS])
        self.serve_text = self.serve
        self.serve_ids = function(serve_ids, [serving_inputs.IDS] * 3)
        # What the loaded model does when it is called.
        self.__call__ = self.serve


def detector(
    model: replaced_tokens.BertReplacedTokens,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> saved_model.Export:
    """Returns the model as one that takes raw text.

    The signature `serving_default` takes `text` (string [B]) and returns its
    tokens: `token` (string), `start` and `end` (int32, in characters, -1 for
    none) and `probability` (float32) that it was replaced; each [B, max
    tokens of a text], and `count` (int32 [B]). `serve_text` is the same.

    `serve_ids` takes `input_ids`, `input_mask` and `segment_ids` (int32 [B, S])
    and returns `probability` (float32 [B, S]).

    Arguments that do not fit raise InputError.
    """
    saved_model.check_fits(config, vocabulary, max_seq_length)
    module = _DetectorModule(model, config, vocabulary, max_seq_length)
    return saved_model.of_module(
        *(module, "replaced_tokens", config, vocabulary),
        ("serve", "serve_text", "serve_ids"),
        max_seq_length=max_seq_length,
    )
