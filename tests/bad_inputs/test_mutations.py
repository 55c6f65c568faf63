"""Files of all types that scripts read, changed in many ways."""

import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bert_tf import vocabularies
from bert_tf.api import models
from bert_tf.checkpoints import (
    adapters,
    best,
    formats,
    huggingface_weights,
    sentence_transformers,
    word_vectors,
)
from bert_tf.encoders import families
from bert_tf.exporting import runtimes, unsafe_ops, version_labels
from bert_tf.records import manifests, reading
from bert_tf.server import batching, constant_kernels, servables
from bert_tf.serving import serving_model
from bert_tf.storage import kept_flags
from bert_tf.tasks import table_formats, tables
from bert_tf.tasks.multiple_choice import choice_problems
from bert_tf.tasks.squad import squad_questions, squad_threshold
from bert_tf.tasks.tagging import conll
from bert_tf.vocabularies import symbols, word_pieces
from tests import combinations, exports, pretraining_records, tiny_files
from tests import interop_samples as samples
from tests.bad_inputs import damaged, mutations
from tests.server import served
from tests.vocabularies import byte_pair_samples, sentence_models

import h5py
import numpy as np
import pytest
import tensorflow as tf


class Kind(NamedTuple):
    """A folder, its files to change, and what reads it."""

    write: Callable[[pathlib.Path], object]
    files: Sequence[str]
    read: mutations.Read


# ---- Folders -----------------------------------------------------------------


def _files(**files: object) -> Callable[[pathlib.Path], object]:
    named = {x.replace("__", "."): y for x, y in files.items()}
    return lambda folder: damaged.write_files(folder, named)


def _hugging_face(folder: pathlib.Path) -> None:
    tiny_files.write_model(folder / "model")
    samples.convert(str(folder / "model"), "hf", str(folder / "hf"))


def _byte_pairs(folder: pathlib.Path) -> None:
    byte_pair_samples.write(folder, 300)


def _sentence_pieces(folder: pathlib.Path) -> None:
    (folder / "spiece.model").write_bytes(sentence_models.train())


def _h5(folder: pathlib.Path) -> None:
    with h5py.File(folder / "tf_model.h5", "w") as file:
        file["bert/bert/pooler/dense/kernel:0"] = np.ones([8, 8], "f4")


def _records(folder: pathlib.Path) -> None:
    files = pretraining_records.write(folder, (3,))
    pretraining_records.write_manifest(files)


def _adapter(folder: pathlib.Path) -> None:
    encoder = models.Bert(tiny_files.CONFIG)
    encoder.enable_lora(2)
    encoder.save_lora(folder / "adapter")


def _sentence_transformer(folder: pathlib.Path) -> None:
    kinds = ("Transformer", "Pooling")
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"x.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, ("", "1"), strict=True))
    ]
    files = {
        "modules.json": modules,
        "1/config.json": {
            "word_embedding_dimension": 8,
            "pooling_mode_mean_tokens": True,
        },
        "sentence_bert_config.json": {"max_seq_length": 16},
    }
    damaged.write_files(folder, files)


def _saved_model(folder: pathlib.Path) -> None:
    served.write_model(
        folder, lambda texts: {"length": tf.strings.length(texts)}
    )
    damaged.write_files(folder / "assets", {"export.json": {"head": "encoder"}})


def _export(folder: pathlib.Path) -> None:
    made = exports.made("one text")
    for name, data in made.files.items():
        (folder / name).write_bytes(data)
    file = folder / runtimes.DESCRIPTION
    values = json.loads(file.read_bytes())
    tensor = {"dtype": "int32", "shape": [None, None]}
    more = {"format": "litert", "inputs": {"input_ids": tensor}}
    more["outputs"] = {"logits": {"dtype": "float32", "shape": [None, 3]}}
    file.write_text(json.dumps(values | more))
    (folder / "model.tflite").write_bytes(b"x")


# ---- Readers -----------------------------------------------------------------


