"""Hugging Face folders as other programs write them, without transformers."""

import json

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, huggingface, opened, restoring
from bert_tf.serving import serving_model
from tests import interop_samples as samples

import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy

_CONFIG = modeling.BertConfig(**samples.SMALL)


def huggingface_folder(tmp_path, tf1):
    samples.convert(tf1, "hf", tmp_path / "hf")
    return tmp_path / "hf"


@pytest.fixture
def folder(tmp_path, tf1):
    """Returns a Hugging Face folder: both pre-training heads, a vocabulary."""
    return huggingface_folder(tmp_path, tf1)


@pytest.fixture
def classifier(tmp_path):
    """Returns a Hugging Face folder of a classifier."""
    model = samples.random_model("classification", _CONFIG)
    tf1 = samples.write_tf1(tmp_path / "classifier", model)
    return huggingface_folder(tmp_path, tf1)


def change(path, **changes):
    """Changes values of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_half_downloaded(folder):
    path = folder / "model.safetensors"
    data = path.read_bytes()[:1000]
    path.write_bytes(data)
    message = r"safetensors can't be read, it is truncated.*Received: "
    with pytest.raises(ValueError, match=f"{message}{len(data)} bytes"):
        formats.open_checkpoint(str(path.parent))


def test_the_file_of_weights_means_its_folder(folder, tf1):
    samples.assert_equal(f"{folder}/model.safetensors", tf1)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "Unigram", "vocab": [["<unk>", 0.0], ["cat", -1.5]]},
        {"type": "BPE", "vocab": {"c": 0, "at": 1}, "merges": []},
    ],
)
def test_a_vocabulary_of_another_kind(folder, model, caplog):
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    caplog.set_level("INFO", "absl")
    assert formats.open_checkpoint(str(folder)).vocab is None
    assert "No vocabulary is read from" in caplog.text


@pytest.mark.parametrize(
    "name, changes, settings",
    [
        ("tokenizer_config", {"strip_accents": None}, {}),
        (
            "tokenizer_config",
            {"do_lower_case": True, "strip_accents": False},
            {"strip_accents": False},
        ),
        (
            "tokenizer",
            {"normalizer": {"handle_chinese_chars": False}},
            {"tokenize_chinese_chars": False},
        ),
    ],
)
def test_settings_of_the_tokenizer(folder, caplog, name, changes, settings):
    if name == "tokenizer":
        # Other classes have a default.
        kind = {"tokenizer_class": "PreTrainedTokenizerFast"}
        (folder / "tokenizer_config.json").write_text(json.dumps(kind))
        values = json.loads((folder / "tokenizer.json").read_text())
        changes["normalizer"] = values["normalizer"] | changes["normalizer"]
    change(folder / f"{name}.json", **changes)
    vocab = formats.open_checkpoint(str(folder)).vocab
    assert vocab is not None
    found = vocab.contents.get("tokenizer_config.json", b"{}")
    assert json.loads(found) == settings
    assert "is not supported: the tokens" not in caplog.text


def test_a_class_of_tokenizers_that_splits_otherwise(folder, caplog):
    path = folder / "tokenizer_config.json"
    values = json.loads(path.read_text())
    del values["tokenizer_class"]
    path.write_text(json.dumps(values))
    change(folder / "config.json", tokenizer_class="BertJapaneseTokenizer")
    formats.open_checkpoint(str(folder))
    assert "tokenizer_class=BertJapaneseTokenizer, which" in caplog.text


_ENTRY = {"content": "dog", "lstrip": False, "normalized": False}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tokenizer_config", {"cls_token": "dog"}),
        ("tokenizer_config", {"sep_token": _ENTRY}),
        ("special_tokens_map", {"unk_token": "dog"}),
    ],
)
def test_other_special_tokens(folder, name, changes):
    """transformers begins and ends sequences with them."""
    if name == "tokenizer_config":
        # Without a decoder, it counts instead.
        (folder / "special_tokens_map.json").unlink()
    change(folder / f"{name}.json", **changes)
    use = next(iter(changes))
    message = rf"must be '\[[A-Z]*\]', .*Received: {use}='dog'"
    with pytest.raises(ValueError, match=message):
        formats.open_checkpoint(str(folder))
    # These follow tokenizer.json.
    kind = {"tokenizer_class": "PreTrainedTokenizerFast"}
    change(folder / "tokenizer_config.json", **kind)
    assert formats.open_checkpoint(str(folder)).vocab is not None


def test_other_special_tokens_without_a_class(folder):
    """As of old folders: no file says the class, and none else is there."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    values = json.loads((folder / "config.json").read_text())
    del values["model_type"]
    (folder / "config.json").write_text(json.dumps(values))
    assert formats.open_checkpoint(str(folder)).vocab is not None
    change(folder / "special_tokens_map.json", cls_token="dog")
    with pytest.raises(ValueError, match=r"must be '\[CLS\]', .*='dog'"):
        formats.open_checkpoint(str(folder))


