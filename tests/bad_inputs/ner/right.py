"""What looks wrong to run_ner.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.ner.inputs import Case, train

# What rightly works.
GOOD: dict[str, matrix.Case] = {
    "byte-order mark": train("bom.conll", ""),
    "CRLF": train("crlf.conll", ""),
    "blanks at the ends": train("blanks.conll", ""),
    "more columns": train(
        "columns.conll", "", dev_file="{data}/columns.conll", token_column="1"
    ),
    "no empty line at the end": train("open.conll", ""),
    "one sentence of 101 words": Case(
        {"dev_file": "{data}/sentence.conll"}, "there is no empty line"
    ),
    "parts of speech": train(
        "tags.conll", "labels: none", dev_file="{data}/tags.conll"
    ),
    "labels that are not in the file": Case(
        {"labels": "O,B-loc,B-per,I-per,I-loc"}, "has no example of I-loc"
    ),
    "a file in place of the checkpoint": Case(
        {"init_checkpoint": "{data}/model/bert_model.ckpt.index"}, ""
    ),
    "test file of what is not predicted": Case(
        {"test_file": "{data}/none", "test_has_labels": "false"},
        "Not used, as they go with --do_predict: --test_file, --test_has_lab",
    ),
    "out with files of others": Case({"output_dir": "{data}/mine"}, ""),
}
