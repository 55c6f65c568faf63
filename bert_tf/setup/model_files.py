"""Config, vocabulary and casing of a model, as the flags of a script say.

Called from the `main` of the scripts that read texts with a checkpoint.
"""

from bert_tf.checkpoints import model_files, trained_models
from bert_tf.flags import shared

from absl import flags


def load(
    source: model_files.Source | None, trains: bool = False
) -> trained_models.ModelFiles:
    """Reads what --bert_config_file, --vocab_file and --do_lower_case say.

    What is left out is what the source brings. --do_lower_case then has the
    casing that was found, for what reads it later and for flags.txt.

    Args:
        source: What the run starts from, or goes on with.
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
    shared.check_casing_is_used(files.vocab.kind, settings, vocab_file)
    casing.value = settings.get("do_lower_case", casing.value)
    return files
