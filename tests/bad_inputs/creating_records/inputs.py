"""The commands of create_pretraining_data.py that are wrong."""

from tests.bad_inputs import matrix

SCRIPT = matrix.Script(
    "create_pretraining_data",
    {
        "input_file": "{data}/a.txt,{data}/b.txt",
        "output_dir": "{out}",
        "vocab_file": "{data}/vocab.txt",
        "max_seq_length": "32",
        "max_predictions_per_seq": "5",
        "dupe_factor": "2",
    },
)


def text(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a text that is wrong."""
    return matrix.Case({"input_file": f"{{data}}/{name}", **flags}, line)


def vocab(name: str, line: str) -> matrix.Case:
    """Returns a case of a vocabulary that is wrong."""
    return matrix.Case({"vocab_file": f"{{data}}/{name}"}, line)


def folder(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be written to."""
    return matrix.Case({"output_dir": path, **flags}, line)


def file(paths: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of files that can't be written."""
    return matrix.Case(
        {"output_dir": None, "output_file": paths, **flags}, line
    )


def show(records: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of records that can't be shown."""
    shown = dict.fromkeys(SCRIPT.good) | {
        "show": "1",
        "vocab_file": "{data}/vocab.txt",
        "input_file": records,
    }
    return matrix.Case({**shown, **flags}, line)


# A flag, values of it that are wrong, and what the error says.
VALUES = (
    ("max_seq_length", ["0", "-1", "4"], "`max_seq_length` must be at least 5"),
    (
        "max_seq_length",
        ["nan", "1e99", "", "128.0", "9223372036854775808", "1000000000"],
        "--max_seq_length must be a whole number, at most 65536.",
    ),
    (
        "max_predictions_per_seq",
        ["0", "30", "-1"],
        "`max_predictions_per_seq` must be from 1 to 29: a",
    ),
    (
        "max_predictions_per_seq",
        ["x"],
        "--max_predictions_per_seq must be a whole number.",
    ),
    ("dupe_factor", ["0", "-3"], "`dupe_factor` must be at least 1"),
    (
        "dupe_factor",
        ["inf", "9223372036854775808", "0.5"],
        "--dupe_factor must be a whole number, at most 10000.",
    ),
    (
        "random_seed",
        ["-1", "1e3", "abc"],
        "--random_seed must be a whole number, at least 0.",
    ),
    (
        "random_seed",
        ["9223372036854775808"],
        "--random_seed must be a whole number, at least 0, at most",
    ),
    ("short_seq_prob", ["nan", "ten"], "--short_seq_prob must be a number"),
    ("short_seq_prob", ["-0.1", "1.5"], "`short_seq_prob` must be from 0 to 1"),
    (
        "masked_lm_prob",
        ["nan", "inf", "15%"],
        "--masked_lm_prob must be a number",
    ),
    ("masked_lm_prob", ["15", "-1"], "`masked_lm_prob` must be from 0 to 1"),
    ("mask_share", ["2"], "`mask_share` must be from 0 to 1"),
    ("mask_share", ["nan"], "--mask_share must be a number"),
    (
        "mask_share",
        ["0.95"],
        "`mask_share` and `random_share` are shares of the same",
    ),
    ("random_share", ["-0.1"], "`random_share` must be from 0 to 1"),
    (
        "random_share",
        ["0.3"],
        "`mask_share` and `random_share` are shares of the same",
    ),
    (
        "num_shards",
        ["0", "-1", "1e3"],
        "--num_shards must be a whole number, at least 1.",
    ),
    (
        "num_shards",
        ["1000"],
        "The text gives about 40 sequences, too few for so many",
    ),
    (
        "num_shards",
        ["9223372036854775808"],
        "--num_shards must be a whole number, at least 1, at most",
    ),
    (
        "shard_size_mb",
        ["0", "nan", "0.5"],
        "--shard_size_mb must be a whole number, at least 1.",
    ),
    (
        "num_workers",
        ["0", "-2", "all"],
        "--num_workers must be a whole number, at least 1 and at",
    ),
    (
        "max_sequences_per_row",
        ["4"],
        "--max_sequences_per_row goes with --pack: leave it out.",
    ),
    ("show", ["-1", "all"], "--show must be a whole number, at least 0"),
    ("do_lower_case", ["maybe"], "--do_lower_case must be true or false"),
    ("pack", ["2"], "--pack must be true or false"),
    (
        "dynamic_masking",
        ["yes please"],
        "--dynamic_masking must be true or false",
    ),
    (
        "objective",
        ["mlm"],
        "--objective must be one of nsp, sop, none, full_sentences.",
    ),
    (
        "masking",
        ["words"],
        "--masking must be one of token, whole_word, span, ngram.",
    ),
    (
        "ngram",
        ["0", "-1", "101", "9223372036854775808", "two"],
        "--ngram must be a whole number, at least 1 and at most 100",
    ),
    (
        "favor_shorter_ngram",
        ["false"],
        "--favor_shorter_ngram goes with --masking=ngram or --ngram: leave it",
    ),
    (
        "do_permutation",
        ["true"],
        "--do_permutation, by which ALBERT's script shuffles some of the",
    ),
    (
        "runner",
        ["LocalRunner"],
        "--runner must be one of DirectRunner, FlinkRunner,",
    ),
)
