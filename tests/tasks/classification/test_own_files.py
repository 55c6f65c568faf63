import dataclasses
import json
import random
import re

from bert_tf.tasks.classification import classification_task, own_files

import pytest

_COLUMNS = own_files.Columns("text", None, "label")


def _write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def _custom(files, columns=_COLUMNS, labels=None, is_regression=False, by=None):
    return own_files.custom(columns, files, labels, is_regression, by)


def _read(task, split):
    examples = classification_task.read(task, "", split)
    return [(e.text_a, e.text_b, e.label) for e in examples]


def test_custom_labels_are_learned_in_sorted_order(tmp_path):
    train = _write(
        tmp_path / "train.csv", 'label,text\nspam,"win, now"\nham,hi\nspam,x\n'
    )
    test = _write(tmp_path / "test.tsv", "text\nso\n")
    task = _custom({"train": train, "test": test})
    assert task.labels == ("ham", "spam")
    assert _read(task, "train") == [
        ("win, now", "", "spam"),
        ("hi", "", "ham"),
        ("x", "", "spam"),
    ]
    assert _read(task, "test") == [("so", "", None)]


def test_custom_pairs_scores_and_given_labels(tmp_path):
    columns = own_files.Columns(0, 1, 2, has_header=False)
    path = _write(tmp_path / "a.tsv", "a\tb\t1.5\nc\td\t-2\n")
    task = _custom({"dev": path}, columns, is_regression=True)
    assert task.labels is None
    assert _read(task, "dev") == [("a", "b", 1.5), ("c", "d", -2.0)]
    task = _custom({"dev": path}, columns, labels=("1.5", "-2"))
    assert _read(task, "dev")[1] == ("c", "d", "-2")


def test_custom_format_by_name_or_given(tmp_path):
    path = _write(tmp_path / "a.json", '{"text": "x", "label": 1}\n')
    assert _read(_custom({"dev": path}, labels=("0", "1")), "dev") == [
        ("x", "", "1")
    ]
    path = _write(tmp_path / "a.txt", 'text,label\n"a, b",1\n')
    columns = own_files.Columns("text", None, "label", file_format="csv")
    task = _custom({"dev": path}, columns, labels=("0", "1"))
    assert _read(task, "dev") == [("a, b", "", "1")]


_BAD_ROWS = {
    "short.tsv": (b"only one\n", "line 31: a column is missing"),
    "long.tsv": (b"x\ty\tz\n", "line 31: more columns than the first row"),
    "blank.tsv": (b"\n", "line 31: the line is empty"),
    "label.tsv": (b"no label\t \n", "line 31: the label is empty"),
    "latin.tsv": (b"caf\xe9\ta\n", "line 31: the text is not UTF-8 (invalid"),
    "latin.csv": (b'"two\ncaf\xe9",a\n', "line 32: the text is not UTF-8"),
    "semicolons.csv": (b"x;y;z\n", "line 31: more columns than the first"),
    "null.jsonl": (b'{"text": null, "label": "a"}\n', "line 30: 'text' is no"),
    "key.jsonl": (b'{"text": "x"}\n', "line 30: keys are missing: label"),
    "cut.jsonl": (b'{"text": "x", "l\n', "line 30: the line is not JSON (I"),
    "latin.jsonl": (b'{"text": "\xe9"}\n', "line 30: the text is not UTF-8"),
}


def _with_bad_row(name, bad):
    """Returns a table of 58 good rows and a bad one after the first half."""
    good = [(f"t{i}", "ab"[i % 2]) for i in range(58)]
    separator = {"tsv": "\t", "csv": ","}.get(name.rpartition(".")[2], "")
    if b";" in bad:
        separator = ";"
    if separator:
        lines = [separator.join(row) for row in (("text", "label"), *good)]
        half = 30
    else:
        lines = [json.dumps({"text": x, "label": y}) for x, y in good]
        half = 29
    encoded = [f"{line}\n".encode() for line in lines]
    return good, b"".join([*encoded[:half], bad, *encoded[half:]])


