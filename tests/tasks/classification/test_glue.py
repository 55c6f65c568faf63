import csv

from bert_tf.tasks import tables
from bert_tf.tasks.classification import (
    classification_metrics,
    classification_task,
    glue,
)

import numpy as np
import pytest
import tensorflow_datasets as tfds

_MNLI = "index\tpromptID\tpairID\tgenre\tp1\tp2\tp3\tp4\tsentence1\tsentence2"

# Task, split, the file in the layout of the task's download, and the result.
_FILES = [
    ("cola", "train", "train.tsv", "gj04\t0\t*\tBad it.\n", "Bad it.", "", "0"),
    ("cola", "dev", "dev.tsv", "gj04\t1\t\tIt ran.\n", "It ran.", "", "1"),
    ("cola", "test", "test.tsv", "index\tsentence\n0\tIt.\n", "It.", "", None),
    ("sst2", "dev", "dev.tsv", "sentence\tlabel\nfun \t1\n", "fun ", "", "1"),
    ("sst2", "test", "test.tsv", "index\tsentence\n0\tfun\n", "fun", "", None),
    (
        *("mrpc", "train", "train.tsv"),
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t"A b\tC\n',
        *('"A b', "C", "1"),
    ),
    (
        *("mrpc", "test", "test.tsv"),
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tA b\tC\n",
        *("A b", "C", None),
    ),
    (
        *("stsb", "dev", "dev.tsv"),
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\t"
        "sentence2\tscore\n0\tg\tf\t2012\t1\tn\tn\tA.\tB.\t2.400\n",
        *("A.", "B.", 2.4),
    ),
    (
        *("qqp", "dev", "dev.tsv"),
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tA?\tB?\t0\n",
        *("A?", "B?", "0"),
    ),
    (
        *("qqp", "test", "test.tsv"),
        "id\tquestion1\tquestion2\n0\tA?\tB?\n",
        *("A?", "B?", None),
    ),
    (
        *("mnli", "train", "train.tsv"),
        f"{_MNLI}\tlabel1\tgold_label\n"
        + "x\t" * 8
        + "A\tB\tneutral\tneutral\n",
        *("A", "B", "neutral"),
    ),
    (
        *("mnli", "dev_mismatched", "dev_mismatched.tsv"),
        f"{_MNLI}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        + "x\t" * 8
        + "A\tB"
        + "\tneutral" * 5
        + "\tentailment\n",
        *("A", "B", "entailment"),
    ),
    (
        *("mnli", "test_mismatched", "test_mismatched.tsv"),
        f"{_MNLI}\n" + "x\t" * 8 + "A\tB\n",
        *("A", "B", None),
    ),
    (
        *("qnli", "dev", "dev.tsv"),
        "index\tquestion\tsentence\tlabel\n0\tA?\tB.\tnot_entailment\n",
        *("A?", "B.", "not_entailment"),
    ),
    (
        *("rte", "dev", "dev.tsv"),
        "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tentailment\n",
        *("A.", "B.", "entailment"),
    ),
    (
        *("wnli", "dev", "dev.tsv"),
        "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\t1\n",
        *("A.", "B.", "1"),
    ),
    (
        *("ax", "test", "diagnostic.tsv"),
        "index\tsentence1\tsentence2\n0\tA.\tB.\n",
        *("A.", "B.", None),
    ),
]


@pytest.mark.parametrize(
    ("name", "split", "file", "text", "text_a", "text_b", "label"), _FILES
)
def test_every_file_of_glue(
    tmp_path, name, split, file, text, text_a, text_b, label
):
    (tmp_path / file).write_text(text, encoding="utf-8")
    line = text.count("\n")
    assert list(
        classification_task.read(glue.find(name), str(tmp_path), split)
    ) == [tables.Example(f"{split}-{line}", text_a, text_b, label)]


