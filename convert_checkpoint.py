r"""Converts checkpoints between TF1, Hugging Face and KerasHub formats.

A released checkpoint for Hugging Face's transformers:
    python convert_checkpoint.py --output_format=hf --output_path=/tmp/hf \
        --input_checkpoint=uncased_L-12_H-768_A-12/bert_model.ckpt

A Hugging Face model as a TF1 checkpoint, for the original's scripts:
    python convert_checkpoint.py --output_format=tf1 --output_path=/tmp/tf1 \
        --input_checkpoint=google-bert/bert-base-uncased

For a vocabulary that learn_vocabulary.py extended. The embedding of a new token
is the mean of the embeddings of the tokens that it was split into:
    python convert_checkpoint.py --output_format=tf1 --output_path=/tmp/domain \
        --input_checkpoint=uncased_L-12_H-768_A-12 --new_vocab_file=domain.txt

Fewer layers, to start a smaller model from (docs/shrinking.md):
    python convert_checkpoint.py --output_format=tf1 --output_path=/tmp/six \
        --input_checkpoint=uncased_L-12_H-768_A-12 --layers=0,2,4,7,9,11

The generator of an ELECTRA, from its pre-training (docs/electra.md):
    python convert_checkpoint.py --output_format=hf --output_path=/tmp/words \
        --input_checkpoint=/tmp/electra --generator

The input is a TF1 checkpoint, the folder of a run, the folder or Hub name of a
Hugging Face model, or the folder or name of a KerasHub preset. The output is a
folder with config and vocabulary. It appears when it is complete.
A TF1 checkpoint may also be named by its prefix, as the original does:
--output_path=/tmp/bert_model.ckpt writes bert_model.ckpt.index with its other
files next to it.
"""

import dataclasses
import os
import re

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.flags import command_line, flag_sections, shared_flags
from bert_tf.storage import weight_files, written_files

# ---- Flags ------------------------------------------------------------------

_MODEL = flag_sections.Section("Model")
_OUTPUT = flag_sections.Section("Output")

_INPUT_CHECKPOINT = _MODEL.input_path(
    "input_checkpoint",
    "The checkpoint, folder, model or preset to convert; see above.",
    required=True,
    holds=flag_sections.MODEL,
)
_OUTPUT_FORMAT = _OUTPUT.choice(
    "output_format",
    None,
    weight_files.FORMATS,
    "The format to write. tf1: TensorFlow 1, the original's and ours. hf: "
    "Hugging Face. keras_hub: KerasHub.",
    required=True,
)
_OUTPUT_PATH = _OUTPUT.output_path(
    "output_path",
    "The new folder to write. For tf1 also a prefix that ends in .ckpt.",
    required=True,
    holds=flag_sections.NEW_FOLDER,
    own=written_files.checkpoint(),
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace a checkpoint at output_path."
)
_BERT_CONFIG_FILE = shared_flags.bert_config_file(
    _MODEL, "The model's bert_config.json, if the input has no config."
)
_VOCAB_FILE = shared_flags.vocab_file(
    _MODEL, "The model's vocabulary, if the input has none."
)
_NEW_VOCAB_FILE = _MODEL.input_path(
    "new_vocab_file",
    "New vocabulary of the model, of any size. Drops the optimizer state.",
)
_LAYERS = _MODEL.words(
    "layers",
    None,
    "Layers to keep, counted from 0, such as 0,2,4. Drops the optimizer state.",
)
_GENERATOR = _MODEL.boolean(
    "generator",
    False,
    "Extracts the generator of an ELECTRA as a masked language model. Drops "
    "the optimizer state.",
)
_DO_LOWER_CASE = _MODEL.boolean(
    "do_lower_case",
    None,
    "Whether the model reads lower-cased text. By default as the input "
    "specifies, or else detected from the vocabulary.",
    only_with=(
        *(
            f"output_format={name}"
            for name, row in weight_files.FORMATS.items()
            if not row.is_own
        ),
        "new_vocab_file",
    ),
    harmless=True,
)
_STRIP_OPTIMIZER = _OUTPUT.boolean(
    "strip_optimizer",
    False,
    "Drops the moments of the optimizer and the step, two thirds of a "
    "checkpoint. Only TF1 checkpoints can have them.",
    only_with="output_format=tf1",
    harmless=True,
)
_HEAD = _MODEL.choice(
    "head",
    None,
    options.HEADS,
    "The head to write. By default the input's head.",
    only_with="!generator",
)
_LABELS = _MODEL.words(
    "labels",
    None,
    "Names of the classes, in the order of training. By default from the "
    "input.",
)