def _open(name: str, lower: bool = True) -> mutations.Read:
    return lambda folder: vocabularies.open(folder / name, lower)


def _checkpoint(name: str) -> mutations.Read:
    def read(folder: pathlib.Path) -> None:
        source = formats.open_checkpoint(str(folder / name))
        source.read([*source.shapes])

    return read


def _read_h5(folder: pathlib.Path) -> None:
    shapes, read = huggingface_weights.open_files(str(folder))
    for name in shapes:
        read(name)


def _serve(folder: pathlib.Path) -> None:
    path = str(folder)
    constant_kernels.are_constant(path)
    unsafe_ops.check(path, "--allow_unsafe_ops")
    servables.Servable(path, 1, batching.Limits()).close(seconds=0)


def _read_records(folder: pathlib.Path) -> None:
    path = str(folder / "records-0.tfrecord")
    reading.check_lengths(path)
    reading.count([path])
    if problem := reading.diagnose([path]):
        assert "\n" not in problem


@functools.cache
def _encoder() -> Any:
    return models.Bert(tiny_files.CONFIG)


def _table(name: str) -> mutations.Read:
    columns = {"text": "text", "label": "label"}

    def read(folder: pathlib.Path) -> None:
        path = str(folder / name)
        file_format = table_formats.find(path)
        list(tables.read_columns(path, columns, file_format=file_format))

    return read


def _vectors(folder: pathlib.Path) -> None:
    found = word_pieces.WordPiece(tuple(tiny_files.VOCAB), True)
    files = vocabularies.Files(found.kind, found.files)
    word_vectors.read(str(folder / "vectors.txt"), files, found, 2)


_QUESTION = {
    "id": "q",
    "question": "where",
    "answers": [{"text": "rome", "answer_start": 4}],
    "is_impossible": False,
}
_PARAGRAPH = {"context": "in, rome", "qas": [_QUESTION]}
_SQUAD = {"data": [{"paragraphs": [_PARAGRAPH]}]}
_ROWS = [{"text": "the cat", "label": "no"}, {"text": "a dog", "label": "yes"}]
_SWAG = (
    "video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,"
    "ending2,ending3,label\nv,0,a,the cat,it,gold,ran,sat,is,was,1\n"
)
_SERVED = (
    'model_config_list { config { name: "m" base_path: "/m" '
    'model_platform: "tensorflow" } }\n'
)
_HF_FILES = (
    *("config.json", "model.safetensors", "vocab.txt", "tokenizer.json"),
    "tokenizer_config.json",
)
_TF1 = "bert_model.ckpt"
_DATA = "data-00000-of-00001"

