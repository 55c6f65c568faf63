"""Bad inputs of run_ner.py."""

import os
import pathlib

from bert_tf import heads
from tests import small_disks, tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import pytest

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


_CAN_NOT = "can't be read, it is truncated, corrupt or not all there: "
_MODELS = {
    "index_only": "has an index but no data: {data}/models/index_only/",
    "data_only": "holds no checkpoint: neither model.ckpt-STEP.index nor",
    "cut_index": f"{_CAN_NOT}not an sstable",
    "cut_data": f"{_CAN_NOT}Read less bytes",
    "flipped_index": f"{_CAN_NOT}Unable to read file",
    "flipped_data": _CAN_NOT,
    "empty_index": "bert_model.ckpt.index can't be read: it is empty",
    "lfs_index": "index can't be read: it is a pointer of git-lfs",
    "lfs_data": "00001 can't be read: it is a pointer of git-lfs",
    "two": "holds several checkpoints. Name one of them: ",
    "saved_model": "is a SavedModel, which can be served (predict.py",
    "albert": "is no BERT: by its names it is ALBERT",
    "tf2": "is of TensorFlow 2's tf.train.Checkpoint, as those of",
    "strangers": "them: bert/embeddings/LayerNorm/beta is not there",
    "config_of_other": "them: bert/encoder/layer_2/",
    "config_broken": "bert_config.json is not JSON: Expecting value",
    "vocab_latin_1": "vocab.txt is not UTF-8 text: invalid continuation byte",
    "hf_no_weights": "There are no weights beside it, none of model.safetens",
    "hf_cut": "can't be read, it is truncated or corrupt, such as a download",
    "hf_lfs": "model.safetensors can't be read: it is a pointer of git-lfs",
    "hf_no_config": "has weights of Hugging Face but no config.json",
    "hf_roberta": "This is a roberta model, not BERT",
    "empty_folder": "empty_folder holds no checkpoint. Looked for: bert_model",
    "config_heads": "`hidden_size` must be a multiple of `num_attention_heads",
    "vocab_cased": "is cased: lower-casing and accent stripping change 31 of",
    "vocab_no_cls": "lacks the piece '[CLS]', which the model reads beside",
}
CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "no train_file": Case(
        {"train_file": None}, "Give --train_file, the train set."
    ),
    "no dev_file": Case({"dev_file": None}, "Give --dev_file, the dev set."),
    "empty train_file": Case({"train_file": ""}, "--train_file is empty"),
    "line end in a name": _train(
        "a\nb.conll",
        "--train_file holds a line end, which flags.txt can't keep",
    ),
    "token column beyond": Case(
        {"token_column": "2"}, "line 1: a column is missing"
    ),
    "token column far below": Case(
        {"token_column": "-3"}, "line 1: a column is missing"
    ),
    "columns the same": Case(
        {"token_column": "1"}, "line 1: word and label are in the same column"
    ),
    "columns the same, from both ends": Case(
        {"token_column": "0", "label_column": "-2"},
        "line 1: word and label are in the same column",
    ),
    "column in words": Case(
        {"label_column": "last"}, "--label_column must be a whole number"
    ),
    "separator a comma": Case(
        {"separator": ","}, "--separator must be one of tab, space"
    ),
    "separator another": Case(
        {"separator": "tab"},
        "line 1: there is only one column, and it can't be word",
    ),
    "scheme unknown": Case(
        {"scheme": "IOBES"},
        "--scheme must be one of BIO, IO, IOB1, BIOES, BILOU, none",
    ),
    "scheme another": Case(
        {"scheme": "BILOU"},
        "line 2: 24 of 24 entities are not spelt as BILOU says",
    ),
    "scheme IO": Case(
        {"scheme": "IO"},
        "The scheme IO has the label O and those that start with",
    ),
    "one label": Case(
        {"labels": "O"}, "Expected at least two labels, each once"
    ),
    "labels twice": Case(
        {"labels": "O,O,B-per,I-per,B-loc"},
        "Expected at least two labels, each once",
    ),
    "label empty": Case(
        {"labels": "O,,B-per"},
        "--labels: a label must not be empty or hold a line end",
    ),
    "labels of none": Case(
        {"labels": ""}, "--labels must be given or left out, and it is empty"
    ),
    "labels too few": Case(
        {"labels": "O,B-per"},
        "line 3: this label is not one of those trained on (O,",
    ),
    "labels with a line end": Case(
        {"labels": "O,B-per,I-per,B-loc,a\nb"},
        "--labels must be texts with commas between, in one line;",
    ),
    "labels of another scheme": Case(
        {"labels": "O,B-per,I-per,B-loc,X-loc", "scheme": "BIO"},
        "The scheme BIO has the label O and those that start with",
    ),
    "context of paragraphs": Case(
        {"context": "paragraph"}, "--context must be one of sentence, document"
    ),
    "length 3": Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4",
    ),
    "length 33": Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions",
    ),
    "length 2**63": Case(
        {"max_seq_length": str(2**63)},
        "--max_seq_length must be a whole number, at least 4, at",
    ),
    "rate negative": Case(
        {"learning_rate": "-1e-5"},
        "--learning_rate must be a number, at least 0",
    ),
    "layer_decay 0": Case(
        {"layer_decay": "0"},
        "--layer_decay must be a number, above 0 and at most 1",
    ),
    "test file that is not used, rate nan": Case(
        {"test_file": "{data}/none", "learning_rate": "nan"},
        "--learning_rate must be a number, at least 0",
    ),
    "micro-batches that do not fit": Case(
        {"gradient_accumulation_steps": "3"},
        "--train_batch_size must be a multiple of 1 replicas times",
    ),
    "flag of SQuAD": Case({"doc_stride": "8"}, "There is no flag --doc_stride"),
    "name in latin-1": _train("caf\udce9.conll", "is no UTF-8 text"),
    # ---- Sentences
    "none": _train("none.conll", "There is no such file"),
    "empty": _train("empty.conll", "the file has no words"),
    "blank lines": _train("blank.conll", "the file has no words"),
    "only document starts": _train("docstart.conll", "the file has no words"),
    "folder": _train("model", "This is a folder: give a file"),
    "dangling link": _train("dangling.conll", "There is no such file"),
    "link to itself": _train("loop.conll", "There is no such file"),
    "lfs": _train(
        "lfs.conll", "can't be read: it is a pointer of git-lfs, not the file"
    ),
    "html": _train(
        "page.conll", "line 2: another number of columns than before"
    ),
    "gzip": _train(
        "train.conll.gz", "can't be read: it is compressed (gzip). Unpack it."
    ),
    "binary": _train(
        "binary.conll",
        "line 1: the text is not UTF-8 (invalid start byte at byte",
    ),
    "zeros": _train(
        "zeros.conll", "line 1: there is only one column, and it can't be word"
    ),
    "latin-1": _train(
        "latin_1.conll",
        "line 97: the text is not UTF-8 (invalid continuation byte",
    ),
    "UTF-16": _train("utf_16.conll", "can't be read: it is UTF-16, not UTF-8"),
    "cut in a character": _train(
        "cut.conll", "line 1: the text is not UTF-8 (unexpected end of data at"
    ),
    "cut in a line": _train(
        "cut_line.conll", "line 94: another number of columns than before"
    ),
    "JSON": _train(
        "train.json", "line 1: there is only one column, and it can't be word"
    ),
    "CSV": _train(
        "train.csv", "line 1: there is only one column, and it can't be word"
    ),
    "one column": _train(
        "words.conll", "line 1: there is only one column, and it can't be word"
    ),
    "a column too many": _train(
        "ragged.conll", "line 97: another number of columns than before"
    ),
    "empty word": _train(
        "no_word.conll", "line 4: a word or its label is empty"
    ),
    "empty label": _train(
        "no_label.conll", "line 4: a word or its label is empty"
    ),
    "one label in all": _train(
        "outside.conll", "Expected at least two labels, each once"
    ),
    "a sentence of 1,001 words": _train(
        "long.conll",
        "line 1001: no empty line so far, so the file would be one",
    ),
    "IOB1": _train(
        "iob1.conll",
        "line 1: 9 of 10 entities are not spelt as BIO says",
        scheme="BIO",
    ),
    "dev with a new label": Case(
        {"dev_file": "{data}/new.conll"},
        "line 97: this label is not one of those trained on",
    ),
    "dev empty": Case(
        {"dev_file": "{data}/empty.conll"}, "the file has no words"
    ),
    "dev a folder": Case(
        {"dev_file": "{data}"}, "This is a folder: give a file"
    ),
    "three mistakes": Case(
        {
            "dev_file": "{data}/none.conll",
            "learning_rate": "0.1e",
            "output_dir": "",
        },
        "--learning_rate must be a number, at least 0",
    ),
    "too few": _train(
        "few.conll",
        "There are too few examples for one training step",
        train_batch_size="32",
    ),
    # ---- Checkpoints
    **{name: _model(name, line) for name, line in _MODELS.items()},
    "of other labels": _model(
        "other_tagger", "was trained with 3 labels: B-x, I-x, O"
    ),
    "no such checkpoint": Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index",
    ),
    "a vocabulary": Case(
        {"init_checkpoint": "{data}/model/vocab.txt"}, "is no checkpoint"
    ),
    "name of the Hub": Case(
        {"init_checkpoint": "google-bert/bert-base-uncased"},
        "There is no folder google-bert/bert-base-uncased here",
    ),
    "address": Case(
        {"init_checkpoint": "https://x.org/model.ckpt"},
        "There is no folder https://x.org/model.ckpt here",
    ),
    "empty checkpoint": Case(
        {"init_checkpoint": ""}, "--init_checkpoint is empty"
    ),
    # ---- Predicting
    "predicting with the untrained": _predict(
        "is not fine-tuned: it has no tagging head",
        init_checkpoint="{data}/model",
    ),
    "predicting with nothing": _predict(
        "There is no trained model: --output_dir={out} holds no",
        init_checkpoint=None,
    ),
    "labels in another order": _predict(
        "was trained with 4 labels: B-loc, B-per, I-per, O",
        labels="O,I-per,B-per,B-loc",
    ),
    "labels of another number": _predict(
        "was trained with 4 labels: B-loc, B-per, I-per, O", labels="O,B-loc"
    ),
    "test file of one column": _predict(
        "line 1: there is only one column, and it can't be word",
        test_file="{data}/words.conll",
    ),
    "test file with new labels": _predict(
        "line 97: this label is not one of those trained on",
        test_file="{data}/new.conll",
    ),
    "no test_file": _predict("Give --test_file, the test set.", test_file=None),
    "a pipe": _predict(
        "This file is read twice, which a pipe or a device can't",
        test_file="{data}/pipe",
    ),
    "weights beside a run's": _predict(
        "--output_dir={data}/run holds a run, whose weights are",
        output_dir="{data}/run",
    ),
    # ---- Folders
    "out empty": _out("", "--output_dir is empty"),
    "out blank": _out(" ", "--output_dir is empty"),
    "out a file": _out(
        "{data}/train.conll",
        "--output_dir must be a folder, and this is a file",
    ),
    "out below a file": _out(
        "{data}/train.conll/out",
        "--output_dir can't be made: {data}/train.conll is no",
    ),
    "out a dangling link": _out(
        "{data}/dangling.conll",
        "--output_dir can't be made: {data}/dangling.conll is a",
    ),
    "out a link to itself": _out(
        "{data}/loop.conll",
        "--output_dir can't be made: {data}/loop.conll is a link",
    ),
    "out with a bracket": _out(
        "{out}/[1]", "TensorFlow takes the name of a checkpoint for a glob, so"
    ),
    "out with a line end": _out(
        "{out}/a\nb",
        "--output_dir holds a line end, which flags.txt can't keep",
    ),
    "out in a file system that is none": _out(
        "foo://bucket/out", "There is no file system foo:// here"
    ),
    "out a model": _out(
        "{data}/model",
        "holds a model (bert_model.ckpt.data-00000-of-00001), and",
    ),
    "out a model by ..": _out(
        "{data}/models/../model",
        "holds a model (bert_model.ckpt.data-00000-of-00001), and",
    ),
    "out a model by a link": _out(
        "{data}/link",
        "holds a model (bert_model.ckpt.data-00000-of-00001), and",
    ),
    "out a model of others": _out(
        "{data}/models/hf_lfs",
        "holds a model (model.safetensors), and that of this run",
    ),
    "out of another script": _out(
        "{data}/others",
        "holds a run of run_squad.py, not of run_ner.py: choose",
    ),
    "out with foreign files": _out(
        "{data}/foreign",
        "holds labels.txt, which this run would replace and no run",
    ),
    "out is what is read": Case(
        {
            "train_file": "{data}/inside/test_predictions.conll",
            "output_dir": "{data}/models/../inside",
        },
        "The run would write over what --train_file reads: choose",
    ),
    "other data": _out(
        "{data}/run",
        "holds another run: train_file was {data}/train.conll and",
        train_file="{data}/dev.conll",
    ),
    "other length": _out(
        "{data}/run",
        "holds another run: max_seq_length was 16 and is 12",
        max_seq_length="12",
    ),
    "other seed and batch": _out(
        "{data}/run",
        "holds another run: train_batch_size was 4 and is 2; seed",
        seed="7",
        train_batch_size="2",
    ),
    "other optimizer": _out(
        "{data}/run", "can't be gone on with", optimizer="lamb"
    ),
    "other config": _out(
        "{data}/run",
        "is not the config of {data}/run: hidden_size is 16 there",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    "changed data": _out(
        "{data}/runs/examples",
        "The run in {data}/runs/examples was trained on other",
    ),
    "flags binary": _out(
        "{data}/runs/flags",
        "is damaged: it keeps the flags of a run, and is not UTF-8",
    ),
    "labels another": _out(
        "{data}/runs/labels",
        "The model in {data}/runs/labels was trained with other",
    ),
    "labels binary": _out(
        "{data}/runs/labels_binary",
        "is not UTF-8 text: invalid start byte at byte 0",
    ),
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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
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
        *({"LC_ALL": "C"}, redirections),
    )
    assert done.returncode == 0, done.stderr
    assert "Found nothing that would stop this run." in done.stderr
