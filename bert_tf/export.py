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

import functools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import heads, modeling, text_ops

import tensorflow as tf

# Name -> tf.function.
Signatures = Mapping[str, Any]

_TEXTS = tf.TensorSpec([None], tf.string)  # [B]
_IDS = tf.TensorSpec([None, None], tf.int32)  # [B, S]


class _ClassifierModule(tf.Module):
    """Tokenizer, model and labels in one.

    The Keras model itself is left out, only its variables are kept: what is
    saved then are plain functions and variables, no Keras objects.
    """

    def __init__(
        self,
        model: heads.BertClassifier,
        tokenizer: text_ops.BertTokenizer,
        labels: Sequence[str] | None,
        max_seq_length: int,
        assets: Sequence[str],
    ):
        super().__init__()
        self.tokenizer = tokenizer
        self.weights = [variable.value for variable in model.variables]
        self.files = [tf.saved_model.Asset(path) for path in assets]

        def predict(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            logits = model(inputs)  # [B, C]
            if labels is None:
                return {"score": logits[:, 0], "logits": logits}
            best = tf.argmax(logits, axis=-1)  # [B]
            return {
                "label": tf.gather(tf.constant(labels), best),
                "probabilities": tf.nn.softmax(logits),
                "logits": logits,
            }

        def predict_texts(text_a, text_b=None):
            first = tokenizer.tokenize(text_a)
            second = None if text_b is None else tokenizer.tokenize(text_b)
            return predict(
                tokenizer.pack(first, second, max_seq_length, pad_to_max=False)
            )

        # One text_b stands for as many as there are rows. That allows for a
        # default, which a signature keeps and gRPC clients may rely on.
        no_text = tf.constant([""])

        def serve_pairs(text_a, text_b=no_text):
            text_b = tf.broadcast_to(text_b, tf.shape(text_a))
            return predict_texts(text_a, text_b)

        def serve_ids(input_ids, input_mask, segment_ids):
            return predict(
                {
                    "input_ids": input_ids,
                    "input_mask": input_mask,
                    "segment_ids": segment_ids,
                }
            )

        function = functools.partial(tf.function, autograph=False)
        self.serve_single = function(predict_texts, [_TEXTS])
        self.serve_pairs = function(serve_pairs, [_TEXTS, _TEXTS])
        self.serve_ids = function(serve_ids, [_IDS, _IDS, _IDS])
        # What the loaded model does when it is called.
        self.__call__ = self.serve_pairs


def check_target(path: str) -> None:
    """Raises ValueError if there is something at `path` to overwrite."""
    if not tf.io.gfile.exists(path):
        return
    if not tf.io.gfile.isdir(path) or tf.io.gfile.listdir(path):
        raise ValueError(
            "A SavedModel is written to a new folder, or an empty one. Remove "
            f"what is there or choose another. Received: path={path}"
        )


def save_classifier(
    path: str,
    model: heads.BertClassifier,
    config: modeling.BertConfig,
    vocab: Sequence[str],
    do_lower_case: bool,
    labels: Sequence[str] | None,
    max_seq_length: int,
    takes_pairs: bool,
) -> None:
    """Writes the model as a SavedModel, whole or not at all.

    The signatures are `serving_default` (`text_a` and, for pairs, `text_b`;
    each string [B]) and `serve_ids` (`input_ids`, `input_mask`, `segment_ids`;
    each int32 [B, S]). Both return `label` (string [B]), `probabilities` and
    `logits` (float32 [B, C]); for a regression `score` [B] and `logits`.

    Args:
        path: The folder to write.
        model: With its trained weights.
        config: Its architecture.
        vocab: Its pieces, each at the place of its id.
        do_lower_case: Whether it was trained on lower-cased text.
        labels: The names of its classes; None for a regression.
        max_seq_length: What is longer is cut, as in training.
        takes_pairs: Whether its inputs may have a second text. If so, "" as
            `text_b` stands for no second text.

    Raises:
        ValueError: if the folder is not empty or the arguments do not fit.
    """
    check_target(path)
    config.check_sequence_length(max_seq_length)
    config.check_vocab_size(len(vocab), "The vocabulary")
    if len(labels or ("",)) != model.num_labels:
        raise ValueError(
            "`labels` must have a name for each class of the model, or be "
            f"None for a regression. Received: labels={labels}, "
            f"the model has {model.num_labels} outputs"
        )
    description = {
        "do_lower_case": do_lower_case,
        "max_seq_length": max_seq_length,
        "takes_pairs": takes_pairs,
    }

    def make(assets: Sequence[str]) -> tuple[tf.Module, Signatures]:
        module = _ClassifierModule(
            model,
            text_ops.BertTokenizer(vocab, do_lower_case),
            labels,
            max_seq_length,
            assets,
        )
        serve = module.serve_pairs if takes_pairs else module.serve_single
        return module, {
            "serving_default": serve,
            "serve_ids": module.serve_ids,
        }

    save(path, asset_texts(config, vocab, labels, description), make)


# ---- What all exports share -------------------------------------------------


def asset_texts(
    config: modeling.BertConfig,
    vocab: Sequence[str],
    labels: Sequence[str] | None,
    description: Mapping[str, Any],
) -> dict[str, str]:
    """Returns name -> text of the files that go into the SavedModel."""
    texts = {
        "vocab.txt": _lines(vocab),
        "bert_config.json": config.to_json(),
        "export.json": json.dumps(description, indent=2) + "\n",
    }
    if labels is not None:
        texts["labels.txt"] = _lines(labels)
    return texts


def _lines(items: Sequence[str]) -> str:
    # An empty piece was white space in its file, as U+2028 in the released
    # Chinese vocabulary. An empty line would be refused.
    return "".join(f"{item or chr(0x2028)}\n" for item in items)


def save(
    path: str,
    texts: Mapping[str, str],
    make: Callable[[Sequence[str]], tuple[tf.Module, Signatures]],
) -> None:
    """Writes a SavedModel, whole or not at all.

    Args:
        path: The folder to write.
        texts: Name -> text of the files that go into it.
        make: Takes the paths of those files, which the module is to hold as
            `tf.saved_model.Asset`; returns the module and its signatures.
    """
    with tempfile.TemporaryDirectory() as folder:
        assets = [pathlib.Path(folder, name) for name in texts]
        for asset in assets:
            asset.write_text(texts[asset.name], encoding="utf-8")
        _save(path, *make(list(map(str, assets))))


def _save(path: str, module: tf.Module, signatures: Signatures) -> None:
    """Saves under another name, then renames: no half model is ever found."""
    temporary = f"{path.rstrip('/')}.tmp{os.getpid()}"
    try:
        tf.saved_model.save(module, temporary, signatures)
        tf.io.gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        raise
