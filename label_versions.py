r"""Says which versions of a model a server serves, and as what.

What there is, and what is served:
    python label_versions.py --config_dir=/models
Version 2 for everybody, then back to what was stable before:
    python label_versions.py --config_dir=/models --model=mrpc --stable=2
    python label_versions.py --config_dir=/models --model=mrpc --rollback

This changes models.config, whole or not at all, which TensorFlow Serving and
run_server.py --config_dir read again while they run. export_saved_model.py
--serving_dir --config_dir writes versions, and adds them to it. See
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
    "model", "", "The model's name; of a single model it may be left out."
)
_STABLE = _LABELS.integer(
    "stable",
    None,
    "The version that becomes stable; what was so becomes previous.",
    least=1,
)
_CANARY = _LABELS.integer(
    "canary", None, "The version that becomes canary; 0 for none.", least=0
)
_ROLLBACK = _LABELS.boolean(
    "rollback",
    False,
    "Makes the previous version stable, and serves no longer what was so.",
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
