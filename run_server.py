r"""Serves models over HTTP, with the REST API of TensorFlow Serving.

A SavedModel, or a folder of numbered versions; the newest is served:
    python run_server.py --model=/models/mrpc
    curl localhost:8501/v1/models/mrpc:predict -d \
        '{"instances": [{"text_a": "He said so.", "text_b": "He did."}]}'
Several models, reachable from other machines:
    python run_server.py --model=mrpc=/models/mrpc,ner=/models/ner \
        --host=0.0.0.0 --port=8501
The models, versions and labels of a models.config, which label_versions.py
edits:
    python run_server.py --config_dir=/models

Requests that arrive at the same time are computed in batches of texts of
similar length. http://localhost:8501/ is a page to try the models.
"""

import functools
import itertools
import os

from bert_tf.flags import command_line, flag_sections

from absl import logging

# ---- Flags ------------------------------------------------------------------

_MODELS = flag_sections.Section("Model")
_NETWORK = flag_sections.Section("Network")
_BATCHES = flag_sections.Section("Batches")
_DEVICES = flag_sections.Section("Devices")

_MODEL = _MODELS.words(
    "model",
    None,
    "Models to serve, comma separated: SavedModels, or folders with a folder "
    "1, 2, ... per version. name=folder sets the name that clients use.",
    only_with="!config_dir",
)
_CONFIG_DIR = _MODELS.input_path(
    "config_dir",
    "Folder of a models.config, which lists models, their versions and "
    "labels. Replaces --model. Changes take effect while the server runs.",
)
_ALLOW_UNSAFE_OPS = _MODELS.boolean(
    "allow_unsafe_ops",
    False,
    "Whether to load models with operations that access files or the host, "
    "such as WriteFile. Use it only for models that you trust.",
    rare=True,
)
_POLL_SECONDS = _MODELS.number(
    "poll_seconds",
    2,
    "Seconds between checks for new versions; 0 turns them off.",
    min=0,
    rare=True,
)
_HOST = _NETWORK.string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces."
)
_PORT = _NETWORK.integer(
    "port", 8501, "Port to listen on; 0 picks a free one.", min=0, max=65535
)
_MAX_REQUEST_MB = _NETWORK.number(
    "max_request_mb",
    8,
    "Max size of a request in megabytes.",
    above=0,
    max=1024,
)
_MAX_QUEUE = _NETWORK.integer(
    "max_queue",
    256,
    "Max number of requests in the queue of a model. Further requests get "
    "status 503.",
    min=1,
)
_MAX_QUEUED_ROWS = _NETWORK.integer(
    "max_queued_rows",
    65536,
    "Max number of rows in the queue of a model. A larger request gets status "
    "413; requests that do not fit at the moment get status 503.",
    min=1,
)
_CORS_ORIGINS = _NETWORK.words(
    "cors_origins",
    (),
    "Origins of web pages that may call this server (CORS), such as "
    "https://example.com; * for all. By default, only the server's own page.",
)
_ALLOWED_HOSTS = _NETWORK.words(
    "allowed_hosts",
    (),
    "Host names, besides localhost, that a server on a loopback address "
    "accepts in requests, such as the name of a reverse proxy.",
    rare=True,
)
_STOP_SECONDS = _NETWORK.number(
    "stop_seconds",
    60,
    "After SIGTERM, max seconds until the server ends. Requests in progress "
    "are finished first.",
    min=0,
    rare=True,
)
_ACCESS_LOG = _NETWORK.boolean(
    "access_log", False, "Whether to log each request."
)
_MAX_BATCH_SIZE = _BATCHES.integer(
    "max_batch_size", 32, "Max number of rows per batch.", min=1
)
_BATCH_TIMEOUT_MS = _BATCHES.number(
    "batch_timeout_ms",
    0,
    "Milliseconds that an idle model waits for more requests to batch. "
    "Requests that arrive during a batch are always batched.",
    min=0,
    max=60000,
)
_NUM_BATCH_THREADS = _BATCHES.integer(
    "num_batch_threads",
    1,
    "Number of batches that a model computes at the same time.",
    min=1,
)
_INTRA_OP_THREADS = _DEVICES.integer(
    "intra_op_threads",
    0,
    "CPU cores per batch; 0 uses all.",
    min=0,
)
_KEEP_KERNELS = _DEVICES.boolean(
    "keep_kernels",
    True,
    "Whether oneDNN caches the weights in its own layout. This halves the "
    "time for short texts, but stores up to three more copies of the weights "
    "for each signature in use. Takes effect if all models have constant "
    "weights, as exports do.",
)

# TensorFlow would log a warning for each rejected request.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
command_line.start(__name__)

from bert_tf import extras
from bert_tf.errors import InputError
from bert_tf.server import batching, constant_kernels, served_models

import tensorflow as tf


def find_places():
    """Returns where models lie, and what says so again if it may change."""
    if _CONFIG_DIR.value:
        reread = functools.partial(served_models.read_places, _CONFIG_DIR.value)
        return reread(), reread
    if not _MODEL.value:
        raise InputError(
            "Give --model, the folders of models, or --config_dir, that of a "
            "models.config."
        )
    return served_models.parse_places(_MODEL.value), None


def main(_):
    """The whole server as an outline."""
    extras.check("aiohttp", "server", "Servers")
    extras.check("prometheus_client", "server", "Metrics of the server")
    from bert_tf.server import running

    tf.config.threading.set_intra_op_parallelism_threads(
        _INTRA_OP_THREADS.value
    )
    places, reread = find_places()
    if _KEEP_KERNELS.value:
        versions = (served_models.find_versions(place.path) for place in places)
        constant_kernels.keep(
            itertools.chain.from_iterable(found.values() for found in versions)
        )
    settings = running.Settings(
        host=_HOST.value,
        port=_PORT.value,
        limits=batching.Limits(
            max_batch_size=_MAX_BATCH_SIZE.value,
            batch_timeout=_BATCH_TIMEOUT_MS.value / 1000,
            max_queue=_MAX_QUEUE.value,
            max_queued_rows=_MAX_QUEUED_ROWS.value,
            threads=_NUM_BATCH_THREADS.value,
        ),
        max_request_bytes=int(_MAX_REQUEST_MB.value * (1 << 20)),
        poll_seconds=_POLL_SECONDS.value,
        stop_seconds=_STOP_SECONDS.value,
        access_log=_ACCESS_LOG.value,
        cors_origins=tuple(_CORS_ORIGINS.value),
        allowed_hosts=tuple(_ALLOWED_HOSTS.value),
        allow_unsafe_ops=_ALLOW_UNSAFE_OPS.value,
    )

    def started(address):
        names = ", ".join(place.name for place in places)
        logging.info("Serving %s at %s", names, address)

    running.run(places, settings, started, reread)


if __name__ == "__main__":
    command_line.run(main)
