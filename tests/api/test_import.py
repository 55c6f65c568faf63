"""Importing bert_tf loads no library, and offers names imported on demand."""

import subprocess
import sys

import bert_tf

import pytest


def test_import_loads_no_tensorflow():
    code = (
        "import sys, bert_tf; dir(bert_tf); bert_tf.InputError;"
        "print({'tensorflow', 'keras', 'numpy'} & set(sys.modules))"
    )
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert found == "set()\n"


def test_public_names():
    assert set(bert_tf.__all__) <= set(dir(bert_tf))
    assert issubclass(bert_tf.InputError, ValueError)
    for name in bert_tf.__all__:
        assert getattr(bert_tf, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        bert_tf.laod  # noqa: B018