def test_xnli_takes_the_rows_of_one_language(tmp_path):
    (tmp_path / "multinli").mkdir()
    (tmp_path / "multinli" / "multinli.train.de.tsv").write_text(
        "premise\thypo\tlabel\nA b\tC\tcontradictory\nD\tE\tneutral\n"
    )
    header = (
        "language\tgold_label\ts1bp\ts2bp\ts1p\ts2p\tsentence1\tsentence2\t"
        "promptID\n"
    )
    rows = [
        f"{language}\tentailment\t\t\t\t\tA {language}\tB\t1\n"
        for language in ("ar", "de", "zh", "de")
    ]
    (tmp_path / "xnli.dev.tsv").write_text(header + "".join(rows))
    task = glue.find("XNLI", xnli_language="de")
    train = list(classification_task.read(task, str(tmp_path), "train"))
    assert [(e.text_a, e.text_b, e.label) for e in train] == [
        ("A b", "C", "contradiction"),
        ("D", "E", "neutral"),
    ]
    dev = list(classification_task.read(task, str(tmp_path), "dev"))
    assert [(e.guid, e.text_a, e.label) for e in dev] == [
        ("dev-3", "A de", "entailment"),
        ("dev-5", "A de", "entailment"),
    ]
    with pytest.raises(ValueError, match="no rows whose language is 'sw'"):
        task = glue.find("xnli", xnli_language="sw")
        list(classification_task.read(task, str(tmp_path), "dev"))


# The original's label order and column numbers, and the real row counts.
_ORIGINAL = {
    "CoLA/train": ("cola", 3, None, 1, ["0", "1"], 8551),
    "CoLA/dev": ("cola", 3, None, 1, ["0", "1"], 1043),
    "MRPC/train": ("mrpc", 3, 4, 0, ["0", "1"], 3668),
    "MRPC/dev": ("mrpc", 3, 4, 0, ["0", "1"], 408),
    "MNLI_subset10k/train": (
        *("mnli", 8, 9, -1),
        *(["contradiction", "entailment", "neutral"], 8999),
    ),
}


@pytest.mark.parametrize("name", _ORIGINAL)
def test_examples_equal_the_originals(shared_data, name):
    task_name, a, b, label, labels, count = _ORIGINAL[name]
    folder, split = name.split("/")
    path = shared_data / "glue" / folder / f"{split}.tsv"
    with path.open(encoding="utf-8", newline="\n") as file:
        rows = list(csv.reader(file, delimiter="\t", quotechar=None))
    rows = rows if task_name == "cola" else rows[1:]
    expected = [
        (row[a], "" if b is None else row[b], row[label]) for row in rows
    ]
    task = glue.find(task_name)
    examples = classification_task.read(task, str(path.parent), split)
    found = [(e.text_a, e.text_b, e.label) for e in examples]
    assert found == expected
    assert len(found) == count
    assert list(task.labels or ()) == labels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "task", "counts"),
    [
        ("SST-2", "sst-2", {"train": 67349, "dev": 872}),
        ("STS-B", "sts-b", {"train": 5749, "dev": 1500, "test": 1379}),
        ("RTE", "rte", {"train": 2490, "dev": 277, "test": 3000}),
        ("WNLI", "wnli", {"train": 635, "dev": 71}),
        ("QNLI", "qnli", {"dev": 5463, "test": 5463}),
        ("QQP_16shot_original_columns", "qqp", {"train": 32, "dev": 32}),
        ("MNLI_16shot_original_columns", "mnli", {"train": 48, "dev": 48}),
    ],
)
def test_real_files_have_their_published_sizes(
    shared_data, folder, task, counts
):
    path = str(shared_data / "glue" / folder)
    for split, count in counts.items():
        examples = list(classification_task.read(glue.find(task), path, split))
        assert len(examples) == count
        assert all(example.text_a for example in examples)
        hidden = split == "test"
        assert all((e.label is None) == hidden for e in examples)


def test_mismatched_files_may_be_left_out(tmp_path):
    task = glue.find("mnli")
    both = ["dev", "dev_mismatched"]
    assert classification_task.with_mismatched(task, None, "dev") == both
    folder = str(tmp_path)
    assert classification_task.with_mismatched(task, folder, "dev") == ["dev"]
    (tmp_path / "dev_mismatched.tsv").write_text("")
    assert classification_task.with_mismatched(task, folder, "dev") == both
    assert classification_task.with_mismatched(task, folder, "train") == [
        "train"
    ]


