"""Bad inputs of run_pretraining.py."""

import gzip
import json
import os
import pathlib
import shutil

from bert_tf import records
from tests import pretraining_records, scripts, tiny_files
from tests.bad_inputs import bad_models, matrix

import numpy as np
import pytest
import tensorflow as tf

SCRIPT = matrix.Script(
    "run_pretraining",
    {
        "do_train": "true",
        "input_file": "{data}/records/*.tfrecord",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "max_predictions_per_seq": "4",
        "train_batch_size": "8",
        "num_train_steps": "2",
        "num_warmup_steps": "1",
    },
    has_check_only=True,
)

Case = matrix.Case

_NUMBERS = {
    name: Case(flags, line)
    for name, flags, line in (
        ("no steps", {"num_train_steps": "0"}, ""),
        ("half a step", {"num_train_steps": "1.5"}, ""),
        ("steps beyond int64", {"num_train_steps": str(2**63)}, ""),
        ("steps of an unset variable", {"num_train_steps": ""}, ""),
        ("steps as 1e5", {"num_train_steps": "1e5"}, ""),
        ("negative warm-up", {"num_warmup_steps": "-1"}, ""),
        ("more warm-up than steps", {"num_warmup_steps": "9"}, ""),
        ("no batch", {"train_batch_size": "0"}, ""),
        ("batch beyond int64", {"train_batch_size": str(2**63)}, ""),
        ("batch of a million", {"train_batch_size": str(10**12)}, ""),
        ("rate nan", {"learning_rate": "nan"}, ""),
        ("rate inf", {"learning_rate": "inf"}, ""),
        ("rate 1e99", {"learning_rate": "1e99"}, ""),
        ("rate negative", {"learning_rate": "-1e-4"}, ""),
        ("rate with a comma", {"learning_rate": "1,5"}, ""),
        ("end rate above peak", {"end_learning_rate": "1"}, ""),
        ("negative seed", {"seed": "-1"}, ""),
        ("seed beyond int32", {"seed": str(2**31)}, ""),
        ("no length", {"max_seq_length": "0"}, ""),
        ("length beyond int64", {"max_seq_length": str(2**63)}, ""),
        ("negative predictions", {"max_predictions_per_seq": "-4"}, ""),
        ("clip norm 0", {"clip_norm": "0"}, ""),
        ("epsilon 0", {"adam_epsilon": "0"}, ""),
        ("epsilon 1e-99", {"adam_epsilon": "1e-99"}, ""),
        ("weight decay inf", {"weight_decay_rate": "inf"}, ""),
        ("weight decay 1e99", {"weight_decay_rate": "1e99"}, ""),
        ("layer decay 2", {"layer_decay": "2"}, ""),
        ("keep no checkpoint", {"keep_checkpoint_max": "0"}, ""),
        ("save each 0 steps", {"save_checkpoints_steps": "0"}, ""),
        ("log each -1 steps", {"log_steps": "-1"}, ""),
        ("logical CPUs 0", {"logical_cpus": "0"}, ""),
        ("peak flops 0", {"peak_flops": "0"}, ""),
        ("micro-batches 0", {"gradient_accumulation_steps": "0"}, ""),
        ("odd micro-batches", {"gradient_accumulation_steps": "3"}, ""),
        (
            "batch and evaluation",
            {"do_eval": "true", "eval_batch_size": "0"},
            "",
        ),
        ("no evaluation steps", {"do_eval": "true", "max_eval_steps": "0"}, ""),
        ("evaluation each 0 steps", {"eval_steps": "0"}, ""),
        (
            "cooldown beyond",
            {"lr_schedule": "constant", "num_cooldown_steps": "2"},
            "",
        ),
        ("lr power 0", {"lr_schedule": "polynomial", "lr_power": "0"}, ""),
    )
}

