"""Wrong flags, inputs and outputs of extract_features.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.extracting.inputs import export, input_of, output

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to write": matrix.Case(
        {"input_file": None, "output_file": None},
        "Give --output_file, --export_dir or both.",
    ),
    "input without output": matrix.Case(
        {"output_file": None}, "Give --output_file, --export_dir or both."
    ),
    "output without input": matrix.Case(
        {"input_file": None},
        "--input_file and --output_file go together. Received:",
    ),
    "unknown flag": matrix.Case(
        {"layer": "-1"},
        "There is no flag --layer. Did you mean --layers? python",
    ),
    "master": matrix.Case(
        {"master": "grpc://x"},
        "--master belonged to TF1 sessions. Give the address of a TPU as",
    ),
    "one-hot embeddings": matrix.Case(
        {"use_one_hot_embeddings": "true"},
        "--use_one_hot_embeddings was for TPUs in TF1. Leave it out: TPUs",
    ),
    "layers of letters": matrix.Case(
        {"layers": "-1,x"},
        "--layers takes whole numbers with commas between. Received:",
    ),
    "layers of halves": matrix.Case(
        {"layers": "-1.5"},
        "--layers takes whole numbers with commas between. Received:",
    ),
    "no layers": matrix.Case(
        {"layers": ""},
        "--layers must be given or left out, and it is empty. Is a variable",
    ),
    "layer that is not there": matrix.Case(
        {"layers": "-3"},
        "The model's layers are numbered 0 to 1, or -2 to -1 from the end.",
    ),
    "layers of another choice": matrix.Case(
        {"features": "last", "layers": "-1"},
        "--layers goes with --features=layers: leave it out. Received:",
    ),
    "a choice of four layers": matrix.Case(
        {"features": "concat_last_four", "layers": None},
        "features=concat_last_four needs a model of at least 4 layers.",
    ),
    "weights of another choice": matrix.Case(
        {"layer_weights": "1,1,1,1"},
        "--layer_weights goes with --features=weighted_sum_last_four: leave",
    ),
    "three weights": matrix.Case(
        {
            "features": "weighted_sum_last_four",
            "layers": None,
            "layer_weights": "1,1,1",
        },
        "`layer_weights` are four, and go with",
    ),
    "a weight that is no number": matrix.Case(
        {
            "features": "weighted_sum_last_four",
            "layers": None,
            "layer_weights": "1,1,1,nan",
        },
        "--layer_weights takes numbers with commas between. Received:",
    ),
    "unknown choice": matrix.Case(
        {"features": "first", "layers": None},
        "--features must be one of layers, embeddings, second_to_last, last,",
    ),
    "unknown unit": matrix.Case(
        {"unit": "line"},
        "--unit must be one of token, word, cls, mean. Received: unit=line",
    ),
    "length 3": matrix.Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4. Received:",
    ),
    "length 33": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions for: lower",
    ),
    "batch 0": matrix.Case(
        {"batch_size": "0"},
        "--batch_size must be a whole number, at least 1. Received:",
    ),
    "window -1": matrix.Case(
        {"sort_window": "-1"},
        "--sort_window must be a whole number, at least 1. Received:",
    ),
    "window 2**63": matrix.Case(
        {"sort_window": str(2**63)},
        "--sort_window must be a whole number, at least 1, at most",
    ),
    "format of nothing": matrix.Case(
        {
            "input_file": None,
            "output_file": None,
            "output_format": "npy",
            "export_dir": "{out}/export",
            "unit": "mean",
        },
        "--output_format goes with --output_file: leave it out. Received:",
    ),
    "unknown format": matrix.Case(
        {"output_format": "csv"},
        "--output_format must be one of jsonl, npy, parquet, tfrecord.",
    ),
    "words in a SavedModel": export(
        "{out}/export",
        "A SavedModel gives vectors of tokens or of texts, not of words.",
        unit="word",
    ),
    # ---- Input
    "a CSV file": input_of(
        "lines.CSV", "line of a file of csv would be a text as it is: write"
    ),
    "JSON lines": input_of(
        "lines.jsonl", "line of a file of jsonl would be a text as it is: wri"
    ),
    "another library's vectors": output(
        "{out}/x.NPZ", "No file of .npz is written: give a name that ends in"
    ),
    "name of two lines": output(
        "{out}/a\nb.npy",
        "--output_file holds a line end, which flags.txt can't keep. Rename",
    ),
    "everything wrong": matrix.Case(
        {"input_file": "{data}/none", "layers": "x", "unit": "word"},
        "There is no such file. Received: input_file={data}/none",
    ),
    "input empty": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not set? Give a",
    ),
    "input is not there": input_of(
        "none.txt",
        "There is no such file. Received: input_file={data}/none.txt",
    ),
    "input is a folder": input_of(
        "model",
        "This is a folder: give a file. Received: input_file={data}/model",
    ),
    "input dangles": input_of(
        "dangling",
        "There is no such file. Received: input_file={data}/dangling",
    ),
    "empty file": input_of(
        "empty.txt", "{data}/empty.txt has no lines. Expected a text on each."
    ),
    "Latin-1": input_of(
        "latin_1.txt",
        "{data}/latin_1.txt, line 2: the text is not UTF-8 (invalid",
    ),
    "UTF-16": input_of(
        "utf_16.txt",
        "{data}/utf_16.txt can't be read: it is UTF-16, not UTF-8. Convert",
    ),
    "binary": input_of(
        "binary.txt",
        "{data}/binary.txt, line 1: the text is not UTF-8 (invalid start",
    ),
    "compressed": input_of(
        "lines.txt.gz",
        "{data}/lines.txt.gz can't be read: it is compressed (gzip). Unpack",
    ),
    "git-lfs": input_of(
        "lfs.txt",
        "{data}/lfs.txt can't be read: it is a pointer of git-lfs, not the",
    ),
    "a glob": input_of(
        "*.txt", "There is no such file. Received: input_file={data}/*.txt"
    ),
    "two files": matrix.Case(
        {"input_file": "{data}/lines.txt,{data}/lines.txt"},
        "There is no such file. Received:",
    ),
    "a bad line late": input_of(
        "late.txt",
        "{data}/late.txt, line 601: the text is not UTF-8 (invalid start",
    ),
    # ---- Output
    "output empty": output(
        "", "--output_file is empty. Is a variable of the shell not set? Give a"
    ),
    "output is the input": output(
        "{data}/lines.txt",
        "--output_file would be written over what --input_file reads: choose",
    ),
    "output is the input, overwriting": output(
        "{data}/lines.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the input by ..": output(
        "{data}/model/../lines.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the input by a hard link": output(
        "{data}/hard.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the input by a link": output(
        "{data}/link.txt",
        "--output_file would be written over what --input_file reads: choose",
        overwrite="true",
    ),
    "output is the vocabulary": output(
        "{data}/model/vocab.txt",
        "--output_file would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "output is the checkpoint": output(
        "{data}/model/bert_model.ckpt.index",
        "--output_file would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "output is the config": output(
        "{data}/other/bert_config.json",
        "--output_file would be written over what --bert_config_file reads:",
        bert_config_file="{data}/other/bert_config.json",
        overwrite="true",
    ),
    "output is there": output(
        "{data}/notes.txt",
        "{data}/notes.txt exists. Choose another --output_file, or replace",
    ),
    "output is a folder": output(
        "{data}/other",
        "--output_file must name a file, and this is a folder. Received:",
    ),
    "output below a file": output(
        "{data}/notes.txt/x.npy",
        "--output_file can't be made: {data}/notes.txt is no folder.",
    ),
    "output dangles": output(
        "{data}/dangling",
        "--output_file can't be made: {data}/dangling is a link to what is",
    ),
    "offsets are there": output(
        "{data}/mine.npy",
        "{data}/mine.npy.offsets.npy exists. Choose another --output_file,",
    ),
    "an unknown file system": output(
        "s4://bucket/x.jsonl",
        "There is no file system s4:// here. Give a local path, or one of",
    ),
    "folder is there": export(
        "{data}/other",
        "{data}/other holds bert_config.json, and must be new or empty:",
    ),
    "folder is there, overwriting": export(
        "{data}/other",
        "{data}/other holds bert_config.json, and must be new or empty:",
        overwrite="true",
    ),
    "folder is a file": export(
        "{data}/notes.txt",
        "--export_dir must be a new folder, and this is a file. Received:",
    ),
    "folder is the model": export(
        "{data}/model",
        "--export_dir would be written over what --init_checkpoint reads:",
        overwrite="true",
    ),
    "folder is the root": export(
        "/", "--export_dir would be written over what --init_checkpoint reads:"
    ),
    "folder is the output": export(
        "{out}/vectors.jsonl",
        "--output_file and --export_dir would be written over one another:",
    ),
    "folder of the output": export(
        "{out}",
        "--output_file and --export_dir would be written over one another:",
    ),
    "folder below the output": export(
        "{out}/vectors.jsonl/x",
        "--output_file and --export_dir would be written over one another:",
    ),
}
