"""Distillation objectives: their losses, and that the loop trains with them."""

import dataclasses
import functools

from bert_tf import compiled, heads, losses, modeling, optimization
from bert_tf.encoders import families, ops, watching
from bert_tf.errors import InputError
from bert_tf.records import pipeline, record_types
from bert_tf.training import (
    distillation,
    loop,
    pretraining,
    schedules,
    training_state,
)
from tests import pretraining_records, reference, tiny_model

import keras
import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_SMALL = modeling.BertConfig(
    **pretraining_records.WITHOUT_DROPOUT | {"num_hidden_layers": 2}
)
_LARGE = dataclasses.replace(
    _SMALL, num_hidden_layers=4, hidden_size=12, intermediate_size=20
)
_OWN = pretraining.objective("nsp")


def _bert(config, seed, name="bert"):
    model = reference.randomized(modeling.Bert(config, name=name), seed)
    return model


@pytest.fixture(scope="module", name="batch")
def _batch():
    made = reference.batch(_SMALL)
    rng = np.random.default_rng(1)
    shape = made["masked_lm_positions"].shape
    made["masked_lm_ids"] = rng.integers(1, 40, shape, np.int32)
    counts = (rng.random(shape) < 0.7).astype(np.float32)
    made["masked_lm_weights"] = counts
    made["next_sentence_labels"] = np.ones([len(counts), 1], np.int32)
    made["row_weights"] = np.ones(len(counts), np.float32)
    return {name: tf.constant(x) for name, x in made.items()}


def _computed(bert, batch):
    """Returns embeddings, layer outputs and attention scores, by NumPy."""
    weights, config = reference.weights_of(bert.variables), bert.config
    inputs = {name: x.numpy() for name, x in batch.items()}
    embeddings, outputs, _ = reference.encode(config, weights, inputs)
    states, scores = [embeddings, *outputs], []
    for i, x in enumerate(states[:-1]):
        name = f"bert/encoder/layer_{i}/attention/self"
        q, k = (
            reference.dense(x, weights, f"{name}/{part}")
            .reshape(*x.shape[:2], config.num_attention_heads, -1)
            .swapaxes(1, 2)
            for part in ("query", "key")
        )
        scores.append(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return states, scores


def test_layers_by_numpy(batch):
    student, teacher = _bert(_SMALL, 1), _bert(_LARGE, 2)
    objective = distillation.by_layers(_OWN, student, teacher)
    reference.random_weights(objective.own, 3)
    model = heads.BertPretrainer(student)
    real = batch["input_mask"].numpy().astype(float)  # [B, S]
    pairs = (real[:, :, None] * real[:, None])[:, None]  # [B, 1, S, S]
    kernel, bias = (np.float64(v.numpy()) for v in objective.own)
    ours, our_scores = _computed(student, batch)
    theirs, their_scores = _computed(teacher, batch)
    attention = hidden = 0.0
    for m in (0, 1, 2):  # g(m) = 2 m
        error = (ours[m] @ kernel + bias - theirs[2 * m]) ** 2
        hidden += (real * error.mean(-1)).sum()
        if m:
            error = our_scores[m - 1] - their_scores[2 * m - 1]
            attention += (pairs * error**2).mean(1).sum()
    sums = objective.sums(model, batch, None)
    assert float(sums["attention"]["loss"]) == pytest.approx(attention, 1e-5)
    assert float(sums["hidden"]["loss"]) == pytest.approx(hidden, 1e-5)
    weights = objective.weights(batch)
    assert float(weights["attention"]) == pairs.sum()
    assert float(weights["hidden"]) == real.sum()


def test_a_teacher_by_itself_has_nothing_to_teach(batch):
    student, teacher = _bert(_SMALL, 1), _bert(_SMALL, 1)
    model = heads.BertPretrainer(student)
    layers = distillation.by_layers(_OWN, student, teacher)
    kernel, bias = layers.own
    kernel.assign(np.eye(8))
    bias.assign(np.zeros(8))
    relations = distillation.by_relations(_OWN, student, teacher, 4)
    for objective in (layers, relations):
        for found in objective.sums(model, batch, None).values():
            assert float(found["loss"]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_compiled"),
    [(40, 40, False), (40, 48, True), (48, 40, False)],
)
def test_words_and_states_by_numpy(ours, theirs, is_compiled, batch):
    """Tables of the same words may be padded with different rows."""
    student, teacher = (
        dataclasses.replace(_SMALL, vocab_size=size, num_hidden_layers=layers)
        for size, layers in ((ours, 2), (theirs, 3))
    )
    student = heads.BertPretrainer(_bert(student, 1))
    teacher = heads.BertMaskedLM(modeling.Bert(teacher))
    reference.random_weights(student.variables, 4)
    reference.random_weights(teacher.variables, 5)
    objective = distillation.by_words_and_states(_OWN, student, teacher, 2.0)
    inputs = {name: x.numpy() for name, x in batch.items()}
    logits, states = [], []
    for model in (student, teacher):
        weights = reference.weights_of(model.variables)
        weights |= {
            "cls/seq_relationship/output_weights": np.zeros([2, 8]),
            "cls/seq_relationship/output_bias": np.zeros(2),
        }
        config = model.bert.config
        logits.append(reference.pretrain(config, weights, inputs)[0])
        states.append(reference.encode(config, weights, inputs)[1][-1])
    counts, real = inputs["masked_lm_weights"], inputs["input_mask"]
    q, p = (reference.log_softmax(x[..., :40] / 2) for x in logits)
    teacher_loss = 4 * (counts * (np.exp(p) * (p - q)).sum(-1)).sum()
    chosen = np.take_along_axis(
        reference.log_softmax(logits[0]), inputs["masked_lm_ids"][..., None], -1
    )
    unit = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in states]
    expected = {
        "masked_lm": -(counts * chosen[..., 0]).sum(),
        "teacher": teacher_loss,
        "cosine": (real * (1 - (unit[0] * unit[1]).sum(-1))).sum(),
    }
    shared = distillation.shared_words(student.bert.config, teacher.bert.config)

    def losses_of(model, batch):
        sums = objective.sums(model, batch, None)
        outputs = (model(batch), teacher(batch))
        return sums, distillation.of_words(*outputs, batch, 2.0, shared)

    if is_compiled:
        losses_of = compiled.marked(losses_of)
    sums, words = losses_of(student, batch)
    assert float(words) == pytest.approx(teacher_loss, rel=1e-5)
    found = {name: float(x["loss"]) for name, x in sums.items()}
    assert found == pytest.approx(expected, rel=1e-5)
    total = objective.total(found)
    assert total == pytest.approx(
        2 * expected["masked_lm"] + 5 * teacher_loss + expected["cosine"], 1e-5
    )


