"""How the head of a checkpoint is found."""

import dataclasses

from bert_tf.checkpoints import opened
from bert_tf.errors import InputError
from bert_tf.serving import serving_model

import pytest

_HEAD = ("output_weights", "output_bias")
_ENCODER = {"bert/embeddings/word_embeddings": (9, 4)}


def _checkpoint(shapes):
    shapes = _ENCODER | shapes
    return opened.Checkpoint("run/model.ckpt-7", "tf1", shapes, lambda _: {})


def test_a_head_that_is_not_registered_is_not_left_out():
    source = _checkpoint({"cls/mine/output_weights": (1, 4)})
    with pytest.raises(
        InputError,
        match="^run/model.ckpt-7 has a head whose names are not known: "
        r"cls/mine/output_weights\. Register it, as docs/extending.md shows",
    ):
        serving_model.find_head(source, None)
    assert serving_model.find_head(source, "encoder") == "encoder"


@pytest.mark.parametrize(
    ("moments", "is_of_words"),
    [
        # Of a fork that computes word labels from get_sequence_output().
        ((*_HEAD, "bert/embeddings/word_embeddings"), True),
        ((*_HEAD, "bert/pooler/dense/kernel"), False),
        ((), False),
    ],
)
def test_a_head_of_words_with_the_names_of_a_classifier(moments, is_of_words):
    source = _checkpoint(
        dict.fromkeys((*_HEAD, "bert/pooler/dense/kernel"), (4,))
    )
    slots = (
        f"{name}/{slot}" for name in moments for slot in ("adam_m", "adam_v")
    )
    source = dataclasses.replace(source, state=tuple(slots))
    assert serving_model.find_head(source, "classification") == "classification"
    if not is_of_words:
        assert serving_model.find_head(source, None) == "classification"
        return
    with pytest.raises(
        InputError, match=r"head that labels words\. .* run_ner"
    ):
        serving_model.find_head(source, None)


@pytest.mark.parametrize(
    "others",
    [
        {},
        # Adam in TensorFlow 1, and mixed precision.
        {"beta1_power": (), "beta2_power": (), "current_loss_scale": ()},
        # A part of a head, with an average of it.
        {
            "cls/predictions/transform/dense/kernel": (4, 4),
            "cls/predictions/transform/dense/kernel/Average": (4, 4),
        },
        # ELECTRA's generator, without a config that says so.
        {"generator_predictions/output_bias": (9,)},
    ],
)
def test_what_is_no_head(others):
    source = _checkpoint(others)
    assert serving_model.find_head(source, None) == "encoder"


def test_only_versions_that_hold_a_model_are_named(tmp_path):
    (tmp_path / "2024").mkdir()
    with pytest.raises(InputError, match="The folder holds no SavedModel"):
        serving_model.load(str(tmp_path))
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "saved_model.pb").touch()
    with pytest.raises(InputError, match=f"such as {tmp_path}/3.*, with 3$"):
        serving_model.load(str(tmp_path))
