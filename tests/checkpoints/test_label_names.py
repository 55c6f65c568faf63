"""Names of classes in folders of Hugging Face, as transformers answers them."""

import json

import bert_tf

import pytest

transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)

_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "bad"]


def _folder(folder, architecture="BertForSequenceClassification", **config):
    """Writes a model with random weights, as the Trainer saves it."""
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


def _names(folder, names):
    path = folder / "config.json"
    values = json.loads(path.read_text())
    values["id2label"] = {str(i): name for i, name in enumerate(names)}
    values["label2id"] = {}
    path.write_text(json.dumps(values))


@pytest.mark.parametrize("names", [None, (7, 8, 9), ("x", "y", "z")])
def test_a_classifier_answers_transformers_names(tmp_path, names):
    folder = _folder(tmp_path, num_labels=3)
    if names:
        _names(folder, names)
    ask = transformers.pipeline(
        "text-classification", model=str(folder), device="cpu"
    )
    texts = ["a film", "bad film", "a a a bad"]
    expected = [row["label"] for row in ask(texts)]
    found = [row["label"] for row in bert_tf.load(folder)(texts)]
    assert found == [str(label) for label in expected]


def test_a_tagger_answers_default_names(tmp_path):
    folder = _folder(tmp_path, "BertForTokenClassification", num_labels=3)
    (answer,) = bert_tf.load(folder)(["a film"])
    # Names that mark no entities: each word with its label.
    assert [x["text"] for x in answer["entities"]] == ["a", "film"]
    assert {x["type"] for x in answer["entities"]} <= {
        *("LABEL_0", "LABEL_1", "LABEL_2")
    }


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("a", "b", "a"), "gives two classes the same name"),
        (("a", None, "b"), "must map the numbers of the classes"),
    ],
)
def test_names_that_would_lose_a_class_are_refused(tmp_path, names, problem):
    folder = _folder(tmp_path, num_labels=3)
    _names(folder, names)
    with pytest.raises(bert_tf.InputError, match=problem):
        bert_tf.load(folder)
