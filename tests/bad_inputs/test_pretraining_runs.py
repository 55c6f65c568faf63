"""Bad inputs of run_pretraining.py."""

import os
import pathlib

from tests import small_disks
from tests.bad_inputs import matrix, pretraining_inputs, surroundings
from tests.bad_inputs.matrix import Case

import pytest

SCRIPT = matrix.Script(
    "run_pretraining",
    {
        "do_train": "true",
        "input_file": "{data}/records/*.tfrecord",
        "init_checkpoint": "{data}/model",
        "vocab_file": "{data}/model/vocab.txt",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "max_predictions_per_seq": "4",
        "train_batch_size": "8",
        "num_train_steps": "2",
        "num_warmup_steps": "1",
    },
    has_check_only=True,
)
# Where what the command must not say is said otherwise.
_RANDOM = {"init_checkpoint": None, "vocab_file": None}
_BY_MANIFEST = {"max_seq_length": None, "max_predictions_per_seq": None}
_TWO_CPUS = {"distribution_strategy": "mirrored", "logical_cpus": "2"}
_WORKERS = {"distribution_strategy": "multi_worker_mirrored"}
_EVALUATE = {"do_train": None, "do_eval": "true"}

# ---- Flags ------------------------------------------------------------------

# Flag, value, what it must be.
_VALUES = (
    ("num_train_steps", "0", "a whole number, at least 1"),
    ("num_train_steps", "-1", "a whole number, at least 1"),
    ("num_train_steps", "1.5", "a whole number, at least 1"),
    ("num_train_steps", "1e5", "a whole number, at least 1"),
    ("num_train_steps", "", "a whole number, at least 1"),
    (
        "num_train_steps",
        str(2**63),
        "a whole number, at least 1, at most 2147483647",
    ),
    ("num_warmup_steps", "-1", "a whole number, at least 0"),
    ("train_batch_size", "0", "a whole number, at least 1"),
    ("learning_rate", "nan", "a number, at least 0"),
    ("learning_rate", "inf", "a number, at least 0"),
    ("learning_rate", "-1e-4", "a number, at least 0"),
    ("learning_rate", "1,5", "a number, at least 0"),
    ("learning_rate", "1e99", "a number, at least 0, at most 3.4e+38"),
    ("weight_decay_rate", "inf", "a number, at least 0"),
    ("adam_epsilon", "0", "a number, above 0"),
    (
        "adam_epsilon",
        "1e-99",
        "a number, above 0, at least 1.2e-38 unless it is 0",
    ),
    ("clip_norm", "0", "a number, above 0"),
    ("layer_decay", "2", "a number, above 0 and at most 1"),
    ("seed", "-1", "a whole number, at least 0 and at most 2147483647"),
    ("seed", str(2**31), "a whole number, at least 0 and at most 2147483647"),
    ("max_seq_length", "0", "a whole number, at least 1"),
    ("max_predictions_per_seq", "-4", "a whole number, at least 1"),
    ("keep_checkpoint_max", "0", "a whole number, at least 1"),
    ("log_steps", "-1", "a whole number, at least 1"),
    ("gradient_accumulation_steps", "0", "a whole number, at least 1"),
    ("peak_flops", "0", "a number, at least 1"),
    ("eval_steps", "0", "a whole number, at least 1"),
    ("do_train", "maybe", "true or false"),
    ("dtype", "float8", "one of float32, bfloat16, float16"),
    ("distribution_strategy", "multi", "one of default, mirrored, multi"),
    ("optimizer", "sgd", "one of adamw, adamw_bias_corrected, lamb"),
    ("lr_schedule", "step", "one of linear, polynomial, cosine, constant"),
)
_FLAGS: dict[str, Case] = {
    **{
        f"{name}={value or 'nothing'}": Case(
            {name: value}, f"--{name} must be {expected}"
        )
        for name, value, expected in _VALUES
    },
    "misspelt": Case(
        {"do_trian": "true"}, "no flag --do_trian. Did you mean --do_train?"
    ),
    "of another script": Case(
        {"num_train_epochs": "3"}, "There is no flag --num_train_epochs."
    ),
    "positional": Case({}, "Received: 'true'", arguments=("true",)),
    "nothing to do": Case(
        {"do_train": "false"}, "At least one of --do_train and --do_eval must"
    ),
    "neither input nor output": Case(
        {"input_file": None, "output_dir": None},
        "Give --input_file (TFRecord files or globs, comma separated), --outp",
    ),
    "several mistakes": Case(
        {"learning_rate": "nan", "seed": "-1", "output_dir": ""},
        "--learning_rate must be a number",
    ),
    "flagfile missing": Case(
        {"flagfile": "{data}/none.flags"},
        "can't be read: No such file or directory. Give a text with a flag a "
        "line. Received: --flagfile={data}/none.flags",
    ),
    "flagfile a folder": Case(
        {"flagfile": "{data}"},
        "A flagfile, or one that it names, can't be read: Is a directory.",
    ),
    "flagfile with another flag": Case(
        {"flagfile": "{data}/unknown.flags"}, "There is no flag --colour."
    ),
    "flagfile in UTF-16": Case(
        {"flagfile": "{data}/utf16.flags"},
        "can't be read: it is not UTF-8 text, invalid start byte. Give a text",
    ),
    "more warm-up than steps": Case(
        {"num_warmup_steps": "9"},
        "Received: num_warmup_steps=9, num_train_steps=2",
    ),
    "more cooldown than steps": Case(
        {"lr_schedule": "constant", "num_cooldown_steps": "2"},
        "Warm-up and cooldown must not take more than all steps.",
    ),
    "cooldown of another schedule": Case(
        {"num_cooldown_steps": "1"},
        "--num_cooldown_steps goes with --lr_schedule=constant: leave it out.",
    ),
    "power of another schedule": Case(
        {"lr_power": "2"}, "--lr_power goes with --lr_schedule=polynomial: le"
    ),
    "end above the peak": Case(
        {"end_learning_rate": "1"},
        "Received: end_learning_rate=1.0, learning_rate=5e-05",
    ),
    "steps to trace backwards": Case(
        {"profile_steps": "10:5"},
        "--profile_steps must be FIRST:LAST with 0 < FIRST < LAST",
    ),
    "one step to trace": Case(
        {"profile_steps": "10"}, "Received: profile_steps='10'"
    ),
    "steps to trace behind the end": Case(
        {"profile_steps": "1:3"},
        "must end by the last step of the run, 2. Received: profile_steps=1:3",
    ),
    "nothing to stop early by": Case(
        {"early_stop_evaluations": "2"},
        "--early_stop_evaluations goes with --eval_steps: leave it out.",
    ),
    "two numbers of micro-batches": Case(
        {"auto_batch_size": "true", "gradient_accumulation_steps": "2"},
        "finds the number of micro-batches itself. Received: gradient_accum",
    ),
    "odd batch": Case(
        {**_TWO_CPUS, "train_batch_size": "7"},
        "--train_batch_size must be a multiple of 2 replicas times 1 micro",
    ),
    "odd micro-batch": Case(
        {"gradient_accumulation_steps": "3"},
        "multiple of 1 replicas times 3 micro-batches. Received: train_batch",
    ),
    "odd evaluation batch": Case(
        {**_TWO_CPUS, "do_eval": "true", "eval_batch_size": "7"},
        "--eval_batch_size must be a multiple of 2 replicas",
    ),
    "batch of millions": Case(
        {"train_batch_size": "2000000000"},
        "than this machine has free. Lower --train_batch_size, raise --gradi",
    ),
    "float16 on a CPU": Case(
        {"dtype": "float16"}, "float16 needs a GPU. TPUs and CPUs have bfloat"
    ),
}
_DEVICES: dict[str, Case] = {
    "master": Case(
        {"master": "grpc://a:1"}, "--master belonged to TF1 sessions."
    ),
    "two strategies": Case(
        {"use_tpu": "true", "distribution_strategy": "mirrored"},
        "--use_tpu means --distribution_strategy=tpu. Received: distribution",
    ),
    "no TPU": Case({"use_tpu": "true"}, "No TPU was found. On a TPU host lea"),
    "a TPU elsewhere and a folder here": Case(
        {"use_tpu": "true", "tpu_name": "grpc://10.0.0.2:8470"},
        "The hosts of a TPU elsewhere can't read local files: put them in a "
        "bucket, such as gs://bucket/folder. Received: output_dir={out}",
    ),
    "a TPU elsewhere and records here": Case(
        {
            **_RANDOM,
            "bert_config_file": "{data}/model/bert_config.json",
            "use_tpu": "true",
            "tpu_name": "grpc://10.0.0.2:8470",
            "output_dir": "gs://bucket/out",
        },
        "such as gs://bucket/folder. Received: input_file={data}/",
    ),
    "a TPU that nobody knows": Case(
        {
            **_RANDOM,
            "use_tpu": "true",
            "tpu_name": "unknown",
            "tpu_zone": "here",
            "gcp_project": "none",
            "output_dir": "gs://bucket/out",
            "input_file": "gs://bucket/records",
        },
        "from elsewhere give its name or grpc address. Received: "
        "tpu_name='unknown'",
    ),
    "no cluster": Case(_WORKERS, "TF_CONFIG, which is not set, nor are all"),
}
_CLUSTER = (
    '{{"cluster": {{"worker": %s}}, "task": {{"type": "%s", "index": %s}}}}'
)
_SLURM = {
    "SLURM_JOB_ID": "1",
    "SLURM_STEP_NODELIST": "a",
    "SLURM_STEP_TASKS_PER_NODE": "1",
}
_CLUSTERS = {
    f"TF_CONFIG {name}": Case(_WORKERS, line, {"TF_CONFIG": text})
    for name, text, line in (
        ("empty", "", "TF_CONFIG does not describe a cluster, such as"),
        ("a word", "worker", "a cluster, such as {{"),
        ("a list", "[]", "Received: '[]'"),
        ("nested", "[" * 9999, "TF_CONFIG does not describe a cluster, such"),
        (
            "without a task",
            '{{"cluster": {{"worker": ["a:1"]}}}}',
            "TF_CONFIG does not describe a cluster",
        ),
        (
            "of a worker too many",
            _CLUSTER % ('["a:1"]', "worker", 1),
            "this is worker 1, of which the cluster has 1, counted from 0",
        ),
        (
            "of worker -1",
            _CLUSTER % ('["a:1"]', "worker", -1),
            "this is worker -1, of which the cluster has 1",
        ),
        (
            "of a text",
            _CLUSTER % ('["a:1"]', "worker", '"x"'),
            "TF_CONFIG does not describe a cluster",
        ),
        (
            "of a server",
            _CLUSTER % ('["a:1"]', "ps", 0),
            "it names ps, and only chief and worker train",
        ),
        (
            "without a port",
            _CLUSTER % ('["a"]', "worker", 0),
            "TF_CONFIG contradicts itself: a is not HOST:PORT.",
        ),
        (
            "of port 99999",
            _CLUSTER % ('["a:99999"]', "worker", 0),
            "a:99999 is not HOST:PORT",
        ),
        (
            "of one address twice",
            _CLUSTER % ('["a:1", "a:1"]', "worker", 0),
            "two processes have the same address",
        ),
    )
} | {
    f"Slurm's rank {rank}": Case(
        _WORKERS,
        "The variables of Slurm contradict each other. Start the script by "
        f"srun, or describe the workers in TF_CONFIG. Received: SLURM_JOB_ID=1"
        f", SLURM_PROCID={rank}",
        {**_SLURM, "SLURM_PROCID": rank},
    )
    for rank in ("3", "x")
}

