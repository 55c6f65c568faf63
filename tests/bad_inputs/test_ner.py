"""Bad inputs of run_ner.py."""

import os
import pathlib

from bert_tf import heads
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest
import small_disks

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


def _train(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a training file that is wrong."""
    return Case({"train_file": f"{{data}}/{name}", **flags}, line)


def _model(name: str, line: str) -> matrix.Case:
    """Returns a case of a model that is wrong."""
    return Case({"init_checkpoint": f"{{data}}/models/{name}"}, line)


def _out(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be worked in."""
    return Case({"output_dir": name, **flags}, line)


def _predict(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a prediction."""
    given = {
        "do_train": None,
        "do_eval": None,
        "do_predict": "true",
        "test_file": "{data}/dev.conll",
        "init_checkpoint": "{data}/tagger",
    }
    return Case({**given, **flags}, line)


CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "no train_file": Case({"train_file": None}, ""),
    "no dev_file": Case({"dev_file": None}, ""),
    "empty train_file": Case({"train_file": ""}, ""),
    "line end in a name": _train("a\nb.conll", ""),
    "token column beyond": Case({"token_column": "2"}, ""),
    "token column far below": Case({"token_column": "-3"}, ""),
    "columns the same": Case({"token_column": "1"}, ""),
    "columns the same, from both ends": Case(
        {"token_column": "0", "label_column": "-2"}, ""
    ),
    "column in words": Case({"label_column": "last"}, ""),
    "separator a comma": Case({"separator": ","}, ""),
    "separator another": Case({"separator": "tab"}, ""),
    "scheme unknown": Case({"scheme": "IOBES"}, ""),
    "scheme another": Case({"scheme": "BILOU"}, ""),
    "scheme IO": Case({"scheme": "IO"}, ""),
    "one label": Case({"labels": "O"}, ""),
    "labels twice": Case({"labels": "O,O,B-per,I-per,B-loc"}, ""),
    "label empty": Case({"labels": "O,,B-per"}, ""),
    "labels of none": Case({"labels": ""}, ""),
    "labels too few": Case({"labels": "O,B-per"}, ""),
    "labels with a line end": Case({"labels": "O,B-per,I-per,B-loc,a\nb"}, ""),
    "labels of another scheme": Case(
        {"labels": "O,B-per,I-per,B-loc,X-loc", "scheme": "BIO"}, ""
    ),
    "context of paragraphs": Case({"context": "paragraph"}, ""),
    "length 3": Case({"max_seq_length": "3"}, ""),
    "length 33": Case({"max_seq_length": "33"}, ""),
    "length 2**63": Case({"max_seq_length": str(2**63)}, ""),
    "rate negative": Case({"learning_rate": "-1e-5"}, ""),
    "layer_decay 0": Case({"layer_decay": "0"}, ""),
    "test file that is not used, rate nan": Case(
        {"test_file": "{data}/none", "learning_rate": "nan"}, ""
    ),
    "micro-batches that do not fit": Case(
        {"gradient_accumulation_steps": "3"}, ""
    ),
    "flag of SQuAD": Case({"doc_stride": "8"}, ""),
    # ---- Sentences
    "none": _train("none.conll", ""),
    "empty": _train("empty.conll", ""),
    "blank lines": _train("blank.conll", ""),
    "only document starts": _train("docstart.conll", ""),
    "folder": _train("model", ""),
    "dangling link": _train("dangling.conll", ""),
    "link to itself": _train("loop.conll", ""),
    "lfs": _train("lfs.conll", ""),
    "html": _train("page.conll", ""),
    "gzip": _train("train.conll.gz", ""),
    "binary": _train("binary.conll", ""),
    "zeros": _train("zeros.conll", ""),
    "latin-1": _train("latin_1.conll", ""),
    "UTF-16": _train("utf_16.conll", ""),
    "cut in a character": _train("cut.conll", ""),
    "cut in a line": _train("cut_line.conll", ""),
    "JSON": _train("train.json", ""),
    "CSV": _train("train.csv", ""),
    "one column": _train("words.conll", ""),
    "a column too many": _train("ragged.conll", ""),
    "empty word": _train("no_word.conll", ""),
    "empty label": _train("no_label.conll", ""),
    "one label in all": _train("outside.conll", ""),
    "a sentence of 1,001 words": _train("long.conll", ""),
    "IOB1": _train("iob1.conll", "", scheme="BIO"),
    "dev with a new label": Case({"dev_file": "{data}/new.conll"}, ""),
    "dev empty": Case({"dev_file": "{data}/empty.conll"}, ""),
    "dev a folder": Case({"dev_file": "{data}"}, ""),
    "three mistakes": Case(
        {
            "dev_file": "{data}/none.conll",
            "learning_rate": "0.1e",
            "output_dir": "",
        },
        "",
    ),
    "too few": _train("few.conll", "", train_batch_size="32"),
    # ---- Checkpoints
    **{
        name: _model(name, "")
        for name in (
            *("index_only", "data_only", "cut_index", "cut_data"),
            *(
                "flipped_index",
                "flipped_data_model",
                "empty_index",
                "lfs_index",
            ),
            *("lfs_data", "two", "saved_model", "albert", "tf2"),
            *("strangers", "config_of_other", "config_broken"),
            *("vocab_latin_1", "hf_no_weights", "hf_cut", "hf_lfs"),
            *("hf_no_config", "hf_roberta", "empty_folder"),
            *("config_heads", "vocab_cased", "vocab_no_cls"),
        )
    },
    "of other labels": _model("other_tagger", ""),
    "no such checkpoint": Case({"init_checkpoint": "{data}/none"}, ""),
    "a vocabulary": Case({"init_checkpoint": "{data}/model/vocab.txt"}, ""),
    "name of the Hub": Case(
        {"init_checkpoint": "google-bert/bert-base-uncased"}, ""
    ),
    "address": Case({"init_checkpoint": "https://x.org/model.ckpt"}, ""),
    "empty checkpoint": Case({"init_checkpoint": ""}, ""),
    # ---- Predicting
    "predicting with the untrained": _predict(
        "", init_checkpoint="{data}/model"
    ),
    "predicting with nothing": _predict("", init_checkpoint=None),
    "labels in another order": _predict("", labels="O,I-per,B-per,B-loc"),
    "labels of another number": _predict("", labels="O,B-loc"),
    "test file of one column": _predict("", test_file="{data}/words.conll"),
    "test file with new labels": _predict("", test_file="{data}/new.conll"),
    "no test_file": _predict("", test_file=None),
    "a pipe": _predict("", test_file="{data}/pipe"),
    "weights beside a run's": _predict("", output_dir="{data}/run"),
    # ---- Folders
    "out empty": _out("", ""),
    "out blank": _out(" ", ""),
    "out a file": _out("{data}/train.conll", ""),
    "out below a file": _out("{data}/train.conll/out", ""),
    "out a dangling link": _out("{data}/dangling.conll", ""),
    "out a link to itself": _out("{data}/loop.conll", ""),
    "out with a bracket": _out("{out}/[1]", ""),
    "out with a line end": _out("{out}/a\nb", ""),
    "out in a file system that is none": _out("foo://bucket/out", ""),
    "out a model": _out("{data}/model", ""),
    "out a model by ..": _out("{data}/models/../model", ""),
    "out a model by a link": _out("{data}/link", ""),
    "out a model of others": _out("{data}/models/hf_lfs", ""),
    "out of another script": _out("{data}/others", ""),
    "out with foreign files": _out("{data}/foreign", ""),
    "out is what is read": Case(
        {
            "train_file": "{data}/inside/test_predictions.conll",
            "output_dir": "{data}/models/../inside",
        },
        "",
    ),
    "other data": _out("{data}/run", "", train_file="{data}/dev.conll"),
    "other length": _out("{data}/run", "", max_seq_length="12"),
    "other seed and batch": _out(
        "{data}/run", "", seed="7", train_batch_size="2"
    ),
    "other optimizer": _out("{data}/run", "", optimizer="lamb"),
    "other config": _out(
        "{data}/run",
        "",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    "changed data": _out("{data}/runs/examples", ""),
    "flags binary": _out("{data}/runs/flags", ""),
    "labels another": _out("{data}/runs/labels", ""),
    "labels binary": _out("{data}/runs/labels_binary", ""),
}


# What rightly works.
GOOD: dict[str, matrix.Case] = {
    "byte-order mark": _train("bom.conll", ""),
    "CRLF": _train("crlf.conll", ""),
    "blanks at the ends": _train("blanks.conll", ""),
    "more columns": _train(
        "columns.conll", "", dev_file="{data}/columns.conll", token_column="1"
    ),
    "no empty line at the end": _train("open.conll", ""),
    "one sentence of 101 words": Case(
        {"dev_file": "{data}/sentence.conll"}, "there is no empty line"
    ),
    "parts of speech": _train(
        "tags.conll", "labels: none", dev_file="{data}/tags.conll"
    ),
    "labels that are not in the file": Case(
        {"labels": "O,B-loc,B-per,I-per,I-loc"}, "has no example of I-loc"
    ),
    "a file in place of the checkpoint": Case(
        {"init_checkpoint": "{data}/model/bert_model.ckpt.index"}, ""
    ),
    "test file of what is not predicted": Case(
        {"test_file": "{data}/none", "test_has_labels": "false"},
        "Not used, as they go with --do_predict: --test_file, --test_has_lab",
    ),
    "out with files of others": Case({"output_dir": "{data}/mine"}, ""),
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
        tagger = heads.BertTagger(tiny_files.CONFIG, number)
        tiny_files.write_model(folder / name, tagger)
    (folder / "models/other_tagger/labels.txt").write_text("B-x\nI-x\nO\n")
    (folder / "tagger/labels.txt").write_text("B-loc\nB-per\nI-per\nO\n")
    good = 12 * _TRAIN
    for name, text in {
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
    }.items():
        data = text.encode() if isinstance(text, str) else text
        (folder / name).write_bytes(data)
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


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_a_disk_that_is_read_only(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64, read_only=True) as disk:
        line = "there is no permission to write to " + str(disk)
        case = Case({"output_dir": f"{disk}/out"}, line)
        matrix.check(SCRIPT, case, data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", GOOD)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path, GOOD[name])


@pytest.mark.parametrize("redirections", ["", "<&-", ">&-"])
def test_a_c_locale_and_closed_streams(redirections, data, tmp_path):
    case = Case({"train_file": "{data}/\u540d\u524d.conll"}, "")
    flags = matrix.command(SCRIPT, case, data, tmp_path / "\u51fa\u529b")
    done = matrix.in_a_shell(
        *(SCRIPT, [*flags, "--check_only"]),
        *({"LC_ALL": "C", "PYTHONUTF8": "0"}, redirections),
    )
    assert done.returncode == 0, done.stderr
    assert "Found nothing that would stop this run." in done.stderr
