"""Writes a chooser as a SavedModel: a raw prompt and its choices in.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/swag/1")
    model(tf.constant(["He rang."]), tf.constant([["It rained.", "A dog"]]))

Shapes:
- B: prompts     K: choices of a prompt     S: sequence length
"""

import functools
from collections.abc import Sequence

from bert_tf import choice_ops, export, heads, modeling, text_ops

import tensorflow as tf

_PROMPTS = tf.TensorSpec([None], tf.string)  # [B]
_CHOICES = tf.TensorSpec([None, None], tf.string)  # [B, K]
_IDS = tf.TensorSpec([None, None, None], tf.int32)  # [B, K, S]


class _ChooserModule(tf.Module):
    """Tokenizer and model in one."""

    def __init__(
        self,
        model: heads.BertMultipleChoice,
        tokenizer: text_ops.BertTokenizer,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = tokenizer
        self.weights = [variable.value for variable in model.variables]

        def choose(inputs):
            logits = model(inputs)  # [B, K]
            return {
                "choice": tf.argmax(logits, -1, output_type=tf.int32),
                "probabilities": tf.nn.softmax(logits),
                "logits": logits,
            }

        def serve(prompt, choices):
            prompt, choices = export.checked(
                tf.size(prompt) == tf.shape(choices)[0],
                "choices must have a row for each prompt, [B] and [B, K].",
                {"prompt": prompt, "choices": choices},
            )
            inputs, _ = choice_ops.pack(
                tokenizer, prompt, choices, max_seq_length, pad_to_max=False
            )
            return choose(inputs)

        def serve_ids(input_ids, input_mask, segment_ids):
            return choose(export.as_batch(input_ids, input_mask, segment_ids))

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, [_PROMPTS, _CHOICES])
        self.serve_ids = function(serve_ids, [_IDS, _IDS, _IDS])
        # What the loaded model does when it is called.
        self.__call__ = self.serve


def chooser(
    model: heads.BertMultipleChoice,
    config: modeling.BertConfig,
    vocab: Sequence[str],
    do_lower_case: bool,
    max_seq_length: int,
) -> export.Export:
    """Returns the model as one that takes raw text.

    The signatures are `serving_default` (`prompt`, string [B], and `choices`,
    string [B, K], "" where a prompt has fewer) and `serve_ids` (`input_ids`,
    `input_mask`, `segment_ids`, int32 [B, K, S]). Both return `choice`, the
    number of the best from 0 (int32 [B]), `probabilities` and `logits`
    (float32 [B, K]).

    Args:
        model: With its trained weights.
        config: Its architecture.
        vocab: Its pieces, each at the place of its id.
        do_lower_case: Whether it was trained on lower-cased text.
        max_seq_length: Of a prompt with a choice. What is longer loses pieces
            of the prompt.

    Raises:
        ValueError: if the arguments do not fit.
    """
    export.check_fits(config, vocab, max_seq_length)
    tokenizer = text_ops.BertTokenizer(vocab, do_lower_case)
    module = _ChooserModule(model, tokenizer, max_seq_length)
    description = {
        "head": "multiple_choice",
        "do_lower_case": do_lower_case,
        "max_seq_length": max_seq_length,
    }
    return export.Export(
        module,
        {"serving_default": module.serve, "serve_ids": module.serve_ids},
        export.asset_texts(config, vocab, None, description),
    )
