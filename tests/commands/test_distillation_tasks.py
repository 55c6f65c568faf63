"""A student of each script: its loss, and that of its teacher in the log."""

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files
from tests import (
    classifier_runs,
    combinations,
    fine_tuned,
    pretraining_records,
    scripts,
    tiny_files,
)
from tests.pretraining_runs import Setting, metrics

import pytest

pytestmark = pytest.mark.slow


def _train(script, output, *given):
    scripts.run_checked(
        *(output.parent / "log", script, "--do_train", *given),
        *("--log_steps=1", f"--output_dir={output}"),
    )
    return classifier_runs.rows(output / "metrics.jsonl")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "loss"),
    combinations.some(
        [("ner", "label")],
        [("ner", "label"), ("squad", "span"), ("multiple_choice", "choice")],
    ),
)
def test_of_a_task(name, loss, tmp_path):
    teacher = fine_tuned.trained(name)
    given = [
        *(*teacher.flags, f"--teacher={teacher.output}"),
        *(x for x in teacher.data if x.startswith("--train_file=")),
        "--num_train_epochs=0.3",
    ]
    lines = _train(
        *(teacher.script, tmp_path / "student", *given),
        "--hard_label_weight=0.25",
    )
    assert len(lines) > 1
    for line in lines:
        mixed = 0.25 * line[f"{loss}_loss"] + 0.75 * line["teacher_loss"]
        assert line["loss"] == pytest.approx(mixed, rel=1e-5)
        assert line["teacher_loss"] > 0
    if name == "multiple_choice":
        # Rows of several choices.
        lines = _train(
            *(teacher.script, tmp_path / "layers", *given),
            "--distillation=minilm",
        )
        assert lines[0]["relations_loss"] > 0


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize(
    ("kind", "losses"),
    combinations.some(
        [("distilbert", {"masked_lm": 2, "teacher": 5, "cosine": 1})],
        [
            (
                "logits",
                {"masked_lm": 0.5, "next_sentence": 0.5, "teacher": 0.5},
            ),
            ("distilbert", {"masked_lm": 2, "teacher": 5, "cosine": 1}),
            ("tinybert_layers", {"attention": 1, "hidden": 1}),
            ("minilm", {"relations": 1}),
        ],
    ),
)
def test_of_pretraining(kind, losses, tmp_path):
    setting = Setting.make(tmp_path)
    config = modeling.BertConfig(
        **pretraining_records.CONFIG | {"num_hidden_layers": 2}
    )
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    tiny_files.write_model(teacher, heads.BertPretrainer(modeling.Bert(config)))
    (teacher / "bert_config.json").write_text(config.to_json())
    for name, data in pretraining_records.VOCABULARY.files.items():
        (teacher / name).write_bytes(data)
    setting.finished(
        *(student, f"--vocab_file={teacher}/vocab.txt"),
        *(f"--teacher={teacher}", f"--distillation={kind}"),
    )
    for line in metrics(student):
        parts = [x * line[f"{name}_loss"] for name, x in losses.items()]
        assert line["loss"] == pytest.approx(sum(parts), rel=1e-5)
    prefix = tf1_files.latest(str(student))
    assert prefix is not None
    has_fit = "objective/fit_dense/bias" in tf1_files.shapes(prefix)
    assert has_fit == (kind == "tinybert_layers")
