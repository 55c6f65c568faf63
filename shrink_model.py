r"""Removes the least important parts of a fine-tuned classifier.

Half of the feed-forward units of each layer, and two of six layers:
    python shrink_model.py --task_name=MRPC --data_dir=$GLUE_DIR/MRPC \
        --init_checkpoint=/tmp/mrpc_output/best --output_path=/tmp/mrpc_small \
        --keep_intermediate=0.5 --num_hidden_layers=4

Then fine-tune the output again, like any other checkpoint:
    python run_classifier.py --task_name=MRPC --data_dir=$GLUE_DIR/MRPC \
        --init_checkpoint=/tmp/mrpc_small --output_dir=/tmp/mrpc_again ...

The importance of a layer or a unit is measured in one pass over the task's
data: the change of the loss of each row without it, to first order (Michel et
al., 2019, https://arxiv.org/abs/1905.10650). The output is a folder with an
ordinary checkpoint of a smaller model and with importance.json, which lists the
measurements and the parts that were kept. See docs/shrinking.md.
"""

import dataclasses
import json
import math
import os

from bert_tf import options
from bert_tf.errors import InputError, counted
from bert_tf.flags import (
    classification_flags,
    command_line,
    flag_sections,
    shared_flags,
)
from bert_tf.storage import written_files

from absl import flags

flags.adopt_module_key_flags(classification_flags)

# ---- Flags ------------------------------------------------------------------

_IMPORTANCE = "importance.json"

_MODEL = flag_sections.Section("Model")
_DATA = flag_sections.Section("Data")
_SIZE = flag_sections.Section("What to keep")
_OUTPUT = flag_sections.Section("Output")
_DEVICES = flag_sections.Section("Devices")

_INIT_CHECKPOINT = shared_flags.init_checkpoint(
    _MODEL, "The fine-tuned classifier, of any format.", required=True
)
shared_flags.bert_config_file(_MODEL)
shared_flags.vocab_file(_MODEL)
shared_flags.do_lower_case(_MODEL)
_NUM_HIDDEN_LAYERS = _SIZE.integer(
    "num_hidden_layers",
    None,
    "Layers to keep, the most important ones. By default all.",
    min=1,
)
_INTERMEDIATE_SIZE = _SIZE.integer(
    "intermediate_size",
    None,
    "Feed-forward units to keep of each layer, the most important ones. By "
    "default all.",
    min=1,
    only_with="!keep_intermediate",
)
_KEEP_INTERMEDIATE = _SIZE.number(
    "keep_intermediate",
    None,
    "The share of the feed-forward units to keep, such as 0.5. Replaces "
    "--intermediate_size.",
    above=0,
    max=1,
)
_OUTPUT_PATH = _OUTPUT.output_path(
    "output_path",
    "The new folder to write.",
    required=True,
    holds=flag_sections.NEW_FOLDER,
    own=(*written_files.checkpoint(), _IMPORTANCE),
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace a checkpoint at output_path."
)
_MEASURE_ON = _DATA.choice(
    "measure_on",
    "train",
    ("train", "dev"),
    "The data to measure on. With dev, later dev scores of the smaller model "
    "are too optimistic.",
)
_MAX_EXAMPLES = _DATA.integer(
    "max_examples",
    4096,
    "Max number of examples to measure on, drawn by --seed.",
    min=1,
)
_MAX_SEQ_LENGTH = shared_flags.max_seq_length(
    _DATA, 128, "Tokens per example, as in training.", min=4
)
_SEED = _DATA.integer(
    "seed",
    12345,
    "Random seed of the examples, and of the rows of --dev_fraction as in "
    "training.",
    min=0,
    max=2**31 - 1,
)
_BATCH_SIZE = shared_flags.batch_size(_DATA)
_DISTRIBUTION_STRATEGY = _DEVICES.choice(
    "distribution_strategy",
    "default",
    ("default", "mirrored"),
    "Devices: one device, or all local GPUs.",
)
_DTYPE = _DEVICES.choice(
    "dtype",
    "float32",
    [name for name in options.DTYPES if name != "float16"],
    "Number format of activations.",
)

command_line.start(__name__, later=("long_documents",))