KINDS = {
    "configs": Kind(
        tiny_files.write_files,
        ["bert_config.json"],
        lambda folder: families.read_config(str(folder / "bert_config.json")),
    ),
    "vocab.txt": Kind(
        tiny_files.write_files, ["vocab.txt"], _open("vocab.txt")
    ),
    "symbols": Kind(
        _files(symbols__txt=damaged.lines([*symbols.SPECIAL, "a", "b"])),
        ["symbols.txt"],
        _open("symbols.txt"),
    ),
    "byte pairs": Kind(
        _byte_pairs, ["vocab.json", "merges.txt"], _open("vocab.json")
    ),
    "sentence pieces": Kind(
        _sentence_pieces, ["spiece.model"], _open("spiece.model")
    ),
    "Hugging Face": Kind(
        _hugging_face, [f"hf/{x}" for x in _HF_FILES], _checkpoint("hf")
    ),
    "h5": Kind(_h5, ["tf_model.h5"], _read_h5),
    "SavedModel": Kind(
        _saved_model,
        [
            *("saved_model.pb", "assets/export.json"),
            *(f"variables/variables.{x}" for x in ("index", _DATA)),
        ],
        _serve,
    ),
    "threshold": Kind(
        _files(null_score_diff_threshold__txt="0.5\n"),
        ["null_score_diff_threshold.txt"],
        lambda folder: squad_threshold.Threshold(
            None, True, str(folder)
        ).known(),
    ),
    "checkpoints": Kind(
        lambda folder: tiny_files.write_model(folder / "model"),
        [f"model/{x}" for x in (f"{_TF1}.index", f"{_TF1}.{_DATA}")],
        _checkpoint("model"),
    ),
    "adapters": Kind(
        _adapter,
        ["adapter/adapter_config.json", "adapter/adapter_model.safetensors"],
        lambda folder: adapters.read(_encoder(), folder / "adapter"),
    ),
    "sentence-transformers": Kind(
        _sentence_transformer,
        ["modules.json", "1/config.json", "sentence_bert_config.json"],
        lambda folder: sentence_transformers.read(str(folder)),
    ),
    "word vectors": Kind(
        _files(vectors__txt="the 1 2\ncat 0.5 -3e-1\n"),
        ["vectors.txt"],
        _vectors,
    ),
    "manifests": Kind(
        _records,
        ["manifest.json"],
        lambda folder: manifests.find([str(folder / "records-0.tfrecord")]),
    ),
    "records": Kind(_records, ["records-0.tfrecord"], _read_records),
    "questions": Kind(
        _files(squad__json=_SQUAD),
        ["squad.json"],
        lambda folder: squad_questions.read(str(folder / "squad.json")),
    ),
    "csv": Kind(
        _files(table__csv='text,label\n"a, b",yes\nc,no\n'),
        ["table.csv"],
        _table("table.csv"),
    ),
    "tsv": Kind(
        _files(table__tsv="text\tlabel\na\tyes\nc\tno\n"),
        ["table.tsv"],
        _table("table.tsv"),
    ),
    "jsonl": Kind(
        _files(table__jsonl=damaged.lines(map(json.dumps, _ROWS))),
        ["table.jsonl"],
        _table("table.jsonl"),
    ),
    "tagged words": Kind(
        _files(train__txt="the O\nrome B-LOC\n\na O\ncat O\n"),
        ["train.txt"],
        lambda folder: conll.read(str(folder / "train.txt"), conll.Columns()),
    ),
    "choices": Kind(
        _files(swag__csv=_SWAG),
        ["swag.csv"],
        lambda folder: choice_problems.read(str(folder / "swag.csv"), True),
    ),
    "flags": Kind(
        _files(flags__txt="--max_seq_length=16\n--do_lower_case=true\n"),
        ["flags.txt"],
        lambda folder: kept_flags.of_folder(str(folder)),
    ),
    "results": Kind(
        lambda folder: damaged.write_files(
            folder, {"best/results.json": {"accuracy": 0.5, "global_step": 7}}
        ),
        ["best/results.json"],
        lambda folder: best.checkpoint(str(folder)),
    ),
    "models.config": Kind(
        _files(models__config=_SERVED),
        ["models.config"],
        lambda folder: version_labels.read(str(folder)),
    ),
    "export.json": Kind(
        _export,
        ["export.json", "vocab.txt", "labels.txt", "bert_config.json"],
        lambda folder: serving_model.load(str(folder)),
    ),
}
_COUNTS = {"few": 10, "many": 50}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("amount", combinations.some(["few"], _COUNTS))
def test_changed_files(tmp_path, kind, amount, monkeypatch):
    """They are read, or an error of one line says what is wrong."""
    # It would search all objects of the tests for garbage, for each model.
    monkeypatch.setattr(servables, "_freeze", lambda: None)
    write, files, read = KINDS[kind]
    folder = tmp_path / "right"
    folder.mkdir()
    write(folder)
    if kind not in ("results", "export.json"):  # Without the weights.
        read(folder)
    found = [
        problem
        for name in files
        for problem in mutations.check(
            folder, tmp_path / "changed", name, read, _COUNTS[amount]
        )
    ]
    assert not found, "\n".join(found)
