"""The next-token loss equals PyTorch's, on records of masked words."""

import dataclasses

from bert_tf import heads, modeling
from bert_tf.contrib import left_to_right
from bert_tf.encoders import families
from bert_tf.records import masking, record_types
from bert_tf.training import loop, next_pieces, pretraining
from tests import interop_samples as samples
from tests import pretraining_records
from tests.training.test_pretraining import (
    K,
    S,
    assert_same_gradients,
    make_rows,
    unpack,
)

import numpy as np
import pytest
import tensorflow as tf

CONFIG = left_to_right.LeftToRightConfig(
    **pretraining_records.WITHOUT_DROPOUT
    | {
        "max_position_embeddings": S,
        "num_hidden_layers": 2,
        "initializer_range": 0.5,
    }
)


@pytest.fixture(scope="module", name="model")
def _model():
    tf.keras.utils.set_random_seed(1)
    return heads.BertNextPiece(families.make(CONFIG))


tensors = pretraining_records.tensors


def means(model, rows):
    """Returns mean loss, accuracy, and gradients by name."""
    batch, objective = tensors(rows), pretraining.objective("next_piece")
    weight = objective.weights(batch)["next_piece"]
    with tf.GradientTape() as tape:
        sums = objective.sums(model, batch, None)["next_piece"]
        loss = sums["loss"] / weight
    variables = model.trained_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    return (
        float(loss),
        float(sums["accuracy"] / weight),
        {v.path: g.numpy() for v, g in zip(variables, gradients, strict=True)},
    )


# ---- Choice of tokens --------------------------------------------------------


def test_masked_rows_are_unmasked():
    rows = make_rows(objective="none")
    unmasked = make_rows(objective="none", dynamic_masking=True)
    assert (rows["input_ids"] != unmasked["input_ids"]).sum() > 100
    np.testing.assert_array_equal(
        next_pieces.original_ids(tensors(rows)), unmasked["input_ids"]
    )
    np.testing.assert_array_equal(
        next_pieces.original_ids(tensors(unmasked)), unmasked["input_ids"]
    )


