"""Bad inputs of learn_vocabulary.py."""

import gzip
import os
import pathlib

from tests import tiny_files
from tests.bad_inputs import bad_models, matrix

import pytest

SCRIPT = matrix.Script(
    "learn_vocabulary",
    {
        "input_file": "{data}/a.txt",
        "vocab_file": "{out}/vocab.txt",
        "vocab_size": "200",
    },
)

# Flags of the command that extends a vocabulary.
_EXTEND = {"extend_vocab": "{data}/base.txt"}


def _text(name: str, line: str, **flags: str) -> matrix.Case:
    """Returns a case of a text that is wrong."""
    return matrix.Case({"input_file": f"{{data}}/{name}", **flags}, line)


def _out(path: str, line: str, **flags: str) -> matrix.Case:
    """Returns a case of a file that can't be written."""
    return matrix.Case({"vocab_file": path, **flags}, line)


def _base(name: str, line: str) -> matrix.Case:
    """Returns a case of a vocabulary that can't be extended."""
    return matrix.Case({"extend_vocab": f"{{data}}/{name}"}, line)


# A flag, values of it that are wrong, and what the error says.
_VALUES = (
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
CASES = {
    "too few characters": matrix.Case(
        {"max_characters": "1"}, "No word of the text could be spelt: all are"
    ),
    "more pieces than can be": matrix.Case(
        {"vocab_size": "2147483647"},
        "--vocab_size must be a whole number, at least 1 and at most 4194304",
    ),
    **{
        f"{flag}={value}": matrix.Case({flag: value}, line)
        for flag, values, line in _VALUES
        for value in values
    },
    # ---- Texts
    "no file": _text(
        "none.txt", "No file matches. Received: '{data}/none.txt'. Give"
    ),
    "flag missing": matrix.Case(
        {"input_file": None},
        "Give --input_file (Text files or globs, comma separated,",
    ),
    "both missing": matrix.Case(
        {"input_file": None, "vocab_file": None},
        "Give --vocab_file (The vocabulary to write, one piece per",
    ),
    "glob of nothing": _text(
        "none/*.txt", "No file matches. Received: '{data}/none/*.txt'. Give"
    ),
    "dangling": _text(
        "dangling", "dangling is a link to what is not there: remove it, or"
    ),
    "empty": _text(
        "empty", "empty is empty: leave it out, or bring back what it held"
    ),
    "folder": matrix.Case(
        {"input_file": "{data}"},
        "{data} is a folder. Give files or a glob, such as {data}/*",
    ),
    "pipe": _text(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "empty string": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not",
    ),
    "blank": _text(
        "blank", "The text holds no words. Is it in --input_format?"
    ),
    "blank extend": _text(
        "blank",
        "The text holds no words. Is it in --input_format?",
        extend_vocab="{data}/base.txt",
    ),
    "latin1": _text(
        "latin1", "latin1, line 2: the text must be UTF-8 (invalid"
    ),
    "utf16": _text(
        "utf16", "utf16 is no text: it is UTF-16, not UTF-8. Convert it, as"
    ),
    "nul": _text(
        "nul", "nul, line 2: no text has a NUL. Received: character 1."
    ),
    "lfs": _text(
        "lfs", "lfs is no text: it is a pointer of git-lfs, not the file"
    ),
    "html": _text(
        "html", "html is no text: it is a web page, saved in the place of"
    ),
    "gz cut": _text(
        "cut.gz", "cut.gz is truncated or corrupt, or not what its ending"
    ),
    "gz without ending": _text(
        "gzipped", "gzipped is no text: it is compressed (gzip). Unpack it,"
    ),
    "gz not": _text(
        "not.gz", "not.gz is truncated or corrupt, or not what its ending"
    ),
    "jsonl is text": matrix.Case(
        {"input_format": "jsonl"},
        "a.txt, line 1: not JSON: Expecting value: line 1 column 1",
    ),
    "jsonl field": _text(
        "x.jsonl",
        "x.jsonl, line 1: no field 'body': name the text's by",
        input_format="jsonl",
        text_field="body",
    ),
    "wiki not": matrix.Case(
        {"input_format": "wikiextractor"},
        "a.txt, line 1: no text of WikiExtractor, which begins",
    ),
    "tfds": matrix.Case(
        {"input_format": "tfds"},
        "There is no data set {data}/a.txt in TensorFlow Datasets.",
    ),
    "format": matrix.Case(
        {"input_format": "csv"},
        "--input_format must be one of lines, documents, files,",
    ),
    "language": matrix.Case(
        {"input_format": "documents", "language": "English"},
        "`language` must be a code of ISO 639, such as en or de.",
    ),
    "text_field unused": matrix.Case(
        {"text_field": "body"}, "--text_field goes with --input_format=jsonl or"
    ),
    "language unused": matrix.Case(
        {"language": "de"}, "--language goes with --input_format=documents or"
    ),
    "long words": _text(
        "long", "No word of the text could be spelt: all are longer than"
    ),
    "long words extend": _text(
        "long",
        "No word of the text could be spelt: all are longer than",
        extend_vocab="{data}/base.txt",
    ),
    "scheme": matrix.Case(
        {"input_file": "foo://x/y"},
        "There is no file system foo:// here. Give a local path,",
    ),
    # ---- Outputs
    "out input": _out(
        "{data}/a.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input hard": _out(
        "{data}/hard.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input soft": _out(
        "{data}/soft.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input dots": _out(
        "{data}/model/../a.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input glob": _out(
        "{data}/a.txt",
        "--vocab_file would be written over what --input_file",
        input_file="{data}/?.txt",
        overwrite="true",
    ),
    "out would be input": _out(
        "{data}/x.txt",
        "--input_file would read what is written to --vocab_file",
        input_file="{data}/?.txt",
    ),
    "out base": _out(
        "{data}/base.txt",
        "--vocab_file would be written over what --extend_vocab",
        extend_vocab="{data}/base.txt",
        overwrite="true",
    ),
    "out exists": _out(
        "{data}/foreign",
        "foreign exists. Choose another --vocab_file, or replace",
    ),
    "out a model's": _out(
        "{data}/model/vocab.txt",
        "model/vocab.txt exists. Choose another --vocab_file, or",
    ),
    "out folder": _out(
        "{data}/model", "--vocab_file must name a file, and this is a folder."
    ),
    "out folder slash": _out(
        "{out}/new/", "--vocab_file must name a file, and this is a folder."
    ),
    "out below file": _out(
        "{data}/a.txt/vocab.txt",
        "--vocab_file can't be made: {data}/a.txt is no folder.",
    ),
    "out empty": matrix.Case(
        {"vocab_file": ""},
        "--vocab_file is empty. Is a variable of the shell not",
    ),
    "out dangling": _out(
        "{data}/dangling",
        "--vocab_file can't be made: {data}/dangling is a link to",
    ),
    "out newline": _out(
        "{out}/a\nb", "--vocab_file holds a line end, which flags.txt can't"
    ),
    "out too long": _out(
        "{out}/" + 300 * "x",
        "--vocab_file can't be made: a name has at most 251 bytes",
    ),
    "out too long with tmp": _out(
        "{out}/" + 253 * "x",
        "--vocab_file can't be made: a name has at most 251 bytes",
    ),
    # ---- Vocabularies to extend
    "base none": _base(
        "none", "There is no such file. Received: extend_vocab={data}/none"
    ),
    "base model": _base("model", "This is a folder: give a file. Received:"),
    "base empty": _base(
        "empty", "empty is not a BERT vocabulary: it is empty."
    ),
    "base fifo": _base(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "base dangling": _base("dangling", "There is no such file. Received:"),
    "base lfs": _base(
        "lfs", "lfs is not a BERT vocabulary: it is a pointer of git-lfs,"
    ),
    "base a.txt": _base(
        "a.txt", "a.txt is not a BERT vocabulary: it lacks the piece"
    ),
    "base utf16": _base(
        "utf16", "utf16 can't be read: it is UTF-16, not UTF-8. Convert it,"
    ),
    "base bases/twice": _base("bases/twice", "is already on line"),
    "base bases/hole": _base(
        "bases/hole", "a vocabulary must not hold empty lines"
    ),
    "base bases/no_unk": _base(
        "bases/no_unk", "is not a BERT vocabulary: it lacks the piece '[UNK]'"
    ),
    "base bases/full": _base(
        "bases/full", "bases/full has no [unused] rows to fill. Append rows by"
    ),
    "base bases/cased": _base(
        "bases/cased", "bases/cased is cased: lower-casing and accent stripping"
    ),
    "base bases/latin1": _base(
        "bases/latin1",
        "bases/latin1, line 97: a vocabulary must be UTF-8 text.",
    ),
    "base uncased": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "do_lower_case": "false"},
        "base.txt is uncased: none of its",
    ),
    "base empty string": matrix.Case(
        {"extend_vocab": ""},
        "--extend_vocab is empty. Is a variable of the shell not",
    ),
    "appended alone": matrix.Case(
        {"num_appended": "5"},
        "--num_appended goes with --extend_vocab: leave it out.",
    ),
    "unused with extend": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "num_unused": "5"},
        "--num_unused goes without --extend_vocab: leave it out.",
    ),
    "appended -1": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "num_appended": "-1"},
        "--num_appended must be a whole number, at least 0 and at",
    ),
    "appended huge": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "num_appended": "2000000000"},
        "--num_appended must be a whole number, at least 0 and at",
    ),
    # ---- The command line
    "misspelt": matrix.Case(
        {},
        "There is no flag --vocabsize. Did you mean --vocab_size?",
        arguments=("--vocabsize=3",),
    ),
    "argument": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received:",
        arguments=("{data}/b.txt",),
    ),
    "two": _out(
        "{data}/foreign",
        "foreign exists. Choose another --vocab_file, or replace",
        input_file="{data}/none",
    ),
}
RIGHT = {
    "names": _out("{out}/ä ö/☃.txt", ""),
    "lines as of Windows": _text("crlf.txt", ""),
    "variables of others": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "x",
        },
    ),
    "more pieces than there are": matrix.Case(
        {"vocab_size": "4194304"}, "--vocab_size=4194304 is not reached"
    ),
    "words that all are rare": matrix.Case({"min_frequency": "2147483647"}, ""),
    "nothing to overwrite": matrix.Case({"overwrite": "true"}, ""),
    "bad text, replaced": _text("latin1", "", on_bad_text="replace"),
    "a language, where no sentences are split": matrix.Case(
        {"input_format": "documents", "language": "de"},
        "Not used, as sentences are not split: --language.",
    ),
    "a vocabulary to extend": matrix.Case(_EXTEND, ""),
    "one to extend, to more pieces than there are": matrix.Case(
        {**_EXTEND, "vocab_size": "4194304"}, ""
    ),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_files(folder / "model")
    text = "the cat sat on the old red bird . anna sings\n" * 30
    for name, d in {
        "a.txt": text.encode(),
        "b.txt": text.encode(),
        "empty": b"",
        "blank": "\n\u200b\n".encode(),
        "latin1": "ok\ncaf\xe9\n".encode("latin-1"),
        "utf16": text.encode("utf-16"),
        "nul": b"a\nb\0c\n",
        "lfs": bad_models.LFS,
        "html": b"<!DOCTYPE html>\n<html>",
        "foreign": b"my thesis",
        "cut.gz": gzip.compress(text.encode())[:-9],
        "gzipped": gzip.compress(text.encode()),
        "not.gz": text.encode(),
        "x.jsonl": b'{"text": "the cat"}\n',
        "long": b"x" * 300 + b"\n",
        "crlf.txt": text.replace("\n", "\r\n").encode(),
    }.items():
        (folder / name).write_bytes(d)
    os.link(folder / "a.txt", folder / "hard.txt")
    (folder / "soft.txt").symlink_to(folder / "a.txt")
    (folder / "dangling").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "fifo")
    (folder / "bases").mkdir()
    pieces = [
        *tiny_files.VOCAB[:1],
        "[unused0]",
        "[unused1]",
        *tiny_files.VOCAB[1:],
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"##{x}" for x in "bcdefghijklmnopqrtuvwxyza"),
    ]
    pieces = list(dict.fromkeys(pieces))

    def write(name, lines, encoding="utf-8"):
        (folder / name).write_bytes(
            "".join(f"{x}\n" for x in lines).encode(encoding)
        )

    write("base.txt", pieces)
    write("bases/twice", [*pieces, "cat"])
    write("bases/hole", [*pieces[:9], "", *pieces[9:]])
    write("bases/no_unk", [x for x in pieces if x != "[UNK]"])
    write("bases/full", [x for x in pieces if "unused" not in x])
    write(
        "bases/cased",
        [x.title() if x.isalpha() else x for x in tiny_files.VOCAB],
    )
    write("bases/latin1", [*pieces, "né"], "latin-1")
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", RIGHT)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_works(SCRIPT, RIGHT[name], data, tmp_path)
