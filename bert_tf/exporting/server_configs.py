"""Config files of TensorFlow Serving: models to serve, and batching.

models.config lists models and their served versions: `stable`, perhaps
`canary`, and the newest; version_labels.py changes them. batching.config
configures how concurrent requests are batched.
"""

import contextlib
import os
import shlex
import time
from collections.abc import Iterator
from typing import Any

from bert_tf import extras, files
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, input_files, run_lock

MODELS = "models.config"
BATCHING = "batching.config"
# Labels of versions, in the order in which they are assigned.
LABELS = ("stable", "canary")

# Texts of any length fit into one batch, as the model pads. If the server
# padded ids, it would set the mask of padding to 1.
BATCHING_TEXT = """\
# Request batching of TensorFlow Serving: --enable_batching=true.
# The max number of rows of a batch, and the sizes that batches are padded to.
max_batch_size { value: 32 }
allowed_batch_sizes: 1
allowed_batch_sizes: 2
allowed_batch_sizes: 4
allowed_batch_sizes: 8
allowed_batch_sizes: 16
allowed_batch_sizes: 32
# The max time that a request waits for others.
batch_timeout_micros { value: 2000 }
# Parallel batches: the cores divided by the cores per batch; 1 on GPUs.
num_batch_threads { value: 2 }
# The max number of waiting batches. More requests get the status UNAVAILABLE.
max_enqueued_batches { value: 100 }
pad_variable_length_inputs: false
"""

# Seconds to wait for another process that is adding its model.
_PATIENCE = 60.0


def check_package() -> None:
    """Raises InputError if TensorFlow Serving's protos are not installed."""
    extras.check(
        "tensorflow_serving",
        "tensorflow-serving",
        "Files for TensorFlow Serving",
    )


def read(folder: str) -> Any:
    """Returns the ModelServerConfig of a folder, empty if it is missing.

    Raises InputError if it is invalid.
    """
    check_package()
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    path = os.path.join(folder, MODELS)
    system = file_systems.find_backend(path)
    if not system.exists(path):
        return config
    input_files.check_can_be_read_again(path)
    try:
        with system.open(path, "rb") as file:
            text_format.Parse(file.read(), config)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is not a list of models of TensorFlow Serving: {error}. "
            "Mend it, or remove it to have a new one."
        ) from error
    if config.WhichOneof("config") == "custom_model_config":
        raise InputError(
            f"{path} has a custom_model_config, and models can be added to a "
            "model_config_list only. Name another folder."
        )
    return config


def add(folder: str, model: str, version: int) -> str:
    """Adds a version of a model to a folder's models.config.

    The version gets the first unused label. Labels in use are not moved, as
    TensorFlow Serving does not move one to a version that is not loaded yet.
    Versions without a label are no longer served. Other models and settings
    stay, but comments are lost. batching.config is created if it is missing.

    Args:
        folder: Folder of both files.
        model: Folder of the model's versions; its name is the model's name.
        version: Number of the version.

    Returns:
        The label, or "" if all are in use.
    """
    with changing(folder) as config:
        entry = _entry(config, model)
        labels = entry.version_labels
        label = next((x for x in LABELS if x not in labels), "")
        if label:
            labels[label] = version
        policy = entry.model_version_policy.specific
        policy.versions[:] = sorted({*labels.values(), version})
        path = os.path.join(folder, BATCHING)
        if not file_systems.find_backend(path).exists(path):
            files.write_text(path, BATCHING_TEXT)
    return label


@contextlib.contextmanager
def changing(folder: str) -> Iterator[Any]:
    """Yields the config from `read` to be modified, then writes it.

    It is written atomically, and by one process at a time.
    """
    check_package()
    from google.protobuf import text_format

    with _alone(folder):
        config = read(folder)
        yield config
        text = text_format.MessageToString(config)
        files.write_text(os.path.join(folder, MODELS), text)


def _entry(config: Any, model: str) -> Any:
    """Returns a model's entry in a config, after adding it if needed."""
    base, name = _place(model)
    models = config.model_config_list.config
    for entry in models:
        if entry.name == name:
            if entry.base_path.rstrip("/") != base:
                raise InputError(
                    f"{MODELS} has another model of this name, in "
                    f"{entry.base_path}. Rename one of the folders. "
                    f"Received: {base}"
                )
            return entry
    return models.add(name=name, base_path=base, model_platform="tensorflow")


def _place(model: str) -> tuple[str, str]:
    """Returns the path of a model's folder, and its name."""
    base = model if file_systems.is_remote(model) else os.path.abspath(model)
    base = base.rstrip("/")
    return base, os.path.basename(base)


def check(folder: str, model: str) -> None:
    """Raises InputError if a model cannot be added to a folder's config."""
    _entry(read(folder), model)


def _alone(folder: str) -> run_lock.Lock:
    """Waits until no other process is adding a model."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return run_lock.hold(folder, f"{MODELS}.lock", "writes")
        except InputError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


# ---- The command ------------------------------------------------------------

_DOCKER = ("docker", "run", "-t", "--rm", "-p", "8500:8500", "-p", "8501:8501")
_IMAGE = "tensorflow/serving"


def command(model: str, folder: str | None = None) -> str:
    """Returns the command that serves a model, or a folder's config."""
    if folder:
        config, _ = _place(folder)
        models = read(folder).model_config_list.config
        places = [entry.base_path for entry in models]
        shown = {path: path for path in (config, *places)}
        flags = [
            f"--model_config_file={config}/{MODELS}",
            "--model_config_file_poll_wait_seconds=30",
            "--allow_version_labels_for_unavailable_models=true",
            "--enable_batching=true",
            f"--batching_parameters_file={config}/{BATCHING}",
        ]
        return shlex.join([*_DOCKER, *_mounted(shown), _IMAGE, *flags])
    base, name = _place(model)
    names = ["-e", f"MODEL_NAME={name}"]
    if file_systems.is_remote(base):
        names += ["-e", f"MODEL_BASE_PATH={os.path.dirname(base)}"]
    shown = {base: f"/models/{name}"}
    return shlex.join([*_DOCKER, *_mounted(shown), *names, _IMAGE])


def _mounted(shown: dict[str, str]) -> list[str]:
    """Returns options that mount local folders in the container."""
    words = []
    for path, inside in shown.items():
        parents = {x for x in shown if path.startswith(f"{x}/")}
        if not parents and not file_systems.is_remote(path):
            words += ["-v", f"{path}:{inside}"]
    return words
