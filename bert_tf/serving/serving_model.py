"""Any head as a function of raw text, from a checkpoint or a SavedModel."""

import dataclasses
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf import optimization, vocabularies
from bert_tf.checkpoints import (
    names,
    opened,
    original,
    runs,
    tf1_files,
    trained_models,
)
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.exporting import (
    export_description,
    runtimes,
    saved_model,
    unsafe_ops,
    versions,
)
from bert_tf.serving import elsewhere, makers, served_heads, serving_lines
from bert_tf.storage import file_systems, input_files, written_files

import tensorflow as tf
from absl import logging

# Required files of a SavedModel.
_PARTS = (
    written_files.GRAPH,
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
)


# ---- Selecting the head -----------------------------------------------------

_DISCRIMINATOR = names.HEADS["replaced_tokens"].variables.keys()
# A pre-training head -> its use if no head is specified.
_MEANT = {
    "pretraining": "filling masked words.",
    "both_directions": "making vectors of texts. Fine-tune it for other uses.",
}


def find_head(source: opened.Checkpoint, wanted: str | None) -> str:
    """Returns the head to serve: the requested one, or the only one.

    Raises InputError if it is missing or untrained, or if there are several.
    """
    if wanted is None:
        found = _find_only_head(source)
        _check_is_trained(source, found, "")
        _check_reads_pooled(source, found)
        _check_is_whole(source, found)
        return found
    own = names.HEADS[wanted].variables
    missing = sorted(own.keys() - source.shapes.keys())
    if missing:
        here = source.shapes.keys()
        others = [
            name
            for name, head in served_heads.HEADS.items()
            if head.weights.variables.keys() <= here
        ]
        way = f"Train it with {served_heads.HEADS[wanted].trained_by}"
        if wanted == "masked_lm" and here >= _DISCRIMINATOR:
            way = (
                "Take the generator out with convert_checkpoint.py --generator"
            )
        raise InputError(
            f"{source.path} has no {wanted} head: {', '.join(missing)} are not "
            f"there. {way}, or give "
            f"--head={' or '.join(others)}. Received: head={wanted}"
        )
    _check_is_trained(source, wanted, f" Received: head={wanted}")
    return wanted


def _check_reads_pooled(source: opened.Checkpoint, head: str) -> None:
    """Raises InputError for a head of words with the names of a classifier's.

    Forks of BERT for NER write such checkpoints. The head of a classifier can't
    be trained without gradients of the pooler, unless that is frozen.
    """
    moments = filter(None, map(optimization.slot_of, source.state))
    trained = {variable for variable, _ in moments}
    pooler = families.find(source.config).pooler & source.shapes.keys()
    own = names.HEADS["classification"].variables.keys()
    is_trained_alone = own <= trained and trained.isdisjoint(pooler)
    if head != "classification" or not pooler or not is_trained_alone:
        return
    if runs.folder_of(source.path):
        return  # Ours may freeze it.
    raise InputError(
        f"{source.path} has {min(own)} and {max(own)}, but its pooler was "
        "never trained: this looks like a head that labels words. Train one "
        "with run_ner.py, or rename its variables to cls/tagging/...; if it "
        "classifies texts, and its pooler was frozen, give "
        "--head=classification. Received: head=None"
    )


def _check_is_whole(source: opened.Checkpoint, head: str) -> None:
    """Raises InputError if a file has tensors of a head that is not known."""
    left = source.left_over
    way_out = "Rename its tensors as in transformers"
    if head == "encoder" and not source.is_foreign:
        left = left or _unknown_variables(source)
        way_out = "Register it, as docs/extending.md shows"
    if head == "encoder" and left:
        raise InputError(
            f"{source.path} has a head whose names are not known: "
            f"{', '.join(left[:3])}. {way_out}, or give --head=encoder for "
            f"vectors. Received: head=None, {len(left)} tensors of other names"
        )
    if left:
        logging.warning(
            "%s has tensors that are not read, so that answers may differ "
            "from those in training: %s",
            source.path,
            ", ".join(left[:3]),
        )


def _unknown_variables(source: opened.Checkpoint) -> tuple[str, ...]:
    """Returns the names of weights of neither an encoder nor a known head.

    Numbers and the slots of a head's variables are the training state of other
    people's code.
    """
    known = {x for head in names.HEADS.values() for x in head.all_variables}
    rows = families.FAMILIES.values()
    encoders = tuple(row.prefix for row in rows)
    generators = [row.generator for row in rows if row.generator is not None]
    return tuple(
        name
        for name, shape in sorted(source.shapes.items())
        if shape
        and not name.startswith(encoders)
        and known.isdisjoint((name, name.rpartition("/")[0]))
        and all(generator.alone(name) is None for generator in generators)
    )


