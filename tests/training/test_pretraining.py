from bert_tf import heads, modeling, options
from bert_tf.pretraining_data import pretraining_rows, pretraining_sequences
from bert_tf.records import record_types
from bert_tf.training import pretraining
from tests import pretraining_records

import numpy as np
import pytest
import tensorflow as tf

S, P, K = 32, 9, 6


@pytest.fixture(scope="module", name="model")
def _model():
    tf.keras.utils.set_random_seed(1)
    config = pretraining_records.WITHOUT_DROPOUT | {
        "max_position_embeddings": S,
        "num_hidden_layers": 2,
        # Large enough for a wrong mask or position to show.
        "initializer_range": 0.5,
    }
    return heads.BertPretrainer(modeling.Bert(modeling.BertConfig(**config)))


def make_rows(**settings):
    made = pretraining_sequences.Settings(
        S, P, masked_lm_prob=0.3, short_seq_prob=0.8, **settings
    )
    rows = pretraining_rows.features(
        pretraining_records.make_sequences(made),
        pretraining_records.VOCABULARY,
        made,
        np.random.default_rng(0),
    )
    return rows | {"row_weights": np.ones(len(rows["input_ids"]), np.float32)}


def unpack(rows):
    """Returns the same sequences and masks, with one sequence per row."""
    names = [field.name for field in record_types.PRETRAINING.features]
    unpacked: dict[str, list] = {name: [] for name in names}
    for row in range(len(rows["input_ids"])):
        for slot in range(rows["sequence_ids"][row].max()):
            inside = rows["sequence_ids"][row] == slot + 1
            start, length = rows["cls_positions"][row, slot], inside.sum()
            for name in ("input_ids", "input_mask", "segment_ids"):
                values = rows[name][row][inside]
                unpacked[name].append(np.pad(values, (0, S - length)))
            positions = rows["masked_lm_positions"][row]
            own = (start <= positions) & (positions < start + length)
            own &= rows["masked_lm_weights"][row] > 0
            for name, offset in (
                ("masked_lm_positions", start),
                ("masked_lm_ids", 0),
                ("masked_lm_weights", 0),
            ):
                values = rows[name][row][own] - offset
                unpacked[name].append(np.pad(values, (0, P - own.sum())))
            label = rows["next_sentence_labels"][row, slot]
            unpacked["next_sentence_labels"].append([label])
    number = len(unpacked["input_ids"])
    return {name: np.array(x) for name, x in unpacked.items()} | {
        "row_weights": np.ones(number, np.float32)
    }


def run(model, kind, rows):
    """Returns sums, weights, and the gradients of the mean losses."""
    batch = pretraining_records.tensors(rows)
    objective = pretraining.objective(kind)
    weights = objective.weights(batch)
    variables = pretraining.trained_variables(model, kind)
    with tf.GradientTape() as tape:
        sums = objective.sums(model, batch, None)
        loss = sum(x["loss"] / weights[name] for name, x in sums.items())
    gradients = tape.gradient(loss, [v.value for v in variables])
    return (
        tf.nest.map_structure(float, sums),
        tf.nest.map_structure(float, weights),
        {v.path: g.numpy() for v, g in zip(variables, gradients, strict=True)},
    )


def assert_same_gradients(found, expected):
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        scale = np.abs(gradient).max()
        # The softmax is invariant to a shift of all keys.
        assert scale > 1e-4 or name.endswith("self/key/bias"), name
        tolerance = 1e-5 * scale + 1e-7
        np.testing.assert_allclose(
            found[name], gradient, atol=tolerance, err_msg=name
        )


class TestPacked:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", options.OBJECTIVES)
    def test_losses_and_gradients_are_those_of_padded_rows(self, model, kind):
        packed = make_rows(objective=kind, pack=True, max_sequences_per_row=K)
        padded = unpack(packed)
        saved = len(packed["input_ids"]) / len(padded["input_ids"])
        assert saved < 0.8
        (sums, weights, gradients), (sums_, weights_, gradients_) = (
            run(model, kind, rows) for rows in (packed, padded)
        )
        assert weights == weights_
        for name, metrics in sums_.items():
            assert sums[name] == pytest.approx(metrics, rel=1e-5)
        assert_same_gradients(gradients, gradients_)


class TestObjective:
    @pytest.mark.parametrize(
        "kind, names",
        [
            ("nsp", {"masked_lm", "next_sentence"}),
            ("sop", {"masked_lm", "sentence_order"}),
            ("none", {"masked_lm"}),
        ],
    )
    def test_losses(self, model, kind, names):
        rows = make_rows(objective=kind)
        sums, weights, gradients = run(model, kind, rows)
        assert sums.keys() == weights.keys() == names
        assert weights["masked_lm"] == rows["masked_lm_weights"].sum()
        left_out = {v.path for v in model.trainable_variables} - {*gradients}
        of_sentences = {
            *("bert/pooler/dense/kernel", "bert/pooler/dense/bias"),
            *(f"cls/seq_relationship/output_{x}" for x in ("weights", "bias")),
        }
        assert left_out == (of_sentences if kind == "none" else set())

    @pytest.mark.slow
    def test_filling_counts_nothing(self, model):
        for pack in (False, True):
            rows = make_rows(pack=pack)
            weights = rows["row_weights"].copy()
            weights[5:] = 0
            filled = run(model, "nsp", rows | {"row_weights": weights})
            few = run(model, "nsp", {n: x[:5] for n, x in rows.items()})
            assert filled[1] == few[1]
            for name, metrics in few[0].items():
                assert filled[0][name] == pytest.approx(metrics, rel=1e-5)
