"""Loaded models answer like the script, and describe their inputs."""

import dataclasses
import itertools
import json
import pathlib
import pickle
import shutil
from typing import Any

import bert_tf
from bert_tf import options
from bert_tf.api import arguments
from tests import exports, family_runs, script_flags

import numpy as np
import pytest
import tensorflow as tf
from absl.flags import FLAGS

_TEXTS = ["What a film.", "bad", "good " * 30, "博 Café, whatever", "a o"]
_PAIRS = [("What a film.", "bad"), ("good", ""), ("a", "good Café " * 9)]


def as_json(answers):
    return json.loads(json.dumps(answers))


@pytest.fixture(scope="module")
def run():
    return exports.run("one text")


@pytest.fixture(scope="module")
def loaded(run):
    return bert_tf.load(run)


@pytest.fixture(scope="module")
def pairs():
    return bert_tf.load(exports.run("classification"))


_EAGER = pytest.mark.usefixtures("untraced")


# ---- The same answers as the script's ---------------------------------------


@pytest.mark.slow
def test_an_export(tmp_path, loaded):
    path = exports.exported("one text")
    exported = bert_tf.load(path)
    assert exported(_TEXTS) == loaded(_TEXTS)
    for model in (loaded, exported):
        assert model.head == "classification"
        assert model.labels == tuple(exports.LABELS)
        assert model.vocabulary[5:8] == ("a", "film", "what")
        assert (model.max_seq_length, model.do_lower_case) == (12, True)
    with pytest.raises(bert_tf.InputError, match="was exported already"):
        bert_tf.export(exported, tmp_path / "again")
    with pytest.raises(bert_tf.InputError, match="new folder"):
        bert_tf.export(loaded, path)
    with pytest.raises(bert_tf.InputError, match="Received: model=int"):
        bert_tf.export(5, tmp_path / "other")
    with pytest.raises(bert_tf.InputError, match="labels can't be given"):
        bert_tf.load(path, labels=["a", "b"])


@pytest.mark.slow
@_EAGER
def test_pairs_as_tuples_and_dictionaries(tmp_path, pairs):
    rows = [
        {"text_a": a, "text_b": b, "id": i} for i, (a, b) in enumerate(_PAIRS)
    ]
    found = family_runs.ask(tmp_path, rows, f"--model_dir={pairs.path}")
    assert as_json(pairs(rows)) == found
    without = [{k: x for k, x in row.items() if k != "id"} for row in found]
    assert as_json(pairs(_PAIRS)) == without
    assert as_json(pairs([list(pair) for pair in _PAIRS])) == without
    assert pairs(["good"]) == pairs([("good", "")]) == pairs([("good", None)])


_MASKED = ["a [MASK].", "[MASK] film [MASK]"]
_SPANS = [("what", "a film what a film"), ("a", "what")]
_VECTORS = {"head": "encoder", "unit": "cls", "normalize": True}
_CHOICES = [("what", ["a", "film"]), ("a", ("film", "what", "a"))]


def _exhaustive(*cases: tuple[Any, ...]) -> list[Any]:
    return [pytest.param(*x, marks=pytest.mark.exhaustive) for x in cases]


@pytest.mark.slow
@_EAGER
@pytest.mark.parametrize(
    ("name", "inputs", "names", "options"),
    [
        ("pretraining", _MASKED, ["text"], {"top_k": 3}),
        *_exhaustive(
            ("pretraining", _MASKED, ["text"], _VECTORS),
            ("tagging", ["Berlin film", "a"], ["text"], {}),
            ("span", _SPANS, ["question", "context"], {}),
            ("multiple_choice", _CHOICES, ["prompt", "choices"], {}),
        ),
    ],
)
def test_answers_are_those_of_the_script(
    tmp_path, name, inputs, names, options
):
    run = exports.run(name)
    rows: list[dict[str, Any]] = [
        dict(zip(names, (x,) if isinstance(x, str) else x, strict=True))
        for x in inputs
    ]
    flags = [f"--{key}={value}" for key, value in options.items()]
    found = family_runs.ask(tmp_path, rows, f"--model_dir={run}", *flags)
    model = bert_tf.load(run, **options)
    assert as_json(model(inputs)) == found
    assert as_json(model(rows)) == found
    if "top_k" in options:
        assert [len(x["masks"]) for x in found] == [1, 2]
        with pytest.raises(bert_tf.InputError, match=r"no \[MASK\]"):
            model(["a film"])


