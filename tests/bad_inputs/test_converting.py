"""Bad inputs of convert_checkpoint.py."""

import pathlib
from collections.abc import Iterator

from bert_tf import run_lock
from tests.bad_inputs import converted_models, matrix

import pytest

SCRIPT = matrix.Script(
    "convert_checkpoint",
    {
        "input_checkpoint": "{data}/model",
        "output_format": "hf",
        "output_path": "{out}",
    },
)
_CONFIG = "{data}/model/bert_config.json"
_SHORT = "{data}/models/vocab_short/vocab.txt"


def _flags(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of other flags."""
    return matrix.Case(flags, line)


def _input(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another model to convert."""
    return matrix.Case({"input_checkpoint": path, **flags}, line)


def _model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a model among the inputs."""
    return _input(f"{{data}}/{name}", line, **flags)


def _new(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another vocabulary to give the model."""
    return matrix.Case({"new_vocab_file": f"{{data}}/{path}", **flags}, line)


def _output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another folder to write."""
    return matrix.Case({"output_path": path, **flags}, line)


def _over_input(path: str, flag: str, **flags: str | None) -> matrix.Case:
    """Returns a case of an output that a flag reads."""
    line = f"--output_path would be written over what --{flag} reads: choose"
    return _output(path, line, overwrite="true", **flags)


# Name of a model -> words of the line; whole checkpoints and what is beside.
_MODELS = {
    "index_only": "has an index but no data: {data}/models/index_only/bert_",
    "data_only": "bert_model.ckpt.data-00000-of-00001 is there: copy its index",
    "cut_data": "corrupt or not all there: Read less bytes than requested",
    "flipped_index": "header entry): block checksum mismatch. If it was copied",
    "flipped_data": "shard 0 (512 bytes): Checksum does not match: stored",
    "lfs_index": "ckpt.index can't be read: it is a pointer of git-lfs, not",
    "lfs_data": "of-00001 can't be read: it is a pointer of git-lfs, not",
    "two": "holds several checkpoints. Name one of them: {data}/models/two/a",
    "saved_model": "is a SavedModel, which can be served (predict.py --saved",
    "albert": "bert_model.ckpt is no BERT: by its names it is ALBERT. Give",
    "tf2": "it is of TensorFlow 2's tf.train.Checkpoint, as those of Tens",
    "strangers": "bert/embeddings/LayerNorm/beta is not there; bert/embedd",
    "config_broken": "is not JSON: Expecting value: line 1 column 16 (char 15)",
    "vocab_latin_1": "vocab.txt is not UTF-8 text: invalid continuation byte",
    "hf_no_weights": "config.json: There are no weights beside it, none of mod",
    "hf_no_config": "has weights of Hugging Face but no config.json, which",
    "hf_roberta": "config.json: This is a roberta model, not BERT, and only",
    "empty_folder": "holds no checkpoint. Looked for: bert_model.ckpt.index or",
    # damaged.CONFIGS
    "no_config": "give --bert_config_file, or a checkpoint that has its config",
    "config_empty": "bert_config.json is not JSON: it is empty. Give the bert_",
    "config_cut": "is not JSON: Unterminated string starting at: line 8 colu",
    "config_lfs": "is not JSON: it is a pointer of git-lfs, not the file itse",
    "config_binary": "is not JSON: 'utf-8' codec can't decode byte 0x80 in pos",
    "config_text": "`hidden_size` must be a positive integer. Received: hidden",
    "config_nan": "`hidden_dropout_prob` must be a number, at least 0 and bel",
    "config_heads": "`hidden_size` must be a multiple of `num_attention_heads`",
    "config_act": "must be one of gelu, gelu_erf, relu, tanh, linear. Receive",
    "config_key": "unknown keys: hidden_sise (did you mean hidden_size?). What",
    "config_no_size": "The BERT config has no `vocab_size`: add the number of",
    "config_wide": "word_embeddings is [44, 8] there and [44, 16] by the conf",
    "config_deep": "bert/encoder/layer_2/attention/output/LayerNorm/beta is",
    "config_shallow": "is not in the config, which says num_hidden_layers=1;",
    # damaged.VOCABS
    "vocab_empty": "is not a BERT vocabulary: it is empty. Give the vocab.txt",
    "vocab_binary": "vocab.txt is not UTF-8 text: invalid start byte at byte 0",
    "vocab_utf_16": "is not UTF-8 text: it is UTF-16, not UTF-8. Convert it",
    "vocab_short": "it has 43 pieces, the config says vocab_size=44. Give the",
    "vocab_no_unk": "it lacks the piece '[UNK]', which stands for unknown word",
    "vocab_no_cls": "lacks the piece '[CLS]', which the model reads beside eve",
    "vocab_twice": "line 9: this piece is already on line 8. The original ta",
    "vocab_hole": "line 8: a vocabulary must not hold empty lines, but at its",
    # Below
    "config_endless": "bert/encoder/layer_2/attention/output/LayerNorm/beta is",
    "config_architecture": "`architectures` must be a list of texts, or be",
    "labels_few": "has 3 classes: give a name for each by --labels, none empt",
    "labels_twice": "labels.txt must name the classes, one a line: 'a' is the",
    "labels_empty": "labels.txt must name the classes, one a line: it is empty",
    "two_heads": "holds several heads: pretraining, span. Say which one is",
}
# Folder of Hugging Face's or KerasHub's -> words of the line.
_FOREIGN = {
    "hf/cut": "such as a download that was cut off: Error while deserializing",
    "hf/empty": "model.safetensors can't be read: it is empty. Copy or downlo",
    "hf/keras_weights": "tf_model.h5 can't be read. Download one of them, or",
    "hf/torch_code": "pytorch_model.bin can't be read, it is truncated, corru",
    "hf/index_names_none": "names model-1.safetensors, and there is no such fi",
    "hf/index_empty": "names no files of weights: `weight_map` is not there. ",
    "hf/index_list": "`weight_map` must be an object. Copy or download it agai",
    "hf/index_number": "index.json names 1, and there is no such file. Downloa",
    "hf/config_cut": "config.json is not JSON: Unterminated string starting at",
    "hf/config_lfs": "config.json can't be read: it is a pointer of git-lfs",
    "hf/activation": "gelu_python, relu, tanh, linear. Received: hidden_act='s",
    "hf/activation_list": "`hidden_act` must be a text. Copy or download it ag",
    "hf/shallow": "it says num_hidden_layers=1, and there is bert.encoder.laye",
    "hf/decoder": "`is_decoder` must be False. Received: is_decoder=True",
    "hf/classes_letters": "`id2label` must map the numbers of the classes to",
    "hf/adapter": "Merge adapters (LoRA) into the weights first; layers with",
    "hf/untied": "a model without tied weights can't be read",
    "hf/missing": "bert/encoder/layer_1/output/LayerNorm/beta is not there; b",
    "hf/int8": "holds whole numbers (int8): the model is quantized, and its",
    "hf/tokenizer_text": "tokenizer.json: `model` must be an object. Copy or",
    "hf/tokenizer_ids": "`vocab` must map the pieces to 0, 1, 2 and so on. Co",
    "hf/normalizer": "`normalizer` must be an object. Copy or download it agai",
    "hf/casing_text": "`do_lower_case` must be true or false. Copy or download",
    "hf/class_number": "`tokenizer_class` must be a text. Copy or download it",
    "keras_hub/no_weights": "is not all there: model.weights.h5 does not exist",
    "keras_hub/weights_cut": "not what its config.json says. Download it agai",
    "keras_hub/no_task_weights": "has a classification head, whose weights ar",
    "keras_hub/task_cut": "task.json is not JSON: Expecting property name enc",
    "keras_hub/gemma": "only BERT can be read, and this is another encoder. R",
}

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing given": matrix.Case(
        dict.fromkeys(SCRIPT.good),
        "--output_format (The format to write), --output_path (The new",
    ),
    "unknown format": _flags(
        "--output_format must be one of tf1, hf, keras_hub. Received:",
        output_format="torch",
    ),
    "unknown head": _flags("multiple_choice. Received: head=lm", head="lm"),
    "a head that is not there": _flags(
        "has no span head: cls/squad/output_bias, cls/squad/output_weights",
        head="span",
    ),
    "casing perhaps": _flags(
        "--do_lower_case must be true or false. Received: do_lower_case=maybe",
        do_lower_case="maybe",
    ),
    "casing of an uncased model": _flags(
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
        do_lower_case="false",
    ),
    "casing of a cased model": _model(
        "models/vocab_cased",
        "bert_model.ckpt is cased: lower-casing and",
        do_lower_case="true",
    ),
    "a boolean of 2": _flags(
        "--strip_optimizer must be true or false. Received: strip_optimizer=2",
        strip_optimizer="2",
    ),
    "unknown flag": _flags(
        "There is no flag --output_dir. Did you mean", output_dir="x"
    ),
    "an argument": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received: 'x'",
        arguments=("x",),
    ),
    "no such flagfile": matrix.Case(
        {},
        "can't be read: No such file or directory. Give a text with a flag a",
        arguments=("--flagfile={data}/none",),
    ),
    "model and output wrong": _model(
        "none",
        "--output_path must be a new folder, and this is a file. Received:",
        output_path="{data}/text.txt",
    ),
    # ---- Labels
    "too few labels": _model(
        "classifier",
        "has 3 classes: give a name for each by --labels, none empty and",
        labels="a,b",
    ),
    "a label twice": _model(
        "classifier", "none twice. Received: labels=a,a,b", labels="a,a,b"
    ),
    "a label empty": _model(
        "classifier", "none twice. Received: labels=a,,b", labels="a,,b"
    ),
    "labels empty": _model(
        "classifier",
        "--labels must be given or left out, and it is empty. Is",
        labels="",
    ),
    "labels in two lines": _model(
        "classifier",
        "--labels must be texts with commas between, in one line",
        labels="a,b\nc,d",
    ),
    "labels of no classifier": _flags(
        "has no classes: its head is pretraining. Leave out --labels.",
        labels="a,b",
    ),
    "labels of the encoder": _model(
        "classifier",
        "has no classes: its head is encoder. Leave out --labels",
        labels="a,b,c",
        head="encoder",
    ),
    # ---- The name of the model
    "name empty": _input(
        "", "--input_checkpoint is empty. Is a variable of the shell not set?"
    ),
    "folder is not there": _model(
        "none", "There is no checkpoint {data}/none: {data}/none.index does not"
    ),
    "prefix is not there": _model(
        "none/x.meta", "{data}/none/x.index does not exist. A checkpoint is"
    ),
    "a link to nothing": _model(
        "dangling", "{data}/dangling is a link to what is not there: bring"
    ),
    "index is a link to nothing": _model(
        "links/x", "{data}/links/x.index is a link to what is not there: bring"
    ),
    "a text": _model(
        "text.txt", "The file {data}/text.txt is no checkpoint. Give the"
    ),
    "weights that are not there": _model(
        "model/model.safetensors", "safetensors. Give the folder of the model."
    ),
    "a pipe": _model("pipe", "The file {data}/pipe is no checkpoint. Give the"),
    "name of the Hub": _input(
        "google-bert/bert-base-uncased",
        "Names of the Hub are not downloaded; `hf download NAME --local-dir",
    ),
    "address of the Hub": _input(
        "https://huggingface.co/bert-base-uncased",
        "There is no folder https://huggingface.co/bert-base-uncased here.",
    ),
    "unknown preset": _input(
        "bert_small_en",
        "nor a KerasHub preset of BERT of that name, such as bert_tiny_en_unc",
    ),
    "unknown file system of the model": _input(
        "foo://x/y", "TensorFlow has no file system foo:// here. Give a local"
    ),
    # ---- Models
    **{
        f"model {name}": _model(f"models/{name}", line)
        for name, line in _MODELS.items()
    },
    **{
        f"model {name}": _model(f"foreign/{name}", line)
        for name, line in _FOREIGN.items()
    },
    # ---- Config and vocabulary
    "config is a folder": _flags(
        "This is a folder: give a file. Received: bert_config_file={data}/mod",
        bert_config_file="{data}/model",
    ),
    "config is a text": _flags(
        "{data}/text.txt is not JSON: Expecting value: line 1 column 1 (char",
        bert_config_file="{data}/text.txt",
    ),
    "config is a pipe": _flags(
        "which a pipe or a device can't be: write what it gives to a file.",
        bert_config_file="{data}/pipe",
    ),
    "config of another": _flags(
        "num_hidden_layers is 3 there and 2 in the checkpoint's config. Leave",
        bert_config_file="{data}/models/config_deep/bert_config.json",
    ),
    "config of another for a bare checkpoint": _model(
        "bare",
        "are not those of {data}/models/config_wide/bert_config.json: bert/e",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    "no config for a bare checkpoint": _model(
        "bare", "Received: {data}/bare/bert_model.ckpt, which has none."
    ),
    "vocabulary is not there": _flags(
        "There is no such file. Received: vocab_file={data}/none",
        vocab_file="{data}/none",
    ),
    "vocabulary is compressed": _flags(
        "vocab.txt.gz can't be read: it is compressed (gzip). Unpack it.",
        vocab_file="{data}/vocab.txt.gz",
    ),
    "vocabulary of fewer pieces": _flags(
        "it has 43 pieces, and the checkpoint's has 44. Leave out --vocab_file",
        vocab_file=_SHORT,
    ),
    "vocabulary of other pieces": _flags(
        "line 6 is '##ing', and the checkpoint's is 'the'. Leave out --vocab",
        vocab_file="{data}/turned.txt",
    ),
    "short vocabulary for a bare checkpoint": _model(
        "bare",
        "does not belong to this BERT config: it has 43 pieces, the config",
        bert_config_file=_CONFIG,
        vocab_file=_SHORT,
    ),
    # ---- The new vocabulary
    "new is empty": _new(
        "models/vocab_empty/vocab.txt",
        "vocab.txt is not a BERT vocabulary: it is empty. Give the vocab.txt",
    ),
    "new lacks [UNK]": _new(
        "models/vocab_no_unk/vocab.txt",
        "it lacks the piece '[UNK]', which stands for unknown words. Give the",
    ),
    "new lacks [CLS]": _new(
        "models/vocab_no_cls/vocab.txt",
        "lacks the piece '[CLS]', which the model reads beside every text.",
        output_format="tf1",
    ),
    "new is cased": _new(
        "models/vocab_cased/vocab.txt",
        "vocab.txt is cased: lower-casing and accent stripping change 31 of",
    ),
    "new without the old": _new(
        "turned.txt",
        "must be known to give it another vocabulary: give --vocab_file and",
        input_checkpoint="{data}/bare",
        bert_config_file=_CONFIG,
    ),
    # ---- Output
    "output empty": _output(
        "", "--output_path is empty. Is a variable of the shell not set? Give"
    ),
    "output is the model": _output(
        "{data}/model",
        "--output_path would be written over what --input_checkpoint reads:",
    ),
    "output is the model by its prefix": _over_input(
        "{data}/model",
        "input_checkpoint",
        input_checkpoint="{data}/model/bert_model.ckpt",
    ),
    "output is the model by a link": _over_input(
        "{data}/model_link", "input_checkpoint"
    ),
    "output is a link's model": _over_input(
        "{data}/model",
        "input_checkpoint",
        input_checkpoint="{data}/model_link",
    ),
    "output is the model by ..": _over_input(
        "{data}/models/../model", "input_checkpoint"
    ),
    "output is the model by .. in what is not there": _over_input(
        "{data}/none/../model", "input_checkpoint"
    ),
    "output holds the config": _over_input(
        "{data}/model",
        "bert_config_file",
        input_checkpoint="{data}/bare",
        bert_config_file=_CONFIG,
    ),
    "output holds the new vocabulary": _over_input(
        "{data}/other",
        "new_vocab_file",
        new_vocab_file="{data}/other/vocab.txt",
    ),
    "output holds all": _over_input("{data}", "input_checkpoint"),
    "output is the root": _output(
        "/", "--output_path would be written over what --input_checkpoint read"
    ),
    "output is another model": _output(
        "{data}/classifier",
        "must be new or empty: choose another --output_path or replace it by",
    ),
    "output holds what is not ours, overwriting": _output(
        "{data}/foreign_files",
        "holds thesis.txt, and must be new or empty: choose another --output_p",
        overwrite="true",
    ),
    "output is a run": _output(
        "{data}/run",
        "{data}/run holds flags.txt, and must be new or empty",
        overwrite="true",
    ),
    "output is a file": _output(
        "{data}/text.txt",
        "--output_path must be a new folder, and this is a file. Received:",
        overwrite="true",
    ),
    "output below a file": _output(
        "{data}/text.txt/x",
        "--output_path can't be made: {data}/text.txt is no folder. Received:",
    ),
    "output is a link to nothing": _output(
        "{data}/dangling", "{data}/dangling is a link to what is not there. Re"
    ),
    "output by .. in what is not there": _output(
        "{data}/none/../run",
        "{data}/run holds flags.txt, and must be new or empty",
    ),
    "output in two lines": _output(
        "{out}/x\ny", "--output_path holds a line end, which flags.txt can't"
    ),
    "output of a long name": _output(
        "{out}/" + 252 * "x", "a name has at most 251 bytes there. Choose a sh"
    ),
    "output is in use": _output(
        "{data}/places/held", "{data}/places/held is in use: process "
    ),
    "output in /proc": _output(
        "/proc/x", "/proc can't be worked in: its file x.lock, which keeps"
    ),
    "unknown file system of the output": _output(
        "foo://x/y", "There is no file system foo:// here. Give a local path,"
    ),
}

# What looks wrong, and rightly is not.
GOOD: dict[str, matrix.Case] = {
    "odd names": _model(
        "mödel ☃", "Wrote 46 weights to {out}/é x,", output_path="{out}/é x"
    ),
    "a slash behind": _output("{out}/x/", "Wrote 46 weights to {out}/x/,"),
    "a link to another model": _output(
        "{data}/replaced_link", "Wrote 46 weights to ", overwrite="true"
    ),
    "a file of the checkpoint": _model(
        "model/bert_model.ckpt.data-00000-of-00001", "Wrote 46 weights"
    ),
    "a vocabulary of Windows": _model(
        "windows", "the byte-order mark left out and the line ends made LF."
    ),
    "no vocabulary": _model(
        "models/no_vocab", "so there is no tokenizer in the folder: give --voc"
    ),
    "cased by its looks": _model("models/vocab_cased", "Wrote 46 weights"),
    "casing contradicted": _model(
        "foreign/hf/says_cased", "says do_lower_case=False, which is kept. But"
    ),
    "casing of no vocabulary": _model(
        "bare",
        "Not used, as the vocabulary is not known: --do_lower_case.",
        bert_config_file=_CONFIG,
        do_lower_case="true",
    ),
    "casing for the original": _flags(
        "--new_vocab_file: --do_lower_case.",
        do_lower_case="true",
        output_format="tf1",
    ),
    "stripping for Hugging Face": _flags(
        "Not used, as they go with --output_format=tf1: --strip_optimizer.",
        strip_optimizer="true",
    ),
    "a new vocabulary of all new pieces": _new(
        "russian.txt", "3 are new, of which 3 can't be spelt by the old ones"
    ),
    "the same vocabulary": _new("model/vocab.txt", "0 are new, of which 0"),
    "labels for KerasHub": _model(
        "classifier",
        "does not keep the names of the classes: a, b, c.",
        labels="a,b,c",
        output_format="keras_hub",
    ),
    "odd variables": matrix.Case(
        {},
        "Wrote 46 weights",
        {"TF_CONFIG": "{{", "KERAS_BACKEND": "torch", "MPLBACKEND": "x"},
    ),
}


@pytest.fixture(scope="module")
def data(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[pathlib.Path]:
    folder = tmp_path_factory.mktemp("data")
    converted_models.write(folder)
    place = folder / "places" / "held"
    place.parent.mkdir()
    lock = run_lock.hold(place.parent, "held.lock", "writes", of=str(place))
    with lock:
        yield folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", GOOD)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_works(SCRIPT, GOOD[name], data, tmp_path)
