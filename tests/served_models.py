"""Tiny exports of every head, asked as TensorFlow Serving asks them.

The models know few words, so that most of a text are unknown pieces to them.
"""

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

from bert_tf import heads, modeling
from bert_tf.encoders import left_to_right
from bert_tf.exporting import saved_model, warmup
from bert_tf.tasks import next_piece, next_sentence
from bert_tf.tasks.features import layers as feature_layers
from bert_tf.tasks.features import saved_model as features_model
from bert_tf.tasks.masked_words import saved_model as masked_words_model
from bert_tf.tasks.multiple_choice import saved_model as choice_model
from bert_tf.tasks.squad import answers as squad_answers
from bert_tf.tasks.squad import saved_model as squad_model
from bert_tf.tasks.squad import windows as squad_windows
from bert_tf.tasks.tagging import saved_model as tagging_model
from bert_tf.vocabularies import word_pieces
from tests import tiny_files

import keras
import numpy as np
import tensorflow as tf

LENGTH = 24
CONFIG = tiny_files.CONFIG
VOCABULARY = word_pieces.WordPiece(tuple(tiny_files.VOCAB), True)
HEADS = (
    "classification",
    "classification of one text",
    "classification of several labels",
    "regression",
    "tagging",
    "span",
    "multiple_choice",
    "masked_lm",
    "next_sentence",
    "next_piece",
    "encoder",
)


def export(name: str) -> saved_model.Export:
    """Returns one of HEADS with random weights as a function of raw text."""
    keras.utils.set_random_seed(1)
    bert = modeling.Bert(CONFIG)
    common = CONFIG, VOCABULARY
    if name == "tagging":
        tags = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
        model = heads.BertTagger(bert, len(tags))
        return tagging_model.tagger(model, *common, tags, "BIO", LENGTH)
    if name == "span":
        return squad_model.span_finder(
            heads.BertSpanFinder(bert),
            *common,
            squad_windows.Layout(LENGTH, 8, 8),
            squad_answers.Search(5, 8, False),
            None,
        )
    if name == "multiple_choice":
        model = heads.BertMultipleChoice(bert)
        return choice_model.chooser(model, *common, LENGTH)
    if name == "masked_lm":
        model = heads.BertMaskedLM(bert)
        return masked_words_model.masked_words_finder(model, *common, LENGTH, 2)
    if name == "next_sentence":
        model = heads.BertNextSentence(bert)
        return next_sentence.next_sentence(model, *common, LENGTH)
    if name == "next_piece":
        config = left_to_right.LeftToRightConfig(**dataclasses.asdict(CONFIG))
        model = heads.BertNextPiece(left_to_right.LeftToRight(config))
        return next_piece.next_piece(model, config, VOCABULARY, LENGTH, 2)
    if name == "encoder":
        choice = feature_layers.Choice("last")
        return features_model.extractor(
            bert, VOCABULARY, LENGTH, choice, "mean", False
        )
    labels = None if name == "regression" else ("0", "1")
    return saved_model.classifier(
        heads.BertClassifier(bert, len(labels or ("",))),
        *common,
        labels,
        LENGTH,
        takes_pairs=name != "classification of one text",
        is_multi_label="several" in name,
    )


# ---- REST -------------------------------------------------------------------


def answer(folder: str, body: str) -> dict[str, Any]:
    """Answers the body of a REST request as TensorFlow Serving does.

    By its rules: tensorflow_serving/util/json_tensor.cc and g3doc/api_rest.md.
    """
    asked = json.loads(body)
    name = asked.pop("signature_name", "serving_default")
    signature = warmup.read_signatures(folder)[name]
    ((form, values),) = asked.items()
    columns = _columns(values) if form == "instances" else values
    if not isinstance(columns, dict):  # Of one input the name may be left out.
        (only,) = signature.inputs
        columns = {only: columns}
    # What has a default may be left out by gRPC only.
    assert columns.keys() == signature.inputs.keys()
    inputs = {
        key: tf.constant(value, tf.as_dtype(signature.inputs[key].dtype))
        for key, value in columns.items()
    }
    outputs = _load(folder).signatures[name](**inputs)
    found = {key: _json(x.numpy()) for key, x in outputs.items()}
    # Of one output the name is left out.
    only = next(iter(found.values()))
    if form == "inputs":
        return {"outputs": found if len(found) > 1 else only}
    if len(found) == 1:
        return {"predictions": only}
    rows = zip(*found.values(), strict=True)
    return {"predictions": [dict(zip(found, x, strict=True)) for x in rows]}


@functools.cache
def _load(folder: str) -> Any:
    return tf.saved_model.load(folder)


def _columns(rows: list[Any]) -> Any:
    if not isinstance(rows[0], Mapping):
        return rows
    assert all(row.keys() == rows[0].keys() for row in rows)
    return {key: [row[key] for row in rows] for key in rows[0]}


def _json(array: np.ndarray) -> Any:
    if array.dtype == object:
        return np.vectorize(bytes.decode, [object])(array).tolist()
    return array.tolist()