# ---- Arguments --------------------------------------------------------------


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


@pytest.mark.slow
@_EAGER
def test_paths_of_one_run_and_its_checkpoint(tmp_path, run, loaded):
    # Its flags set a length of 12 tokens; the default is 16.
    prefix = bert_tf.load(run / "model.ckpt-7")
    assert prefix.max_seq_length == 12
    assert prefix(_TEXTS) == loaded(_TEXTS)
    shutil.copytree(run, tmp_path / "run")
    best = tmp_path / "run" / "best"
    leaves_out = shutil.ignore_patterns("flags.txt", "checkpoint", ".done")
    shutil.copytree(run, best, ignore=leaves_out)
    model = bert_tf.load(best)
    assert model.max_seq_length == 12
    assert model(_TEXTS) == loaded(_TEXTS)
    # Outside the run's folder the flags are not found.
    moved = best.rename(tmp_path / "moved")
    assert bert_tf.load(moved).max_seq_length == 16
    assert bert_tf.load(moved, max_seq_length=12)(_TEXTS) == loaded(_TEXTS)
    with pytest.raises(bert_tf.InputError, match="goes with the folder of a"):
        bert_tf.load(moved, use_checkpoint="last")


def test_an_empty_text_loses_no_batch(loaded):
    answers = loaded(["bad", "", " ", "good"])
    assert [x["label"] for x in answers[::3]] == [
        x["label"] for x in loaded(["bad", "good"])
    ]
    # It is the row of the special tokens alone.
    model = bert_tf.BertClassifier.from_checkpoint(loaded.path)
    ids = [[exports.VOCAB.index("[CLS]"), exports.VOCAB.index("[SEP]")]]
    logits = np.asarray(model({"input_ids": np.array(ids)}))[0]
    expected = np.exp(logits) / np.exp(logits).sum()
    for answer in answers[1:3]:
        found = list(answer["probabilities"].values())
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@_EAGER
@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("run", {}),
        (
            "run/model.ckpt-7",
            {
                "vocab_file": "run/vocab.txt",
                "bert_config_file": pathlib.Path("run/bert_config.json"),
            },
        ),
    ],
)
def test_pickles(loaded, run, tmp_path, monkeypatch, path, options):
    shutil.copytree(run, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    model = bert_tf.load(path, batch_size=2, max_seq_length=8, **options)
    data = pickle.dumps(model)
    monkeypatch.chdir(run)
    again = pickle.loads(data)
    assert (again.batch_size, again.max_seq_length) == (2, 8)
    assert again(_TEXTS) == model(_TEXTS)
    assert again(_TEXTS) != loaded(_TEXTS)


@_EAGER
def test_texts_of_numpy_and_tensorflow(loaded, pairs):
    texts = _TEXTS[:2]
    first, both = loaded(texts[0]), loaded(texts)
    for one in (np.array(texts[0]), tf.constant(texts[0]), texts[0].encode()):
        assert loaded(one) == first
    for many in (
        [x.encode() for x in texts],
        np.array(texts),
        tf.constant(texts),
        tf.data.Dataset.from_tensor_slices(texts),
        tf.data.Dataset.from_tensor_slices({"text": texts}),
    ):
        assert loaded(many) == both
    columns = tuple(map(list, zip(*_PAIRS, strict=True)))
    data = tf.data.Dataset.from_tensor_slices(columns)
    assert pairs(data) == pairs(_PAIRS)
    for ids in ([7, 8], [0.5, 1.5], ["x", "é"], [[1, 2], [3, 4]]):
        rows = {"text": texts, "id": ids}
        found = loaded(tf.data.Dataset.from_tensor_slices(rows))
        assert json.loads(json.dumps([x["id"] for x in found])) == ids
        many = [{"text": "a", "id": x} for x in np.array(ids)]
        assert json.loads(json.dumps([x["id"] for x in loaded(many)])) == ids


# ---- What is wrong ----------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"Expected a text; or a list of such. Received: inputs=None"),
        (5, r"Received: inputs=5"),
        (b"\xff", r"^The input: bytes must be text in UTF-8.*b'\\xff'"),
        (["a", b"\xff"], r"^inputs\[1\]: bytes must be text in UTF-8"),
        (np.array(5), r"Received: inputs=5"),
        ([np.array(["a"])], r"inputs\[0\]: expected a text. Received: array"),
        ([None], r"inputs\[0\]: expected a text. Received: None"),
        (["a", 5], r"inputs\[1\]: expected a text. Received: 5"),
        ([("a", "b")], r"inputs\[0\]: expected a text. Received: \('a', 'b'\)"),
        (["a", float("nan")], r"inputs\[1\]: expected a text. Received: nan"),
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


def test_tables_are_no_lists_of_rows(pairs):
    class Table:
        """Iterates over the names of its columns, as pandas' DataFrame."""

        columns = ("text_a", "text_b")

        def __iter__(self):
            return iter(self.columns)

    with pytest.raises(bert_tf.InputError, match="inputs=Table") as error:
        pairs(Table())
    assert "df.itertuples(index=False, name=None)" in str(error.value)


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
    with pytest.raises(bert_tf.InputError, match="Received: batch_size=0"):
        bert_tf.load(run)("a", batch_size=0)
    seconds: Any = ["b"] * 900  # by mistake
    with pytest.raises(bert_tf.InputError, match="as a list of tup") as caught:
        bert_tf.load(run)(["a"] * 900, seconds)
    assert len(str(caught.value)) <= 400
    assert (
        "top_k goes with head=masked_lm or next_piece: leave it out"
        in error(run, top_k=3)
    )
    assert "has 3 classes, and labels names 2" in error(run, labels=[*"ab"])
    assert "has no tagging head" in error(run, head="tagging")
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "labels.txt").unlink()
    assert "give labels in the order" in error(tmp_path / "run")
    (tmp_path / "flags.txt").write_text("--max_seq_length=12\n")
    assert "holds no trained weights" in error(tmp_path)