def test_logits_by_numpy(batch):
    student, teacher = (
        reference.randomized(heads.BertClassifier(modeling.Bert(_SMALL), 3), i)
        for i in (1, 2)
    )
    inputs = batch | {"label_ids": tf.constant([0, 2, 1])}

    def sums(model, batch, seed):
        found = losses.classification(
            model(batch, seed), batch["label_ids"], batch["row_weights"]
        )
        return {"label": found}

    own = loop.Objective(
        lambda batch: {"label": tf.reduce_sum(batch["row_weights"])}, sums
    )
    comparison = distillation.Comparison.from_loss(
        "label", lambda x: x["row_weights"]
    )
    objective = distillation.by_logits(own, comparison, teacher, 3.0, 0.25)
    ours, theirs = (x(inputs).numpy().astype(float) for x in (student, teacher))
    q, p = (reference.log_softmax(x / 3) for x in (ours, theirs))
    expected = 9 * (np.exp(p) * (p - q)).sum()
    hard = -reference.log_softmax(ours)[range(3), [0, 2, 1]].sum()
    found = objective.sums(student, inputs, None)
    assert float(found["teacher"]["loss"]) == pytest.approx(expected, 1e-5)
    assert float(found["label"]["loss"]) == pytest.approx(hard, 1e-5)
    assert objective.total({"label": 4.0, "teacher": 8.0}) == 7
    assert float(objective.weights(inputs)["teacher"]) == 3


