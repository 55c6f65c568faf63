"""Tests of data sets that TensorFlow Datasets downloads."""

import logging
import types

from bert_tf.storage import data_sets

import pytest
from absl import logging as absl_logging
from tensorflow_datasets.core.download import downloader


class _OfflineError(OSError):
    """Like the errors of requests, which wrap urllib3's."""

    reason = "no\n name"


class _Builder:
    """A data set that is not prepared, without a network."""

    info = types.SimpleNamespace(full_name="glue/x/1.0.0")
    data_dir = "/data"

    def __init__(self, is_prepared=False):
        self._is_prepared = is_prepared

    def is_prepared(self):
        absl_logging.warning("noise")
        return self._is_prepared

    def download_and_prepare(self):
        assert downloader.MAX_RETRIES <= 3  # Its default, 10, takes 3 minutes.
        print("noise")
        absl_logging.info("noise")
        logging.getLogger("urllib3.connectionpool").warning("noise")
        raise _OfflineError(_OfflineError("many words"))


def test_where_there_is_no_network(caplog, capsys):
    retries = downloader.MAX_RETRIES
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.INFO)
    try:
        with pytest.raises(OSError) as caught:
            data_sets.prepare(_Builder(), "Do this.")
    finally:
        absl_logging.set_verbosity(before)
    assert str(caught.value) == (
        "glue/x/1.0.0 could not be had from TensorFlow Datasets. Do this. "
        "Received: no name"
    )
    assert caplog.messages == [
        "TensorFlow Datasets downloads glue/x/1.0.0 to /data, once."
    ]
    assert capsys.readouterr().out == ""
    assert retries == downloader.MAX_RETRIES


def test_what_is_there_is_not_downloaded(caplog):
    data_sets.prepare(_Builder(is_prepared=True), "")
    assert caplog.messages == []
