"""Bad inputs of export_saved_model.py."""

import os
import pathlib
import shutil

from bert_tf import run_lock
from tests import small_disks, tiny_files
from tests.bad_inputs import bad_models, matrix, trained

import pytest

SCRIPT = matrix.Script(
    "export_saved_model",
    {"model_dir": "{data}/run", "export_dir": "{out}/1"},
)


def _run(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another run."""
    return matrix.Case({"model_dir": f"{{data}}/{name}", **flags}, line)


def _model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a model that is no run."""
    model = {"model_dir": None, "init_checkpoint": f"{{data}}/{name}"}
    return matrix.Case({**model, **flags}, line)


def _out(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another folder to write."""
    return matrix.Case({"export_dir": path, **flags}, line)


# What is wrong with a run, and what is said.
_RUNS = {
    "cut_data": (
        "model.ckpt-7 can't be read, it is truncated, corrupt or not all "
        "there: Read less bytes than"
    ),
    "lfs_data": (
        "model.ckpt-7.data-00000-of-00001 can't be read: it is a pointer of "
        "git-lfs, not the file itself. Run"
    ),
    "nan": (
        "model.ckpt-7 holds weights that are infinite or no numbers (NaN): "
        "output_bias. Its training"
    ),
    "labels_three": (
        "model.ckpt-7 has 2 classes, and "
        "{data}/runs/labels_three/labels.txt names 3. Give 2 by --labels, "
        "in"
    ),
    "labels_twice": (
        "labels.txt must name the classes, one a line: 'no' is there more "
        "than once. Bring it back as it was,"
    ),
    "no_labels": (
        "labels.txt, which names the 2 classes. Bring it back, or give "
        "--labels in the order of training."
    ),
    "flags_length": (
        "flags.txt, which keeps the flags of the run, is wrong: "
        "--max_seq_length must be a whole number, at"
    ),
    "no_config": "The model's architecture is not known: give",
    "config_empty": (
        "bert_config.json is not JSON: it is empty. Give the "
        "bert_config.json of the model."
    ),
    "config_cut": (
        "bert_config.json is not JSON: Unterminated string starting at: "
        "line 8 column 3 (char 149). Give the"
    ),
    "config_lfs": (
        "bert_config.json is not JSON: it is a pointer of git-lfs, not the "
        "file itself. Run `git lfs pull` in"
    ),
    "config_html": (
        "bert_config.json is not JSON: it is a web page, saved in the place "
        "of the file. Download the file"
    ),
    "config_list": (
        "bert_config.json must hold one JSON object, the config of a BERT. "
        "Received: [1, 2]"
    ),
    "config_binary": (
        "bert_config.json is not JSON: 'utf-8' codec can't decode byte 0x80 "
        "in position 0: invalid start"
    ),
    "config_text": (
        "bert_config.json: `hidden_size` must be a positive integer. "
        "Received: hidden_size='8'"
    ),
    "config_true": (
        "bert_config.json: `num_hidden_layers` must be a positive integer. "
        "Received: num_hidden_layers=True"
    ),
    "config_nan": (
        "bert_config.json: `hidden_dropout_prob` must be a number, at least "
        "0 and below 1. Received:"
    ),
    "config_heads": (
        "bert_config.json: `hidden_size` must be a multiple of "
        "`num_attention_heads`. Received:"
    ),
    "config_act": (
        "bert_config.json: `hidden_act` must be one of gelu, gelu_erf, "
        "relu, tanh, linear. Received:"
    ),
    "config_key": (
        "bert_config.json: The BERT config has unknown keys: hidden_sise "
        "(did you mean hidden_size?). What is"
    ),
    "config_no_size": (
        "bert_config.json: The BERT config has no `vocab_size`: add the "
        "number of pieces of the vocabulary."
    ),
    "config_roberta": (
        "bert_config.json: This is a roberta model, not BERT, and only BERT "
        "can be read. Received:"
    ),
    "config_decoder": (
        "bert_config.json: This BERT computes otherwise than the original: "
        "`is_decoder` must be False."
    ),
    "config_wide": (
        "model.ckpt-7: the tensors are not those of the config beside them: "
        "bert/embeddings/word_embeddings"
    ),
    "config_deep": "bert/encoder/layer_2/attention/output/LayerNorm/beta",
    "config_shallow": "is not in the config, which says num_hidden_layers=1;",
    "no_vocab": "The vocabulary is not known: give --vocab_file, or a",
    "vocab_empty": "vocab.txt is not a BERT vocabulary: it is empty.",
    "vocab_lfs": (
        "vocab.txt is not a BERT vocabulary: it is a pointer of git-lfs, "
        "not the file itself. Run `git lfs"
    ),
    "vocab_binary": (
        "vocab.txt is not UTF-8 text: invalid start byte at byte 0. Convert "
        "it, as with iconv, or copy it"
    ),
    "vocab_utf_16": (
        "vocab.txt is not UTF-8 text: it is UTF-16, not UTF-8. Convert it, "
        "as with iconv."
    ),
    "vocab_short": (
        "vocab.txt does not belong to this BERT config: it has 43 pieces, "
        "the config says vocab_size=44. Give"
    ),
    "vocab_long": (
        "vocab.txt does not belong to this BERT config: it has 45 pieces, "
        "the config says vocab_size=44. Give"
    ),
    "vocab_no_unk": (
        "vocab.txt is not a BERT vocabulary: it lacks the piece '[UNK]', "
        "which stands for unknown words."
    ),
    "vocab_no_cls": (
        "vocab.txt lacks the piece '[CLS]', which the model reads beside "
        "every text. Give the vocabulary that"
    ),
    "vocab_no_sep": (
        "vocab.txt lacks the piece '[SEP]', which the model reads beside "
        "every text. Give the vocabulary that"
    ),
    "vocab_twice": (
        "vocab.txt, line 9: this piece is already on line 8. The original "
        "takes the last: give line 8 a name"
    ),
    "vocab_hole": (
        "vocab.txt, line 8: a vocabulary must not hold empty lines, but at "
        "its end. Where the model has a row"
    ),
    "vocab_cased": (
        "vocab.txt is cased: lower-casing and accent stripping change 31 of "
        "its 31 pieces with letters, for"
    ),
}
# With another model.
_MODELS = {
    "index_only": "bert_model.ckpt has an index but no data:",
    "cut_index": (
        "bert_model.ckpt can't be read, it is truncated, corrupt or not all "
        "there: not an sstable (bad magic"
    ),
    "two": "The folder {data}/models/two holds several checkpoints. Name",
    "saved_model": "{data}/models/saved_model is a SavedModel, which can be",
    "albert": (
        "bert_model.ckpt is no BERT: by its names it is ALBERT. Give a "
        "checkpoint of BERT."
    ),
    "strangers": (
        "bert_model.ckpt: the tensors are not those of the config beside "
        "them: bert/embeddings/LayerNorm/beta"
    ),
    "hf_roberta": (
        "config.json: This is a roberta model, not BERT, and only BERT can "
        "be read. Received:"
    ),
    "hf_cut": (
        "model.safetensors can't be read, it is truncated or corrupt, such "
        "as a download that was cut off:"
    ),
    "hf_lfs": (
        "model.safetensors can't be read: it is a pointer of git-lfs, not "
        "the file itself. Run `git lfs pull`"
    ),
    "empty_folder": (
        "The folder {data}/models/empty_folder holds no checkpoint. Looked "
        "for: bert_model.ckpt.index or"
    ),
    "config_broken": (
        "bert_config.json is not JSON: Expecting value: line 1 column 16 "
        "(char 15). Give the bert_config.json"
    ),
}

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "no model": matrix.Case(
        {"model_dir": None},
        "Give one model: --model_dir, the folder of a run, or",
    ),
    "two models": matrix.Case(
        {"init_checkpoint": "{data}/model"},
        "Give one model: --model_dir, the folder of a run, or",
    ),
    "no export_dir": matrix.Case(
        {"export_dir": None},
        "Give --export_dir (The new folder to write). python",
    ),
    "unknown flag": matrix.Case(
        {"output_dir": "{out}"},
        "There is no flag --output_dir. Did you mean --export_dir? python",
    ),
    "flag of predict.py": matrix.Case(
        {"saved_model": "{data}/model"},
        "There is no flag --saved_model. python export_saved_model.py",
    ),
    "an argument": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received: 'true'",
        arguments=("true",),
    ),
    "overwrite is a word": matrix.Case(
        {"overwrite": "yes please"},
        "--overwrite must be true or false. Received: overwrite=yes",
    ),
    "unknown head": matrix.Case(
        {"head": "ner"},
        "--head must be one of encoder, masked_lm, next_sentence,",
    ),
    "head of others": matrix.Case(
        {"head": "span"},
        "{data}/run/model.ckpt-7 has no span head: cls/squad/output_bias,",
    ),
    "head of pre-training": _run(
        "run",
        "{data}/run/model.ckpt-7 has no masked_lm head:",
        head="masked_lm",
    ),
    "unit of a classifier": matrix.Case(
        {"unit": "cls"},
        "--unit goes with --head=encoder: leave it out. Received:",
    ),
    "normalize of a classifier": matrix.Case(
        {"normalize": "true"},
        "--normalize goes with --head=encoder: leave it out. Received:",
    ),
    "scheme of a classifier": matrix.Case(
        {"scheme": "IOB1"},
        "--scheme goes with --head=tagging: leave it out. Received:",
    ),
    "length -1": matrix.Case(
        {"max_seq_length": "-1"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "length 1e99": matrix.Case(
        {"max_seq_length": "1e99"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "length 33": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for: lower",
    ),
    "length 2**63": matrix.Case(
        {"max_seq_length": str(2**63)},
        "--max_seq_length must be a whole number, at least 4, at most",
    ),
    "labels of a tagger, too few": _run(
        "tagger",
        "Expected at least two labels, each once. Received: labels=O",
        labels="O",
    ),
    "labels of a tagger, swapped": _run(
        "tagger",
        "{data}/tagger/model.ckpt-7 names its classes O, B-X. Leave out",
        labels="B-X,O",
    ),
    "labels twice": _model(
        "alone",
        "Expected at least two labels, each once. Received: labels=a,a",
        labels="a,a",
    ),
    "label empty": _model(
        "alone",
        "--labels: a label must not be empty or hold a line end.",
        labels="a,",
    ),
    "labels of a quote": matrix.Case(
        {"labels": 'a,"b'},
        "--labels must be texts with commas between, in one line; one",
    ),
    "task of three classes": _model(
        "alone",
        "{data}/alone/model.ckpt-7 has 2 classes, and the task MNLI names",
        task_name="MNLI",
    ),
    "labels and a task": _model(
        "alone",
        "--task_name and --labels contradict each other, as MRPC has 0,",
        task_name="MRPC",
        labels="no,yes",
    ),
    "a score and a task": _model(
        "alone",
        "--task_name and --regression contradict each other, as MRPC has",
        task_name="MRPC",
        regression="true",
    ),
    "no labels": _model(
        "alone", "The labels are not known. Give --labels, --task_name or"
    ),
    "classes of a score": _run(
        "score",
        "{data}/score/model.ckpt-7 gives a score, and has no classes, and",
        labels="a,b",
    ),
    "unknown scheme": _run(
        "tagger",
        "--scheme must be one of BIO, IO, IOB1, BIOES, BILOU, none.",
        scheme="IOBES",
    ),
    "no answers of SQuAD 1.1": _run(
        "span",
        "--null_score_diff_threshold goes with --version_2_with_negative,",
        null_score_diff_threshold="0",
    ),
    "threshold a word": _run(
        "span",
        "--null_score_diff_threshold must be a number or auto. Received:",
        version_2_with_negative="true",
        null_score_diff_threshold="high",
    ),
    "threshold inf": _run(
        "span",
        "--null_score_diff_threshold must be a number or auto. Received:",
        version_2_with_negative="true",
        null_score_diff_threshold="inf",
    ),
    "threshold never tuned": _run(
        "span_auto",
        "--null_score_diff_threshold=auto needs questions with answers:",
    ),
    "no room for the context": _run(
        "span",
        "max_seq_length must leave room for the context: be more than",
        max_query_length="13",
    ),
    "n_best 0": _run(
        "span",
        "--n_best_size must be a whole number, at least 1. Received:",
        n_best_size="0",
    ),
    "top_k of more than all": _model(
        "model",
        "`top_k` must be at least 1 and at most the number of pieces, 44.",
        top_k="45",
    ),
    "layers that are not there": _model(
        "model",
        "features=concat_last_four needs a model of at least 4 layers.",
        head="encoder",
        features="concat_last_four",
    ),
    "unknown layers": _model(
        "model",
        "--features must be one of embeddings, second_to_last, last,",
        head="encoder",
        features="layers",
    ),
    # ---- Output
    "output empty": _out(
        "", "--export_dir is empty. Is a variable of the shell not set? Give"
    ),
    "output is the run": _out(
        "{data}/run",
        "--export_dir would be written over what --model_dir reads:",
    ),
    "output is the run, overwriting": _out(
        "{data}/run",
        "--export_dir would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output holds the run": _out(
        "{data}",
        "--export_dir would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is the root": _out(
        "/",
        "--export_dir would be written over what --model_dir reads:",
        overwrite="true",
    ),
    "output is the run by ..": _out(
        "{data}/model/../run",
        "--export_dir would be written over what --model_dir reads:",
    ),
    "output is the run by a link": _out(
        "{data}/linked",
        "--export_dir would be written over what --model_dir reads:",
    ),
    "output is the model": _model(
        "model",
        "--export_dir would be written over what --init_checkpoint reads:",
        export_dir="{data}/model",
        overwrite="true",
    ),
    "output is the vocabulary": _out(
        "{data}/notes",
        "--export_dir would be written over what --vocab_file reads:",
        vocab_file="{data}/notes/vocab.txt",
        overwrite="true",
    ),
    "output is there": _out(
        "{data}/exported",
        "{data}/exported holds saved_model.pb, and must be new or empty:",
    ),
    "output is of others": _out(
        "{data}/notes",
        "{data}/notes holds vocab.txt, and must be new or empty: choose",
    ),
    "output is of others, overwriting": _out(
        "{data}/notes",
        "{data}/notes holds vocab.txt, and must be new or empty: choose",
        overwrite="true",
    ),
    "output is a SavedModel and more": _out(
        "{data}/more",
        "{data}/more holds warmup.txt, and must be new or empty: choose",
        overwrite="true",
    ),
    "output is a file": _out(
        "{data}/notes.txt",
        "--export_dir must be a new folder, and this is a file. Received:",
        overwrite="true",
    ),
    "output below a file": _out(
        "{data}/notes.txt/1",
        "--export_dir can't be made: {data}/notes.txt is no folder.",
    ),
    "output dangles": _out(
        "{data}/dangling",
        "--export_dir can't be made: {data}/dangling is a link to what is",
    ),
    "output of an unknown file system": _out(
        "s4://bucket/1",
        "There is no file system s4:// here. Give a local path, or one of",
    ),
    "output's name too long": _out(
        "{out}/" + "x" * 260,
        "--export_dir can't be made: a name has at most 251 bytes there.",
    ),
    "output of two lines": _out(
        "{out}/a\nb",
        "--export_dir holds a line end, which flags.txt can't keep.",
    ),
    # ---- Run
    "run empty": _run(
        "",
        "--model_dir is empty. Is a variable of the shell not set? Give a",
        model_dir="",
    ),
    "run is not there": _run(
        "none", "There is no such folder. --model_dir is the --output_dir of a"
    ),
    "run is a file": _run(
        "notes.txt",
        "This is a file. --model_dir is the --output_dir of a training; a",
    ),
    "run has no weights": _run(
        "runs/untrained",
        "This folder holds no trained weights (model.ckpt-STEP.index): it",
    ),
    **{
        f"run: {name}": _run(f"runs/{name}", line)
        for name, line in _RUNS.items()
    },
    "config of another": matrix.Case(
        {"bert_config_file": "{data}/runs/config_heads/bert_config.json"},
        "bert_config.json: `hidden_size` must be a multiple of",
    ),
    "vocabulary of another": matrix.Case(
        {"vocab_file": "{data}/runs/vocab_long/vocab.txt"},
        "{data}/runs/vocab_long/vocab.txt is not the vocabulary of",
    ),
    "vocabulary is not there": matrix.Case(
        {"vocab_file": "{data}/none"},
        "There is no such file. Received: vocab_file={data}/none",
    ),
    "vocabulary is a folder": matrix.Case(
        {"vocab_file": "{data}/model"},
        "This is a folder: give a file. Received: vocab_file={data}/model",
    ),
    "uncased vocabulary": matrix.Case(
        {"do_lower_case": "false"},
        "{data}/run/vocab.txt is uncased: none of its 31 pieces with",
    ),
    # ---- Other models
    "model empty": _model(
        "",
        "--init_checkpoint is empty. Is a variable of the shell not set?",
        init_checkpoint="",
    ),
    "model is not there": _model(
        "none", "There is no checkpoint {data}/none: {data}/none.index does not"
    ),
    "model of the Hub": _model(
        "",
        "There is no folder bert-base-uncased here. A Hugging Face model",
        init_checkpoint="bert-base-uncased",
    ),
    **{
        f"model: {name}": _model(f"models/{name}", line)
        for name, line in _MODELS.items()
    },
}

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/1."),
    "an odd name": matrix.Case({"export_dir": "{out}/é 博 %s/"}, "博 %s"),
    "a C locale": matrix.Case(
        {"export_dir": "{out}/é"}, "é", environment={"LC_ALL": "C"}
    ),
    "a score": matrix.Case({"model_dir": "{data}/score"}, "Wrote"),
    "the labels of its run": matrix.Case({"labels": "no,yes"}, "Wrote"),
    "a tagger of other names": matrix.Case(
        {"model_dir": "{data}/tagger", "scheme": "BILOU"}, "Wrote"
    ),
    "words that are masked": matrix.Case(
        {"model_dir": None, "init_checkpoint": "{data}/model"},
        "was pre-trained: filling masked words.",
    ),
}


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    trained.write(folder)
    tiny_files.write_model(folder / "model")
    (folder / "models").mkdir()
    bad_models.write(folder / "models", folder / "model")
    for name in ("exported", "more"):
        (folder / name / "variables").mkdir(parents=True)
        (folder / name / "saved_model.pb").write_bytes(b"x")
    (folder / "more" / "warmup.txt").write_bytes(b"mine")
    (folder / "notes").mkdir()
    shutil.copy(folder / "run" / "vocab.txt", folder / "notes")
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "linked").symlink_to("run")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    build(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


@pytest.mark.parametrize("name", RIGHT)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_works(SCRIPT, RIGHT[name], data, tmp_path)


def test_a_folder_that_is_replaced(data, tmp_path):
    """By a whole one, or not at all."""
    out = tmp_path / "out"
    shutil.copytree(data / "exported", out / "1")
    bad = {"model_dir": "{data}/runs/nan", "overwrite": "true"}
    matrix.check(SCRIPT, matrix.Case(bad, "or no numbers"), data, tmp_path)
    good = matrix.Case({"overwrite": "true"}, "Wrote {out}/1.")
    matrix.check_works(SCRIPT, good, data, tmp_path)
    assert (out / "1" / "assets" / "export.json").exists()
    assert [path.name for path in out.iterdir()] == ["1"]


def test_another_process_writes_it(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    case = matrix.Case({}, f"{{out}}/1 is in use: process {os.getpid()}")
    with run_lock.hold(out, "1.lock", "writes", of=str(out / "1")):
        matrix.check(SCRIPT, case, data, tmp_path)


def test_too_small_a_disk(data, tmp_path):
    with small_disks.mounted(tmp_path / "disk", 64):
        case = matrix.Case(
            {"export_dir": f"{tmp_path}/disk/1"}, "No space left on device"
        )
        matrix.check(SCRIPT, case, data, tmp_path)