def _made(kind, config=_SMALL, large=_LARGE):
    """Returns a fixed student, its teacher, and an objective of a kind."""
    keras.utils.set_random_seed(1)
    model = heads.BertPretrainer(_bert(config, 1))
    if kind in ("layers", "relations"):
        teacher = _bert(large, 2)
        objective = (
            distillation.by_layers(_OWN, model.bert, teacher)
            if kind == "layers"
            else distillation.by_relations(_OWN, model.bert, teacher, 2)
        )
        return model, teacher, objective
    same = dataclasses.replace(large, hidden_size=config.hidden_size)
    teacher = heads.BertMaskedLM(_bert(same, 2))
    if kind == "words and states":
        objective = distillation.by_words_and_states(_OWN, model, teacher, 2.0)
        return model, teacher, objective
    comparison = distillation.Comparison(
        pretraining.loss_names("nsp"), distillation.of_words
    )
    objective = distillation.by_logits(_OWN, comparison, teacher, 2.0, 0.5)
    return model, teacher, objective


_KINDS = ("logits", "layers", "relations", "words and states")


@pytest.mark.parametrize("kind", _KINDS)
def test_all_that_is_trained_has_a_gradient_and_nothing_else(kind, batch):
    model, teacher, objective = _made(kind)
    trained = [*(objective.trained or model.trainable_variables)]
    others = {v.path: v for v in model.variables}
    for variable in trained:
        del others[variable.path]
    sources = [v.value for v in (*trained, *objective.own)]
    unread = [v.value for v in (*others.values(), *teacher.variables)]
    with tf.GradientTape() as tape:
        sums = objective.sums(model, batch, None)
        loss = sum(x["loss"] for x in sums.values())
    found = tape.gradient(loss, [sources, unread])
    assert all(x is not None for x in found[0])
    assert not [x for x in found[1] if x is not None]
    layer = "bert/encoder/layer_1/"
    # Prefixes of the names of untrained variables.
    expected = {
        "logits": (),
        "words and states": ("bert/pooler/", "cls/seq_relationship/"),
        "layers": ("bert/pooler/", "cls/"),
        "relations": (
            *(f"{layer}attention/output/", f"{layer}intermediate/"),
            *(f"{layer}output/", "bert/pooler/", "cls/"),
        ),
    }[kind]
    paths = {v.path for v in model.variables}
    assert others.keys() == {x for x in paths if x.startswith(expected)}


def test_layers_that_share_weights_are_trained(batch):
    config = families.from_values(
        pretraining_records.WITHOUT_DROPOUT
        | {"model_type": "albert", "num_hidden_layers": 2, "embedding_size": 4}
    )
    student = families.make(config)
    teacher = _bert(_LARGE, 2)
    objective = distillation.by_relations(_OWN, student, teacher, 2)
    paths = {v.path for v in objective.trained or ()}
    assert paths == {v.path for v in student.variables} - {
        v.path for v in student.pooler.variables
    }
    model = heads.BertPretrainer(student)
    assert float(objective.sums(model, batch, None)["relations"]["loss"]) > 0


@pytest.mark.parametrize("kind", ["layers", "relations"])
def test_the_same_without_computing_padding(kind, batch):
    model, teacher, objective = _made(kind)
    expected = objective.sums(model, batch, None)
    model.bert.skips_padding = teacher.skips_padding = True
    found = objective.sums(model, batch, None)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name]["loss"], value["loss"], 1e-5)


@pytest.mark.parametrize("kind", _KINDS)
def test_in_bfloat16(kind, batch):
    model, _, objective = _made(kind)
    expected = objective.sums(model, batch, None)
    with tiny_model.policy("mixed_bfloat16"):
        model, _, other = _made(kind)
        for variable, value in zip(other.own, objective.own, strict=True):
            variable.assign(value)
        found = other.sums(model, batch, None)
    for name, value in expected.items():
        assert found[name]["loss"].dtype == tf.float32
        np.testing.assert_allclose(found[name]["loss"], value["loss"], 0.1)


def _sequence(bert, batch, positions):
    return bert(batch, None, positions).sequence


