"""Writes a next-sentence model as a SavedModel: two raw texts in.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/next/1")
    model(tf.constant(["He rang."]), tf.constant(["Nobody came."]))["is_next"]

Shapes:
- B: pairs of texts
"""

from collections.abc import Sequence

from bert_tf import export, heads, modeling, text_ops

import tensorflow as tf


def _describe(logits: tf.Tensor) -> dict[str, tf.Tensor]:  # [B, 2]
    probabilities = tf.nn.softmax(logits)
    return {
        "is_next": probabilities[:, 0],
        "probabilities": probabilities,
        "logits": logits,
    }


def next_sentence(
    model: heads.BertNextSentence,
    config: modeling.BertConfig,
    vocab: Sequence[str],
    do_lower_case: bool,
    max_seq_length: int,
) -> export.Export:
    """Returns the model as one that takes raw text.

    The signatures are `serving_default` (`text_a` and as many `text_b`,
    string [B]) and `serve_ids` (`input_ids`, `input_mask`, `segment_ids`,
    int32 [B, S]). Both return `is_next`, the probability that the second text
    follows the first (float32 [B]), `probabilities` of yes and no and `logits`
    (float32 [B, 2]).

    Args:
        model: With its trained weights.
        config: Its architecture.
        vocab: Its pieces, each at the place of its id.
        do_lower_case: Whether it was trained on lower-cased text.
        max_seq_length: What is longer is cut, from the longer text.

    Raises:
        ValueError: if the arguments do not fit.
    """
    export.check_fits(config, vocab, max_seq_length)
    tokenizer = text_ops.BertTokenizer(vocab, do_lower_case)
    module = export.PairModule(model, tokenizer, max_seq_length, _describe)
    description = {
        "head": "next_sentence",
        "do_lower_case": do_lower_case,
        "max_seq_length": max_seq_length,
    }
    return export.Export(
        module,
        {
            "serving_default": module.serve_pairs,
            "serve_ids": module.serve_ids,
        },
        export.asset_texts(config, vocab, None, description),
    )
