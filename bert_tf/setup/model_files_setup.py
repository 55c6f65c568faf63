"""Loads config, vocabulary and casing of a model from a script's flags.

Called from the `main` of the scripts that read texts with a checkpoint.
"""

from bert_tf.checkpoints import model_files, trained_models
from bert_tf.flags import shared_flags

from absl import flags


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