def _find_only_head(source: opened.Checkpoint) -> str:
    """Returns a checkpoint's head, or the default one of several."""
    found = names.find_head(source.shapes, source.path)
    if found in served_heads.HEADS:
        return found
    part, *others = names.HEADS[found].parts
    meant = _MEANT.get(found, part)
    has_next = "next_sentence" in others
    if has_next and trained_models.is_trained(source, "next_sentence"):
        meant += " It can tell next sentences too: --head=next_sentence."
    logging.info("%s was pre-trained: %s", source.path, meant)
    return part


def _check_is_trained(
    source: opened.Checkpoint, head: str, received: str
) -> None:
    """Raises InputError if a run left the head at its random values."""
    if not trained_models.is_trained(source, head):
        raise InputError(
            f"{source.path} has a {head} head that its run did not train (as "
            "by data made with --objective=none, or by --distillation=minilm). "
            f"Train it with {served_heads.HEADS[head].trained_by}, or choose "
            f"another --head, such as encoder.{received}"
        )


# ---- A checkpoint -----------------------------------------------------------


def make(
    head: str,
    source: opened.Checkpoint,
    files: trained_models.ModelFiles,
    settings: makers.Settings,
) -> saved_model.Export:
    """Returns a checkpoint's model with this head as a model of raw text.

    Raises InputError if the settings do not fit the model.
    """

    def of_weights(weights: str) -> saved_model.Export:
        kept = dataclasses.replace(settings, weights=weights)
        return served_heads.HEADS[head].make(source, files, kept)

    return dataclasses.replace(
        of_weights("float32"), in_int8=lambda: of_weights("int8")
    )


# ---- Models -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Model:
    """A function of raw text.

    Attributes:
        serve: Maps the columns of some rows, by name, to outputs.
        labels: Labels of a classifier; empty for other heads.
        unit: What a vector of an encoder represents.
        top_k: Number of tokens per mask of a masked language model.
        needs_pairs: Whether a classifier does not take single texts.
    """

    head: str
    serve: Callable[..., dict[str, tf.Tensor]]
    inputs: frozenset[str]
    labels: tuple[str, ...]
    unit: str
    top_k: int
    needs_pairs: bool = False

    @property
    def asks(self) -> serving_lines.Form:
        """The form of its input lines."""
        form = served_heads.HEADS[self.head].asks
        if not self.needs_pairs:
            return form
        return dataclasses.replace(form, second_may_lack=False)


def of_export(made: saved_model.Export) -> Model:
    """Returns the function of a model that is not saved."""
    function = made.signatures["serving_default"]
    parameters = inspect.signature(function.python_function).parameters

    def serve(**columns):
        # Keeps a reference to the module, which owns the weights.
        return made.signatures["serving_default"](**columns)

    description = json.loads(made.files[export_description.FILE])
    data = made.files.get(original.LABELS, b"")
    labels = input_files.parse_labels(data.decode())
    return _model(description, labels, serve, frozenset(parameters))


def load(
    path: str,
    allow_unsafe_ops: bool = False,
    allow: str = "--allow_unsafe_ops",
) -> Model:
    """Returns the function of an exported model, for whichever runtime.

    Args:
        path: The folder of the export.
        allow_unsafe_ops: Whether a SavedModel may touch files and the host.
        allow: The way to allow that, for the error.

    Raises:
        InputError: There is no model, it was not written by
            export_saved_model.py, or it has unsafe operations.
    """
    if runtimes.find(path):
        return of_export(_elsewhere(path))
    if not tf.io.gfile.exists(os.path.join(path, written_files.GRAPH)):
        problem = "The folder holds no SavedModel: saved_model.pb is not there."
        if not tf.io.gfile.exists(path):
            problem = "There is no such folder."
        elif not tf.io.gfile.isdir(path):
            problem = "This is a file, and a SavedModel is a folder."
        elif held := _versions(path):
            raise InputError(
                "The folder holds versions of a model: give one of them, such "
                f"as {os.path.join(path, str(held[-1]))}. Received: "
                f"saved_model={path}, with {', '.join(map(str, held))}"
            )
        raise InputError(
            f"{problem} Write one with export_saved_model.py, or give a "
            "checkpoint by --model_dir or --init_checkpoint. "
            f"Received: saved_model={path}"
        )
    input_files.check_no_pipes(path)
    assets = os.path.join(path, "assets")
    description = _description(path, assets)
    labels = original.read_labels(
        os.path.join(assets, original.LABELS), "Export the model again."
    )
    if not allow_unsafe_ops:
        unsafe_ops.check(path, allow)
    loaded, inputs, outputs = _load(path)
    classes = outputs.get("probabilities")
    if description["head"] == "classification" and classes is not None:
        count = classes.shape[-1]
        if count != len(labels or ()):
            raise InputError(
                f"The SavedModel {path} has {count} classes, and its "
                f"assets/{original.LABELS} names {len(labels or ())}. "
                "Export it again."
            )

    def serve(**columns):
        # Keeps a reference to the loaded model, which owns the weights.
        return loaded.signatures["serving_default"](**columns)

    return _model(description, labels, serve, frozenset(inputs))


