"""ELECTRA from text to an answer, through the scripts and their flagfiles."""

import json
import pathlib

from bert_tf.checkpoints import formats, names
from bert_tf.records import manifests
from tests import family_runs, scripts, tiny_files, tiny_model
from tests.family_runs import run
from tests.pretraining_runs import results

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
_MODEL = {
    "model_type": "electra",
    "vocab_size": len(tiny_files.VOCAB),
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 128,
    "hidden_act": "gelu_erf",
    "generator_hidden_size": 0.5,
}


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("electra")
    tiny_files.write_files(folder)
    (folder / "config.json").write_text(json.dumps(_MODEL))
    tiny_files.write_documents(folder / "text.txt")
    run(
        "create_pretraining_data",
        f"--flagfile={_CONFIGS}/electra_records.flags",
        f"--input_file={folder}/text.txt",
        *(f"--vocab_file={folder}/vocab.txt", f"--output_dir={folder}/records"),
    )
    _pretrain(folder)
    return folder


def _pretrain(folder, *flags):
    with tiny_model.untraced():
        run(
            "run_pretraining",
            f"--flagfile={_CONFIGS}/pretrain_electra_small.flags",
            f"--input_file={folder}/records/*.tfrecord",
            f"--bert_config_file={folder}/config.json",
            f"--vocab_file={folder}/vocab.txt",
            f"--output_dir={folder}/run",
            *("--train_batch_size=8", "--num_warmup_steps=2", "--log_steps=1"),
            *("--num_train_steps=6", "--do_eval", "--max_eval_steps=2"),
            *("--eval_batch_size=8", *flags),
        )


def test_records_are_electras(folder):
    manifest = manifests.Manifest.read(folder / "records" / "manifest.json")
    assert manifest.dynamic_masking
    assert manifest.masking["mask_share"] == 0.85
    assert manifest.masking["random_share"] == 0
    assert manifest.max_predictions_per_seq == 19


def test_results_are_the_originals(folder):
    found = results(folder / "run")
    masked = ("masked_lm_accuracy", "masked_lm_loss")
    others = ("accuracy", "loss", "precision", "recall")
    assert found.keys() == {
        *("global_step", "loss", *masked, "sampled_masked_lm_accuracy"),
        *(f"disc_{name}" for name in others),
    }
    assert found["loss"] == pytest.approx(
        found["masked_lm_loss"] + 50 * found["disc_loss"], rel=1e-4
    )
    # Some steps from chance, over all pieces.
    size = len(tiny_files.VOCAB)
    assert found["masked_lm_loss"] == pytest.approx(np.log(size), abs=0.5)
    # Evaluated again it is the same to the last digit.
    (folder / "run" / "eval_results.txt").unlink()
    _pretrain(folder, "--do_train=false")
    assert results(folder / "run") == found


def test_a_run_that_diverges_says_so(folder, tmp_path):
    """Amid a block of steps, too, where words are drawn from what is NaN."""
    done = scripts.run_checked(
        *(tmp_path / "log", "run_pretraining", "--do_train"),
        f"--input_file={folder}/records/*.tfrecord",
        f"--bert_config_file={folder}/config.json",
        *(f"--output_dir={tmp_path}/out", "--train_batch_size=8"),
        *("--learning_rate=1e10", "--num_train_steps=40"),
        "--num_warmup_steps=0",
        code=1,
    )
    assert "error: Not a finite number in steps 1 to 10: " in done.stderr


