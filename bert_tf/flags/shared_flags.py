"""Flags that several scripts define, each in its own section.

A flag means the same in every script; defaults and help may differ.
"""

import functools
from collections.abc import Collection
from typing import Any

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.flags import flag_sections
from bert_tf.tasks import table_formats
from bert_tf.tasks.classification import glue

from absl import flags

# Makes absl attribute flags to the module that calls a function here.
flags.disclaim_key_flags()

_ORIGINAL = flag_sections.Section("Flags of the original")


# ---- The model --------------------------------------------------------------


def bert_config_file(
    section: flag_sections.Section,
    text: str = "The model's bert_config.json. By default the config that "
    "comes with the checkpoint.",
) -> flag_sections.Holder:
    """Defines the model's config; also under the name in ALBERT's scripts."""
    holder = section.input_path(
        "bert_config_file", text, holds=flag_sections.MODEL
    )
    _ORIGINAL.alias("albert_config_file", holder)
    return holder


def vocab_file(
    section: flag_sections.Section,
    text: str = "The model's vocabulary. By default the vocabulary that comes "
    "with the checkpoint.",
    **how: Any,
) -> flag_sections.Holder:
    """Defines the vocabulary; also under the name in ALBERT's scripts.

    In ALBERT's commands, --vocab_file next to it is a text that nobody reads.
    """
    how = {"holds": flag_sections.MODEL, **how}
    holder = section.input_path("vocab_file", text, **how)
    _ORIGINAL.alias("spm_model_file", holder, wins=True)
    return holder


def init_checkpoint(
    section: flag_sections.Section, text: str, **how: Any
) -> flag_sections.Holder:
    """Defines the initial weights."""
    return section.input_path(
        "init_checkpoint", text, holds=flag_sections.MODEL, **how
    )


def do_lower_case(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines whether text is lower-cased."""
    return section.boolean(
        "do_lower_case",
        True,
        "True for uncased models, False for cased ones. By default the setting "
        "of the run or of the Hugging Face folder, if there is one.",
    )


def check_casing_is_used(
    kind: str, settings: Collection[str], path: str | None
) -> None:
    """Raises InputError if casing is set for a vocabulary without casing.

    Args:
        kind: Kind of the vocabulary.
        settings: Names of its settings.
        path: Path of the vocabulary.
    """
    name = "do_lower_case"
    if name not in settings and flag_sections.is_given(flags.FLAGS[name]):
        raise InputError(
            f"--{name} has no effect on a vocabulary of {kind}, whose own "
            "files decide how text is read. Remove the flag. "
            f"Received: {name}={flags.FLAGS[name].value}, vocab_file={path}"
        )


# ---- Data -------------------------------------------------------------------


def split_file(
    split: str, section: flag_sections.Section, text: str, name: str = "file"
) -> flag_sections.Holder:
    """Defines the user's own file of a split: "train", "dev" or "test"."""
    work = {"train": "do_train", "dev": "do_eval", "test": "do_predict"}
    return section.input_path(
        f"{split}_{name}", text, only_with=work[split], harmless=True
    )


train_file = functools.partial(split_file, "train")
dev_file = functools.partial(split_file, "dev")
test_file = functools.partial(split_file, "test")


def task_name(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the name of a published task."""
    return section.string(
        "task_name", None, f"One of {', '.join(glue.NAMES)}.", kind="NAME"
    )


def xnli_language(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the language of XNLI."""
    return section.string(
        "xnli_language",
        "zh",
        "Language of XNLI, as its files name it.",
        kind="CODE",
        only_with="task_name=XNLI",
    )


def file_format(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Defines the format of the user's own files."""
    return section.choice(
        "file_format",
        None,
        table_formats.FORMATS,
        "Format of your own files. In tsv, quotes are plain characters. By "
        "default detected from the file's name and first line.",
        **how,
    )


def has_header(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Defines whether the user's own files have a header."""
    return section.boolean(
        "has_header",
        True,
        "Whether the first row of your files contains column names.",
        **how,
    )


def strict(
    section: flag_sections.Section,
    noun: str,
    invalid: str,
    more: str = "",
    **how: Any,
) -> flag_sections.Holder:
    """Defines whether bad rows of training data stop the run.

    `invalid` follows the noun, and `more` the text.
    """
    return section.boolean(
        "strict",
        False,
        f"Whether to stop at the first {noun} {invalid}. By default, such "
        f"{noun}s are skipped, and reported in one log line.{more}",
        **how,
    )


def text_a_column(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Defines the column of texts in the user's own files."""
    return section.string(
        "text_a_column",
        "text",
        "Column of the text: name, or number from 0.",
        kind="COLUMN",
        **how,
    )


def text_b_column(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Defines the column of the second texts of pairs."""
    return section.string(
        "text_b_column",
        None,
        "Column of the second text, if there is one.",
        kind="COLUMN",
        **how,
    )


def batch_size(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the number of lines that the model reads at once."""
    return section.integer("batch_size", 32, "Lines per batch.", min=1)


def sort_window(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the number of lines that are sorted by length for batching."""
    return section.integer(
        "sort_window",
        4096,
        "Lines that are sorted by length together, and kept in memory.",
        min=1,
        rare=True,
    )


def max_seq_length(
    section: flag_sections.Section, default: int | None, text: str, **how: Any
) -> flag_sections.Holder:
    """Defines the max number of tokens, including [CLS] and [SEP]."""
    return section.integer("max_seq_length", default, text, **how)


# ---- Training ---------------------------------------------------------------


def double_unordered(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Defines whether to train on unordered pairs in both orders."""
    # None keeps the recorded flags of earlier GLUE runs unchanged.
    return section.boolean(
        "double_unordered",
        None,
        "Trains on each pair of MRPC and STS-B in both orders, as in ELECTRA.",
        **how,
    )


def do_train(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines whether to train."""
    return section.boolean("do_train", False, "Whether to train.")


def train_batch_size(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """Defines the number of rows per training step, over all replicas."""
    return section.integer("train_batch_size", 32, text, min=1)


def eval_batch_size(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """Defines the number of rows per evaluation step, over all replicas."""
    return section.integer("eval_batch_size", 8, text, min=1)


def gradient_accumulation_steps(
    section: flag_sections.Section,
) -> flag_sections.Holder:
    """Defines the number of micro-batches of a step."""
    return section.integer(
        "gradient_accumulation_steps",
        1,
        "Micro-batches per step. More of them need less memory for the same "
        "update.",
        min=1,
    )


# ---- Devices ----------------------------------------------------------------


def dtype(section: flag_sections.Section, text: str) -> flag_sections.Holder:
    """Defines the dtype of computations."""
    return section.choice("dtype", "float32", options.DTYPES, text)


def use_tpu(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the original's flag that requests a TPU."""
    return section.boolean(
        "use_tpu", False, "The same as --distribution_strategy=tpu."
    )


def tpu_name(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the address of the TPU."""
    return section.string(
        "tpu_name",
        None,
        "Name or grpc:// address of the TPU. Leave it out on the TPU's host.",
    )


def num_tpu_cores(section: flag_sections.Section) -> flag_sections.Holder:
    """Defines the original's number of TPU cores, which is only checked."""
    return section.integer(
        "num_tpu_cores",
        None,
        "Stops the run unless the TPU has this number of cores.",
        min=1,
        rare=True,
    )
