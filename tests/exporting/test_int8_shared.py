"""Layers that share weights, with int8 weights."""

import bert_tf
from bert_tf.encoders import albert
from bert_tf.exporting import runtimes
from tests import exports, sample_texts

import numpy as np
import pytest
import tensorflow as tf


def encoders(folder, vocab, groups=1, inner=1, layers=4):
    """Returns one of random weights, in float32 and in int8."""
    config = albert.AlbertConfig(
        vocab_size=len(vocab),
        embedding_size=32,
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
        initializer_range=0.3,
        num_hidden_groups=groups,
        inner_group_num=inner,
    )
    run = exports.write_run(
        *(folder, "encoder", "--max_seq_length=48"), config=config, vocab=vocab
    )
    made = bert_tf.load(run)._made
    assert made is not None
    return made, runtimes.with_weights(made, "int8")


def size(made):
    """The bytes that the variables take."""
    return sum(x.numpy().nbytes for x in made.module.variables)


@pytest.mark.slow
@pytest.mark.parametrize(
    "groups, inner", [pytest.param(1, 1, marks=pytest.mark.exhaustive), (2, 2)]
)
def test_answers_are_those_of_floats(shared_data, tmp_path, groups, inner):
    text = (shared_data / "vocab" / "bert_uncased.txt").read_text("utf-8")
    vocab = text.removesuffix("\n").split("\n")
    both = encoders(tmp_path / "run", vocab, groups, inner)
    lines = tf.constant(sample_texts.real_lines(shared_data, "encoder", 40))
    expected, found = (
        np.squeeze(made.signatures["serving_default"](text_a=lines)["vectors"])
        for made in both
    )
    product = (found * expected).sum(-1)
    length = np.linalg.norm([found, expected], axis=-1).prod(0)
    assert (product / length).min() > 0.99
    # They are other numbers, and other lines have other vectors.
    assert (found != expected).any()
    assert expected.std(0).max() > 0.1
    # A scale for 32 values of a row.
    assert size(both[1]) < 0.3 * size(both[0])


def test_shared_weights_are_kept_once(tmp_path):
    found = {}
    for groups, layers in [(1, 2), (1, 8), (2, 8)]:
        folder = tmp_path / f"{groups}_{layers}"
        both = encoders(folder, exports.VOCAB, groups, layers=layers)
        found[groups, layers] = size(both[1])
    assert found[1, 8] == found[1, 2]
    # A block's matrices of int8; a scale and a bias for each of their outputs;
    # two layer norms.
    D, F = 64, 256
    block = 4 * D * D + 2 * D * F + 2 * 4 * (5 * D + F) + 4 * 4 * D
    assert found[2, 8] - found[1, 8] == block
