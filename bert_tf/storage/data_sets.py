"""Prepares data sets of TensorFlow Datasets if needed."""

import contextlib
import io
import logging as python_logging
from collections.abc import Iterator
from typing import Any

from absl import logging

# Per file. TensorFlow Datasets retries ten times, for three minutes.
_RETRIES = 2


def prepare(builder: Any, way_out: str) -> None:
    """Downloads a `tfds` data set if needed; errors include `way_out`."""
    # Slow to import, and only needed by callers that have a builder.
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core.download import downloader

    with quietly():
        if builder.is_prepared():
            return
        name = builder.info.full_name
    logging.info(
        "TensorFlow Datasets downloads %s to %s, once.", name, builder.data_dir
    )
    tfds.disable_progress_bar()
    retries = downloader.MAX_RETRIES
    downloader.MAX_RETRIES = _RETRIES
    try:
        with quietly():
            builder.download_and_prepare()
    except OSError as error:
        raise OSError(
            f"{name} could not be had from TensorFlow Datasets. {way_out} "
            f"Received: {_reason(error)}"
        ) from error
    finally:
        downloader.MAX_RETRIES = retries


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppresses the logs and prints of TensorFlow Datasets."""
    # Permanently, because other downloads fail after the first failure.
    python_logging.getLogger("urllib3").setLevel(python_logging.ERROR)
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(before)


def _reason(error: OSError) -> str:
    """Returns the cause without the list of callers and retries."""
    inner = error.args[0] if error.args else error
    return " ".join(str(getattr(inner, "reason", error)).split())[:300]
