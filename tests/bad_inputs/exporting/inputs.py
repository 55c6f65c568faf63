"""What export_saved_model.py is given that is wrong: commands and files."""

import pathlib
import shutil

from tests import tiny_files
from tests.bad_inputs import bad_models, matrix, trained

SCRIPT = matrix.Script(
    "export_saved_model",
    {"model_dir": "{data}/run", "export_dir": "{out}/1"},
)


def run(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another run."""
    return matrix.Case({"model_dir": f"{{data}}/{name}", **flags}, line)


def model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a model that is no run."""
    model = {"model_dir": None, "init_checkpoint": f"{{data}}/{name}"}
    return matrix.Case({**model, **flags}, line)


def out(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another folder to write."""
    return matrix.Case({"export_dir": path, **flags}, line)


# What is wrong with a run, and what is said.
RUNS = {
    "cut_data": (
        "model.ckpt-7 can't be read, it is truncated, corrupt or not all "
        "there: Read less bytes than"
    ),
    "lfs_data": (
        "model.ckpt-7.data-00000-of-00001 can't be read: it is a pointer of "
        "git-lfs, not the file itself. Run"
    ),
    "nan": (
        "model.ckpt-7 holds weights that are infinite or no numbers (NaN): "
        "output_bias. Its training"
    ),
    "labels_three": (
        "model.ckpt-7 has 2 classes, and "
        "{data}/runs/labels_three/labels.txt names 3. Give 2 by --labels, "
        "in"
    ),
    "labels_twice": (
        "labels.txt must name the classes, one a line: 'no' is there more "
        "than once. Bring it back as it was,"
    ),
    "no_labels": (
        "labels.txt, which names the 2 classes. Bring it back, or give "
        "--labels in the order of training."
    ),
    "flags_length": (
        "flags.txt, which keeps the flags of the run, is wrong: "
        "--max_seq_length must be a whole number, at"
    ),
    "no_config": "The model's architecture is not known: give",
    "config_empty": (
        "bert_config.json is not JSON: it is empty. Give the "
        "bert_config.json of the model."
    ),
    "config_cut": (
        "bert_config.json is not JSON: Unterminated string starting at: "
        "line 8 column 3 (char 149). Give the"
    ),
    "config_lfs": (
        "bert_config.json is not JSON: it is a pointer of git-lfs, not the "
        "file itself. Run `git lfs pull` in"
    ),
    "config_html": (
        "bert_config.json is not JSON: it is a web page, saved in the place "
        "of the file. Download the file"
    ),
    "config_list": (
        "bert_config.json must hold one JSON object, the config of a BERT. "
        "Received: [1, 2]"
    ),
    "config_binary": (
        "bert_config.json is not JSON: 'utf-8' codec can't decode byte 0x80 "
        "in position 0: invalid start"
    ),
    "config_text": (
        "bert_config.json: `hidden_size` must be a positive integer. "
        "Received: hidden_size='8'"
    ),
    "config_true": (
        "bert_config.json: `num_hidden_layers` must be a positive integer. "
        "Received: num_hidden_layers=True"
    ),
    "config_nan": (
        "bert_config.json: `hidden_dropout_prob` must be a number, at least "
        "0 and below 1. Received:"
    ),
    "config_heads": (
        "bert_config.json: `hidden_size` must be a multiple of "
        "`num_attention_heads`. Received:"
    ),
    "config_act": (
        "bert_config.json: `hidden_act` must be one of gelu, gelu_erf, "
        "relu, tanh, linear. Received:"
    ),
    "config_key": (
        "bert_config.json: The BERT config has unknown keys: hidden_sise "
        "(did you mean hidden_size?). What is"
    ),
    "config_no_size": (
        "bert_config.json: The BERT config has no `vocab_size`: add the "
        "number of pieces of the vocabulary."
    ),
    "config_xlnet": (
        "bert_config.json: This is a xlnet model, not BERT, and only these "
        "can be read: "
    ),
    "config_decoder": (
        "bert_config.json: This BERT computes otherwise than the original: "
        "`is_decoder` must be False."
    ),
    "config_wide": (
        "model.ckpt-7: the tensors are not those of the config beside them: "
        "bert/embeddings/word_embeddings"
    ),
    "config_deep": "bert/encoder/layer_2/attention/output/LayerNorm/beta",
    "config_shallow": "is not in the config, which says num_hidden_layers=1;",
    "no_vocab": "The vocabulary is not known: give --vocab_file, or a",
    "vocab_empty": "vocab.txt is not a BERT vocabulary: it is empty.",
    "vocab_lfs": (
        "vocab.txt is not a BERT vocabulary: it is a pointer of git-lfs, "
        "not the file itself. Run `git lfs"
    ),
    "vocab_binary": (
        "vocab.txt, line 1: a vocabulary must be UTF-8 text. Received: "
        "byte=0x80"
    ),
    "vocab_utf_16": (
        "vocab.txt can't be read: it is UTF-16, not UTF-8. Convert it, as "
        "with iconv."
    ),
    "vocab_short": (
        "vocab.txt does not belong to this BERT config: it has 43 pieces, "
        "the config says vocab_size=44. Give"
    ),
    "vocab_long": (
        "vocab.txt does not belong to this BERT config: it has 45 pieces, "
        "the config says vocab_size=44. Give"
    ),
    "vocab_no_unk": (
        "vocab.txt is not a BERT vocabulary: it lacks the piece '[UNK]', "
        "which stands for unknown words."
    ),
    "vocab_no_cls": (
        "vocab.txt lacks the piece '[CLS]', which the model reads beside "
        "every text. Give the vocabulary that"
    ),
    "vocab_no_sep": (
        "vocab.txt lacks the piece '[SEP]', which the model reads beside "
        "every text. Give the vocabulary that"
    ),
    "vocab_twice": (
        "vocab.txt, line 9: this piece is already on line 8. The original "
        "takes the last: give line 8 a name"
    ),
    "vocab_hole": (
        "vocab.txt, line 8: a vocabulary must not hold empty lines, but at "
        "its end. Where the model has a row"
    ),
    "vocab_cased": (
        "vocab.txt is cased: lower-casing and accent stripping change 31 of "
        "its 31 pieces with letters, for"
    ),
}


# With another model.
MODELS = {
    "index_only": "bert_model.ckpt has an index but no data:",
    "cut_index": (
        "bert_model.ckpt can't be read, it is truncated, corrupt or not all "
        "there: not an sstable (bad magic"
    ),
    "two": "The folder {data}/models/two holds several checkpoints. Name",
    "saved_model": "{data}/models/saved_model is a SavedModel, which can be",
    "albert": (
        "bert_model.ckpt is no BERT: by its names it is ALBERT. Give a "
        "checkpoint of BERT, or the config of this one."
    ),
    "strangers": (
        "bert_model.ckpt: the tensors are not those of the config beside "
        "them: bert/embeddings/LayerNorm/beta"
    ),
    "hf_xlnet": (
        "config.json: This is a xlnet model, not BERT, and only these can "
        "be read: "
    ),
    "hf_cut": (
        "model.safetensors can't be read, it is truncated or corrupt, such "
        "as a download that was cut off:"
    ),
    "hf_lfs": (
        "model.safetensors can't be read: it is a pointer of git-lfs, not "
        "the file itself. Run `git lfs pull`"
    ),
    "empty_folder": (
        "The folder {data}/models/empty_folder holds no checkpoint. Looked "
        "for: bert_model.ckpt.index or"
    ),
    "config_broken": (
        "bert_config.json is not JSON: Expecting value: line 1 column 16 "
        "(char 15). Give the bert_config.json"
    ),
}


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    trained.write(folder)
    tiny_files.write_model(folder / "model")
    (folder / "models").mkdir()
    bad_models.write(folder / "models", folder / "model")
    for name in ("exported", "more"):
        (folder / name / "variables").mkdir(parents=True)
        (folder / name / "saved_model.pb").write_bytes(b"x")
    (folder / "more" / "warmup.txt").write_bytes(b"mine")
    (folder / "notes").mkdir()
    shutil.copy(folder / "run" / "vocab.txt", folder / "notes")
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "linked").symlink_to("run")
