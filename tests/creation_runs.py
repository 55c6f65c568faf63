"""What tests of create_pretraining_data.py share: its input, and runs of it."""

import pathlib
import random

from tests import scripts

SCRIPT = str(
    pathlib.Path(__file__).resolve().parents[1] / "create_pretraining_data.py"
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
DOCUMENTS = 12


def word(document, number):
    return f"{chr(ord('a') + document)}word{number}"


def write_inputs(folder):
    """Writes a vocabulary and two text files; returns their folder.

    Every word belongs to one document: the first letter is the document's. In
    the text it stands in capitals and is split in two pieces.
    """
    first = [word(document, "") for document in range(DOCUMENTS)]
    pieces = [*SPECIAL, *first, *(f"##{number}" for number in range(10)), "."]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    rng = random.Random(0)

    def sentence(document):
        numbers = [rng.randrange(10) for _ in range(rng.randint(2, 9))]
        return " ".join(word(document, n).title() for n in numbers) + "."

    documents = [
        "\n".join(sentence(document) for _ in range(rng.randint(1, 30)))
        for document in range(DOCUMENTS)
    ]
    (folder / "a.txt").write_text("\n\n".join(documents[:5]) + "\n\n\n")
    # Windows line ends, and no blank line at the end.
    (folder / "b.txt").write_text("\r\n\r\n".join(documents[5:]))
    return folder


def flags_of(inputs, tmp_path, changes):
    """The flags; a change to None leaves a flag out."""
    values = {
        "input_file": f"{inputs}/?.txt",
        "output_dir": tmp_path / "out",
        "vocab_file": inputs / "vocab.txt",
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 3,
        **changes,
    }
    return [f"--{k}={v}" for k, v in values.items() if v is not None]


def run(inputs, tmp_path, *flags, **changes):
    """Runs the script."""
    return scripts.run(
        tmp_path / "log",
        "create_pretraining_data",
        *flags_of(inputs, tmp_path, changes),
        *flags,
    )


def make(inputs, tmp_path, *flags, **changes):
    """Returns a run that must succeed."""
    done = run(inputs, tmp_path, *flags, **changes)
    assert done.wait() == 0, done.stderr
    return done


def contents(folder):
    """Name -> bytes of the files of a folder and those below it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
