"""Wrong classes, columns and tables of run_classifier.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.classifier.inputs import CONFIGS, TRAINS, train

CASES: dict[str, matrix.Case] = {
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
    "weights of scores": train(
        "scores.tsv",
        "--class_weights is for classes; a score has none. Received:",
        **TRAINS,
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
    "header without one": train(
        "train.tsv",
        "{data}/train.tsv: the first line looks like a header: no",
        **TRAINS,
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
            "flagfile": f"{CONFIGS}/spam.flags",
            "train_file": "{data}/spam",
            "dev_file": None,
        },
        "Expected at least two labels, each once. Received: labels=ham",
        arguments=("--max_seq_length=9",),
    ),
    "flagfile of MRPC": matrix.Case(
        {
            "flagfile": f"{CONFIGS}/mrpc.flags",
            "data_dir": "{data}/none",
            "train_file": None,
            "dev_file": None,
        },
        "Received: {data}/none/train.tsv. Is that the folder of MRPC's",
        arguments=("--max_seq_length=9",),
    ),
    "flagfile of GLUE": matrix.Case(
        {
            "flagfile": f"{CONFIGS}/glue.flags",
            "task_name": "sst-2",
            "data_dir": "{data}/none",
            "train_file": None,
            "dev_file": None,
        },
        "Received: {data}/none/train.tsv. Is that the folder of SST-2's",
        arguments=("--max_seq_length=9",),
    ),
    # ---- Tables
    "none": train(
        "none.tsv", "There is no such file. Received: {data}/none.tsv"
    ),
    "empty": train(
        "empty.tsv",
        "{data}/empty.tsv: the file has no rows. Expected at least one",
    ),
    "header only": train(
        "header.tsv",
        "{data}/header.tsv: the file has no rows. Expected at least",
    ),
    "folder": train(
        "model", "This is a folder: give a file. Received: {data}/model"
    ),
    "dangling link": train(
        "dangling.tsv", "There is no such file. Received: {data}/dangling.tsv"
    ),
    "glob": train("*.tsv", "There is no such file. Received: {data}/*.tsv"),
    "web address": matrix.Case(
        {"train_file": "https://x.org/a.tsv"},
        "There is no file system https:// here. Give a local path, or",
    ),
    "pipe": train(
        "pipe.tsv", "This file is read twice, which a pipe or a device can't"
    ),
    "device": matrix.Case(
        {"train_file": "/dev/null"},
        "This file is read twice, which a pipe or a device can't",
    ),
    "html": train(
        "page.tsv",
        "header. As it seems, it is a web page, saved in the place of",
    ),
    "lfs": train(
        "lfs.tsv",
        "{data}/lfs.tsv can't be read: it is a pointer of git-lfs, not",
    ),
    "gzip": train(
        "train.tsv.gz",
        "{data}/train.tsv.gz can't be read: it is compressed (gzip).",
    ),
    "spreadsheet": train(
        "sheet.xlsx",
        "{data}/sheet.xlsx can't be read: it is compressed (zip, as",
    ),
    "binary": train(
        "binary.tsv",
        "{data}/binary.tsv, line 1: the text is not UTF-8 (invalid",
    ),
    "latin-1": train(
        "latin_1.tsv",
        "{data}/latin_1.tsv, line 2: the text is not UTF-8 (invalid",
    ),
    "UTF-16": train(
        "utf_16.tsv",
        "{data}/utf_16.tsv can't be read: it is UTF-16, not UTF-8.",
    ),
    "CSV named TSV": train(
        "csv.tsv",
        "is missing from the header. It is one column only: between",
    ),
    "cut": train(
        "cut.tsv", "{data}/cut.tsv, line 13: a column is missing. Expected at"
    ),
    "a column more": train(
        "wide.tsv", "{data}/wide.tsv, line 2: more columns than the first row."
    ),
    "a line empty": train(
        "blank.tsv",
        "{data}/blank.tsv, line 4: the line is empty. Expected a row.",
    ),
    "a column twice": train(
        "twice.tsv",
        "{data}/twice.tsv, line 1: the column 'text' appears twice in",
    ),
    "a label empty": train(
        "label_empty.tsv",
        "{data}/label_empty.tsv, line 3: a label must not be empty or",
    ),
    "labels that differ in blanks": train(
        "label_blank.tsv",
        "Two labels differ only in white space around them, and would",
    ),
    "labels all the same": train(
        "label_one.tsv", "Expected at least two labels, each once. Received:"
    ),
    "a score nan": train(
        "score_nan.tsv",
        "{data}/score_nan.tsv, line 3: the score is not a number.",
        **TRAINS,
        regression="true",
    ),
    "a score 1e99": train(
        "score_big.tsv",
        "{data}/score_big.tsv, line 3: the score is too large to be",
        **TRAINS,
        regression="true",
    ),
    "quote of CSV": train(
        "quote.csv",
        "{data}/quote.csv, line 2: the row is not valid CSV",
        **TRAINS,
    ),
    "JSON, an array": train(
        "array.json",
        "{data}/array.json, line 1: expected a JSON object, one per",
        **TRAINS,
    ),
    "JSON, a list a line": train(
        "list.jsonl",
        "{data}/list.jsonl, line 1: expected a JSON object, one per",
        **TRAINS,
    ),
    "JSON, cut": train(
        "cut.jsonl",
        "{data}/cut.jsonl, line 3: the line is not JSON (Unterminated",
        **TRAINS,
    ),
    "JSON, no key": train(
        "no_key.jsonl",
        "{data}/no_key.jsonl, line 1: keys are missing: label.",
        **TRAINS,
    ),
    "JSON, text null": train(
        "null.jsonl",
        "{data}/null.jsonl, line 3: 'text' is no text. Expected a text",
        **TRAINS,
    ),
    "JSON, text a list": train(
        "text_list.jsonl",
        "{data}/text_list.jsonl, line 3: 'text' is no text. Expected a",
        **TRAINS,
    ),
    "JSON, labels without a separator": train(
        "sets.jsonl",
        "{data}/sets.jsonl, line 3: 'label' is no text. Expected a",
        **TRAINS,
    ),
    "JSON, labels in lists of lists": train(
        "nested.jsonl",
        "{data}/nested.jsonl, line 3: 'label' is no text. Expected a",
        **TRAINS,
        label_separator=",",
    ),
    "JSON, half a surrogate": train(
        "surrogate.jsonl",
        "{data}/surrogate.jsonl, line 3: a text holds half a surrogate",
        **TRAINS,
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
}
