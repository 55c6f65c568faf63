"""Bad inputs of run_classifier.py."""

import json
import os
import pathlib

from bert_tf import run_lock
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest

_CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"

SCRIPT = matrix.Script(
    "run_classifier",
    {
        "do_train": "true",
        "do_eval": "true",
        "train_file": "{data}/train.tsv",
        "dev_file": "{data}/dev.tsv",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "12",
        "train_batch_size": "4",
        "num_train_epochs": "1",
    },
    has_check_only=True,
)
_TRAINS: dict[str, str | None] = {"do_eval": None, "dev_file": None}
_PREDICTS: dict[str, str | None] = {
    "do_train": None,
    "do_eval": None,
    "do_predict": "true",
    "train_file": None,
    "dev_file": None,
    "test_file": "{data}/test.tsv",
}


def _train(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a training file that is wrong."""
    return matrix.Case({"train_file": f"{{data}}/{name}", **flags}, line)


def _task(
    name: str, line: str, data_dir: str | None = "glue/RTE", **flags: str | None
) -> matrix.Case:
    """Returns a case of a published task; by default of RTE's files."""
    folder = data_dir and f"{{data}}/{data_dir}"
    own = {"train_file": None, "dev_file": None}
    return matrix.Case(
        {"task_name": name, "data_dir": folder, **own, **flags}, line
    )


def _model(name: str, line: str) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return matrix.Case({"init_checkpoint": f"{{data}}/models/{name}"}, line)


def _out(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be worked in."""
    return matrix.Case({"output_dir": f"{{data}}/{name}", **flags}, line)


def _predict(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of predicting with the run's weights."""
    flags = {"init_checkpoint": None, "output_dir": "{data}/run"} | flags
    return matrix.Case({**_PREDICTS, **flags}, line)


CASES: dict[str, matrix.Case] = {
    # ---- What to do
    "nothing to do": matrix.Case(
        {"do_train": None, "do_eval": None},
        "At least one of --do_train, --do_eval, --do_predict and",
    ),
    "no output_dir": matrix.Case(
        {"output_dir": None},
        "Give --output_dir (Folder for checkpoints and results).",
    ),
    "no data": matrix.Case(
        {"train_file": None, "dev_file": None},
        "Give either --task_name or files of your own (--train_file,",
    ),
    "no train_file": matrix.Case(
        {"train_file": None},
        "The labels are not known. Give --labels, --train_file to",
    ),
    "no dev_file": matrix.Case(
        {"dev_file": None},
        "The task custom has no dev split. Expected one of train. Give",
    ),
    "no test_file": matrix.Case(
        {"do_predict": "true"},
        "The task custom has no test split. Expected one of train,",
    ),
    "train_file empty": matrix.Case(
        {"train_file": ""},
        "--train_file is empty. Is a variable of the shell not set?",
    ),
    "unknown flag": matrix.Case(
        {"text_column": "text"},
        "There is no flag --text_column. Did you mean --text_b_column?",
    ),
    "a value behind a blank": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received: 'false'",
        arguments=("false",),
    ),
    # ---- Tasks
    "unknown task": _task(
        "nope", "Unknown task. Expected one of CoLA, SST-2, MRPC, STS-B, QQP,"
    ),
    "no name of a task": _task(
        "", "--task_name must be given or left out, and it is empty. Is a"
    ),
    "task and files": matrix.Case(
        {"task_name": "RTE"},
        "Give either --task_name or files of your own (--train_file,",
    ),
    "data_dir without a task": matrix.Case(
        {"data_dir": "{data}/glue"},
        "--data_dir goes with --task_name: leave it out. Received:",
    ),
    "data_dir is not there": _task(
        "MRPC",
        "Received: {data}/none/train.tsv. Is that the folder of MRPC's",
        "none",
    ),
    "data_dir is a file": _task(
        "MRPC",
        "There is no such file. Received: {data}/train.tsv/train.tsv.",
        "train.tsv",
    ),
    "data_dir empty": _task(
        "RTE",
        "--data_dir is empty. Is a variable of the shell not set? Give",
        "",
    ),
    "data_dir of all tasks": _task(
        "RTE",
        "There is no such file. Received: {data}/glue/train.tsv. Is",
        "glue",
    ),
    "data_dir of another task": _task(
        "MRPC", "{data}/glue/RTE/train.tsv, line 1: the column '#1 String' is"
    ),
    "no dev.tsv": _task(
        "RTE",
        "There is no such file. Received: {data}/no_dev/dev.tsv. Is",
        "no_dev",
    ),
    "no test.tsv": _task(
        "RTE",
        "There is no such file. Received: {data}/glue/RTE/test.tsv. Is",
        do_predict="true",
    ),
    "unknown label of a task": _task(
        "RTE",
        "{data}/label/train.tsv, line 3: unknown label. Expected one",
        "label",
    ),
    "a short row of a task": _task(
        "MRPC",
        "{data}/short/train.tsv, line 2: a column is missing. Expected",
        "short",
    ),
    "labels of CoLA": _task(
        "CoLA",
        "{data}/cola/train.tsv, line 1: unknown label. Expected one of",
        "cola",
    ),
    "score that is none": _task(
        "STS-B",
        "{data}/score/train.tsv, line 3: the score is not a number.",
        "score",
    ),
    "score 1e99": _task(
        "STS-B",
        "{data}/score_1e99/train.tsv, line 3: the score is too large",
        "score_1e99",
    ),
    "train on AX": _task(
        "ax",
        "The task AX has no train split. Expected one of test. AX",
        do_eval=None,
    ),
    "evaluate on AX": _task(
        "ax",
        "The task AX has no dev split. Expected one of test. AX takes",
        do_train=None,
    ),
    "XNLI without files": _task(
        "xnli", "XNLI is not in TensorFlow Datasets. Give --data_dir, the", None
    ),
    "XNLI in no language of its": _task(
        "XNLI",
        "train.sw.tsv. Is that the folder of XNLI's files? They are",
        "xnli",
        xnli_language="sw",
    ),
    "language of its dev set": _task(
        "XNLI",
        "{data}/xnli/xnli.dev.tsv has no rows whose language is 'de'.",
        "xnli",
        xnli_language="de",
    ),
    "no language": _task(
        "XNLI",
        "--xnli_language must be given or left out, and it is empty.",
        "xnli",
        xnli_language="",
    ),
    "language of RTE": _task(
        "RTE",
        "--xnli_language goes with --task_name=XNLI: leave it out.",
        xnli_language="de",
    ),
    "server's files of XNLI": _task(
        "XNLI",
        "--glue_server_files is for the tasks of GLUE. Received:",
        "xnli",
        do_predict="true",
        glue_server_files="true",
    ),
    "server's files of own ones": matrix.Case(
        {
            "glue_server_files": "true",
            "do_predict": "true",
            "test_file": "{data}/test.tsv",
        },
        "--glue_server_files goes with --task_name: leave it out.",
    ),
    "MNLI with two classes": _task(
        "MNLI",
        "{data}/run/model.ckpt-3 was fine-tuned with the labels bad,",
        "mnli",
        do_train=None,
        do_eval=None,
        do_predict="true",
        init_checkpoint="{data}/run",
    ),
    "MNLI with two classes without names": _task(
        "MNLI",
        "{data}/models/no_labels/model.ckpt-3 was fine-tuned with 2 classes.",
        "mnli",
        do_train=None,
        do_eval=None,
        do_predict="true",
        init_checkpoint="{data}/models/no_labels",
    ),
    "WNLI with nothing": _task(
        "WNLI",
        "There is no trained model: --output_dir={out} holds no",
        "wnli",
        do_train=None,
        do_eval=None,
        do_predict="true",
        init_checkpoint=None,
        bert_config_file="{data}/model/bert_config.json",
        vocab_file="{data}/model/vocab.txt",
    ),
    "too few examples": _task(
        "WNLI",
        "There are too few examples for one training step. Lower",
        "wnli",
        do_eval=None,
    ),
    "flags of own files": _task(
        "WNLI",
        "--dev_fraction goes with --train_file: leave it out. Received: "
        "dev_fraction=0.1, train_file=None. --file_format, --has_header, "
        "--id_column, --label_column, --label_separator, --labels, "
        "--regression, --text_a_column, --text_b_column go with "
        "--train_file or --dev_file or --test_file: leave them out.",
        "wnli",
        dev_fraction="0.1",
        file_format="csv",
        has_header="false",
        text_a_column="x",
        text_b_column="y",
        labels="0,1",
        label_column="0",
        label_separator=",",
        id_column="i",
        regression="true",
    ),
    # As a flags.txt has them: they are as by default, and no reason to stop.
    "defaults of own files": _task(
        "WNLI",
        "There are too few examples for one training step. Lower",
        "wnli",
        do_eval=None,
        dev_fraction="0.0",
        has_header="true",
        text_a_column="text",
        regression="false",
    ),
    # ---- Numbers
    "length": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for:",
    ),
    "length 3": matrix.Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4.",
    ),
    "replicas that do not share a batch": matrix.Case(
        {
            "distribution_strategy": "mirrored",
            "logical_cpus": "2",
            "eval_batch_size": "3",
        },
        "--eval_batch_size must be a multiple of 2 replicas times 1",
    ),
    "fraction nan": matrix.Case(
        {"dev_file": None, "dev_fraction": "nan"},
        "--dev_fraction must be a number, at least 0 and at most 1.",
    ),
    "fraction 1.5": matrix.Case(
        {"dev_file": None, "dev_fraction": "1.5"},
        "--dev_fraction must be a number, at least 0 and at most 1.",
    ),
    "fraction 1": matrix.Case(
        {"dev_file": None, "dev_fraction": "1"},
        "The dev fraction must leave rows on both sides of",
    ),
    "fraction 0.001": matrix.Case(
        {"dev_file": None, "dev_fraction": "0.001"},
        "The dev fraction must leave rows on both sides of",
    ),
    "fraction beside a dev_file": matrix.Case(
        {"dev_fraction": "0.5"},
        "--dev_fraction splits --train_file where there is no",
    ),
    "stride without windows": matrix.Case(
        {"window_stride": "2"},
        "--window_stride goes with --long_documents=windows: leave it",
    ),
    "stride 0": matrix.Case(
        {"long_documents": "windows", "window_stride": "0"},
        "--window_stride must be a whole number, at least 1. Received:",
    ),
    "stride of more than a window": matrix.Case(
        {"long_documents": "windows", "window_stride": "11"},
        "--window_stride must be from 1 to the pieces of a window, 10.",
    ),
    "windows of pairs": matrix.Case(
        {"long_documents": "windows", "text_b_column": "other"},
        "--long_documents is for single texts; of pairs the longer",
    ),
    "no such cut": matrix.Case(
        {"long_documents": "middle"},
        "--long_documents must be one of head, tail, head_tail,",
    ),
    # ---- Classes
    "one label": matrix.Case(
        {"labels": "good"}, "Expected at least two labels, each once. Received:"
    ),
    "no labels": matrix.Case(
        {"labels": ""},
        "--labels must be given or left out, and it is empty. Is a",
    ),
    "label twice": matrix.Case(
        {"labels": "good,good,bad"},
        "Expected at least two labels, each once. Received:",
    ),
    "label empty": matrix.Case(
        {"labels": "good,,bad"},
        "--labels: a label must not be empty or hold a line end.",
    ),
    "labels of others": matrix.Case(
        {"labels": "ham,spam"},
        "{data}/train.tsv, line 2: unknown label. Expected one of ham,",
    ),
    "quote not closed": matrix.Case(
        {"labels": 'good,"bad'},
        "--labels must be texts with commas between, in one line; one",
    ),
    "labels of scores": matrix.Case(
        {"labels": "good,bad", "regression": "true"},
        "A score has no labels: leave out --labels or --regression.",
    ),
    "separator of scores": matrix.Case(
        {"label_separator": ",", "regression": "true"},
        "A score is one number. Leave out --label_separator or",
    ),
    "separator empty": matrix.Case(
        {"label_separator": ""},
        "--label_separator must be given or left out, and it is empty.",
    ),
    "scores that are words": matrix.Case(
        {"regression": "true"},
        "{data}/train.tsv, line 2: the score is not a number.",
    ),
    "weight of no class": matrix.Case(
        {"class_weights": "spam=2"}, "Received: class_weights='spam=2'"
    ),
    "weight 0": matrix.Case(
        {"class_weights": "good=0"}, "Received: class_weights='good=0'"
    ),
    "weight nan": matrix.Case(
        {"class_weights": "good=nan"}, "Received: class_weights='good=nan'"
    ),
    "weight 1e99": matrix.Case(
        {"class_weights": "good=1e99"}, "Received: class_weights='good=1e99'"
    ),
    "weight 1e-99": matrix.Case(
        {"class_weights": "good=1e-99"}, "Received: class_weights='good=1e-99'"
    ),
    "weight of a class twice": matrix.Case(
        {"class_weights": "good=2,good=3"}, "Received: class_weights='good=3'"
    ),
    "weight without a number": matrix.Case(
        {"class_weights": "good"}, "Received: class_weights='good'"
    ),
    "weights balanced and given": matrix.Case(
        {"class_weights": "balanced,good=2"},
        "Received: class_weights='balanced'",
    ),
    "weights without an example": matrix.Case(
        {"class_weights": "balanced", "labels": "good,bad,so"},
        "--class_weights=balanced needs an example of each class.",
    ),
    "weights of scores": _train(
        "scores.tsv",
        "--class_weights is for classes; a score has none. Received:",
        **_TRAINS,
        regression="true",
        class_weights="balanced",
    ),
    # ---- Columns
    "no text column": matrix.Case(
        {"text_a_column": "sentence"},
        "{data}/train.tsv, line 1: the column 'sentence' is missing",
    ),
    "no second column": matrix.Case(
        {"text_b_column": "sentence2"},
        "{data}/train.tsv, line 1: the column 'sentence2' is missing",
    ),
    "no label column": matrix.Case(
        {"label_column": "stars"},
        "{data}/train.tsv, line 1: the column 'stars' is missing from",
    ),
    "no id column": matrix.Case(
        {"id_column": "key"},
        "{data}/train.tsv, line 1: the column 'key' is missing from",
    ),
    "column empty": matrix.Case(
        {"text_a_column": ""},
        "--text_a_column must be given or left out, and it is empty.",
    ),
    "column -1": matrix.Case(
        {"label_column": "-1"},
        "{data}/train.tsv, line 1: the column '-1' is missing from the",
    ),
    "column 9": matrix.Case(
        {"label_column": "9"},
        "{data}/train.tsv, line 1: the column '9' is missing from the",
    ),
    "label is the text": matrix.Case(
        {"label_column": "text"},
        "--label_column must name columns apart. Received: "
        "text_a_column=text, text_b_column=None,",
    ),
    "second text is the first": matrix.Case(
        {"text_b_column": "text"},
        "--label_column must name columns apart. Received: "
        "text_a_column=text, text_b_column=text,",
    ),
    "second text is the label": matrix.Case(
        {"text_b_column": "label"},
        "--label_column must name columns apart. Received: "
        "text_a_column=text, text_b_column=label,",
    ),
    "names without a header": matrix.Case(
        {"has_header": "false"},
        "{data}/train.tsv has no header, so its columns go by number,",
    ),
    "header without one": _train(
        "train.tsv",
        "{data}/train.tsv: the first line looks like a header: no",
        **_TRAINS,
        has_header="false",
        text_a_column="1",
        label_column="2",
    ),
    "format": matrix.Case(
        {"file_format": "xlsx"},
        "--file_format must be one of tsv, csv, jsonl. Received:",
    ),
    "TSV taken for CSV": matrix.Case(
        {"file_format": "csv"},
        "is missing from the header. It is one column only: between",
    ),
    "TSV taken for JSON": matrix.Case(
        {"file_format": "jsonl"},
        "{data}/train.tsv, line 1: the line is not JSON (Expecting",
    ),
    "flagfile of spam": matrix.Case(
        {
            "flagfile": f"{_CONFIGS}/spam.flags",
            "train_file": "{data}/spam",
            "dev_file": None,
        },
        "Expected at least two labels, each once. Received: labels=ham",
        arguments=("--max_seq_length=9",),
    ),
    "flagfile of MRPC": matrix.Case(
        {
            "flagfile": f"{_CONFIGS}/mrpc.flags",
            "data_dir": "{data}/none",
            "train_file": None,
            "dev_file": None,
        },
        "Received: {data}/none/train.tsv. Is that the folder of MRPC's",
        arguments=("--max_seq_length=9",),
    ),
    "flagfile of GLUE": matrix.Case(
        {
            "flagfile": f"{_CONFIGS}/glue.flags",
            "task_name": "sst-2",
            "data_dir": "{data}/none",
            "train_file": None,
            "dev_file": None,
        },
        "Received: {data}/none/train.tsv. Is that the folder of SST-2's",
        arguments=("--max_seq_length=9",),
    ),
    # ---- Tables
    "none": _train(
        "none.tsv", "There is no such file. Received: {data}/none.tsv"
    ),
    "empty": _train(
        "empty.tsv",
        "{data}/empty.tsv: the file has no rows. Expected at least one",
    ),
    "header only": _train(
        "header.tsv",
        "{data}/header.tsv: the file has no rows. Expected at least",
    ),
    "folder": _train(
        "model", "This is a folder: give a file. Received: {data}/model"
    ),
    "dangling link": _train(
        "dangling.tsv", "There is no such file. Received: {data}/dangling.tsv"
    ),
    "glob": _train("*.tsv", "There is no such file. Received: {data}/*.tsv"),
    "web address": matrix.Case(
        {"train_file": "https://x.org/a.tsv"},
        "There is no file system https:// here. Give a local path, or",
    ),
    "pipe": _train(
        "pipe.tsv", "This file is read twice, which a pipe or a device can't"
    ),
    "device": matrix.Case(
        {"train_file": "/dev/null"},
        "This file is read twice, which a pipe or a device can't",
    ),
    "html": _train(
        "page.tsv",
        "header. As it seems, it is a web page, saved in the place of",
    ),
    "lfs": _train(
        "lfs.tsv",
        "{data}/lfs.tsv can't be read: it is a pointer of git-lfs, not",
    ),
    "gzip": _train(
        "train.tsv.gz",
        "{data}/train.tsv.gz can't be read: it is compressed (gzip).",
    ),
    "spreadsheet": _train(
        "sheet.xlsx",
        "{data}/sheet.xlsx can't be read: it is compressed (zip, as",
    ),
    "binary": _train(
        "binary.tsv",
        "{data}/binary.tsv, line 1: the text is not UTF-8 (invalid",
    ),
    "latin-1": _train(
        "latin_1.tsv",
        "{data}/latin_1.tsv, line 2: the text is not UTF-8 (invalid",
    ),
    "UTF-16": _train(
        "utf_16.tsv",
        "{data}/utf_16.tsv can't be read: it is UTF-16, not UTF-8.",
    ),
    "CSV named TSV": _train(
        "csv.tsv",
        "is missing from the header. It is one column only: between",
    ),
    "cut": _train(
        "cut.tsv", "{data}/cut.tsv, line 13: a column is missing. Expected at"
    ),
    "a column more": _train(
        "wide.tsv", "{data}/wide.tsv, line 2: more columns than the first row."
    ),
    "a line empty": _train(
        "blank.tsv",
        "{data}/blank.tsv, line 4: the line is empty. Expected a row.",
    ),
    "a column twice": _train(
        "twice.tsv",
        "{data}/twice.tsv, line 1: the column 'text' appears twice in",
    ),
    "a label empty": _train(
        "label_empty.tsv",
        "{data}/label_empty.tsv, line 3: a label must not be empty or",
    ),
    "labels that differ in blanks": _train(
        "label_blank.tsv",
        "Two labels differ only in white space around them, and would",
    ),
    "labels all the same": _train(
        "label_one.tsv", "Expected at least two labels, each once. Received:"
    ),
    "a score nan": _train(
        "score_nan.tsv",
        "{data}/score_nan.tsv, line 3: the score is not a number.",
        **_TRAINS,
        regression="true",
    ),
    "a score 1e99": _train(
        "score_big.tsv",
        "{data}/score_big.tsv, line 3: the score is too large to be",
        **_TRAINS,
        regression="true",
    ),
    "quote of CSV": _train(
        "quote.csv",
        "{data}/quote.csv, line 2: the row is not valid CSV",
        **_TRAINS,
    ),
    "JSON, an array": _train(
        "array.json",
        "{data}/array.json, line 1: expected a JSON object, one per",
        **_TRAINS,
    ),
    "JSON, a list a line": _train(
        "list.jsonl",
        "{data}/list.jsonl, line 1: expected a JSON object, one per",
        **_TRAINS,
    ),
    "JSON, cut": _train(
        "cut.jsonl",
        "{data}/cut.jsonl, line 3: the line is not JSON (Unterminated",
        **_TRAINS,
    ),
    "JSON, no key": _train(
        "no_key.jsonl",
        "{data}/no_key.jsonl, line 1: keys are missing: label.",
        **_TRAINS,
    ),
    "JSON, text null": _train(
        "null.jsonl",
        "{data}/null.jsonl, line 3: 'text' is no text. Expected a text",
        **_TRAINS,
    ),
    "JSON, text a list": _train(
        "text_list.jsonl",
        "{data}/text_list.jsonl, line 3: 'text' is no text. Expected a",
        **_TRAINS,
    ),
    "JSON, labels without a separator": _train(
        "sets.jsonl",
        "{data}/sets.jsonl, line 3: 'label' is no text. Expected a",
        **_TRAINS,
    ),
    "JSON, labels in lists of lists": _train(
        "nested.jsonl",
        "{data}/nested.jsonl, line 3: 'label' is no text. Expected a",
        **_TRAINS,
        label_separator=",",
    ),
    "JSON, half a surrogate": _train(
        "surrogate.jsonl",
        "{data}/surrogate.jsonl, line 3: a text holds half a surrogate",
        **_TRAINS,
    ),
    "dev set of other labels": matrix.Case(
        {"dev_file": "{data}/other_labels.tsv"},
        "{data}/other_labels.tsv, line 3: unknown label. Expected one",
    ),
    "dev set without labels": matrix.Case(
        {"dev_file": "{data}/test.tsv"},
        "{data}/test.tsv, line 1: the column 'label' is missing from",
    ),
    "test set without texts": matrix.Case(
        {"do_predict": "true", "test_file": "{data}/spam"},
        "{data}/spam, line 1: the column 'text' is missing from the",
    ),
    # ---- Models
    "config_heads": _model(
        "config_heads",
        "{data}/models/config_heads/bert_config.json: `hidden_size`",
    ),
    "no_config": _model(
        "no_config", "The model's architecture is not known: give"
    ),
    "config_deep": _model(
        "config_deep",
        "{data}/models/config_deep/bert_model.ckpt: the tensors are",
    ),
    "no_vocab": _model(
        "no_vocab", "The vocabulary is not known: give --vocab_file, or a"
    ),
    "vocab_short": _model(
        "vocab_short",
        "The vocabulary of {data}/models/vocab_short/bert_model.ckpt",
    ),
    "vocab_no_cls": _model(
        "vocab_no_cls",
        "The vocabulary of {data}/models/vocab_no_cls/bert_model.ckpt",
    ),
    "vocab_binary": _model(
        "vocab_binary",
        "{data}/models/vocab_binary/vocab.txt is not UTF-8 text:",
    ),
    "cut_data": _model(
        "cut_data",
        "The checkpoint {data}/models/cut_data/bert_model.ckpt can't",
    ),
    "strangers": _model(
        "strangers",
        "{data}/models/strangers/bert_model.ckpt: the tensors are not",
    ),
    "labels of git-lfs": _model(
        "labels_lfs",
        "{data}/models/labels_lfs/labels.txt must name the classes,",
    ),
    "labels of binary": _model(
        "labels_binary",
        "{data}/models/labels_binary/labels.txt is not UTF-8 text:",
    ),
    "no model": matrix.Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index does",
    ),
    # ---- Predicting
    "predicting without labels": matrix.Case(
        {
            **_PREDICTS,
            "init_checkpoint": "{data}/model",
        },
        "The labels are not known. Give --labels, --train_file to",
    ),
    "predicting with the untrained": matrix.Case(
        {**_PREDICTS, "labels": "good,bad"},
        "{data}/model/bert_model.ckpt is not fine-tuned: it has no",
    ),
    "exporting nothing": matrix.Case(
        {
            **_PREDICTS,
            "do_predict": None,
            "test_file": None,
            "do_export": "true",
            "init_checkpoint": None,
        },
        "There is no trained model: --output_dir={out} holds no checkpoint.",
    ),
    "exporting without a task": _predict(
        "Give either --task_name or files of your own (--train_file,",
        do_predict=None,
        test_file=None,
        do_export="true",
    ),
    "labels in another order": _predict(
        "was trained with other labels: bad, good. Give the same, in",
        labels="good,bad",
    ),
    "labels less": _predict(
        "Expected at least two labels, each once. Received: labels=bad",
        labels="bad",
    ),
    "predicting scores": _predict(
        "was trained with other labels: bad, good. Give the same, in",
        regression="true",
    ),
    "predicting sets": _predict(
        "{data}/run/best/model.ckpt-3 was fine-tuned on texts with one",
        label_separator=",",
    ),
    "predicting with other weights": _predict(
        "--output_dir={data}/run holds a run, whose weights are used,",
        init_checkpoint="{data}/models/config_wide",
    ),
    "other rows held out": _predict(
        "The rows to evaluate on would not be those that were held out",
        do_predict=None,
        do_eval="true",
        test_file=None,
        train_file="{data}/train.tsv",
        dev_fraction="0.5",
    ),
    "labels.txt of binary": _predict(
        "{data}/runs/binary/labels.txt is not UTF-8 text: invalid",
        output_dir="{data}/runs/binary",
    ),
    "labels.txt of git-lfs": _predict(
        "{data}/runs/lfs/labels.txt must name the classes, one a line:",
        output_dir="{data}/runs/lfs",
    ),
    "labels.txt empty": _predict(
        "{data}/runs/empty/labels.txt must name the classes, one a",
        output_dir="{data}/runs/empty",
    ),
    "labels.txt a folder": _predict(
        "labels.txt is a folder, and the run writes a file of that",
        output_dir="{data}/runs/folder",
    ),
    # ---- Folders
    "out is where the table is": _out(
        "tables",
        "The run would write over what --train_file reads: choose",
        train_file="{data}/tables/predictions.jsonl",
        **_TRAINS,
    ),
    "out with a hard link": _out(
        "hard", "{data}/hard holds eval.tf_record, which this run would"
    ),
    "out is the data": _task(
        "RTE",
        "--output_dir would be written over what --data_dir reads:",
        output_dir="{data}/glue/RTE",
    ),
    "out is a file": _out(
        "train.tsv",
        "--output_dir must be a folder, and this is a file. Received:",
    ),
    "out below a file": _out(
        "train.tsv/x",
        "--output_dir can't be made: {data}/train.tsv is no folder.",
    ),
    "out of another script": _out(
        "others", "{data}/others holds a run of run_ner.py, not of"
    ),
    "out with a model": _out("model", "{data}/model holds a model"),
    "out with a folder for a result": _out(
        "runs/results",
        "{data}/runs/results/test_results.tsv is a folder, and the run",
    ),
    "other length": _out(
        "run",
        "{data}/run holds another run: max_seq_length was 12 and is",
        max_seq_length="11",
    ),
    "other table": _out(
        "run",
        "{data}/run holds another run: train_file was {data}/train.tsv",
        train_file="{data}/dev.tsv",
    ),
    "a task instead": _task(
        "RTE",
        "was trained with other labels: bad, good. Give the same, in",
        output_dir="{data}/run",
    ),
    "other labels": _out(
        "run",
        "was trained with other labels: bad, good. Give the same, in",
        labels="good,bad",
    ),
    "other weights of classes": _out(
        "run",
        "{data}/run holds another run: class_weights was None and is",
        class_weights="good=2",
    ),
    "another separator": _out(
        "run",
        "{data}/run holds another run: label_separator was None and is",
        label_separator=",",
    ),
    "the table changed": _out(
        "runs/examples", "The run in {data}/runs/examples was trained on other"
    ),
    "a folder for the labels": _out(
        "runs/folder",
        "labels.txt is a folder, and the run writes a file of that",
    ),
    "going on with broken labels": _out(
        "runs/binary",
        "{data}/runs/binary/labels.txt is not UTF-8 text: invalid",
    ),
    "moments gone": _out(
        "runs/stripped",
        "{data}/runs/stripped/model.ckpt-3 can't be gone on with. It",
    ),
    "weights cut": _out(
        "runs/cut", "None of the checkpoints in {data}/runs/cut can be read."
    ),
}

