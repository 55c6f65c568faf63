"""Importing bert_tf takes no time, and offers names that are then imported."""

import re
import subprocess
import sys

import bert_tf

import pytest


def python(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True
    )


def test_import_is_instant_and_loads_no_tensorflow():
    code = (
        "import sys, bert_tf; dir(bert_tf); bert_tf.InputError;"
        "print(sorted({'tensorflow', 'keras', 'numpy'} & set(sys.modules)))"
    )
    done = python("-X", "importtime", "-c", code)
    assert done.stdout.strip() == "[]"
    (line,) = re.findall(r"import time:.*\| bert_tf\n", done.stderr)
    own, cumulative = map(int, re.findall(r"\d+", line)[:2])
    assert own < 50_000, "microseconds"
    assert cumulative < 100_000


def test_public_names():
    assert set(bert_tf.__all__) <= set(dir(bert_tf))
    assert issubclass(bert_tf.InputError, ValueError)
    for name in ("load", "export", "Predictor", "Tokenizer"):
        assert getattr(bert_tf, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        bert_tf.laod  # noqa: B018
