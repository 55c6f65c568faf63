"""Runs run_classifier.py --search, whose trials are runs of the script."""

import json

import bert_tf
from bert_tf import modeling
from bert_tf.tasks import search
from tests import classifier_runs, combinations, tiny_files, trained_weights

import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra `search`")


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    table = classifier_runs.write_table(folder / "table.tsv", 12)
    return [
        *classifier_runs.write_model(folder),
        *(f"--train_file={table}", f"--dev_file={table}"),
        *("--do_train=true", "--do_eval=true", "--num_train_epochs=1"),
        "--search_space=learning_rate=0.01,0.001",
    ]


def _trials(folder):
    study = optuna.load_study(
        study_name="search", storage=f"sqlite:///{folder}/study.db"
    )
    return study.get_trials()


def _starts(folder):
    """Counts the processes of each trial."""
    return [
        (path.parent.name, path.read_text().count("\n$ "))
        for path in sorted(folder.glob("trial-*/log.txt"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("count", combinations.some([1], [1, 2]))
def test_trials_are_runs_and_the_best_is_copied(count, flags, tmp_path):
    output, config = tmp_path / "output", tmp_path / "config.json"
    fields = ("vocab_size", "max_position_embeddings")
    model = {name: classifier_runs.CONFIG[name] for name in fields}
    model |= {"model_type": "textcnn", "embedding_size": 8, "hidden_size": 6}
    config.write_text(json.dumps(model))
    given = [*flags, f"--output_dir={output}", f"--search={count}"]
    given.append(f"--bert_config_file={config}")  # starts sooner than BERT
    given.append("--do_lower_case=true")  # the default
    done = classifier_runs.run(tmp_path, *given)
    trials = _trials(output)
    assert [x.state.name for x in trials] == ["COMPLETE"] * count
    rates = {x.params["learning_rate"] for x in trials}
    assert len(rates) == count
    assert rates <= {"0.01", "0.001"}
    for trial in trials:
        folder = output / f"trial-{trial.number:03d}"
        command, *_ = (folder / "log.txt").read_text().splitlines()
        assert " --do_lower_case=true " in command
        kept = (folder / "flags.txt").read_text()
        rate = float(trial.params["learning_rate"])
        assert f"\n--learning_rate={rate}\n" in kept
        assert "--search=" not in kept
        results = classifier_runs.results(folder / "eval_results.txt")
        assert trial.value == results["eval_accuracy"]
    table = (output / "table.md").read_text()
    assert table in done.stdout
    chosen = max(trials, key=lambda trial: trial.value)
    assert f"trial-{chosen.number:03d}" in table.split(" (best)")[0]
    folder = output / f"trial-{chosen.number:03d}"
    copied = output / "best"
    assert {x.name: x.read_bytes() for x in copied.iterdir()} == {
        x.name: x.read_bytes()
        for x in (
            *(folder / "flags.txt", folder / "train_examples.json"),
            *(folder / "best").iterdir(),
        )
    }

    # Its model has config, vocabulary and labels in best/ alone.
    assert set(bert_tf.load(output)("a film")["probabilities"]) == {
        "neg",
        "pos",
    }
    (table,) = (x for x in flags if x.startswith("--dev_file="))
    classifier_runs.run(
        *(tmp_path, "--do_predict", "--check_only", f"--output_dir={output}"),
        table.replace("dev_file", "test_file"),
    )

    before = _starts(output)
    again = classifier_runs.run(tmp_path, *given)
    assert again.stdout == done.stdout
    assert _starts(output) == before
    other = [*given, "--max_seq_length=10"]
    refused = classifier_runs.run(tmp_path, *other, code=1)
    assert "max_seq_length was 12 and is 10" in refused.lines[-1]


def test_casing_of_a_search_that_is_resumed(flags, tmp_path, monkeypatch):
    """An earlier version kept the default, and trials had the model's."""
    start, output = tmp_path / "start", tmp_path / "output"

    def run(*_):
        (output / "study.db").touch()
        return []

    monkeypatch.setattr(search.Search, "run", run)
    start.mkdir()
    tiny_files.write_files(start, classifier_runs.MODEL)
    vocab = start / "vocab.txt"
    *words, last = vocab.read_text().splitlines()
    vocab.write_text("\n".join([*words, last.upper()]))
    trained_weights.write(start, modeling.Bert(classifier_runs.MODEL))
    (start / "flags.txt").write_text("--do_lower_case=false\n")
    given = [*flags[2:], f"--output_dir={output}", f"--init_checkpoint={start}"]
    given.append("--search=1")
    classifier_runs.run(tmp_path, *given)
    kept = output / "flags.txt"
    own = kept.read_text()
    assert "\n--do_lower_case=false\n" in own
    kept.write_text(own.replace("lower_case=false", "lower_case=true"))
    classifier_runs.run(tmp_path, *given)
    assert "\n--do_lower_case=false\n" in kept.read_text()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "learning_rate=0.1,x",
            "--search_space: --learning_rate must be a number, at least 0. "
            "Received: learning_rate=x",
        ),
        ("train_batch_size=0", "--train_batch_size must be a whole number, at"),
        ("group_by_length=maybe", "--search_space: "),
        ("data_dir=a,b", "--search_space must be values of flags of training"),
        ("log_steps=1,2", "--search_space must be values of flags of training"),
        ("rate=1", "--search_space must be values of flags of training or of"),
        (
            "seed=1 , 1",
            "--search_space must list each flag and each value once.",
        ),
        ("seed=1 seed=2", "--search_space must list each flag and each value"),
        (" ", "--search_space must list flags, such as learning_rate=3e-5"),
        (
            "learning_rate=0.1,0.2 max_seq_length=8,4096",
            "--search_space has values that fail together (learning_rate=0.1 "
            "max_seq_length=4096): ",
        ),
        (
            "train_batch_size=4,6 gradient_accumulation_steps=1,4",
            "(train_batch_size=6 gradient_accumulation_steps=4): "
            "--train_batch_size must be a multiple of",
        ),
        (
            "clipping=global,per_replica unfreeze=none,gradual",
            "`unfreeze` goes with",
        ),
        ("num_cooldown_steps=1", "goes with --lr_schedule"),
    ],
)
def test_spaces_that_are_wrong(flags, tmp_path, given, problem):
    output = tmp_path / "output"
    done = classifier_runs.run(
        *(tmp_path, *flags, "--search=2", f"--search_space={given}"),
        *(f"--output_dir={output}",),
        code=1,
    )
    assert problem in done.lines[-1], done.lines[-1]
    assert not output.exists()


