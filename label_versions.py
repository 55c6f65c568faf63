r"""Sets which versions of a model a server serves, and their labels.

To list the versions and labels:
    python label_versions.py --config_dir=/models
To serve version 2 as stable, and to go back to the previous stable version:
    python label_versions.py --config_dir=/models --model=mrpc --stable=2
    python label_versions.py --config_dir=/models --model=mrpc --rollback

This replaces models.config atomically. TensorFlow Serving and run_server.py
--config_dir reload it while they run. export_saved_model.py --serving_dir
--config_dir writes new versions and adds them to it. See
docs/tensorflow_serving.md.
"""

from bert_tf import terminals
from bert_tf.flags import command_line, flag_sections
from bert_tf.storage import written_files

# ---- Flags ------------------------------------------------------------------

_FILES = flag_sections.Section("Model")
_LABELS = flag_sections.Section("Labels")

_CONFIG_DIR = _FILES.output_path(
    "config_dir",
    "The folder of models.config.",
    holds=flag_sections.FOLDER,
    own=written_files.SERVER_CONFIGS,
    required=True,
)
_MODEL = _FILES.string(
    "model", "", "Name of the model. Can be omitted if there is only one."
)
_STABLE = _LABELS.integer(
    "stable",
    None,
    "Version to make stable. The current stable version becomes previous.",
    min=1,
)
_CANARY = _LABELS.integer(
    "canary", None, "Version to make canary; 0 for none.", min=0
)
_ROLLBACK = _LABELS.boolean(
    "rollback",
    False,
    "Makes the previous version stable, and stops serving the current stable "
    "version.",
)
command_line.start(__name__)

from bert_tf.errors import InputError
from bert_tf.exporting import version_labels


def main(_):
    """The whole change as an outline."""
    folder, model = _CONFIG_DIR.value, _MODEL.value
    stable, canary = _STABLE.value, _CANARY.value
    is_move = stable is not None or canary is not None
    if is_move and _ROLLBACK.value:
        raise InputError(
            "--rollback goes without --stable and --canary: ask for one after "
            "the other."
        )
    if _ROLLBACK.value:
        told = [version_labels.roll_back(folder, model)]
    elif is_move:
        told = [version_labels.promote(folder, model, stable, canary)]
    elif model:
        told = [version_labels.find(folder, model)]
    else:
        told = version_labels.read(folder)
    for served in told:
        for line in version_labels.describe(served):
            terminals.write(f"{line}\n")


if __name__ == "__main__":
    command_line.run(main)
