"""Opens a checkpoint of any format and writes it in any other."""

import contextlib
import dataclasses
import functools
import math
import os
import re
from collections.abc import Iterable

from bert_tf import configuration, files, modeling, vocabularies
from bert_tf.checkpoints import (
    best,
    casing,
    hub,
    huggingface,
    huggingface_names,
    huggingface_weights,
    keras_hub,
    keras_hub_names,
    model_card,
    names,
    opened,
    original,
    reading_flags,
    runs,
    tf1_files,
    tokenizer_files,
)
from bert_tf.encoders import families, family, foreign
from bert_tf.errors import InputError, listed
from bert_tf.storage import weight_files, written_files
from bert_tf.vocabularies import tokenizer_json

import tensorflow as tf
from absl import logging

# A folder without a model is searched for folders with one: these names first,
# and at most this many, because each takes a request in a bucket.
_OFTEN_MODELS = re.compile(r"checkpoint-\d+|0_Transformer|snapshots|\d+")
_MOST_LOOKED_INTO = 100


def open_checkpoint(path: str | os.PathLike[str]) -> opened.Checkpoint:
    """Opens a checkpoint and detects its format.

    It may be a TF1 checkpoint, by any path that `tf1_files.find` accepts; the
    folder, weights file or Hub name of a Hugging Face model; or the folder or
    name of a KerasHub preset.
    """
    path = os.fspath(path)
    place = hub.locate(path)
    if place != path:
        return dataclasses.replace(_open_folder(place), path=path)
    for link in (path, f"{path}.index"):
        if os.path.islink(link) and not os.path.exists(link):
            raise InputError(
                f"{link} is a link to what is not there: bring that back, or "
                f"give another checkpoint. Received: {os.readlink(link)}"
            )
    if row := weight_files.find_format({os.path.basename(path)}):
        if not tf.io.gfile.exists(path):
            raise InputError(
                f"There is no file {path}. Give the folder of the model."
            )
        return row.load().open_checkpoint(os.path.dirname(path) or ".")
    if tf.io.gfile.isdir(path):
        return _open_folder(path)
    # A preset's name has no slash; looking it up imports KerasHub.
    is_name = re.fullmatch(r"\w[\w.]*|kaggle://.*", path)
    if is_name and not _is_tf1(path) and not _is_there(path):
        folder = keras_hub.find_preset(path)
        if folder is None:
            raise InputError(
                f"There is no checkpoint {path}: neither the file "
                f"{path}.index, nor a folder, nor a KerasHub preset of BERT "
                "of that name, such as bert_tiny_en_uncased."
            )
        preset = keras_hub.open_checkpoint(folder)
        return dataclasses.replace(preset, path=path)
    if not _is_tf1(path):
        _check_is_prefix(path)
    return original.open_checkpoint(tf1_files.find(path))


def _open_folder(folder: str) -> opened.Checkpoint:
    here = set(tf.io.gfile.listdir(folder))
    has_theirs = bool(here & set(huggingface_weights.FILES))
    values = opened.read_json(folder, keras_hub.CONFIG)
    if "class_name" in values:
        return keras_hub.open_checkpoint(folder)
    if weight_files.ADAPTER in here:
        _check_adapter(folder, weight_files.has_weights(here))
    if has_theirs and keras_hub.CONFIG in here:
        return huggingface.open_checkpoint(folder)
    if any(name.endswith(".index") for name in here):
        newest = tf1_files.find(folder)
        _log_best(folder, newest)
        return original.open_checkpoint(newest)
    for row in families.FAMILIES.values():
        if row.weights_file and row.weights_file.name in here:
            return _open_weights_file(folder, row, row.weights_file)
    if found := weight_files.find_format(here):
        # Of Hugging Face: reports the missing config.json.
        return found.load().open_checkpoint(folder)
    if "model_type" in values:
        # Reports the missing weights.
        return huggingface.open_checkpoint(folder)
    if written_files.GRAPH in here:
        raise InputError(
            f"The folder {folder} is a SavedModel, which can be served "
            "(run_prediction.py --saved_model) but not be read as a "
            "checkpoint. Give the checkpoint that it was made from; of a "
            "TF1 module of TensorFlow Hub give "
            f"{os.path.join(folder, 'variables')}."
        )
    if any(".data-" in name for name in here):
        # Reports that there is no index.
        tf1_files.find(folder)
    if inside := _models_inside(folder, here):
        raise InputError(
            f"The folder {folder} holds models in folders of their own. Give "
            f"one of them. Received: {', '.join(inside[-3:])}"
        )
    others = "".join(
        f"; {weights.file} ({name})"
        for name, row in weight_files.FORMATS.items()
        if name not in ("tf1", "hf", "keras_hub")
        for weights in row.weights
    )
    raise InputError(
        f"The folder {folder} holds no checkpoint. Looked for: "
        "bert_model.ckpt.index or model.ckpt-STEP.index (the original's and "
        "ours); config.json with "
        f"{', '.join(huggingface_weights.FILES)} (Hugging Face); config.json "
        "with "
        f"{keras_hub.WEIGHTS} (KerasHub); options.json with "
        f"{weight_files.BILM} (ELMo){others}.{_way_out(folder, here)} "
        f"Received: {listed(sorted(here)) or 'no files'}"
    )