def test_names_and_spellings():
    for name in glue.NAMES:
        for spelling in (name, name.lower(), name.replace("-", "")):
            assert glue.find(spelling).name == name
    assert glue.find("sts_b").name == "STS-B"
    with pytest.raises(ValueError, match=r"one of CoLA, .*task_name=x"):
        glue.find("x")


def test_rows_are_consistent():
    for name in glue.NAMES:
        task = glue.find(name)
        assert set(task.metrics) <= set(classification_metrics.NAMES)
        assert set(task.server_files) <= set(task.splits)
        if task.tfds is not None:
            assert set(task.tfds.splits) == set(task.splits)
            assert set(task.tfds.labels) == set(task.labels or ())


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in glue.NAMES if n != "XNLI"])
def test_tfds_features_and_label_names(name, tmp_path):
    task = glue.find(name)
    ours = task.tfds
    assert ours is not None
    info = tfds.builder(ours.name, data_dir=tmp_path).info
    texts = {ours.text_a, ours.text_b} - {None}
    assert set(info.features) == texts | {"label", "idx"}
    if task.labels is None:
        assert not hasattr(info.features["label"], "names")
        return
    # There 0/1 tasks name their classes in words: not_x, x.
    theirs = info.features["label"].names
    if task.labels == ("0", "1"):
        assert ours.labels == task.labels
        assert theirs[0].startswith(("not_", "un", "negative"))
    else:
        assert tuple(theirs) == ours.labels


def test_read_tfds(tmp_path):
    rows = [
        {"sentence1": "é a", "sentence2": "b", "label": 1, "idx": 4},
        {"sentence1": "c", "sentence2": "d", "label": 0, "idx": 2},
    ]
    store(tmp_path, "mrpc", {"validation": rows, "test": rows})
    task = glue.find("mrpc")
    dev = list(classification_task.read_tfds(task, "dev", str(tmp_path)))
    assert sorted(dev, key=lambda example: example.guid) == [
        tables.Example("dev-2", "c", "d", "0"),
        tables.Example("dev-4", "é a", "b", "1"),
    ]
    test = list(classification_task.read_tfds(task, "test", str(tmp_path)))
    assert [(e.guid, e.text_a, e.label) for e in test] == [
        ("test-2", "c", None),
        ("test-4", "é a", None),
    ]
    row = {"sentence1": "a", "sentence2": "b", "label": np.float32(2.5)}
    store(tmp_path, "stsb", {"train": [row]})
    read = classification_task.read_tfds(
        glue.find("stsb"), "train", str(tmp_path)
    )
    assert list(read) == [tables.Example("train-0", "a", "b", 2.5)]


def test_scores_outside_the_range(tmp_path):
    for text, is_valid in (("0", True), ("5.000", True), ("5.2", False)):
        (tmp_path / "train.tsv").write_text(
            f"sentence1\tsentence2\tscore\na\tb\t{text}\n"
        )
        read = classification_task.read(
            glue.find("stsb"), str(tmp_path), "train"
        )
        if is_valid:
            assert [x.label for x in read] == [float(text)]
        else:
            with pytest.raises(ValueError, match=r"line 2: .*from 0 to 5.*5.2"):
                list(read)


def test_tasks_and_splits_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"XNLI is not in TensorFlow Datasets"):
        next(classification_task.read_tfds(glue.find("xnli"), "dev"))
    with pytest.raises(ValueError, match=r"AX has no train split.*MNLI"):
        next(classification_task.read(glue.find("ax"), str(tmp_path), "train"))


def store(folder, config, splits):
    """Prepares a tiny GLUE data set with TFDS' own writer."""
    builder = tfds.builder(f"glue/{config}", data_dir=folder)
    tfds.dataset_builders.store_as_tfds_dataset(
        name="glue",
        config=config,
        version=str(builder.version),
        data_dir=folder,
        features=builder.info.features,
        split_datasets={
            split: [(i, {"idx": i, **row}) for i, row in enumerate(rows)]
            for split, rows in splits.items()
        },
    )
