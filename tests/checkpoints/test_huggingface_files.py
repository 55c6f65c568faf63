"""Hugging Face folders as others wrote them, without transformers."""

import json

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, huggingface, opened, restoring
from bert_tf.serving import model as serving_model
from tests import interop_samples as samples

import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy

_CONFIG = modeling.BertConfig(**samples.SMALL)


@pytest.fixture(name="tf1")
def _tf1(tmp_path):
    """A released checkpoint: both heads of pre-training, vocabulary."""
    model = samples.random_model("pretraining", _CONFIG)
    return samples.write_tf1(tmp_path / "tf1", model)


def huggingface_folder(tmp_path, tf1):
    formats.write(str(tmp_path / "hf"), "hf", formats.open_checkpoint(tf1))
    return tmp_path / "hf"


def set_config(folder, **changes):
    """Changes values of a config.json."""
    values = opened.read_json(str(folder), huggingface.CONFIG)
    (folder / "config.json").write_text(json.dumps(values | changes))


@pytest.mark.parametrize("cut", [1, 1000, -20])
def test_half_downloaded(tmp_path, tf1, cut):
    path = huggingface_folder(tmp_path, tf1) / "model.safetensors"
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    message = r"safetensors can't be read, it is truncated.*Received: "
    with pytest.raises(ValueError, match=f"{message}{len(data)} bytes"):
        formats.open_checkpoint(str(path.parent))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"vocab_size": 39}, r"word_embeddings is \[40, 32\] there"),
        (
            {"num_hidden_layers": 2},
            "num_hidden_layers=2, and there is bert",
        ),
        ({"num_hidden_layers": 4}, "layer_3/.* is not there"),
        (
            {"model_type": "ernie", "architectures": ["ErnieModel"]},
            r"config.json: This is an ernie model.*es=\['ErnieModel'\]",
        ),
        (
            {"is_decoder": True},
            "config.json: This BERT computes otherwise .*is_decoder=True",
        ),
    ],
)
def test_a_config_that_does_not_fit(tmp_path, tf1, changes, message):
    folder = huggingface_folder(tmp_path, tf1)
    set_config(folder, **changes)
    with pytest.raises(ValueError, match=message):
        formats.open_checkpoint(str(folder))


def test_the_file_of_weights_means_its_folder(tmp_path, tf1):
    folder = huggingface_folder(tmp_path, tf1)
    samples.assert_equal(f"{folder}/model.safetensors", tf1)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "Unigram", "vocab": [["<unk>", 0.0], ["cat", -1.5]]},
        {"type": "BPE", "vocab": {"c": 0, "at": 1}, "merges": []},
    ],
)
def test_a_vocabulary_of_another_kind(tmp_path, tf1, model, caplog):
    folder = huggingface_folder(tmp_path, tf1)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    caplog.set_level("INFO", "absl")
    assert formats.open_checkpoint(str(folder)).vocab is None
    assert "No vocabulary is read from" in caplog.text


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("tokenizer_config", {"strip_accents": None}, None),
        ("tokenizer_config", {"do_lower_case": True}, None),
        (
            "tokenizer_config",
            {"do_lower_case": True, "strip_accents": False},
            "has strip_accents=False, which",
        ),
        (
            "tokenizer_config",
            {
                "do_lower_case": False,
                "strip_accents": True,
                "tokenize_chinese_chars": False,
            },
            "strip_accents=True, tokenize_chinese_chars=False, which",
        ),
        (
            "config",
            {"tokenizer_class": "BertJapaneseTokenizer"},
            "tokenizer_class=BertJapaneseTokenizer, which",
        ),
    ],
)
def test_a_tokenizer_that_splits_otherwise(
    tmp_path, tf1, caplog, name, changes, message
):
    folder = huggingface_folder(tmp_path, tf1)
    path = folder / "tokenizer_config.json"
    values = json.loads(path.read_text())
    if name == "config":
        del values["tokenizer_class"]
        set_config(folder, **changes)
    else:
        values |= changes
    path.write_text(json.dumps(values))
    formats.open_checkpoint(str(folder))
    found = "other pieces than in its training" in caplog.text
    assert found == (message is not None)
    assert (message or "") in caplog.text


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