def _way_out(folder: str, here: Iterable[str]) -> str:
    """Suggests what to give instead of a folder without a checkpoint."""
    if parent := _folder_with_weights(folder.rstrip("/") or folder):
        return f" Give its parent folder ({parent}), which has a model."
    if others := weight_files.find_others(here):
        return (
            f" {listed(others)} can't be read: write the model with "
            "save_pretrained of transformers, or give the model that it was "
            "made from."
        )
    return ""


def _check_adapter(folder: str, has_weights: bool) -> None:
    """Rejects a folder with an adapter alone, or warns that it is not used."""
    if not has_weights:
        raise opened.only_adapter(folder, f"The folder {folder}")
    logging.warning(
        "%s: the adapter (%s) is not used, only the weights of the model. %s",
        *(folder, weight_files.ADAPTER, opened.ADAPTER_WAY),
    )


def _open_weights_file(
    folder: str, row: family.Family, file: foreign.WeightsFile
) -> opened.Checkpoint:
    """Opens a folder with a family's config and its own file of weights."""
    path = os.path.join(folder, row.config_file)
    if not tf.io.gfile.exists(path):
        raise InputError(
            f"The folder {folder} has {file.name} but no {row.config_file}, "
            "which says what it is. Copy or download it, too."
        )
    values = configuration.read_json_file(path)
    if families.of_values(values) is not row:
        raise InputError(
            f"{path} does not describe the weights next to it, {file.name}, "
            f"which are of model_type={row.name}. Copy both files of one "
            f"model. Received: keys={', '.join(values) or 'none'}"
        )
    config = row.config.from_file(values, path)
    shapes = names.shapes(config, "encoder")
    shapes = {x: shape for x, shape in shapes.items() if x not in row.pooler}
    return opened.Checkpoint(
        path=folder,
        format=row.name,
        shapes=shapes,
        read=file.open(os.path.join(folder, file.name), config, shapes),
        config=config,
        vocab=vocabularies.among(file.vocabulary),
    )


@functools.cache
def _log_best(folder: str, newest: str) -> None:
    """Logs once that the best checkpoint of a run's folder is another one."""
    with contextlib.suppress(InputError):
        kept = best.checkpoint(folder)
        if kept and os.path.basename(kept) != os.path.basename(newest):
            logging.info(
                "%s is the newest checkpoint of the run. For its best "
                "evaluation (%s), pass %s.",
                *(newest, os.path.basename(kept), os.path.dirname(kept)),
            )


def _models_inside(folder: str, here: Iterable[str]) -> list[str]:
    """Returns the folders with weights inside a folder without weights.

    Examples are checkpoint-500 of a run, snapshots/COMMIT of the Hub, the
    0_Transformer of the first versions of sentence-transformers, and the
    numbered versions of a served model.
    """
    paths = []
    names = sorted(x.rstrip("/") for x in here)
    names.sort(key=lambda name: not _OFTEN_MODELS.fullmatch(name))
    for name in names[:_MOST_LOOKED_INTO]:
        path = os.path.join(folder, name)
        paths.append(path)
        if name == "snapshots":
            commits = tf.io.gfile.listdir(path)
            paths += [os.path.join(path, x.rstrip("/")) for x in commits]
    inside = {}
    for path in filter(tf.io.gfile.isdir, paths):
        with contextlib.suppress(tf.errors.PermissionDeniedError):
            inside[path] = tf.io.gfile.listdir(path)
    found = [
        x
        for x, names_in in inside.items()
        if weight_files.has_weights(names_in) or written_files.GRAPH in names_in
    ]
    return sorted(found, key=lambda path: (len(path), path))