def test_a_tokenizer_with_other_tokens(folder):
    """Its fields have the values of a BERT by default."""
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text())
    del values["pre_tokenizer"]
    path.write_text(json.dumps(values))
    message = r"give different ids.*Received: ids=\["
    with pytest.raises(ValueError, match=message):
        formats.open_checkpoint(str(folder))


@pytest.mark.parametrize(
    ("pieces", "lower"), [(samples.VOCAB, True), (["The", "the"], False)]
)
def test_casing_that_nothing_says_is_the_vocabulary_s(tmp_path, pieces, lower):
    vocab = [*pieces, *samples.VOCAB][: len(samples.VOCAB)]
    vocab = list(dict.fromkeys([*samples.VOCAB[:5], *vocab]))
    vocab += [f"[unused{n}]" for n in range(len(samples.VOCAB) - len(vocab))]
    model = samples.random_model("encoder", _CONFIG)
    tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=vocab)
    assert formats.open_checkpoint(tf1).do_lower_case is None
    folder = huggingface_folder(tmp_path, tf1)
    values = json.loads((folder / "tokenizer_config.json").read_text())
    assert values["do_lower_case"] is lower


def test_a_vocabulary_that_does_not_name_its_kind(folder):
    (folder / "vocab.txt").unlink()
    values = opened.read_json(str(folder), "tokenizer.json")
    del values["model"]["type"]
    (folder / "tokenizer.json").write_text(json.dumps(values))
    found = formats.open_checkpoint(str(folder)).vocab
    assert found == samples.vocab_files(samples.VOCAB)


@pytest.mark.parametrize(
    "head, problem_type, kept",
    [
        ("classification", None, False),
        ("classification", "regression", False),
        ("classification", "multi_label_classification", True),
        ("tagging", None, True),
    ],
)
def test_the_name_of_a_score(tmp_path, head, problem_type, kept):
    kind = heads.BertTagger if head == "tagging" else heads.BertClassifier
    made = kind(modeling.Bert(_CONFIG), 1)
    tf1 = samples.write_tf1(tmp_path / "tf1", made)
    path = huggingface_folder(tmp_path, tf1) / "config.json"
    change(path, id2label={"0": "score"}, problem_type=problem_type)
    source = formats.open_checkpoint(str(path.parent))
    assert source.labels == (("score",) if kept else None)
    formats.write(str(tmp_path / "again"), "hf", source)
    values = opened.read_json(str(tmp_path / "again"), huggingface.CONFIG)
    if head == "classification":
        wanted = problem_type if kept else "regression"
        assert values["problem_type"] == wanted


@pytest.mark.parametrize("labels", [{"no": "0"}, ["no"], [["no"]]])
def test_classes_without_numbers(classifier, labels):
    change(classifier / "config.json", id2label=labels)
    with pytest.raises(ValueError, match=r"config.json: `id2label` must"):
        formats.open_checkpoint(str(classifier))


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("id2label", {f"label{i}": i for i in range(999)}),
        ("id2label", {i: f"label{i // 2}" for i in range(999)}),
        ("id2label", {i: f"label{i}\n" for i in range(999)}),
        ("label2id", {f"label{i}": i for i in range(999)}),
    ],
)
def test_errors_of_many_classes_are_short(classifier, key, names):
    change(classifier / "config.json", **{"id2label": None, key: names})
    with pytest.raises(ValueError, match=f"`{key}`") as error:
        formats.open_checkpoint(str(classifier))
    assert len(str(error.value)) < 600