def test_normalizers_of_tokenizer_json(tmp_path, tf1, caplog):
    folder = huggingface_folder(tmp_path, tf1)
    (folder / "tokenizer_config.json").unlink()
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text())
    values["normalizer"]["handle_chinese_chars"] = False
    path.write_text(json.dumps(values))
    formats.open_checkpoint(str(folder))
    assert "has tokenize_chinese_chars=False, which" in caplog.text


def test_a_vocabulary_that_does_not_name_its_kind(tmp_path, tf1):
    folder = huggingface_folder(tmp_path, tf1)
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
    kinds = {
        "classification": heads.BertClassifier,
        "tagging": heads.BertTagger,
    }
    tf1 = samples.write_tf1(
        tmp_path / "tf1", kinds[head](modeling.Bert(_CONFIG), 1)
    )
    folder = huggingface_folder(tmp_path, tf1)
    set_config(folder, id2label={"0": "score"}, problem_type=problem_type)
    source = formats.open_checkpoint(str(folder))
    assert source.labels == (("score",) if kept else None)
    formats.write(str(tmp_path / "again"), "hf", source)
    values = opened.read_json(str(tmp_path / "again"), huggingface.CONFIG)
    if head == "classification":
        assert values["problem_type"] == (
            problem_type if kept else "regression"
        )


@pytest.mark.parametrize("labels", [{"no": "0"}, ["no"], [["no"]]])
def test_classes_without_numbers(tmp_path, tf1, labels):
    folder = huggingface_folder(tmp_path, tf1)
    set_config(folder, id2label=labels)
    with pytest.raises(ValueError, match=r"config.json: `id2label` must"):
        formats.open_checkpoint(str(folder))


def test_a_vocabulary_without_the_ends_of_rows(tmp_path):
    vocab = [piece for piece in samples.VOCAB if piece != "[SEP]"] + ["x"]
    model = samples.random_model("encoder", _CONFIG)
    tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=vocab)
    message = r"Received: a vocabulary without \[SEP\]$"
    with pytest.raises(ValueError, match=message):
        huggingface_folder(tmp_path, tf1)
    assert not (tmp_path / "hf").exists()


@pytest.mark.parametrize(
    "architecture", ["BertForMaskedLM", "BertForNextSentencePrediction"]
)
def test_both_heads_under_the_name_of_one(tmp_path, tf1, architecture):
    # As bert-base-uncased.
    folder = huggingface_folder(tmp_path, tf1)
    set_config(folder, architectures=[architecture])
    source = formats.open_checkpoint(str(folder))
    assert source.left_over == ()
    assert serving_model.find_head(source, None) == "masked_lm"
    samples.assert_equal(str(folder), tf1)


def test_what_is_left_over_is_named(tmp_path, tf1):
    path = huggingface_folder(tmp_path, tf1) / "model.safetensors"
    left = ("cls.mine.bias", "cls.mine.weight")
    tensors = safetensors_numpy.load_file(path)
    tensors |= {name: np.zeros(2, np.float32) for name in left}
    safetensors_numpy.save_file(tensors, path)
    source = formats.open_checkpoint(str(path.parent))
    assert source.left_over == left
    assert source.config is not None
    model = heads.BertPretrainer(modeling.Bert(source.config))
    report = restoring.restore_weights(model.variables, source, "")
    assert report.unused == left
    assert f"not used by this model: {', '.join(left)}" in str(report)


def test_other_parts_in_a_layer(tmp_path, tf1):
    path = huggingface_folder(tmp_path, tf1) / "model.safetensors"
    name = "bert.encoder.layer.0.attention.self.query.lora_A.weight"
    tensors = safetensors_numpy.load_file(path)
    tensors[name] = np.zeros([2, 32], np.float32)
    safetensors_numpy.save_file(tensors, path)
    with pytest.raises(ValueError, match=f"{name} is no tensor of BERT's lay"):
        formats.open_checkpoint(str(path.parent))
