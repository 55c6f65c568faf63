"""Writes a fine-tuned classifier as a SavedModel that takes raw text.

A SavedModel needs neither this package nor the files it was made of: it holds
the tokenizer, the weights and the labels. Python loads it with TensorFlow and
tensorflow-text, TensorFlow Serving serves it as it is:

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/sentiment/1")
    model(tf.constant(["what a film"]))["label"]

Shapes:
- B: batch     S: sequence length     C: classes, 1 for a regression
"""

import dataclasses
import functools
import json
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import files, heads, modeling, phases, vocabularies
from bert_tf.errors import InputError
from bert_tf.text import graph as text_graph
from bert_tf.text import graph_rows, graph_windows, long_documents

import keras
import tensorflow as tf

# Name -> tf.function.
Signatures = Mapping[str, Any]

_TEXTS = tf.TensorSpec([None], tf.string)  # [B]
IDS = tf.TensorSpec([None, None], tf.int32)  # [B, S]


@dataclasses.dataclass(frozen=True)
class Export:
    """A model that takes raw text, and the files that go with it.

    Attributes:
        module: Tokenizer, weights and functions.
        signatures: Of them `serving_default` is the one of raw text.
        files: Name -> text. export.json names the head, and says what the
            model was trained with.
    """

    module: tf.Module
    signatures: Signatures
    files: Mapping[str, str]


class PairModule(tf.Module):
    """Tokenizer and model of one text, or of two, in one.

    The Keras model itself is left out, only its variables are kept: what is
    saved then are plain functions and variables, no Keras objects.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: graph_rows.Tokenizer,
        max_seq_length: int,
        describe: Callable[[tf.Tensor], dict[str, tf.Tensor]],
        documents: long_documents.LongDocuments | None = None,
    ):
        """Prepares its functions.

        Args:
            model: Its outputs are logits [B, C].
            tokenizer: Makes its inputs.
            max_seq_length: What is longer is cut.
            describe: Returns what logits mean.
            documents: How a single text is cut that is longer; by default its
                head is read.
        """
        super().__init__()
        documents = documents or long_documents.LongDocuments()
        self.tokenizer = tokenizer
        self.weights = [variable.value for variable in model.variables]

        none = no_text()
        room = max_seq_length - tokenizer.vocabulary.template.special(1)

        def serve_pairs(text_a, text_b=none):
            text_a, text_b = as_pairs(text_a, text_b)
            first, second = map(tokenizer.tokenize, (text_a, text_b))
            inputs = tokenizer.pack(first, second, max_seq_length, False)
            return describe(model(inputs))

        def serve_single(text_a):
            pieces = tokenizer.tokenize(text_a)
            rows, owners = documents.cut(pieces, room)
            inputs = tokenizer.pack(rows, None, max_seq_length, False)
            if not documents.in_windows:
                return describe(model(inputs))
            logits = graph_windows.in_parts(
                lambda parts: model(dict(zip(inputs, parts, strict=True))),
                list(inputs.values()),
                tf.TensorSpec([None, model.num_labels], tf.float32),
            )
            return describe(tf.math.segment_mean(logits, owners))

        def serve_ids(input_ids, input_mask, segment_ids):
            return describe(model(as_batch(input_ids, input_mask, segment_ids)))

        function = functools.partial(tf.function, autograph=False)
        self.serve_single = function(serve_single, [_TEXTS])
        self.serve_pairs = function(serve_pairs, [_TEXTS, _TEXTS])
        self.serve_ids = function(serve_ids, [IDS, IDS, IDS])
        # What the loaded model does when it is called.
        self.__call__ = (
            self.serve_pairs if documents.keeps_rows else self.serve_single
        )


def classifier(
    model: heads.BertClassifier,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    labels: Sequence[str] | None,
    max_seq_length: int,
    takes_pairs: bool,
    is_multi_label: bool = False,
    documents: long_documents.LongDocuments | None = None,
) -> Export:
    """Returns the model as one that takes raw text.

    The signatures are `serving_default` (`text_a` and, for pairs, `text_b`;
    each string [B]) and `serve_ids` (`input_ids`, `input_mask`, `segment_ids`;
    each int32 [B, S]). Both return `label` (string [B]), `probabilities` and
    `logits` (float32 [B, C]); for a regression `score` [B] and `logits`; where
    a text may have several labels, `labels` (string [B, C]: those with a
    probability above a half, the likeliest first, then "") and the other two.

    Args:
        model: With its trained weights.
        config: Its architecture.
        vocabulary: Its pieces, and how it splits texts.
        labels: The names of its classes; None for a regression.
        max_seq_length: What is longer is cut, as in training.
        takes_pairs: Whether its inputs may have a second text. If so, "" as
            `text_b` stands for no second text, and [""], the default, for none
            of all. Other numbers of texts than in `text_a` are an error.
        is_multi_label: Whether a text may have several labels.
        documents: How texts are cut that are too long, as in training; by
            default only their heads are read. Not for pairs.

    Raises:
        InputError: if the arguments do not fit.
    """
    check_fits(config, vocabulary, max_seq_length)
    _check_labels(labels, model.num_labels)
    documents = documents or long_documents.LongDocuments()
    documents.check(max_seq_length - vocabulary.template.special(1))
    tokenizer = text_graph.of(vocabulary)
    describe = _describe(labels, is_multi_label)
    module = PairModule(model, tokenizer, max_seq_length, describe, documents)
    serve = module.serve_pairs if takes_pairs else module.serve_single
    description = {
        "head": "classification",
        **vocabulary.settings,
        "max_seq_length": max_seq_length,
        "takes_pairs": takes_pairs,
        "multi_label": is_multi_label,
        "long_documents": documents.method,
        "window_stride": documents.stride,
    }
    return Export(
        module,
        {"serving_default": serve, "serve_ids": module.serve_ids},
        asset_texts(config, vocabulary, labels, description),
    )


def _check_labels(labels: Sequence[str] | None, outputs: int) -> None:
    if len(labels or ("",)) != outputs:
        raise InputError(
            "`labels` must have a name for each class of the model, or be "
            f"None for a regression. Received: labels={labels}, "
            f"the model has {outputs} outputs"
        )


def _describe(
    labels: Sequence[str] | None, is_multi_label: bool
) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    """Returns what says what logits [B, C] mean."""

    def score(logits):
        return {"score": logits[:, 0], "logits": logits}

    def label(logits):
        best = tf.argmax(logits, axis=-1)  # [B]
        return {
            "label": tf.gather(tf.constant(labels), best),
            "probabilities": tf.nn.softmax(logits),
            "logits": logits,
        }

    def several(logits):
        order = tf.argsort(logits, direction="DESCENDING")  # [B, C]
        is_given = tf.gather(logits, order, batch_dims=1) > 0
        names = tf.gather(tf.constant(labels), order)
        return {
            "labels": tf.where(is_given, names, ""),
            "probabilities": tf.nn.sigmoid(logits),
            "logits": logits,
        }

    if labels is None:
        return score
    return several if is_multi_label else label


# ---- What all exports share: inputs -----------------------------------------


def no_text() -> tf.Tensor:
    """The `text_b` of single texts: one "" for all of them.

    A default of one row, which a signature keeps and gRPC clients may rely on.
    """
    return tf.constant([""])


def as_pairs(
    text_a: tf.Tensor, text_b: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both texts, [B] each, where there are as many, or `no_text`.

    One text for several is an error: a client has lost the others.
    """
    is_none = (tf.size(text_b) == 1) & tf.reduce_all(text_b == "")
    text_a, text_b = checked(
        is_none | (tf.size(text_a) == tf.size(text_b)),
        "text_b must have as many texts as text_a ([B]), or be left out.",
        {"text_a": text_a, "text_b": text_b},
    )
    return text_a, tf.broadcast_to(text_b, tf.shape(text_a))