_FLAGS = {
    name: Case(flags, line)
    for name, flags, line in (
        ("do_train maybe", {"do_train": "maybe"}, ""),
        ("misspelt", {"do_trian": "true"}, ""),
        ("flag of fine-tuning", {"num_train_epochs": "3"}, ""),
        ("original's one-hot", {"use_one_hot_embeddings": "true"}, ""),
        ("dtype float8", {"dtype": "float8"}, ""),
        ("float16 on a CPU", {"dtype": "float16"}, ""),
        ("strategy", {"distribution_strategy": "multi"}, ""),
        ("optimizer sgd", {"optimizer": "sgd"}, ""),
        ("schedule step", {"lr_schedule": "step"}, ""),
        ("clipping none", {"clipping": "none"}, ""),
        ("trace backwards", {"profile_steps": "10:5"}, ""),
        ("trace one number", {"profile_steps": "10"}, ""),
        ("trace beyond the end", {"profile_steps": "1:3"}, ""),
        ("early stop without", {"early_stop_evaluations": "2"}, ""),
        (
            "two numbers of micro-batches",
            {"auto_batch_size": "true", "gradient_accumulation_steps": "2"},
            "",
        ),
        ("lr power with linear", {"lr_power": "2"}, ""),
        ("cooldown with linear", {"num_cooldown_steps": "1"}, ""),
        ("tpu name without", {"tpu_name": "a"}, ""),
        ("tpu cores without", {"num_tpu_cores": "8"}, ""),
        (
            "tpu zone and project without",
            {"tpu_zone": "a", "gcp_project": "b"},
            "",
        ),
        ("master", {"master": "grpc://a:1"}, ""),
        (
            "two strategies",
            {"use_tpu": "true", "distribution_strategy": "mirrored"},
            "",
        ),
        ("no TPU", {"use_tpu": "true"}, ""),
        (
            "TPU elsewhere, folder here",
            {"use_tpu": "true", "tpu_name": "grpc://10.0.0.2:8470"},
            "",
        ),
        (
            "TPU elsewhere, records here",
            {
                "use_tpu": "true",
                "tpu_name": "grpc://10.0.0.2:8470",
                "output_dir": "gs://bucket/out",
                "init_checkpoint": "gs://bucket/model",
            },
            "",
        ),
        (
            "unknown TPU",
            {
                "use_tpu": "true",
                "tpu_name": "unknown",
                "tpu_zone": "here",
                "gcp_project": "none",
                "output_dir": "gs://bucket/out",
                "input_file": "gs://bucket/records",
                "init_checkpoint": "gs://bucket/model",
            },
            "",
        ),
        ("nothing to do", {"do_train": "false"}, ""),
        (
            "no input and no output",
            {"input_file": None, "output_dir": None},
            "",
        ),
        ("flagfile missing", {"flagfile": "{data}/none.flags"}, ""),
        ("flagfile folder", {"flagfile": "{data}"}, ""),
        (
            "flagfile with an unknown flag",
            {"flagfile": "{data}/unknown.flags"},
            "",
        ),
        ("flagfile of itself", {"flagfile": "{data}/itself.flags"}, ""),
        ("flagfile in UTF-16", {"flagfile": "{data}/utf16.flags"}, ""),
        (
            "odd batch",
            {
                "train_batch_size": "7",
                "distribution_strategy": "mirrored",
                "logical_cpus": "2",
            },
            "",
        ),
        (
            "odd evaluation batch",
            {
                "eval_batch_size": "7",
                "do_eval": "true",
                "distribution_strategy": "mirrored",
                "logical_cpus": "2",
            },
            "",
        ),
        ("logical CPUs without mirrored", {"logical_cpus": "2"}, ""),
        (
            "three mistakes at once",
            {"learning_rate": "nan", "seed": "-1", "output_dir": ""},
            "",
        ),
    )
}

