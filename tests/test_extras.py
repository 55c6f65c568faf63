"""Without an extra, scripts that need it report this before any work."""

import configparser
import importlib.util
import json
import pathlib
import sys

from bert_tf import extras
from bert_tf.errors import InputError
from tests import scripts
from tests.vocabularies import byte_pair_samples

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_CONFIG = _ROOT / "configs/models"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "text.txt").write_text("One two. Three.\nFour.\n")
    pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] one two three four ."
    (tmp_path / "vocab.txt").write_text(pieces.replace(" ", "\n") + "\n")
    (tmp_path / "pairs").mkdir()
    byte_pair_samples.write(tmp_path / "pairs")
    config = json.loads((_CONFIG / "tiny.json").read_text())
    text = json.dumps({**config, "vocab_size": 10})
    (tmp_path / "config.json").write_text(text)
    symbols = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nA\nB\n"
    (tmp_path / "symbols.txt").write_text(symbols)
    (tmp_path / "table.tsv").write_text("text\tlabel\none\ta\ntwo\tb\n")
    (tmp_path / "rows.txt").write_text("A B A\n\nB A B\n\nA A\n")
    return tmp_path


@pytest.fixture
def without(files, monkeypatch):
    """Runs a script as if a package were not installed."""

    def without(package, script, *flags):
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *rest: None if name == package else find(name, *rest),
        )
        monkeypatch.setitem(sys.modules, package, None)  # blocks the import
        filled = [flag.format(files) for flag in flags]
        return scripts.run(files / "log", script, *filled)

    return without


def test_check():
    extras.check("numpy", "data", "Vectors")
    with pytest.raises(InputError) as error:
        extras.check("no_such_package", "data", "Sentences")
    assert str(error.value) == (
        "Sentences need the package no_such_package, of the extra data: in a "
        "clone of this project pip install '.[data]', or make venv."
    )


_CREATE = ("create_pretraining_data", "--output_dir={}/out")


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        (
            *("sentencex", "data"),
            (
                *(*_CREATE, "--input_format=documents"),
                *("--input_file={}/text.txt", "--vocab_file={}/vocab.txt"),
            ),
        ),
        (
            *("tokenizers", "data"),
            (
                *("learn_vocabulary", "--input_file={}/text.txt"),
                "--vocab_file={}/out",
            ),
        ),
        # Before workers start, which would only report that one died.
        (
            *("tokenizers", "data"),
            (
                *(*_CREATE, "--input_file={}/text.txt"),
                "--vocab_file={}/pairs/vocab.json",
            ),
        ),
        (
            *("tf2onnx", "onnx"),
            (
                *("export_saved_model", "--format=onnx", "--model_dir={}"),
                "--export_dir={}/out",
            ),
        ),
        (
            *("tensorflow_serving", "tensorflow-serving"),
            ("export_saved_model", "--model_dir={}", "--serving_dir={}/out"),
        ),
        (
            *("optuna", "search"),
            (
                *("run_classifier", "--search=2", "--do_train=true"),
                *("--do_eval=true", "--output_dir={}/out"),
            ),
        ),
        *(
            (
                *(package, package),
                (
                    *("run_classifier", f"--report_to={package}"),
                    *("--do_train=true", "--output_dir={}/out"),
                    *("--train_file={}/table.tsv", "--labels=a,b"),
                    *("--bert_config_file={}/config.json",),
                    "--vocab_file={}/vocab.txt",
                ),
            )
            for package in ("wandb", "mlflow")
        ),
        (
            *("jax", "jax"),
            (
                *("run_pretraining", "--runtime=pjrt", "--do_train=true"),
                *("--input_file={}/rows.txt", "--output_dir={}/out"),
            ),
        ),
        ("aiohttp", "server", ("run_server", "--model={}")),
        ("prometheus_client", "server", ("run_server", "--model={}")),
        (
            *("keras_hub", "keras-hub"),
            (
                "convert_checkpoint",
                "--input_checkpoint=bert_tiny_en_uncased",
                *("--output_format=tf1", "--output_path={}/out"),
            ),
        ),
        (
            *("huggingface_hub", "huggingface-hub"),
            (
                "convert_checkpoint",
                "--input_checkpoint=google-bert/bert-base-uncased",
                *("--output_format=tf1", "--output_path={}/out"),
            ),
        ),
        (
            *("tensorflow_datasets", "tfds"),
            (
                *("run_classifier", "--task_name=MRPC", "--do_train=true"),
                *("--bert_config_file={}/config.json", "--output_dir={}/out"),
                "--vocab_file={}/vocab.txt",
            ),
        ),
    ],
)
def test_script(files, without, package, extra, command):
    done = without(package, *command)
    assert done.wait() == 1
    assert done.lines[-1].startswith("error: ")
    says = f" need the package {package}, of the extra {extra}"
    assert says in done.lines[-1]
    assert package == "tensorflow_datasets" or not (files / "out").exists()


def test_symbols_need_no_sentences(files, without):
    done = without(
        *("sentencex", *_CREATE, "--input_format=files", "--objective=none"),
        *("--input_file={}/rows.txt", "--vocab_file={}/symbols.txt"),
        "--num_workers=1",
    )
    assert done.wait() == 0, done.stderr
    assert (files / "out" / "manifest.json").exists()


def test_servers_of_aiohttp_with_known_flaws_are_not_installed():
    """PYSEC-2026-4369: until 3.14.4, clients chose the scheme of a request."""
    setup = configparser.ConfigParser()
    setup.read(_ROOT / "setup.cfg")
    needed = setup["options.extras_require"]["server"].split()
    (aiohttp,) = [x for x in needed if x.startswith("aiohttp")]
    name, _, version = aiohttp.partition(">=")
    assert name == "aiohttp"
    assert tuple(map(int, version.split("."))) >= (3, 14, 4)