# ---- Records ----------------------------------------------------------------

_NO_RECORDS = "record 1: truncated, corrupt or not a TFRecord file (corrupted "
_RECORDS = {
    f"records {name}": Case({"input_file": "{data}/" + file}, line)
    for name, file, line in (
        ("missing", "none*", "No file matches. Received: '{data}/none*'. Give"),
        (
            "missing among others",
            "records/*.tfrecord,{data}/none",
            "No file matches. Received: '{data}/none'",
        ),
        (
            "behind a comma too many",
            "records/*.tfrecord,,",
            "--input_file has a comma too many, or a variable of the shell",
        ),
        (
            "with a line end",
            "records/a\nb",
            "--input_file must be texts with commas between, in one line",
        ),
        ("empty", "empty", "{data}/empty is empty"),
        ("a folder", "records", "is a folder. Give files or a glob, such as"),
        (
            "a dangling link",
            "dangling",
            "{data}/dangling is a link to what is not there: remove it",
        ),
        ("a glob of dangling links", "dangl*", "link to what is not there"),
        ("a link to itself", "loop", "{data}/loop is a link to what is not"),
        ("a pipe", "fifo", "which a pipe or a device can't be: write what it"),
        ("text", "model/vocab.txt", f"vocab.txt, {_NO_RECORDS}"),
        ("binary", "binary", f"{{data}}/binary, {_NO_RECORDS}"),
        (
            "the checkpoint",
            "model/bert_model.ckpt.data-00000-of-00001",
            f"00001, {_NO_RECORDS}",
        ),
        ("gzip", "gzip", "gzip is no TFRecord file: it is compressed (gzip)."),
        ("git-lfs", "lfs", "lfs is no TFRecord file: it is a pointer of git-l"),
        ("a page", "html", "html is no TFRecord file: it is a web page, saved"),
        ("UTF-16", "utf16", "utf16 is no TFRecord file: it is UTF-16, not UT"),
        (
            "cut in the first header",
            "cut_first",
            "cut_first, record 1: truncated, corrupt or not a TFRecord file "
            "(its header is cut off)",
        ),
        (
            "cut in a header",
            "cut_header",
            "cut_header, record 3: truncated, corrupt or not a TFRecord file "
            "(its header is cut off). Copy or download it again, or make it",
        ),
        ("cut in a record", "cut_record", "cut_record, record 3: truncated"),
        ("cut by a byte", "cut_byte", "cut_byte, record 7: truncated"),
        ("corrupt length", "corrupt_length", f"length, {_NO_RECORDS}"),
        ("corrupt", "corrupt", "corrupt, record 3: truncated, corrupt"),
        (
            "corrupt among others",
            "corrupt,{data}/records/*.tfrecord",
            "{data}/corrupt, record 3: truncated, corrupt",
        ),
        (
            "of another script",
            "classification",
            "does not hold pretraining records: the feature masked_lm_positio",
        ),
        ("of nothing", "garbage", "record 1: not a tf.train.Example, as BERT"),
        (
            "of nothing behind one",
            "second_garbage",
            "second_garbage, record 2: not a tf.train.Example, as BERT's",
        ),
        (
            "of two lengths",
            "ragged",
            "ragged, record 2, holds sequences of 20 tokens (feature input_id",
        ),
        (
            "with whole weights",
            "int_weights",
            "must be of kind float_list. Make the data again. Received: int64",
        ),
        ("id too high", "id_beyond", "input_ids=30000, and the model has room"),
        ("id too low", "id_negative", "with input_ids=-1, and the model has"),
        ("id of 64 bits", "id_huge", "with input_ids=4294967301, and the mo"),
        ("third segment", "segment", "segment_ids=2, and the model has room"),
        (
            "position behind the end",
            "position",
            "with masked_lm_positions=16, and it may be 0 to 15. Make the da",
        ),
        ("third label", "label", "next_sentence_labels=2, and it may be 0 to"),
        ("weight nan", "weight_nan", "with masked_lm_weights=nan, and it may"),
        ("weight -1", "weight_negative", "masked_lm_weights=-1.0, and it may"),
        ("mask 7", "mask", "with input_mask=7, and it may be 0 to 1"),
    )
} | {
    "records empty path": Case(
        {"input_file": ""}, "--input_file is empty. Is a variable of the shel"
    ),
    "records a comma": Case(
        {"input_file": ","}, "--input_file has a comma too many"
    ),
    "records at an unknown address": Case(
        {"input_file": "foo://bucket/a"},
        "no file system foo:// here. Give a local path, or one of gs://.",
    ),
    "records in a home that no shell spelt out": Case(
        {"input_file": "~/none/*.tfrecord"},
        "No file matches. Received: '~/none/*.tfrecord'",
    ),
    "length of other records": Case(
        {"max_seq_length": "12"},
        "records-0.tfrecord holds sequences of 16 tokens (feature input_ids), "
        "expected 12: give --max_seq_length=16 or make the data again",
    ),
    "predictions of other records": Case(
        {"max_predictions_per_seq": "20"},
        "holds 4 predictions per sequence (feature masked_lm_positions), "
        "expected 20: give --max_predictions_per_seq=4",
    ),
    "lengths not given": Case(
        {"max_seq_length": None, "max_predictions_per_seq": None},
        "expected 128: give --max_seq_length=16",
    ),
}
_EVALUATION = {
    f"evaluation records {name}": Case(
        {"do_eval": "true", **flags, "eval_file": file}, line
    )
    for name, flags, file, line in (
        ("empty path", {}, "", "--eval_file is empty. Is a variable of the sh"),
        ("missing", {}, "{data}/none", "No file matches. Received: '{data}/n"),
        ("corrupt", {}, "{data}/corrupt", "corrupt, record 3: truncated"),
        (
            "empty, while training",
            {"do_eval": "false", "eval_steps": "1"},
            "{data}/empty",
            "{data}/empty is empty",
        ),
        (
            "of another length",
            {},
            "{data}/longer/*.tfrecord",
            "a.tfrecord holds sequences of 20 tokens",
        ),
        (
            "of another vocabulary",
            {"input_file": "{data}/m_good/*.tfrecord", "vocab_file": None},
            "{data}/m_vocab/*.tfrecord",
            "--eval_file must hold records made as those of --input_file, with "
            "vocab_sha256=ab",
        ),
        (
            "of another task",
            {"input_file": "{data}/m_good/*.tfrecord", "vocab_file": None},
            "{data}/m_objective/*.tfrecord",
            "with objective=nsp. Received: {data}/m_objective/records-0",
        ),
    )
}
_MANIFESTS = {
    f"manifest {name}": Case(
        {
            **_BY_MANIFEST,
            "vocab_file": None,
            "input_file": f"{{data}}/{file}/*.tfrecord",
            **more,
        },
        line,
    )
    for name, file, more, line in (
        (
            "of another length than the flag",
            "m_good",
            {"max_seq_length": "12"},
            "--max_seq_length=12 contradicts the manifest of {data}/m_good/rec",
        ),
        (
            "of other predictions than the flag",
            "m_good",
            {"max_predictions_per_seq": "5"},
            "--max_predictions_per_seq=5 contradicts the manifest of",
        ),
        ("no JSON", "m_text", {}, "manifest.json is not JSON: Expecting value"),
        ("empty", "m_empty", {}, "manifest.json is not JSON: it is empty."),
        ("latin-1", "m_latin", {}, "manifest.json is not JSON: 'utf-8' codec"),
        ("nested", "m_nested", {}, "not JSON: maximum recursion depth exceed"),
        ("git-lfs", "m_lfs", {}, "is not JSON: it is a pointer of git-lfs"),
        ("a folder", "m_folder", {}, "This is a folder: give a file. Receive"),
        ("a list", "m_list", {}, "a JSON object, received: [1, 2]"),
        ("newer", "m_newer", {}, "is of a newer format than this program's 2"),
        ("with a key", "m_unknown", {}, "Unknown keys: colour; missing keys: "),
        ("without a key", "m_missing", {}, "missing keys: vocab_size"),
        ("of a text", "m_type", {}, "must be of type int. Copy it from where"),
        ("of shards of text", "m_shards", {}, "JSON object, received: 'a'"),
        (
            "of classification",
            "m_classification",
            {},
            "does not hold pre-training records: its manifest says record_type",
        ),
        (
            "of more records",
            "m_count",
            {},
            "records-0.tfrecord holds 9 records, its manifest says 99. Make",
        ),
        ("of -1 records", "m_negative", {}, "no data is made with records=-1"),
        ("beside another", "m_two", {}, "delete the one that is out of date"),
        (
            "of another vocabulary",
            "m_size",
            {},
            "The vocabulary of the data does not belong to this BERT config: "
            "it has 30522 pieces",
        ),
        ("of length 0", "m_zero", {}, "no data is made with max_seq_length=0"),
        (
            "of sequences too long",
            "m_long",
            {},
            "Received: max_seq_length=512, max_position_embeddings=32",
        ),
        (
            "of another length than the records",
            "m_other_length",
            {},
            "(feature input_ids), expected 20 as its manifest says. Copy the "
            "manifest that belongs to it",
        ),
        ("of no task", "m_unknown_objective", {}, "with objective='sentences'"),
        (
            "of no masks",
            "m_masking",
            {},
            "does not say how words are masked: copy it from where the",
        ),
        ("of 0 sequences", "m_rows", {}, "is made with sequences_per_row=0."),
        (
            "and another",
            "m_good",
            {"input_file": "{data}/m_good/*.tfrecord,{data}/m_objective/*rd"},
            "Records that are read together must be made alike",
        ),
    )
}

