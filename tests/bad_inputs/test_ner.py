import pathlib

from bert_tf import heads, modeling
from tests import tiny_files
from tests.bad_inputs import cases, damaged, matrix

SCRIPT, CASES, RIGHT = cases.read("ner")
_TRAIN = "the O\nanna B-per\nbob I-per\nsat O\nin O\nrome B-loc\n. O\n\n"


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    damaged.write_models(folder)
    for name, number in (("models/other_tagger", 3), ("tagger", 4)):
        tagger = heads.BertTagger(modeling.Bert(tiny_files.CONFIG), number)
        tiny_files.write_model(folder / name, tagger)
    good = 12 * _TRAIN
    files: dict[str, object] = {
        "models/other_tagger/labels.txt": "B-x\nI-x\nO\n",
        "tagger/labels.txt": "B-loc\nB-per\nI-per\nO\n",
        "train.conll": good,
        "dev.conll": 4 * _TRAIN,
        "few.conll": _TRAIN,
        **{f"{x}.conll": data for x, data in damaged.NO_TEXTS.items()},
        "docstart.conll": "-DOCSTART- O\n\n" * 9,
        "latin_1.conll": b"\xe9".join([good.encode()] * 2),
        "outside.conll": "the O\ncat O\n\n" * 9,
        "iob1.conll": "anna I-per\nsat O\n\n" * 9 + "bob B-per\n\n",
        "new.conll": good + "2020 B-date\n",
        "bom.conll": "\ufeff" + good,
        "crlf.conll": good.replace("\n", "\r\n"),
        "blanks.conll": good.replace("\n", " \n"),
        "columns.conll": "".join(
            f"- {line}\n" if line else "\n" for line in good.split("\n")
        ),
        "open.conll": good.rstrip("\n"),
        "sentence.conll": "the O\n" * 101,
        "tags.conll": good.replace("B-", "N").replace("I-", "N"),
        "utf_16.conll": good.encode("utf-16"),
        "words.conll": "".join(
            x.partition(" ")[0] + "\n" for x in good.split("\n")
        ),
        "loop.conll": damaged.Link("loop.conll"),
        "pipe": damaged.PIPE,
        "others/flags.txt": "# python run_squad.py\n",
        "foreign/labels.txt": "mine\n",
        "mine/notes.txt": "mine\n",
        "inside/test_predictions.conll": good,
    }
    damaged.write_files(folder, files)
    write_runs(folder)


def write_runs(folder: pathlib.Path) -> None:
    """Makes a run, and copies of it with one error each."""
    flags = ("--num_train_epochs=1", "--do_eval=false")
    matrix.make(SCRIPT, folder, folder / "run", *flags)
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "labels": damaged.bytes_in("labels.txt", b"O\nB-x\n"),
            "labels_binary": damaged.bytes_in("labels.txt", damaged.BINARY),
        },
    )


data = matrix.inputs(write_data)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
