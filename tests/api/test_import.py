"""The public names of bert_tf, imported on demand."""

import bert_tf

import pytest


def test_public_names():
    assert set(bert_tf.__all__) <= set(dir(bert_tf))
    assert issubclass(bert_tf.InputError, ValueError)
    for name in bert_tf.__all__:
        assert getattr(bert_tf, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        bert_tf.laod  # noqa: B018
