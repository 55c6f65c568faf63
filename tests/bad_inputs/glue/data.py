"""Wrong data, models, folders and devices of run_glue.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.glue.inputs import data_of, model

CASES: dict[str, matrix.Case] = {
    # ---- Data
    "no data_dir": matrix.Case(
        {"data_dir": None},
        "Give --data_dir (Folder with a folder for each task). python",
    ),
    "data_dir empty": matrix.Case(
        {"data_dir": ""},
        "--data_dir is empty. Is a variable of the shell not set? Give a",
    ),
    "data_dir is not there": data_of(
        "none",
        "There is no such folder. --data_dir holds a folder for each task.",
    ),
    "data_dir is a file": data_of(
        "glue/RTE/train.tsv",
        "There is no such folder. --data_dir holds a folder for each task.",
    ),
    "data_dir of a task": data_of(
        "glue/RTE",
        "There are no folders for RTE in {data}/glue/RTE. Name them by",
    ),
    "no dev.tsv": data_of(
        "no_dev", "There is no such file. Received: {data}/no_dev/RTE/dev.tsv"
    ),
    "empty train.tsv": data_of(
        "empty",
        "{data}/empty/RTE/train.tsv: the file has no rows. Expected at least",
    ),
    "header only": data_of(
        "header_only",
        "{data}/header_only/RTE/train.tsv: the file has no rows. Expected at",
    ),
    "a column is missing": data_of(
        "no_column",
        "{data}/no_column/RTE/train.tsv, line 1: the column 'sentence2' is",
    ),
    "unknown label": data_of(
        "label",
        "{data}/label/RTE/train.tsv, line 3: unknown label. Expected one of",
    ),
    "train.tsv is a folder": data_of(
        "folder",
        "This is a folder: give a file. Received: {data}/folder/RTE/train.tsv",
    ),
    "train.tsv of Latin-1": data_of(
        "latin_1",
        "{data}/latin_1/RTE/train.tsv, line 2: the text is not UTF-8 (invalid",
    ),
    "train.tsv of UTF-16": data_of(
        "utf_16",
        "{data}/utf_16/RTE/train.tsv can't be read: it is UTF-16, not UTF-8.",
    ),
    "train.tsv of git-lfs": data_of(
        "lfs",
        "{data}/lfs/RTE/train.tsv can't be read: it is a pointer of git-lfs,",
    ),
    "train.tsv is a page": data_of(
        "html",
        "{data}/html/RTE/train.tsv, line 1: the column 'sentence1' is",
    ),
    "train.tsv is compressed": data_of(
        "gzip",
        "{data}/gzip/RTE/train.tsv can't be read: it is compressed (gzip).",
    ),
    "train.tsv cut": data_of(
        "cut",
        "{data}/cut/RTE/train.tsv, line 13: a column is missing. Expected at",
    ),
    "train.tsv dangles": data_of(
        "dangling",
        "There is no such file. Received: {data}/dangling/RTE/train.tsv",
    ),
    "train.tsv is CSV": data_of(
        "csv",
        "{data}/csv/RTE/train.tsv, line 1: the column 'sentence1' is missing",
    ),
    "not the test set": matrix.Case(
        {"do_predict": "true"},
        "{data}/glue/RTE/test.tsv is not GLUE's test set, so the server",
    ),
    # ---- Model
    "no model": matrix.Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index does not",
    ),
    "model empty": matrix.Case(
        {"init_checkpoint": ""},
        "--init_checkpoint is empty. Is a variable of the shell not set?",
    ),
    "model of the Hub": matrix.Case(
        {"init_checkpoint": "google-bert/bert-base-uncased"},
        "There is no folder google-bert/bert-base-uncased here. A Hugging",
    ),
    "data flipped": model(
        "flipped_data",
        "The checkpoint {data}/models/flipped_data/bert_model.ckpt can't be",
    ),
    "index flipped": model(
        "flipped_index",
        "The checkpoint {data}/models/flipped_index/bert_model.ckpt can't be",
    ),
    "index cut": model(
        "cut_index",
        "The checkpoint {data}/models/cut_index/bert_model.ckpt can't be",
    ),
    "index of git-lfs": model(
        "lfs_index",
        "{data}/models/lfs_index/bert_model.ckpt.index can't be read: it is a",
    ),
    "SavedModel": model(
        "saved_model",
        "The folder {data}/models/saved_model is a SavedModel, which can be",
    ),
    "ALBERT": model(
        "albert",
        "{data}/models/albert/bert_model.ckpt is no BERT: by its names it is",
    ),
    "Hugging Face, cut": model(
        "hf_cut",
        "{data}/models/hf_cut/model.safetensors can't be read, it is",
    ),
    "empty folder": model(
        "empty_folder",
        "The folder {data}/models/empty_folder holds no checkpoint. Looked",
    ),
    "data cut": model(
        "cut_data",
        "The checkpoint {data}/models/cut_data/bert_model.ckpt can't be",
    ),
    "index only": model(
        "index_only",
        "The checkpoint {data}/models/index_only/bert_model.ckpt has an",
    ),
    "config of another": model(
        "config_deep",
        "{data}/models/config_deep/bert_model.ckpt: the tensors are not",
    ),
    "no config": model(
        "no_config",
        "The model's architecture is not known: give --bert_config_file, or a",
    ),
    "config cut": model(
        "config_cut",
        "{data}/models/config_cut/bert_config.json is not JSON: Unterminated",
    ),
    "vocabulary short": model(
        "vocab_short",
        "The vocabulary of {data}/models/vocab_short/bert_model.ckpt does",
    ),
    "no vocabulary": model(
        "no_vocab",
        "The vocabulary is not known: give --vocab_file, or a checkpoint",
    ),
    "cased vocabulary": model(
        "vocab_cased",
        "The vocabulary of {data}/models/vocab_cased/bert_model.ckpt is",
    ),
    "no [CLS]": model(
        "vocab_no_cls",
        "The vocabulary of {data}/models/vocab_no_cls/bert_model.ckpt lacks",
    ),
    "uncased vocabulary": matrix.Case(
        {"do_lower_case": "false"},
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
    ),
    "another vocabulary": matrix.Case(
        {"vocab_file": "{data}/models/vocab_long/vocab.txt"},
        "{data}/models/vocab_long/vocab.txt is not the vocabulary of",
    ),
    "another config": matrix.Case(
        {"bert_config_file": "{data}/models/config_wide/bert_config.json"},
        "{data}/models/config_wide/bert_config.json is not the config of",
    ),
    "weights of another shape": model(
        "no_config",
        "{data}/models/no_config/bert_model.ckpt has other shapes than this",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    # ---- Folder
    "no output_dir": matrix.Case(
        {"output_dir": None},
        "Give --output_dir (Folder for checkpoints and results). python",
    ),
    "output_dir empty": matrix.Case(
        {"output_dir": ""},
        "--output_dir is empty. Is a variable of the shell not set? Give a",
    ),
    "output_dir in a bucket": matrix.Case(
        {"output_dir": "gs://bucket/x"},
        "run_glue.py keeps its runs in a local folder. Received:",
    ),
    "output_dir is a file": matrix.Case(
        {"output_dir": "{data}/glue/RTE/train.tsv"},
        "--output_dir must be a folder, and this is a file. Received:",
    ),
    "output_dir below a file": matrix.Case(
        {"output_dir": "{data}/glue/RTE/train.tsv/x"},
        "--output_dir can't be made: {data}/glue/RTE/train.tsv is no folder.",
    ),
    "output_dir is the model": matrix.Case(
        {"output_dir": "{data}/model"},
        "{data}/model holds a model (bert_model.ckpt.data-00000-of-00001),",
    ),
    "output_dir is the data": matrix.Case(
        {"output_dir": "{data}/glue"},
        "--output_dir would be written over what --data_dir reads: choose",
    ),
    "output_dir of another script": matrix.Case(
        {"output_dir": "{data}/other_run"},
        "{data}/other_run holds a run of run_classifier.py, not of",
    ),
    "output_dir of TF1": matrix.Case(
        {"output_dir": "{data}/tf1_run"},
        "{data}/tf1_run holds the run of another script",
    ),
    "table of somebody": matrix.Case(
        {"output_dir": "{data}/table"},
        "{data}/table holds table.md, which this run would replace and no",
    ),
    "results broken": matrix.Case(
        {"output_dir": "{data}/results"},
        "{data}/results/results.jsonl, line 1 is not the result of a run",
    ),
    "results binary": matrix.Case(
        {"output_dir": "{data}/binary"},
        "{data}/binary/results.jsonl can't be read as the results of runs",
    ),
    "results are a folder": matrix.Case(
        {"output_dir": "{data}/nested"},
        "{data}/nested/results.jsonl can't be read as the results of runs",
    ),
    "output_dir is a dangling link": matrix.Case(
        {"output_dir": "{data}/dangling/RTE/train.tsv"},
        "--output_dir can't be made: {data}/dangling/RTE/train.tsv is a link",
    ),
    # ---- Devices
    "float16 on a CPU": matrix.Case(
        {"dtype": "float16"},
        "float16 needs a GPU. TPUs and CPUs have bfloat16, which needs no",
    ),
    "a TPU by two names": matrix.Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu. Received:",
    ),
    "bad TF_CONFIG": matrix.Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        'TF_CONFIG does not describe a cluster, such as {{"cluster":',
        environment={"TF_CONFIG": "{{"},
    ),
    "replicas that do not share a batch": matrix.Case(
        {"distribution_strategy": "mirrored", "logical_cpus": "3"},
        "--train_batch_size must be a multiple of 3 replicas times 1",
    ),
}
