"""Exports a fine-tuned classifier as a SavedModel that takes raw text.

A SavedModel needs neither this package nor the files it was created from: it
contains the tokenizer, the weights and the labels. Python loads it with
TensorFlow and tensorflow-text, and TensorFlow Serving serves it as it is:

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/sentiment/1")
    model(tf.constant(["what a film"]))["label"]

Shapes: B batch, S sequence length, C classes (1 for a regression).
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
from bert_tf.exporting import (
    export_description,
    inference,
    serving_examples,
    serving_inputs,
)
from bert_tf.storage import written_files
from bert_tf.text import graph_rows, graph_windows, long_documents

import keras
import tensorflow as tf
from tensorflow.python.saved_model import fingerprinting_utils

# Name -> tf.function.
Signatures = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Export:
    """A model that takes raw text, and the files that belong to it.

    Attributes:
        module: Tokenizer, weights and functions.
        signatures: Functions by name; `serving_default` takes raw text.
        files: Name -> content. export.json has the head and the settings of
            training.
        in_int8: Returns the same model with int8 weights; None if unsupported.
        methods: Signature -> its TensorFlow Serving method, if not predict.
    """

    module: tf.Module
    signatures: Signatures
    files: Mapping[str, bytes]
    methods: Mapping[str, str] = dataclasses.field(default_factory=dict)
    in_int8: "Callable[[], Export] | None" = None


class PairModule(tf.Module):
    """Tokenizer and model for single texts or pairs.

    It keeps only the variables of the Keras model, so the SavedModel has plain
    functions and variables, and no Keras objects.
    """

    def __init__(
        self,
        model: keras.Model,
        config: modeling.BertConfig,
        tokenizer: graph_rows.Tokenizer,
        max_seq_length: int,
        describe: Callable[[tf.Tensor], dict[str, tf.Tensor]],
        documents: long_documents.LongDocuments | None = None,
    ):
        """Creates its functions.

        Args:
            model: The model, whose outputs are logits [B, C].
            config: Config of the model.
            tokenizer: Tokenizer of the model.
            max_seq_length: Max length; longer inputs are truncated.
            describe: Maps logits to labelled outputs.
            documents: How longer single texts are cut; by default, they are
                truncated.
        """
        super().__init__()
        documents = documents or long_documents.LongDocuments()
        self.tokenizer = tokenizer
        served = inference.make_inference_model(model)
        self.weights = served.variables

        function = functools.partial(tf.function, autograph=False)
        texts, ids = serving_inputs.TEXTS, serving_inputs.IDS
        none = serving_inputs.no_text()
        room = max_seq_length - tokenizer.vocabulary.template.special(1)

        def answer_pairs(first, second):
            first, second = tokenizer.tokenize_columns(first, second)
            inputs = tokenizer.pack(first, second, max_seq_length, False)
            return describe(served(inputs))

        # Also a function in the graph, so that signatures share it.
        answer_pairs = function(answer_pairs, [texts, texts])

        def serve_default_pairs(text_a, text_b=none):
            return answer_pairs(*serving_inputs.as_pairs(text_a, text_b))

        def serve_pairs(text, text_b):
            return answer_pairs(*serving_inputs.as_many(text, text_b))

        def serve_both(text_a, text_b):
            return serve_pairs(text_a, text_b)

        def serve_default_single(text_a):
            (text,) = serving_inputs.shaped(text_a)
            pieces = tokenizer.tokenize(text)
            rows, owners = documents.cut(pieces, room)
            inputs = tokenizer.pack(rows, None, max_seq_length, False)
            if not documents.in_windows:
                return describe(served(inputs))
            logits = graph_windows.in_parts(
                lambda parts: served(dict(zip(inputs, parts, strict=True))),
                list(inputs.values()),
                tf.TensorSpec([None, served.num_labels], tf.float32),
            )
            return describe(tf.math.segment_mean(logits, owners))

        def serve_text(text):
            return self.serve_default_single(text)

        def serve_ids(input_ids, input_mask, segment_ids):
            inputs = serving_inputs.as_batch(
                input_ids, input_mask, segment_ids, config
            )
            return describe(served(inputs))

        self.serve_default_single = function(serve_default_single, [texts])
        self.serve_default_pairs = function(
            serve_both if config.needs_pairs else serve_default_pairs,
            [texts] * 2,
        )
        self.serve_text = function(serve_text, [texts])
        self.serve_pairs = function(serve_pairs, [texts, texts])
        self.serve_ids = function(serve_ids, [ids, ids, ids])
        # Makes the loaded model callable.
        self.__call__ = (
            self.serve_default_pairs
            if documents.keeps_rows
            else self.serve_default_single
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
    """Returns an export of the model that takes raw text.

    The signatures are `serving_default` (`text_a` and, for pairs, `text_b`;
    each string [B]), `serve_text` (`text`), for pairs `serve_pairs` (`text`,
    `text_b`), and `serve_ids` (`input_ids`, `input_mask`, `segment_ids`; each
    int32 [B, S]). All return `label` (string [B]), `probabilities` and `logits`
    (float32 [B, C]); for a regression, `score` [B] and `logits`; for
    multi-label tasks, `labels` (string [B, C]: labels with a probability above
    0.5, the most likely first, padded with "") and the other two.
    `serve_examples` is for classify and regress: see serving_examples.

    Args:
        model: The model, with trained weights.
        config: Config of the model.
        vocabulary: Vocabulary of the model.
        labels: Names of the classes; None for a regression.
        max_seq_length: Max length; longer inputs are truncated, as in training.
        takes_pairs: Whether inputs may have a second text, if the model has a
            token type for it. As `text_b`, "" means no second text, and [""],
            the default, no second text for any `text_a`. Any other difference
            in the numbers of texts is an error. If the config `needs_pairs`,
            `text_b` has no default, and `serve_text` is missing.
        is_multi_label: Whether a text may have several labels.
        documents: How texts that are too long are cut, as in training; by
            default, they are truncated. Not for pairs.

    Raises:
        InputError: The arguments do not fit each other.
    """
    check_fits(config, vocabulary, max_seq_length)
    takes_pairs &= config.tells_apart(vocabulary.template.segments)
    if not takes_pairs:
        config.check_reads_single_texts()
    _check_labels(labels, model.num_labels)
    documents = documents or long_documents.LongDocuments()
    documents.check(max_seq_length - vocabulary.template.special(1))
    if takes_pairs and not documents.keeps_rows:
        raise InputError(
            "A model that was trained with --long_documents reads single "
            "texts. Leave out --pairs. "
            f"Received: long_documents={documents.method}, pairs=true"
        )
    # Imported here, so that pre-training starts without tensorflow-text.
    from bert_tf.text import text_graph

    tokenizer = text_graph.make_tokenizer(vocabulary)
    describe = _describe(labels, is_multi_label, config.score_act)
    module = PairModule(
        model, config, tokenizer, max_seq_length, describe, documents
    )
    needs_pairs = {"needs_pairs": True} if config.needs_pairs else {}
    description = {
        "head": "classification",
        **vocabulary.settings,
        "max_seq_length": max_seq_length,
        "takes_pairs": takes_pairs,
        **needs_pairs,
        "multi_label": is_multi_label,
        "long_documents": documents.method,
        "window_stride": documents.stride,
    }
    return Export(
        module,
        _signatures(module, takes_pairs, config, vocabulary, labels),
        contents(config, vocabulary, labels, description),
        {"serve_examples": serving_examples.method(labels)},
    )


def _signatures(
    module: PairModule,
    takes_pairs: bool,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    labels: Sequence[str] | None,
) -> Signatures:
    serve, others = module.serve_default_single, {}
    if not config.needs_pairs:
        others["serve_text"] = module.serve_text
    if takes_pairs:
        serve = module.serve_default_pairs
        others["serve_pairs"] = module.serve_pairs
    examples = serving_examples.make(
        serve, module.serve_ids, takes_pairs, vocabulary, labels
    )
    return {
        "serving_default": serve,
        **others,
        "serve_ids": module.serve_ids,
        "serve_examples": examples,
    }


def _check_labels(labels: Sequence[str] | None, outputs: int) -> None:
    if len(labels or ("",)) != outputs:
        raise InputError(
            "`labels` must have a name for each class of the model, or be "
            f"None for a regression. Received: labels={labels}, "
            f"the model has {outputs} outputs"
        )


def _describe(
    labels: Sequence[str] | None, is_multi_label: bool, score_act: str
) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    """Returns a function that maps logits [B, C] to labelled outputs."""

    def score(logits):
        one = keras.activations.get(score_act)(logits[:, 0])
        return {"score": one, "logits": logits}

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


# ---- Shared by all exports ---------------------------------------------------


def check_target(path: str, overwrite: bool = False) -> None:
    """Raises InputError if `path` exists and must not be replaced.

    With `overwrite`, only exports may be replaced, not for example a run's
    checkpoints.
    """
    if not tf.io.gfile.exists(path):
        return
    files.check_not_mounted(path)
    names: list[str] = []
    if tf.io.gfile.isdir(path):
        # In buckets, names of folders end with a slash.
        names = sorted(x.rstrip("/") for x in tf.io.gfile.listdir(path))
        others = written_files.foreign(names, written_files.EXPORT)
        if not names or (overwrite and not others):
            return
        names = others or names
    raise InputError(
        "A model is exported to a new folder, an empty one, or with overwrite "
        "in the place of another export. Remove what is there or choose "
        f"another. Received: path={path}, which "
        f"{f'holds {names[0]}' if names else 'is a file'}"
    )


def check_fits(
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> None:
    """Raises InputError if vocabulary or length do not fit the model."""
    config.check_sequence_length(max_seq_length)
    config.check_vocabulary(vocabulary, "The vocabulary")


def of_module(
    module: tf.Module,
    head: str,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    functions: Sequence[str],
    labels: Sequence[str] | None = None,
    **settings: Any,
) -> Export:
    """Returns the export of a module whose functions are the signatures.

    Args:
        module: Tokenizer, weights and functions.
        head: Name of the head, for export.json.
        config: Config of the model.
        vocabulary: Vocabulary of the model.
        functions: Names of the module's functions; the first function is
            `serving_default`, the others have their names.
        labels: Names of the classes, if any.
        **settings: The settings of training, for export.json.
    """
    first, *others = functions
    signatures = {"serving_default": getattr(module, first)}
    signatures |= {name: getattr(module, name) for name in others}
    description = {"head": head, **vocabulary.settings, **settings}
    extra_files = contents(config, vocabulary, labels, description)
    return Export(module, signatures, extra_files)


def contents(
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    labels: Sequence[str] | None,
    description: Mapping[str, Any],
) -> dict[str, bytes]:
    """Returns the extra files of the SavedModel: name -> content."""
    description = {
        **description,
        export_description.VOCAB_SHA256: vocabulary.sha256,
    }
    found = {
        **vocabulary.files,
        "bert_config.json": config.to_json().encode(),
        export_description.FILE: described(description),
    }
    if labels is not None:
        found["labels.txt"] = "".join(f"{x}\n" for x in labels).encode()
    return found


def described(description: Mapping[str, Any]) -> bytes:
    """Returns the content of an export.json."""
    return (json.dumps(description, indent=2) + "\n").encode()


def save(path: str, export: Export, overwrite: bool = False) -> None:
    """Writes a SavedModel atomically.

    With `overwrite`, an existing one is removed once the new one is complete.
    """
    check_target(path, overwrite)
    with files.new_folder(path, overwrite) as new:
        write(new, export)


def write(folder: str, export: Export) -> None:
    """Writes a SavedModel into an empty local folder, not atomically."""
    with (
        tempfile.TemporaryDirectory() as place,
        phases.lasting("Writing the SavedModel"),
    ):
        assets = []
        for name, data in export.files.items():
            asset = pathlib.Path(place, name)
            asset.write_bytes(data)
            assets.append(tf.saved_model.Asset(str(asset)))
        export.module.files = assets
        tf.saved_model.save(export.module, folder, export.signatures)
        _name_methods(folder, export.methods)


def _name_methods(path: str, methods: Mapping[str, str]) -> None:
    """Sets the methods of signatures, which are saved as predict."""
    if not methods:
        return
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(
        path
    )
    for signature, method in methods.items():
        updater.replace_method_name(signature, method)
    updater.save()
    # Updates the fingerprint for the changed signatures.
    fingerprinting_utils.write_fingerprint(path)