# ---- The model --------------------------------------------------------------

_CONFIGS = {
    f"config {name}": Case(
        {**_RANDOM, "bert_config_file": f"{{data}}/configs/{file}"}, line
    )
    for name, file, line in (
        ("missing", "none.json", "There is no such file. Received: bert_conf"),
        ("a folder", "", "This is a folder: give a file. Received: bert_conf"),
        ("empty", "empty.json", "is not JSON: it is empty. Give the bert_con"),
        ("text", "text.json", "is not JSON: Expecting value: line 1 column 1"),
        ("a list", "list.json", "must hold one JSON object, the config of a"),
        ("binary", "binary.json", "is not JSON: "),
        ("cut", "cut.json", "is not JSON: Unterminated string"),
        ("nested", "nested.json", "is not JSON: maximum recursion depth exce"),
        ("git-lfs", "lfs.json", "is not JSON: it is a pointer of git-lfs"),
        ("with a key", "unknown.json", "unknown keys: colour. What is unknow"),
        ("misspelt", "misspelt.json", "hiden_size (did you mean hidden_size?"),
        ("of RoBERTa", "roberta.json", "This is a roberta model, not BERT"),
        ("of a decoder", "decoder.json", "`is_decoder` must be False."),
        ("of other positions", "relative.json", "must be 'absolute'. Receive"),
        ("without size", "nosize.json", "The BERT config has no `vocab_size`"),
        ("of text", "text_size.json", "`hidden_size` must be a positive inte"),
        ("of 0 layers", "layers.json", "`num_hidden_layers` must be a positi"),
        ("of 3 heads", "heads.json", "hidden_size=8, num_attention_heads=3"),
        ("of nan", "nan.json", "Received: hidden_dropout_prob=nan"),
        ("of no function", "act.json", "Received: hidden_act='gelo'"),
        (
            "of terabytes",
            "wide_huge.json",
            "than this machine has free. Is the config the right one? Receive",
        ),
        (
            "of a billion layers",
            "deep_huge.json",
            "Received: hidden_size=8, num_hidden_layers=1000000000",
        ),
        (
            "of too few positions",
            "positions.json",
            "Received: max_seq_length=16, max_position_embeddings=8",
        ),
        (
            "of a smaller vocabulary",
            "small.json",
            "and the model has room for 0 to 19. Use the bert_config.json that",
        ),
    )
} | {
    "config not given": Case(
        _RANDOM, "The model's architecture is not known: give --bert_config_f"
    ),
    "config of an unset variable": Case(
        {"bert_config_file": ""}, "--bert_config_file is empty. Is a variable"
    ),
    "config of another checkpoint": Case(
        {"bert_config_file": "{data}/configs/deep.json"},
        "deep.json is not the config of {data}/model/bert_model.ckpt: "
        "num_hidden_layers is 3 there and 2 in the checkpoint's config. Leave",
    ),
}
_VOCABULARIES = {
    f"vocabulary {name}": Case(
        {
            "init_checkpoint": None,
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": f"{{data}}/vocabs/{file}",
        },
        line,
    )
    for name, file, line in (
        ("missing", "none.txt", "There is no such file. Received: vocab_file="),
        ("a folder", "", "This is a folder: give a file. Received: vocab_file"),
        ("empty", "empty.txt", "is not a BERT vocabulary: it is empty."),
        (
            "of 100 pieces",
            "100.txt",
            "100.txt does not belong to this BERT config: it has 100 pieces",
        ),
        ("without [UNK]", "unk.txt", "it lacks the piece '[UNK]', which sta"),
        ("latin-1", "latin.txt", "must be UTF-8 text. Received: byte=0xe9"),
        ("UTF-16", "utf16.txt", "utf16.txt can't be read: it is UTF-16, not"),
        ("binary", "binary.txt", "binary.txt, line 2: a vocabulary must be U"),
        ("git-lfs", "lfs.txt", "vocabulary: it is a pointer of git-lfs"),
        ("with a piece twice", "twice.txt", "this piece is already on line 6"),
        ("with a hole", "line.txt", "line 10: a vocabulary must not hold emp"),
        ("JSON", "vocab.json", "it lacks the piece '[UNK]', which stands for"),
    )
} | {
    "vocabulary of another checkpoint": Case(
        {"vocab_file": "{data}/vocabs/swapped.txt"},
        "swapped.txt is not the vocabulary of {data}/model/bert_model.ckpt: "
        "line 43 is '##ing', and the checkpoint's is '##s'",
    ),
    "vocabulary of other records": Case(
        {**_BY_MANIFEST, "input_file": "{data}/m_good/*.tfrecord"},
        "The records were not made with the vocabulary {data}/model/vocab.txt",
    ),
    "vocabulary of an unset variable": Case(
        {"vocab_file": ""}, "--vocab_file is empty. Is a variable of the she"
    ),
}
_CAN_NOT = "can't be read, it is truncated, corrupt or not all there: "
_CHECKPOINTS = {
    f"checkpoint {name}": Case(
        {"vocab_file": None, "init_checkpoint": f"{{data}}/models/{path}"}, line
    )
    for name, path, line in (
        ("missing", "none", "There is no checkpoint {data}/models/none: "),
        ("of index only", "index_only", "has an index but no data: "),
        ("of data only", "data_only", "is there: copy its index, too."),
        ("cut in the index", "cut_index", _CAN_NOT),
        ("cut in the data", "cut_data", _CAN_NOT),
        ("corrupt in the index", "flipped_index", _CAN_NOT),
        ("corrupt in the data", "flipped_data", "Checksum does not match: st"),
        ("of an empty index", "empty_index", "index can't be read: it is emp"),
        ("git-lfs in the index", "lfs_index", "it is a pointer of git-lfs"),
        ("git-lfs in the data", "lfs_data", "it is a pointer of git-lfs"),
        ("beside another", "two", "holds several checkpoints. Name one of"),
        ("SavedModel", "saved_model", "is a SavedModel, which can be served"),
        ("of ALBERT", "albert", "is no BERT: by its names it is ALBERT."),
        ("of TensorFlow 2", "tf2", "it is of TensorFlow 2's tf.train.Checkpo"),
        ("of other names", "strangers", "not those of the config beside them"),
        ("of another config", "config_of_other", "bert/encoder/layer_2/atten"),
        ("of a broken config", "config_broken", "config.json is not JSON: "),
        ("of a broken vocabulary", "vocab_latin_1", "txt is not UTF-8 text"),
        ("without a config", "bare", "known: give --bert_config_file, or a c"),
        ("empty folder", "empty_folder", "holds no checkpoint. Looked for: b"),
        ("of Hugging Face, bare", "hf_no_weights", "There are no weights bes"),
        ("of Hugging Face, cut", "hf_cut", "such as a download that was cut"),
        ("of Hugging Face, git-lfs", "hf_lfs", "it is a pointer of git-lfs"),
        ("of RoBERTa", "hf_roberta", "This is a roberta model, not BERT"),
        ("a vocabulary", "two/vocab.txt", "vocab.txt is no checkpoint. Give"),
        ("a pipe", "../fifo", "fifo is no checkpoint. Give the folder of a"),
    )
} | {
    f"checkpoint {name}": Case(
        {"vocab_file": None, "init_checkpoint": path, **more}, line
    )
    for name, path, more, line in (
        ("of an unset variable", "", {}, "--init_checkpoint is empty. Is a v"),
        ("name of the Hub", "bert-base-uncased", {}, "There is no folder ber"),
        (
            "name of the Hub with its owner",
            "google-bert/bert-base-uncased",
            {},
            "Names of the Hub are not downloaded; `hf download NAME",
        ),
        (
            "at an unknown address",
            "foo://bucket/model",
            {},
            "no file system foo:// here. Give a local path",
        ),
        (
            "of other shapes",
            "{data}/models/bare",
            {"bert_config_file": "{data}/configs/wide.json"},
            "beta is [8] there and [12] in the model; bert/embeddings/LayerNo",
        ),
        (
            "of fewer layers",
            "{data}/models/bare",
            {"bert_config_file": "{data}/configs/deep.json"},
            "does not fit this model. In the model only: bert/encoder/layer_2",
        ),
    )
}