@pytest.mark.parametrize("name", _BAD_ROWS)
def test_bad_rows_are_left_out_of_training(name, tmp_path, caplog):
    bad, reason = _BAD_ROWS[name]
    good, data = _with_bad_row(name, bad)
    path = tmp_path / name
    path.write_bytes(data)
    files = dict.fromkeys(("train", "dev"), str(path))
    task = _custom(files)
    for split in files:
        rows = _read(task, split)
        assert rows == [(text, "", label) for text, label in good]
    # Once, although it is read twice.
    said = f"{path}: left out 1 of 59 rows: {reason}"
    assert caplog.text.count(said) == 1, caplog.text
    # The held-out rows are counted without the bad row.
    held = own_files.hold_out(task, 0.5, seed=1)
    both = _read(held, "train") + _read(held, "dev")
    assert sorted(both) == sorted(rows)
    strict = dataclasses.replace(_COLUMNS, strict=True)
    if name == "label.tsv":
        reason = "line 31: a label must not be empty"
    with pytest.raises(ValueError, match=re.escape(f"{path}, {reason}")):
        _custom(files, strict)


def test_too_many_bad_rows_are_another_format(tmp_path):
    text = "text,label\n" + "a,b\n" * 17 + "x, y,b\n" * 2
    path = _write(tmp_path / "a.csv", text)
    with pytest.raises(ValueError, match=r"line 19: more columns than the"):
        _custom({"train": path})


def test_an_empty_score(tmp_path):
    path = _write(tmp_path / "a.tsv", "text\tlabel\n" + "x\t1\n" * 9 + "y\t\n")
    task = _custom({"dev": path}, is_regression=True)
    assert len(_read(task, "dev")) == 9
    strict = dataclasses.replace(_COLUMNS, strict=True)
    task = _custom({"dev": path}, strict, is_regression=True)
    with pytest.raises(ValueError, match=r"line 11: the score is not a num"):
        _read(task, "dev")


def test_no_row_of_a_test_file_is_left_out(tmp_path):
    path = _write(tmp_path / "a.tsv", "text\tlabel\n" + "a\tb\n" * 30 + "x\n")
    columns = own_files.Columns("label", None, "text")
    task = _custom({"test": path}, columns, labels=("a", "b"))
    with pytest.raises(ValueError, match=r"line 32: a column is missing"):
        _read(task, "test")


def test_hold_out_is_the_documented_sample(tmp_path):
    lines = "".join(f"t{i}\t{i % 2}\n" for i in range(50))
    path = _write(tmp_path / "a.tsv", "text\tlabel\n" + lines)
    task = own_files.hold_out(_custom({"train": path}), 0.1, seed=7)
    chosen = random.Random(7).sample(range(50), 5)
    dev = [text for text, _, _ in _read(task, "dev")]
    train = [text for text, _, _ in _read(task, "train")]
    assert dev == [f"t{i}" for i in sorted(chosen)]
    assert train == [f"t{i}" for i in range(50) if i not in chosen]
    sets = {x: (y.rows, y.excluded) for x, y in task.splits.items()}
    dev_rows = frozenset(chosen)
    # The large set of the training rows is not stored.
    assert sets == {"train": (None, dev_rows), "dev": (dev_rows, frozenset())}
    for fraction in (0.001, 0.999):
        with pytest.raises(ValueError, match=r"rows on both sides.*50 rows"):
            own_files.hold_out(task, fraction, seed=7)


def test_spam_file(shared_data):
    path = str(shared_data / "spam" / "SMSSpamCollection")
    columns = own_files.Columns("SMS", None, "Label")
    task = _custom({"train": path}, columns)
    rows = _read(task, "train")
    assert task.labels == ("ham", "spam")
    assert len(rows) == 5574
    assert sum(label == "spam" for _, _, label in rows) == 747


