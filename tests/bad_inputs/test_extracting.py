"""Bad inputs of extract_features.py."""

import json
import os
import pathlib
import shutil

from bert_tf import file_systems
from bert_tf.interop import formats
from tests import small_disks, tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest

SCRIPT = matrix.Script(
    "extract_features",
    {
        "input_file": "{data}/lines.txt",
        "output_file": "{out}/vectors.jsonl",
        "init_checkpoint": "{data}/model",
        "max_seq_length": "16",
        "layers": "-1",
    },
)


def _input(name: str, line: str) -> matrix.Case:
    """Returns a case of another input."""
    return matrix.Case({"input_file": f"{{data}}/{name}"}, line)


def _output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another output."""
    return matrix.Case({"output_file": path, **flags}, line)


def _export(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a SavedModel besides."""
    return matrix.Case({"export_dir": path, "unit": "mean", **flags}, line)


def _model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another model."""
    return matrix.Case(
        {"init_checkpoint": f"{{data}}/models/{name}", **flags}, line
    )


CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to write": matrix.Case(
        {"input_file": None, "output_file": None},
        "Give --output_file, --export_dir or both.",
    ),
    "input without output": matrix.Case(
        {"output_file": None}, "Give --output_file, --export_dir or both."
    ),
    "output without input": matrix.Case(
        {"input_file": None},
        "--input_file and --output_file go together. Received:",
    ),
    "unknown flag": matrix.Case(
        {"layer": "-1"},
        "There is no flag --layer. Did you mean --layers? python",
    ),
    "master": matrix.Case(
        {"master": "grpc://x"},
        "--master belonged to TF1 sessions. Give the address of a TPU as",
    ),
    "one-hot embeddings": matrix.Case(
        {"use_one_hot_embeddings": "true"},
        "--use_one_hot_embeddings was for TPUs in TF1. Leave it out: TPUs",
    ),
    "layers of letters": matrix.Case(
        {"layers": "-1,x"},
        "--layers takes whole numbers with commas between. Received:",
    ),
    "layers of halves": matrix.Case(
        {"layers": "-1.5"},
        "--layers takes whole numbers with commas between. Received:",
    ),
    "no layers": matrix.Case(
        {"layers": ""},
        "--layers must be given or left out, and it is empty. Is a variable",
    ),
    "layer that is not there": matrix.Case(
        {"layers": "-3"},
        "The model's layers are numbered 0 to 1, or -2 to -1 from the end.",
    ),
    "layers of another choice": matrix.Case(
        {"features": "last", "layers": "-1"},
        "--layers goes with --features=layers: leave it out. Received:",
    ),
    "a choice of four layers": matrix.Case(
        {"features": "concat_last_four", "layers": None},
        "features=concat_last_four needs a model of at least 4 layers.",
    ),
    "weights of another choice": matrix.Case(
        {"layer_weights": "1,1,1,1"},
        "--layer_weights goes with --features=weighted_sum_last_four: leave",
    ),
    "three weights": matrix.Case(
        {
            "features": "weighted_sum_last_four",
            "layers": None,
            "layer_weights": "1,1,1",
        },
        "`layer_weights` are four, and go with",
    ),
    "a weight that is no number": matrix.Case(
        {
            "features": "weighted_sum_last_four",
            "layers": None,
            "layer_weights": "1,1,1,nan",
        },
        "--layer_weights takes numbers with commas between. Received:",
    ),
    "unknown choice": matrix.Case(
        {"features": "first", "layers": None},
        "--features must be one of layers, embeddings, second_to_last, last,",
    ),
    "unknown unit": matrix.Case(
        {"unit": "line"},
        "--unit must be one of token, word, cls, mean. Received: unit=line",
    ),
    "length 3": matrix.Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "length 33": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for: lower",
    ),
    "batch 0": matrix.Case(
        {"batch_size": "0"},
        "--batch_size must be a whole number, at least 1. Received:",
    ),
    "window -1": matrix.Case(
        {"sort_window": "-1"},
        "--sort_window must be a whole number, at least 1. Received:",
    ),
    "window 2**63": matrix.Case(
        {"sort_window": str(2**63)},
        "--sort_window must be a whole number, at least 1, at most",
    ),
    "format of nothing": matrix.Case(
        {
            "input_file": None,
            "output_file": None,
            "output_format": "npy",
            "export_dir": "{out}/export",
            "unit": "mean",
        },
        "--output_format goes with --output_file: leave it out. Received:",
    ),
    "unknown format": matrix.Case(
        {"output_format": "csv"},
        "--output_format must be one of jsonl, npy, parquet, tfrecord.",
    ),
    "words in a SavedModel": _export(
        "{out}/export",
        "A SavedModel gives vectors of tokens or of texts, not of words.",
        unit="word",
    ),
    # ---- Input
    "name of two lines": _output(
        "{out}/a\nb.npy",
        "--output_file holds a line end, which flags.txt can't keep. Rename",
    ),
    "everything wrong": matrix.Case(
        {"input_file": "{data}/none", "layers": "x", "unit": "word"},
        "There is no such file. Received: input_file={data}/none",
    ),
    "input empty": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not set? Give a",
    ),
    "input is not there": _input(
        "none.txt",
        "There is no such file. Received: input_file={data}/none.txt",
    ),
    "input is a folder": _input(
        "model",
        "This is a folder: give a file. Received: input_file={data}/model",
    ),
    "input dangles": _input(
        "dangling",
        "There is no such file. Received: input_file={data}/dangling",
    ),
    "empty file": _input(
        "empty.txt", "{data}/empty.txt has no lines. Expected a text on each."
    ),
    "Latin-1": _input(
        "latin_1.txt",
        "{data}/latin_1.txt, line 2: the text is not UTF-8 (invalid",
    ),
    "UTF-16": _input(
        "utf_16.txt",
        "{data}/utf_16.txt can't be read: it is UTF-16, not UTF-8. Convert",
    ),
    "binary": _input(
        "binary.txt",
        "{data}/binary.txt, line 1: the text is not UTF-8 (invalid start",
    ),
    "compressed": _input(
        "lines.txt.gz",
        "{data}/lines.txt.gz can't be read: it is compressed (gzip). Unpack",
    ),
    "git-lfs": _input(
        "lfs.txt",
        "{data}/lfs.txt can't be read: it is a pointer of git-lfs, not the",
    ),
    "a glob": _input(
        "*.txt", "There is no such file. Received: input_file={data}/*.txt"
    ),
    "two files": matrix.Case(
        {"input_file": "{data}/lines.txt,{data}/lines.txt"},
        "There is no such file. Received:",
    ),
    "a bad line late": _input(
        "late.txt",
        "{data}/late.txt, line 601: the text is not UTF-8 (invalid start",
    ),
    # ---- Output
    "output empty": _output(
        "", "--output_file is empty. Is a variable of the shell not set? Give a"
    ),
    "output is the input": _output(
        "{data}/lines.txt",
        "--output_file would be written over what --input_file reads: choose",
    ),
    "output is the input, overwriting": _output(
        "{data}/lines.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the input by ..": _output(
        "{data}/model/../lines.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the input by a hard link": _output(
        "{data}/hard.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the input by a link": _output(
        "{data}/link.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the vocabulary": _output(
        "{data}/model/vocab.txt",
        "--output_file would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "output is the checkpoint": _output(
        "{data}/model/bert_model.ckpt.index",
        "--output_file would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "output is the config": _output(
        "{data}/other/bert_config.json",
        "--output_file would be written over what --bert_config_file reads:",
        bert_config_file="{data}/other/bert_config.json",
        overwrite="true",
    ),
    "output is there": _output(
        "{data}/notes.txt",
        "{data}/notes.txt exists. Choose another --output_file, or replace",
    ),
    "output is a folder": _output(
        "{data}/other",
        "--output_file must name a file, and this is a folder. Received:",
    ),
    "output below a file": _output(
        "{data}/notes.txt/x.npy",
        "--output_file can't be made: {data}/notes.txt is no folder.",
    ),
    "output dangles": _output(
        "{data}/dangling",
        "--output_file can't be made: {data}/dangling is a link to what is",
    ),
    "offsets are there": _output(
        "{data}/mine.npy",
        "{data}/mine.npy.offsets.npy exists. Choose another --output_file,",
    ),
    "an unknown file system": _output(
        "s4://bucket/x.jsonl",
        "There is no file system s4:// here. Give a local path, or one of",
    ),
    "folder is there": _export(
        "{data}/other",
        "{data}/other holds bert_config.json, and must be new or empty:",
    ),
    "folder is there, overwriting": _export(
        "{data}/other",
        "{data}/other holds bert_config.json, and must be new or empty:",
        overwrite="true",
    ),
    "folder is a file": _export(
        "{data}/notes.txt",
        "--export_dir must be a new folder, and this is a file. Received:",
    ),
    "folder is the model": _export(
        "{data}/model",
        "--export_dir would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "folder is the root": _export(
        "/", "--export_dir would be written over what --init_checkpoint reads:"
    ),
    "folder is the output": _export(
        "{out}/vectors.jsonl",
        "--output_file and --export_dir would be written over one another:",
    ),
    "folder of the output": _export(
        "{out}",
        "--output_file and --export_dir would be written over one another:",
    ),
    "folder below the output": _export(
        "{out}/vectors.jsonl/x",
        "--output_file and --export_dir would be written over one another:",
    ),
    # ---- Model
    "no model": matrix.Case(
        {"init_checkpoint": None},
        "Give --init_checkpoint (Checkpoint of the model, of any format).",
    ),
    "model is not there": _model(
        "none",
        "There is no checkpoint {data}/models/none: {data}/models/none.index",
    ),
    "model of the Hub": matrix.Case(
        {"init_checkpoint": "bert-base-cased"},
        "There is no folder bert-base-cased here. A Hugging Face model is",
    ),
    "unknown preset": matrix.Case(
        {"init_checkpoint": "bert_base"},
        "There is no checkpoint bert_base: neither the file bert_base.index,",
    ),
    "empty folder": _model(
        "empty_folder",
        "The folder {data}/models/empty_folder holds no checkpoint. Looked",
    ),
    "index only": _model(
        "index_only",
        "The checkpoint {data}/models/index_only/bert_model.ckpt has an",
    ),
    "data only": _model(
        "data_only",
        "The folder {data}/models/data_only holds no checkpoint: neither",
    ),
    "cut index": _model(
        "cut_index",
        "The checkpoint {data}/models/cut_index/bert_model.ckpt can't be",
    ),
    "cut data": _model(
        "cut_data",
        "The checkpoint {data}/models/cut_data/bert_model.ckpt can't be",
    ),
    "flipped data": _model(
        "flipped_data",
        "The checkpoint {data}/models/flipped_data/bert_model.ckpt can't be",
    ),
    "git-lfs of data": _model(
        "lfs_data",
        "{data}/models/lfs_data/bert_model.ckpt.data-00000-of-00001 can't be",
    ),
    "two checkpoints": _model(
        "two",
        "The folder {data}/models/two holds several checkpoints. Name one of",
    ),
    "SavedModel": _model(
        "saved_model",
        "The folder {data}/models/saved_model is a SavedModel, which can be",
    ),
    "ALBERT": _model(
        "albert",
        "{data}/models/albert/bert_model.ckpt is no BERT: by its names it is",
    ),
    "TensorFlow 2": _model(
        "tf2", "{data}/models/tf2/bert_model.ckpt can't be read: it is of"
    ),
    "strangers": _model(
        "strangers",
        "{data}/models/strangers/bert_model.ckpt: the tensors are not those",
    ),
    "RoBERTa": _model(
        "hf_roberta",
        "{data}/models/hf_roberta/config.json: This is a roberta model, not",
    ),
    "Hugging Face without weights": _model(
        "hf_no_weights",
        "{data}/models/hf_no_weights/config.json: There are no weights",
    ),
    "no config": _model(
        "no_config",
        "The model's architecture is not known: give --bert_config_file, or",
    ),
    "config of a decoder": _model(
        "config_decoder",
        "{data}/models/config_decoder/bert_config.json: This BERT computes",
    ),
    "config of more layers": _model(
        "config_deep",
        "{data}/models/config_deep/bert_model.ckpt: the tensors are not",
    ),
    "config is a page": _model(
        "config_html",
        "{data}/models/config_html/bert_config.json is not JSON: it is a web",
    ),
    "no vocabulary": _model(
        "no_vocab",
        "The vocabulary is not known: give --vocab_file, or a checkpoint",
    ),
    "empty vocabulary": _model(
        "vocab_empty",
        "The vocabulary of {data}/models/vocab_empty/bert_model.ckpt is not",
    ),
    "short vocabulary": _model(
        "vocab_short",
        "The vocabulary of {data}/models/vocab_short/bert_model.ckpt does",
    ),
    "cased vocabulary": _model(
        "vocab_cased",
        "The vocabulary of {data}/models/vocab_cased/bert_model.ckpt is",
    ),
    "uncased vocabulary": matrix.Case(
        {"do_lower_case": "false"},
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
    ),
    "vocabulary without [SEP]": _model(
        "vocab_no_sep",
        "The vocabulary of {data}/models/vocab_no_sep/bert_model.ckpt lacks",
    ),
    "vocabulary is not there": matrix.Case(
        {"vocab_file": "{data}/none"},
        "There is no such file. Received: vocab_file={data}/none",
    ),
    "config is not there": matrix.Case(
        {"bert_config_file": "{data}/none"},
        "There is no such file. Received: bert_config_file={data}/none",
    ),
    "another's vocabulary": matrix.Case(
        {"vocab_file": "{data}/models/vocab_long/vocab.txt"},
        "{data}/models/vocab_long/vocab.txt is not the vocabulary of",
    ),
    # ---- Folders of sentence-transformers
    "modules cut": _model(
        "st_cut",
        "{data}/models/st_cut/modules.json is not JSON: Unterminated string",
    ),
    "largest values": _model(
        "st_max",
        "{data}/models/st_max/1_Pooling/config.json makes a vector of a",
        layers=None,
    ),
    "no pooling": _model(
        "st_no_pooling",
        "{data}/models/st_no_pooling/modules.json makes vectors by",
        layers=None,
    ),
    # ---- Devices
    "float16 on a CPU": matrix.Case(
        {"dtype": "float16"},
        "float16 needs a GPU. TPUs and CPUs have bfloat16, which needs no",
    ),
    "a TPU by two names": matrix.Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu. Received:",
    ),
    "no TPU": matrix.Case(
        {"use_tpu": "true"},
        "No TPU was found. On a TPU host leave --tpu_name out and install",
    ),
    "workers": matrix.Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "--distribution_strategy must be one of default, mirrored, tpu.",
    ),
}

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/vectors.jsonl."),
    "odd lines": matrix.Case({"input_file": "{data}/odd.txt"}, "5 lines"),
    "an odd name": matrix.Case(
        {"output_file": "{out}/é ü 博 %s {{}}.npy"}, "博 %s"
    ),
    "a C locale": matrix.Case(
        {"output_file": "{out}/é.jsonl"}, "é", environment={"LC_ALL": "C"}
    ),
    "no backend of matplotlib": matrix.Case(
        {}, "", environment={"MPLBACKEND": "none"}
    ),
    "batch of an export alone": matrix.Case(
        {
            "input_file": None,
            "output_file": None,
            "batch_size": "4",
            "export_dir": "{out}/export",
            "unit": "mean",
        },
        "Not used, as they go with --output_file: --batch_size.",
    ),
}


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    model = folder / "model"
    tiny_files.write_model(model)
    damaged.write_changed(
        model, folder / "models", damaged.CONFIGS | damaged.VOCABS
    )
    bad_models.write(folder / "models", model)
    _write_sentence_transformers(folder / "models", model)
    text = "the cat sat .\na dog ran ||| it sees rome !\n"
    for name, data in {
        "lines.txt": text.encode(),
        "many.txt": 9 * text.encode(),
        "empty.txt": b"",
        "latin_1.txt": "the cat\ncafé\n".encode("latin-1"),
        "utf_16.txt": text.encode("utf-16"),
        "binary.txt": damaged.BINARY,
        "lines.txt.gz": damaged.GZIP,
        "lfs.txt": bad_models.LFS,
        "late.txt": text.encode() * 300 + b"\xff\n",
        "notes.txt": b"mine",
        "mine.npy.offsets.npy": b"mine",
        "odd.txt": "\ufeffthe cat\r\n\n \t\n\u2028 a\x00 dog\nrome".encode(),
    }.items():
        (folder / name).write_bytes(data)
    (folder / "dangling").symlink_to("none")
    os.link(folder / "lines.txt", folder / "hard.txt")
    (folder / "link.txt").symlink_to("lines.txt")
    (folder / "other").mkdir()
    shutil.copy(model / "bert_config.json", folder / "other")


def _write_sentence_transformers(
    folder: pathlib.Path, model: pathlib.Path
) -> None:
    source = formats.open_checkpoint(str(model))
    formats.write(str(folder / "hf"), "hf", source)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in kinds.items()
    ]
    whole = json.dumps(modules)
    for name, text in {
        "st_cut": whole[:30],
        "st_max": whole,
        "st_no_pooling": json.dumps(modules[:1]),
    }.items():
        shutil.copytree(folder / "hf", folder / name)
        (folder / name / "modules.json").write_text(text)
    (folder / "st_max" / "1_Pooling").mkdir()
    (folder / "st_max" / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode": "max"}'
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    build(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


@pytest.mark.parametrize("name", RIGHT)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_works(SCRIPT, RIGHT[name], data, tmp_path)


def test_another_process_writes_it(data, tmp_path):
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "vectors.jsonl.tmp"
    descriptor = file_systems.lock(str(path))
    assert descriptor is not None
    case = matrix.Case(
        {},
        f"Another process writes {{out}}/vectors.jsonl: process {os.getpid()}",
    )
    try:
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        file_systems.unlock(descriptor)


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 4):
        case = matrix.Case(
            {
                "input_file": "{data}/many.txt",
                "output_file": f"{tmp_path}/disk/x.jsonl",
            },
            f"Cannot write {tmp_path}/disk/x.jsonl: No space left on device",
        )
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not os.listdir(tmp_path / "disk")
