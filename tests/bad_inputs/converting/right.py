"""What looks wrong to convert_checkpoint.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.converting.inputs import CONFIG, flags, model, new, output

# What looks wrong, and rightly is not.
GOOD: dict[str, matrix.Case] = {
    "odd names": model(
        "mödel ☃", "Wrote 46 weights to {out}/é x,", output_path="{out}/é x"
    ),
    "a slash behind": output("{out}/x/", "Wrote 46 weights to {out}/x/,"),
    "a link to another model": output(
        "{data}/replaced_link", "Wrote 46 weights to ", overwrite="true"
    ),
    "a file of the checkpoint": model(
        "model/bert_model.ckpt.data-00000-of-00001", "Wrote 46 weights"
    ),
    "a vocabulary of Windows": model(
        "windows", "the byte-order mark left out and the line ends made LF."
    ),
    "no vocabulary": model(
        "models/no_vocab", "so there is no tokenizer in the folder: give --voc"
    ),
    "cased by its looks": model("models/vocab_cased", "Wrote 46 weights"),
    "casing contradicted": model(
        "foreign/hf/says_cased", "says do_lower_case=False, which is kept. But"
    ),
    "casing that is lost": model(
        "foreign/hf/says_cased",
        "does not keep how its text is read: give scripts --do_lower_case=fal",
        output_format="tf1",
    ),
    "casing of no vocabulary": model(
        "bare",
        "Not used, as the vocabulary is not known: --do_lower_case.",
        bert_config_file=CONFIG,
        do_lower_case="true",
    ),
    "casing for the original": flags(
        "--new_vocab_file: --do_lower_case.",
        do_lower_case="true",
        output_format="tf1",
    ),
    "stripping for Hugging Face": flags(
        "Not used, as they go with --output_format=tf1: --strip_optimizer.",
        strip_optimizer="true",
    ),
    "a new vocabulary of all new pieces": new(
        "russian.txt", "3 are new, of which 3 can't be spelt by the old ones"
    ),
    "the same vocabulary": new("model/vocab.txt", "0 are new, of which 0"),
    "labels for KerasHub": model(
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
