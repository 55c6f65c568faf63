"""Wrong flags, models and outputs of convert_checkpoint.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.converting.inputs import (
    CONFIG,
    FOREIGN,
    MODELS,
    SCRIPT,
    SHORT,
    flags,
    input_of,
    model,
    new,
    output,
    over_input,
)

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing given": matrix.Case(
        dict.fromkeys(SCRIPT.good),
        "--output_format (The format to write), --output_path (The new",
    ),
    "unknown format": flags(
        "--output_format must be one of tf1, hf, keras_hub. Received:",
        output_format="torch",
    ),
    "unknown head": flags("next_piece. Received: head=lm", head="lm"),
    "a head that is not there": flags(
        "has no span head: cls/squad/output_bias, cls/squad/output_weights",
        head="span",
    ),
    "casing perhaps": flags(
        "--do_lower_case must be true or false. Received: do_lower_case=maybe",
        do_lower_case="maybe",
    ),
    "casing of an uncased model": flags(
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
        do_lower_case="false",
    ),
    "casing of a cased model": model(
        "models/vocab_cased",
        "bert_model.ckpt is cased: lower-casing and",
        do_lower_case="true",
    ),
    "a boolean of 2": flags(
        "--strip_optimizer must be true or false. Received: strip_optimizer=2",
        strip_optimizer="2",
    ),
    "unknown flag": flags(
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
    "model and output wrong": model(
        "none",
        "--output_path must be a new folder, and this is a file. Received:",
        output_path="{data}/text.txt",
    ),
    # ---- Labels
    "too few labels": model(
        "classifier",
        "has 3 classes: give a name for each by --labels, none empty and",
        labels="a,b",
    ),
    "a label twice": model(
        "classifier", "none twice. Received: labels=a,a,b", labels="a,a,b"
    ),
    "a label empty": model(
        "classifier", "none twice. Received: labels=a,,b", labels="a,,b"
    ),
    "labels empty": model(
        "classifier",
        "--labels must be given or left out, and it is empty. Is",
        labels="",
    ),
    "labels in two lines": model(
        "classifier",
        "--labels must be texts with commas between, in one line",
        labels="a,b\nc,d",
    ),
    "labels of no classifier": flags(
        "has no classes: its head is pretraining. Leave out --labels.",
        labels="a,b",
    ),
    "labels of the encoder": model(
        "classifier",
        "has no classes: its head is encoder. Leave out --labels",
        labels="a,b,c",
        head="encoder",
    ),
    # ---- The generator
    "generator of BERT": flags(
        "is of no family that is pre-trained with a generator: leave out --g",
        generator="true",
    ),
    "generator with a head": flags(
        "--head goes without --generator",
        generator="true",
        head="masked_lm",
    ),
    # ---- Layers
    "layers empty": flags(
        "--layers must be given or left out, and it is empty. Is a variable",
        layers="",
    ),
    "layers of letters": flags(
        "--layers takes whole numbers with commas between, such as 0,2,4.",
        layers="0,x",
    ),
    "layers from the end": flags(
        "--layers takes whole numbers with commas between, such as 0,2,4.",
        layers="-1",
    ),
    "a layer left empty": flags(
        "--layers takes whole numbers with commas between, such as 0,2,4.",
        layers="0,,1",
    ),
    "layers beyond the last": flags(
        "are numbers from 0 to 1, in ascending order, each once. Received: l",
        layers="0,2",
    ),
    "a layer twice": flags("each once. Received: layers=0,0", layers="0,0"),
    "layers in descending order": flags(
        "ascending order, each once. Received: layers=1,0", layers="1,0"
    ),
    "layers that share weights": model(
        "shared_layers",
        "share their weights, so none can be taken out. Lower `num_hidden_lay",
        layers="0,1",
    ),
    # ---- The name of the model
    "name empty": input_of(
        "", "--input_checkpoint is empty. Is a variable of the shell not set?"
    ),
    "folder is not there": model(
        "none", "There is no checkpoint {data}/none: {data}/none.index does not"
    ),
    "prefix is not there": model(
        "none/x.meta", "{data}/none/x.index does not exist. A checkpoint is"
    ),
    "a link to nothing": model(
        "dangling", "{data}/dangling is a link to what is not there: bring"
    ),
    "index is a link to nothing": model(
        "links/x", "{data}/links/x.index is a link to what is not there: bring"
    ),
    "a text": model(
        "text.txt", "The file {data}/text.txt is no checkpoint. Give the"
    ),
    "weights that are not there": model(
        "model/model.safetensors", "safetensors. Give the folder of the model."
    ),
    "a pipe": model("pipe", "The file {data}/pipe is no checkpoint. Give the"),
    "name of the Hub": input_of(
        "google-bert/bert-base-uncased",
        "Names of the Hub are not downloaded; `hf download NAME --local-dir",
    ),
    "address of the Hub": input_of(
        "https://huggingface.co/bert-base-uncased",
        "There is no folder https://huggingface.co/bert-base-uncased here.",
    ),
    "unknown preset": input_of(
        "bert_small_en",
        "nor a KerasHub preset of BERT of that name, such as bert_tiny_en_unc",
    ),
    "unknown file system of the model": input_of(
        "foo://x/y", "TensorFlow has no file system foo:// here. Give a local"
    ),
    # ---- Models
    **{
        f"model {name}": model(f"models/{name}", line)
        for name, line in MODELS.items()
    },
    **{
        f"model {name}": model(f"foreign/{name}", line)
        for name, line in FOREIGN.items()
    },
    # ---- Config and vocabulary
    "config is a folder": flags(
        "This is a folder: give a file. Received: bert_config_file={data}/mod",
        bert_config_file="{data}/model",
    ),
    "config is a text": flags(
        "{data}/text.txt is not JSON: Expecting value: line 1 column 1 (char",
        bert_config_file="{data}/text.txt",
    ),
    "config is a pipe": flags(
        "which a pipe or a device can't be: write what it gives to a file.",
        bert_config_file="{data}/pipe",
    ),
    "config of another": flags(
        "num_hidden_layers is 3 there and 2 in the checkpoint's config. Leave",
        bert_config_file="{data}/models/config_deep/bert_config.json",
    ),
    "config of another for a bare checkpoint": model(
        "bare",
        "are not those of {data}/models/config_wide/bert_config.json: bert/e",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    "no config for a bare checkpoint": model(
        "bare", "Received: {data}/bare/bert_model.ckpt, which has none."
    ),
    "vocabulary is not there": flags(
        "There is no such file. Received: vocab_file={data}/none",
        vocab_file="{data}/none",
    ),
    "vocabulary is compressed": flags(
        "vocab.txt.gz can't be read: it is compressed (gzip). Unpack it.",
        vocab_file="{data}/vocab.txt.gz",
    ),
    "vocabulary of fewer pieces": flags(
        "it has 43 pieces, and the checkpoint's has 44. Leave out --vocab_file",
        vocab_file=SHORT,
    ),
    "vocabulary of other pieces": flags(
        "line 6 is '##ing', and the checkpoint's is 'the'. Leave out --vocab",
        vocab_file="{data}/turned.txt",
    ),
    "short vocabulary for a bare checkpoint": model(
        "bare",
        "does not belong to this BERT config: it has 43 pieces, the config",
        bert_config_file=CONFIG,
        vocab_file=SHORT,
    ),
    # ---- The new vocabulary
    "new is empty": new(
        "models/vocab_empty/vocab.txt",
        "The new vocabulary is not a BERT vocabulary: it is empty. Give the",
    ),
    "new lacks [UNK]": new(
        "models/vocab_no_unk/vocab.txt",
        "it lacks the piece '[UNK]', which stands for unknown words. Give the",
    ),
    "new lacks [CLS]": new(
        "models/vocab_no_cls/vocab.txt",
        "lacks the piece '[CLS]', which the model reads beside every text.",
        output_format="tf1",
    ),
    "new is cased": new(
        "models/vocab_cased/vocab.txt",
        "vocab.txt is cased: lower-casing and accent stripping change 31 of",
    ),
    "new without the old": new(
        "turned.txt",
        "must be known to give it another vocabulary: give --vocab_file and",
        input_checkpoint="{data}/bare",
        bert_config_file=CONFIG,
    ),
    # ---- Output
    "output empty": output(
        "", "--output_path is empty. Is a variable of the shell not set? Give"
    ),
    "output is the model": output(
        "{data}/model",
        "--output_path would be written over what --input_checkpoint reads:",
    ),
    "output is the model by its prefix": over_input(
        "{data}/model",
        "input_checkpoint",
        input_checkpoint="{data}/model/bert_model.ckpt",
    ),
    "output is the model by a link": over_input(
        "{data}/model_link", "input_checkpoint"
    ),
    "output is a link's model": over_input(
        "{data}/model",
        "input_checkpoint",
        input_checkpoint="{data}/model_link",
    ),
    "output is the model by ..": over_input(
        "{data}/models/../model", "input_checkpoint"
    ),
    "output is the model by .. in what is not there": over_input(
        "{data}/none/../model", "input_checkpoint"
    ),
    "output holds the config": over_input(
        "{data}/model",
        "bert_config_file",
        input_checkpoint="{data}/bare",
        bert_config_file=CONFIG,
    ),
    "output holds the new vocabulary": over_input(
        "{data}/other",
        "new_vocab_file",
        new_vocab_file="{data}/other/vocab.txt",
    ),
    "output holds all": over_input("{data}", "input_checkpoint"),
    "output is the root": output(
        "/", "--output_path would be written over what --input_checkpoint read"
    ),
    "output is another model": output(
        "{data}/classifier",
        "must be new or empty: choose another --output_path or replace it by",
    ),
    "output holds what is not ours, overwriting": output(
        "{data}/foreign_files",
        "holds thesis.txt, and must be new or empty: choose another --output_p",
        overwrite="true",
    ),
    "output is a run": output(
        "{data}/run",
        "{data}/run holds flags.txt, and must be new or empty",
        overwrite="true",
    ),
    "output is a file": output(
        "{data}/text.txt",
        "--output_path must be a new folder, and this is a file. Received:",
        overwrite="true",
    ),
    "output below a file": output(
        "{data}/text.txt/x",
        "--output_path can't be made: {data}/text.txt is no folder. Received:",
    ),
    "output is a link to nothing": output(
        "{data}/dangling", "{data}/dangling is a link to what is not there. Re"
    ),
    "output by .. in what is not there": output(
        "{data}/none/../run",
        "{data}/run holds flags.txt, and must be new or empty",
    ),
    "output in two lines": output(
        "{out}/x\ny", "--output_path holds a line end, which flags.txt can't"
    ),
    "output of a long name": output(
        "{out}/" + 252 * "x", "a name has at most 251 bytes there. Choose a sh"
    ),
    "output is in use": output(
        "{data}/places/held", "{data}/places/held is in use: process "
    ),
    "output in /proc": output(
        "/proc/x", "/proc can't be worked in: its file x.lock, which keeps"
    ),
    "unknown file system of the output": output(
        "foo://x/y", "There is no file system foo:// here. Give a local path,"
    ),
}