# ---- The folder -------------------------------------------------------------

_OUTPUTS = {
    f"output {name}": Case({"output_dir": path, **more}, line)
    for name, path, more, line in (
        ("of an unset variable", "", {}, "--output_dir is empty. Is a variab"),
        ("blank", " ", {}, "--output_dir is empty. Is a variable of the shel"),
        (
            "with a line end",
            "{out}/a\nb",
            {},
            "--output_dir holds a line end, which flags.txt can't keep.",
        ),
        (
            "a file",
            "{data}/model/vocab.txt",
            {},
            "--output_dir must be a folder, and this is a file. Received: out",
        ),
        ("a device", "/dev/null", {}, "must be a folder, and this is a file"),
        (
            "below a file",
            "{data}/model/vocab.txt/out",
            {},
            "--output_dir can't be made: {data}/model/vocab.txt is no folder.",
        ),
        (
            "a dangling link",
            "{data}/dangling",
            {},
            "can't be made: {data}/dangling is a link to what is not there.",
        ),
        ("a link to itself", "{data}/loop", {}, "a link to what is not there"),
        ("with a bracket", "{out}[1]", {}, "Received: output_dir='{out}[1]'"),
        (
            "of too long a name",
            "{out}/" + 300 * "x",
            {},
            "a name has at most 251 bytes there. Choose a shorter one. Receiv",
        ),
        (
            "the model",
            "{data}/model",
            {},
            "{data}/model holds a model (bert_model.ckpt.data-00000-of-00001)",
        ),
        (
            "the model by ..",
            "{data}/records/../model",
            {},
            "/../model holds a model (bert_model.ckpt.data-00000-of-00001)",
        ),
        ("the model by a link", "{data}/link", {}, "holds a model (bert_mod"),
        (
            "the vocabulary's folder",
            "{data}/foreign",
            {"vocab_file": "{data}/foreign/vocab.txt"},
            "{data}/foreign holds vocab.txt, which this run would replace",
        ),
        (
            "of another script",
            "{data}/classifier",
            {},
            "holds a run of run_classifier.py, not of run_pretraining.py",
        ),
        (
            "of other records",
            "{data}/trained",
            {"input_file": "{data}/records/records-1*"},
            "{data}/trained holds another run: input_file was {data}/records/",
        ),
        (
            "of another seed",
            "{data}/trained",
            {"seed": "7"},
            "holds another run: seed was 12345 and is 7. Choose another outpu",
        ),
        (
            "of another architecture",
            "{data}/trained",
            {**_RANDOM, "bert_config_file": "{data}/configs/deep.json"},
            "deep.json is not the config of {data}/trained: num_hidden_layers",
        ),
        (
            "of another vocabulary",
            "{data}/trained",
            {**_RANDOM, "vocab_file": "{data}/vocabs/swapped.txt"},
            "swapped.txt is not the vocabulary of {data}/trained: line 43 is",
        ),
        (
            "of a checkpoint that is cut",
            "{data}/run_cut",
            {},
            "None of the checkpoints in {data}/run_cut can be read. Remove the",
        ),
        ("of a broken config", "{data}/run_config", {}, "json is not JSON: "),
        (
            "of flags that are no text",
            "{data}/run_flags",
            {},
            "flags.txt is damaged: it keeps the flags of a run, and is not UT",
        ),
        ("of a broken vocabulary", "{data}/run_vocab", {}, "vocab.txt is not"),
        (
            "without a run to evaluate",
            "{out}",
            {
                **_EVALUATE,
                **_RANDOM,
                "bert_config_file": "{data}/model/bert_config.json",
            },
            "There is no trained model: --output_dir={out} holds no checkpoin",
        ),
        (
            "of a run, to evaluate other weights",
            "{data}/trained",
            {**_EVALUATE, "init_checkpoint": "{data}/models/bare/model.ckpt-2"},
            "holds a run, whose weights are used, and --init_checkpoint names",
        ),
        (
            "of a run that is cut, to evaluate",
            "{data}/run_cut",
            {**_EVALUATE, "init_checkpoint": None},
            f"The checkpoint {{data}}/run_cut/model.ckpt-2 {_CAN_NOT}",
        ),
    )
}

