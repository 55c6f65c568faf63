"""Wrong what to do, with which task, how much of run_classifier.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.classifier.inputs import task

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
    "kernels that are kept": matrix.Case(
        {},
        "Unset it to train. Received: TF_ONEDNN_ASSUME_FROZEN_WEIGHTS=1 in",
        environment={"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"},
    ),
    # ---- Next pieces beside labels
    "next pieces that are seen": matrix.Case(
        {"auxiliary_lm_weight": "0.5"},
        "--auxiliary_lm_weight is for encoders that read from left to right:",
    ),
    "next pieces that do not count": matrix.Case(
        {"auxiliary_lm_weight": "0"},
        "--auxiliary_lm_weight must be a number, above 0. Received",
    ),
    # ---- Pruning
    "all weights pruned": matrix.Case(
        {"prune_to": "1"},
        "--prune_to must be a number, at least 0 and at most 0.999. Received",
    ),
    "less than no weights pruned": matrix.Case(
        {"prune_to": "-0.1"},
        "--prune_to must be a number, at least 0 and at most 0.999. Received",
    ),
    "pruned in no steps": matrix.Case(
        {"prune_to": "0.5", "prune_until": "0"},
        "--prune_until must be a number, above 0 and at most 1. Received",
    ),
    "pruned every half step": matrix.Case(
        {"prune_to": "0.5", "prune_every": "0.5"},
        "--prune_every must be a whole number, at least 1. Received",
    ),
    # ---- Vocabularies of other kinds
    "byte pairs of word pieces' weights": matrix.Case(
        {"vocab_file": "{data}/vocab.json"},
        "is not the vocabulary of {data}/model/bert_model.ckpt: it is of byte",
    ),
    "sentence pieces of weights without a vocabulary": matrix.Case(
        {
            "vocab_file": "{data}/spiece.model",
            "init_checkpoint": "{data}/models/no_vocab",
        },
        "whose pieces are of another kind: word_pieces. Give the vocabulary",
    ),
    "a casing of byte pairs": matrix.Case(
        {
            "vocab_file": "{data}/vocab.json",
            "bert_config_file": "{data}/roberta.json",
            "init_checkpoint": None,
            "do_lower_case": "false",
        },
        "--do_lower_case is not for a vocabulary of byte_pairs, whose files",
    ),
    # ---- Tasks
    "unknown task": task(
        "nope", "Unknown task. Expected one of CoLA, SST-2, MRPC, STS-B, QQP,"
    ),
    "no name of a task": task(
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
    "data_dir is not there": task(
        "MRPC",
        "Received: {data}/none/train.tsv. Is that the folder of MRPC's",
        "none",
    ),
    "data_dir is a file": task(
        "MRPC",
        "There is no such file. Received: {data}/train.tsv/train.tsv.",
        "train.tsv",
    ),
    "data_dir empty": task(
        "RTE",
        "--data_dir is empty. Is a variable of the shell not set? Give",
        "",
    ),
    "data_dir of all tasks": task(
        "RTE",
        "There is no such file. Received: {data}/glue/train.tsv. Is",
        "glue",
    ),
    "data_dir of another task": task(
        "MRPC", "{data}/glue/RTE/train.tsv, line 1: the column '#1 String' is"
    ),
    "no dev.tsv": task(
        "RTE",
        "There is no such file. Received: {data}/no_dev/dev.tsv. Is",
        "no_dev",
    ),
    "no test.tsv": task(
        "RTE",
        "There is no such file. Received: {data}/glue/RTE/test.tsv. Is",
        do_predict="true",
    ),
    "unknown label of a task": task(
        "RTE",
        "{data}/label/train.tsv, line 3: unknown label. Expected one",
        "label",
    ),
    "a short row of a task": task(
        "MRPC",
        "{data}/short/train.tsv, line 2: a column is missing. Expected",
        "short",
    ),
    "labels of CoLA": task(
        "CoLA",
        "{data}/cola/train.tsv, line 1: unknown label. Expected one of",
        "cola",
    ),
    "score that is none": task(
        "STS-B",
        "{data}/score/train.tsv, line 3: the score is not a number.",
        "score",
    ),
    "score 1e99": task(
        "STS-B",
        "{data}/score_1e99/train.tsv, line 3: the score is too large",
        "score_1e99",
    ),
    "train on AX": task(
        "ax",
        "The task AX has no train split. Expected one of test. AX",
        do_eval=None,
    ),
    "evaluate on AX": task(
        "ax",
        "The task AX has no dev split. Expected one of test. AX takes",
        do_train=None,
    ),
    "XNLI without files": task(
        "xnli", "XNLI is not in TensorFlow Datasets. Give --data_dir, the", None
    ),
    "XNLI in no language of its": task(
        "XNLI",
        "train.sw.tsv. Is that the folder of XNLI's files? They are",
        "xnli",
        xnli_language="sw",
    ),
    "language of its dev set": task(
        "XNLI",
        "{data}/xnli/xnli.dev.tsv has no rows whose language is 'de'.",
        "xnli",
        xnli_language="de",
    ),
    "no language": task(
        "XNLI",
        "--xnli_language must be given or left out, and it is empty.",
        "xnli",
        xnli_language="",
    ),
    "language of RTE": task(
        "RTE",
        "--xnli_language goes with --task_name=XNLI: leave it out.",
        xnli_language="de",
    ),
    "server's files of XNLI": task(
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
    "MNLI with two classes": task(
        "MNLI",
        "{data}/run/model.ckpt-3 was fine-tuned with the labels bad,",
        "mnli",
        do_train=None,
        do_eval=None,
        do_predict="true",
        init_checkpoint="{data}/run",
    ),
    "MNLI with two classes without names": task(
        "MNLI",
        "{data}/models/no_labels/model.ckpt-3 was fine-tuned with 2 classes.",
        "mnli",
        do_train=None,
        do_eval=None,
        do_predict="true",
        init_checkpoint="{data}/models/no_labels",
    ),
    "WNLI with nothing": task(
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
    "too few examples": task(
        "WNLI",
        "There are too few examples for one training step. Lower",
        "wnli",
        do_eval=None,
    ),
    "flags of own files": task(
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
    "defaults of own files": task(
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
    "pairs for a model of single texts": matrix.Case(
        {
            "init_checkpoint": None,
            "bert_config_file": "{data}/one_type.json",
            "vocab_file": "{data}/model/vocab.txt",
            "text_b_column": "other",
        },
        "This model has no token type for the second text of a pair: start",
    ),
    "no such cut": matrix.Case(
        {"long_documents": "middle"},
        "--long_documents must be one of head, tail, head_tail,",
    ),
}