_RECORDS = {
    name: Case({"input_file": "{data}/" + file}, line)
    for name, file, line in (
        ("no file matches", "none*", ""),
        ("empty in a list", "records/*.tfrecord,,", ""),
        ("missing among others", "records/*.tfrecord,{data}/none", ""),
        ("with newline", "records/a\nb", ""),
        (
            "of spaces in a list",
            "records/records-0.tfrecord, {data}/records/records-1.tfrecord",
            "",
        ),
        ("empty file", "empty", ""),
        ("folder", "records", ""),
        ("dangling link", "dangling", ""),
        ("dangling links", "dangl*", ""),
        ("link to itself", "loop", ""),
        ("FIFO", "fifo", ""),
        ("text", "model/vocab.txt", ""),
        ("JSON", "model/bert_config.json", ""),
        ("gzip", "gzip", ""),
        ("git-lfs", "lfs", ""),
        ("binary", "binary", ""),
        ("UTF-16", "utf16", ""),
        ("cut in the header", "cut_header", ""),
        ("cut in a record", "cut_record", ""),
        ("cut by a byte", "cut_byte", ""),
        ("corrupt length", "flipped_length", ""),
        ("corrupt data", "flipped_data", ""),
        ("corrupt among others", "flipped_data,{data}/records/*.tfrecord", ""),
        ("of classification", "classification", ""),
        ("no examples", "garbage", ""),
        ("second no example", "second_garbage", ""),
        ("second of other length", "ragged", ""),
        ("weights int", "int_weights", ""),
        ("id beyond", "id_beyond", ""),
        ("id negative", "id_negative", ""),
        ("id beyond int32", "id_huge", ""),
        ("segment beyond", "segment", ""),
        ("position beyond", "position", ""),
        ("label beyond", "label", ""),
        ("weight nan", "weight_nan", ""),
        ("weight negative", "weight_negative", ""),
        ("mask 7", "mask", ""),
        ("checkpoint", "model/bert_model.ckpt.data-00000-of-00001", ""),
        ("index", "model/bert_model.ckpt.index", ""),
    )
} | {
    "other length": Case({"max_seq_length": "12"}, ""),
    "other predictions": Case({"max_predictions_per_seq": "20"}, ""),
    "too long for the model": Case({"max_seq_length": "64"}, ""),
    "lengths not given": Case(
        {"max_seq_length": None, "max_predictions_per_seq": None}, ""
    ),
    "input empty": Case({"input_file": ""}, ""),
    "input comma": Case({"input_file": ","}, ""),
    "input s3": Case({"input_file": "s3://bucket/a"}, ""),
    "input unknown scheme": Case({"input_file": "foo://bucket/a"}, ""),
    "input home": Case({"input_file": "~/none/*.tfrecord"}, ""),
    "eval file missing": Case(
        {"do_eval": "true", "eval_file": "{data}/none"}, ""
    ),
    "eval file corrupt": Case(
        {"do_eval": "true", "eval_file": "{data}/flipped_data"}, ""
    ),
    "eval file empty": Case(
        {"eval_steps": "1", "eval_file": "{data}/empty"}, ""
    ),
    "eval file of other length": Case(
        {"do_eval": "true", "eval_file": "{data}/longer/*.tfrecord"}, ""
    ),
    "eval file of other vocabulary": Case(
        {
            "input_file": "{data}/m_good/*.tfrecord",
            "do_eval": "true",
            "eval_file": "{data}/m_vocab/*.tfrecord",
        },
        "",
    ),
    "eval file of other task": Case(
        {
            "input_file": "{data}/m_good/*.tfrecord",
            "do_eval": "true",
            "eval_file": "{data}/m_objective/*.tfrecord",
        },
        "",
    ),
    "eval file empty string": Case({"do_eval": "true", "eval_file": ""}, ""),
}

_MANIFESTS = {
    f"manifest: {name}": Case(
        {
            "input_file": "{data}/" + file + "/*.tfrecord",
            "max_seq_length": None,
            "max_predictions_per_seq": None,
        }
        | more,
        line,
    )
    for name, file, more, line in (
        ("length contradicts", "m_good", {"max_seq_length": "12"}, ""),
        (
            "predictions contradict",
            "m_good",
            {"max_predictions_per_seq": "5"},
            "",
        ),
        ("not JSON", "m_text", {}, ""),
        ("empty", "m_empty", {}, ""),
        ("list", "m_list", {}, ""),
        ("latin-1", "m_latin", {}, ""),
        ("folder", "m_folder", {}, ""),
        ("nested", "m_nested", {}, ""),
        ("newer", "m_newer", {}, ""),
        ("unknown keys", "m_unknown", {}, ""),
        ("missing keys", "m_missing", {}, ""),
        ("wrong type", "m_type", {}, ""),
        ("shards of text", "m_shards", {}, ""),
        ("other record type", "m_classification", {}, ""),
        ("other number", "m_count", {}, ""),
        ("negative number", "m_negative", {}, ""),
        ("two that list a file", "m_two", {}, ""),
        ("other vocabulary size", "m_size", {}, ""),
        ("length 0", "m_zero", {}, ""),
        ("length too long for the model", "m_long", {}, ""),
        ("length of others", "m_other_length", {}, ""),
        ("objective unknown", "m_unknown_objective", {}, ""),
        ("masking unknown", "m_masking", {}, ""),
        ("sequences per row 0", "m_rows", {}, ""),
    )
} | {
    "manifests disagree": Case(
        {
            "input_file": "{data}/m_good/*.tfrecord,{data}/m_objective/*.tfrecord"
        },
        "",
    ),
}

