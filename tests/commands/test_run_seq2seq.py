"""Runs run_seq2seq.py on tiny texts: the words of a source in reverse."""

import dataclasses
import json
import pathlib
import re
import shutil
from typing import Any

import bert_tf
from bert_tf import heads, modeling
from bert_tf.checkpoints import formats
from tests import (
    classifier_runs,
    scripts,
    store,
    tiny_files,
    trained_weights,
)

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401 (registers the tokenizer's op)

pytestmark = pytest.mark.slow

pytest.importorskip("sacrebleu", reason="needs the extra `seq2seq`")

CONFIG = dataclasses.replace(
    tiny_files.CONFIG,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=1,
    attention_probs_dropout_prob=0.0,
    hidden_dropout_prob=0.0,
    initializer_range=0.2,
)
WORDS = ["cat", "dog", "bird", "fish"]
FLAGS = (
    *("--max_seq_length=8", "--max_target_length=7", "--beam_size=2"),
    *("--train_batch_size=16", "--eval_batch_size=8", "--learning_rate=0.005"),
    *("--num_train_epochs=2", "--optimizer=adamw_bias_corrected"),
    "--metric=loss",
)


def write_data(folder):
    rng = np.random.default_rng(0)
    for name, number in (("train", 800), ("dev", 12), ("test", 9)):
        rows = [rng.choice(WORDS, 1 + i % 2).tolist() for i in range(number)]
        sources = [" ".join(row) for row in rows]
        targets = [" ".join(row[::-1]) for row in rows]
        (folder / f"{name}.src").write_text("\n".join(sources) + "\n")
        (folder / f"{name}.tgt").write_text("\n".join(targets) + "\n")
        with (folder / f"{name}.jsonl").open("w") as file:
            for source, target in zip(sources, targets, strict=True):
                row = {"from": source, "to": target}
                file.write(json.dumps(row) + "\n")


def write_bert(folder):
    made = heads.BertMaskedLM(modeling.Bert(CONFIG))
    tiny_files.write_model(folder, made)
    (folder / "bert_config.json").write_text(CONFIG.to_json())


def make_run(folder):
    """Writes data, a BERT and a run that starts from it."""
    write_data(folder)
    write_bert(folder / "bert")
    run(folder / "log", *of_run(folder), f"--output_dir={folder}/output")


def of_run(folder):
    flags = [
        f"--{split}_{kind}={folder}/{split}.{end}"
        for split in ("train", "dev", "test")
        for kind, end in (("file", "src"), ("target_file", "tgt"))
    ]
    return [
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        *(*flags, *FLAGS, f"--init_checkpoint={folder}/bert"),
        *("--save_checkpoints_steps=95", "--share_weights=embeddings"),
    ]


def run(log, *arguments, code=0):
    return scripts.run_checked(log, "run_seq2seq", *arguments, code=code)


@pytest.fixture(scope="module")
def folder():
    return store.made("seq2seq", make_run)


def lines(path):
    return pathlib.Path(path).read_text().splitlines()


class TestRun:
    def test_learns_to_reverse(self, folder):
        results = classifier_runs.results(folder / "output/eval_results.txt")
        assert results["eval_rouge1"] == results["eval_chrf"] == 100
        assert results["eval_loss"] < 0.2
        found = lines(folder / "output/test_predictions.txt")
        assert found == lines(folder / "test.tgt")
        tested = classifier_runs.results(folder / "output/test_results.txt")
        assert tested.keys() == results.keys()
        log = scripts.Finished(folder / "log").stderr
        for text in (
            "Read 800 pairs for train.tf_record; 0 sources were longer than 8",
            "as expected for a new head, start from random values",
            "values: decoder/layer_0/* (10 variables)",
            "Wrote 9 texts to",
        ):
            assert text in log

    def test_export_writes_the_same_texts(self, folder):
        expected = lines(folder / "output/test_predictions.txt")
        sources = lines(folder / "test.src")
        served = tf.saved_model.load(str(folder / "output/export"))
        found = served(tf.constant(sources))
        assert [x.decode() for x in found["target"].numpy()] == expected
        loaded = bert_tf.load(str(folder / "output"))
        answers = [loaded(source) for source in sources]
        assert [answer["target"] for answer in answers] == expected
        np.testing.assert_allclose(
            [answer["score"] for answer in answers], found["score"], rtol=1e-4
        )

    @pytest.mark.usefixtures("untraced")
    def test_the_examples_of_the_page(self, folder):
        page = pathlib.Path(__file__).resolve().parents[2] / "docs/seq2seq.md"
        values: dict[str, Any] = {}
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            exec(code.replace("/tmp/multi30k", f"{folder}/output"), values)
        answer = values["translate"](lines(folder / "test.src")[1])
        assert answer["target"] == lines(folder / "test.tgt")[1]

    def test_a_killed_run_ends_with_the_same_weights(self, folder, tmp_path):
        again = tmp_path / "again"
        shutil.copytree(folder / "output", again)
        trained_weights.drop_last(again)
        others = (f"--do_{x}=false" for x in ("eval", "predict", "export"))
        command = (*of_run(folder), *others, f"--output_dir={again}")
        run(tmp_path / "log", *command)
        trained_weights.assert_same(again, folder / "output")

    def test_the_best_is_not_compared_with_other_scores(self, folder, tmp_path):
        flags = [*of_run(folder), f"--output_dir={folder}/output"]
        done = run(
            *(tmp_path / "log", *flags, "--metric=bleu", "--check_only"), code=1
        )
        problem = "chosen by other scores: metric was loss and is bleu. Give"
        assert problem in done.lines[-1]

    @pytest.mark.usefixtures("untraced")
    def test_a_table_and_the_weights_of_a_run(self, folder, tmp_path):
        """The beams are those of the run unless others are given."""
        first, *rows = lines(folder / "test.jsonl")
        first = json.dumps({**json.loads(first), "to": None})
        (tmp_path / "test.jsonl").write_text("\n".join([first, *rows]))
        flags = (
            *("--do_predict", f"--test_file={tmp_path}/test.jsonl"),
            *("--source_column=from", "--target_column=to"),
            f"--init_checkpoint={folder}/output",
        )
        done = run(tmp_path / "log", *flags, f"--output_dir={tmp_path}/out")
        name = "test_predictions.txt"
        before = (folder / "output" / name).read_text()
        assert (tmp_path / "out" / name).read_text() == before
        log = "No scores of --test_file: 1 of its 9 rows have no target."
        assert log in done.stderr
        assert "read in a different way" not in done.stderr
        assert not (tmp_path / "out/test_results.txt").exists()

    @pytest.mark.usefixtures("untraced")
    def test_check_only(self, folder, tmp_path):
        done = run(
            *(tmp_path / "log", *of_run(folder), "--check_only"),
            *("--do_export=false", f"--output_dir={tmp_path}/out"),
        )
        assert "Found nothing that would stop this run" in done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_a_transformer_from_random_weights(folder, tmp_path):
    """With tables, a dev loss, two replicas and accumulated gradients."""
    config = {
        "model_type": "vaswani",
        "vocab_size": len(tiny_files.VOCAB),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run(
        *(tmp_path / "log", "--do_train", "--do_eval", "--metric=loss"),
        *(f"--train_file={folder}/train.jsonl", "--source_column=from"),
        *(f"--dev_file={folder}/dev.jsonl", "--target_column=to", *FLAGS),
        *("--num_train_epochs=0.2", "--lr_schedule=inverse_sqrt"),
        *("--distribution_strategy=mirrored", "--logical_cpus=2"),
        *("--gradient_accumulation_steps=2", "--group_by_length"),
        f"--bert_config_file={tmp_path}/config.json",
        f"--vocab_file={folder}/bert/vocab.txt",
        f"--output_dir={tmp_path}/out",
    )
    assert "Starting from random weights" in done.stderr
    found = formats.open_checkpoint(str(tmp_path / "out"))
    assert "bert/embeddings/position_embeddings" not in found.shapes
    results = classifier_runs.results(tmp_path / "out/eval_results.txt")
    assert results["eval_loss"] < np.log(len(tiny_files.VOCAB))


def test_an_lstm_with_attention(folder, tmp_path):
    """Its export writes what it learned."""
    config = {
        "model_type": "bilstm_attention",
        "vocab_size": len(tiny_files.VOCAB),
        "hidden_size": 32,
        "embedding_size": 32,
        "num_hidden_layers": 1,
        "hidden_dropout_prob": 0.0,
        "initializer_range": 0.2,
        "max_position_embeddings": 32,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = tmp_path / "out"
    run(
        *(tmp_path / "log", "--do_train", "--do_export", *FLAGS[:-1]),
        *(f"--train_file={folder}/train.jsonl", "--source_column=from"),
        *("--target_column=to", "--learning_rate=0.01"),
        *("--num_train_epochs=4", f"--output_dir={out}"),
        f"--bert_config_file={tmp_path}/config.json",
        f"--vocab_file={folder}/bert/vocab.txt",
    )
    served = tf.saved_model.load(str(out / "export"))
    found = served(tf.constant(lines(folder / "test.src")))
    texts = [x.decode() for x in found["target"].numpy()]
    assert texts == lines(folder / "test.tgt")


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--train_file=none.tsv"], "There is no such file"),
        (["--max_target_length=64"], "number of positions of the model, 32"),
        (["--max_seq_length=64"], "is more than the model has positions for"),
        (["--teacher=x"], "There is no flag --teacher"),
        (["--beam_size=0"], "beam_size=0"),
        (["--beam_size=1001"], "at most 1000"),
        (["--label_smoothing=1"], "label_smoothing=1"),
        (["--share_weights=some"], "none, embeddings, all"),
        (["--train_batch_size=4000"], "too few examples"),
    ],
)
def test_bad_input_in_one_line(flags, words, folder, tmp_path):
    done = scripts.run(
        *(tmp_path / "log", "run_seq2seq", *of_run(folder), "--check_only"),
        *("--do_export=false", *flags, f"--output_dir={tmp_path}/out"),
    )
    assert done.wait() == 1
    assert "Traceback" not in done.stderr
    assert words in done.lines[-1]
