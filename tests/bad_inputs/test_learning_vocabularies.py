import gzip
import pathlib

from tests import tiny_files
from tests.bad_inputs import cases, damaged, matrix

SCRIPT, CASES, RIGHT = cases.read("learning_vocabularies")


def _write(folder: pathlib.Path) -> None:
    tiny_files.write_files(folder / "model")
    text = "the cat sat on the old red bird . anna sings\n" * 30
    files = {
        "a.txt": text,
        "b.txt": text,
        "\u540d\u524d": text,
        "empty": b"",
        "blank": "\n\u200b\n",
        "latin1": "ok\ncaf\xe9\n".encode("latin-1"),
        "foreign": b"my thesis",
        "cut.gz": gzip.compress(text.encode())[:-9],
        "x.jsonl": b'{"text": "the cat"}\n',
        "long": b"x" * 300 + b"\n",
        "crlf.txt": text.replace("\n", "\r\n"),
        "hard.txt": damaged.Same("a.txt"),
        "soft.txt": damaged.Link("a.txt"),
        "dangling": damaged.Link("nowhere"),
        "fifo": damaged.PIPE,
        "bases/": None,
    }
    damaged.write_files(folder, files)
    pieces = [
        *tiny_files.VOCAB[:1],
        "[unused0]",
        "[unused1]",
        *tiny_files.VOCAB[1:],
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"##{x}" for x in "bcdefghijklmnopqrtuvwxyza"),
    ]
    pieces = list(dict.fromkeys(pieces))

    def write(name, lines):
        (folder / name).write_text(damaged.lines(lines))

    write("base.txt", pieces)
    write("bases/no_unk", [x for x in pieces if x != "[UNK]"])
    write("bases/full", [x for x in pieces if "unused" not in x])
    write(
        "bases/cased",
        [x.title() if x.isalpha() else x for x in tiny_files.VOCAB],
    )


data = matrix.inputs(_write)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)


def test_a_c_locale_and_a_closed_output(data, tmp_path):
    """In a script that starts in half a second, as without TensorFlow."""
    case = matrix.Case({"input_file": "{data}/\u540d\u524d"}, "")
    out = tmp_path / "\u51fa\u529b"
    flags = matrix.command(SCRIPT, case, data, out)
    done = matrix.in_a_shell(SCRIPT, flags, {"LC_ALL": "C"}, ">&-")
    assert done.returncode == 0, done.stderr
    tokens = (out / "vocab.txt").read_text("utf-8").splitlines()
    assert {"[UNK]", "cat", "bird"} <= {*tokens}