# What looks wrong, and rightly is not.
GOOD: dict[str, matrix.Case] = {
    "as it is": matrix.Case({}, "Found nothing that would stop this run."),
    "byte-order mark and CRLF": _train("bom.tsv", ""),
    "a column by number": matrix.Case(
        {"text_a_column": "1", "label_column": "2"}, ""
    ),
    "a task in small letters": _task("rte", ""),
    "a language of xnli": _task("xnli", "", "xnli", xnli_language="zh"),
    "another language of xnli": _task(
        "xnli", "", "xnli", xnli_language="fr", do_eval=None
    ),
    "a label that is not there": matrix.Case(
        {"labels": "good,bad,so"}, "has no example of so"
    ),
    "from a head of other classes": _task(
        "MNLI",
        "its head is not used",
        "mnli",
        do_eval=None,
        init_checkpoint="{data}/run",
    ),
    "server's files without predicting": matrix.Case(
        {"glue_server_files": "true", "task_name": None},
        "Not used, as they go with --do_predict: --glue_server_files",
    ),
    "a test set beside training": matrix.Case(
        {"test_file": "{data}/none.tsv"}, "Not used, as they go with"
    ),
    "predictions as by the run": _predict("Using the weights of"),
    "with the checkpoint that it started from": _predict(
        "", init_checkpoint="{data}/model"
    ),
    "weights of classes without training": _predict(
        "Not used, as they go with --do_train: --class_weights",
        class_weights="good=2",
    ),
    "exporting": _predict("", do_predict=None, do_export="true"),
}


