"""ULMFiT's three steps by the scripts, and gradual unfreezing of a BERT."""

import shutil

import bert_tf
from bert_tf.checkpoints import tf1_files
from bert_tf.encoders import families
from tests import (
    classifier_runs,
    family_runs,
    pretraining_records,
    reference,
    tiny_model,
    trained_weights,
)
from tests.pretraining_runs import Setting, metrics

import numpy as np
import pytest

pytestmark = pytest.mark.slow

_CONFIG = {
    "model_type": "awd_lstm",
    "vocab_size": len(pretraining_records.VOCABULARY.pieces),
    "embedding_size": 16,
    "lstm_size": 24,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.05,
    "recurrent_dropout_prob": 0.05,
    "input_dropout_prob": 0.05,
}
_TRIANGLE = ("--lr_schedule=slanted_triangular", "--layer_decay=0.3846")


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("setting")
    return Setting.of_texts(folder, _CONFIG, objective="none")


@pytest.fixture(scope="module", name="language_model")
def _language_model(setting):
    output = setting.folder / "first"
    setting.finished(
        *(output, f"--vocab_file={setting.folder}/vocab.txt"),
        *("--learning_rate=0.01", "--num_train_steps=4", *_TRIANGLE),
    )
    losses = [line["loss"] for line in metrics(output)]
    assert losses[-1] < losses[0]
    return output


def _flags(setting, epochs, *flags):
    """Returns flags to fine-tune with five steps per epoch."""
    words = [f"w{x}" for x in range(6, 30)]
    table = setting.folder / "train.tsv"
    classifier_runs.write_red(table, "w5", words, 80)
    return (
        *("--do_train", f"--train_file={table}"),
        *("--max_seq_length=12", "--train_batch_size=16", *_TRIANGLE),
        *("--unfreeze=gradual", f"--num_train_epochs={epochs}"),
        *("--learning_rate=0.02", "--save_checkpoints_steps=8", *flags),
    )


def test_a_resumed_classifier_is_the_same(setting, tmp_path):
    flags = _flags(
        *(setting, 4, f"--bert_config_file={setting.folder}/config.json"),
        f"--vocab_file={setting.folder}/vocab.txt",
    )
    output, again = tmp_path / "out", tmp_path / "again"
    run = classifier_runs.run(tmp_path, *flags, f"--output_dir={output}")
    assert "and epoch 3 the embeddings, too." in run.stderr
    shutil.copytree(output, again)
    assert trained_weights.drop_last(again) == 16
    classifier_runs.run(tmp_path, *flags, f"--output_dir={again}")
    # With the moving statistics.
    trained_weights.assert_same(again, output)


@pytest.mark.exhaustive
def test_a_classifier_learns_and_answers(setting, language_model, tmp_path):
    (answer,) = bert_tf.load(language_model, top_k=3)(["w5 w6"])
    assert len(answer["pieces"]) == 3
    output = tmp_path / "out"
    classifier_runs.run(
        tmp_path,
        *_flags(setting, 30, f"--init_checkpoint={language_model}"),
        *("--do_eval", f"--dev_file={setting.folder}/train.tsv"),
        *("--do_export", f"--output_dir={output}"),
    )
    found = classifier_runs.results(output / "eval_results.txt")
    assert found["eval_accuracy"] > 0.9
    texts = ["w5 w9 w9 w8 w7", "w6 w9 w9 w8 w7"]
    served = bert_tf.load(output / "export")(texts)
    assert [x["label"] for x in served] == ["red", "other"]
    family_runs.assert_same_answers(bert_tf.load(output)(texts), served, 1e-6)


def _weights(path):
    """Returns the weights of a checkpoint, without moments."""
    return {
        name: value
        for name, value in trained_weights.read(path).items()
        if name.startswith(("bert/", "output_"))
        and not name.endswith(("/adam_m", "/adam_v"))
    }


@pytest.fixture(scope="module", name="unfrozen")
def _unfrozen(tmp_path_factory):
    """A BERT of one layer, fine-tuned in three epochs of 2.75 steps.

    Returns its flags and its folder, with a checkpoint of each step, and the
    initial weights of the encoder.
    """
    folder = tmp_path_factory.mktemp("unfrozen")
    flags = classifier_runs.write_model(folder)
    encoder = families.make(classifier_runs.MODEL)
    reference.random_weights(encoder.variables)
    trained_weights.write(folder, encoder)
    table = classifier_runs.write_table(folder / "train.tsv", 11)
    flags += [
        *(f"--init_checkpoint={folder}/model.ckpt-1", "--do_train"),
        *(f"--train_file={table}", "--unfreeze=gradual"),
        *("--num_train_epochs=3", "--warmup_proportion=0"),
        *("--save_checkpoints_steps=1", "--keep_checkpoint_max=9"),
        "--weight_decay_rate=0.1",
    ]
    output = folder / "run"
    with tiny_model.untraced():
        classifier_runs.run(folder, *flags, f"--output_dir={output}")
    return flags, output, {v.path: v.numpy() for v in encoder.variables}


def test_a_berts_layers_are_unfrozen_one_by_one(unfrozen):
    _, output, start = unfrozen
    found = {
        step: _weights(path)
        for step, path in tf1_files.numbered(str(output)).items()
    }
    assert sorted(found) == [*range(1, 9)]
    found[0] = found[1] | start

    def moved(first, last):
        return {
            name
            for name, value in found[last].items()
            if not np.array_equal(found[first][name], value)
        }

    layer = {name for name in found[8] if "/layer_0/" in name}
    embeddings = {x for x in found[8] if x.startswith("bert/embeddings/")}
    assert len(layer) == 16
    assert len(embeddings) == 5
    head = found[8].keys() - layer - embeddings
    # An epoch that ends within a step ends before it.
    assert moved(0, 2) == moved(1, 2) == head
    assert moved(2, 5) == moved(2, 3) == head | layer
    assert moved(5, 8) == moved(5, 6) == head | layer | embeddings


def test_runs_that_end_before_all_is_unfrozen(tmp_path):
    flags = classifier_runs.write_model(tmp_path)
    table = classifier_runs.write_table(tmp_path / "train.tsv", 11)
    for epochs, is_short in ((2, True), (2.9, False)):
        done = classifier_runs.run(
            *(tmp_path, *flags, "--do_train", f"--train_file={table}"),
            *("--unfreeze=gradual", f"--num_train_epochs={epochs}"),
            *(f"--output_dir={tmp_path}/out", "--check_only"),
        )
        assert ("pass --num_train_epochs=3." in done.stderr) == is_short