_CONFIGS = {
    f"config: {name}": Case(
        {"init_checkpoint": None, "bert_config_file": "{data}/configs/" + file},
        line,
    )
    for name, file, line in (
        ("missing", "none.json", ""),
        ("empty", "empty.json", ""),
        ("text", "text.json", ""),
        ("list", "list.json", ""),
        ("binary", "binary.json", ""),
        ("UTF-16", "utf16.json", ""),
        ("cut", "cut.json", ""),
        ("git-lfs", "lfs.json", ""),
        ("folder", "", ""),
        ("nested", "nested.json", ""),
        ("unknown key", "unknown.json", ""),
        ("misspelt key", "misspelt.json", ""),
        ("RoBERTa", "roberta.json", ""),
        ("no vocabulary size", "nosize.json", ""),
        ("size as text", "text_size.json", ""),
        ("size true", "true.json", ""),
        ("layers 0", "layers.json", ""),
        ("heads 3", "heads.json", ""),
        ("dropout 1", "dropout.json", ""),
        ("dropout nan", "nan.json", ""),
        ("activation unknown", "act.json", ""),
        ("huge", "huge.json", ""),
        ("huge layers", "huge_layers.json", ""),
        ("too few positions", "positions.json", ""),
        ("relative positions", "relative.json", ""),
        ("decoder", "decoder.json", ""),
        ("duplicate key", "duplicate.json", ""),
    )
} | {
    "config: not given": Case({"init_checkpoint": None}, ""),
    "config: given empty": Case({"bert_config_file": ""}, ""),
    "config: another than the checkpoint's": Case(
        {"bert_config_file": "{data}/configs/deep.json"}, ""
    ),
    "config: vocabulary of another size": Case(
        {
            "bert_config_file": "{data}/configs/small.json",
            "init_checkpoint": None,
        },
        "",
    ),
    "config: of a TPU elsewhere": Case(
        {"bert_config_file": "gs://none/none.json"}, ""
    ),
}

