"""Loaded models answer what the script answers, and say what they take."""

import itertools
import json
import subprocess
import sys
from typing import Any

import bert_tf
from bert_tf.api import arguments
from tests import scripts
from tests.api import models

import pytest

_TEXTS = ["What a film.", "bad", "good " * 30, "博 Café, whatever", "a o"]
_PAIRS = [("What a film.", "bad"), ("good", ""), ("a", "good Café " * 9)]


def script(tmp_path, rows, *arguments):
    """Returns what run_prediction.py answers to JSON lines."""
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "in.jsonl").write_text(lines)
    code = scripts.run_here(
        "run_prediction",
        f"--input_file={tmp_path}/in.jsonl",
        f"--output_file={tmp_path}/out.jsonl",
        "--overwrite",
        *arguments,
    )
    assert not code
    text = (tmp_path / "out.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def as_json(answers):
    return json.loads(json.dumps(answers))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(folder):
    return models.classifier_run(folder / "classifier")


@pytest.fixture(scope="module")
def loaded(run):
    return bert_tf.load(run)


@pytest.fixture(scope="module")
def pairs(folder):
    return bert_tf.load(models.classifier_run(folder / "pairs", pairs=True))


# ---- The same answers as the script's ---------------------------------------


@pytest.mark.slow
def test_classifier_and_its_export(tmp_path, run, loaded):
    found = script(
        tmp_path, [{"text": x} for x in _TEXTS], f"--model_dir={run}"
    )
    assert as_json(loaded(_TEXTS)) == found
    assert found[0].keys() == {"label", "probabilities"}
    bert_tf.export(loaded, tmp_path / "export")
    exported = bert_tf.load(tmp_path / "export")
    assert exported(_TEXTS) == loaded(_TEXTS)
    for model in (loaded, exported):
        assert model.head == "classification"
        assert model.labels == ("negative", "positive")
        assert model.vocabulary[5:8] == ("a", "film", "what")
        assert (model.max_seq_length, model.do_lower_case) == (12, True)
    with pytest.raises(bert_tf.InputError, match="was exported already"):
        bert_tf.export(exported, tmp_path / "again")
    with pytest.raises(bert_tf.InputError, match="new folder"):
        bert_tf.export(loaded, tmp_path / "export")
    with pytest.raises(bert_tf.InputError, match="Received: model=int"):
        bert_tf.export(5, tmp_path / "other")
    with pytest.raises(bert_tf.InputError, match="labels can't be given"):
        bert_tf.load(tmp_path / "export", labels=["a", "b"])


def test_pairs_as_tuples_and_dictionaries(tmp_path, pairs):
    rows = [
        {"text_a": a, "text_b": b, "id": i} for i, (a, b) in enumerate(_PAIRS)
    ]
    found = script(tmp_path, rows, f"--model_dir={pairs.path}")
    assert as_json(pairs(rows)) == found
    without = [{k: x for k, x in row.items() if k != "id"} for row in found]
    assert as_json(pairs(_PAIRS)) == without
    assert as_json(pairs([list(pair) for pair in _PAIRS])) == without
    assert pairs(["good"]) == pairs([("good", "")]) == pairs([("good", None)])


@pytest.mark.slow
def test_masked_words_and_vectors_of_one_checkpoint(tmp_path):
    path = str(models.pretrained(tmp_path / "run"))
    texts = ["a [MASK].", "[MASK] film [MASK]"]
    rows = [{"text": x} for x in texts]
    found = script(tmp_path, rows, f"--model_dir={path}", "--top_k=3")
    assert as_json(bert_tf.load(path, top_k=3)(texts)) == found
    assert [len(x["masks"]) for x in found] == [1, 2]
    found = script(
        tmp_path,
        rows,
        f"--model_dir={path}",
        "--head=encoder",
        "--unit=cls",
        "--normalize",
    )
    model = bert_tf.load(path, head="encoder", unit="cls", normalize=True)
    assert as_json(model(texts)) == found
    with pytest.raises(bert_tf.InputError, match=r"no \[MASK\]"):
        bert_tf.load(path)(["a film"])


@pytest.mark.slow
def test_entities_answers_and_choices(tmp_path):
    cases: list[tuple[Any, list[Any], tuple[str, ...]]] = [
        (models.tagger_run, ["Berlin film", "a"], ("text",)),
        (
            models.span_run,
            [("what", "a film what a film"), ("a", "what")],
            ("question", "context"),
        ),
        (
            models.choice_run,
            [("what", ["a", "film"]), ("a", ("film", "what", "a"))],
            ("prompt", "choices"),
        ),
    ]
    for make, inputs, names in cases:
        run = make(tmp_path / make.__name__)
        rows = [
            dict(zip(names, (x,) if isinstance(x, str) else x, strict=True))
            for x in inputs
        ]
        found = script(tmp_path, rows, f"--model_dir={run}")
        model = bert_tf.load(run)
        assert as_json(model(inputs)) == found
        assert as_json(model(rows)) == found


# ---- What may be given ------------------------------------------------------


def test_one_input_a_list_and_a_stream(loaded):
    expected = loaded(_TEXTS)
    assert loaded(_TEXTS[0]) == loaded([_TEXTS[0]])[0]
    assert loaded({"text": "bad", "id": 7})["id"] == 7
    assert loaded([]) == []
    read = []

    def endless():
        for text in itertools.cycle(_TEXTS):
            read.append(text)
            yield text

    answers = loaded(endless(), batch_size=1)
    assert not read, "nothing is read before it is asked for"
    first = list(itertools.islice(answers, 40))
    assert [x["label"] for x in first] == [x["label"] for x in expected] * 8
    assert len(read) == 65, "two windows, and the input that ended them"


def test_paths_of_one_run_and_its_checkpoint(tmp_path, run, loaded):
    # Its flags say that 12 pieces are read, where the default is 16.
    prefix = bert_tf.load(run / "model.ckpt-7")
    assert prefix.max_seq_length == 12
    assert prefix(_TEXTS) == loaded(_TEXTS)
    best = run / "best"
    best.mkdir()
    for file in run.glob("*"):
        if file.is_file() and file.name not in ("flags.txt", "checkpoint"):
            (best / file.name).write_bytes(file.read_bytes())
    assert bert_tf.load(best).max_seq_length == 12
    assert bert_tf.load(best)(_TEXTS) == loaded(_TEXTS)
    # Away from the run nothing says so.
    moved = best.rename(tmp_path / "moved")
    model = bert_tf.load(moved)
    assert model.max_seq_length == 16
    assert bert_tf.load(moved, max_seq_length=12)(_TEXTS) == loaded(_TEXTS)
    with pytest.raises(bert_tf.InputError, match="goes with the folder of a"):
        bert_tf.load(moved, use_checkpoint="last")


# ---- What is wrong ----------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"Expected a text; or a list of such. Received: inputs=None"),
        (5, r"Received: inputs=5"),
        (b"bytes", r"Received: inputs=b'bytes'"),
        ([None], r"inputs\[0\]: expected a text. Received: None"),
        (["a", 5], r"inputs\[1\]: expected a text. Received: 5"),
        ([("a", "b")], r"inputs\[0\]: expected a text. Received: \('a', 'b'\)"),
        (["a", " "], r"inputs\[1\]: text_a missing or empty. Expected a text"),
        ([{"txt": "a"}], r"inputs\[0\]: expected a text. Received: keys txt"),
        ([{"text": 5}], r"inputs\[0\]: expected a text. Received: text=5"),
        (
            [{"text_a": "a", "text_b": "b"}],
            r"takes one text. Leave out text_b, or give pairs if",
        ),
    ],
)
def test_wrong_inputs_say_what_is_expected(loaded, given, message):
    with pytest.raises(bert_tf.InputError, match=message):
        loaded(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("a", "b", "c")], r"expected a text, a tuple \(text_a, text_b\) or"),
        ([()], r"inputs\[0\]: expected a text, a tuple"),
        ([("a", 5)], r"Received: text_b=5"),
        ([{"text_b": "b"}], r"Received: keys text_b"),
        ([{"text_a": "b", "text_B": "b"}], r"Rename it. Expected a text, a"),
    ],
)
def test_wrong_pairs_say_what_is_expected(pairs, given, message):
    with pytest.raises(bert_tf.InputError, match=message):
        pairs(given)