def test_a_header_that_is_read_as_a_row(tmp_path):
    rows = "ham\tx\nspam\ty\nham\tz\n"
    columns = own_files.Columns(1, None, 0, has_header=False)
    headed = _write(tmp_path / "a.tsv", f"Label\tSMS\n{rows}")
    with pytest.raises(
        ValueError, match=r"a\.tsv: the first line looks .*label='Label'"
    ):
        _custom({"train": headed}, columns)
    with pytest.raises(ValueError, match="looks like a header"):
        _custom({"train": headed}, columns, by=";")
    labels = ("Label", "ham", "spam")
    assert _custom({"train": headed}, columns, labels).labels == labels
    named = own_files.Columns(1, None, 0)
    assert _custom({"train": headed}, named).labels == ("ham", "spam")
    # With several labels, one occurs again: the line is not a header.
    mixed = _write(tmp_path / "c.tsv", "ham;odd\tx\nspam\ty\nham\tz\n")
    found = _custom({"train": mixed}, columns, by=";")
    assert found.labels == ("ham", "odd", "spam")
    # The last row also has a unique label: the first line is not a header.
    plain = _write(tmp_path / "b.tsv", f"{rows}rare\tw\n")
    assert _custom({"train": plain}, columns).labels == ("ham", "rare", "spam")


def test_bad_labels_and_scores(tmp_path):
    path = _write(tmp_path / "a.tsv", "text\tlabel\nx\t1\ny\t2\n")
    with pytest.raises(
        ValueError,
        match=r"a\.tsv, line 3: unknown label.*one of 0, 1\. .*'2'.*--labels",
    ):
        _read(_custom({"dev": path}, labels=("0", "1")), "dev")
    for text in ("good", "nan", "inf"):
        path = _write(tmp_path / "b.tsv", f"text\tlabel\nx\t1\ny\t{text}\n")
        with pytest.raises(ValueError, match=r"b\.tsv, line 3: the score"):
            _read(_custom({"dev": path}, is_regression=True), "dev")
    path = _write(tmp_path / "a.tsv", "text\tlabel\nx\t1e99\n")
    # Its square is infinite.
    with pytest.raises(ValueError, match="line 2: the score is too large"):
        _read(_custom({"dev": path}, is_regression=True), "dev")
    path = _write(tmp_path / "a.tsv", "text\tlabel\nx\ta\ny\tb\nz\ta \n")
    with pytest.raises(ValueError, match="Received: 'a', 'a '"):
        _custom({"train": path})


def test_errors_are_short_however_many_or_long_the_labels(tmp_path):
    path = _write(tmp_path / "a.tsv", f"text\tlabel\nx\t{'z' * 9999}\n")
    labels = [f"{i:03}{'y' * 500}" for i in range(300)]
    with pytest.raises(ValueError, match=r"a\.tsv, line 2: unknown") as error:
        _read(_custom({"dev": path}, labels=labels), "dev")
    message = str(error.value)
    assert f"019{'y' * 77}… and others, 300 in all. Received" in message
    assert "020y" not in message
    assert f"label='{'z' * 79}…. Correct it" in message
    with pytest.raises(ValueError, match="score is not a number") as error:
        _read(_custom({"dev": path}, is_regression=True), "dev")
    assert f"label='{'z' * 79}…. Correct it" in str(error.value)


def test_scores_that_are_taken_for_classes(tmp_path, caplog):
    rows = [f"x\t{i / 4}\n" for i in range(30)]
    path = _write(tmp_path / "a.tsv", "text\tlabel\n" + "".join(rows * 2))
    assert len(_custom({"train": path}).labels) == 30
    assert not caplog.text  # As there are two rows of each.
    path = _write(tmp_path / "b.tsv", "text\tlabel\n" + "".join(rows))
    _custom({"train": path})
    problem = "b.tsv has 30 different labels in 30 rows, and each becomes a"
    assert problem in caplog.text
    assert "--regression" in caplog.text