def _text(rows: int, labels: tuple[str, ...] = ("good", "bad")) -> str:
    words = tiny_files.WORDS
    lines = ["id\ttext\tlabel\tother"]
    for i in range(rows):
        text = f"the {words[2 + i % 12]} sat in rome"
        lines.append(f"{i}\t{text}\t{labels[i % len(labels)]}\ta dog")
    return "".join(f"{line}\n" for line in lines)


def _write_tables(folder: pathlib.Path) -> None:
    good = _text(12)
    lines = good.splitlines(keepends=True)
    row = {"id": "0", "text": "the cat", "label": "good"}

    def objects(**changes: object) -> bytes:
        other = {**row, "label": "bad"}
        return "".join(
            f"{json.dumps(x)}\n" for x in (row, other, row | changes)
        ).encode()

    for name, data in {
        "train.tsv": good.encode(),
        "dev.tsv": _text(4).encode(),
        "test.tsv": b"id\ttext\n0\tthe cat\n1\ta dog\n",
        "scores.tsv": _text(8, ("1", "2.5")).encode(),
        "bom.tsv": b"\xef\xbb\xbf" + good.replace("\n", "\r\n").encode(),
        "empty.tsv": b"",
        "header.tsv": lines[0].encode(),
        "page.tsv": damaged.HTML,
        "lfs.tsv": bad_models.LFS,
        "train.tsv.gz": damaged.GZIP,
        "sheet.xlsx": b"PK\x03\x04" + damaged.BINARY,
        "binary.tsv": damaged.BINARY,
        "latin_1.tsv": good.replace("cat", "caf\u00e9").encode("latin-1"),
        "utf_16.tsv": good.encode("utf-16"),
        "csv.tsv": good.replace("\t", ",").encode(),
        "cut.tsv": good[:-12].encode(),
        "wide.tsv": good.replace("cat", "cat\tand").encode(),
        "blank.tsv": "".join([*lines[:3], "\n", *lines[3:]]).encode(),
        "twice.tsv": good.replace("other", "text").encode(),
        "label_empty.tsv": _text(4, ("good", "")).encode(),
        "label_blank.tsv": _text(6, ("good", "bad", "good ")).encode(),
        "label_one.tsv": _text(4, ("good",)).encode(),
        "score_nan.tsv": _text(4, ("1", "nan")).encode(),
        "score_big.tsv": _text(4, ("1", "1e99")).encode(),
        "other_labels.tsv": _text(4, ("good", "so")).encode(),
        "spam": b"ham\tsome\nham\ttext\n",
        "quote.csv": b'id,text,label\n0,"the cat,good\n1,a,bad\n',
        "array.json": json.dumps([row, row]).encode(),
        "list.jsonl": b'["the cat", "good"]\n',
        "cut.jsonl": objects()[:-20],
        "no_key.jsonl": b'{"text": "the cat"}\n',
        "null.jsonl": objects(text=None),
        "text_list.jsonl": objects(text=["the", "cat"]),
        "sets.jsonl": objects(label=["good", "bad"]),
        "nested.jsonl": objects(label=[["good"], "bad"]),
        "surrogate.jsonl": objects(text="\ud83d"),
    }.items():
        (folder / name).write_bytes(data)
    (folder / "dangling.tsv").symlink_to("gone.tsv")
    os.mkfifo(folder / "pipe.tsv")