_VOCABULARIES = {
    f"vocabulary: {name}": Case(
        {
            "init_checkpoint": None,
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/vocabs/" + file,
        },
        line,
    )
    for name, file, line in (
        ("missing", "none.txt", ""),
        ("empty", "empty.txt", ""),
        ("folder", "", ""),
        ("100 pieces", "100.txt", ""),
        ("without [UNK]", "unk.txt", ""),
        ("latin-1", "latin.txt", ""),
        ("UTF-16", "utf16.txt", ""),
        ("binary", "binary.txt", ""),
        ("git-lfs", "lfs.txt", ""),
        ("duplicate", "duplicate.txt", ""),
        ("empty line", "line.txt", ""),
        ("JSON", "vocab.json", ""),
    )
} | {
    "vocabulary: other than the checkpoint's": Case(
        {"vocab_file": "{data}/vocabs/swapped.txt"}, ""
    ),
    "vocabulary: other than the records'": Case(
        {
            "input_file": "{data}/m_good/*.tfrecord",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "",
    ),
    "vocabulary: empty path": Case({"vocab_file": ""}, ""),
}

_CHECKPOINTS = {
    f"checkpoint: {name}": Case(
        {"init_checkpoint": "{data}/" + path} | more, line
    )
    for name, path, more, line in (
        ("missing", "none", {}, ""),
        ("missing prefix", "model/other.ckpt", {}, ""),
        ("index only", "index_only", {}, ""),
        ("data only", "data_only", {}, ""),
        ("cut index", "cut_index", {}, ""),
        ("cut data", "cut_data", {}, ""),
        ("flipped index", "flipped_index", {}, ""),
        ("flipped data", "flipped_data_model", {}, ""),
        ("empty index", "empty_index", {}, ""),
        ("lfs index", "lfs_index", {}, ""),
        ("lfs data", "lfs_data", {}, ""),
        ("two in a folder", "two", {}, ""),
        ("SavedModel", "saved_model", {}, ""),
        ("ALBERT", "albert", {}, ""),
        ("TensorFlow 2", "tf2", {}, ""),
        ("strangers", "strangers", {}, ""),
        ("config beside of another", "config_of_other", {}, ""),
        ("config beside broken", "config_broken", {}, ""),
        ("vocabulary beside broken", "vocab_latin_1", {}, ""),
        ("HF no weights", "hf_no_weights", {}, ""),
        ("HF cut", "hf_cut", {}, ""),
        ("HF lfs", "hf_lfs", {}, ""),
        ("HF no config", "hf_no_config", {}, ""),
        ("HF RoBERTa", "hf_roberta", {}, ""),
        ("empty folder", "empty_folder", {}, ""),
        ("a file", "model/vocab.txt", {}, ""),
        ("without config", "bare", {}, ""),
        (
            "other shapes",
            "bare",
            {"bert_config_file": "{data}/configs/wide.json"},
            "",
        ),
        (
            "other layers",
            "bare",
            {"bert_config_file": "{data}/configs/deep.json"},
            "",
        ),
        ("fifo", "fifo", {}, ""),
    )
} | {
    f"checkpoint: {name}": Case({"init_checkpoint": path}, line)
    for name, path, line in (
        ("name of the Hub", "bert-base-uncased", ""),
        ("name of the Hub with owner", "google-bert/bert-base-uncased", ""),
        ("address", "https://huggingface.co/bert-base-uncased", ""),
        ("unknown preset", "bert_none_en", ""),
        ("empty", "", ""),
        ("s3", "s3://bucket/model", ""),
        ("dot", ".", ""),
    )
}

_OUTPUTS = {
    f"output: {name}": Case({"output_dir": path} | more, line)
    for name, path, more, line in (
        ("empty", "", {}, ""),
        ("blank", " ", {}, ""),
        ("a file", "{data}/model/vocab.txt", {}, ""),
        ("below a file", "{data}/model/vocab.txt/out", {}, ""),
        ("the model's folder", "{data}/model", {}, ""),
        ("the model's folder by ..", "{data}/records/../model", {}, ""),
        ("the model's folder by a link", "{data}/link_to_model", {}, ""),
        ("another script's run", "{data}/classifier", {}, ""),
        ("foreign files", "{data}/foreign", {}, ""),
        ("dangling link", "{data}/dangling", {}, ""),
        ("a link to itself", "{data}/loop", {}, ""),
        ("a bracket", "{out}[1]", {}, ""),
        ("too long a name", "{out}/" + 300 * "x", {}, ""),
        ("a FIFO", "{data}/fifo", {}, ""),
        ("of /proc", "/proc/none", {}, ""),
        ("of /dev/null", "/dev/null", {}, ""),
        ("s3", "s3://bucket/out", {}, ""),
        (
            "another run: data",
            "{data}/trained",
            {"input_file": "{data}/records/records-1*"},
            "",
        ),
        ("another run: seed", "{data}/trained", {"seed": "7"}, ""),
        (
            "another run: architecture",
            "{data}/trained",
            {
                "bert_config_file": "{data}/configs/deep.json",
                "init_checkpoint": None,
            },
            "",
        ),
        (
            "another run: vocabulary",
            "{data}/trained",
            {"vocab_file": "{data}/vocabs/swapped.txt"},
            "",
        ),
        ("no readable checkpoint", "{data}/unreadable", {}, ""),
        (
            "its config broken",
            "{data}/run_config",
            {"init_checkpoint": None},
            "",
        ),
        ("its flags binary", "{data}/run_flags", {}, ""),
        ("its vocabulary latin-1", "{data}/run_vocab", {}, ""),
        (
            "vocabulary in it",
            "{data}/foreign",
            {"vocab_file": "{data}/foreign/vocab.txt"},
            "",
        ),
    )
} | {
    "evaluate: no run": Case(
        {
            "do_train": "false",
            "do_eval": "true",
            "init_checkpoint": None,
            "bert_config_file": "{data}/model/bert_config.json",
        },
        "",
    ),
    "evaluate: other weights": Case(
        {
            "do_train": "false",
            "do_eval": "true",
            "output_dir": "{data}/trained",
            "init_checkpoint": "{data}/bare/model.ckpt-2",
        },
        "",
    ),
    "evaluate: classifier": Case(
        {
            "do_train": "false",
            "do_eval": "true",
            "init_checkpoint": "{data}/encoder",
        },
        "",
    ),
    "evaluate: corrupt run": Case(
        {
            "do_train": "false",
            "do_eval": "true",
            "init_checkpoint": None,
            "output_dir": "{data}/unreadable",
        },
        "",
    ),
}

_WORKER = '{{"cluster": {{"worker": ["localhost:1"]}}, "task": {{"type": "worker", "index": %s}}}}'
_CLUSTERS = {
    f"TF_CONFIG: {name}": Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        line,
        {"TF_CONFIG": text},
    )
    for name, text, line in (
        ("empty", "", ""),
        ("not JSON", "worker", ""),
        ("list", "[]", ""),
        ("no task", '{{"cluster": {{"worker": ["a:1"]}}}}', ""),
        ("worker 7 of 1", _WORKER % 7, ""),
        ("negative", _WORKER % -1, ""),
        ("text index", _WORKER % '"a"', ""),
        (
            "parameter server",
            '{{"cluster": {{"ps": ["a:1"]}}, "task": {{"type": "ps", "index": 0}}}}',
            "",
        ),
        (
            "no port",
            '{{"cluster": {{"worker": ["a"]}}, "task": {{"type": "worker", "index": 0}}}}',
            "",
        ),
        (
            "one address twice",
            '{{"cluster": {{"worker": ["a:1", "a:1"]}}, "task": {{"type": "worker", "index": 0}}}}',
            "",
        ),
        (
            "port 99999",
            '{{"cluster": {{"worker": ["localhost:99999"]}}, "task": {{"type": "worker", "index": 0}}}}',
            "",
        ),
        ("nested", "[" * 100000, ""),
    )
} | {
    "cluster: none": Case(
        {"distribution_strategy": "multi_worker_mirrored"}, ""
    ),
    "cluster: Slurm contradicts itself": Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "",
        {
            "SLURM_JOB_ID": "1",
            "SLURM_PROCID": "3",
            "SLURM_STEP_NODELIST": "a",
            "SLURM_STEP_TASKS_PER_NODE": "1",
        },
    ),
    "cluster: Slurm rank is text": Case(
        {"distribution_strategy": "multi_worker_mirrored"},
        "",
        {
            "SLURM_JOB_ID": "1",
            "SLURM_PROCID": "x",
            "SLURM_STEP_NODELIST": "a",
            "SLURM_STEP_TASKS_PER_NODE": "1",
        },
    ),
}

