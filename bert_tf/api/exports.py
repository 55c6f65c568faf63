"""Writes models as SavedModels that take raw text.

Keras models are exported like checkpoints: their weights become a checkpoint in
memory, and their text settings become its options.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from bert_tf import modeling, vocabularies
from bert_tf.api import arguments, models, predictor, text_reading
from bert_tf.api import tokenizer as api_tokenizer
from bert_tf.checkpoints import opened
from bert_tf.encoders import lora_layers
from bert_tf.errors import InputError
from bert_tf.exporting import runtimes, saved_model
from bert_tf.serving import opening, serving_model

import keras
import numpy as np

_KINDS = (
    models.Bert,
    models.BertClassifier,
    models.BertTagger,
    models.BertSpanFinder,
    models.BertMultipleChoice,
    models.BertMaskedLM,
    models.BertNextSentence,
    models.BertPretrainer,
)
# Of `arguments.Options`: of files, which a Keras model stands for.
_OF_FILES = ("use_checkpoint", "bert_config_file", "vocab_file")
_WITH_LABELS = ("classification", "tagging")


def export(
    model: "predictor.Predictor | keras.Model | keras.layers.Layer",
    path: str | os.PathLike[str],
    overwrite: bool = False,
    *,
    format: str = "saved_model",
    weights: str = "float32",
    vocab: Any = None,
    multi_label: bool | None = None,
    **options: Unpack[arguments.Options],
) -> None:
    """Writes a model as a SavedModel that takes raw text, whole or not at all.

    It needs neither this package nor the files it was made of; TensorFlow
    Serving serves it, and `bert_tf.load` loads it. Models for other runtimes
    take ids, and raw text where `bert_tf.load` loads them.

    Args:
        model: As `bert_tf.load` returns it from a checkpoint, or one of the
            Keras models of this package, such as `BertClassifier`.
        path: The new folder.
        overwrite: Whether to replace an existing export; other files are never
            replaced.
        format: "saved_model", or for other runtimes "litert" or "onnx".
        weights: "float32", or "int8": see docs/formats.md.
        vocab: Vocabulary of a Keras model: the `bert_tf.Tokenizer` that made
            its inputs, the path of a vocab.txt, of a checkpoint or of a run, or
            a list of tokens. By default the vocabulary of the checkpoint it
            started from.
        multi_label: Whether texts of a `BertClassifier` may have several
            labels. By default as in its checkpoint, else false.
        **options: Settings of a Keras model that its checkpoint and its run
            lack, such as `max_seq_length` or `pairs`: the options of
            `bert_tf.load`, except files. With `regression`, a CrossEncoder's
            score is the logit itself, without its sigmoid.

    Raises:
        InputError: The model can't be exported, not all that is needed is
            known, or there is something at `path`.
    """
    if isinstance(model, predictor.Predictor):
        said = {"vocab": vocab, "multi_label": multi_label, **options}
        given = [name for name, value in said.items() if value is not None]
        if given:
            raise InputError(
                f"{', '.join(given)} can't be given of a model of "
                "bert_tf.load: give it to bert_tf.load, or export a Keras "
                f"model. Received: path={model.path}"
            )
        model.export(path, overwrite, format, weights)
        return
    _check_kind(model)
    path = os.fspath(path)
    runtimes.check(format, weights)
    saved_model.check_target(path, overwrite)
    said = arguments.check(options)
    of_files = [name for name in _OF_FILES if said[name] is not None]
    if of_files:
        raise InputError(
            f"{', '.join(of_files)} can't be given of a Keras model; its "
            "vocabulary is given as vocab. Received: "
            f"{of_files[0]}={said[of_files[0]]}"
        )
    with arguments.in_words_of_python():
        made = _make(model, vocab, multi_label, said)
        runtimes.save(path, made, format, weights, overwrite)


def _check_kind(model: Any) -> None:
    """Raises InputError unless a model has a supported head."""
    kinds = ", ".join(kind.__name__ for kind in _KINDS)
    if not isinstance(model, _KINDS):
        raise InputError(
            "Raw text is exported of what bert_tf.load returned from a "
            f"checkpoint, and of the Keras models {kinds}. Other models are "
            "written by their own `save` and `export`. "
            f"Received: model={type(model).__name__}"
        )
    if not any(type(model).call is kind.call for kind in _KINDS):
        raise InputError(
            f"{type(model).__name__} has a `call` of its own, which is not "
            f"known here: raw text is exported of {kinds}, and of subclasses "
            "that compute the same. Received: "
            f"model={type(model).__name__}"
        )


def _make(
    model: Any, vocab: Any, multi_label: bool | None, said: dict[str, Any]
) -> saved_model.Export:
    """Makes the model take raw text, with the code that exports files.

    Args:
        model: One of `_KINDS`.
        vocab: See `export`.
        multi_label: Likewise.
        said: All `arguments.Options`, None for those not passed.
    """
    bert = model if isinstance(model, models.Bert) else model.bert
    known = getattr(bert, "reading", None) or text_reading.NOTHING_KNOWN
    found, lower = _vocab_and_casing(model, known, vocab, said["do_lower_case"])
    if isinstance(vocab, api_tokenizer.Tokenizer):
        said = {"max_seq_length": vocab.max_seq_length} | {
            name: value for name, value in said.items() if value is not None
        }
        said = arguments.check(said)
    config = bert.config
    if said["regression"]:
        config = dataclasses.replace(config, score_act="linear")
    source = _as_checkpoint(model, config, multi_label, found, lower)
    head = serving_model.find_head(source, said["head"])
    source = dataclasses.replace(
        source, max_seq_length=known.length_for(head), vectors=known.vectors
    )
    if multi_label is not None and head != "classification":
        raise InputError(
            "multi_label goes with a classifier: leave it out. Received: "
            f"multi_label={multi_label}, head={head}"
        )
    flags = known.flags_for(head)
    if vocab is not None:
        flags.pop("do_lower_case", None)
    is_new = head == "classification" and head != known.head
    if is_new and said["task_name"] is None and said["pairs"] is None:
        said = said | {"pairs": True}  # Nothing says that texts are single.
    is_named = any(said[x] for x in ("labels", "regression", "task_name"))
    if head in _WITH_LABELS and source.labels and not is_named:
        said = said | {"labels": list(source.labels)}
    given = {x: value for x, value in said.items() if x != "use_checkpoint"}
    return opening.make(
        source,
        opening.Said(
            given, arguments.read, "", flags, known.path or source.path
        ),
        lambda name: arguments.check_head(given, name),
    )


def _vocab_and_casing(
    model: Any,
    known: text_reading.Reading,
    vocab: Any,
    do_lower_case: bool | None,
) -> tuple[vocabularies.Files, bool | None]:
    """Returns the vocabulary, and the casing if it says one."""
    if vocab is None:
        if known.vocab is None:
            raise InputError(
                f"The vocabulary of this {type(model).__name__} is not known, "
                "as no checkpoint brought one: give vocab, the bert_tf."
                "Tokenizer that made its inputs or the path of a vocab.txt. "
                "Received: vocab=None"
            )
        return known.vocab, known.do_lower_case
    if isinstance(vocab, api_tokenizer.Tokenizer):
        return vocab.files, vocab.do_lower_case
    is_plain = isinstance(vocab, list | tuple) or str(vocab).endswith(".txt")
    if do_lower_case is None and is_plain:
        do_lower_case = known.lower_cases()
    found = api_tokenizer.find_vocabulary(vocab, do_lower_case)
    files = vocabularies.Files(found.kind, found.files)
    return files, found.settings.get("do_lower_case")


def _as_checkpoint(
    model: Any,
    config: modeling.BertConfig,
    multi_label: bool | None,
    vocab: vocabularies.Files,
    do_lower_case: bool | None,
) -> opened.Checkpoint:
    """Returns what the model holds as a checkpoint in memory."""
    if multi_label is not None:
        problem = modeling.MULTI_LABEL if multi_label else None
        config = dataclasses.replace(config, problem_type=problem)
    variables = lora_layers.merged_variables(model)

    def read(names: Sequence[str]) -> dict[str, np.ndarray]:
        return {name: np.asarray(variables[name], np.float32) for name in names}

    shapes: Mapping[str, tuple[int, ...]] = {
        name: tuple(variable.shape) for name, variable in variables.items()
    }
    return opened.Checkpoint(
        f"{type(model).__name__} {model.name!r}",
        "keras",
        shapes,
        read,
        config=config,
        vocab=vocab,
        do_lower_case=do_lower_case,
        labels=getattr(model, "labels", None),
    )