def test_an_export_replaces_no_run(run, loaded):
    before = {x: x.read_bytes() for x in run.rglob("*") if x.is_file()}
    with pytest.raises(bert_tf.InputError, match="in the place of another"):
        bert_tf.export(loaded, run, overwrite=True)
    assert before == {x: x.read_bytes() for x in run.rglob("*") if x.is_file()}


def test_what_is_told_of_a_script_stays(run):
    names = "py --labels renames them. Received: labels=c,b,a"
    with pytest.raises(bert_tf.InputError, match=names):
        bert_tf.load(run, labels=[*"cba"])


def test_keywords_are_the_flags_of_the_script():
    with script_flags.own_flags():
        from bert_tf.flags import flag_sections, model_flags

        known = FLAGS.get_key_flags_for_module(model_flags)
        about = [(x.name, flag_sections.find_about(x)) for x in known]
        names = {name for name, own in about if own and not own.alias}
    assert names - {"model_dir", "init_checkpoint"} == set(arguments.KEYWORDS)
    assert set(arguments.Options.__annotations__) == set(arguments.KEYWORDS)


def test_options_of_other_types_are_keywords(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Options(options.Options):
        penalty: float = options.option(0.5, min=-1)
        rank: str = options.option("sum", choices=("sum", "max"))
        mark: str = options.option("")

    keywords = {
        x.name: arguments._of_option(x, ("span",))
        for x in dataclasses.fields(Options)
    }
    monkeypatch.setattr(arguments, "KEYWORDS", keywords)
    given = {"penalty": 2, "rank": "max", "mark": "?"}
    assert arguments.check(given) == given
    assert arguments.check({}) == dict.fromkeys(given)
    assert arguments.read("penalty", "-0.25") == -0.25
    assert arguments.read("rank", "sum") == "sum"
    for text in ("auto", "nan", "1,5"):
        with pytest.raises(bert_tf.InputError, match=r"penalty must be a num"):
            arguments.read("penalty", text)
    with pytest.raises(bert_tf.InputError, match=r"rank must be one of sum, m"):
        arguments.check({"rank": "min"})
    with pytest.raises(bert_tf.InputError, match=r"mark must be a text\."):
        arguments.check({"mark": 1})