def _check_is_prefix(path: str) -> None:
    """Raises InputError for a path that is almost a name, or another file."""
    if _is_nearly_name(path):
        raise InputError(
            f"There is no folder {path} here. A Hugging Face model is given as "
            "the folder that holds its config.json and model.safetensors, or "
            "as its name on the Hub with the owner, such as "
            "google-bert/bert-base-uncased. A checkpoint of the original is "
            "named by its prefix, such as .../bert_model.ckpt, or its folder."
        )
    if tf.io.gfile.exists(path):
        folder = _folder_with_weights(path)
        hint = f" (here probably {folder})" if folder else ""
        raise InputError(
            f"The file {path} is no checkpoint. Give the folder of a Hugging "
            "Face model, as save_pretrained of transformers writes it, or of a "
            "KerasHub preset, or the prefix of a checkpoint "
            f"of the original, .../bert_model.ckpt{hint}."
        )


def _folder_with_weights(path: str) -> str | None:
    """Returns the folder of a path, if it holds a model."""
    folder = os.path.dirname(path) or "."
    with contextlib.suppress(tf.errors.OpError):  # A bucket has no parent.
        others = {*tf.io.gfile.listdir(folder)} - {os.path.basename(path)}
        if weight_files.has_weights(others):
            return folder
    return None


def _is_nearly_name(path: str) -> bool:
    """Whether a path is a Hub address, or a Hub name without its owner."""
    if re.match(r"(https?|hf)://", path):
        return True
    is_name = re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", path)
    return bool(is_name) and ".ckpt" not in path and not _is_there(path)


def _is_there(path: str) -> bool:
    # TensorFlow has no file system for preset addresses.
    return "://" not in path and tf.io.gfile.exists(path)


def _is_tf1(path: str) -> bool:
    is_file = re.search(r"\.(index|meta|data-\d+-of-\d+)$", path)
    return bool(is_file) or _is_there(f"{path}.index")


# ---- Writing ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Written:
    """The result of writing a checkpoint.

    Attributes:
        weights: Our names of the weights that were written.
        left_out: Names in the source, ours or other libraries', not written.
        notes: Sentences on missing files and on differing outputs.
    """

    weights: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def with_head(source: opened.Checkpoint, head: str) -> opened.Checkpoint:
    """Returns the source with the encoder's weights and one head only.

    Optimizer moments and class names are dropped as well.
    """
    missing = sorted(names.HEADS[head].variables.keys() - source.shapes.keys())
    if missing:
        raise InputError(
            f"{source.path} has no {head} head: {', '.join(missing)} are not "
            "there. Choose a head that it has, or give none."
        )
    kept = {
        name: shape
        for name, shape in source.shapes.items()
        if names.is_in_model(head, name)
    }
    dropped = sorted(source.shapes.keys() - kept.keys())
    return dataclasses.replace(
        source,
        shapes=kept,
        state=tuple(
            name
            for name in source.state
            if name.rpartition("/")[0] not in dropped
        ),
        labels=source.labels if names.HEADS[head].has_labels else None,
        left_over=(*source.left_over, *dropped),
    )