CASES: dict[str, Case] = {
    **_FLAGS,
    **_DEVICES,
    **_CLUSTERS,
    **_RECORDS,
    **_EVALUATION,
    **_MANIFESTS,
    **_CONFIGS,
    **_VOCABULARIES,
    **_CHECKPOINTS,
    **_OUTPUTS,
}

# What works, and what is said of it.
WORKS: dict[str, Case] = {
    "flags of TPUs": Case(
        {"tpu_name": "a", "num_tpu_cores": "8", "logical_cpus": "2"},
        "WARNING: Not used, as they go with --use_tpu or --distribution_strat",
    ),
    "what evaluation needs": Case(
        {"eval_file": "{data}/records/records-1*", "eval_batch_size": "3"},
        "Not used, as they go with --do_eval or --eval_steps: --eval_batch_si",
    ),
    "a list with blanks": Case(
        {"input_file": "{data}/records/records-0*, {data}/records/records-1*"},
        "19 records in 2 files",
    ),
    "a vocabulary of Windows": Case(
        {"vocab_file": "{data}/vocabs/windows.txt"},
        "is read with the byte-order mark left out and the line ends made LF",
    ),
    "an evaluation batch of millions": Case(
        {"do_eval": "true", "eval_batch_size": "2000000000"}, "global_step = 2"
    ),
    "a flagfile of itself": Case(
        {"flagfile": "{data}/itself.flags"}, "circular flagfile dependency"
    ),
    "a name of words and marks": Case(
        {"output_dir": "{out}/ä ß '\" 水 *? $HOME"}, "step 2/2"
    ),
}