CASES = {
    **_NUMBERS,
    **_FLAGS,
    "positional argument": Case({}, "Received: 'true'", arguments=("true",)),
    **_RECORDS,
    **_MANIFESTS,
    **_CONFIGS,
    **_VOCABULARIES,
    **_CHECKPOINTS,
    **_OUTPUTS,
    **_CLUSTERS,
}


# ---- The inputs -------------------------------------------------------------


def make_data(folder: pathlib.Path) -> None:
    """Writes good inputs, and those that are wrong in one way each."""
    tiny_files.write_model(folder / "model")
    (folder / "records").mkdir()
    pretraining_records.write(folder / "records")
    _write_records(folder)
    _write_manifests(folder)
    _write_configs(folder)
    _write_vocabularies(folder)
    bad_models.write(folder, folder / "model")
    _write_places(folder)


def _record(**changes) -> bytes:
    values = pretraining_records.values(np.random.default_rng(0))
    values = {name: np.array(value) for name, value in values.items()}
    for name, value in changes.items():
        values[name].ravel()[1 if values[name].size > 1 else 0] = value
    return records.PRETRAINING.encode(values)


def _write_tfrecord(path: pathlib.Path, *rows: bytes) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(row)


def _write_records(folder: pathlib.Path) -> None:
    good = (folder / "records" / "records-0.tfrecord").read_bytes()
    (folder / "empty").write_bytes(b"")
    (folder / "dangling").symlink_to(folder / "none")
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "fifo")
    (folder / "gzip").write_bytes(gzip.compress(good))
    (folder / "lfs").write_bytes(bad_models.LFS)
    (folder / "binary").write_bytes(np.random.default_rng(0).bytes(999))
    (folder / "utf16").write_text("one line\n", encoding="utf-16")
    size = len(good) // 7
    for name, end in (
        ("cut_header", 5),
        ("cut_record", 2 * size + 50),
        ("cut_byte", len(good) - 1),
    ):
        (folder / name).write_bytes(good[:end])
    for name, at in (("flipped_length", 1), ("flipped_data", 2 * size + 50)):
        data = bytearray(good)
        data[at] ^= 1
        (folder / name).write_bytes(data)
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1] * 16))
    names = ("input_ids", "input_mask", "segment_ids")
    features = tf.train.Features(feature=dict.fromkeys(names, feature))
    example = tf.train.Example(features=features).SerializeToString()
    _write_tfrecord(folder / "classification", example)
    _write_tfrecord(folder / "garbage", b"\xff\xff no example")
    _write_tfrecord(folder / "second_garbage", _record(), b"\xff no example")
    longer = pretraining_records.values(np.random.default_rng(0), sequence=20)
    longer = records.PRETRAINING.encode(longer)
    _write_tfrecord(folder / "ragged", _record(), longer)
    (folder / "longer").mkdir()
    _write_tfrecord(folder / "longer" / "a.tfrecord", longer)
    ints = tf.train.Example.FromString(_record())
    ints.features.feature["masked_lm_weights"].int64_list.value.extend([1] * 4)
    _write_tfrecord(folder / "int_weights", ints.SerializeToString())
    for name, changes in {
        "id_beyond": {"input_ids": 30_000},
        "id_negative": {"input_ids": -1},
        "id_huge": {"input_ids": 2**32 + 5},
        "segment": {"segment_ids": 2},
        "position": {"masked_lm_positions": 16},
        "label": {"next_sentence_labels": 2},
        "weight_nan": {"masked_lm_weights": np.nan},
        "weight_negative": {"masked_lm_weights": -1},
        "mask": {"input_mask": 7},
    }.items():
        _write_tfrecord(folder / name, *[_record(**changes)] * 9)


