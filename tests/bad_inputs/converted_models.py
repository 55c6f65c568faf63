"""Inputs for the table of convert_checkpoint.py."""

import dataclasses
import json
import pathlib
import shutil

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, tf1_files
from bert_tf.encoders import albert, families, roberta
from tests import tiny_files
from tests.bad_inputs import damaged, foreign_models

import numpy as np


def write(folder: pathlib.Path) -> None:
    """Writes models, vocabularies, and paths that must not be overwritten."""
    _write_models(folder)
    _write_files(folder)


def _write_vocab(path: pathlib.Path, *pieces: str, end: str = "\n") -> None:
    path.write_bytes("".join(f"{piece}{end}" for piece in pieces).encode())


def _write_two_heads(model: pathlib.Path) -> None:
    """Writes a checkpoint that was trained for two tasks."""
    tensors = {
        variable.path: variable.value
        for kind in (heads.BertPretrainer, heads.BertSpanFinder)
        for variable in kind(modeling.Bert(tiny_files.CONFIG)).variables
    }
    tf1_files.write(str(model / "bert_model.ckpt"), tensors)


_SHARED = albert.AlbertConfig(
    len(tiny_files.VOCAB),
    embedding_size=4,
    hidden_size=8,
    num_attention_heads=2,
    intermediate_size=16,
)


def _write_groups(model: pathlib.Path) -> None:
    """Writes two groups of layers, while the config has only one."""
    two = dataclasses.replace(_SHARED, num_hidden_groups=2)
    tiny_files.write_model(model, heads.BertPretrainer(families.make(two)))
    (model / "bert_config.json").write_text(_SHARED.to_json())


def _write_shared_layers(model: pathlib.Path) -> None:
    """Writes layers that share their weights."""
    shared = heads.BertPretrainer(families.make(_SHARED))
    tiny_files.write_model(model, shared)
    (model / "bert_config.json").write_text(_SHARED.to_json())


def _write_roberta(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Writes a Hugging Face RoBERTa whose config lacks two positions.

    It counts only positions of tokens, while Hugging Face counts table rows.
    """
    config = roberta.RobertaConfig(
        len(tiny_files.VOCAB),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    tiny_files.write_model(folder, families.make(config))
    (folder / "bert_config.json").write_text(config.to_json())
    (folder / "vocab.txt").unlink()
    formats.write(str(path), "hf", formats.open_checkpoint(str(folder)))
    values = json.loads((path / "config.json").read_text())
    assert values["max_position_embeddings"] == 18
    values["max_position_embeddings"] = 16
    (path / "config.json").write_text(json.dumps(values))


def _write_adapters(model: pathlib.Path) -> None:
    """Writes layers with parts that BERT's layers do not have."""
    prefix = str(model / "bert_model.ckpt")
    tensors = tf1_files.read(prefix, list(tf1_files.shapes(prefix)))
    for i in range(2):
        name = f"bert/encoder/layer_{i}/output/adapters/ff/kernel"
        tensors[name] = np.zeros([8, 2], np.float32)
    tf1_files.write(prefix, tensors)


def _write_models(folder: pathlib.Path) -> None:
    model, classifier = folder / "model", folder / "classifier"
    damaged.write_models(folder)
    tiny_files.write_model(
        classifier, heads.BertClassifier(modeling.Bert(tiny_files.CONFIG), 3)
    )
    known = {
        "config_endless": damaged.values(num_hidden_layers=10**12),
        "config_architecture": damaged.values(architectures="BertModel"),
        "two_heads": _write_two_heads,
        "groups": _write_groups,
        "adapters": _write_adapters,
    }
    damaged.write_changed(model, folder / "models", known)
    labels = {
        "labels_few": b"a\nb\n",
        "labels_twice": b"a\na\nb\n",
        "labels_empty": b"",
    }
    damaged.write_changed(
        classifier,
        folder / "models",
        {
            name: damaged.bytes_in("labels.txt", data)
            for name, data in labels.items()
        },
    )
    _write_shared_layers(folder / "shared_layers")
    foreign_models.write(folder / "foreign", model, classifier)
    _write_roberta(folder / "roberta", folder / "foreign/hf/roberta_rows")
    for name in ("mödel ☃", "other", "windows", "run", "replaced"):
        shutil.copytree(model, folder / name)
    (folder / "bare").mkdir()
    for path in model.glob("bert_model*"):
        shutil.copy(path, folder / "bare")


def _write_files(folder: pathlib.Path) -> None:
    special, words = tiny_files.VOCAB[:5], tiny_files.VOCAB[5:]
    _write_vocab(folder / "turned.txt", *special, *reversed(words))
    _write_vocab(folder / "russian.txt", *special, "да", "нет", "кот")
    _write_vocab(
        folder / "windows" / "vocab.txt",
        *("\ufeff[PAD]", *tiny_files.VOCAB[1:]),
        end="\r\n",
    )
    files = {
        "vocab.txt.gz": damaged.GZIP,
        "run/flags.txt": "# python run_classifier.py\n",
        "text.txt": "my thesis",
        "foreign_files/thesis.txt": "my thesis",
        "links/x.index": damaged.Link("nowhere"),
        "dangling": damaged.Link("nowhere"),
        "model_link": damaged.Link("model"),
        "replaced_link": damaged.Link("replaced"),
        "pipe": damaged.PIPE,
    }
    damaged.write_files(folder, files)
