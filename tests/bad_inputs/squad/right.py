"""What looks wrong to run_squad.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.squad.inputs import train

# What rightly works.
GOOD: dict[str, matrix.Case] = {
    "byte-order mark": train("bom.json", ""),
    "UTF-16": train("utf_16.json", ""),
    "CRLF and indented": train("indented.json", ""),
    "by ..": train("model/../train.json", ""),
    "by a link": train("link.json", ""),
    "with blanks": train("a b c.json", ""),
    "other scripts": train("\u8cea\u554f \U0001f600.json", ""),
    "config again": matrix.Case(
        {
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "",
    ),
    "flags of what is not done": matrix.Case(
        {"predict_batch_size": "7", "tpu_zone": "here"},
        "Not used, as they go with --do_predict: --predict_batch_size.",
    ),
    "a flag twice": matrix.Case({}, "", arguments=("--doc_stride=3",)),
    "CPUs of one device": matrix.Case(
        {"logical_cpus": "2"}, "--distribution_strategy=mirrored: --logical"
    ),
    "a bad MPLBACKEND": matrix.Case({}, "", {"MPLBACKEND": "none of them"}),
}
