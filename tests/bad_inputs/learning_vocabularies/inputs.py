"""What learn_vocabulary.py is given that is wrong: commands and files."""

from tests.bad_inputs import matrix

SCRIPT = matrix.Script(
    "learn_vocabulary",
    {
        "input_file": "{data}/a.txt",
        "vocab_file": "{out}/vocab.txt",
        "vocab_size": "200",
    },
)


# Flags of the command that extends a vocabulary.
EXTEND = {"extend_vocab": "{data}/base.txt"}


def text(name: str, line: str, **flags: str) -> matrix.Case:
    """Returns a case of a text that is wrong."""
    return matrix.Case({"input_file": f"{{data}}/{name}", **flags}, line)


def out(path: str, line: str, **flags: str) -> matrix.Case:
    """Returns a case of a file that can't be written."""
    return matrix.Case({"vocab_file": path, **flags}, line)


def base(name: str, line: str) -> matrix.Case:
    """Returns a case of a vocabulary that can't be extended."""
    return matrix.Case({"extend_vocab": f"{{data}}/{name}"}, line)


def of_kind(kind: str, name: str, line: str, **flags: str) -> matrix.Case:
    """Returns a case of a kind of vocabulary, written as `name`."""
    given = {"kind": kind, "vocab_file": f"{{out}}/{name}", **flags}
    return matrix.Case(given, line)


# A flag, values of it that are wrong, and what the error says.
VALUES = (
    (
        "vocab_size",
        ["0", "-5", "nan", "1e4", "", "30,000", "9223372036854775808"],
        "--vocab_size must be a whole number, at least 1 and at",
    ),
    (
        "vocab_size",
        ["105"],
        "104 reserved rows and 19 characters, at the beginning of",
    ),
    (
        "min_frequency",
        ["0", "-1", "inf"],
        "--min_frequency must be a whole number, at least 1.",
    ),
    (
        "min_frequency",
        ["99999999999999999999"],
        "--min_frequency must be a whole number, at least 1, at",
    ),
    (
        "max_characters",
        ["0", "all"],
        "--max_characters must be a whole number, at least 1.",
    ),
    (
        "num_unused",
        ["-1", "2000000000", "9223372036854775808"],
        "--num_unused must be a whole number, at least 0 and at",
    ),
    ("num_unused", ["500"], "505 reserved rows leave no room for pieces. Make"),
    ("do_lower_case", ["no way"], "--do_lower_case must be true or false"),
    ("overwrite", ["perhaps"], "--overwrite must be true or false"),
    ("on_bad_text", ["skip"], "--on_bad_text must be one of error, replace"),
)