def as_batch(
    input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns what models take, where all have the same shape, [B, S]."""
    inputs = {
        "input_ids": input_ids,
        "input_mask": input_mask,
        "segment_ids": segment_ids,
    }
    shape = tf.shape(input_ids)
    is_same = (shape == tf.shape(input_mask)) & (shape == tf.shape(segment_ids))
    found = checked(
        tf.reduce_all(is_same),
        "input_ids, input_mask and segment_ids must have the same shape.",
        inputs,
    )
    return dict(zip(inputs, found, strict=True))


def checked(
    is_right: tf.Tensor, expected: str, inputs: Mapping[str, tf.Tensor]
) -> list[tf.Tensor]:
    """Returns the inputs; where they are not right, computing them fails.

    Args:
        is_right: A bool scalar.
        expected: A sentence for the error, which says their sizes as well.
        inputs: By the names in the signature.
    """
    sizes = [
        tf.size(x) if x.shape.rank == 1 else tf.shape(x)
        for x in inputs.values()
    ]
    received = ", ".join(f"{name} {{}}" for name in inputs)
    message = tf.strings.format(f"{expected} Received: {received}", sizes)
    # What is computed from the inputs waits: the error comes before another.
    with tf.control_dependencies([tf.debugging.Assert(is_right, [message])]):
        return [tf.identity(x) for x in inputs.values()]


# ---- What all exports share: files ------------------------------------------


def check_target(path: str) -> None:
    """Raises InputError if there is something at `path` to overwrite."""
    if not tf.io.gfile.exists(path):
        return
    if not tf.io.gfile.isdir(path) or tf.io.gfile.listdir(path):
        raise InputError(
            "A SavedModel is written to a new folder, or an empty one. Remove "
            f"what is there or choose another. Received: path={path}"
        )


def check_fits(
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> None:
    """Raises InputError if the model has no room for these."""
    config.check_sequence_length(max_seq_length)
    config.check_vocab_size(len(vocabulary.pieces), "The vocabulary")


def asset_texts(
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    labels: Sequence[str] | None,
    description: Mapping[str, Any],
) -> dict[str, str]:
    """Returns name -> text of the files that go into the SavedModel."""
    texts = {
        **vocabulary.files,
        "bert_config.json": config.to_json(),
        "export.json": json.dumps(description, indent=2) + "\n",
    }
    if labels is not None:
        texts["labels.txt"] = "".join(f"{label}\n" for label in labels)
    return texts


def save(path: str, export: Export, overwrite: bool = False) -> None:
    """Writes a SavedModel, whole or not at all.

    With `overwrite` one that is there goes when the new one is whole.
    """
    if not overwrite:
        check_target(path)
    with files.new_folder(path, overwrite) as new:
        write(new, export)


def write(folder: str, export: Export) -> None:
    """Writes a SavedModel into an empty local folder, as it comes."""
    with (
        tempfile.TemporaryDirectory() as texts,
        phases.lasting("Writing the SavedModel"),
    ):
        assets = []
        for name, text in export.files.items():
            asset = pathlib.Path(texts, name)
            asset.write_text(text, encoding="utf-8")
            assets.append(tf.saved_model.Asset(str(asset)))
        export.module.files = assets
        tf.saved_model.save(export.module, folder, export.signatures)
