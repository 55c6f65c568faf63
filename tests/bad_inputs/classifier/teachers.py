"""Wrong teachers of run_classifier.py."""

import json
import pathlib

from tests import tiny_files
from tests.bad_inputs import damaged, matrix


def _teacher(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a student of the run."""
    return matrix.Case({"teacher": "{data}/run", **flags}, line)


_LAYERS: dict[str, str | None] = {"do_eval": None, "dev_file": None}


def _random(name: str) -> dict[str, str | None]:
    """A student of random weights, of a config that `write` wrote."""
    return {
        **_LAYERS,
        "init_checkpoint": None,
        "vocab_file": "{data}/model/vocab.txt",
        "bert_config_file": f"{{data}}/students/{name}.json",
    }


CASES: dict[str, matrix.Case] = {
    "teacher that is not there": _teacher(
        "There is no checkpoint {data}/none", teacher="{data}/none/"
    ),
    "teacher without a head": _teacher(
        "The teacher {data}/model/bert_model.ckpt has no classification head",
        teacher="{data}/model",
    ),
    "teacher in output_dir": _teacher(
        "--teacher lies in --output_dir, where the student's weights",
        teacher="{data}/run/best",
        output_dir="{data}/run",
    ),
    "teacher of other labels": _teacher(
        "has other labels than the student: bad, good. Give a teacher of the "
        "same task, in whatever order. Received: labels=good, so",
        train_file="{data}/other_labels.tsv",
        dev_file="{data}/other_labels.tsv",
    ),
    "teacher of labels for a score": _teacher(
        "bad, good. Give a teacher of the same task, in whatever order. "
        "Received: labels=none, a score",
        train_file="{data}/scores.tsv",
        dev_file="{data}/scores.tsv",
        regression="true",
    ),
    "teacher of one label for several": _teacher(
        "was trained on texts with one label each: give one that was",
        label_separator=",",
    ),
    "teacher of other pieces": _teacher(
        "must have the same vocabulary, and that of the student is not the one "
        "of {data}/teachers/pieces/best/",
        teacher="{data}/teachers/pieces/best",
    ),
    "teacher without a vocabulary": _teacher(
        "same vocabulary, and none lies beside the teacher {data}/teachers/no_",
        teacher="{data}/teachers/no_vocab/best",
    ),
    "teacher without a config": _teacher(
        "The architecture of the teacher {data}/teachers/no_config/best/",
        teacher="{data}/teachers/no_config/best",
    ),
    "teacher of another casing": _teacher(
        "was trained with do_lower_case=False: it would read other pieces",
        teacher="{data}/teachers/cased/best",
    ),
    # ---- Ways to learn
    "kind without a teacher": matrix.Case(
        {"distillation": "minilm"}, "--distillation goes with --teacher or"
    ),
    "temperature without a teacher": matrix.Case(
        {"temperature": "2"}, "--temperature goes with --teacher or without"
    ),
    "temperature of nothing": _teacher(
        "--temperature must be a number, above 0.", temperature="0"
    ),
    "weight above 1": _teacher(
        "--hard_label_weight must be a number, at least 0 and at most 1.",
        hard_label_weight="1.5",
    ),
    "temperature of layers": _teacher(
        "--temperature goes with --distillation=distilbert or",
        **_LAYERS,
        distillation="minilm",
        temperature="2",
    ),
    "relation heads of logits": _teacher(
        "--relation_heads goes with --distillation=minilm", relation_heads="2"
    ),
    "unknown kind": _teacher(
        "--distillation must be one of logits, distilbert, tinybert_layers,",
        distillation="tinybert",
    ),
    "kind of pre-training": _teacher(
        "--distillation=distilbert is for run_pretraining.py: it learns words.",
        distillation="distilbert",
    ),
    "layers with an evaluation": _teacher(
        "--distillation=minilm trains layers and no head, so there is nothing "
        "to ask the model: leave out --do_eval.",
        distillation="minilm",
    ),
    "layers that are not kept": _teacher(
        "--distillation=minilm compares what is inside layers, and --remat",
        **_LAYERS,
        distillation="minilm",
        remat="true",
    ),
    "layers that do not divide": _teacher(
        "Received: 3 layers, the teacher has 2",
        **_random("deep"),
        distillation="tinybert_layers",
    ),
    "heads that are not as many": _teacher(
        "Use --distillation=minilm, whose relations need no equal heads. "
        "Received: num_attention_heads=4, the teacher's 2",
        **_random("heads"),
        distillation="tinybert_layers",
    ),
    "layers under others": _teacher(
        "Learn the layers of model_type=left_to_right, then start from them. "
        "Received: model_type=left_to_right_bilstm",
        **_random("bilstm"),
        distillation="tinybert_layers",
    ),
    "relation heads that do not divide": _teacher(
        "must divide both widths, such as 8. Received: relation_heads=3,",
        **_LAYERS,
        distillation="minilm",
        relation_heads="3",
    ),
}


def _other_piece(folder: pathlib.Path) -> None:
    path = folder / "best" / "vocab.txt"
    path.write_text(path.read_text().replace("\ncat\n", "\ncow\n"))


def _cased(folder: pathlib.Path) -> None:
    path = folder / "flags.txt"
    path.write_text(path.read_text().replace("case=true", "case=false"))


def write(folder: pathlib.Path) -> None:
    """Writes teachers and students, once there is a run."""
    damaged.write_changed(
        folder / "run",
        folder / "teachers",
        {
            "pieces": _other_piece,
            "cased": _cased,
            "no_vocab": damaged.without("best/vocab.txt"),
            "no_config": damaged.without("best/bert_config.json"),
        },
    )
    (folder / "students").mkdir()
    for name, change in (
        ("deep", {"num_hidden_layers": 3}),
        ("heads", {"num_attention_heads": 4}),
        ("bilstm", {"model_type": "left_to_right_bilstm"}),
    ):
        values = json.loads(tiny_files.CONFIG.to_json()) | change
        (folder / "students" / f"{name}.json").write_text(json.dumps(values))
