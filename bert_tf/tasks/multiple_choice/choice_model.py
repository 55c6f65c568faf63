"""Exports a multiple-choice model as a SavedModel: prompt and choices in.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/swag/1")
    model(tf.constant(["He rang."]), tf.constant([["It rained.", "A dog"]]))

Shapes: B prompts, K choices per prompt, S sequence length.
"""

import functools
import math

from bert_tf import heads, modeling, vocabularies
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.tasks.multiple_choice import choice_graph
from bert_tf.text import graph_rows, graph_windows, text_graph

import tensorflow as tf

_PROMPTS = tf.TensorSpec([None], tf.string)  # [B]
_CHOICES = tf.TensorSpec([None, None], tf.string)  # [B, K]
_IDS = tf.TensorSpec([None, None, None], tf.int32)  # [B, K, S]


class _ChooserModule(tf.Module):
    def __init__(
        self,
        model: heads.BertMultipleChoice,
        config: modeling.BertConfig,
        tokenizer: graph_rows.Tokenizer,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = tokenizer
        served = inference.make_inference_model(model)
        self.weights = served.variables

        def choose(logits):  # [B, K]
            # An empty batch may have no choices: argmax needs at least one.
            some = tf.pad(logits, [[0, 0], [0, 1]], constant_values=-math.inf)
            return {
                "choice": tf.argmax(some, -1, output_type=tf.int32),
                "probabilities": tf.nn.softmax(logits),
                "logits": logits,
            }

        def serve(prompt, choices):
            prompt, choices = serving_inputs.shaped(prompt, choices)
            shape = tf.shape(choices)
            prompt, choices = serving_inputs.checked(
                (tf.size(prompt) == shape[0])
                & ((shape[0] == 0) | (shape[1] > 0)),
                "choices must have a row for each prompt, [B] and [B, K], and "
                "a choice in each.",
                {"prompt": prompt, "choices": choices},
            ).values()
            inputs, _ = choice_graph.pack(
                tokenizer, prompt, choices, max_seq_length, pad_to_max=False
            )
            # However many choices there are, the model reads some at a time.
            ids = tf.shape(inputs["input_ids"])  # [3]
            rows = tf.stack([ids[0] * ids[1], 1, ids[2]])
            logits = graph_windows.in_parts(
                lambda parts: served(dict(zip(inputs, parts, strict=True))),
                [tf.reshape(x, rows) for x in inputs.values()],
                tf.TensorSpec([None, 1], tf.float32),
            )  # [B * K, 1]
            return choose(tf.reshape(logits, ids[:2]))

        def serve_ids(input_ids, input_mask, segment_ids):
            inputs = serving_inputs.as_batch(
                input_ids, input_mask, segment_ids, config
            )
            return choose(served(_some_choices(inputs)))

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, [_PROMPTS, _CHOICES])
        self.serve_ids = function(serve_ids, [_IDS, _IDS, _IDS])
        # Makes the loaded model callable.
        self.__call__ = self.serve


def _some_choices(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Checks that ids [B, K, S] have choices, unless the batch is empty."""
    shape = tf.shape(inputs["input_ids"])
    inputs = serving_inputs.checked(
        (shape[0] == 0) | (shape[1] > 0),
        "input_ids must have a choice for each prompt, [B, K, S].",
        inputs,
    )
    # Zero-length sequences cannot be flattened by the model.
    empty = tf.cast(shape[2] == 0, tf.int32)
    return {
        name: tf.pad(x, [[0, 0], [0, 0], [0, empty]])
        for name, x in inputs.items()
    }


def chooser(
    model: heads.BertMultipleChoice,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signatures are `serving_default` (`prompt`, string [B], and `choices`,
    string [B, K], padded with "") and `serve_ids` (`input_ids`, `input_mask`,
    `segment_ids`, int32 [B, K, S]). Both return `choice`, the index of the best
    choice (int32 [B]), and `probabilities` and `logits` (float32 [B, K]).

    Longer sequences are truncated by choice_graph. Raises InputError for
    invalid arguments.
    """
    saved_model.check_fits(config, vocabulary, max_seq_length)
    config.check_reads_pairs(vocabulary.template.segments)
    tokenizer = text_graph.make_tokenizer(vocabulary)
    module = _ChooserModule(model, config, tokenizer, max_seq_length)
    return saved_model.of_module(
        *(module, "multiple_choice", config, vocabulary),
        ("serve", "serve_ids"),
        max_seq_length=max_seq_length,
    )
