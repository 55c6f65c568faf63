"""A student of each script: its loss, and that of its teacher in the log."""

import csv
import json
from typing import Any

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files
from tests import pretraining_records, scripts, tiny_files

import numpy as np
import pytest

_LABELS = {"cat": "B-pet", "dog": "B-pet", "rome": "B-loc"}


def _words(rng, count):
    return [str(x) for x in rng.choice(tiny_files.WORDS[:20], count)]


def _write_tags(path, rng):
    lines = []
    for _ in range(12):
        words = [*_words(rng, 4), "rome"]
        lines += [f"{x} {_LABELS.get(x, 'O')}" for x in words] + [""]
    path.write_text("\n".join(lines) + "\n")


def _write_questions(path, rng):
    paragraphs = []
    for i in range(12):
        context = " ".join([*_words(rng, 4), "rome", *_words(rng, 3)])
        answer = {"text": "rome", "answer_start": context.index("rome")}
        qas = [{"id": f"q{i}", "question": "where ?", "answers": [answer]}]
        paragraphs.append({"context": context, "qas": qas})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))


def _write_choices(path, rng):
    names = [*("startphrase", "sent1", "sent2"), "label"]
    names += [f"ending{i}" for i in range(4)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["", "video-id", "fold-ind", *names])
        writer.writeheader()
        for i in range(12):
            endings = {f"ending{k}": " ".join(_words(rng, 3)) for k in range(4)}
            row = {"sent1": " ".join(_words(rng, 3)), "sent2": "The"}
            row["startphrase"] = f"{row['sent1']} the"
            writer.writerow(row | endings | {"label": i % 4, "": i})


# Script -> how its data is written, its model, and the name of its loss.
_TASKS: dict[str, Any] = {
    "run_ner": (_write_tags, lambda x: heads.BertTagger(x, 3), "label"),
    "run_squad": (_write_questions, heads.BertSpanFinder, "span"),
    "run_multiple_choice": (
        _write_choices,
        heads.BertMultipleChoice,
        "choice",
    ),
}


def _run(script, *given):
    assert not scripts.run_here(script, "--do_train", *given)


def _weights(folder):
    prefix = tf1_files.latest(str(folder))
    assert prefix is not None
    return tf1_files.shapes(prefix)


def _lines(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("script", _TASKS)
def test_of_a_task(script, tmp_path):
    write, make, loss = _TASKS[script]
    write(tmp_path / "train.csv", np.random.default_rng(0))
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    tiny_files.write_model(teacher, make(modeling.Bert(tiny_files.CONFIG)))
    (teacher / "labels.txt").write_text("O\nB-pet\nB-loc\n")
    given = [
        f"--train_file={tmp_path}/train.csv",
        f"--vocab_file={teacher}/vocab.txt",
        f"--bert_config_file={teacher}/bert_config.json",
        *("--max_seq_length=20", "--train_batch_size=4", "--log_steps=1"),
        *("--num_train_epochs=1", f"--teacher={teacher}"),
        *["--max_query_length=4"] * (script == "run_squad"),
    ]
    _run(
        *(script, *given, "--hard_label_weight=0.25"),
        f"--output_dir={student}",
    )
    lines = _lines(student)
    assert len(lines) == 3
    for line in lines:
        mixed = 0.25 * line[f"{loss}_loss"] + 0.75 * line["teacher_loss"]
        assert line["loss"] == pytest.approx(mixed, rel=1e-5)
        assert line["teacher_loss"] > 0
    if script != "run_multiple_choice":
        return
    # Rows of several choices.
    layers = tmp_path / "layers"
    _run(script, *given, "--distillation=minilm", f"--output_dir={layers}")
    assert _lines(layers)[0]["relations_loss"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "losses"),
    [
        ("logits", {"masked_lm": 0.5, "next_sentence": 0.5, "teacher": 0.5}),
        ("distilbert", {"masked_lm": 2, "teacher": 5, "cosine": 1}),
        ("tinybert_layers", {"attention": 1, "hidden": 1}),
        ("minilm", {"relations": 1}),
    ],
)
def test_of_pretraining(kind, losses, tmp_path):
    pretraining_records.write(tmp_path)
    pretraining_records.write_config(tmp_path / "small.json")
    config = modeling.BertConfig(
        **pretraining_records.CONFIG | {"num_hidden_layers": 2}
    )
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    tiny_files.write_model(teacher, heads.BertPretrainer(modeling.Bert(config)))
    (teacher / "bert_config.json").write_text(config.to_json())
    for name, data in pretraining_records.VOCABULARY.files.items():
        (teacher / name).write_bytes(data)
    given = [
        f"--input_file={tmp_path}/*.tfrecord",
        f"--vocab_file={teacher}/vocab.txt",
        *("--max_seq_length=16", "--max_predictions_per_seq=4"),
        *("--train_batch_size=8", "--num_train_steps=2", "--log_steps=1"),
        *("--num_warmup_steps=1", "--learning_rate=1e-3"),
    ]
    _run(
        *("run_pretraining", *given, f"--output_dir={student}"),
        f"--bert_config_file={tmp_path}/small.json",
        *(f"--teacher={teacher}", f"--distillation={kind}"),
    )
    for line in _lines(student):
        parts = [x * line[f"{name}_loss"] for name, x in losses.items()]
        assert line["loss"] == pytest.approx(sum(parts), rel=1e-5)
    weights = _weights(student)
    assert ("objective/fit_dense/bias" in weights) == (
        kind == "tinybert_layers"
    )
