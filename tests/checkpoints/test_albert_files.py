"""Checkpoints of ALBERT's pre-training, and resuming from them."""

from bert_tf import heads, optimization
from bert_tf.checkpoints import tf1_files
from bert_tf.encoders import albert, families
from bert_tf.training import training_state
from tests import interop_samples as samples
from tests import pretraining_runs as runs
from tests.checkpoints.test_tf1_files import EXTRA

import pytest
import tensorflow as tf

# Prefixes of the names of moments.
OPTIMIZERS = {
    "adamw": (optimization.AdamWeightDecay, "adam"),
    "lamb": (optimization.Lamb, "lamb"),
    "lamb_uncorrected": (optimization.UncorrectedLamb, "adam"),
}


def stored(folder, optimizer, groups, inner, embedding_size=16):
    """Returns the names and shapes in a checkpoint of 4 layers."""
    config = albert.AlbertConfig(
        **samples.SMALL | {"num_hidden_layers": 4},
        embedding_size=embedding_size,
        num_hidden_groups=groups,
        inner_group_num=inner,
    )
    model = heads.BertPretrainer(families.make(config))
    made = OPTIMIZERS[optimizer][0](lambda step: 0.1)
    made.build(model.trainable_variables)
    state = training_state.TrainState(model, made, 12345)
    state.step = 3
    return tf.train.list_variables(state.save(str(folder)))


def dense(name, inputs, outputs):
    return {f"{name}/kernel": [inputs, outputs], f"{name}/bias": [outputs]}


def norm(name, size):
    return {f"{name}/beta": [size], f"{name}/gamma": [size]}


def originals(groups, inner, E=16, D=32, F=64, V=40, T=2, M=20):
    """Returns the variables of google-research/albert's graph, by its code.

    modeling.py: `AlbertModel` opens the scopes bert/embeddings, bert/encoder,
    bert/pooler; `transformer_model` those of embedding_hidden_mapping_in, where
    the sizes differ, of group_I and, in each, inner_group_J;
    `attention_ffn_block` those in a block, where the two layer norms have no
    names, so TF1 numbers them. run_pretraining.py: `get_masked_lm_output`,
    `get_sentence_order_output`. Its graph was built, too, and has these.
    """
    found = {
        "bert/embeddings/word_embeddings": [V, E],
        "bert/embeddings/token_type_embeddings": [T, E],
        "bert/embeddings/position_embeddings": [M, E],
        **norm("bert/embeddings/LayerNorm", E),
        **dense("bert/pooler/dense", D, D),
        **dense("cls/predictions/transform/dense", D, E),
        **norm("cls/predictions/transform/LayerNorm", E),
        "cls/predictions/output_bias": [V],
        "cls/seq_relationship/output_weights": [2, D],
        "cls/seq_relationship/output_bias": [2],
    }
    if E != D:
        found |= dense("bert/encoder/embedding_hidden_mapping_in", E, D)
    for i in range(groups):
        for j in range(inner):
            block = f"bert/encoder/transformer/group_{i}/inner_group_{j}"
            for part in ("self/query", "self/key", "self/value"):
                found |= dense(f"{block}/attention_1/{part}", D, D)
            found |= dense(f"{block}/attention_1/output/dense", D, D)
            found |= norm(f"{block}/LayerNorm", D)
            between = f"{block}/ffn_1/intermediate"
            found |= dense(f"{between}/dense", D, F)
            found |= dense(f"{between}/output/dense", F, D)
            found |= norm(f"{block}/LayerNorm_1", D)
    return found


@pytest.mark.parametrize(
    "optimizer, groups, inner",
    [
        ("adamw", 1, 1),
        ("lamb", 2, 1),
        ("adamw", 1, 2),
        ("lamb_uncorrected", 2, 2),
    ],
)
def test_names_and_moments_are_the_originals(
    tmp_path, optimizer, groups, inner
):
    """Each weight has its moments once: NAME/adam_m, or NAME/lamb_m."""
    weights = originals(groups, inner)
    slots = {
        f"{name}/{OPTIMIZERS[optimizer][1]}_{moment}": shape
        for name, shape in weights.items()
        for moment in "mv"
    }
    found = stored(tmp_path, optimizer, groups, inner)
    assert len(found) == 3 * len(weights) + len(EXTRA)
    assert dict(found) == weights | slots | {name: [] for name in EXTRA}


def test_names_without_a_mapping_of_embeddings(tmp_path):
    found = dict(stored(tmp_path, "adamw", 2, 2, embedding_size=32))
    weights = {x: y for x, y in found.items() if tf1_files.is_weight(x)}
    assert weights == originals(2, 2, E=32)


# With dropout; both layers share their weights.
_CONFIG = {"embedding_size": 4, "num_hidden_layers": 2, "num_hidden_groups": 1}


@pytest.mark.exhaustive
def test_a_kill_changes_nothing(tmp_path):
    setting = runs.Setting.make(tmp_path, **_CONFIG)
    found = setting.check_that_a_kill_changes_nothing("--optimizer=lamb")
    slot = "bert/encoder/transformer/group_0/inner_group_0/LayerNorm/beta/"
    moments = [x for name, x in found.items() if name.startswith(slot)]
    assert len(moments) == 2
    assert all(value.any() for value in moments)
