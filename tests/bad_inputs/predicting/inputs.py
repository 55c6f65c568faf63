"""What run_prediction.py is given that is wrong: commands and files."""

import json
import os
import pathlib

from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix, trained

SCRIPT = matrix.Script(
    "run_prediction",
    {
        "model_dir": "{data}/run",
        "input_file": "{data}/lines.txt",
        "output_file": "{out}/answers.jsonl",
    },
)


def input_of(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another input."""
    return matrix.Case({"input_file": f"{{data}}/{name}", **flags}, line)


def answers_of(model: str, name: str, line: str) -> matrix.Case:
    """Returns a case of lines for another model."""
    return input_of(name, line, model_dir=f"{{data}}/{model}")


def output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another output."""
    return matrix.Case({"output_file": path, **flags}, line)


def run(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another run."""
    return matrix.Case({"model_dir": f"{{data}}/runs/{name}", **flags}, line)


def pretrained(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another model that is no run."""
    model = {"model_dir": None, "init_checkpoint": f"{{data}}/{name}"}
    return matrix.Case({**model, **flags}, line)


def saved(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a SavedModel."""
    model = {"model_dir": None, "saved_model": f"{{data}}/saved/{name}"}
    return matrix.Case({**model, **flags}, line)


# What is wrong with a run, and what is said.
RUNS = {
    "untrained": (
        "This folder holds no trained weights (model.ckpt-STEP.index): it "
        "is not the --output_dir of a"
    ),
    "index_only": (
        "model.ckpt-7 has an index but no data: "
        "{data}/runs/index_only/model.ckpt-7.data-00000-of-00001 does"
    ),
    "cut_index": (
        "model.ckpt-7 can't be read, it is truncated, corrupt or not all "
        "there: not an sstable (bad magic"
    ),
    "cut_data": (
        "model.ckpt-7 can't be read, it is truncated, corrupt or not all "
        "there: Read less bytes than"
    ),
    "flipped_data": (
        "model.ckpt-7 can't be read, it is truncated, corrupt or not all "
        "there: TensorBundle at"
    ),
    "lfs_index": (
        "model.ckpt-7.index can't be read: it is a pointer of git-lfs, not "
        "the file itself. Run `git lfs"
    ),
    "lfs_data": (
        "model.ckpt-7.data-00000-of-00001 can't be read: it is a pointer of "
        "git-lfs, not the file itself. Run"
    ),
    "nan": (
        "model.ckpt-7 holds weights that are infinite or no numbers (NaN): "
        "output_bias. Its training"
    ),
    "best_binary": (
        "best/results.json is not UTF-8 text: invalid start byte at byte 0. "
        "Convert it, as with iconv, or"
    ),
    "best_gone": (
        "best/results.json says that the best weights are "
        "{data}/runs/best_gone/best/model.ckpt-5, which are"
    ),
    "no_labels": (
        "labels.txt, which names the 2 classes. Bring it back, or give "
        "--labels in the order of training."
    ),
    "labels_empty": (
        "labels.txt must name the classes, one a line: it is empty. Bring "
        "it back as it was, or remove it and"
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
    "labels_blank": (
        "labels.txt must name the classes, one a line: a line is empty. "
        "Bring it back as it was, or remove it"
    ),
    "labels_binary": (
        "labels.txt is not UTF-8 text: invalid start byte at byte 0. "
        "Convert it, as with iconv, or copy it"
    ),
    "labels_lfs": (
        "labels.txt must name the classes, one a line: it is a pointer of "
        "git-lfs, not the file itself. Run"
    ),
    "flags_binary": (
        "flags.txt is damaged: it keeps the flags of a run, and is not "
        "UTF-8 text (invalid start byte at byte"
    ),
    "flags_length": (
        "flags.txt, which keeps the flags of the run, is wrong: "
        "--max_seq_length must be a whole number, at"
    ),
    "flags_nothing": (
        "flags.txt, which keeps the flags of the run, is wrong: "
        "--max_seq_length must be a whole number, at"
    ),
    "flags_long": (
        "`max_seq_length` is more than the model has positions for: lower "
        "it. Received: max_seq_length=64,"
    ),
    "flags_case": (
        "vocab.txt is uncased: none of its 31 pieces with letters has an "
        "upper-case or accented one. Set"
    ),
    "flags_task": (
        "flags.txt, which keeps the flags of the run, is wrong: --task_name "
        "must be one of CoLA, SST-2, MRPC,"
    ),
    "flags_window": (
        "flags.txt, which keeps the flags of the run, is wrong: "
        "--window_stride must be a whole number."
    ),
    "flags_documents": (
        "flags.txt, which keeps the flags of the run, is wrong: Expected "
        "one of head, tail, head_tail,"
    ),
}


# With another model.
MODELS = {
    "index_only": "bert_model.ckpt has an index but no data:",
    "cut_data": (
        "bert_model.ckpt can't be read, it is truncated, corrupt or not all "
        "there: Read less bytes than"
    ),
    "lfs_index": (
        "bert_model.ckpt.index can't be read: it is a pointer of git-lfs, "
        "not the file itself. Run `git lfs"
    ),
    "two": "The folder {data}/models/two holds several checkpoints. Name",
    "saved_model": "{data}/models/saved_model is a SavedModel, which can be",
    "tf2": (
        "bert_model.ckpt can't be read: it is of TensorFlow 2's "
        "tf.train.Checkpoint, as those of TensorFlow's"
    ),
    "config_of_other": (
        "bert_model.ckpt: the tensors are not those of the config beside them:"
    ),
    "hf_no_weights": (
        "config.json: There are no weights beside it, none of "
        "model.safetensors,"
    ),
    "none": (
        "There is no checkpoint {data}/models/none: "
        "{data}/models/none.index does not exist. A checkpoint is"
    ),
}


# With a SavedModel.
SAVED = {
    "no_pb": (
        "The folder holds no SavedModel: saved_model.pb is not there. Write "
        "one with export_saved_model.py,"
    ),
    "pb_cut": (
        "saved_model.pb': Error parsing message with type "
        "'tensorflow.SavedModel': Wire format was corrupt. Export"
    ),
    "pb_lfs": (
        "saved_model.pb can't be read: it is a pointer of git-lfs, not the "
        "file itself. Run `git lfs pull` in"
    ),
    "pb_empty": (
        "saved_model.pb can't be read: it is empty. Copy or download it "
        "again. Export it again, or copy the"
    ),
    "no_variables": (
        "variables/variables.index is not there. Export it again, or copy "
        "the whole folder again."
    ),
    "variables_cut": (
        "The SavedModel {data}/saved/variables_cut is damaged, or not all "
        "there: Read less bytes than"
    ),
    "variables_lfs": (
        "variables/variables.data-00000-of-00001 can't be read: it is a "
        "pointer of git-lfs, not the file"
    ),
    "index_cut": (
        "The SavedModel {data}/saved/index_cut is damaged, or not all "
        "there: not an sstable (bad magic"
    ),
    "no_export": (
        "The SavedModel {data}/saved/no_export was not written by "
        "export_saved_model.py of this version:"
    ),
    "export_cut": (
        "assets/export.json is not JSON: Unterminated string starting at: "
        "line 1 column 10 (char 9). Copy or"
    ),
    "export_list": (
        "assets/export.json must hold one JSON object. Copy or download it "
        "again. Received: [1]"
    ),
    "export_binary": (
        "assets/export.json is not UTF-8 text: invalid start byte at byte "
        "0. Convert it, as with iconv, or"
    ),
    "export_head": (
        "The SavedModel {data}/saved/export_head was not written by "
        "export_saved_model.py of this version:"
    ),
    "export_no_head": (
        "The SavedModel {data}/saved/export_no_head was not written by "
        "export_saved_model.py of this version:"
    ),
    "no_labels": (
        "The SavedModel {data}/saved/no_labels has 2 classes, and its "
        "assets/labels.txt names 0. Export it"
    ),
    "labels_three": (
        "The SavedModel {data}/saved/labels_three has 2 classes, and its "
        "assets/labels.txt names 3. Export it"
    ),
    "labels_binary": (
        "assets/labels.txt is not UTF-8 text: invalid start byte at byte 0. "
        "Convert it, as with iconv, or"
    ),
    "none": (
        "There is no such folder. Write one with export_saved_model.py, or "
        "give a checkpoint by --model_dir"
    ),
    "foreign": (
        "The SavedModel {data}/saved/foreign was not written by "
        "export_saved_model.py of this version:"
    ),
}


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    trained.write(folder)
    tiny_files.write_model(folder / "model")
    (folder / "models").mkdir()
    bad_models.write(folder / "models", folder / "model")
    trained.write_saved(folder)
    text = "the cat sat .\tit ran\na dog ran\tit sees rome !\n"
    for name, data in {
        "lines.txt": text.encode(),
        "empty.txt": b"",
        "blank.txt": b"\n \n\t\n",
        "hole.txt": text.encode() + b"\n" + text.encode(),
        "latin_1.txt": "the cat\ncafé\n".encode("latin-1"),
        "utf_16.txt": text.encode("utf-16"),
        "binary.txt": damaged.BINARY,
        "lines.txt.gz": damaged.GZIP,
        "lfs.txt": bad_models.LFS,
        "page.txt": damaged.HTML,
        "three.txt": text.encode() + b"the\tcat\tsat\n",
        "second.txt": b"\tthe cat\n",
        "one.txt": b"the cat\n",
        "hole_in_choices.txt": b"the\tcat\t\tsat\n",
        "cut.jsonl": b'{"text_a": "the", "text_b": "cat"}\n{"text_a": "th',
        "list.jsonl": b'["the", "cat"]\n',
        "pretty.json": json.dumps({"text_a": "the"}, indent=1).encode(),
        "key.jsonl": b'{"sentence1": "the", "sentence2": "cat"}\n',
        "near.jsonl": b'{"text_a": "the", "text_B": "cat"}\n',
        "number.jsonl": b'{"text_a": "the", "text_b": 7}\n',
        "half.jsonl": b'{"text_a": "\\ud83d"}\n',
        "more.jsonl": b'{"text": "the", "label": "no", "text_id": 7}\n',
        "odd.txt": "\ufeffthe cat\r\n\u2028 a\x00 dog\t\nrome".encode(),
        "pair.jsonl": b'{"text_a": "the", "text_b": "cat"}\n',
        "late.txt": text.encode() * 300 + b"\xff\n",
        "notes.txt": b"mine",
        "many.txt": text.encode() * 200,
        "lines.csv": b"text\nthe cat\n",
    }.items():
        (folder / name).write_bytes(data)
    (folder / "dangling").symlink_to("nowhere")
    os.link(folder / "lines.txt", folder / "hard.txt")
    (folder / "link.txt").symlink_to("lines.txt")