from bert_tf import files, heads
from bert_tf.checkpoints import (
    formats,
    names,
    original,
    reading_flags,
    smaller,
    trained_models,
)
from bert_tf.encoders import families
from bert_tf.records import pipeline
from bert_tf.setup import classification_setup, model_files_setup
from bert_tf.tasks import text_batches
from bert_tf.tasks.classification import (
    classification_task,
    objective,
    text_records,
)
from bert_tf.text import text_graph
from bert_tf.training import distribution, importance, memory_use

from absl import logging

# ---- What to keep -----------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many layers to keep, and how many units of each."""

    layers: int
    units: int


def find_sizes(config, path):
    """Returns what the flags ask for; InputError if the model has it not."""
    if not any(
        (
            _NUM_HIDDEN_LAYERS.value,
            _INTERMEDIATE_SIZE.value,
            _KEEP_INTERMEDIATE.value,
        )
    ):
        raise InputError(
            "Give what to keep: --num_hidden_layers, and --intermediate_size "
            "or --keep_intermediate."
        )
    if _NUM_HIDDEN_LAYERS.value:
        smaller.check_own_layers(
            config, path, f"num_hidden_layers={_NUM_HIDDEN_LAYERS.value}"
        )
    for flag, there in (
        (_NUM_HIDDEN_LAYERS, config.num_hidden_layers),
        (_INTERMEDIATE_SIZE, config.intermediate_size),
    ):
        if flag.value and flag.value > there:
            raise InputError(
                f"--{flag.name} is more than {path} has, {there}: lower it. "
                f"Received: {flag.name}={flag.value}"
            )
    units = _INTERMEDIATE_SIZE.value or config.intermediate_size
    if _KEEP_INTERMEDIATE.value:
        units = max(1, round(_KEEP_INTERMEDIATE.value * units))
    return Sizes(_NUM_HIDDEN_LAYERS.value or config.num_hidden_layers, units)


def describe(found, layers, units, examples):
    """Returns importance.json: what was measured, and what is kept."""
    return {
        "measured_on": {"split": _MEASURE_ON.value, "examples": examples},
        "layers": {
            "importance": found.layers.tolist(),
            "kept": list(layers),
        },
        "units": [
            {"importance": values.tolist(), "kept": list(kept)}
            for values, kept in zip(found.units, units, strict=True)
        ],
    }


def report(found, layers, units):
    """Logs the importance of each layer, and what is kept of its units."""
    blocks = [
        f"{len(kept)} of {len(values)} units: "
        f"{values[list(kept)].sum() / max(values.sum(), 1e-30):.1%} of their "
        "importance."
        for values, kept in zip(found.units, units, strict=True)
    ]
    are_own = len(blocks) == len(found.layers)
    for number, value in enumerate(found.layers):
        what = f", with {blocks[number]}" if are_own else "."
        what = f"kept{what}" if number in layers else "removed."
        logging.info("Layer %d: importance %.4g, %s", number, value, what)
    for block in () if are_own else blocks:
        logging.info("Shared by layers: %s", block)


# ---- Data -------------------------------------------------------------------


def measure(strategy, model, task, class_weights, examples, encoder):
    """Returns the importance of what is in a model."""
    with files.temporary_folder() as folder:
        data = encoder.write(
            os.path.join(folder, "examples.tf_record"),
            examples,
            task.labels,
            task.is_multi_label,
        )
        dataset = pipeline.distribute(
            strategy,
            lambda: pipeline.evaluate([data.path], _BATCH_SIZE.value),
            data.record_type,
            data.lengths,
            trim=pipeline.FINELY,
        )
        sums = objective.make_objective(task, class_weights).sums

        def loss(model, batch):
            return sums(model, batch, None)["label"]["loss"]

        return importance.measure(strategy, model, loss, dataset, len(examples))


# ---- Writing ----------------------------------------------------------------


def weights_in(source):
    """Returns how many weights a checkpoint has."""
    return sum(math.prod(shape) for shape in source.shapes.values())


def write(path, source, description):
    """Writes the checkpoint and importance.json, both or nothing."""
    size = 4 * weights_in(source)
    for note in reading_flags.notes(source, "tf1", "classification"):
        logging.warning("%s", note)
    with files.new_folder(path, _OVERWRITE.value, size) as folder:
        original.write(folder, source, source.config)
        files.write_text(
            os.path.join(folder, _IMPORTANCE),
            json.dumps(description) + "\n",
        )