@pytest.mark.usefixtures("untraced")
def test_generator_and_discriminator_by_themselves(folder, tmp_path):
    for name, flags, head, size in (
        ("whole", (), "replaced_tokens", 16),
        ("generator", ("--generator",), "masked_lm", 8),
    ):
        for form in ("tf1", "hf"):
            path = f"{tmp_path}/{name}_{form}"
            run(
                *("convert_checkpoint", f"--input_checkpoint={folder}/run"),
                *(f"--output_format={form}", f"--output_path={path}", *flags),
            )
            source = formats.open_checkpoint(path)
            assert names.find_head(source.shapes, path) == head
            assert source.config is not None
            assert source.config.hidden_size == size
            assert source.vocab is not None
    # A word that the generator finds.
    (answer,) = family_runs.ask(
        *(tmp_path, [{"text": "the [MASK] sat"}]),
        f"--init_checkpoint={tmp_path}/generator_tf1",
    )
    assert len(answer["masks"][0]) == 5
    # It knows words, not which were replaced.
    done = scripts.run_checked(
        *(tmp_path / "log", "run_pretraining", "--do_train"),
        f"--input_file={folder}/records/*.tfrecord",
        f"--init_checkpoint={tmp_path}/generator_tf1",
        f"--output_dir={tmp_path}/more",
        code=1,
    )
    assert "error: A generator by itself is not pre-trained" in done.stderr


def test_a_classifier_from_it(folder, tmp_path):
    """Fine-tuned with rates by layer, exported and asked."""
    rows = [f"the {w} sat\t{i % 2}" for i, w in enumerate(tiny_files.WORDS)]
    file = tmp_path / "rows.tsv"
    file.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    output = tmp_path / "output"
    command = (
        *("run_classifier", f"--flagfile={_CONFIGS}/glue_electra.flags"),
        *(f"--train_file={file}", f"--dev_file={file}", f"--test_file={file}"),
        *(f"--init_checkpoint={folder}/run", f"--output_dir={output}"),
        "--max_seq_length=16",
    )
    with tiny_model.untraced():
        run(*command)
    others = (f"--do_{x}=false" for x in ("train", "eval", "predict"))
    run(*command, *others, "--do_export")
    stored = dict(tf.train.list_variables(str(output)))
    assert "output_weights" in stored
    assert not any(x.startswith(("generator", "discrimin")) for x in stored)
    found = family_runs.ask(
        *(tmp_path, [{"text_a": row.split("\t")[0]} for row in rows]),
        f"--saved_model={output}/export",
    )
    wanted = family_runs.json_lines(output / "predictions.jsonl")
    family_runs.assert_same_answers(found, wanted)


@pytest.mark.usefixtures("untraced")
def test_paraphrases_are_trained_on_in_both_orders(folder, tmp_path):
    lines = [f"{i % 2}\tthe {x}\tsat" for i, x in enumerate(tiny_files.WORDS)]
    table = "\n".join(["Quality\t#1 String\t#2 String", *lines[:9]]) + "\n"
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(table)
    done = scripts.run_checked(
        *(tmp_path / "log", "run_classifier", "--check_only"),
        f"--flagfile={_CONFIGS}/glue_electra.flags",
        *("--task_name=MRPC", f"--data_dir={tmp_path}", "--do_predict=false"),
        *(f"--init_checkpoint={folder}/run", "--max_seq_length=16"),
        f"--output_dir={tmp_path}/output",
    )
    assert "Read 18 examples for train.tf_record" in done.stderr
    assert "Read 9 examples for eval.tf_record" in done.stderr


@pytest.mark.exhaustive
def test_other_tasks_by_rates_of_layers(folder, tmp_path):
    """A first step of Adam moves each weight by about its rate."""
    file = tmp_path / "x.conll"
    file.write_text("the O\ncat B-it\nsat O\n")
    run(
        *("run_ner", "--do_train", f"--train_file={file}"),
        *(f"--init_checkpoint={folder}/run", f"--output_dir={tmp_path}/out"),
        *("--learning_rate=1e-3", "--layer_decay=0.1", "--num_train_epochs=1"),
        *("--max_seq_length=80", "--train_batch_size=1"),
        *("--warmup_proportion=0", "--optimizer=adamw_bias_corrected"),
    )
    before, after = (
        tf.train.load_checkpoint(str(x))
        for x in (folder / "run", tmp_path / "out")
    )
    for power, name in enumerate(
        ("encoder/layer_0/output/dense", "embeddings_project"), start=1
    ):
        old, new = (
            x.get_tensor(f"electra/{name}/kernel") for x in (before, after)
        )
        found = np.median(np.abs(new - old))
        assert found == pytest.approx(1e-3 * 0.1**power, rel=0.1)
