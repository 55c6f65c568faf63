"""The files that tell TensorFlow Serving what to serve and how to batch.

models.config lists models, and which versions of each: `stable`, perhaps
`canary`, and the newest; version_labels.py changes which. batching.config says
how requests that come at one time are answered together.
"""

import contextlib
import os
import shlex
import time
from collections.abc import Iterator
from typing import Any

from bert_tf import extras, files
from bert_tf.errors import InputError
from bert_tf.storage import file_systems, run_lock

MODELS = "models.config"
BATCHING = "batching.config"
# What versions are called, in the order in which they get the names.
LABELS = ("stable", "canary")

# Texts of any length are one batch: the model pads and sorts out by itself.
# Padding by the server would give ids of padding a mask of ones.
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

# Seconds to wait for another process that adds its model.
_PATIENCE = 60.0


def check_package() -> None:
    """Raises InputError where TensorFlow Serving's messages are missing."""
    extras.check(
        "tensorflow_serving",
        "tensorflow-serving",
        "Files for TensorFlow Serving",
    )


def read(folder: str) -> Any:
    """Returns the ModelServerConfig of a folder, an empty one if there is none.

    It raises InputError if that is not what it is to be.
    """
    check_package()
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    path = os.path.join(folder, MODELS)
    system = file_systems.of(path)
    if not system.exists(path):
        return config
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
    """Lets a folder's models.config serve a version of a model, too.

    It gets the first label that no version has. A label that is in use stays:
    TensorFlow Serving refuses to move one to what it has not loaded before.
    Versions without a label are no longer served; other models, and what else
    is said of this one, stay, but comments do not. batching.config is written
    where there is none.

    Args:
        folder: Of both files.
        model: The folder of the model's versions, whose name is the model's.
        version: The number of a version.

    Returns:
        The label, "" if all are in use.
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
        if not file_systems.of(path).exists(path):
            files.write_text(path, BATCHING_TEXT)
    return label


@contextlib.contextmanager
def changing(folder: str) -> Iterator[Any]:
    """Yields what `read` returns, to change; it is written when that is done.

    Whole or not at all, and by one process at a time.
    """
    check_package()
    from google.protobuf import text_format

    with _alone(folder):
        config = read(folder)
        yield config
        text = text_format.MessageToString(config)
        files.write_text(os.path.join(folder, MODELS), text)


def _entry(config: Any, model: str) -> Any:
    """Returns what a config says of a model, which is added if need be."""
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
    """Raises InputError if a model could not be added to a folder's files."""
    _entry(read(folder), model)


def _alone(folder: str) -> run_lock.Lock:
    """Waits until no other process adds a model."""
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
    """Returns the line that serves a model, or all of a folder's files."""
    if folder:
        config, _ = _place(folder)
        models = read(folder).model_config_list.config
        shown = {path: path for path in (config, *_places(models))}
        flags = [
            f"--model_config_file={config}/{MODELS}",
            "--model_config_file_poll_wait_seconds=30",
            "--allow_version_labels_for_unavailable_models=true",
            "--enable_batching=true",
            f"--batching_parameters_file={config}/{BATCHING}",
        ]
        return shlex.join([*_DOCKER, *_mounted(shown), _IMAGE, *flags])
    base, name = _place(model)
    names = ["-e", f"MODEL_NAME={name}", *_bucket(base)]
    shown = {base: f"/models/{name}"}
    return shlex.join([*_DOCKER, *_mounted(shown), *names, _IMAGE])


def _places(models: Any) -> list[str]:
    return [entry.base_path for entry in models]


def _mounted(shown: dict[str, str]) -> list[str]:
    """Shows folders to the container: those of this machine, each once."""
    words = []
    for path, inside in shown.items():
        parents = {x for x in shown if path.startswith(f"{x}/")}
        if not parents and not file_systems.is_remote(path):
            words += ["-v", f"{path}:{inside}"]
    return words


def _bucket(base: str) -> list[str]:
    """Says where the models are, unless they are on this machine."""
    if not file_systems.is_remote(base):
        return []
    return ["-e", f"MODEL_BASE_PATH={os.path.dirname(base)}"]
