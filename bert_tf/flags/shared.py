"""Flags that several scripts define, each of them in its own section.

What they mean is the same everywhere; default and help are the script's.
"""

from typing import Any

from bert_tf.flags import sections as flag_sections

from absl import flags

# absl then takes a flag for one of the module that calls a function here.
flags.disclaim_key_flags()


def max_seq_length(
    section: flag_sections.Section, default: int | None, text: str, **how: Any
) -> flag_sections.Holder:
    """The most pieces of a sequence, [CLS] and [SEP] included."""
    return section.integer("max_seq_length", default, text, **how)


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
        "Name or grpc:// address of the TPU; none on its host.",
    )


def num_tpu_cores(section: flag_sections.Section) -> flag_sections.Holder:
    """What the original needed to be told, and is but checked now."""
    return section.integer(
        "num_tpu_cores",
        None,
        "If given, the run stops unless the TPU has so many cores.",
        least=1,
        rare=True,
    )