def _write_manifests(folder: pathlib.Path) -> None:
    def write(name, change=None, text=None, counts=(9,), **changes):
        place = folder / f"m_{name}"
        place.mkdir()
        files = pretraining_records.write(place, counts)
        changes = {"vocab_size": len(tiny_files.VOCAB)} | changes
        pretraining_records.write_manifest(files, **changes)
        path = place / "manifest.json"
        if change:
            values = json.loads(path.read_text())
            change(values)
            path.write_text(json.dumps(values))
        if text is not None:
            path.write_bytes(text)
        return path

    write("good")
    write("vocab", vocab_sha256="cd" * 32)
    write("objective", objective="none")
    write("text", text=b"manifest")
    write("empty", text=b"")
    write("list", text=b"[1, 2]")
    write("latin", text='{"seed": "é"}'.encode("latin-1"))
    write("nested", text=b"[" * 100_000)
    path = write("folder")
    path.unlink()
    path.mkdir()
    write("newer", lambda values: values.update(version=99))
    write("unknown", lambda values: values.update(colour="red"))
    write("missing", lambda values: values.pop("vocab_size"))
    write("type", lambda values: values.update(max_seq_length="16"))
    write("shards", lambda values: values.update(shards=["a"]))
    write("classification", record_type="classification")
    write("count", lambda values: values["shards"][0].update(records=99))
    write("negative", lambda values: values["shards"][0].update(records=-1))
    path = write("two")
    shutil.copy(path, path.parent / "old.manifest.json")
    write("size", vocab_size=30_522)
    write("zero", max_seq_length=0)
    write("long", max_seq_length=512)
    write("other_length", max_seq_length=20)
    write("unknown_objective", objective="sentences")
    write(
        "masking",
        lambda v: v.update(
            dynamic_masking=True,
            masking={"a": 1},
        ),
    )
    write("rows", sequences_per_row=0)