def test_wrong_paths_and_keywords(tmp_path, run):
    def error(path, **options):
        with pytest.raises(bert_tf.InputError) as raised:
            bert_tf.load(path, **options)
        assert "--" not in str(raised.value)
        return str(raised.value)

    assert "Received: path=None" in error(None)
    assert "Received: path=''" in error("")
    assert str(tmp_path) in error(tmp_path)
    assert f"{tmp_path}/none" in error(tmp_path / "none")
    assert "no keyword lower. Expected batch_size, use_checkpoint," in error(
        run, lower=True
    )
    assert "labels must be a list of texts" in error(run, labels="a,b")
    assert "at least 4. Received: max_seq_length=3" in error(
        run, max_seq_length=3
    )
    assert "max_seq_length=True" in error(run, max_seq_length=True)
    assert "batch_size=0" in error(run, batch_size=0)
    assert (
        "top_k goes with head=masked_lm or next_piece: leave it out"
        in error(run, top_k=3)
    )
    assert "has 2 classes, and labels names 3" in error(run, labels=[*"abc"])
    assert "has no tagging head" in error(run, head="tagging")
    (run / "labels.txt").rename(tmp_path / "labels.txt")
    assert "give labels in the order" in error(run)
    (tmp_path / "labels.txt").rename(run / "labels.txt")
    (tmp_path / "flags.txt").write_text("--max_seq_length=12\n")
    assert "holds no trained weights" in error(tmp_path)


def test_an_export_replaces_no_run(run, loaded):
    before = {x: x.read_bytes() for x in run.rglob("*") if x.is_file()}
    with pytest.raises(bert_tf.InputError, match="in the place of another"):
        bert_tf.export(loaded, run, overwrite=True)
    assert before == {x: x.read_bytes() for x in run.rglob("*") if x.is_file()}


def test_what_is_told_of_a_script_stays(run):
    names = "convert_checkpoint.py --labels renames them. Received: labels=b,a"
    with pytest.raises(bert_tf.InputError, match=names):
        bert_tf.load(run, labels=["b", "a"])


def test_keywords_are_the_flags_of_the_script():
    # In a process of its own: flags of other scripts have the same names.
    code = (
        "from absl import flags\n"
        "from bert_tf.flags import model\n"
        "own = [x for x in vars(model).values()"
        " if isinstance(x, flags.FlagHolder)]\n"
        "print(*(holder.name for holder in own))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    names = set(printed.stdout.split())
    assert names - {"model_dir", "init_checkpoint"} == set(arguments.KEYWORDS)
    assert set(arguments.Options.__annotations__) == set(arguments.KEYWORDS)
