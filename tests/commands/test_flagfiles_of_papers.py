"""The recipes of papers in configs/, from text to weights."""

import json
import pathlib

from bert_tf.records import manifests
from bert_tf.tasks.glue import glue_scores
from tests import combinations, scripts, tiny_files

import pytest
import tensorflow as tf

_CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
_MODEL = {
    "vocab_size": len(tiny_files.VOCAB),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 512,
}
# What makes a recipe of weeks one of two steps.
_SHORT = (
    *("--train_batch_size=4", "--num_train_steps=2", "--num_warmup_steps=1"),
    *("--do_eval=true", "--max_eval_steps=1", "--eval_batch_size=4"),
)


# google-research/albert, run_glue.sh: warm-up, rate, steps, batch of each task.
_RUN_GLUE = {
    "SST-2": (1256, 1e-5, 20935, 32),
    "MNLI": (1000, 3e-5, 10000, 128),
    "CoLA": (320, 1e-5, 5336, 16),
    "QNLI": (1986, 1e-5, 33112, 32),
    "QQP": (1000, 5e-5, 14000, 128),
    "RTE": (200, 3e-5, 800, 32),
    "STS-B": (214, 2e-5, 3598, 16),
    "MRPC": (200, 2e-5, 800, 32),
}


def test_epochs_of_the_table_are_alberts_steps():
    text = (_CONFIGS / "glue_albert.flags").read_text()
    rows = [line.split()[1:] for line in text.splitlines()]
    found = {}
    for row in rows:
        if row and row[0] in _RUN_GLUE and len(row) == 7:
            batch, rate, epochs, share = map(float, row[1:5])
            examples = glue_scores.TRAIN_ROWS[row[0]]
            # As training.fine_tuning.Plan counts them.
            steps = int(examples / batch * epochs)
            found[row[0]] = (int(steps * share), rate, steps, int(batch))
            assert row[5:] == [str(steps), str(int(steps * share))]
    assert found == _RUN_GLUE


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize(
    ("name", "objective", "policy"),
    combinations.some(
        [("albert", "sop", "ngram")],
        [("roberta", "full_sentences", "token"), ("albert", "sop", "ngram")],
    ),
)
def test_trains_from_text(tmp_path, name, objective, policy):
    tiny_files.write_files(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(_MODEL))
    tiny_files.write_documents(tmp_path / "text.txt")
    scripts.run_checked(
        *(tmp_path / "made", "create_pretraining_data"),
        f"--flagfile={_CONFIGS}/{name}_records.flags",
        f"--input_file={tmp_path}/text.txt",
        f"--vocab_file={tmp_path}/vocab.txt",
        f"--output_dir={tmp_path}/records",
    )
    manifest = manifests.Manifest.read(tmp_path / "records" / "manifest.json")
    assert manifest.objective == objective
    assert manifest.masking["policy"] == policy
    assert manifest.dynamic_masking
    assert manifest.max_seq_length == 512
    scripts.run_checked(
        tmp_path / "trained",
        "run_pretraining",
        f"--flagfile={_CONFIGS}/pretrain_{name}_base.flags",
        f"--input_file={tmp_path}/records/*.tfrecord",
        f"--bert_config_file={tmp_path}/config.json",
        f"--vocab_file={tmp_path}/vocab.txt",
        f"--output_dir={tmp_path}/run",
        *_SHORT,
    )
    results = (tmp_path / "run" / "eval_results.txt").read_text()
    assert ("sentence_order_loss" in results) == (objective == "sop")
    assert "masked_lm_loss" in results
    slots = {
        variable.rpartition("/")[2]
        for variable, _ in tf.train.list_variables(str(tmp_path / "run"))
    }
    assert slots >= {"adam_m", "adam_v"}