def write(
    path: str,
    output_format: str,
    source: opened.Checkpoint,
    overwrite: bool = False,
) -> Written:
    """Writes a checkpoint as a new folder, all or nothing.

    A TF1 path may be a prefix such as .../bert_model.ckpt, as in the original.
    With `overwrite` an existing folder is replaced at the end.
    """
    head = names.find_head(source.shapes, source.path)
    config = source.config
    notes: list[str] = []
    if config is None:
        raise InputError(
            f"There is no bert_config.json beside {source.path}, so its "
            "architecture is not known: give --bert_config_file."
        )
    if not source.is_foreign and head in huggingface.CUT:
        length = runs.flags_of(source.path).get("max_seq_length")
        source = dataclasses.replace(
            source, max_seq_length=int(length) if length else None
        )
    if source.vocab is not None and source.do_lower_case is None:
        # Other libraries store the casing with the vocabulary; ours may not.
        with contextlib.suppress(InputError):  # The writers explain it better.
            told = casing.told_by(source.vocab, "The vocabulary")
            source = dataclasses.replace(source, do_lower_case=told)
    is_prefix = output_format == "tf1" and original.is_prefix(path)
    # Checked first: writing HDF5 to a full disk crashes.
    size = sum(4 * math.prod(shape) for shape in source.shapes.values())
    place: contextlib.AbstractContextManager[str] = (
        contextlib.nullcontext(path)
        if is_prefix
        else files.new_folder(path, overwrite, size)
    )
    card = None
    if not is_prefix:  # The user may have edited the card: keep it.
        card = opened.read_bytes(os.path.join(path, model_card.FILE))
    with place as folder:
        if is_prefix:
            weights = original.write_prefix(path, source, config, overwrite)
        else:
            writer = weight_files.FORMATS[output_format].load()
            weights = writer.write(folder, source, config)
        if output_format == "hf":
            notes += _lost_for_transformers(source, config, head)
            head = huggingface_names.head_there(config, head)
            notes += huggingface_names.differences(config, head)
            if card is None:
                card = _card(folder, path, source, config, head, weights)
        if output_format == "keras_hub":
            notes += _lost_in_a_preset(source, config, head)
            head = keras_hub_names.head_there(config, head)
        if card is not None:
            files.write_bytes(os.path.join(folder, model_card.FILE), card)
    notes += reading_flags.notes(source, output_format, head)
    if source.vocab is None:
        notes.append(
            "The vocabulary is not known, so there is no tokenizer in the "
            "folder: give --vocab_file."
        )
    family = families.find(config)
    if not family.pooler - family.absent(config) <= source.shapes.keys():
        notes.append(
            "There is no pooler. Where one is needed, it starts from random "
            "values."
        )
    left_out = [*source.left_over, *sorted(source.shapes.keys() - weights)]
    return Written(tuple(sorted(weights)), tuple(left_out), tuple(notes))


def _card(
    folder: str,
    path: str,
    source: opened.Checkpoint,
    config: modeling.BertConfig,
    head: str,
    weights: set[str],
) -> bytes:
    """Returns the model card of a folder that will be renamed to `path`."""
    return model_card.make_card(
        source,
        config,
        head,
        weights,
        os.path.basename(path.rstrip("/")),
        tf.io.gfile.exists(os.path.join(folder, tokenizer_json.FILE)),
    )


def _lost_for_transformers(
    source: opened.Checkpoint, config: modeling.BertConfig, head: str
) -> list[str]:
    vocabulary = source.read_vocabulary()
    if vocabulary is None:
        return []
    notes = []
    if not tokenizer_files.find_writer(vocabulary):
        notes.append(
            "transformers has no tokenizer of this vocabulary, so there is "
            f"none in the folder. Received: kind={vocabulary.kind}"
        )
    special, is_last = vocabulary.special, not vocabulary.template.after
    is_last &= config.pools_last and head == "classification"
    if is_last and special.pad == special.unk:
        notes.append(
            "transformers classifies a text by its last token that is not "
            f"padding, which is {special.pad.text} here: texts that end with "
            "an unknown character get other answers there."
        )
    return notes


def _lost_in_a_preset(
    source: opened.Checkpoint, config: modeling.BertConfig, head: str
) -> list[str]:
    notes = [*keras_hub_names.differences(config, head)]
    if source.vocab is not None:
        notes += keras_hub_names.of_texts(
            source.vocab.kind, bool(source.do_lower_case)
        )
        if source.vocab.kind not in families.find(config).vocabularies:
            notes.append(
                "KerasHub has no tokenizer of this vocabulary for this model, "
                "so there is none in the folder. "
                f"Received: kind={source.vocab.kind}"
            )
    if source.labels:
        notes.append(
            "A preset of KerasHub does not keep the names of the "
            f"classes: {listed(source.labels)}."
        )
    return notes
