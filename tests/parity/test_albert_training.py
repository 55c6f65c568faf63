"""Forty steps of ALBERT's pre-training equal PyTorch's in float64.

Shapes: B batch, S sequence length, P predictions per sequence.
"""

import json

from bert_tf import heads
from bert_tf.checkpoints import tf1_files
from bert_tf.encoders import albert, families
from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import manifests
from tests import combinations, parity_run, pretraining_records, reference
from tests import interop_samples as samples

import numpy as np
import pytest

pytestmark = pytest.mark.slow

S, P, B = 32, 6, 16
STEPS, WARMUP = 40, 5
SEED = parity_run.SEED
CONFIG = pretraining_records.WITHOUT_DROPOUT | {
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": S,
}


@pytest.fixture(scope="module", name="files")
def _files(tmp_path_factory):
    """Writes records with the settings of configs/albert_records.flags."""
    settings = pretraining_sequences.Settings(
        S, P, objective="sop", masking="ngram", dupe_factor=2
    )
    folder = tmp_path_factory.mktemp("records")
    return pretraining_records.write_made(folder, settings)


def batches(files):
    manifest = manifests.find(files)
    assert manifest is not None
    counts = [shard.records for shard in manifest.shards]
    return parity_run.batches(files, counts, B, STEPS)


def run(folder, files, config, optimizer, peak):
    (folder / "config.json").write_text(json.dumps(config))
    made = albert.AlbertConfig(**config)
    variables = heads.BertPretrainer(families.make(made)).variables
    reference.random_weights(variables, seed=SEED)
    weights = {variable.path: variable.value for variable in variables}
    tf1_files.write(str(folder / "start.ckpt"), weights)
    return parity_run.run(
        folder,
        f"--input_file={','.join(files)}",
        f"--bert_config_file={folder}/config.json",
        f"--init_checkpoint={folder}/start.ckpt",
        "--do_train=true",
        f"--optimizer={optimizer}",
        "--weight_decay_rate=0.01",
        "--lr_schedule=linear",
        f"--learning_rate={peak}",
        f"--num_warmup_steps={WARMUP}",
        f"--num_train_steps={STEPS}",
        f"--train_batch_size={B}",
        f"--seed={SEED}",
        "--log_steps=1",
    )


def test_the_records_are_alberts(files):
    steps = list(batches(files))
    assert len(steps) == STEPS
    labels = np.concatenate([x["next_sentence_labels"] for x in steps])
    assert 0.3 < labels.mean() < 0.7
    positions = np.concatenate([x["masked_lm_positions"] for x in steps])
    is_real = np.concatenate([x["masked_lm_weights"] for x in steps]) > 0
    follows = (np.diff(positions) == 1) & is_real[:, 1:]
    # Of independently drawn tokens, 15% of all, only 15% would follow one.
    assert follows.sum() / is_real[:, 1:].sum() > 0.3


@pytest.mark.parametrize(
    "optimizer, peak, groups, inner",
    combinations.some(
        [("lamb", 0.01, 1, 1)],
        [
            *(("lamb", 0.01, 2, 2), ("lamb_uncorrected", 0.01, 1, 1)),
            *(("adamw", 1e-3, 2, 2), ("lamb", 0.01, 1, 1)),
        ],
    ),
)
def test_every_step_is_that_of_pytorch(
    tmp_path, files, optimizer, peak, groups, inner
):
    torch_pretraining = pytest.importorskip(
        "tests.torch_pretraining", reason="needs the extra `parity`"
    )
    from tests import torch_training

    config = CONFIG | {"num_hidden_groups": groups, "inner_group_num": inner}
    found = run(tmp_path, files, config, optimizer, peak)
    expected, weights = torch_pretraining.train(
        *(torch_pretraining.ALBERT, config),
        samples.values(tmp_path / "start.ckpt"),
        batches(files),
        torch_training.rates(STEPS, WARMUP, peak),
        optimizer,
    )
    assert [line["step"] for line in found] == list(range(1, STEPS + 1))
    parity_run.assert_same_steps(found, expected)
    ours, theirs = ([x["loss"] for x in lines] for lines in (found, expected))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    last = samples.values(tmp_path / f"out/model.ckpt-{STEPS}")
    parity_run.assert_same_weights(last, weights)
