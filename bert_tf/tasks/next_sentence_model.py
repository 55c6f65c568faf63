"""Exports a next-sentence model as a SavedModel: two raw texts in.

import tensorflow as tf
import tensorflow_text  # Registers the tokenizer's op.
model = tf.saved_model.load("/models/next/1")
model(tf.constant(["He rang."]), tf.constant(["Nobody came."]))["is_next"]
"""

from bert_tf import heads, modeling, vocabularies
from bert_tf.exporting import saved_model
from bert_tf.text import text_graph

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
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signatures are `serve_pairs` (`text` and an equal number of `text_b`,
    string [B]), `serving_default` (the same as `text_a` and `text_b`) and
    `serve_ids` (`input_ids`, `input_mask`, `segment_ids`, int32 [B, S]). All
    return `is_next`, the probability that the second text follows the first
    (float32 [B]), `probabilities` of yes and no, and `logits` (float32 [B, 2]).

    Pairs beyond `max_seq_length` are cut, the longer text first. Raises
    InputError for invalid arguments.
    """
    saved_model.check_fits(config, vocabulary, max_seq_length)
    config.check_reads_pairs(vocabulary.template.segments)
    tokenizer = text_graph.make_tokenizer(vocabulary)
    module = saved_model.PairModule(
        model, config, tokenizer, max_seq_length, _describe
    )
    return saved_model.of_module(
        *(module, "next_sentence", config, vocabulary),
        ("serve_default_pairs", "serve_pairs", "serve_ids"),
        max_seq_length=max_seq_length,
    )
