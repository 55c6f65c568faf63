"""Layers that share weights, exported with int8 weights."""

import dataclasses

import bert_tf
from bert_tf.encoders import albert, families
from tests import scripts
from tests.commands import test_run_prediction as runs
from tests.commands import test_run_prediction_real_lines as real

import numpy as np
import pytest
import tensorflow as tf

CONFIG = albert.AlbertConfig(
    vocab_size=40,
    embedding_size=32,
    hidden_size=64,
    num_attention_heads=4,
    intermediate_size=256,
    max_position_embeddings=64,
    initializer_range=0.3,
)


def write_run(folder, config, vocab):
    """Writes what a run leaves, an encoder of random weights."""
    tf.keras.utils.set_random_seed(1)
    config = dataclasses.replace(config, vocab_size=len(vocab))
    return runs.write_run(
        folder, families.make(config), vocab, config, "--max_seq_length=48"
    )


def export(run, path, weights):
    code = scripts.run_here(
        "export_saved_model",
        *(f"--model_dir={run}", f"--export_dir={path}", f"--weights={weights}"),
    )
    assert not code
    return path


def size(path):
    """The bytes that a SavedModel's variables take."""
    parts = (path / "variables").glob("variables.data-*")
    return sum(part.stat().st_size for part in parts)


@pytest.fixture(scope="module", name="vocab")
def _vocab(shared_data):
    text = (shared_data / "vocab" / "bert_uncased.txt").read_text("utf-8")
    return text.removesuffix("\n").split("\n")


@pytest.mark.slow
@pytest.mark.parametrize("groups, inner", [(1, 1), (2, 2)])
def test_answers_are_those_of_floats(
    shared_data, tmp_path, vocab, groups, inner
):
    config = dataclasses.replace(
        CONFIG,
        num_hidden_layers=4,
        num_hidden_groups=groups,
        inner_group_num=inner,
    )
    run = write_run(tmp_path / "run", config, vocab)
    lines = real.real_lines(shared_data, "encoder")[:40]
    vectors, stored = {}, {}
    for weights in ("float32", "int8"):
        path = export(run, tmp_path / weights, weights)
        loaded = bert_tf.load(path)
        assert loaded.description.get("weights", "float32") == weights
        answers = loaded(lines)
        vectors[weights] = np.array([answer["vector"] for answer in answers])
        stored[weights] = size(path)
    found, expected = vectors["int8"], vectors["float32"]
    product = (found * expected).sum(-1)
    length = np.linalg.norm([found, expected], axis=-1).prod(0)
    assert (product / length).min() > 0.99
    # They are other numbers, and other lines have other vectors.
    assert (found != expected).any()
    assert expected.std(0).max() > 0.1
    # A scale for 32 values of a row.
    assert stored["int8"] < 0.3 * stored["float32"]


@pytest.mark.slow
def test_shared_weights_are_stored_once(tmp_path):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
    found = {}
    for groups, layers in [(1, 2), (1, 8), (2, 8)]:
        config = dataclasses.replace(
            CONFIG, num_hidden_groups=groups, num_hidden_layers=layers
        )
        run = write_run(tmp_path / f"run_{groups}_{layers}", config, vocab)
        path = tmp_path / f"export_{groups}_{layers}"
        found[groups, layers] = size(export(run, path, "int8"))
    assert found[1, 8] == found[1, 2]
    # A block's matrices of int8; a scale and a bias for each of their outputs;
    # two layer norms. The rest is a list of names.
    D, F = 64, 256
    block = 4 * D * D + 2 * D * F + 2 * 4 * (5 * D + F) + 4 * 4 * D
    assert block <= found[2, 8] - found[1, 8] < 1.05 * block
