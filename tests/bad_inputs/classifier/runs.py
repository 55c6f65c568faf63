"""Wrong models, predictions and folders of run_classifier.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.classifier.inputs import (
    PREDICTS,
    TRAINS,
    model,
    out,
    predict,
    task,
)


def _student(config: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a new model that is no transformer."""
    files = {
        "init_checkpoint": None,
        "vocab_file": "{data}/model/vocab.txt",
        "bert_config_file": f"{{data}}/{config}",
    }
    return matrix.Case({**TRAINS, **files, **flags}, line)


def _vectors(name: str, line: str, config: str = "textcnn.json") -> matrix.Case:
    """Returns a case of word vectors that are wrong."""
    return _student(config, line, word_vectors=f"{{data}}/{name}")


CASES: dict[str, matrix.Case] = {
    # ---- Models
    "config_heads": model(
        "config_heads",
        "{data}/models/config_heads/bert_config.json: `hidden_size`",
    ),
    "no_config": model(
        "no_config", "The model's architecture is not known: give"
    ),
    "config_deep": model(
        "config_deep",
        "{data}/models/config_deep/bert_model.ckpt: the tensors are",
    ),
    "no_vocab": model(
        "no_vocab", "The vocabulary is not known: give --vocab_file, or a"
    ),
    "vocab_short": model(
        "vocab_short",
        "The vocabulary of {data}/models/vocab_short/bert_model.ckpt",
    ),
    "vocab_no_cls": model(
        "vocab_no_cls",
        "The vocabulary of {data}/models/vocab_no_cls/bert_model.ckpt",
    ),
    "vocab_binary": model(
        "vocab_binary",
        "{data}/models/vocab_binary/vocab.txt, line 1: a vocabulary",
    ),
    "cut_data": model(
        "cut_data",
        "The checkpoint {data}/models/cut_data/bert_model.ckpt can't",
    ),
    "strangers": model(
        "strangers",
        "{data}/models/strangers/bert_model.ckpt: the tensors are not",
    ),
    "labels of git-lfs": model(
        "labels_lfs",
        "{data}/models/labels_lfs/labels.txt must name the classes,",
    ),
    "labels of binary": model(
        "labels_binary",
        "{data}/models/labels_binary/labels.txt is not UTF-8 text:",
    ),
    "no model": matrix.Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index does",
    ),
    "a config of no transformer with heads": _student(
        "textcnn_heads.json", "`num_attention_heads` is of transformers, and"
    ),
    "weights of another encoder": matrix.Case(
        {"bert_config_file": "{data}/textcnn.json"},
        "{data}/textcnn.json is not the config of {data}/model/bert_model",
    ),
    # ---- Word vectors
    "word vectors beside weights": matrix.Case(
        {"word_vectors": "{data}/vectors.txt"},
        "--word_vectors goes without --init_checkpoint: leave it out.",
    ),
    "word vectors that are not there": _vectors(
        "none.txt", "There is no checkpoint {data}/none.txt:"
    ),
    "word vectors of another size": _vectors(
        "vectors_wide.txt",
        "{data}/vectors_wide.txt has vectors of 3 numbers, and the model's",
    ),
    "word vectors that are cut": _vectors(
        "vectors_cut.txt", "line 2 has 1 numbers, and 2 were expected."
    ),
    "word vectors of other words": _vectors(
        "vectors_other.txt", "None of the words of {data}/vectors_other.txt"
    ),
    "word vectors that are a page": _vectors(
        "page.tsv", "{data}/page.tsv can't be read as word vectors, a word"
    ),
    "word vectors of fewer numbers": _vectors(
        "model", "has vectors of 8 numbers, too few", "textcnn_wide.json"
    ),
    # ---- Predicting
    "predicting without labels": matrix.Case(
        {
            **PREDICTS,
            "init_checkpoint": "{data}/model",
        },
        "The labels are not known. Give --labels, --train_file to",
    ),
    "predicting with the untrained": matrix.Case(
        {**PREDICTS, "labels": "good,bad"},
        "{data}/model/bert_model.ckpt is not fine-tuned: it has no",
    ),
    "exporting nothing": matrix.Case(
        {
            **PREDICTS,
            "do_predict": None,
            "test_file": None,
            "do_export": "true",
            "init_checkpoint": None,
        },
        "There is no trained model: --output_dir={out} holds no checkpoint.",
    ),
    "exporting without a task": predict(
        "Give either --task_name or files of your own (--train_file,",
        do_predict=None,
        test_file=None,
        do_export="true",
    ),
    "labels in another order": predict(
        "was trained with other labels: bad, good. Give the same, in",
        labels="good,bad",
    ),
    "labels less": predict(
        "Expected at least two labels, each once. Received: labels=bad",
        labels="bad",
    ),
    "predicting scores": predict(
        "was trained with other labels: bad, good. Give the same, in",
        regression="true",
    ),
    "predicting sets": predict(
        "{data}/run/best/model.ckpt-3 was fine-tuned on texts with one",
        label_separator=",",
    ),
    "predicting with other weights": predict(
        "--output_dir={data}/run holds a run, whose weights are used,",
        init_checkpoint="{data}/models/config_wide",
    ),
    "other rows held out": predict(
        "The rows to evaluate on would not be those that were held out",
        do_predict=None,
        do_eval="true",
        test_file=None,
        train_file="{data}/train.tsv",
        dev_fraction="0.5",
    ),
    "labels.txt of binary": predict(
        "{data}/runs/binary/labels.txt is not UTF-8 text: invalid",
        output_dir="{data}/runs/binary",
    ),
    "labels.txt of git-lfs": predict(
        "{data}/runs/lfs/labels.txt must name the classes, one a line:",
        output_dir="{data}/runs/lfs",
    ),
    "labels.txt empty": predict(
        "{data}/runs/empty/labels.txt must name the classes, one a",
        output_dir="{data}/runs/empty",
    ),
    "labels.txt a folder": predict(
        "labels.txt is a folder, and the run writes a file of that",
        output_dir="{data}/runs/folder",
    ),
    # ---- Folders
    "out is where the table is": out(
        "tables",
        "The run would write over what --train_file reads: choose",
        train_file="{data}/tables/predictions.jsonl",
        **TRAINS,
    ),
    "out with a hard link": out(
        "hard", "{data}/hard holds eval.tf_record, which this run would"
    ),
    "out is the data": task(
        "RTE",
        "--output_dir would be written over what --data_dir reads:",
        output_dir="{data}/glue/RTE",
    ),
    "out is a file": out(
        "train.tsv",
        "--output_dir must be a folder, and this is a file. Received:",
    ),
    "out below a file": out(
        "train.tsv/x",
        "--output_dir can't be made: {data}/train.tsv is no folder.",
    ),
    "out of another script": out(
        "others", "{data}/others holds a run of run_ner.py, not of"
    ),
    "out with a model": out("model", "{data}/model holds a model"),
    "out with a folder for a result": out(
        "runs/results",
        "{data}/runs/results/test_results.tsv is a folder, and the run",
    ),
    "the weights to start from": out(
        "runs/kept",
        "{data}/runs/kept/best lies in --output_dir, whose best/ a run that",
        init_checkpoint="{data}/runs/kept/best",
    ),
    "other length": out(
        "run",
        "{data}/run holds another run: max_seq_length was 12 and is",
        max_seq_length="11",
    ),
    "other table": out(
        "run",
        "{data}/run holds another run: train_file was {data}/train.tsv",
        train_file="{data}/dev.tsv",
    ),
    "a task instead": task(
        "RTE",
        "was trained with other labels: bad, good. Give the same, in",
        output_dir="{data}/run",
    ),
    "other labels": out(
        "run",
        "was trained with other labels: bad, good. Give the same, in",
        labels="good,bad",
    ),
    "other weights of classes": out(
        "run",
        "{data}/run holds another run: class_weights was None and is",
        class_weights="good=2",
    ),
    "another separator": out(
        "run",
        "{data}/run holds another run: label_separator was None and is",
        label_separator=",",
    ),
    "the table changed": out(
        "runs/examples", "The run in {data}/runs/examples was trained on other"
    ),
    "a folder for the labels": out(
        "runs/folder",
        "labels.txt is a folder, and the run writes a file of that",
    ),
    "going on with broken labels": out(
        "runs/binary",
        "{data}/runs/binary/labels.txt is not UTF-8 text: invalid",
    ),
    "moments gone": out(
        "runs/stripped",
        "{data}/runs/stripped/model.ckpt-3 can't be gone on with. It",
    ),
    "weights cut": out(
        "runs/cut", "None of the checkpoints in {data}/runs/cut can be read."
    ),
}
