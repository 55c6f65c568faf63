"""What run_ner.py is given that is wrong: commands and files."""

import os
import pathlib

from bert_tf import heads, modeling
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

SCRIPT = matrix.Script(
    "run_ner",
    {
        "do_train": "true",
        "do_eval": "true",
        "train_file": "{data}/train.conll",
        "dev_file": "{data}/dev.conll",
        "init_checkpoint": "{data}/model",
        "output_dir": "{out}",
        "max_seq_length": "16",
        "train_batch_size": "4",
    },
    has_check_only=True,
)


Case = matrix.Case


def train(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a training file that is wrong."""
    return Case({"train_file": f"{{data}}/{name}", **flags}, line)


def model(name: str, line: str) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return Case({"init_checkpoint": f"{{data}}/models/{name}"}, line)


def out(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be worked in."""
    return Case({"output_dir": name, **flags}, line)


def predict(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a prediction."""
    given = {
        "do_train": None,
        "do_eval": None,
        "do_predict": "true",
        "test_file": "{data}/dev.conll",
        "init_checkpoint": "{data}/tagger",
    }
    return Case({**given, **flags}, line)


CAN_NOT = "can't be read, it is truncated, corrupt or not all there: "


MODELS = {
    "index_only": "has an index but no data: {data}/models/index_only/",
    "data_only": "holds no checkpoint: neither model.ckpt-STEP.index nor",
    "cut_index": f"{CAN_NOT}not an sstable",
    "cut_data": f"{CAN_NOT}Read less bytes",
    "flipped_index": f"{CAN_NOT}Unable to read file",
    "flipped_data": CAN_NOT,
    "empty_index": "bert_model.ckpt.index can't be read: it is empty",
    "lfs_index": "index can't be read: it is a pointer of git-lfs",
    "lfs_data": "00001 can't be read: it is a pointer of git-lfs",
    "two": "holds several checkpoints. Name one of them: ",
    "saved_model": "is a SavedModel, which can be served (run_prediction.py",
    "albert": "is no BERT: by its names it is ALBERT",
    "tf2": "is of TensorFlow 2's tf.train.Checkpoint, as those of",
    "strangers": "them: bert/embeddings/LayerNorm/beta is not there",
    "config_of_other": "them: bert/encoder/layer_2/",
    "config_broken": "bert_config.json is not JSON: Expecting value",
    "vocab_latin_1": "vocab.txt, line 2: a vocabulary must be UTF-8",
    "hf_no_weights": "There are no weights beside it, none of model.safetens",
    "hf_cut": "can't be read, it is truncated or corrupt, such as a download",
    "hf_lfs": "model.safetensors can't be read: it is a pointer of git-lfs",
    "hf_no_config": "has weights of Hugging Face but no config.json",
    "hf_xlnet": "This is a xlnet model, not BERT",
    "empty_folder": "empty_folder holds no checkpoint. Looked for: bert_model",
    "config_heads": "`hidden_size` must be a multiple of `num_attention_heads",
    "vocab_cased": "is cased: lower-casing and accent stripping change 31 of",
    "vocab_no_cls": "lacks the piece '[CLS]', which the model reads beside",
}


_TRAIN = "the O\nanna B-per\nbob I-per\nsat O\nin O\nrome B-loc\n. O\n\n"


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    tiny_files.write_model(folder / "model")
    damaged.write_changed(
        folder / "model",
        folder / "models",
        {
            name: (damaged.CONFIGS | damaged.VOCABS)[name]
            for name in (
                *("config_heads", "config_wide", "vocab_cased"),
                "vocab_no_cls",
            )
        },
    )
    bad_models.write(folder / "models", folder / "model")
    for name, number in (("models/other_tagger", 3), ("tagger", 4)):
        tagger = heads.BertTagger(modeling.Bert(tiny_files.CONFIG), number)
        tiny_files.write_model(folder / name, tagger)
    (folder / "models/other_tagger/labels.txt").write_text("B-x\nI-x\nO\n")
    (folder / "tagger/labels.txt").write_text("B-loc\nB-per\nI-per\nO\n")
    good = 12 * _TRAIN
    files: dict[str, str | bytes] = {
        "train.conll": good,
        "dev.conll": 4 * _TRAIN,
        "few.conll": _TRAIN,
        "empty.conll": "",
        "blank.conll": "\n \n\t\n",
        "docstart.conll": "-DOCSTART- O\n\n" * 9,
        "latin_1.conll": b"\xe9".join([good.encode()] * 2),
        "cut_line.conll": good[: good.rindex(" B-loc")],
        "train.json": '{\n  "data": []\n}\n',
        "train.csv": "word,label\nanna,B-per\n",
        "words.conll": good.replace(" O", ""),
        "ragged.conll": good + "the X O\n",
        "no_word.conll": good.replace("sat O", "\tO").replace(" ", "\t"),
        "no_label.conll": good.replace("sat O", "sat\t").replace(" ", "\t"),
        "outside.conll": "the O\ncat O\n\n" * 9,
        "long.conll": "the O\nanna B-per\n" * 501,
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
        "\u540d\u524d.conll": good,
        "lfs.conll": bad_models.LFS,
        "page.conll": damaged.HTML,
        "train.conll.gz": damaged.GZIP,
        "binary.conll": damaged.BINARY,
        "zeros.conll": bytes(999),
        "utf_16.conll": good.encode("utf-16"),
        "cut.conll": "Zo\u00eb B-per\n".encode()[:3],
    }
    damaged.write_files(folder, files)
    (folder / "words.conll").write_text(
        "".join(x.partition(" ")[0] + "\n" for x in good.split("\n"))
    )
    (folder / "dangling.conll").symlink_to(folder / "gone")
    (folder / "loop.conll").symlink_to(folder / "loop.conll")
    (folder / "link").symlink_to(folder / "model")
    os.mkfifo(folder / "pipe")
    (folder / "others").mkdir()
    (folder / "others/flags.txt").write_text("# python run_squad.py\n")
    (folder / "foreign").mkdir()
    (folder / "foreign/labels.txt").write_text("mine\n")
    (folder / "mine").mkdir()
    (folder / "mine/notes.txt").write_text("mine\n")
    (folder / "inside").mkdir()
    (folder / "inside/test_predictions.conll").write_text(good)
    write_runs(folder)


def write_runs(folder: pathlib.Path) -> None:
    """Makes a run, and copies of it that are wrong in one way each."""
    matrix.make(SCRIPT, folder, folder / "run", "--num_train_epochs=1")
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "flags": damaged.bytes_in("flags.txt", damaged.BINARY),
            "examples": damaged.bytes_in(
                "train_examples.json", b'{"records": 7, "sha256": "0"}'
            ),
            "labels": damaged.bytes_in("labels.txt", b"O\nB-x\n"),
            "labels_binary": damaged.bytes_in("labels.txt", damaged.BINARY),
        },
    )
