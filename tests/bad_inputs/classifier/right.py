"""What looks wrong to run_classifier.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.classifier.inputs import predict, task, train

# What looks wrong, and rightly is not.
GOOD: dict[str, matrix.Case] = {
    "as it is": matrix.Case({}, "Found nothing that would stop this run."),
    "byte-order mark and CRLF": train("bom.tsv", ""),
    "a column by number": matrix.Case(
        {"text_a_column": "1", "label_column": "2"}, ""
    ),
    "a task in small letters": task("rte", ""),
    "a language of xnli": task("xnli", "", "xnli", xnli_language="zh"),
    "another language of xnli": task(
        "xnli", "", "xnli", xnli_language="fr", do_eval=None
    ),
    "a label that is not there": matrix.Case(
        {"labels": "good,bad,so"}, "has no example of so"
    ),
    "from a head of other classes": task(
        "MNLI",
        "its head is not used",
        "mnli",
        do_eval=None,
        init_checkpoint="{data}/run",
    ),
    "word vectors of a new model": matrix.Case(
        {
            "init_checkpoint": None,
            "vocab_file": "{data}/model/vocab.txt",
            "bert_config_file": "{data}/textcnn.json",
            "word_vectors": "{data}/vectors.txt",
        },
        "Word vectors of {data}/vectors.txt for 2 of",
    ),
    "server's files without predicting": matrix.Case(
        {"glue_server_files": "true", "task_name": None},
        "Not used, as they go with --do_predict: --glue_server_files",
    ),
    "a test set beside training": matrix.Case(
        {"test_file": "{data}/none.tsv"}, "Not used, as they go with"
    ),
    "predictions as by the run": predict("Using the weights of"),
    "with the checkpoint that it started from": predict(
        "", init_checkpoint="{data}/model"
    ),
    "weights of classes without training": predict(
        "Not used, as they go with --do_train: --class_weights",
        class_weights="good=2",
    ),
    "exporting": predict("", do_predict=None, do_export="true"),
}
