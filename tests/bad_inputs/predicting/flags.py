"""Wrong flags and inputs of run_prediction.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.predicting.inputs import (
    answers_of,
    input_of,
    pretrained,
    saved,
)

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "a CSV file": input_of(
        "lines.csv",
        "give --input_format=plain to ask the lines as they are. Received:",
    ),
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
        "--top_k goes with --head=masked_lm or --head=next_piece: leave it",
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
    "best of no run": pretrained(
        "model",
        "--use_checkpoint goes with --model_dir: leave it out. Received:",
        use_checkpoint="last",
    ),
    "flag of what a SavedModel keeps": saved(
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
    "top_k 0": pretrained(
        "model",
        "--top_k must be a whole number, at least 1. Received: top_k=0",
        top_k="0",
    ),
    "top_k of more than all": pretrained(
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
    "input is not there": input_of(
        "none.txt",
        "There is no such file. Received: input_file={data}/none.txt",
    ),
    "input is a folder": input_of(
        "model",
        "This is a folder: give a file. Received: input_file={data}/model",
    ),
    "input dangles": input_of(
        "dangling",
        "There is no such file. Received: input_file={data}/dangling",
    ),
    "a glob": input_of(
        "*.txt", "There is no such file. Received: input_file={data}/*.txt"
    ),
    "empty file": input_of(
        "empty.txt",
        "{data}/empty.txt has no lines. Expected a text, or two with a",
    ),
    "only empty lines": input_of(
        "blank.txt",
        "{data}/blank.txt has no lines. Expected a text, or two with a",
    ),
    "an empty line": input_of(
        "hole.txt",
        "{data}/hole.txt, line 3: the line is empty. Expected a text, or",
    ),
    "Latin-1": input_of(
        "latin_1.txt",
        "{data}/latin_1.txt, line 2: the text is not UTF-8 (invalid",
    ),
    "UTF-16": input_of(
        "utf_16.txt",
        "{data}/utf_16.txt can't be read: it is UTF-16, not UTF-8.",
    ),
    "binary": input_of(
        "binary.txt",
        "{data}/binary.txt, line 1: the text is not UTF-8 (invalid start",
    ),
    "compressed": input_of(
        "lines.txt.gz",
        "{data}/lines.txt.gz can't be read: it is compressed (gzip).",
    ),
    "git-lfs": input_of(
        "lfs.txt",
        "{data}/lfs.txt can't be read: it is a pointer of git-lfs, not",
    ),
    "three columns for two texts": input_of(
        "three.txt",
        "{data}/three.txt, line 3: 3 columns with tabs between, and the",
    ),
    "two columns for one text": answers_of(
        "single",
        "lines.txt",
        "{data}/lines.txt, line 1: 2 columns with tabs between, and the",
    ),
    "no first text": input_of(
        "second.txt",
        "{data}/second.txt, line 1: text_a missing or empty. Expected a",
    ),
    "a question without context": answers_of(
        "span",
        "one.txt",
        "{data}/one.txt, line 1: context missing or empty. Expected",
    ),
    "three columns for a question": answers_of(
        "span",
        "three.txt",
        "{data}/three.txt, line 3: 3 columns with tabs between, and the",
    ),
    "a prompt of one choice": answers_of(
        "choices",
        "lines.txt",
        "{data}/lines.txt, line 1: choices missing or empty. Expected a",
    ),
    "an empty choice": answers_of(
        "choices",
        "hole_in_choices.txt",
        "{data}/hole_in_choices.txt, line 1: choices missing or empty.",
    ),
    "no mask": pretrained(
        "model", "{data}/lines.txt, line 1: there is no [MASK]. Expected a text"
    ),
    "cut JSON": input_of(
        "cut.jsonl",
        "{data}/cut.jsonl, line 2: the line is not JSON (Unterminated",
    ),
    "JSON of no object": input_of(
        "list.jsonl",
        '{data}/list.jsonl, line 1: expected a JSON object with "text_a",',
    ),
    "JSON over several lines": input_of(
        "pretty.json",
        "{data}/pretty.json, line 1: the line is not JSON (Expecting",
    ),
    "unknown key": input_of(
        "key.jsonl",
        '{data}/key.jsonl, line 1: expected a JSON object with "text_a",',
    ),
    "nearly the key": input_of(
        "near.jsonl",
        "{data}/near.jsonl, line 1: there is no key text_b, and one that",
    ),
    "number for a text": input_of(
        "number.jsonl",
        "{data}/number.jsonl, line 1: expected a JSON object with",
    ),
    "half a character": input_of(
        "half.jsonl",
        "{data}/half.jsonl, line 1: a text holds half a surrogate pair",
    ),
    "second text for one": answers_of(
        "single",
        "pair.jsonl",
        "{data}/pair.jsonl, line 1: the model takes one text. Leave out",
    ),
    "plain lines as JSON": matrix.Case(
        {"input_format": "jsonl"},
        "{data}/lines.txt, line 1: the line is not JSON (Expecting",
    ),
    "bad line late": input_of(
        "late.txt",
        "{data}/late.txt, line 601: the text is not UTF-8 (invalid start",
    ),
}