command_line.start(__name__)

from bert_tf import tokenization, vocabularies
from bert_tf.checkpoints import (
    casing,
    formats,
    generators,
    model_files,
    names,
    runs,
    smaller,
    tf1_files,
    trained_models,
    vocabulary_change,
)
from bert_tf.storage import input_files

import tensorflow as tf
from absl import logging

# ---- What belongs to the weights --------------------------------------------


def complete(source, bert_config_file, vocab_file, do_lower_case, labels):
    """Returns the source with what the flags say of it."""
    config = model_files.find_config(bert_config_file, source)
    names.check(config, source.shapes, source.path, bert_config_file)
    changes: dict[str, object] = {"config": config}
    if vocab_file or source.vocab is not None:
        vocab = model_files.find_vocab(vocab_file, source)
        name = vocab_file or f"The vocabulary of {source.path}"
        config.check_vocabulary(vocabularies.read(vocab, False, name), name)
        do_lower_case = find_casing(vocab, name, do_lower_case, source)
        changes |= {"vocab": vocab, "do_lower_case": do_lower_case}
    elif do_lower_case is not None:
        logging.warning(
            "Not used, as the vocabulary is not known: --do_lower_case."
        )
    changes["labels"] = find_labels(labels, source)
    return dataclasses.replace(source, **changes)


def find_casing(vocab, name, given, source):
    """Returns whether the model reads lower-cased text.

    It is None where the vocabulary leaves case as it is. A vocabulary that no
    model can read with raises InputError.
    """
    if not vocabularies.read(vocab, False, name).settings:
        return None
    if given is not None:
        vocabularies.read(vocab, given, name).check(name)
        return given
    said = source.do_lower_case
    if said is None:
        return casing.told_by(vocab, name)
    return casing.of_foreign(vocab, said, name, source.path)


def find_labels(given, source):
    """Returns the names of the classes, or None.

    Raises:
        InputError: There is not one for each class.
    """
    head = names.find_head(source.shapes, source.path)
    if not names.HEADS[head].has_labels:
        if given:
            raise InputError(
                f"{source.path} has no classes: its head is {head}. Leave out "
                "--labels."
            )
        return source.labels
    labels = tuple(given or source.labels or ())
    (count,) = source.shapes[names.HEADS[head].bias]
    if labels and (count != len(labels) or len({*labels, ""}) <= count):
        raise InputError(
            f"{source.path} has {count} classes: give a name for each by "
            "--labels, none empty and none twice. "
            f"Received: {'' if given else 'beside it '}"
            f"labels={','.join(labels)}"
        )
    return labels or None


def check_trained(source):
    """Raises InputError for an untrained head, which moments alone show.

    A pre-training head that was trained in part, such as for masked words, is
    logged.
    """
    head = names.find_head(source.shapes, source.path)
    if trained_models.is_trained(source, head):
        return
    trained = [
        part
        for part in names.HEADS[head].parts
        if names.HEADS[part].variables
        and trained_models.is_trained(source, part)
    ]
    if not trained:
        raise InputError(
            f"{source.path} has a {head} head that its run did not train, as "
            "by --distillation=minilm, and the output would not show it. Give "
            f"--head=encoder. Received: head={_HEAD.value}"
        )
    logging.warning(
        "The run of %s trained %s only. To write no untrained weights, give "
        "--head=%s.",
        *(source.path, ", ".join(trained), trained[0]),
    )