def _write_configs(folder: pathlib.Path) -> None:
    (folder / "configs").mkdir()
    good = json.loads(tiny_files.CONFIG.to_json())
    for name, changes in {
        "unknown": {"colour": "red"},
        "misspelt": {"hiden_size": 8},
        "roberta": {"model_type": "roberta"},
        "text_size": {"hidden_size": "8"},
        "true": {"num_hidden_layers": True},
        "layers": {"num_hidden_layers": 0},
        "heads": {"num_attention_heads": 3},
        "dropout": {"hidden_dropout_prob": 1},
        "nan": {"hidden_dropout_prob": float("nan")},
        "act": {"hidden_act": "gelo"},
        "huge": {"hidden_size": 2**40},
        "huge_layers": {"num_hidden_layers": 10**7},
        "positions": {"max_position_embeddings": 8},
        "relative": {"position_embedding_type": "relative_key"},
        "decoder": {"is_decoder": True},
        "deep": {"num_hidden_layers": 3},
        "wide": {"hidden_size": 12},
        "small": {"vocab_size": 20},
    }.items():
        text = json.dumps(good | changes)
        (folder / "configs" / f"{name}.json").write_text(text)
    text = json.dumps(good)
    for name, data in {
        "empty": b"",
        "text": b"BERT",
        "list": b"[]",
        "binary": bytes(range(256)),
        "utf16": text.encode("utf-16") + b"x",
        "cut": text[:50].encode(),
        "lfs": bad_models.LFS,
        "nested": b"[" * 100_000,
        "nosize": b'{"hidden_size": 8}',
        "duplicate": b'{"vocab_size": 7, ' + text[1:].encode(),
    }.items():
        (folder / "configs" / f"{name}.json").write_bytes(data)


def _write_vocabularies(folder: pathlib.Path) -> None:
    (folder / "vocabs").mkdir()
    pieces = tiny_files.VOCAB
    for name, lines in {
        "100": [*pieces[:5], *(f"w{i}" for i in range(95))],
        "unk": ["[PAD]", "unknown", *pieces[2:]],
        "duplicate": [*pieces[:-1], "the"],
        "line": [*pieces[:9], "", *pieces[10:]],
        "swapped": [*pieces[:-2], pieces[-1], pieces[-2]],
    }.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / "vocabs" / f"{name}.txt").write_text(text)
    text = "".join(f"{piece}\n" for piece in pieces)
    for name, data in {
        "empty.txt": b"",
        "latin.txt": f"{text}né\n".encode("latin-1"),
        "utf16.txt": text.encode("utf-16"),
        "binary.txt": bytes(range(256)),
        "lfs.txt": bad_models.LFS,
        "vocab.json": json.dumps({p: i for i, p in enumerate(pieces)}).encode(),
    }.items():
        (folder / "vocabs" / name).write_bytes(data)


def _write_places(folder: pathlib.Path) -> None:
    (folder / "link_to_model").symlink_to(folder / "model")
    (folder / "foreign").mkdir()
    shutil.copy(folder / "model" / "vocab.txt", folder / "foreign")
    (folder / "classifier").mkdir()
    flags = "# python run_classifier.py --flagfile=x\n--seed=1\n"
    (folder / "classifier" / "flags.txt").write_text(flags)
    (folder / "unknown.flags").write_text("--seed=1\n--colour=red\n")
    (folder / "itself.flags").write_text(f"--flagfile={folder}/itself.flags\n")
    (folder / "utf16.flags").write_text("--seed=1\n", encoding="utf-16")
    out = folder / "trained"
    run = scripts.run(
        folder / "logs",
        SCRIPT.name,
        *matrix.command(SCRIPT, Case({}, ""), folder, out),
    )
    assert run.wait() == 0, run.stderr
    shutil.rmtree(folder / "logs")
    (folder / "bare").mkdir()
    for path in out.glob("model.ckpt-2.*"):
        shutil.copy(path, folder / "bare")
    for name, file, data in (
        ("unreadable", "model.ckpt-2.index", b"x"),
        ("run_config", "bert_config.json", b"{"),
        ("run_flags", "flags.txt", bytes(range(128, 256))),
        ("run_vocab", "vocab.txt", b"[UNK]\n\xe9\n"),
    ):
        shutil.copytree(out, folder / name)
        (folder / name / file).write_bytes(data)
    (folder / "encoder").mkdir()