def _versions(path: str) -> list[int]:
    """Returns the numbers of the SavedModels in a folder."""
    return [
        x
        for x in versions.numbers(path)
        if tf.io.gfile.exists(os.path.join(path, str(x), written_files.GRAPH))
    ]


def _description(path: str, folder: str) -> dict[str, Any]:
    """Returns what the export at `path` says of itself, in a folder of it."""
    names = (*original.vocab_names(), export_description.FILE)
    contents = {
        name: data
        for name in names
        if (data := opened.read_bytes(os.path.join(folder, name))) is not None
    }
    file = os.path.join(folder, export_description.FILE)
    description = export_description.parse(
        contents.setdefault(export_description.FILE, b"{}"), file
    )
    head = description.get("head")
    if head and head not in served_heads.HEADS:
        raise InputError(
            f"The model {path} has a head that is not known: register it, as "
            "docs/extending.md shows, or export it again. Known: "
            f"{', '.join(served_heads.HEADS)}. Received: head={head}"
        )
    if not head:
        what = "model" if runtimes.find(path) else "SavedModel"
        file = os.path.relpath(file, path)
        has_file = tf.io.gfile.exists(os.path.join(path, file))
        reason = "names no head" if has_file else "is not there"
        raise InputError(
            f"The {what} {path} was not written by export_saved_model.py "
            f"of this version: {file} {reason}. Export your run again. For a "
            "model of another program, such as TensorFlow Hub's, pass a "
            "checkpoint instead: without this file, texts can't be encoded. "
            f"Received: {path}"
        )
    if folder == path:
        export_description.check_runtime(description, file)
    export_description.check_vocab(contents, path)
    return description


def _elsewhere(path: str) -> saved_model.Export:
    """Loads a model of another runtime as a model of raw text."""
    description = _description(path, path)
    around = served_heads.HEADS[description["head"]].around
    if around is None:
        raise InputError(
            "Raw text is answered by a SavedModel of this head only; the model "
            f"of {description['format']} takes ids. "
            f"Received: head={description['head']}, saved_model={path}"
        )
    return around(
        elsewhere.Elsewhere(
            runtimes.open_folder(path, description),
            trained_models.ModelFiles.load(
                os.path.join(path, original.CONFIG),
                vocabularies.path_in(path)
                or os.path.join(path, vocabularies.USUAL_FILE),
                description.get("do_lower_case", False),
            ),
            original.read_labels(
                os.path.join(path, original.LABELS), "Export the model again."
            ),
            description,
        )
    )


def _load(path: str) -> tuple[Any, Mapping[str, Any], Mapping[str, Any]]:
    """Loads a SavedModel; InputError if it is damaged.

    Returns:
        The model, and the inputs and outputs of its signature by name.
    """
    links = path
    try:
        with file_systems.not_as_glob(path, [path]) as links:
            loaded = tf.saved_model.load(links)
        signature = loaded.signatures["serving_default"]
        _, inputs = signature.structured_input_signature
        return loaded, inputs, signature.structured_outputs
    except (tf.errors.ResourceExhaustedError, MemoryError):
        raise
    # A damaged graph raises errors of any type.
    except Exception as error:
        paths = [os.path.join(path, part) for part in _PARTS]
        plain = next(filter(None, map(tf1_files.not_weights, paths)), None)
        absent = next((x for x in paths if not tf.io.gfile.exists(x)), None)
        text = str(error).replace(links, path)
        reason = plain or f"{text[:200].rstrip('.')}."
        if absent:
            reason = f"{absent} is not there."
        raise InputError(
            f"The SavedModel {path} is damaged, or not all there: "
            f"{reason} Export it again, or copy the whole folder again."
        ) from error


def _model(
    description: Mapping[str, Any],
    labels: Sequence[str] | None,
    serve: Callable,
    inputs: frozenset[str],
) -> Model:
    return Model(
        description["head"],
        serve,
        inputs,
        tuple(labels or ()),
        description.get("unit", ""),
        description.get("top_k", 0),
        description.get("needs_pairs", False),
    )