def test_classes_that_only_label2id_names(classifier):
    path = classifier / "config.json"
    usual = {f"LABEL_{i}": i for i in range(samples.NUM_LABELS)}
    change(path, id2label=None, label2id=usual)
    assert formats.open_checkpoint(str(path.parent)).labels is None
    change(path, label2id={"no": 0, "yes": 1, "maybe": 2})
    with pytest.raises(ValueError, match=r"config.json: Only `label2id` names"):
        formats.open_checkpoint(str(path.parent))


@pytest.mark.parametrize(
    "architecture", ["BertForMaskedLM", "BertForNextSentencePrediction"]
)
def test_both_heads_under_the_name_of_one(folder, tf1, architecture):
    # Like bert-base-uncased.
    change(folder / "config.json", architectures=[architecture])
    source = formats.open_checkpoint(str(folder))
    assert source.left_over == ()
    assert serving_model.find_head(source, None) == "masked_lm"
    samples.assert_equal(str(folder), tf1)


def add_tensors(folder, *names):
    path = folder / "model.safetensors"
    tensors = safetensors_numpy.load_file(path)
    tensors |= {name: np.zeros([2, 32], np.float32) for name in names}
    safetensors_numpy.save_file(tensors, path)


def test_what_is_left_over_is_named(folder):
    left = ("cls.mine.bias", "cls.mine.weight", "label_embeddings.weight")
    add_tensors(folder, *left)
    source = formats.open_checkpoint(str(folder))
    assert source.left_over == left
    model = heads.BertPretrainer(modeling.Bert(_CONFIG))
    report = restoring.restore_weights(model.variables, source, "")
    assert report.unused == left
    assert f"not used by this model: {', '.join(left)}" in str(report)


def test_a_head_of_other_names(folder, caplog):
    """It is not left out of answers without a word."""
    add_tensors(folder, "fc.weight")
    source = formats.open_checkpoint(str(folder))
    assert serving_model.find_head(source, None) == "masked_lm"
    assert "so that answers may differ from those in training" in caplog.text
    path = folder / "model.safetensors"
    tensors = safetensors_numpy.load_file(path)
    rest = {x: y for x, y in tensors.items() if not x.startswith("cls.")}
    safetensors_numpy.save_file(rest, path)
    name = "BertForSequenceClassification"
    change(folder / "config.json", architectures=[name])
    source = formats.open_checkpoint(str(folder))
    with pytest.raises(ValueError, match=r"not known: fc\.weight\. Rename"):
        serving_model.find_head(source, None)
    assert serving_model.find_head(source, "encoder") == "encoder"


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.0.attention.self.query.lora_A.weight",
        "bert.embeddings.word_embeddings.lora_embedding_A.default",
        # LayoutLM, MarkupLM and BROS may declare themselves as BERT.
        "bert.embeddings.x_position_embeddings.weight",
        "bert.embeddings.xpath_embeddings.xpath_tag_embeddings.0.weight",
        "bert.bbox_embeddings.bbox_projection.weight",
    ],
)
def test_tensors_of_other_models(folder, name):
    add_tensors(folder, name)
    message = rf"{name} is not a tensor of bert's .*model_type=bert"
    with pytest.raises(ValueError, match=message):
        formats.open_checkpoint(str(folder))


def test_prefixes_of_wrappers(folder, tf1):
    path = folder / "model.safetensors"
    tensors = safetensors_numpy.load_file(path)
    named = {f"_orig_mod.module.{name}": x for name, x in tensors.items()}
    safetensors_numpy.save_file(named, path)
    samples.convert(str(folder), "tf1", folder / "again")
    samples.assert_equal(str(folder / "again"), tf1)


def test_a_score_that_only_its_tensor_tells(tmp_path):
    made = heads.BertClassifier(modeling.Bert(_CONFIG), 1)
    tf1 = samples.write_tf1(tmp_path / "tf1", made)
    path = huggingface_folder(tmp_path, tf1) / "config.json"
    change(path, id2label=None, num_labels=1, problem_type="regression")
    assert formats.open_checkpoint(str(path.parent)).labels is None


def test_what_the_config_says_and_is_not_used(folder, caplog):
    caplog.set_level("INFO", "absl")
    change(
        folder / "config.json",
        classifier_dropout=0.3,
        auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"},
    )
    for _ in range(2):
        formats.open_checkpoint(str(folder))
    code, rate = caplog.messages
    assert code.endswith("Received: auto_map of AutoModel")
    assert rate.endswith("prob=0.1, not with classifier_dropout=0.3.")
