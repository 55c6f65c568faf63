"""What run_server.py is given that is wrong: commands and files."""

import pathlib
import shutil

from tests.bad_inputs import matrix, trained

SCRIPT = matrix.Script(
    "run_server", {"model": "{data}/models/right", "port": "0"}
)

# Folder of trained.SAVED, and what is said of the version in it.
SAVED = {
    "pb_cut": "is damaged, or not all there: saved_model.pb can't be read",
    "pb_lfs": "is damaged, or not all there: saved_model.pb can't be read",
    "pb_empty": "A SavedModel must have signatures to be served: export it",
    "no_variables": "is damaged, or not all there: ",
    "variables_cut": "is damaged, or not all there: ",
    "variables_lfs": "is damaged, or not all there: ",
    "index_cut": "is damaged, or not all there: ",
    "foreign": "A SavedModel must have signatures to be served: export it",
}
_MODEL = "config {{ name: '{}' base_path: '{}' {} }}"
_ONE = "model_version_policy { specific { versions: 1 } }"
_RIGHT = _MODEL.format("m", "{data}/models/right", _ONE)
# Name -> models.config, and what is said of it.
CONFIGS: dict[str, tuple[str | bytes, str]] = {
    "no_text": (
        b"model_config_list {",
        "models.config is not a list of models of TensorFlow Serving: ",
    ),
    "binary": (
        bytes(range(128, 256)),
        "models.config is not a list of models of TensorFlow Serving: ",
    ),
    "custom": (b"custom_model_config {}", "has a custom_model_config, and"),
    "empty": (b"model_config_list {}", "models.config lists no model, or"),
    "twice": (f"{_RIGHT} {_RIGHT}", "has several models of one name, of"),
    "no_name": (_RIGHT.replace("'m'", "''"), "a model needs a name and a"),
    "url_name": (_RIGHT.replace("'m'", "'a/b'"), "a name has none of / : ?"),
    "all": (
        _RIGHT.replace("specific { versions: 1 }", "all {}"),
        "versions are served that it lists, or the newest. Write",
    ),
    "free_label": (
        _RIGHT.replace(_ONE, f"{_ONE} version_labels {{ key: 'x' value: 2 }}"),
        "a label is of a version that is served, and these are 1. Received",
    ),
    "no_version": (
        _RIGHT.replace("versions: 1", "versions: 7"),
        "a version is a folder with a SavedModel, and there is none. Received",
    ),
    "no_folder": (
        _RIGHT.replace("/right", "/none"),
        "a version is a folder with a SavedModel, and there is none. Received",
    ),
}


def _config(text: str | bytes, folder: pathlib.Path) -> bytes:
    if isinstance(text, bytes):
        return text
    listed = text.replace("{data}", str(folder))
    return f"model_config_list {{ {listed} }}".encode()


def build(folder: pathlib.Path) -> None:
    """Writes models that can be served, and what can't be."""
    trained.write(folder)
    trained.write_saved(folder)
    models = folder / "models"
    for name in ("right", *SAVED):
        shutil.copytree(folder / "saved" / name, models / name / "1")
    (models / "no_versions" / "one").mkdir(parents=True)
    (models / "empty").mkdir()
    (folder / "notes.txt").write_text("a file\n")
    for name, (text, _) in CONFIGS.items():
        config = folder / "configs" / name / "models.config"
        config.parent.mkdir(parents=True)
        config.write_bytes(_config(text, folder))
