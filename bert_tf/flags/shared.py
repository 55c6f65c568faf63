"""Flags that several scripts define, each of them in its own section.

A flag means the same everywhere; what differs in default or help is given.
"""

from collections.abc import Collection
from typing import Any

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.flags import sections as flag_sections
from bert_tf.flags import unused
from bert_tf.tasks import table_formats
from bert_tf.tasks.classification import glue

from absl import flags

# absl then takes a flag for one of the module that calls a function here.
flags.disclaim_key_flags()

_ORIGINAL = flag_sections.Section("Flags of the original")


# ---- The model --------------------------------------------------------------


def bert_config_file(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """Its architecture; also under the name that ALBERT's scripts have."""
    holder = section.input_path(
        "bert_config_file", text, holds=flag_sections.MODEL
    )
    _ORIGINAL.alias("albert_config_file", holder)
    return holder


def vocab_file(
    section: flag_sections.Section, text: str, **how: Any
) -> flag_sections.Holder:
    """Its vocabulary; also under the name that ALBERT's scripts have."""
    how = {"holds": flag_sections.MODEL, **how}
    holder = section.input_path("vocab_file", text, **how)
    _ORIGINAL.alias("spm_model_file", holder)
    return holder


def init_checkpoint(
    section: flag_sections.Section, text: str, **how: Any
) -> flag_sections.Holder:
    """Its weights."""
    return section.input_path(
        "init_checkpoint", text, holds=flag_sections.MODEL, **how
    )


def do_lower_case(section: flag_sections.Section) -> flag_sections.Holder:
    """Whether it reads lower-cased text."""
    return section.boolean(
        "do_lower_case",
        True,
        "True for uncased models, False for cased ones. By default the setting "
        "of the run or of the Hugging Face folder, if there is one.",
    )


def check_casing_is_used(
    kind: str, settings: Collection[str], path: str | None
) -> None:
    """Raises InputError if a casing is given to a vocabulary that has none.

    Its kind, the names of its settings and its path are given.
    """
    name = "do_lower_case"
    if name not in settings and unused.given(flags.FLAGS[name]):
        raise InputError(
            f"--{name} is not for a vocabulary of {kind}, whose files say all: "
            f"leave it out. Received: {name}={flags.FLAGS[name].value}, "
            f"vocab_file={path}"
        )


# ---- Data -------------------------------------------------------------------


def train_file(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """The user's own file to train on."""
    return section.input_path(
        "train_file", text, only_with="do_train", harmless=True
    )


def dev_file(section: flag_sections.Section, text: str) -> flag_sections.Holder:
    """The user's own file to evaluate on."""
    return section.input_path(
        "dev_file", text, only_with="do_eval", harmless=True
    )


def test_file(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """The user's own file to predict."""
    return section.input_path(
        "test_file", text, only_with="do_predict", harmless=True
    )


def task_name(section: flag_sections.Section) -> flag_sections.Holder:
    """A published task."""
    return section.string(
        "task_name", None, f"One of {', '.join(glue.NAMES)}.", kind="NAME"
    )


def xnli_language(section: flag_sections.Section) -> flag_sections.Holder:
    """Of that task, which is in many."""
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
    """What the user's own files are."""
    return section.choice(
        "file_format",
        None,
        table_formats.FORMATS,
        "Format of your own files. In tsv, quotes are plain characters. By "
        "default found by the file's name and first line.",
        **how,
    )


def has_header(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Whether their columns have names."""
    return section.boolean(
        "has_header",
        True,
        "Whether the first row of your files contains column names.",
        **how,
    )


def strict(
    section: flag_sections.Section, noun: str, **how: Any
) -> flag_sections.Holder:
    """Whether bad rows of training data stop the run."""
    return section.boolean(
        "strict",
        False,
        f"Whether the first {noun} that can't be trained on stops the run. "
        "Otherwise such are left out, counted and named in one line.",
        **how,
    )


def text_a_column(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Where their texts stand."""
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
    """Where the second texts of pairs stand."""
    return section.string(
        "text_b_column",
        None,
        "Column of the second text, if there is one.",
        kind="COLUMN",
        **how,
    )


def batch_size(section: flag_sections.Section) -> flag_sections.Holder:
    """Lines of text that the model reads at once."""
    return section.integer("batch_size", 32, "Lines at a time.", least=1)


def sort_window(section: flag_sections.Section) -> flag_sections.Holder:
    """Lines of text among which those of a batch are chosen."""
    return section.integer(
        "sort_window",
        4096,
        "Lines that are sorted by length together, and kept in memory.",
        least=1,
        rare=True,
    )


def max_seq_length(
    section: flag_sections.Section, default: int | None, text: str, **how: Any
) -> flag_sections.Holder:
    """The most pieces of a sequence, [CLS] and [SEP] included."""
    return section.integer("max_seq_length", default, text, **how)


# ---- Training ---------------------------------------------------------------


def double_unordered(
    section: flag_sections.Section, **how: Any
) -> flag_sections.Holder:
    """Whether pairs without an order are trained on in both orders."""
    # None, so that the flags of runs of GLUE from before are the same.
    return section.boolean(
        "double_unordered",
        None,
        "Whether to train on the pairs of MRPC and STS-B, whose order means "
        "nothing, in both orders, as ELECTRA.",
        **how,
    )


def do_train(section: flag_sections.Section) -> flag_sections.Holder:
    """Whether to train."""
    return section.boolean("do_train", False, "Whether to train.")


def train_batch_size(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """Rows of a step of training, over all replicas."""
    return section.integer("train_batch_size", 32, text, least=1)


def eval_batch_size(
    section: flag_sections.Section, text: str
) -> flag_sections.Holder:
    """Rows of a step of evaluation, over all replicas."""
    return section.integer("eval_batch_size", 8, text, least=1)


def gradient_accumulation_steps(
    section: flag_sections.Section,
) -> flag_sections.Holder:
    """Into how many parts a step is split."""
    return section.integer(
        "gradient_accumulation_steps",
        1,
        "Micro-batches per step. More of them need less memory for the same "
        "update.",
        least=1,
    )


# ---- Devices ----------------------------------------------------------------


def dtype(section: flag_sections.Section, text: str) -> flag_sections.Holder:
    """In what it computes."""
    return section.choice("dtype", "float32", options.DTYPES, text)


def use_tpu(section: flag_sections.Section) -> flag_sections.Holder:
    """The original's way to ask for a TPU."""
    return section.boolean(
        "use_tpu", False, "The same as --distribution_strategy=tpu."
    )


def tpu_name(section: flag_sections.Section) -> flag_sections.Holder:
    """Where the TPU is."""
    return section.string(
        "tpu_name",
        None,
        "Name or grpc:// address of the TPU. Leave it out on the TPU's host.",
    )


def num_tpu_cores(section: flag_sections.Section) -> flag_sections.Holder:
    """What the original needed to be told, and is but checked now."""
    return section.integer(
        "num_tpu_cores",
        None,
        "Stops the run unless the TPU has this number of cores.",
        least=1,
        rare=True,
    )
