"""A custom head, encoder, vocabulary and format: code of docs/extending.md.

Nothing in bert_tf is edited or patched: the page's files are written to a
folder and run as a reader would run them.
"""

import functools
import importlib
import json
import os
import pathlib
import re
import shutil
import sys

import bert_tf
from bert_tf import modeling, tokenization
from bert_tf.checkpoints import tf1_files, trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.storage import weight_files
from tests import (
    classifier_runs,
    pretraining_records,
    reference,
    scripts,
    tiny_model,
    trained_weights,
)
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = ["a", "film", "good", "bad", "what"]
_VOCAB = [*_SPECIAL, *_WORDS, *(f"word{i}" for i in range(30))]
_PAIRS = [
    ("a good film", "good film", 0.9),
    ("a bad film", "word3 word4", 0.1),
    ("what word7", "what a word7", 0.8),
    ("bad bad bad", "good", 0.2),
    ("word1 word2 film", "a word1 film", 0.7),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns the page's files, a tiny config, vocabulary, records, pairs."""
    path = tmp_path_factory.mktemp("mine")
    page = (_ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r'```python title="(.+?)"\n(.+?)```', page, re.S)
    assert len(blocks) == 6
    for name, code in blocks:
        (path / name).write_text(code)
    config = {"model_type": "damped_bert"} | pretraining_records.CONFIG
    config |= {"initializer_range": 0.5}
    (path / "damped.json").write_text(json.dumps(config))
    (path / "vocab.txt").write_text("\n".join(_VOCAB) + "\n")
    lines = [f"{a}\t{b}\t{score}\n" for a, b, score in _PAIRS]
    (path / "pairs.tsv").write_text("".join(lines))
    pretraining_records.write(path)
    return path


def _enter(folder, is_traced):
    """Changes to the folder that a reader would be in."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    tf.config.run_functions_eagerly(not is_traced)


def _run(folder, file, *arguments, code=0, is_traced=False):
    """Runs a file of the page in a new process; returns its errors."""
    run = scripts.Run(
        *(folder / "log", str(folder / file), list(arguments), {}),
        has_children=True,
        before=functools.partial(_enter, folder, is_traced),
    )
    assert run.wait() == code, run.stderr
    return run.stderr


def _script(folder, name, *flags, code=0):
    script = str(_ROOT / f"{name}.py")
    return _run(folder, "with_mine", script, *flags, code=code)


def _pretrain(folder, output, *more):
    _script(
        *(folder, "run_pretraining", "--bert_config_file=damped.json"),
        *("--vocab_file=vocab.txt", "--input_file=*.tfrecord"),
        *(f"--output_dir={output}", "--do_train=true"),
        *("--train_batch_size=8", "--max_seq_length=16"),
        *("--max_predictions_per_seq=4", "--num_train_steps=4"),
        *("--num_warmup_steps=1", "--save_checkpoints_steps=2"),
        *more,
    )


_START = ("--init_checkpoint=bert", "--learning_rate=0")


@pytest.fixture(scope="module")
def pretrained(folder):
    """Returns a run from BERT's weights, which it keeps."""
    bert = modeling.BertConfig(**pretraining_records.CONFIG)
    model = samples.random_model("pretraining", bert)
    samples.write_tf1(folder / "bert", model, vocab=_VOCAB)
    _pretrain(folder, "pretrained", *_START)
    return folder / "pretrained"


def _train(folder, output):
    """Trains ten steps, and saves after five."""
    _run(
        *(folder, "with_mine", "train_similarity.py", "--do_train=true"),
        *("--do_eval=true", "--do_predict=true", "--do_export=true"),
        *(f"--{x}_file=pairs.tsv" for x in ("train", "dev", "test")),
        *("--init_checkpoint=pretrained", f"--output_dir={output}"),
        *("--train_batch_size=4", "--num_train_epochs=8"),
        *("--learning_rate=0.01", "--save_checkpoints_steps=5"),
        is_traced=True,
    )


@pytest.fixture(scope="module")
def trained(folder, pretrained):
    """Returns the run of a similarity model."""
    _train(folder, "similar")
    return folder / "similar"


def test_training_starts_from_bert(folder, pretrained):
    words = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(
        trained_weights.read(pretrained / "model.ckpt-4")[words],
        trained_weights.read(folder / "bert")[words],
    )


@pytest.mark.exhaustive
def test_fine_tuning_goes_on_where_it_stopped(folder, trained):
    shutil.copytree(trained, folder / "again")
    trained_weights.drop_last(folder / "again")
    _train(folder, "again")
    trained_weights.assert_same(folder / "again", trained)
    scale = "cls/similarity/scale"
    names = [scale, f"{scale}/adam_m"]
    values = tf1_files.read(f"{trained}/model.ckpt-10", names)
    assert values[scale] != 1
    assert values[f"{scale}/adam_m"] != 0


def _expected(prefix):
    """Returns the pairs' scores: BERT's own layers, and the rest in NumPy."""
    values = pretraining_records.CONFIG | {"initializer_range": 0.5}
    bert = modeling.Bert(modeling.BertConfig(**values))
    names = [v.path for v in bert.variables]
    names += ["cls/similarity/scale", "cls/similarity/shift"]
    weights = tf1_files.read(prefix, names)
    for variable in bert.variables:
        variable.assign(weights[variable.path])
    tokenizer = tokenization.FullTokenizer.from_vocab(
        {piece: i for i, piece in enumerate(_VOCAB)}
    )

    def vector(text):
        pieces = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        ids = tf.constant([[2, *pieces, 3]])
        first = np.tanh(bert({"input_ids": ids}).sequence[0, 0])
        kernel = weights["bert/pooler/dense/kernel"]
        return np.tanh(first @ kernel + weights["bert/pooler/dense/bias"])

    scores = []
    for a, b, _ in _PAIRS:
        x, y = vector(a), vector(b)
        cosine = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        line = weights["cls/similarity/scale"] * cosine
        scores.append((line + weights["cls/similarity/shift"]).item())
    return scores


_ASK = """
import json, pathlib
import damped_bert, similarity
import bert_tf

lines = pathlib.Path("pairs.tsv").read_text().splitlines()
pairs = [tuple(line.split("\\t")[:2]) for line in lines]
answers = bert_tf.load("similar")(pairs)
scores = [answer["score"] for answer in answers]
pathlib.Path("asked.json").write_text(json.dumps(scores))
"""


def _answers(folder, *flags):
    lines = "".join(f"{a}\t{b}\n" for a, b, _ in _PAIRS)
    (folder / "lines.txt").write_text(lines)
    _script(
        *(folder, "run_prediction", "--input_file=lines.txt", "--overwrite"),
        *("--output_file=answers.jsonl", *flags),
    )
    lines = (folder / "answers.jsonl").read_text().splitlines()
    return [json.loads(line)["score"] for line in lines]


def test_trains_and_answers_in_python(folder, trained):
    expected = _expected(trained_models.own_checkpoint(str(trained), True))
    assert np.ptp(expected) > 1e-3
    found = np.loadtxt(trained / "test_results.tsv")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    results = classifier_runs.results(trained / "eval_results.txt")
    scores = np.array([score for *_, score in _PAIRS])
    error = np.mean((expected - scores) ** 2)
    assert results["loss"] == pytest.approx(error, abs=1e-5)
    correlation = np.corrcoef(expected, scores)[0, 1]
    assert results["eval_correlation"] == pytest.approx(correlation, abs=1e-3)
    (folder / "ask.py").write_text(_ASK)
    _run(folder, "ask")
    found = json.loads((folder / "asked.json").read_text())
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.exhaustive
def test_answers_raw_text_from_the_run_and_from_its_export(folder, trained):
    expected = _expected(trained_models.own_checkpoint(str(trained), True))
    for flags in ("--model_dir=similar", "--saved_model=similar/export"):
        found = _answers(folder, flags)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    _script(
        *(folder, "export_saved_model", "--model_dir=similar"),
        *("--head=similarity", "--export_dir=saved"),
    )
    found = _answers(folder, "--saved_model=saved")
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.usefixtures("pretrained")
def test_no_other_library_has_them(folder):
    said = _script(
        *(folder, "convert_checkpoint", "--input_checkpoint=pretrained"),
        *("--output_path=theirs", "--output_format=hf"),
        code=1,
    )
    assert "Received: encoder=damped_bert, head=pretraining" in said
    assert not (folder / "theirs").exists()


def test_who_does_not_know_it_is_told(folder):
    with pytest.raises(InputError, match="damped_bert model, not BERT"):
        families.read_config(str(folder / "damped.json"))


# ---- The file format --------------------------------------------------------


def _convert(folder, source, output_format, *flags, code=0):
    return _script(
        *(folder, "convert_checkpoint", f"--input_checkpoint={source}"),
        *(f"--output_format={output_format}", *flags),
        *(f"--output_path=as_{output_format}", "--do_lower_case=false"),
        code=code,
    )


_CLASSES = ("no", "yes", "so")


@pytest.fixture(scope="module")
def classifier(folder):
    """Returns a classifier, which is in a folder of both formats."""
    config = modeling.BertConfig(**pretraining_records.CONFIG)
    model = samples.random_model("classification", config)
    cased = [*_VOCAB[:-1], "Film"]
    samples.write_tf1(folder / "classes", model, _CLASSES, cased)
    said = _convert(folder, "classes", "npz")
    assert "does not keep how its text is read: give scripts --do_l" in said
    return model


def test_weights_in_a_file_of_numpy(folder, classifier):
    expected = {v.path: v.numpy() for v in classifier.variables}
    with np.load(folder / "as_npz" / "model.npz") as found:
        reference.assert_same(dict(found), expected)
    _convert(folder, "as_npz/model.npz", "tf1")
    found = trained_weights.read(folder / "as_tf1" / "bert_model.ckpt")
    reference.assert_same(found, expected)
    for file in ("labels.txt", "vocab.txt", "bert_config.json"):
        same = {(folder / x / file).read_text() for x in ("as_npz", "as_tf1")}
        assert len(same) == 1
    names = (folder / "as_tf1" / "labels.txt").read_text().split()
    assert tuple(names) == _CLASSES


def test_a_model_in_a_file_of_numpy(folder, classifier, monkeypatch):
    monkeypatch.setattr(weight_files, "FORMATS", {**weight_files.FORMATS})
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("npz_weights")
    with tiny_model.untraced():
        found, expected = (
            bert_tf.load(folder / name, do_lower_case=False)("Film")
            for name in ("as_npz", "classes")
        )
    assert found == expected
    assert found["label"] in _CLASSES
    (folder / "empty").mkdir()
    message = r"; model\.npz \(npz\)\. Received: no files$"
    with pytest.raises(InputError, match=message):
        bert_tf.open_checkpoint(folder / "empty")


@pytest.mark.usefixtures("classifier")
def test_a_file_of_numpy_is_protected(folder):
    said = _convert(folder, "classes", "npz", code=1)
    assert "or replace it by --overwrite" in said
    said = _script(
        *(folder, "run_pretraining", "--output_dir=as_npz", "--do_train"),
        *("--input_file=*.tfrecord", "--bert_config_file=damped.json"),
        code=1,
    )
    assert "as_npz holds a model (model.npz), and this run would" in said


# ---- The vocabulary ---------------------------------------------------------

_LETTERS = ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>", *"ACGTN"]
# All tokenizers of the page's vocabulary, compared with Python's own rule.
_COMPARE = """
import letters
from bert_tf import vocabularies
from bert_tf.text import graph_offsets, text_graph

vocabulary = vocabularies.open("dna.letters", do_lower_case=True)
texts = ["AC GT", "", " \\tNxA\\r\\nC", "中A\u00a0", "ACGTN" * 9]
split = vocabulary.tokenizer()
expected = [
    [(x, i) for i, x in enumerate(text) if x not in " \\t\\r\\n"]
    for text in texts
]
ids = [[vocabulary.ids.get(x, 1) for x, _ in row] for row in expected]
starts = [i for row in expected for _, i in row]
for text, row, numbers in zip(texts, expected, ids):
    tokens = split.tokenize_with_offsets(text)
    assert [(t.text, t.start) for t in tokens] == row
    assert split.convert_tokens_to_ids(split.tokenize(text)) == numbers
flat, lengths = vocabulary.bulk_tokenizer().tokenize(texts)
assert flat.tolist() == sum(ids, []) and lengths.tolist() == list(map(len, ids))
assert text_graph.make_tokenizer(vocabulary).tokenize(texts).to_list() == ids
found = graph_offsets.make_tokenizer(vocabulary).tokenize_with_offsets(texts)
assert found.ids.to_list() == ids
assert found.starts.numpy().tolist() == starts
assert found.ends.numpy().tolist() == [i + 1 for i in starts]
"""


@pytest.fixture(scope="module")
def dna(folder):
    """Returns records of letters, made by two workers."""
    (folder / "dna.letters").write_text("\n".join(_LETTERS) + "\n")
    rng = np.random.default_rng(0)
    lines = ["".join(rng.choice(list("ACGT"), 9)) for _ in range(60)]
    for i in range(0, 60, 6):
        lines[i] = ""
    (folder / "dna.txt").write_text("\n".join(lines) + "\n")
    _script(
        *(folder, "create_pretraining_data", "--vocab_file=dna.letters"),
        *("--input_file=dna.txt", "--output_dir=dna", "--max_seq_length=16"),
        *("--max_predictions_per_seq=4", "--dupe_factor=2", "--num_workers=2"),
    )
    return folder


def test_tokenizers_of_letters_agree(folder, dna):
    (folder / "compare.py").write_text(_COMPARE)
    _run(folder, "compare")


def test_letters_from_text_to_answers(folder, dna):
    config = {"model_type": "damped_bert"} | pretraining_records.CONFIG
    config |= {"vocab_size": len(_LETTERS)}
    (folder / "dna.json").write_text(json.dumps(config))
    _pretrain(
        *(folder, "dna_model", "--bert_config_file=dna.json"),
        *("--vocab_file=dna.letters", "--input_file=dna/*.tfrecord"),
        "--num_train_steps=2",
    )
    kept = (folder / "dna_model" / "letters.txt").read_text()
    assert kept.split() == _LETTERS
    (folder / "gaps.txt").write_text("AC[MASK]GT\n")
    _script(
        *(folder, "run_prediction", "--model_dir=dna_model"),
        *("--head=masked_lm", "--top_k=3", "--input_file=gaps.txt"),
        "--output_file=gaps.jsonl",
    )
    (found,) = json.loads((folder / "gaps.jsonl").read_text())["masks"]
    assert len({x["piece"] for x in found} & set(_LETTERS)) == 3
    for answer in found:
        assert answer["text"] == f"AC{answer['piece']}GT"
