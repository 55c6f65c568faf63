"""Wrong models, folders and devices of extract_features.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.extracting.inputs import model

CASES: dict[str, matrix.Case] = {
    # ---- Model
    "no model": matrix.Case(
        {"init_checkpoint": None},
        "Give --init_checkpoint (Checkpoint of the model, of any format).",
    ),
    "model is not there": model(
        "none",
        "There is no checkpoint {data}/models/none: {data}/models/none.index",
    ),
    "model of the Hub": matrix.Case(
        {"init_checkpoint": "bert-base-cased"},
        "There is no folder bert-base-cased here. A Hugging Face model is",
    ),
    "unknown preset": matrix.Case(
        {"init_checkpoint": "bert_base"},
        "There is no checkpoint bert_base: neither the file bert_base.index,",
    ),
    "empty folder": model(
        "empty_folder",
        "The folder {data}/models/empty_folder holds no checkpoint. Looked",
    ),
    "index only": model(
        "index_only",
        "The checkpoint {data}/models/index_only/bert_model.ckpt has an",
    ),
    "data only": model(
        "data_only",
        "The folder {data}/models/data_only holds no checkpoint: neither",
    ),
    "cut index": model(
        "cut_index",
        "The checkpoint {data}/models/cut_index/bert_model.ckpt can't be",
    ),
    "cut data": model(
        "cut_data",
        "The checkpoint {data}/models/cut_data/bert_model.ckpt can't be",
    ),
    "flipped data": model(
        "flipped_data",
        "The checkpoint {data}/models/flipped_data/bert_model.ckpt can't be",
    ),
    "git-lfs of data": model(
        "lfs_data",
        "{data}/models/lfs_data/bert_model.ckpt.data-00000-of-00001 can't be",
    ),
    "two checkpoints": model(
        "two",
        "The folder {data}/models/two holds several checkpoints. Name one of",
    ),
    "SavedModel": model(
        "saved_model",
        "The folder {data}/models/saved_model is a SavedModel, which can be",
    ),
    "ALBERT": model(
        "albert",
        "{data}/models/albert/bert_model.ckpt is no BERT: by its names it is",
    ),
    "TensorFlow 2": model(
        "tf2", "{data}/models/tf2/bert_model.ckpt can't be read: it is of"
    ),
    "strangers": model(
        "strangers",
        "{data}/models/strangers/bert_model.ckpt: the tensors are not those",
    ),
    "XLNet": model(
        "hf_xlnet",
        "{data}/models/hf_xlnet/config.json: This is a xlnet model, not",
    ),
    "Hugging Face without weights": model(
        "hf_no_weights",
        "{data}/models/hf_no_weights/config.json: There are no weights",
    ),
    "no config": model(
        "no_config",
        "The model's architecture is not known: give --bert_config_file, or",
    ),
    "config of a decoder": model(
        "config_decoder",
        "{data}/models/config_decoder/bert_config.json: This BERT computes",
    ),
    "config of more layers": model(
        "config_deep",
        "{data}/models/config_deep/bert_model.ckpt: the tensors are not",
    ),
    "config is a page": model(
        "config_html",
        "{data}/models/config_html/bert_config.json is not JSON: it is a web",
    ),
    "no vocabulary": model(
        "no_vocab",
        "The vocabulary is not known: give --vocab_file, or a checkpoint",
    ),
    "empty vocabulary": model(
        "vocab_empty",
        "The vocabulary of {data}/models/vocab_empty/bert_model.ckpt is not",
    ),
    "short vocabulary": model(
        "vocab_short",
        "The vocabulary of {data}/models/vocab_short/bert_model.ckpt does",
    ),
    "cased vocabulary": model(
        "vocab_cased",
        "The vocabulary of {data}/models/vocab_cased/bert_model.ckpt is",
    ),
    "uncased vocabulary": matrix.Case(
        {"do_lower_case": "false"},
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
    ),
    "vocabulary without [SEP]": model(
        "vocab_no_sep",
        "The vocabulary of {data}/models/vocab_no_sep/bert_model.ckpt lacks",
    ),
    "vocabulary is not there": matrix.Case(
        {"vocab_file": "{data}/none"},
        "There is no such file. Received: vocab_file={data}/none",
    ),
    "config is not there": matrix.Case(
        {"bert_config_file": "{data}/none"},
        "There is no such file. Received: bert_config_file={data}/none",
    ),
    "another's vocabulary": matrix.Case(
        {"vocab_file": "{data}/models/vocab_long/vocab.txt"},
        "{data}/models/vocab_long/vocab.txt is not the vocabulary of",
    ),
    # ---- Folders of sentence-transformers
    "modules cut": model(
        "st_cut",
        "{data}/models/st_cut/modules.json is not JSON: Unterminated string",
    ),
    "largest values": model(
        "st_max",
        "{data}/models/st_max/1_Pooling/config.json makes a vector of a",
        layers=None,
    ),
    "no pooling": model(
        "st_no_pooling",
        "{data}/models/st_no_pooling/modules.json makes vectors by",
        layers=None,
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
    "no TPU": matrix.Case(
        {"use_tpu": "true"},
        "No TPU was found. On a TPU host leave --tpu_name out and install",
    ),
    "workers": matrix.Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "--distribution_strategy must be one of default, mirrored, tpu.",
    ),
}