def _write_tasks(folder: pathlib.Path) -> None:
    header = "index\tsentence1\tsentence2"

    def pairs(*labels: str) -> str:
        rows = (f"{i}\ta\tb\t{x}\n" for i, x in enumerate(labels))
        return f"{header}\tlabel\n{''.join(rows)}"

    rte = pairs(*["entailment", "not_entailment"] * 4)
    mnli = pairs(*["entailment", "neutral", "contradiction"] * 3)
    mnli = mnli.replace("label", "gold_label")
    xnli = "language\tgold_label\tsentence1\tsentence2\n"
    translated = "premise\thypo\tlabel\n" + "a\tb\tneutral\n" * 4
    for name, text in {
        "glue/RTE/train.tsv": rte,
        "glue/RTE/dev.tsv": rte,
        "no_dev/train.tsv": rte,
        "label/train.tsv": pairs("entailment", "perhaps"),
        "label/dev.tsv": rte,
        "short/train.tsv": "Quality\t#1 String\t#2 String\n1\tx\n",
        "short/dev.tsv": "Quality\t#1 String\t#2 String\n1\tx\n",
        "cola/train.tsv": "gj04\t2\t*\tthe cat sat\n",
        "cola/dev.tsv": "gj04\t1\t\tthe cat sat\n",
        "score/train.tsv": pairs("1.5", "high").replace("label", "score"),
        "score/dev.tsv": pairs("1.5").replace("label", "score"),
        "score_1e99/train.tsv": pairs("1.5", *["1e99"] * 4).replace(
            "label", "score"
        ),
        "score_1e99/dev.tsv": pairs("1.5").replace("label", "score"),
        "mnli/train.tsv": mnli,
        "mnli/dev_matched.tsv": mnli,
        "mnli/test_matched.tsv": f"{header}\n0\ta\tb\n",
        "wnli/train.tsv": pairs("1"),
        "wnli/dev.tsv": pairs("1"),
        "wnli/test.tsv": f"{header}\n0\ta\tb\n",
        "xnli/xnli.dev.tsv": f"{xnli}zh\tneutral\ta\tb\n",
        "xnli/xnli.test.tsv": f"{xnli}zh\tneutral\ta\tb\n",
        **{
            f"xnli/multinli/multinli.train.{x}.tsv": translated
            for x in ("zh", "de", "fr")
        },
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    tiny_files.write_model(folder / "model")
    for changes in (damaged.CONFIGS, damaged.VOCABS):
        damaged.write_changed(folder / "model", folder / "models", changes)
    bad_models.write(folder / "models", folder / "model")
    _write_tables(folder)
    _write_tasks(folder)
    for place, name, source in (
        ("tables", "predictions.jsonl", "sets.jsonl"),
        ("hard", "eval.tf_record", "train.tsv"),
    ):
        (folder / place).mkdir()
        (folder / place / name).hardlink_to(folder / source)
    (folder / "others").mkdir()
    (folder / "others/flags.txt").write_text("# python run_ner.py\n")
    matrix.make(SCRIPT, folder, folder / "run")
    labels = "labels.txt"
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "binary": damaged.bytes_in(labels, damaged.BINARY),
            "lfs": damaged.bytes_in(labels, bad_models.LFS),
            "empty": damaged.bytes_in(labels, b""),
            "folder": _folder_of_labels,
            "results": lambda run: (run / "test_results.tsv").mkdir(),
            "examples": damaged.bytes_in(
                "train_examples.json", b'{"records": 7, "sha256": "0"}'
            ),
            "stripped": lambda run: damaged.rename_tensors(
                run, lambda name: "" if "/adam_" in name else name
            ),
            "cut": _cut_weights,
        },
    )
    damaged.write_changed(
        folder / "run",
        folder / "models",
        {
            "no_labels": damaged.without(labels),
            "labels_lfs": damaged.bytes_in(labels, bad_models.LFS),
            "labels_binary": damaged.bytes_in(labels, damaged.BINARY),
        },
    )


def _folder_of_labels(run: pathlib.Path) -> None:
    (run / "labels.txt").unlink()
    (run / "labels.txt").mkdir()


def _cut_weights(run: pathlib.Path) -> None:
    for path in run.glob("model.ckpt-*.data*"):
        bad_models.cut(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


@pytest.mark.parametrize("name", GOOD)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path, GOOD[name])


def test_another_process_works_there(data, tmp_path):
    lock = run_lock.hold(tmp_path / "out", what="trains")
    line = f"{{out}} is in use: process {os.getpid()} on host"
    try:
        # It may end before the run begins.
        case = matrix.Case({}, line, checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)
    finally:
        lock.release()
