import pathlib
import shutil
import socket

from tests.bad_inputs import cases, damaged, matrix, trained

SCRIPT, CASES, RIGHT = cases.read("serving")
# Files of trained.SAVED.
SAVED = (
    *("pb_cut", "pb_lfs", "pb_empty", "no_variables", "variables_cut"),
    *("variables_lfs", "index_cut", "foreign"),
)
_MODEL = "config {{ name: '{}' base_path: '{}' {} }}"
_ONE = "model_version_policy { specific { versions: 1 } }"
_RIGHT = _MODEL.format("m", "{data}/models/right", _ONE)
# Name -> models.config.
CONFIGS: dict[str, str | bytes] = {
    "no_text": b"model_config_list {",
    "binary": bytes(range(128, 256)),
    "custom": b"custom_model_config {}",
    "empty": b"model_config_list {}",
    "twice": f"{_RIGHT} {_RIGHT}",
    "no_name": _RIGHT.replace("'m'", "''"),
    "url_name": _RIGHT.replace("'m'", "'a/b'"),
    "all": _RIGHT.replace("specific { versions: 1 }", "all {}"),
    "free_label": _RIGHT.replace(
        _ONE, f"{_ONE} version_labels {{ key: 'x' value: 2 }}"
    ),
    "no_version": _RIGHT.replace("versions: 1", "versions: 7"),
    "no_folder": _RIGHT.replace("/right", "/none"),
}


def _config(text: str | bytes, folder: pathlib.Path) -> bytes:
    if isinstance(text, bytes):
        return text
    listed = text.replace("{data}", str(folder))
    return f"model_config_list {{ {listed} }}".encode()


def build(folder: pathlib.Path) -> None:
    """Writes models that can be served, and some that cannot."""
    trained.write(folder)
    trained.write_saved(folder)
    models = folder / "models"
    for name in ("right", *SAVED):
        shutil.copytree(folder / "saved" / name, models / name / "1")
    files = {
        "no_versions/one/": None,
        "empty/": None,
    }
    damaged.write_files(models, files)
    (folder / "notes.txt").write_text("a file\n")
    for name, text in CONFIGS.items():
        config = folder / "configs" / name / "models.config"
        config.parent.mkdir(parents=True)
        config.write_bytes(_config(text, folder))


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)


def test_the_port_is_taken(data, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        case = matrix.Case(
            {"port": str(port)},
            f"Choose another --port or --host. Received: host=127.0.0.1, "
            f"port={port}",
        )
        matrix.check(SCRIPT, case, data, tmp_path)
