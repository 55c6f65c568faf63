"""The published tasks: GLUE, its diagnostic set and XNLI.

Labels are in the original's order; files and columns are as downloaded.
"""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.tasks.classification import classification_task

_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("contradiction", "entailment", "neutral")
_TFDS_NLI = ("entailment", "neutral", "contradiction")
_TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}


def _splits(
    text_a: str, text_b: str | None, label: str
) -> dict[str, classification_task.Split]:
    """Returns the splits of a task whose three files have headers."""
    labelled = {
        split: classification_task.Split(f"{split}.tsv", text_a, text_b, label)
        for split in ("train", "dev")
    }
    return labelled | {
        "test": classification_task.Split("test.tsv", text_a, text_b)
    }


_TASKS = (
    classification_task.Task(
        name="CoLA",
        labels=("0", "1"),
        metrics=("matthews_correlation", "accuracy"),
        splits={
            "train": classification_task.Split(
                "train.tsv", 3, None, 1, has_header=False
            ),
            "dev": classification_task.Split(
                "dev.tsv", 3, None, 1, has_header=False
            ),
            "test": classification_task.Split("test.tsv", "sentence"),
        },
        server_files={"test": "CoLA.tsv"},
        tfds=classification_task.Tfds(
            "glue/cola", "sentence", None, ("0", "1"), _TFDS_SPLITS
        ),
    ),
    classification_task.Task(
        name="SST-2",
        labels=("0", "1"),
        metrics=("accuracy",),
        splits=_splits("sentence", None, "label"),
        server_files={"test": "SST-2.tsv"},
        tfds=classification_task.Tfds(
            "glue/sst2", "sentence", None, ("0", "1"), _TFDS_SPLITS
        ),
    ),
    classification_task.Task(
        name="MRPC",
        labels=("0", "1"),
        metrics=("f1", "accuracy"),
        splits=_splits("#1 String", "#2 String", "Quality"),
        server_files={"test": "MRPC.tsv"},
        tfds=classification_task.Tfds(
            "glue/mrpc", "sentence1", "sentence2", ("0", "1"), _TFDS_SPLITS
        ),
        is_symmetric=True,
    ),
    classification_task.Task(
        name="STS-B",
        labels=None,
        metrics=("spearman", "pearson"),
        splits=_splits("sentence1", "sentence2", "score"),
        server_files={"test": "STS-B.tsv"},
        tfds=classification_task.Tfds(
            "glue/stsb", "sentence1", "sentence2", (), _TFDS_SPLITS
        ),
        is_symmetric=True,
        score_range=(0, 5),
    ),
    classification_task.Task(
        name="QQP",
        labels=("0", "1"),
        metrics=("f1", "accuracy"),
        splits=_splits("question1", "question2", "is_duplicate"),
        server_files={"test": "QQP.tsv"},
        tfds=classification_task.Tfds(
            "glue/qqp", "question1", "question2", ("0", "1"), _TFDS_SPLITS
        ),
        # A few released questions contain line breaks, which break their rows.
        skips_short_rows=True,
    ),
    classification_task.Task(
        name="MNLI",
        labels=_NLI,
        metrics=("accuracy",),
        splits={
            split: classification_task.Split(
                f"{split_file}.tsv", "sentence1", "sentence2", label
            )
            for split, split_file, label in (
                ("train", "train", "gold_label"),
                ("dev", "dev_matched", "gold_label"),
                ("dev_mismatched", "dev_mismatched", "gold_label"),
                ("test", "test_matched", None),
                ("test_mismatched", "test_mismatched", None),
            )
        },
        server_files={"test": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
        tfds=classification_task.Tfds(
            "glue/mnli",
            "premise",
            "hypothesis",
            _TFDS_NLI,
            {
                "train": "train",
                "dev": "validation_matched",
                "dev_mismatched": "validation_mismatched",
                "test": "test_matched",
                "test_mismatched": "test_mismatched",
            },
        ),
    ),
    classification_task.Task(
        name="QNLI",
        labels=_ENTAILMENT,
        metrics=("accuracy",),
        splits=_splits("question", "sentence", "label"),
        server_files={"test": "QNLI.tsv"},
        tfds=classification_task.Tfds(
            "glue/qnli", "question", "sentence", _ENTAILMENT, _TFDS_SPLITS
        ),
    ),
    classification_task.Task(
        name="RTE",
        labels=_ENTAILMENT,
        metrics=("accuracy",),
        splits=_splits("sentence1", "sentence2", "label"),
        server_files={"test": "RTE.tsv"},
        tfds=classification_task.Tfds(
            "glue/rte", "sentence1", "sentence2", _ENTAILMENT, _TFDS_SPLITS
        ),
    ),
    classification_task.Task(
        name="WNLI",
        labels=("0", "1"),
        metrics=("accuracy",),
        splits=_splits("sentence1", "sentence2", "label"),
        server_files={"test": "WNLI.tsv"},
        tfds=classification_task.Tfds(
            "glue/wnli", "sentence1", "sentence2", ("0", "1"), _TFDS_SPLITS
        ),
    ),
    # GLUE's diagnostic set: predictions of a model fine-tuned on MNLI.
    classification_task.Task(
        name="AX",
        labels=_NLI,
        metrics=("matthews_correlation",),
        splits={
            "test": classification_task.Split(
                "diagnostic.tsv", "sentence1", "sentence2"
            )
        },
        server_files={"test": "AX.tsv"},
        tfds=classification_task.Tfds(
            "glue/ax", "premise", "hypothesis", _TFDS_NLI, {"test": "test"}
        ),
    ),
)


def _xnli(language: str) -> classification_task.Task:
    """Returns XNLI in one language, trained on translated MultiNLI."""
    evaluation = classification_task.Split(
        "xnli.dev.tsv",
        "sentence1",
        "sentence2",
        "gold_label",
        where=("language", language),
    )
    train = f"multinli/multinli.train.{language}.tsv"
    return classification_task.Task(
        name="XNLI",
        labels=_NLI,
        metrics=("accuracy",),
        splits={
            # By number, as in the original: the header's third name is "label".
            "train": classification_task.Split(train, 0, 1, 2),
            "dev": evaluation,
            "test": dataclasses.replace(evaluation, file="xnli.test.tsv"),
        },
        aliases={"contradictory": "contradiction"},
    )


_BY_KEY = {task.name.lower().replace("-", ""): task for task in _TASKS}
NAMES = (*(task.name for task in _TASKS), "XNLI")


def find(name: str, xnli_language: str = "zh") -> classification_task.Task:
    """Finds a task by name in any usual spelling: MRPC, sst2, sts-b.

    Raises InputError for an unknown name.
    """
    key = "".join(letter for letter in name.lower() if letter.isalnum())
    if key == "xnli":
        return _xnli(xnli_language)
    if key not in _BY_KEY:
        raise InputError(
            f"Unknown task. Expected one of {', '.join(NAMES)}, or your own "
            "files by --train_file, --dev_file, --test_file. "
            f"Received: task_name={name}"
        )
    return _BY_KEY[key]


def check_server_files(task: classification_task.Task) -> None:
    """Raises InputError if the GLUE server takes no file for the task."""
    if not task.server_files:
        raise InputError(
            "--glue_server_files is for the tasks of GLUE. "
            f"Received: task_name={task.name}"
        )
