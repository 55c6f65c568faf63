"""Bad inputs of predict.py."""

import json
import os
import pathlib

from bert_tf import file_systems
from tests import small_disks, tiny_files
from tests.bad_inputs import bad_models, damaged, matrix, trained

import pytest

SCRIPT = matrix.Script(
    "predict",
    {
        "model_dir": "{data}/run",
        "input_file": "{data}/lines.txt",
        "output_file": "{out}/answers.jsonl",
    },
)


def _input(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another input."""
    return matrix.Case({"input_file": f"{{data}}/{name}", **flags}, line)


def _of(model: str, name: str, line: str) -> matrix.Case:
    """Returns a case of lines for another model."""
    return _input(name, line, model_dir=f"{{data}}/{model}")


def _output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another output."""
    return matrix.Case({"output_file": path, **flags}, line)


def _run(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another run."""
    return matrix.Case({"model_dir": f"{{data}}/runs/{name}", **flags}, line)


def _pretrained(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another model that is no run."""
    model = {"model_dir": None, "init_checkpoint": f"{{data}}/{name}"}
    return matrix.Case({**model, **flags}, line)


def _saved(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a SavedModel."""
    model = {"model_dir": None, "saved_model": f"{{data}}/saved/{name}"}
    return matrix.Case({**model, **flags}, line)


# What is wrong with a run, and what is said.
_RUNS = {
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
_MODELS = {
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
_SAVED = {
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

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "no model": matrix.Case(
        {"model_dir": None},
        "Give one model: --model_dir, the folder of a run, or",
    ),
    "two models": matrix.Case(
        {"init_checkpoint": "{data}/model"},
        "Give one model: --model_dir, the folder of a run, or",
    ),
    "a SavedModel and a run": matrix.Case(
        {"saved_model": "{data}/saved/right"},
        "Give one model: --saved_model, --model_dir or --init_checkpoint.",
    ),
    "unknown flag": matrix.Case(
        {"max_sequence_length": "16"},
        "There is no flag --max_sequence_length. Did you mean",
    ),
    "an argument": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received: 'true'",
        arguments=("true",),
    ),
    "batch 0": matrix.Case(
        {"batch_size": "0"},
        "--batch_size must be a whole number, at least 1. Received:",
    ),
    "batch 1e99": matrix.Case(
        {"batch_size": "1e99"},
        "--batch_size must be a whole number, at least 1. Received:",
    ),
    "window -1": matrix.Case(
        {"sort_window": "-1"},
        "--sort_window must be a whole number, at least 1. Received:",
    ),
    "length 3": matrix.Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "length 33": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for: lower",
    ),
    "length nan": matrix.Case(
        {"max_seq_length": "nan"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "no line is kept by a window that is empty": matrix.Case(
        {"sort_window": ""},
        "--sort_window must be a whole number, at least 1. Received:",
    ),
    "unknown head": matrix.Case(
        {"head": "ner"},
        "--head must be one of encoder, masked_lm, next_sentence,",
    ),
    "head of others": matrix.Case(
        {"head": "span"},
        "{data}/run/model.ckpt-7 has no span head: cls/squad/output_bias,",
    ),
    "head of others, by a flag": matrix.Case(
        {"top_k": "3"},
        "--top_k goes with --head=masked_lm: leave it out. Received:",
    ),
    "stride of a classifier": matrix.Case(
        {"doc_stride": "3"},
        "--doc_stride goes with --head=span: leave it out. Received:",
    ),
    "three labels": matrix.Case(
        {"labels": "a,b,c"},
        "{data}/run/model.ckpt-7 has 2 classes, and --labels names 3.",
    ),
    "labels swapped": matrix.Case(
        {"labels": "yes,no"},
        "{data}/run/model.ckpt-7 names its classes no, yes. Leave out",
    ),
    "labels empty": matrix.Case(
        {"labels": ""},
        "--labels must be given or left out, and it is empty. Is a",
    ),
    "labels and a score": matrix.Case(
        {"labels": "no,yes", "regression": "true"},
        "--labels and --regression contradict each other: leave one out.",
    ),
    "a score of two classes": matrix.Case(
        {"regression": "true"},
        "{data}/run/model.ckpt-7 has 2 classes, and --regression means a",
    ),
    "unknown task": matrix.Case(
        {"task_name": "NOPE"},
        "--task_name must be one of CoLA, SST-2, MRPC, STS-B, QQP, MNLI,",
    ),
    "task of a score": matrix.Case(
        {"task_name": "STS-B"},
        "{data}/run/model.ckpt-7 has 2 classes, and the task STS-B means",
    ),
    "task empty": matrix.Case(
        {"task_name": ""},
        "--task_name must be given or left out, and it is empty. Is a",
    ),
    "unknown input format": matrix.Case(
        {"input_format": "csv"},
        "--input_format must be one of plain, jsonl. Received:",
    ),
    "unknown output format": matrix.Case(
        {"output_format": "json"},
        "--output_format must be one of jsonl, tsv, plain. Received:",
    ),
    "overwriting nothing": matrix.Case(
        {"output_file": None, "overwrite": "true"},
        "--overwrite goes with --output_file: leave it out. Received:",
    ),
    "best of no run": _pretrained(
        "model",
        "--use_checkpoint goes with --model_dir: leave it out. Received:",
        use_checkpoint="last",
    ),
    "flag of what a SavedModel keeps": _saved(
        "right",
        "--max_seq_length goes without --saved_model: leave it out.",
        max_seq_length="16",
    ),
    "questions longer than all": matrix.Case(
        {"model_dir": "{data}/span", "max_query_length": "14"},
        "max_seq_length must leave room for the context: be more than",
    ),
    "threshold nan": matrix.Case(
        {
            "model_dir": "{data}/span",
            "version_2_with_negative": "true",
            "null_score_diff_threshold": "nan",
        },
        "--null_score_diff_threshold must be a number or auto. Received:",
    ),
    "threshold of SQuAD 1.1": matrix.Case(
        {"model_dir": "{data}/span", "null_score_diff_threshold": "1"},
        "--null_score_diff_threshold goes with --version_2_with_negative,",
    ),
    "threshold never tuned": matrix.Case(
        {"model_dir": "{data}/span_auto"},
        "--null_score_diff_threshold=auto needs questions with answers:",
    ),
    "top_k 0": _pretrained(
        "model",
        "--top_k must be a whole number, at least 1. Received: top_k=0",
        top_k="0",
    ),
    "top_k of more than all": _pretrained(
        "model",
        "`top_k` must be at least 1 and at most the number of pieces, 44.",
        top_k="9999",
    ),
    # ---- Input
    "input empty": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not set? Give",
    ),
    "input is -": matrix.Case(
        {"input_file": "-"},
        "For standard input leave --input_file out. Received:",
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
    "a glob": _input(
        "*.txt", "There is no such file. Received: input_file={data}/*.txt"
    ),
    "empty file": _input(
        "empty.txt",
        "{data}/empty.txt has no lines. Expected a text, or two with a",
    ),
    "only empty lines": _input(
        "blank.txt",
        "{data}/blank.txt has no lines. Expected a text, or two with a",
    ),
    "an empty line": _input(
        "hole.txt",
        "{data}/hole.txt, line 3: the line is empty. Expected a text, or",
    ),
    "Latin-1": _input(
        "latin_1.txt",
        "{data}/latin_1.txt, line 2: the text is not UTF-8 (invalid",
    ),
    "UTF-16": _input(
        "utf_16.txt",
        "{data}/utf_16.txt can't be read: it is UTF-16, not UTF-8.",
    ),
    "binary": _input(
        "binary.txt",
        "{data}/binary.txt, line 1: the text is not UTF-8 (invalid start",
    ),
    "compressed": _input(
        "lines.txt.gz",
        "{data}/lines.txt.gz can't be read: it is compressed (gzip).",
    ),
    "git-lfs": _input(
        "lfs.txt",
        "{data}/lfs.txt can't be read: it is a pointer of git-lfs, not",
    ),
    "three columns for two texts": _input(
        "three.txt",
        "{data}/three.txt, line 3: 3 columns with tabs between, and the",
    ),
    "two columns for one text": _of(
        "single",
        "lines.txt",
        "{data}/lines.txt, line 1: 2 columns with tabs between, and the",
    ),
    "no first text": _input(
        "second.txt",
        "{data}/second.txt, line 1: text_a missing or empty. Expected a",
    ),
    "a question without context": _of(
        "span",
        "one.txt",
        "{data}/one.txt, line 1: context missing or empty. Expected",
    ),
    "three columns for a question": _of(
        "span",
        "three.txt",
        "{data}/three.txt, line 3: 3 columns with tabs between, and the",
    ),
    "a prompt of one choice": _of(
        "choices",
        "lines.txt",
        "{data}/lines.txt, line 1: choices missing or empty. Expected a",
    ),
    "an empty choice": _of(
        "choices",
        "hole_in_choices.txt",
        "{data}/hole_in_choices.txt, line 1: choices missing or empty.",
    ),
    "no mask": _pretrained(
        "model", "{data}/lines.txt, line 1: there is no [MASK]. Expected a text"
    ),
    "cut JSON": _input(
        "cut.jsonl",
        "{data}/cut.jsonl, line 2: the line is not JSON (Unterminated",
    ),
    "JSON of no object": _input(
        "list.jsonl",
        '{data}/list.jsonl, line 1: expected a JSON object with "text_a",',
    ),
    "JSON over several lines": _input(
        "pretty.json",
        "{data}/pretty.json, line 1: the line is not JSON (Expecting",
    ),
    "unknown key": _input(
        "key.jsonl",
        '{data}/key.jsonl, line 1: expected a JSON object with "text_a",',
    ),
    "nearly the key": _input(
        "near.jsonl",
        "{data}/near.jsonl, line 1: there is no key text_b, and one that",
    ),
    "number for a text": _input(
        "number.jsonl",
        "{data}/number.jsonl, line 1: expected a JSON object with",
    ),
    "half a character": _input(
        "half.jsonl",
        "{data}/half.jsonl, line 1: a text holds half a surrogate pair",
    ),
    "second text for one": _of(
        "single",
        "pair.jsonl",
        "{data}/pair.jsonl, line 1: the model takes one text. Leave out",
    ),
    "plain lines as JSON": matrix.Case(
        {"input_format": "jsonl"},
        "{data}/lines.txt, line 1: the line is not JSON (Expecting",
    ),
    "bad line late": _input(
        "late.txt",
        "{data}/late.txt, line 601: the text is not UTF-8 (invalid start",
    ),
    # ---- Output
    "output empty": _output(
        "", "--output_file is empty. Is a variable of the shell not set? Give"
    ),
    "output is the input": _output(
        "{data}/lines.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the input by ..": _output(
        "{data}/model/../lines.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the input by a hard link": _output(
        "{data}/hard.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the input by a link": _output(
        "{data}/link.txt",
        "--output_file would be written over what --input_file reads:",
        overwrite="true",
    ),
    "output is the run's vocabulary": _output(
        "{data}/run/vocab.txt",
        "--output_file would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is the run's weights": _output(
        "{data}/run/model.ckpt-7.index",
        "--output_file would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is a SavedModel's file": _saved(
        "right",
        "--output_file would be written over what --saved_model reads:",
        output_file="{data}/saved/right/saved_model.pb",
        overwrite="true",
    ),
    "output is a SavedModel's weights": _saved(
        "right",
        "--output_file would be written over what --saved_model reads:",
        output_file="{data}/saved/right/variables/variables.index",
        overwrite="true",
    ),
    "output is there": _output(
        "{data}/notes.txt",
        "{data}/notes.txt exists. Choose another --output_file, or",
    ),
    "output is a folder": _output(
        "{data}/model",
        "--output_file must name a file, and this is a folder. Received:",
    ),
    "output below a file": _output(
        "{data}/notes.txt/x",
        "--output_file can't be made: {data}/notes.txt is no folder.",
    ),
    "output dangles": _output(
        "{data}/dangling",
        "--output_file can't be made: {data}/dangling is a link to what",
    ),
    "output of an unknown file system": _output(
        "s4://bucket/x",
        "There is no file system s4:// here. Give a local path, or one of",
    ),
    "output's name too long": _output(
        "{out}/" + "x" * 260,
        "--output_file can't be made: a name has at most 251 bytes there.",
    ),
    # ---- Run
    "output is -": _output(
        "-", "For standard output leave --output_file out. Received:"
    ),
    "run empty": matrix.Case(
        {"model_dir": ""},
        "--model_dir is empty. Is a variable of the shell not set? Give a",
    ),
    "run is not there": matrix.Case(
        {"model_dir": "/nowhere"},
        "There is no such folder. --model_dir is the --output_dir of a",
    ),
    "run is a file": matrix.Case(
        {"model_dir": "{data}/notes.txt"},
        "This is a file. --model_dir is the --output_dir of a training; a",
    ),
    "run is a checkpoint": matrix.Case(
        {"model_dir": "{data}/run/model.ckpt-7"},
        "There is no such folder. --model_dir is the --output_dir of a",
    ),
    "run is an empty folder": matrix.Case(
        {"model_dir": "{data}/empty"},
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    "run is a model": matrix.Case(
        {"model_dir": "{data}/model"},
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    "run is a SavedModel": matrix.Case(
        {"model_dir": "{data}/saved/right"},
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    **{f"run: {name}": _run(name, line) for name, line in _RUNS.items()},
    # ---- Other models
    **{
        f"model: {name}": _pretrained(f"models/{name}", line)
        for name, line in _MODELS.items()
    },
    "no labels": _pretrained(
        "alone", "The labels are not known. Give --labels, --task_name or"
    ),
    **{
        f"SavedModel: {name}": _saved(name, line)
        for name, line in _SAVED.items()
    },
    "a run as a SavedModel": matrix.Case(
        {"model_dir": None, "saved_model": "{data}/run"},
        "The folder holds no SavedModel: saved_model.pb is not there. Write",
    ),
}

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/answers.jsonl."),
    "an odd name": matrix.Case({"output_file": "{out}/é 博 %s.tsv"}, "博 %s"),
    "a C locale": matrix.Case(
        {"output_file": "{out}/é.jsonl"}, "é", environment={"LC_ALL": "C"}
    ),
    "odd lines": matrix.Case({"input_file": "{data}/odd.txt"}, "Wrote"),
    "a stride of more than a window": matrix.Case(
        {
            "model_dir": "{data}/span",
            "input_file": "{data}/lines.txt",
            "doc_stride": "99",
        },
        "Wrote",
    ),
    "a run that lost the name of its newest weights": matrix.Case(
        {"model_dir": "{data}/runs/state_gone"}, "Wrote"
    ),
    "a SavedModel": matrix.Case(
        {"model_dir": None, "saved_model": "{data}/saved/right"}, "Wrote"
    ),
    # The graph holds the pieces, too.
    "a SavedModel that lost its vocab.txt": matrix.Case(
        {"model_dir": None, "saved_model": "{data}/saved/no_vocab"}, "Wrote"
    ),
    "keys that no model reads": matrix.Case(
        {"input_file": "{data}/more.jsonl"}, "Wrote"
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
    }.items():
        (folder / name).write_bytes(data)
    (folder / "dangling").symlink_to("nowhere")
    os.link(folder / "lines.txt", folder / "hard.txt")
    (folder / "link.txt").symlink_to("lines.txt")


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
    path = tmp_path / "out" / "answers.jsonl.tmp"
    descriptor = file_systems.lock(str(path))
    assert descriptor is not None
    case = matrix.Case(
        {},
        f"Another process writes {{out}}/answers.jsonl: process {os.getpid()}",
    )
    try:
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        file_systems.unlock(descriptor)


@pytest.mark.parametrize(
    ("flags", "closed", "line"),
    [
        ([], "<&-", "Standard input is closed, and there is no --input_file."),
        (
            ["--input_file={data}/lines.txt"],
            ">&-",
            "Standard output is closed, and there is no --output_file.",
        ),
    ],
)
def test_a_stream_is_closed(flags, closed, line, data):
    """As by a shell that was told so: nothing is answered into nowhere."""
    flags = [flag.format(data=data) for flag in flags]
    flags.append(f"--model_dir={data}/run")
    run = matrix.in_a_shell(SCRIPT, flags, {}, closed)
    assert run.returncode == 1
    assert not run.stdout
    (said,) = run.stderr.splitlines()
    assert said == f"error: {line} Give one of them."


def test_lines_before_a_bad_one_are_no_result(data, tmp_path):
    """Where what comes is read once, and the answers go to a file."""
    flags = [f"--model_dir={data}/run", f"--output_file={tmp_path}/out.jsonl"]
    run = matrix.in_a_shell(SCRIPT, flags, {}, f"<{data}/three.txt")
    assert run.returncode == 1
    assert "standard input, line 3: 3 columns with tabs" in run.stderr
    assert "Traceback" not in run.stderr
    assert not os.listdir(tmp_path)


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
