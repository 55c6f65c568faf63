"""Wrong flags, models, data and outputs of shrink_model.py; and right ones."""

from tests.bad_inputs import matrix
from tests.bad_inputs.shrinking.inputs import flags, model, output, table

_NO_FILES: dict[str, str | None] = {"train_file": None}

CASES: dict[str, matrix.Case] = {
    # ---- What to keep
    "nothing given": matrix.Case(
        dict.fromkeys(("init_checkpoint", "train_file", "output_path")),
        "Give --init_checkpoint (The fine-tuned classifier, of any format), -",
    ),
    "nothing to keep": flags(
        "Give what to keep: --num_hidden_layers, and --intermediate_size or -",
        num_hidden_layers=None,
    ),
    "no layers": flags(
        "--num_hidden_layers must be a whole number, at least 1. Received: n",
        num_hidden_layers="0",
    ),
    "half a layer": flags(
        "--num_hidden_layers must be a whole number, at least 1. Received: n",
        num_hidden_layers="0.5",
    ),
    "more layers than there are": flags(
        "--num_hidden_layers is more than {data}/model/bert_model.ckpt has, 2",
        num_hidden_layers="3",
    ),
    "no units": flags(
        "--intermediate_size must be a whole number, at least 1. Received: i",
        intermediate_size="0",
    ),
    "more units than there are": flags(
        "--intermediate_size is more than {data}/model/bert_model.ckpt has, 16",
        intermediate_size="17",
    ),
    "a share of nothing": flags(
        "--keep_intermediate must be a number, above 0 and at most 1. Receiv",
        keep_intermediate="0",
    ),
    "a share of more than all": flags(
        "--keep_intermediate must be a number, above 0 and at most 1. Receiv",
        keep_intermediate="1.5",
    ),
    "units and a share of them": flags(
        "--intermediate_size goes without --keep_intermediate: leave it out.",
        intermediate_size="4",
        keep_intermediate="0.5",
    ),
    "layers that share weights": model(
        "shared",
        "share their weights, so none can be taken out. Lower `num_hidden_lay",
    ),
    "heads": flags(
        "There is no flag --num_attention_heads. ", num_attention_heads="1"
    ),
    # ---- How to measure
    "no examples": flags(
        "--max_examples must be a whole number, at least 1. Received: max_ex",
        max_examples="0",
    ),
    "a test set to measure on": flags(
        "--measure_on must be one of train, dev. Received: measure_on=test",
        measure_on="test",
    ),
    "no dev set": flags(
        "The task custom has no dev split. Expected one of train. Give --dev_",
        measure_on="dev",
    ),
    "no training set": flags(
        "The task custom has no train split. Expected one of dev. Give --trai",
        train_file=None,
        dev_file="{data}/train.tsv",
    ),
    "a length beyond the positions": flags(
        "`max_seq_length` is more than the model has positions for: lower it.",
        max_seq_length="33",
    ),
    "batches of none": flags(
        "--batch_size must be a whole number, at least 1. Received: batch_si",
        batch_size="0",
    ),
    "float16": flags(
        "--dtype must be one of float32, bfloat16. Received: dtype=float16",
        dtype="float16",
    ),
    # ---- Data
    "no data": flags("Give either --task_name or files of your", **_NO_FILES),
    "task and files": flags(
        "Give either --task_name or files of your own (--train_file, --dev_fi",
        task_name="MRPC",
    ),
    "unknown task": flags("SNLI", task_name="SNLI", **_NO_FILES),
    "table is not there": table("none.tsv", "no such file"),
    "table is empty": table("empty.tsv", "empty"),
    "table of Latin-1": table("latin_1.tsv", "the text is not UTF-8"),
    "no label column": table("no_label.tsv", "label"),
    "other labels": table(
        "three.tsv",
        "was fine-tuned with the labels no, yes. Give the same, in this order",
    ),
    "scores of a classifier": table(
        "scores.tsv",
        "was fine-tuned with the labels no, yes. Give the same, in this order",
        regression="true",
    ),
    "classes of a score": model(
        "score", "was fine-tuned with 1 classes. Give the same, in this order"
    ),
    "weights of a class that is not there": flags(
        "perhaps", class_weights="perhaps=2"
    ),
    # ---- Models
    "no model": flags(
        "Give --init_checkpoint (The fine-tuned classifier, of any format).",
        init_checkpoint=None,
    ),
    "model is not there": model("none", "There is no checkpoint {data}/none:"),
    "a model that is not fine-tuned": model(
        "pretrained", "is not fine-tuned: it has no classification head (outp"
    ),
    **{
        f"model {name}": model(f"models/{name}", line)
        for name, line in {
            "index_only": "has an index but no data: {data}/models/index_only",
            "cut_data": "corrupt or not all there: Read less bytes than reques",
            "saved_model": "is a SavedModel, which can be served (run_predict",
            "no_config": "is not known: give --bert_config_file, or a checkpo",
            "no_vocab": "The vocabulary is not known: give --vocab_file, or a",
            "config_deep": "the tensors are not those of the config beside th",
            "vocab_short": "it has 43 pieces, the config says vocab_size=44. ",
            "labels_twice": "labels.txt must name the classes, one a line: 'n",
        }.items()
    },
    "a cased model's flag": flags(
        "The vocabulary of {data}/model/bert_model.ckpt is uncased: none of",
        do_lower_case="false",
    ),
    # ---- Output
    "no output": flags(
        "Give --output_path (The new folder to write).", output_path=None
    ),
    "output is a file": output(
        "{data}/notes.txt",
        "--output_path must be a new folder, and this is a file. Received:",
    ),
    "output holds a thesis": output(
        "{data}/other", "holds thesis.txt, and must be new or empty:"
    ),
    "output holds a thesis, overwriting": output(
        "{data}/other",
        "holds thesis.txt, and must be new or empty:",
        overwrite="true",
    ),
    "output is the model": output(
        "{data}/model",
        "--output_path would be written over what --init_checkpoint reads: c",
        overwrite="true",
    ),
}

RIGHT: dict[str, matrix.Case] = {
    "layers": matrix.Case({}, "1 of 2 layers, 16 of 16 units,"),
    "units": flags(
        "2 of 2 layers, 4 of 16 units,",
        num_hidden_layers=None,
        intermediate_size="4",
    ),
    "a share of them": flags(
        "1 of 2 layers, 8 of 16 units,", keep_intermediate="0.5"
    ),
    "a share of less than one": flags(
        "1 of 2 layers, 1 of 16 units,", keep_intermediate="0.001"
    ),
    "all there is": flags(
        "2 of 2 layers, 16 of 16 units,",
        num_hidden_layers="2",
        intermediate_size="16",
    ),
    "units of layers that share weights": model(
        "shared",
        "12 of 12 layers, 8 of 16 units,",
        num_hidden_layers=None,
        keep_intermediate="0.5",
    ),
    "a test set that is not read": flags(
        "Not read, but train: --test_file.", test_file="{data}/train.tsv"
    ),
    "some of the examples": flags(
        "Measuring on 2 examples of train.", max_examples="2"
    ),
}