def test_a_single_run_in_the_folder_of_a_search(flags, tmp_path):
    folder = tmp_path / "search"
    folder.mkdir()
    (folder / "study.db").touch()
    (folder / "flags.txt").write_text("--do_train=true\n")
    own = [x for x in flags if not x.startswith("--search_space")]
    given = (*own, "--do_predict=true", f"--output_dir={folder}")
    for trains, is_wrong in (("true", True), ("false", False)):
        done = classifier_runs.run(
            *(tmp_path, *given, f"--do_train={trains}"), code=1
        )
        found = "training would replace its best weights" in done.lines[-1]
        assert found == is_wrong, done.lines[-1]
    assert {x.name for x in folder.iterdir()} == {"flags.txt", "study.db"}


def test_what_a_search_does_not_do(flags, tmp_path):
    for given, problem in (
        ("--do_predict=true", "A search does not support --do_predict."),
        ("--do_export=true", "A search does not support --do_export."),
        (
            "--distribution_strategy=multi_worker_mirrored",
            "A search runs its trials on one machine.",
        ),
        ("--do_eval=false", "--search goes with --do_eval"),
        (
            "--search_space=seed=1,2 --dev_fraction=0.5",
            "Trials with different seeds and --dev_fraction would be scored on",
        ),
    ):
        done = classifier_runs.run(
            *(tmp_path, *flags, "--search=2", *given.split()),
            f"--output_dir={tmp_path}/output",
            code=1,
        )
        assert problem in done.lines[-1]