def test_labels_that_differ_only_in_how_they_are_written(tmp_path, caplog):
    labels = ["1", "1.0", "True", "TRUE", "2", "02.0", "x", "1.1", "01.1"]
    labels.append("7" * 5_000)  # Python makes no integer of it.
    rows = "".join(f"a\t{label}\n" for label in labels)
    path = _write(tmp_path / "a.tsv", f"text\tlabel\n{rows}")
    assert len(_custom({"train": path}).labels) == len(labels)
    same = "class: 02.0 and 2, 1 and 1.0, TRUE and True. Write"
    assert same in caplog.text
    caplog.clear()
    path = _write(tmp_path / "b.tsv", "text\tlabel\na\t1\nb\t0\n")
    _custom({"train": path})
    assert not caplog.text


def test_rows_to_predict_with_the_same_id(tmp_path, caplog):
    rows = "text,id\nx,a\ny,b\n,a\nz,a\nv,c\nw,b\n"
    test = _write(tmp_path / "test.csv", rows)
    columns = dataclasses.replace(_COLUMNS, key="id")
    task = _custom({"test": test}, columns, labels=("0", "1"))
    found = list(classification_task.read(task, "", "test"))
    assert [example.guid for example in found] == [*"abaacb"]
    twice, empty = "IDs that several rows have: 2, such as 'a'.", "empty texts"
    assert caplog.text.count(twice) == caplog.text.count(empty) == 1
    # The file is read again for the ids of its predictions.
    assert list(classification_task.read(task, "", "test")) == found
    assert caplog.text.count(twice) == caplog.text.count(empty) == 1


def test_labels_that_no_row_to_train_on_has(tmp_path, caplog):
    strict = dataclasses.replace(_COLUMNS, strict=True)
    path = _write(tmp_path / "a.tsv", "text\tlabel\nx\t1,2\ny\t\n")
    for separator, labels in ((",", "0123"), (None, ("1,2", "", "3"))):
        task = classification_task.Task(
            *(classification_task.CUSTOM, tuple(labels), ("macro_f1",)),
            {s: strict.split(path, True) for s in ("train", "dev")},
            label_separator=separator,
        )
        _read(task, "dev")
        assert not caplog.text
        _read(task, "train")
        unseen = "0, 3" if separator else "3"
        assert f"a.tsv has no example of {unseen}, so" in caplog.text
        caplog.clear()


def test_several_labels_for_a_text(tmp_path):
    path = _write(tmp_path / "a.tsv", "text\tlabel\nx\tb; a\ny\t\nz\ta;a;\n")
    task = _custom({"train": path}, by=";")
    assert task.labels == ("a", "b")
    assert task.metrics[0] == "micro_f1"
    found = [label for _, _, label in _read(task, "train")]
    assert found == [("b", "a"), (), ("a",)]
    path = _write(
        tmp_path / "b.jsonl",
        '{"text": "x", "label": ["b", "c;d"]}\n{"text": "y", "label": []}\n',
    )
    task = _custom({"train": path}, by=";")
    assert task.labels == ("b", "c;d")
    found = [label for _, _, label in _read(task, "train")]
    assert found == [("b", "c;d"), ()]
    with pytest.raises(ValueError, match=r"b\.jsonl, line 1: 'label' is no"):
        _custom({"train": path})
    assert own_files.hold_out(task, 0.5, seed=1).labels == task.labels
    task = _custom({"dev": path}, labels=("b", "d"), by=";")
    with pytest.raises(
        ValueError, match=r"b\.jsonl, line 1: unknown label.*b, d.*'c;d'"
    ):
        _read(task, "dev")
    for is_regression, separator in ((True, ";"), (False, "")):
        with pytest.raises(ValueError, match="--label_separator"):
            _custom({"dev": path}, _COLUMNS, None, is_regression, separator)


def test_lists_that_are_not_json(tmp_path):
    rows = "text,label\nx,\"['a', 'b']\"\ny,\"a,b\"\n"
    path = _write(tmp_path / "a.csv", rows)
    message = r"a\.csv, line 2: the labels are not a list in JSON"
    with pytest.raises(ValueError, match=message):
        _custom({"train": path}, by=",")
    task = _custom({"dev": path}, labels=("a", "b"), by=",")
    with pytest.raises(ValueError, match=message):
        _read(task, "dev")
    # Labels of a file to predict are only displayed.
    task = _custom({"test": path}, labels=("a", "b"), by=",")
    assert _gold(task) == [("x", ("['a', 'b']",)), ("y", ("a", "b"))]