def test_all_but_the_first_of_a_sequence_are_predicted():
    batch = {
        "input_mask": tf.constant([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]),
        "row_weights": tf.constant([1.0, 1, 0]),
    }
    assert next_pieces.piece_weights(batch).numpy().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 0, 0, 0],
    ]
    batch["sequence_ids"] = tf.constant(
        [[1, 1, 0, 0], [1, 1, 2, 2], [1, 1, 1, 1]]
    )
    assert next_pieces.piece_weights(batch).numpy().tolist() == [
        [1, 0, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.slow
def test_packed_rows_have_the_loss_of_padded_ones(model):
    packed = make_rows(objective="none", pack=True, max_sequences_per_row=K)
    loss, accuracy, gradients = means(model, packed)
    loss_, accuracy_, gradients_ = means(model, unpack(packed))
    assert loss == pytest.approx(loss_, rel=1e-5)
    assert accuracy == pytest.approx(accuracy_, rel=1e-5)
    assert_same_gradients(gradients, gradients_)


def test_records_for_it():
    masks = masking.Masking("token", 0.15, 4, 0.8, 0.1, 0.2, 10, 40, 2, 3, 4)
    lengths = {"S": 16, "P": 4}
    data = pretraining.Data(
        ["x"], [1], record_types.PRETRAINING, lengths, "nsp", masks
    )
    assert data.for_head("pretraining") is data
    assert data.predictions_per_row == 4
    found = data.for_head("next_piece")
    assert (found.objective, found.masking) == ("next_piece", None)
    assert found.predictions_per_row == 16
    # Previous and next tokens are predicted at all positions.
    assert data.for_head("both_directions").predictions_per_row == 32
    assert pretraining.loss_names("next_piece") == ("next_piece",)
    assert not pretraining.has_pairs("next_piece")


def test_what_is_trained(model):
    trained = {
        v.path for v in pretraining.trained_variables(model, "next_piece")
    }
    others = {v.path for v in model.variables} - trained
    assert others == {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    _, _, gradients = means(model, make_rows(objective="none"))
    assert gradients.keys() == trained
    assert all(x is not None for x in gradients.values())


# ---- Comparison with PyTorch -------------------------------------------------


def _torch_logits(model, folder, rows):
    """Returns logits [B, S, V] in float64 from transformers' own decoder."""
    from tests import huggingface_models as hf

    config = modeling.BertConfig(**dataclasses.asdict(CONFIG))
    masked = heads.BertMaskedLM(modeling.Bert(config))
    weights = {
        v.path.replace("cls/next_piece", "cls/predictions"): v.numpy()
        for v in model.variables
    }
    for variable in masked.variables:
        variable.assign(weights[variable.path])
    path = samples.write_tf1(folder / "ours", masked)
    samples.convert(path, "hf", folder / "theirs")
    theirs = hf.transformers.BertLMHeadModel.from_pretrained(
        folder / "theirs", is_decoder=True
    )
    return theirs.double().eval()(**hf.their_inputs(rows)).logits


def test_loss_is_pytorchs(model, tmp_path):
    rows = make_rows(objective="nsp")
    mask = rows["input_mask"]
    assert (mask == 0).any()
    ids = next_pieces.original_ids(tensors(rows)).numpy()
    logits = _torch_logits(model, tmp_path, rows | {"input_ids": ids})
    torch = pytest.importorskip("torch")
    following = torch.tensor(np.int64(ids[:, 1:]))
    following[torch.tensor(mask[:, 1:]) == 0] = -100
    wanted = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), following.reshape(-1)
    )
    loss, accuracy, _ = means(model, rows)
    assert loss == pytest.approx(wanted.item(), rel=1e-6)
    best = logits.argmax(-1)[:, :-1].numpy()
    counts = mask[:, 1:] > 0
    right = (best == ids[:, 1:])[counts].mean()
    assert accuracy == pytest.approx(right, abs=1e-6)
    # The loss of the logits alone.
    batch = tensors(rows)
    single = np.float32(logits.detach().numpy())
    sums = next_pieces.loss(tf.constant(single), tf.constant(ids), batch)
    weight = pretraining.objective("next_piece").weights(batch)["next_piece"]
    single_loss = float(sums["loss"] / weight)
    assert single_loss == pytest.approx(wanted.item(), rel=1e-6)


# ---- As an auxiliary loss ----------------------------------------------------


@pytest.mark.slow
def test_auxiliary_loss():
    tf.keras.utils.set_random_seed(2)
    classifier = heads.BertClassifier(families.make(CONFIG), 2)
    head = heads.next_piece_head(classifier.bert, "objective")
    rows = make_rows(objective="none", dynamic_masking=True)
    batch = tensors(rows)
    labels = tf.range(tf.shape(batch["input_ids"])[0]) % 2

    def label_sums(model, batch, dropout_seed):
        logits = model(batch, dropout_seed)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return {"label": {"loss": tf.reduce_sum(loss)}}

    own = loop.Objective(
        lambda batch: {"label": tf.reduce_sum(batch["row_weights"])},
        label_sums,
        {"label": 1.0},
    )
    both = next_pieces.auxiliary(own, 0.5, head, classifier.bert)
    assert {v.path for v in both.own} == {
        f"objective/next_piece/{name}"
        for name in (
            *("transform/dense/kernel", "transform/dense/bias"),
            *("transform/LayerNorm/beta", "transform/LayerNorm/gamma"),
            "output_bias",
        )
    }
    assert both.factors == {"label": 1.0, "next_piece": 0.5}
    found = both.sums(classifier, batch, None)
    weights = both.weights(batch)
    # The same two losses from two separate models.
    alone = own.sums(classifier, batch, None)["label"]["loss"]
    np.testing.assert_allclose(found["label"]["loss"], alone, rtol=1e-6)
    pieces = heads.BertNextPiece(classifier.bert)
    for variable in pieces.next_piece.variables:
        name = variable.path.replace("cls/", "objective/")
        (value,) = (x for x in head.variables if x.path == name)
        variable.assign(value)
    loss, accuracy, _ = means(pieces, rows)
    sums, weight = found["next_piece"], weights["next_piece"]
    assert float(sums["loss"] / weight) == pytest.approx(loss, rel=1e-5)
    assert float(sums["accuracy"] / weight) == pytest.approx(accuracy, rel=1e-5)
    assert classifier.bert.keep is None
