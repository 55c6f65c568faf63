import json

from bert_tf import (
    checkpoints,
    fine_tuning,
    heads,
    modeling,
    records,
    text_records,
)

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = modeling.BertConfig(
    vocab_size=11,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=8,
)


def _plan(batch_size, epochs, warmup_proportion=0.1):
    return fine_tuning.Plan(
        batch_size=batch_size,
        learning_rate=1.0,
        num_train_epochs=epochs,
        warmup_proportion=warmup_proportion,
        accumulate=1,
        seed=0,
        iterations_per_loop=10,
        save_checkpoints_steps=10,
        keep_checkpoint_max=1,
        log_steps=10,
        group_by_length=False,
    )


def test_steps_are_the_originals():
    # The original: int(3668 / 32 * 3.0), and int(343 * 0.1) to warm up.
    plan = _plan(32, 3.0)
    assert plan.steps(3668) == 343
    schedule = plan.schedule(3668)
    rates = [float(schedule(tf.constant(i))) for i in (0, 17, 33, 34, 343)]
    expected = [0, 17 / 34, 33 / 34, 1 - 34 / 343, 0]
    assert rates == pytest.approx(expected, abs=1e-6)
    # Evaluated after 115, 230 and 343 steps.
    assert plan.steps_per_epoch(3668) == 115
    with pytest.raises(ValueError, match=r"too few examples.*: 3 examples"):
        _plan(4, 1.0).steps(3)


def _model(value=0.0, num_labels=2):
    model = heads.BertClassifier(_CONFIG, num_labels)
    model.output_bias.assign([value] * num_labels)
    return model


def test_best_keeps_the_highest_and_the_earlier(tmp_path):
    folder = str(tmp_path)
    best = fine_tuning.Best(folder, "f1")
    model = _model()
    offers = [(3, 0.5), (6, 0.5), (9, 0.7), (12, 0.6)]
    kept = []
    for step, score in offers:
        model.output_bias.assign([step, step])
        kept.append(best.offer(step, {"f1": score, "x": 1}, model))
    assert kept == [True, False, True, False]
    assert list(checkpoints.numbered(f"{folder}/best")) == [9]
    results = json.loads((tmp_path / "best" / "results.json").read_text())
    assert results == {"f1": 0.7, "x": 1, "global_step": 9}
    # A run that goes on knows what the one before it kept.
    again = fine_tuning.Best(folder, "f1")
    assert not again.offer(15, {"f1": 0.7}, model)
    source = fine_tuning.trained_checkpoint(folder, None, use_best=True)
    other = _model()
    assert fine_tuning.restore(other, source) == 9
    np.testing.assert_array_equal(other.output_bias, [9, 9])
    again.clear()
    assert not (tmp_path / "best").exists()
    assert again.offer(1, {"f1": 0.0}, model)


def test_which_checkpoint_is_used(tmp_path):
    def write(prefix, names):
        checkpoints.write(
            str(tmp_path / prefix), {name: [1.0] for name in names}
        )

    def find(use_best=True, init=None):
        return fine_tuning.trained_checkpoint(
            str(tmp_path / "run"), init and str(tmp_path / init), use_best
        ).path.removeprefix(f"{tmp_path}/")

    (tmp_path / "run").mkdir()
    with pytest.raises(ValueError, match=r"no fine-tuned model in .*run"):
        find()
    write("bert_model.ckpt", ["bert/x"])
    with pytest.raises(ValueError, match=r"is not fine-tuned.*--do_train"):
        find(init="bert_model.ckpt")
    write("model.ckpt-7", ["output_weights", "output_bias"])
    assert find(init="model.ckpt-7") == "model.ckpt-7"
    write("run/model.ckpt-2", ["output_weights", "output_bias"])
    write("run/model.ckpt-4", ["output_weights", "output_bias"])
    assert find(init="model.ckpt-7") == "run/model.ckpt-4"
    (tmp_path / "run" / "best").mkdir()
    write("run/best/model.ckpt-2", ["output_weights", "output_bias"])
    (tmp_path / "run" / "best" / "results.json").write_text(
        '{"global_step": 2}'
    )
    assert find() == "run/best/model.ckpt-2"
    assert find(use_best=False) == "run/model.ckpt-4"


def test_logits_and_labels_without_the_filling(tmp_path, two_replicas):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 11, (7, 8))
    path = str(tmp_path / "x.tf_record")
    with records.Writer(path) as writer:
        for i, row in enumerate(ids):
            writer.write(
                records.CLASSIFICATION.encode(
                    {
                        "input_ids": row,
                        "input_mask": [1] * 8,
                        "segment_ids": [0] * 8,
                        "label_ids": i,
                        "is_real_example": 1,
                    }
                )
            )
    data = text_records.TextRecords(path, 7, records.CLASSIFICATION, 8)
    found = []
    for strategy in (
        tf.distribute.get_strategy(),
        two_replicas,
    ):
        with strategy.scope():
            model = heads.BertClassifier(_CONFIG, 3)
        for i, variable in enumerate(model.variables):
            variable.assign(
                np.random.default_rng(i).normal(size=variable.shape)
            )
        logits, labels = fine_tuning.logits_and_labels(
            strategy, model, data, batch_size=4
        )
        assert labels.tolist() == list(range(7))
        found.append(logits)
    one = model(
        {
            "input_ids": tf.constant(ids, tf.int32),
            "input_mask": tf.ones([7, 8], tf.int32),
            "segment_ids": tf.zeros([7, 8], tf.int32),
        }
    )
    for logits in found:
        np.testing.assert_allclose(logits, one, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"multiple of.*batch_size=3"):
        fine_tuning.logits_and_labels(strategy, model, data, batch_size=3)


def test_labels(tmp_path):
    folder = str(tmp_path)
    assert fine_tuning.read_labels(folder) is None
    fine_tuning.check_labels(folder, ("a", "b"))
    files = fine_tuning.ModelFiles(_CONFIG, "x\n", True)
    files.write(folder, ("a b", "c"))
    assert (tmp_path / "vocab.txt").read_text() == "x\n"
    config = str(tmp_path / "bert_config.json")
    assert modeling.BertConfig.from_json_file(config) == _CONFIG
    assert (tmp_path / "labels.txt").read_text() == "a b\nc\n"
    assert fine_tuning.read_labels(folder) == ("a b", "c")
    fine_tuning.check_labels(folder, ["a b", "c"])
    for labels in (("c", "a b"), None):
        with pytest.raises(ValueError, match="other labels: a b, c"):
            fine_tuning.check_labels(folder, labels)
