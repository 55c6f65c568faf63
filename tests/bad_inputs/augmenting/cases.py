"""Wrong flags, tables, models and outputs of augment_data.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.augmenting.inputs import TASK, output, table

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "no table": matrix.Case(
        {"input_file": None},
        "Give either --task_name with --data_dir, or a table of your own by",
    ),
    "two tables": matrix.Case(
        {**TASK, "input_file": "{data}/train.tsv"},
        "Give either --task_name with --data_dir, or a table of your own by",
    ),
    "a task without its files": matrix.Case(
        {**TASK, "data_dir": None},
        "Give --data_dir, the folder of the task's files: what is written",
    ),
    "unknown task": matrix.Case(
        {**TASK, "task_name": "MRCP"}, "Unknown task. Expected one of CoLA,"
    ),
    "a task that trains on nothing": matrix.Case(
        {**TASK, "task_name": "AX"}, "The task AX has no train split."
    ),
    "columns of a task": matrix.Case(
        {**TASK, "text_a_column": "question1"},
        "--text_a_column goes with --input_file: leave it out. Received:",
    ),
    "folder of one's own table": matrix.Case(
        {"data_dir": "{data}/glue"},
        "--data_dir goes with --task_name: leave it out. Received:",
    ),
    "one column for both texts": matrix.Case(
        {"text_b_column": "text"},
        "--text_a_column and --text_b_column must name columns apart.",
    ),
    "no copies": matrix.Case(
        {"augmentation_copies": "0"},
        "--augmentation_copies must be a whole number, at least 1",
    ),
    "probability 0": matrix.Case(
        {"replace_probability": "0"},
        "--replace_probability must be a number, above 0 and at most 1.",
    ),
    "probability 40": matrix.Case(
        {"replace_probability": "40"},
        "--replace_probability must be a number, above 0 and at most 1.",
    ),
    "share 2": matrix.Case(
        {"masked_share": "2"}, "--masked_share must be a number"
    ),
    "no candidates": matrix.Case(
        {"candidates": "0"},
        "--candidates must be a whole number, at least 1",
    ),
    "more candidates than words": matrix.Case(
        {"candidates": "15000"},
        "The vocabulary has 29 whole words, and --candidates must be fewer:",
    ),
    "seed -1": matrix.Case(
        {"seed": "-1"}, "--seed must be a whole number, at least 0"
    ),
    "batch 0": matrix.Case(
        {"batch_size": "0"}, "--batch_size must be a whole number, at least 1"
    ),
    "length 3": matrix.Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "length 33": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for: lower",
    ),
    "unknown flag": matrix.Case(
        {"copies": "3"},
        "There is no flag --copies. python augment_data.py --help",
    ),
    "stop words are not there": matrix.Case(
        {"stop_words_file": "{data}/none"},
        "There is no such file. Received: stop_words_file={data}/none",
    ),
    "stop words are no text": matrix.Case(
        {"stop_words_file": "{data}/utf_16.tsv"},
        "{data}/utf_16.tsv can't be read: it is UTF-16, not UTF-8. Convert",
    ),
    # ---- Table
    "table is not there": table(
        "none.tsv",
        "There is no such file. Received: input_file={data}/none.tsv",
    ),
    "table is a folder": table(
        "model",
        "This is a folder: give a file. Received: input_file={data}/model",
    ),
    "no table of the task": matrix.Case(
        {**TASK, "data_dir": "{data}/model"},
        "There is no such file. Received: {data}/model/train.tsv",
    ),
    "no column of the task": matrix.Case(
        TASK, "{data}/glue/train.tsv, line 1: the column 'question2' is missing"
    ),
    "empty file": table(
        "empty.tsv", "{data}/empty.tsv: the file has no rows. Expected at least"
    ),
    "header alone": table(
        "header.tsv",
        "{data}/header.tsv: the file has no rows. Expected at least one row",
    ),
    "no such column": table(
        "other.tsv",
        "{data}/other.tsv, line 1: the column 'text' is missing from the",
    ),
    "no second column": matrix.Case(
        {"text_b_column": "second"},
        "{data}/train.tsv, line 1: the column 'second' is missing from the",
    ),
    "names without a header": matrix.Case(
        {"has_header": "false"},
        "{data}/train.tsv has no header, so its columns go by number, from 0.",
    ),
    "a row too short": table(
        "short.tsv", "{data}/short.tsv, line 3: a column is missing. Expected"
    ),
    "a row too long": table(
        "long.tsv", "{data}/long.tsv, line 2: more columns than the first row."
    ),
    "an empty line": table(
        "blank.tsv", "{data}/blank.tsv, line 2: the line is empty. Expected a"
    ),
    "Latin-1": table(
        "latin_1.tsv", "{data}/latin_1.tsv, line 2: the text is not UTF-8"
    ),
    "UTF-16": table(
        "utf_16.tsv", "{data}/utf_16.tsv can't be read: it is UTF-16, not UTF-8"
    ),
    "compressed": table(
        "train.tsv.gz",
        "it is compressed (gzip). Unpack",
        output_file="{out}/more.tsv",
    ),
    "git-lfs": table(
        "lfs.tsv", "{data}/lfs.tsv can't be read: it is a pointer of git-lfs"
    ),
    "a bad line late": table(
        "late.tsv", "{data}/late.tsv, line 504: the text is not UTF-8"
    ),
    "quote not closed": table(
        "quote.csv", "{data}/quote.csv, line 3: the row is not valid CSV"
    ),
    "JSON cut off": table(
        "cut.jsonl", "{data}/cut.jsonl, line 2: the line is not JSON"
    ),
    "JSON without the key": table(
        "keys.jsonl", "{data}/keys.jsonl, line 2: keys are missing: text."
    ),
    "null": table(
        "null.jsonl", "{data}/null.jsonl, line 1: 'text' is no text."
    ),
    "list": table(
        "list.jsonl", "{data}/list.jsonl, line 1: 'text' is no text."
    ),
    "half a surrogate pair elsewhere": table(
        "half.jsonl", "{data}/half.jsonl, line 1: a text holds half a surrogate"
    ),
    # ---- Model
    "no model": matrix.Case(
        {"init_checkpoint": None}, "Give --init_checkpoint (A pre-trained"
    ),
    "model is not there": matrix.Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index",
    ),
    "a classifier": matrix.Case(
        {"init_checkpoint": "{data}/classifier"},
        "{data}/classifier/bert_model.ckpt has no head for masked words.",
    ),
    "a cased model": matrix.Case(
        {"do_lower_case": "false"}, "is uncased: none of"
    ),
    "another's vocabulary": matrix.Case(
        {"vocab_file": "{data}/no_mask.txt"},
        "{data}/no_mask.txt is not the vocabulary of",
    ),
    # ---- Output
    "no output": matrix.Case({"output_file": None}, "Give --output_file (The"),
    "output is the table": output(
        "{data}/train.tsv",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the table by a hard link": output(
        "{data}/hard.tsv",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the task's table": output(
        "{data}/glue/train.tsv",
        "--output_file would be written over what --data_dir reads: choose",
        **TASK,
        overwrite="true",
    ),
    "output is the vocabulary": output(
        "{data}/model/vocab.txt",
        "--output_file would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "output is there": output(
        "{data}/notes.tsv",
        "{data}/notes.tsv exists. Choose another --output_file, or replace",
    ),
    "output is a folder": output(
        "{data}/glue",
        "--output_file must name a file, and this is a folder. Received:",
    ),
    "output of another format": output(
        "{out}/more.csv",
        "The output has the format of {data}/train.tsv, tsv: let the name of",
    ),
    "output of no format": matrix.Case(
        {"input_file": "{data}/train.csv", "output_file": "{out}/more"},
        "The output has the format of {data}/train.csv, csv: let the name of",
    ),
}
