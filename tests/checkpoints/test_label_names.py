"""Class names in Hugging Face folders, in answers as in transformers."""

import json
import random
import re

import bert_tf
from bert_tf.checkpoints import formats, huggingface
from bert_tf.errors import InputError
from tests import tiny_model
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest

_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "bad"]
_VOCAB += "一部好片，坏的。"


def _folder(folder, architecture="BertForSequenceClassification", **config):
    """Writes a model with random weights, as the Trainer saves it."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(_VOCAB) + "\n")
    transformers.set_seed(0)
    model = getattr(transformers, architecture)(
        transformers.BertConfig(
            vocab_size=len(_VOCAB),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            initializer_range=0.5,
            **config,
        )
    )
    model.save_pretrained(folder)
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    return folder


def _change(folder, **changes):
    """Changes values of the config of a model."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _names(folder, names):
    numbered = dict(names if isinstance(names, dict) else enumerate(names))
    found = {str(i): name for i, name in numbered.items()}
    _change(folder, id2label=found, label2id={})


def _ask(folder, texts, **options):
    """Returns our answers."""
    with tiny_model.untraced():
        return bert_tf.load(folder, **options)(texts)


def _cross_encoder(folder, count, activation, **options):
    """Returns a cross-encoder of sentence-transformers."""
    sentences = pytest.importorskip(
        "sentence_transformers", reason="needs the extra `parity`"
    )
    return sentences.CrossEncoder(
        str(_folder(folder, num_labels=count)),
        device="cpu",
        activation_fn=getattr(torch.nn, activation)(**options),
    )


def _pipeline(folder):
    """Returns transformers' classifier of texts."""
    return transformers.pipeline(
        "text-classification", model=str(folder), device="cpu"
    )


@pytest.mark.slow
@pytest.mark.parametrize("names", [None, (7, 8, 9)])
def test_a_classifier_answers_transformers_names(tmp_path, names):
    folder = _folder(tmp_path, num_labels=3)
    if names:
        _names(folder, names)
    ask = _pipeline(folder)
    texts = ["a film", "bad film", "a a a bad"]
    expected = [row["label"] for row in ask(texts)]
    found = [row["label"] for row in _ask(folder, texts)]
    assert found == [str(label) for label in expected]


def test_one_label_that_a_text_may_have(tmp_path):
    problem = "multi_label_classification"
    folder = _folder(tmp_path, num_labels=1, problem_type=problem)
    ask = _pipeline(folder)
    (expected,) = ask("a film")
    found = _ask(folder, "a film")["probabilities"]
    assert found == {expected["label"]: pytest.approx(expected["score"])}


@pytest.mark.parametrize("problem", [None, "regression"])
def test_the_score_of_one_class(tmp_path, caplog, problem):
    folder = _folder(tmp_path, num_labels=1, problem_type=problem)
    ask = _pipeline(folder)
    (expected,) = ask("a film")
    score = _ask(folder, "a film")["score"]
    is_sigmoid = "return its sigmoid; for that, add" in caplog.text
    assert is_sigmoid == (problem != "regression")
    if not is_sigmoid:
        assert score == pytest.approx(expected["score"], rel=1e-5)
        return
    assert 1 / (1 + np.exp(-score)) == pytest.approx(expected["score"])
    # With the key that the line names.
    key = re.search(r"add (\S+: \{.*?\}) to", caplog.text)
    assert key
    path = folder / "config.json"
    config = path.read_text().strip().removesuffix("}")
    path.write_text(f"{config}, {key[1]}}}")
    score = _ask(folder, "a film")["score"]
    assert score == pytest.approx(expected["score"])


@pytest.mark.slow
def test_a_tagger_answers_default_names(tmp_path):
    folder = _folder(tmp_path, "BertForTokenClassification", num_labels=3)
    (answer,) = _ask(folder, ["a film"])
    # Labels without entity prefixes: each word with its label.
    assert [x["text"] for x in answer["entities"]] == ["a", "film"]
    assert {x["type"] for x in answer["entities"]} <= {
        *("LABEL_0", "LABEL_1", "LABEL_2")
    }


@pytest.mark.slow
def test_entities_of_a_tagger_may_start_inside(tmp_path):
    """CoNLL-2003 as released: I-X starts an entity, and B-X is rare."""
    folder = _folder(tmp_path, "BertForTokenClassification", num_labels=5)
    _names(folder, ("I-x", "I-y", "O", "B-x", "B-y"))
    text = " ".join(random.Random(0).choices(["a", "film", "bad"], k=40))
    ask = transformers.pipeline(
        "token-classification",
        model=str(folder),
        device="cpu",
        aggregation_strategy="first",
    )
    expected = [(x["entity_group"], x["start"], x["end"]) for x in ask(text)]
    assert {kind for kind, *_ in expected} == {"x", "y"}
    found = _ask(folder, text)["entities"]
    strict = _ask(folder, text, scheme="BIO")["entities"]
    assert [(x["type"], x["start"], x["end"]) for x in found] == expected
    assert len(strict) < len(found)