def test_labels_are_not_searched(tmp_path):
    """With 20,000 labels, a search takes a third of a millisecond a row."""

    class Labels(tuple):
        def __contains__(self, label):
            raise AssertionError(label)

    path = _write(tmp_path / "a.tsv", "text\tlabel\nx\tb\ny\ta\n")
    task = _custom({"train": path})
    for by in (None, ","):
        searched = dataclasses.replace(
            task, labels=Labels("ab"), label_separator=by
        )
        assert len(_read(searched, "train")) == 2


def test_labels_that_are_missing_values(tmp_path, caplog):
    rows = "".join(f"x\t{y}\n" for y in ("nan", "None", "N/A", "NANO", "n"))
    path = _write(tmp_path / "a.tsv", f"text\tlabel\n{rows}")
    assert len(_custom({"train": path}).labels) == 5
    (warning,) = caplog.messages
    assert (
        "missing values, and each becomes a class: N/A, None, nan." in warning
    )


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_ids_are_needed_only_of_rows_to_predict(tmp_path, name):
    rows = "text,label\nx,b\ny,a\n"
    if name == "a.jsonl":
        rows = '{"text": "x", "label": "b"}\n{"text": "y", "label": "a"}\n'
    path = _write(tmp_path / name, rows)
    columns = dataclasses.replace(_COLUMNS, key="id")
    task = _custom(dict.fromkeys(("train", "dev", "test"), path), columns)
    assert _read(task, "train") == _read(task, "dev")
    with pytest.raises(ValueError, match=r"'id' is missing|missing: id"):
        _read(task, "test")


# ---- Labels of a file to predict --------------------------------------------


def _gold(task):
    examples = classification_task.read(task, "", "test", with_gold=True)
    return [(e.text_a, e.label) for e in examples]


def test_gold_labels_are_read_where_they_are(tmp_path):
    train = _write(tmp_path / "train.csv", "label,text\nspam,a\nham,b\n")
    rows = 'text,label\nx,ham\ny,new one\nz,""\n'
    test = _write(tmp_path / "test.csv", rows)
    task = _custom({"train": train, "test": test})
    # Labels that were not in training, too.
    assert _gold(task) == [("x", "ham"), ("y", "new one"), ("z", None)]
    assert [label for _, _, label in _read(task, "test")] == [None] * 3
    bare = _write(tmp_path / "bare.tsv", "text\nso\n")
    assert _gold(_custom({"train": train, "test": bare})) == [("so", None)]


def test_gold_labels_of_json_lines(tmp_path):
    test = _write(
        tmp_path / "test.jsonl",
        '{"text": "x", "label": "a"}\n{"text": "y"}\n'
        '{"text": "z", "label": null}\n{"text": "w", "label": NaN}\n',
    )
    task = _custom({"test": test}, labels=("a", "b"))
    assert _gold(task) == [("x", "a"), ("y", None), ("z", None), ("w", None)]
    several = _write(
        tmp_path / "several.jsonl",
        '{"text": "x", "label": ["a", "c"]}\n{"text": "y", "label": "b,a"}\n',
    )
    task = _custom({"test": several}, labels=("a", "b"), by=",")
    assert _gold(task) == [("x", ("a", "c")), ("y", ("b", "a"))]


@pytest.mark.parametrize(
    ("label", "rows", "expected"),
    [
        (1, "x\t2.5\ny\tn/a\n", [("x", 2.5), ("y", "n/a")]),
        (1, "x\ny\n", [("x", None), ("y", None)]),
        # The name of the column in the training file.
        ("score", "x\t2.5\ny\t1\n", [("x", None), ("y", None)]),
    ],
)
def test_gold_scores_without_a_header(tmp_path, label, rows, expected):
    columns = own_files.Columns(0, None, label, has_header=False)
    test = _write(tmp_path / "test.tsv", rows)
    assert _gold(_custom({"test": test}, columns, is_regression=True)) == (
        expected
    )
