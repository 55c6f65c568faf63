"""The check that the disk has room for a run's checkpoints."""

import pathlib

from bert_tf import heads, modeling, optimization
from bert_tf.training import schedules, training_state
from tests import small_disks

import pytest

_CONFIG = modeling.BertConfig(
    vocab_size=100,
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=128,
    max_position_embeddings=32,
    type_vocab_size=2,
)


@pytest.fixture(scope="module")
def model():
    return heads.BertClassifier(modeling.Bert(_CONFIG), 2)


def _state(model, keep):
    schedule = schedules.constant(1e-3, 0, 10, 0, 0.0)
    optimizer = optimization.AdamWeightDecay(schedule)
    optimizer.build(model.trainable_variables)
    return training_state.TrainState(model, optimizer, 0, keep)


def _on_disk(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("model.ckpt-*"))


def test_what_is_needed_is_what_checkpoints_take(model, tmp_path):
    """A disk that passes the check is large enough; a smaller disk fails."""
    state = _state(model, keep=2)
    state.save(str(tmp_path))
    size = _on_disk(tmp_path)
    weights = size / 3  # Adam's moments are two thirds.
    # Two checkpoints, one being written, and twice the best weights.
    needed = 3 * size + 2 * weights
    with small_disks.mounted(tmp_path / "large", int(needed / 1000)) as folder:
        state.check_room(str(folder / "new" / "run"), 5)
    with small_disks.mounted(tmp_path / "small", int(needed / 1200)) as folder:
        with pytest.raises(OSError) as caught:
            state.check_room(str(folder / "new"), 5)
        # A single save needs less: two complete checkpoints at a time.
        state.check_room(str(folder), 1)
    text = str(caught.value)
    assert text.startswith(f"The disk of {folder}/new has ")
    assert f"3 of {size / 1e6:.2f} MB each, and the best" in text
    assert text.endswith("Received: keep_checkpoint_max=2")


def test_checkpoints_that_are_there_are_replaced(model, tmp_path):
    state = _state(model, keep=1)
    state.save(str(tmp_path))
    size = _on_disk(tmp_path)
    # Room for one more checkpoint, which replaces the first, and the best.
    with small_disks.mounted(tmp_path / "disk", int(3 * size / 1000)) as folder:
        state.save(str(folder))
        state.check_room(str(folder), 9)


def test_buckets_have_no_end(model):
    _state(model, 5).check_room("gs://bucket/run", 9)