@pytest.mark.slow
def test_a_tagger_labels_each_chinese_character(tmp_path):
    """As transformers, whatever tokens it joins."""
    folder = _folder(tmp_path, "BertForTokenClassification", num_labels=9)
    _names(folder, "abcdefghi")
    text = "一部好片，a 坏的film。"
    ask = transformers.pipeline(
        "token-classification", model=str(folder), device="cpu"
    )
    expected = [(x["entity"], x["start"], x["end"]) for x in ask(text)]
    assert len(expected) == 10
    # Our own formats record it; so does a folder for transformers.
    tf1, hf = str(tmp_path / "tf1"), str(tmp_path / "hf")
    formats.write(tf1, "tf1", formats.open_checkpoint(str(folder)))
    formats.write(hf, "hf", formats.open_checkpoint(tf1))
    for name in (folder, tf1, hf):
        (answer,) = _ask(name, [text], max_seq_length=20)
        found = [(x["type"], x["start"], x["end"]) for x in answer["entities"]]
        assert found == expected
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert values["splits_cjk"] is True
    _change(tmp_path / "hf", splits_cjk=False)
    (answer,) = _ask(hf, [text], max_seq_length=20)
    assert [x["text"] for x in answer["entities"]] == [
        *("一部好片，a", "坏的film", "。")
    ], "as in data that is segmented into words"


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("a", "b", "a"), "gives two classes the same name"),
        (("a", None, "b"), "must map the numbers of all classes"),
        ({0: "a", 2: "b", 3: "c"}, "must map the numbers of all classes"),
        (("a", "b\nc", "d"), "a name that is one line, and not empty"),
        (("a", "", "d"), "a name that is one line, and not empty"),
    ],
)
def test_names_that_would_lose_a_class_are_refused(tmp_path, names, problem):
    folder = _folder(tmp_path, num_labels=3)
    _names(folder, names)
    with pytest.raises(bert_tf.InputError, match=problem):
        bert_tf.load(folder)


def test_names_without_classes_are_ignored(tmp_path):
    folder = _folder(tmp_path, "BertForMaskedLM", num_labels=3)
    _names(folder, ("a", "b", "a"))
    assert formats.open_checkpoint(str(folder)).labels is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "activation"),
    [
        *(("now", "Sigmoid"), ("4", "Sigmoid"), ("3", "Sigmoid")),
        ("now", "Identity"),
    ],
)
def test_the_score_of_a_cross_encoder(tmp_path, where, activation):
    encoder = _cross_encoder(tmp_path / "hf", 1, activation)
    pairs = [("a film", "bad film"), ("bad", "a")]
    expected = encoder.predict(pairs)
    folder = tmp_path / "cross"
    encoder.save(str(folder))
    if where != "now":
        # The file of older versions.
        path = folder / "config_sentence_transformers.json"
        name = json.loads(path.read_text())["activation_fn"]
        path.unlink()
        key, value = {
            "4": ("sentence_transformers", {"activation_fn": name}),
            "3": ("sbert_ce_default_activation_function", name),
        }[where]
        _change(folder, **{key: value})
    found = _ask(folder, pairs, pairs=True)
    scores = [row["score"] for row in found]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    if where != "now":
        return
    written = tmp_path / "written"
    source = formats.open_checkpoint(str(folder))
    assert source.config is not None
    written.mkdir()
    huggingface.write(str(written), source, source.config)
    again = _ask(written, pairs, pairs=True)
    assert [row["score"] for row in again] == scores


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["Sigmoid", "Softmax"])
def test_the_classes_of_a_cross_encoder(tmp_path, activation):
    given = {"dim": -1} if activation == "Softmax" else {}
    encoder = _cross_encoder(tmp_path / "hf", 3, activation, **given)
    encoder.save(str(tmp_path / "cross"))
    pairs = [("a film", "bad film"), ("bad", "a")]
    found = _ask(tmp_path / "cross", pairs, pairs=True)
    np.testing.assert_allclose(
        [list(row["probabilities"].values()) for row in found],
        encoder.predict(pairs),
        rtol=0,
        atol=1e-5,
    )


def test_scores_that_are_refused(tmp_path):
    folder = _folder(tmp_path / "several", num_labels=2)
    _change(folder, problem_type="regression")
    with pytest.raises(InputError, match="a model for each score"):
        bert_tf.load(folder, labels=["anger", "joy"])
    for count in (1, 3):
        folder = _folder(tmp_path / f"tanh_{count}", num_labels=count)
        name = "torch.nn.modules.activation.Tanh"
        _change(folder, sentence_transformers={"activation_fn": name})
        with pytest.raises(InputError, match=f"activation_fn='{name}'"):
            bert_tf.load(folder)


@pytest.mark.parametrize(
    ("name", "said", "problem"),
    [
        (
            "config_sentence_transformers.json",
            {"prompts": {"q": "rank: "}, "default_prompt_name": "q"},
            "puts 'rank: ' before each text",
        ),
        (
            "sentence_bert_config.json",
            {"processing_kwargs": {"text": {"max_length": 6}}},
            "passes options to the tokenizer",
        ),
    ],
)
def test_inputs_of_a_cross_encoder_are_refused(tmp_path, name, said, problem):
    folder = _folder(tmp_path / "hf", num_labels=1)
    path = folder / name
    path.write_text(json.dumps(said))
    with pytest.raises(InputError, match=problem):
        formats.open_checkpoint(str(folder))
    # Without a default prompt and options for texts.
    said = {"prompts": {"q": "rank: "}, "processing_kwargs": {"audio": {}}}
    path.write_text(json.dumps(said))
    assert formats.open_checkpoint(str(folder)).config is not None
