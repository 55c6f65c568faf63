"""How the head of a checkpoint is found."""

from bert_tf.checkpoints import opened
from bert_tf.errors import InputError
from bert_tf.serving import serving_model

import pytest


def test_a_head_that_is_not_registered_is_not_left_out():
    shapes = {
        "bert/embeddings/word_embeddings": (9, 4),
        "cls/mine/output_weights": (1, 4),
    }
    source = opened.Checkpoint("run/model.ckpt-7", "tf1", shapes, lambda _: {})
    with pytest.raises(
        InputError,
        match="^run/model.ckpt-7 has a head whose names are not known: "
        r"cls/mine/output_weights\. Import the module that registers it",
    ):
        serving_model.find_head(source, None)
    assert serving_model.find_head(source, "encoder") == "encoder"