# ---- Main -------------------------------------------------------------------


def open_model():
    """Returns the fine-tuned checkpoint, its task, its vocabulary; checked."""
    source = trained_models.with_trained_head(
        formats.open_checkpoint(_INIT_CHECKPOINT.value), "classification"
    )
    reading = ["long_documents", "max_seq_length"]
    reading += ["regression", "label_separator"]
    model_files_setup.take_flags(reading, source.path)
    if classification_flags.LONG_DOCUMENTS.value == "windows":
        model_files_setup.take_flags(["window_stride"], source.path)
    task = classification_setup.find_task(source.labels, _SEED.value)
    own = model_files_setup.load(source).of_problem(task.is_multi_label)
    names.check(own.config, source.shapes, source.path)
    memory_use.check_room_for_weights(own.config)
    trained_models.check_classes(source, task.labels, task.is_multi_label)
    source = dataclasses.replace(
        source,
        config=own.config,
        vocab=own.vocab,
        labels=task.labels,
        # The length that is measured with, rather than the model's longest.
        max_seq_length=source.max_seq_length and _MAX_SEQ_LENGTH.value,
    )
    return source, task, own.vocabulary


def check_data(task, split):
    """Raises InputError if there is no such split; logs files not read."""
    classification_task.check_split(task, split)
    unread = [classification_flags.TEST_FILE]
    if split == "train":
        unread.append(classification_flags.DEV_FILE)
    given = [f"--{flag.name}" for flag in unread if flag.value]
    if given:
        logging.warning(
            "Measuring on %s; these files are not read: %s.",
            split,
            ", ".join(given),
        )


def find_importance(source, task, vocabulary, strategy):
    """Returns what is measured, and on how many examples."""
    documents = classification_setup.find_long_documents(task)
    tokenizer = text_graph.make_tokenizer(vocabulary)
    encoder = text_records.Encoder(tokenizer, _MAX_SEQ_LENGTH.value, documents)
    with strategy.scope():
        model = heads.BertClassifier(
            families.make(source.config), len(task.labels or ("score",))
        )
        trained_models.restore(model, source, "classification")
    data_dir, split = classification_flags.DATA_DIR.value, _MEASURE_ON.value
    # As in training: of all that it learned, not of those drawn.
    class_weights = classification_setup.find_class_weights(
        task, classification_task.read_split(task, data_dir, "train")
    )
    examples = text_batches.drawn(
        classification_task.read_split(task, data_dir, split),
        _MAX_EXAMPLES.value,
        _SEED.value,
    )
    number = counted(len(examples), "example")
    logging.info("Measuring on %s of %s.", number, split)
    found = measure(strategy, model, task, class_weights, examples, encoder)
    return found, len(examples)


def main(_):
    """The whole work as an outline."""
    command_line.unwind_at_signals()
    source, task, vocabulary = open_model()
    config = source.config
    sizes = find_sizes(config, source.path)
    check_data(task, _MEASURE_ON.value)
    config.check_sequence_length(_MAX_SEQ_LENGTH.value)
    strategy = distribution.set_up(
        _DISTRIBUTION_STRATEGY.value, _DTYPE.value, _SEED.value
    )
    distribution.check_batch_size(strategy, _BATCH_SIZE.name, _BATCH_SIZE.value)
    found, count = find_importance(source, task, vocabulary, strategy)
    layers = importance.most_important(found.layers, sizes.layers)
    units = [importance.most_important(x, sizes.units) for x in found.units]
    report(found, layers, units)
    small = smaller.keep_units(source, units)
    if sizes.layers < config.num_hidden_layers:
        small = smaller.keep_layers(small, layers)
    write(_OUTPUT_PATH.value, small, describe(found, layers, units, count))
    logging.info(
        "Wrote %s: %d of %d layers, %d of %d units, %s of %s weights. "
        "Fine-tune it again: pass it to --init_checkpoint.",
        _OUTPUT_PATH.value,
        sizes.layers,
        config.num_hidden_layers,
        sizes.units,
        config.intermediate_size,
        f"{weights_in(small):,}",
        f"{weights_in(source):,}",
    )


if __name__ == "__main__":
    command_line.run(main)
