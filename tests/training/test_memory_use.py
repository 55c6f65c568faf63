import pathlib

from benchmarks import memory
from bert_tf import modeling, optimization
from bert_tf.encoders import families
from bert_tf.records import pipeline, record_types
from bert_tf.training import accelerators, loop, memory_use
from tests import pretraining_records

import keras
import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _base():
    path = _ROOT / "configs" / "models" / "base.json"
    return modeling.BertConfig.from_json_file(str(path))


class TestMemory:
    def test_state_is_weights_and_two_moments(self):
        base = _base()
        memory = memory_use.training_memory(base, 1, 128, 20)
        assert memory.state == 12 * accelerators.parameters(base)

    def test_grows_with_what_it_depends_on(self):
        base = _base()
        sizes = [
            memory_use.training_memory(base, *sizes).total
            for sizes in ((8, 128, 20), (16, 128, 20), (16, 512, 80))
        ]
        assert sizes == sorted(sizes)
        whole = memory_use.training_memory(base, 64, 128, 20)
        for smaller in (
            memory_use.training_memory(base, 64, 128, 20, "bfloat16"),
            memory_use.training_memory(base, 64, 128, 20, remat=True),
        ):
            assert smaller.activations < 0.6 * whole.activations
            assert smaller.state == whole.state

    def test_language_models_of_lstms_have_logits_of_all_places(self):
        path = _ROOT / "configs" / "models" / "bilstm_lm.json"
        config = families.read_config(str(path))
        B, S = 8, 128
        whole = memory_use.training_memory(config, B, S, S)
        encoder = memory_use.training_memory(config, B, S, 0)
        # At least the logits and their gradient.
        least = 2 * 4 * B * S * config.vocab_size
        assert whole.total - encoder.total >= least

    @pytest.mark.parametrize("free", [399, 400])
    def test_room_for_a_copy(self, free, monkeypatch, caplog):
        monkeypatch.setattr(memory_use, "available_memory", lambda: free)
        assert memory_use.has_room_for_copy(100, 300) == (free == 400)
        is_said = "steps wait while a checkpoint is written" in caplog.text
        assert is_said == (free == 399)

    def test_what_is_free(self):
        assert 1e8 < memory_use.available_memory() < 1e13

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "hidden, layers, vocab, batch, length, predictions",
        # Measured 424, 651 and 903 MB: estimates are 1.12, 1.04, 1.06 times it.
        [
            (128, 2, 30522, 32, 128, 20),
            pytest.param(
                *(256, 4, 8000, 32, 128, 20), marks=pytest.mark.exhaustive
            ),
            (256, 4, 8000, 8, 512, 77),
        ],
    )
    def test_as_measured(
        self, hidden, layers, vocab, batch, length, predictions
    ):
        values = {
            "vocab_size": vocab,
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": hidden // 64,
            "intermediate_size": 4 * hidden,
            "type_vocab_size": 2,
        }
        sizes = (batch, length, predictions)
        measured = memory.of_a_step(values, *sizes, remat=False)
        config = modeling.BertConfig(**values)
        estimate = memory_use.training_memory(config, *sizes)
        assert estimate.total == pytest.approx(measured, rel=0.25)


class TestLargest:
    @pytest.mark.parametrize("available", [0, 1, 2, 7, 8, 10, 1000])
    def test_as_many_as_fit(self, available):
        assert memory_use.largest(float, available) == available

    def test_not_even_one(self):
        assert memory_use.largest(lambda rows: 5.0 + rows, 5.5) == 0


class TestChoose:
    @pytest.mark.parametrize(
        "rows, limit, micro_batches_",
        [
            (32, 32, 1),
            (32, 1000, 1),
            (32, 31, 2),
            (32, 15, 4),
            (32, 1, 32),
            (12, 5, 3),  # for 4 rows: 5 does not divide 12
            (7, 6, 7),
            (1, 1, 1),
        ],
    )
    def test_largest_that_fits(self, rows, limit, micro_batches_):
        asked = []

        def fits(size):
            asked.append(size)
            return size <= limit

        assert memory_use.choose(rows, fits) == micro_batches_
        assert all(rows % size == 0 for size in asked)
        assert len(asked) <= 4  # each may take a minute to compile

    def test_the_whole_batch_may_fit_where_no_part_does(self):
        # Micro-batches also need the sum of the gradients.
        assert memory_use.choose(8, lambda size: size == 8) == 1

    def test_not_one_example(self):
        message = "not enough memory to train on one example. Use --remat"
        with pytest.raises(ValueError, match=message):
            memory_use.choose(8, lambda size: False)


def test_workers_take_what_the_poorest_asks_for():
    # Another worker found 4; each tries its own number.
    def agree(yes):
        asked.append(yes)
        return yes or (1, 2, 4, 8)[len(asked) - 1] < 4

    for found, expected in ((1, 4), (2, 4), (8, 8)):
        asked: list[bool] = []
        assert memory_use.most(8, found, agree) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 rows=8 remat=True\n", 4),
        ("4 rows=8 remat=False\n", None),
        ("4 rows=16 remat=True\n", None),
        ("3 rows=8 remat=True\n", None),
        ("0 rows=8 remat=True\n", None),
        ("4\n", 4),  # of an earlier version
        ("", None),
        (None, None),
    ],
)
def test_what_a_run_began_with(text, expected, tmp_path):
    path = tmp_path / "micro_batches.txt"
    if text is not None:
        path.write_text(text)
    assert memory_use.noted(str(path), 8, "rows=8 remat=True") == expected


class Model(keras.Model):
    def __init__(self):
        super().__init__(name="one")
        self.weight = keras.Variable([1.0], name="weight")
        self.built = True

    def call(self, weights):
        return tf.reduce_sum(self.weight * weights)


def sums(model, batch, seed):
    rows = batch["row_weights"].shape[0]
    # A petabyte from the fifth row on, more than any machine has.
    size = 2**8 if rows < 5 else 2**24
    room = tf.fill([size, size], model(batch["row_weights"]))
    return {"it": {"loss": tf.reduce_sum(room**2)}}


OBJECTIVE = loop.Objective(lambda batch: {"it": tf.ones([])}, sums)


# TensorFlow waits ten seconds for memory before it gives up.
@pytest.mark.exhaustive
def test_tried_until_memory_runs_out(tmp_path):
    strategy = tf.distribute.get_strategy()
    files = pretraining_records.write(tmp_path, [40])
    with strategy.scope():
        model = Model()
        optimizer = optimization.AdamWeightDecay(lambda step: 0.1)
        optimizer.build(model.trainable_variables)
    dataset = pipeline.distribute(
        strategy,
        lambda: pipeline.train(files, [40], 8, 7),
        record_types.PRETRAINING,
        pretraining_records.LENGTHS,
    )
    fits = memory_use.tried(strategy, model, optimizer, OBJECTIVE, dataset)
    assert memory_use.choose(8, fits) == 2
    # Nothing was updated.
    assert float(model.weight.numpy()[0]) == 1