def test_watching_changes_nothing(batch):
    bert = _bert(_SMALL, 1)
    positions = tf.zeros([3, 1], tf.int32)
    for places in (None, positions):
        # Separate functions, so that each is traced.
        plain, other = (
            tf.function(
                functools.partial(_sequence, bert, batch, places),
                autograph=False,
            )
            for _ in range(2)
        )
        expected = plain.get_concrete_function()
        with watching.watched(bert) as seen:
            found = other.get_concrete_function()
        assert len(seen) == 2
        names = [
            sorted(x.type for x in f.graph.get_operations())
            for f in (expected, found)
        ]
        assert names[0] == names[1]
        np.testing.assert_array_equal(expected(), found())
    assert bert.laid_out is modeling._as_it_is


class _Mean(modeling.Bert):
    def call(self, inputs, dropout_seed=None, positions=None, training=None):
        table = tf.convert_to_tensor(self.embeddings.word_embeddings)
        x = ops.embed(table, inputs["input_ids"])
        return modeling.BertOutputs(x, x[:, 0], x, [x, x])


def test_an_encoder_without_attention_is_refused():
    distillation.check_watched(_bert(_SMALL, 1), "The student")
    with pytest.raises(InputError, match=r"The student has no layers of att.*"):
        distillation.check_watched(_Mean(_SMALL), "The student")


class _Trainer:
    """The training loop for a distillation objective, from a fixed start."""

    def __init__(
        self, kind, files, strategy=tiny_model.ONE, accumulate=1, start=0
    ):
        with strategy.scope():
            # One layer: most of the time is spent on tracing.
            config = dataclasses.replace(_SMALL, num_hidden_layers=1)
            large = dataclasses.replace(_LARGE, num_hidden_layers=2)
            made = _made(kind, config, large)
            self.model, self.teacher, objective = made
            self.optimizer = optimization.AdamWeightDecay(
                schedules.linear_warmup_decay(0.01, 2, 10)
            )
            trained = objective.trained or self.model.trainable_variables
            self.optimizer.build([*trained, *objective.own])
        self.strategy = strategy
        self.state = training_state.TrainState(
            self.model, self.optimizer, 7, own=objective.own
        )
        rows = pipeline.train(files, tiny_model.COUNTS, 8, 7, start * 8)
        dataset = pipeline.distribute(
            *(strategy, lambda: rows),
            *(record_types.PRETRAINING, pretraining_records.LENGTHS),
        )
        steps = loop.make_train_steps(
            *(strategy, self.model, self.optimizer, objective, dataset),
            *(5, accumulate),
        )
        self.train = lambda first, count: steps(first, count).scalars()

    def arrays(self):
        return {
            name: self.strategy.experimental_local_results(
                v.value if isinstance(v, keras.Variable) else v
            )[0].numpy()
            for name, v in self.state.variables.items()
        }


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("logits", marks=pytest.mark.exhaustive),
        "layers",
        pytest.param("relations", marks=pytest.mark.exhaustive),
    ],
)
def test_replicas_and_micro_batches_are_one(kind, files, two_replicas):
    plain = _Trainer(kind, files)
    with tiny_model.untraced():
        expected = plain.train(0, 3)
    both = _Trainer(kind, files, two_replicas, accumulate=2)
    before = [v.numpy() for v in both.teacher.variables]
    found = both.train(0, 3)
    names = [name for name in expected if name.endswith("_loss")]
    assert len(names) >= 1
    for name in names:
        assert found[name] == pytest.approx(expected[name], rel=1e-5)
    reference.assert_same(both.arrays(), plain.arrays(), 5e-6)
    for value, variable in zip(before, both.teacher.variables, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


@pytest.mark.exhaustive
def test_goes_on_bit_for_bit_with_the_dense_layer(files, tmp_path):
    whole = _Trainer("layers", files)
    whole.train(0, 2)
    first = whole.arrays()
    whole.state.step, whole.state.records = 2, 16
    whole.state.save(str(tmp_path))
    whole.train(2, 2)
    again = _Trainer("layers", files, start=2)
    assert again.state.resume(str(tmp_path))
    reference.assert_same(again.arrays(), first)
    again.train(2, 2)
    reference.assert_same(again.arrays(), whole.arrays())
    assert "objective/fit_dense/bias/adam_v" in first
    other = _Trainer("relations", files)
    with pytest.raises(InputError, match="This run has no objective/fit_dense"):
        other.state.resume(str(tmp_path))
