"""The table of benchmarks/objectives.py, at equal time, without training."""

import json
import re

from bert_tf.encoders import families
from tests import script_flags
from tools import isolation

import pytest
from absl import flags

_SEQUENCES = 24  # a second, of all models


def _write_tasks(folder):
    """Writes tables of one text and of two texts."""
    for task, names in (
        ("SST-2", ["sentence"]),
        ("QNLI", ["question", "sentence"]),
    ):
        place = folder / "glue" / task
        place.mkdir(parents=True)
        lines = ["\t".join([*names, "label"])]
        lines += [
            "\t".join([*["a b"] * len(names), str(i % 2)]) for i in range(20)
        ]
        for split in ("train", "dev"):
            (place / f"{split}.tsv").write_text("\n".join(lines) + "\n")


def _run(script, target, *options):
    """Writes what a script would write."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if script == "run_pretraining.py":
        target.mkdir()
        # The first line is of a start that is still slow.
        rates = [1, *[_SEQUENCES] * 3]
        lines = [json.dumps({"sequences_per_second": x}) for x in rates]
        (target / "metrics.jsonl").write_text("\n".join(lines))
    if script == "run_classifier.py":
        target.mkdir()
        score = 0.75 if "textcnn" in str(target) else 0.5
        (target / "eval_results.txt").write_text(f"eval_accuracy = {score}\n")
        (target / "baselines.txt").write_text(
            "baseline          accuracy  seconds\n"
            "majority class      0.5100      0.0\n"
            "TF-IDF              0.8200      1.0\n"
            "this model          0.4000        -\n"
        )
        log = target.parent / f"{target.name}.log"
        log.write_text("x\n1:00 Model: 1,234 parameters.\n")
    (target.parent / f"{target.name}.seconds").write_text("60.0\n30.0\n")


@pytest.fixture(name="made")
def _made(tmp_path, monkeypatch):
    """Yields the benchmark, and the commands that it runs."""
    _write_tasks(tmp_path)
    commands_of = []
    with script_flags.own_flags(), isolation.isolated("benchmarks"):
        from benchmarks import commands, objectives

        flags.FLAGS(
            [
                *("objectives", "--text=wiki.txt", f"--data_dir={tmp_path}"),
                *("--minutes=2", "--batch=8", "--tasks=SST-2,QNLI"),
                *(f"--output_dir={tmp_path}/out", "--seeds=1"),
            ]
        )

        def run(script, target, *options):
            done = target.parent / f"{target.name}.seconds"
            if not done.exists():
                commands_of.append([script, target, *options])
                _run(script, target, *options)

        monkeypatch.setattr(commands, "run", run)
        yield objectives, commands_of


def test_a_config_for_each_row(made):
    """All can be read, and the rows agree with what families can do."""
    objectives, _ = made
    for name, row in objectives.ALL.items():
        path = objectives.write_config(name, 0.1).partition("=")[2]
        config = families.read_config(path)
        assert config.model_type == row.family
        assert config.needs_pairs == row.needs_pairs, name
        learned = objectives.OBJECTIVES.get(name)
        if learned and not learned.starts_from:
            assert config.pretraining_head, name


def test_another_size_needs_another_folder(made):
    objectives, _ = made
    objectives.write_config("bert", 0.1)
    objectives.write_config("bert", 0.1)
    flags.FLAGS["layers"].value = 2
    with pytest.raises(SystemExit, match=r'made with .*"num_hidden_layers": 2'):
        objectives.write_config("bert", 0.1)


@pytest.mark.slow
def test_the_table(made, capsys):
    objectives, commands_of = made
    names = "baselines,textcnn,esim,gpt,ltr_then_bert"
    flags.FLAGS["objectives"].value = names.split(",")
    objectives.main([])
    printed = capsys.readouterr().out.splitlines()
    table = [x.split(" | ") for x in printed if x.count(" | ") == 5]
    assert [row[:3] for row in table[1:]] == [
        ["majority class", "51.0 ± 0.0", "51.0 ± 0.0"],
        ["TF-IDF", "82.0 ± 0.0", "82.0 ± 0.0"],
        ["textcnn", "75.0 ± 0.0", "75.0 ± 0.0"],
        ["esim", "–", "50.0 ± 0.0"],
        ["gpt", "50.0 ± 0.0", "50.0 ± 0.0"],
        ["ltr_then_bert", "50.0 ± 0.0", "50.0 ± 0.0"],
    ]
    assert [row[3:] for row in table[3:]] == [
        ["1,234", "0", "1.5"],
        ["1,234", "0", "1.5"],
        ["1,234", "1.5", "1.5"],
        ["1,234", "3.0", "1.5"],  # two runs
    ]
    assert [x for x in printed if x.startswith("gpt: with BERT's vocabulary")]
    steps = [
        re.search(r"--num_train_steps=(\d+)", " ".join(options))
        for script, _, *options in commands_of
        if script == "run_pretraining.py"
    ]
    # 2 minutes of 24 sequences/s, in batches of 8. A short run is before each.
    most = 2 * 60 * _SEQUENCES // 8
    expected = [most, most * 2 // 3, most // 3]
    assert [int(x[1]) for x in steps if x][1::2] == expected
    # What was made is not made again.
    count = len(commands_of)
    objectives.main([])
    assert len(commands_of) == count


def test_unknown_minutes(made, tmp_path):
    objectives, _ = made
    flags.FLAGS["init_checkpoint"].value = str(tmp_path / "model")
    (tmp_path / "run.log").write_text("1:00 Model: 1,234 parameters.\n")
    found = objectives.costs("ltr_then_bert", [tmp_path / "run"])
    assert found == ["1,234", "–", "–"]


def test_learning_curve(made, tmp_path):
    objectives, _ = made
    flags.FLAGS["init_checkpoint"].value = str(tmp_path)
    lines = [{"step": x, "permuted_words_loss": 9 - x} for x in (2, 4)]
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text("\n".join(map(json.dumps, lines)))
    assert objectives.learning_curve("xlnet") == {0.5: 7, 1.0: 5}
    metrics.write_text('{"step": 2}')
    with pytest.raises(SystemExit, match="has no loss to plot"):
        objectives.learning_curve("xlnet")


def test_models_of_equal_time_need_minutes(made):
    objectives, _ = made
    flags.FLAGS["minutes"].value = None
    flags.FLAGS["objectives"].value = ["bert", "gpt"]
    with pytest.raises(SystemExit, match=r"give --minutes\. Received: gpt"):
        objectives.check_input()
