"""Loads files of a model by a script's flags, and flags of its training.

Called from the `main` of the scripts that read texts with a checkpoint.
"""

import os
from collections.abc import Collection

from bert_tf.checkpoints import model_files, runs, trained_models
from bert_tf.errors import InputError
from bert_tf.flags import flag_sections, shared_flags
from bert_tf.storage import kept_flags

from absl import flags, logging


def load(
    source: model_files.Source | None, trains: bool = False
) -> trained_models.ModelFiles:
    """Loads --bert_config_file and --vocab_file with --do_lower_case.

    Omitted flags are taken from the source. --do_lower_case is then set to the
    resolved casing, for later readers and for flags.txt.

    Args:
        source: What the run starts from, or resumes.
        trains: Whether it may start from another family.

    Raises:
        InputError: They can't be read, or contradict each other.
    """
    casing = flags.FLAGS["do_lower_case"]
    is_given = casing.present or casing.value != casing.default
    vocab_file = flags.FLAGS["vocab_file"].value
    files = trained_models.ModelFiles.load(
        flags.FLAGS["bert_config_file"].value,
        vocab_file,
        casing.value if is_given else None,
        source,
        trains,
    )
    settings = files.vocabulary.settings
    shared_flags.check_casing_is_used(files.vocab.kind, settings, vocab_file)
    casing.value = settings.get("do_lower_case", casing.value)
    return files


def take_flags(names: Collection[str], path: str) -> None:
    """Sets omitted flags to the values from the training of a model.

    Args:
        names: Flags that determine how texts are read, or what outputs mean.
        path: The weights. If they are of no run, nothing changes.

    Raises:
        InputError: A specified flag does not apply with the new values.
    """
    before = runs.flags_of(path)
    for name in sorted(before.keys() & set(names)):
        flag = flags.FLAGS[name]
        if flag.present:
            continue
        try:
            value = flag.parser.parse(before[name])
        except ValueError as error:
            file = os.path.join(runs.folder_of(path), kept_flags.FILE)
            raise InputError(
                f"{file}, which keeps the flags of the run, is wrong: --{name}:"
                f" {error}. Bring it back as it was, or give --{name}."
            ) from error
        if value != flag.value:
            logging.info("--%s=%s, as in training.", name, before[name])
            flag.value = value
    flag_sections.check_used()
