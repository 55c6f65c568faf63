"""Tiny Keras models, inputs for them, and reference outputs in NumPy."""

import dataclasses
from typing import Any

from bert_tf import modeling
from bert_tf.api import models
from tests import reference

import keras
import numpy as np

DROPS = modeling.BertConfig(
    vocab_size=40,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=12,
    type_vocab_size=2,
)
PLAIN = dataclasses.replace(
    DROPS, hidden_dropout_prob=0, attention_probs_dropout_prob=0
)
ONE_LAYER = dataclasses.replace(PLAIN, num_hidden_layers=1)
INPUTS = reference.batch(PLAIN, rows=6)
LABELS = np.arange(6) % 2
ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def classifier(config=PLAIN, **kwargs):
    model = models.BertClassifier(
        models.Bert(config), ["bad", "good"], **kwargs
    )
    reference.random_weights(model.variables)
    return model


def logits(model, inputs=INPUTS):
    """Returns the logits of a classifier, computed in NumPy."""
    weights = reference.weights_of(model.variables)
    return reference.classify(model.bert.config, weights, inputs)


def close(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


# Class name -> its arguments after the encoder.
HEADS = {
    "BertClassifier": (["bad", "good", "so so"],),
    "BertTagger": (4,),
    "BertSpanFinder": (),
    "BertMultipleChoice": (),
    "BertMaskedLM": (),
    "BertNextSentence": (),
    "BertPretrainer": (),
}
KINDS = ("Bert", *HEADS)


def of_kind(kind):
    """Returns a model of one of the eight classes, with random weights."""
    model = models.Bert(PLAIN, name="mine")
    if kind != "Bert":
        made = getattr(models, kind)
        model = made(models.Bert(PLAIN), *HEADS[kind], name="mine")
    reference.random_weights(model.variables)
    return model


def inputs_of(kind):
    """Returns the inputs of a model of this class."""
    if kind != "BertMultipleChoice":
        return INPUTS
    return {
        name: np.stack([value, value[::-1]], axis=1)
        for name, value in INPUTS.items()
        if name != "masked_lm_positions"
    }


def outputs(model, inputs):
    """Returns all outputs of a model, as a list of arrays."""
    found = model(inputs)
    return [np.asarray(x) for x in keras.tree.flatten(found)]


LORA: dict[str, Any] = {"rank": 2, "alpha": 3.0, "targets": ("value", "dense")}


def with_lora():
    """Returns a classifier whose LoRA matrices are not zero."""
    model = classifier()
    model.bert.enable_lora(**LORA)
    for variable in model.variables:
        if "lora" in variable.path:
            rng = np.random.default_rng(len(variable.path))
            variable.assign(rng.normal(size=variable.shape))
    return model


def merged(model):
    """Returns the weights with the product merged, by the paper's formula."""
    weights = reference.weights_of(model.variables)
    for name in [x for x in weights if x.endswith("lora_a")]:
        layer = name.removesuffix("lora_a")
        product = weights.pop(name) @ weights.pop(f"{layer}lora_b")
        weights[f"{layer}kernel"] += LORA["alpha"] / LORA["rank"] * product
    return weights