def with_new_vocab(source, path):
    """Returns the source with rows for the tokens of another vocabulary."""
    input_files.check(path, "new_vocab_file")
    vocab = vocabularies.open_files(path)
    # First: where the old vocabulary is missing, its casing is not known.
    source, counts = vocabulary_change.change_vocab(source, vocab)
    vocabularies.read(vocab, source.do_lower_case, path).check(path)
    logging.info(
        "%s: %d tokens keep their rows, %d are new; %d of these can't be "
        "composed of old tokens and start as %s.",
        path,
        counts.kept,
        counts.new,
        counts.unknown,
        tokenization.UNKNOWN,
    )
    return source


def with_layers(source, texts):
    """Returns the source with the layers of these numbers only."""
    if not all(re.fullmatch("[0-9]{1,9}", text) for text in texts):
        raise InputError(
            "--layers takes whole numbers with commas between, such as 0,2,4. "
            f"Received: layers={','.join(texts)}"
        )
    count = source.config.num_hidden_layers
    source = smaller.keep_layers(source, list(map(int, texts)))
    logging.info("Keeps layers %s of %d.", ", ".join(texts), count)
    return source


# ---- Report -----------------------------------------------------------------


def describe(source):
    """Logs what was found."""
    config = source.config
    logging.info(
        "%s: %s, %s, L=%d, D=%d, V=%d, %s, layer_norm_eps=%g, %d weights%s.",
        source.path,
        source.format,
        names.find_head(source.shapes, source.path),
        config.num_hidden_layers,
        config.hidden_size,
        config.vocab_size,
        config.hidden_act,
        config.layer_norm_eps,
        len(source.shapes),
        f" and {len(source.state)} of training" if source.state else "",
    )


def report(path, written):
    """Logs what was written, what was not, and the size."""
    for note in written.notes:
        logging.warning("%s", note)
    if written.left_out:
        logging.info("Left out: %s", names.listed(written.left_out))
    size = sum(
        tf.io.gfile.stat(os.path.join(folder, name)).length
        for folder, _, files in tf.io.gfile.walk(path)
        for name in files
    ) or sum(tf.io.gfile.stat(x).length for x in tf1_files.files_of(path))
    logging.info(
        "Wrote %d weights to %s, %.1f MB.",
        len(written.weights),
        path,
        size / 1e6,
    )


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole conversion as an outline."""
    path, output_format = _OUTPUT_PATH.value, _OUTPUT_FORMAT.value
    droppers = (_STRIP_OPTIMIZER, _NEW_VOCAB_FILE, _LAYERS)
    drops_state = output_format != "tf1" or any(x.value for x in droppers)
    source = formats.open_checkpoint(_INPUT_CHECKPOINT.value)
    if not any(x.value for x in (_HEAD, _GENERATOR, _NEW_VOCAB_FILE, _LAYERS)):
        run = runs.folder_of(_INPUT_CHECKPOINT.value)
        source = dataclasses.replace(source, run=run)
    if _HEAD.value:
        source = formats.with_head(source, _HEAD.value)
    source = complete(
        source,
        _BERT_CONFIG_FILE.value,
        _VOCAB_FILE.value,
        _DO_LOWER_CASE.value,
        _LABELS.value,
    )
    if _GENERATOR.value:
        source = generators.take_out(source, _BERT_CONFIG_FILE.value)
    elif drops_state:
        check_trained(source)
    describe(source)
    if _NEW_VOCAB_FILE.value:
        source = with_new_vocab(source, _NEW_VOCAB_FILE.value)
    if _LAYERS.value:
        source = with_layers(source, _LAYERS.value)
    if drops_state:
        source = dataclasses.replace(source, state=())
    report(path, formats.write(path, output_format, source, _OVERWRITE.value))


if __name__ == "__main__":
    command_line.run(main)
