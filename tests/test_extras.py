"""Without an extra, what needs it says so before any work."""

import json
import os
import pathlib
import subprocess
import sys

from bert_tf import extras
from bert_tf.errors import InputError
from tests.vocabularies import byte_pair_samples

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
# Runs a script as if a package were not installed.
_WITHOUT = """
import importlib.util, runpy, sys
package, script = sys.argv[1:3]
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: (
    None if name == package else find(name, *rest)
)
sys.modules[package] = None  # an import of it fails
sys.argv = sys.argv[2:]
runpy.run_path(script, run_name="__main__")
"""


def _without(package: str, script: str, *flags: str, code: int = 1) -> str:
    """Returns the last line of a script that runs without a package."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, package, script, *flags],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stderr.strip().split("\n")[-1]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "text.txt").write_text("One two. Three.\nFour.\n")
    pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] one two three four ."
    (tmp_path / "vocab.txt").write_text(pieces.replace(" ", "\n") + "\n")
    return tmp_path


def test_check():
    extras.check("numpy", "data", "Vectors")
    with pytest.raises(InputError) as error:
        extras.check("no_such_package", "data", "Sentences")
    assert str(error.value) == (
        "Sentences need the package no_such_package, of the extra data: in a "
        "clone of this project pip install '.[data]', or make venv."
    )


def test_sentences(files):
    line = _without(
        "sentencex",
        "create_pretraining_data.py",
        "--input_format=documents",
        f"--input_file={files}/text.txt",
        f"--vocab_file={files}/vocab.txt",
        f"--output_dir={files}/records",
    )
    assert "need the package sentencex, of the extra data: " in line
    assert not (files / "records").exists()


def test_symbols_need_no_sentences(files):
    (files / "symbols.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nA\nB\n"
    )
    (files / "text.txt").write_text("A B A\n\nB A B\n\nA A\n")
    _without(
        "sentencex",
        "create_pretraining_data.py",
        *("--input_format=files", "--objective=none"),
        f"--input_file={files}/text.txt",
        f"--vocab_file={files}/symbols.txt",
        f"--output_dir={files}/records",
        code=0,
    )
    assert (files / "records" / "manifest.json").exists()


def test_vocabularies(files):
    line = _without(
        "tokenizers",
        "learn_vocabulary.py",
        f"--input_file={files}/text.txt",
        f"--vocab_file={files}/learned.txt",
    )
    assert "need the package tokenizers, of the extra data: " in line
    assert not (files / "learned.txt").exists()


def test_onnx(files):
    line = _without(
        "tf2onnx",
        "export_saved_model.py",
        *("--format=onnx", f"--model_dir={files}", f"--export_dir={files}/1"),
    )
    assert "need the package tf2onnx, of the extra onnx: " in line
    assert not (files / "1").exists()


def test_byte_pairs(files):
    """It is missed before workers start, which would only say that one died."""
    vocab = byte_pair_samples.write(files)
    line = _without(
        "tokenizers",
        "create_pretraining_data.py",
        f"--input_file={files}/text.txt",
        f"--vocab_file={vocab}",
        f"--output_dir={files}/records",
    )
    assert line.startswith(
        "error: Vocabularies of byte pairs need the package tokenizers, of the "
        "extra data: "
    )
    assert not (files / "records").exists()


@pytest.mark.slow
@pytest.mark.parametrize("package", ["aiohttp", "prometheus_client"])
def test_server(package, tmp_path):
    line = _without(package, "run_server.py", f"--model={tmp_path}")
    assert f"need the package {package}, of the extra server: " in line


@pytest.mark.slow
def test_presets(files):
    line = _without(
        "keras_hub",
        "convert_checkpoint.py",
        "--input_checkpoint=bert_tiny_en_uncased",
        "--output_format=tf1",
        f"--output_path={files}/out",
    )
    assert line.startswith(
        "error: There is neither a file bert_tiny_en_uncased.index nor a "
        "folder bert_tiny_en_uncased; presets of KerasHub need the package "
        "keras_hub, of the extra keras-hub: "
    )


@pytest.mark.slow
def test_data_sets(files):
    config = json.loads((_ROOT / "configs/models/tiny.json").read_text())
    (files / "config.json").write_text(json.dumps({**config, "vocab_size": 10}))
    line = _without(
        "tensorflow_datasets",
        "run_classifier.py",
        "--task_name=MRPC",
        "--do_train=true",
        f"--bert_config_file={files}/config.json",
        f"--vocab_file={files}/vocab.txt",
        f"--output_dir={files}/out",
    )
    assert "need the package tensorflow_datasets, of the extra tfds: " in line


@pytest.mark.slow
def test_files_for_tensorflow_serving(files):
    line = _without(
        "tensorflow_serving",
        "export_saved_model.py",
        f"--model_dir={files}",
        f"--serving_dir={files}/served",
    )
    assert (
        "need the package tensorflow_serving, of the extra tensorflow-" in line
    )
    assert not (files / "served").exists()
