"""The public names of bert_tf, imported on demand."""

import importlib

import bert_tf
from bert_tf import api

import keras
import pytest


def test_public_names():
    assert set(bert_tf.__all__) <= set(dir(bert_tf))
    assert issubclass(bert_tf.InputError, ValueError)
    for name in bert_tf.__all__:
        assert getattr(bert_tf, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        bert_tf.laod  # noqa: B018


def test_another_backend_is_named_at_the_first_name(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(bert_tf.InputError, match="KERAS_BACKEND=tensorflow, "):
        importlib.reload(api)