# ---- The tests --------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    pretraining_inputs.write_inputs(folder)
    matrix.make(SCRIPT, folder, folder / "trained")
    pretraining_inputs.write_folders(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", WORKS)
def test_what_works(name, data, tmp_path):
    matrix.check_works(SCRIPT, WORKS[name], data, tmp_path)


def test_odd_shells(data, tmp_path):
    surroundings.check_odd_shell(SCRIPT, data, tmp_path)


@pytest.mark.parametrize(
    ("holder", "line"),
    [
        (surroundings.held, "is in use: process "),
        (
            surroundings.held_elsewhere,
            "is in use: process 12 on host far trains there since ",
        ),
    ],
)
def test_bad_output_that_is_in_use(holder, line, data, tmp_path):
    with holder(tmp_path / "out"):
        case = Case({}, f"{{out}} {line}", checked=False)
        matrix.check(SCRIPT, case, data, tmp_path)


@pytest.mark.parametrize("more", [(), ("--check_only",)])
def test_bad_disk_that_is_too_small(more, data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64) as folder:
        case = Case(
            {"output_dir": f"{folder}/out"},
            f"The disk of {folder}/out has ",
            checked=False,
            arguments=more,
        )
        matrix.check(SCRIPT, case, data, tmp_path)
        assert not list(folder.iterdir())


def test_bad_disk_that_is_read_only(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64, read_only=True) as folder:
        case = Case(
            {"output_dir": f"{folder}/out"},
            f"--output_dir can't be written: there is no permission to write "
            f"to {folder}.",
        )
        matrix.check(SCRIPT, case, data, tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_bad_permissions(data, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes((data / "records" / "records-0.tfrecord").read_bytes())
    secret.chmod(0)
    case = Case({"input_file": str(secret)}, "denied")
    matrix.check(SCRIPT, case, data, tmp_path)
    place = tmp_path / "place"
    place.mkdir(mode=0o500)
    case = Case({"output_dir": f"{place}/out"}, "no permission to write to")
    matrix.check(SCRIPT, case, data, tmp_path)
