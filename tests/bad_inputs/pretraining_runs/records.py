"""Wrong records and manifests of run_pretraining.py."""

from tests.bad_inputs.matrix import Case
from tests.bad_inputs.pretraining_runs.inputs import BY_MANIFEST

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

_AMONG_THEM = {
    "a manifest among records": Case(
        {**BY_MANIFEST, "vocab_file": None, "input_file": "{data}/m_good/*"},
        "{data}/m_good/manifest.json is no record file but a manifest, which "
        "is found by itself. Give {data}/m_good/*.tfrecord",
    ),
    "records with and without a manifest": Case(
        {
            **BY_MANIFEST,
            "vocab_file": None,
            "input_file": "{data}/m_good/*.tfrecord,{data}/records/*.tfrecord",
        },
        "{data}/records/records-0.tfrecord is in no manifest, and other files "
        "are: {data}/m_good/manifest.json lists records-0.tfrecord.",
    ),
}

_MANIFESTS = {
    f"manifest {name}": Case(
        {
            **BY_MANIFEST,
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

CASES: dict[str, Case] = {
    **_RECORDS,
    **_EVALUATION,
    **_MANIFESTS,
    **_AMONG_THEM,
}
