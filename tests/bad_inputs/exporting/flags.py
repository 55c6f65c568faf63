"""Wrong flags of export_saved_model.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.exporting.inputs import model, run

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
        "Give --export_dir, a new folder to write, or --serving_dir, that of",
    ),
    "export_dir and serving_dir": matrix.Case(
        {"serving_dir": "{out}/m"},
        "--serving_dir goes without --export_dir: leave it out. Received:",
    ),
    "serving_dir is a SavedModel": matrix.Case(
        {"export_dir": None, "serving_dir": "{data}/exported"},
        "The folder of a model's versions is needed, and this is that of a",
    ),
    "serving_dir is a file": matrix.Case(
        {"export_dir": None, "serving_dir": "{data}/notes.txt"},
        "--serving_dir must be a folder, and this is a file. Received:",
    ),
    "overwrite with versions": matrix.Case(
        {"export_dir": None, "serving_dir": "{out}/m", "overwrite": "true"},
        "--overwrite goes with --export_dir",
    ),
    "warmup_file without serving_dir": matrix.Case(
        {"warmup_file": "{data}/notes.txt"},
        "--warmup_file goes with --serving_dir",
    ),
    "warmup_file is not there": matrix.Case(
        {
            "export_dir": None,
            "serving_dir": "{out}/m",
            "warmup_file": "{data}/none",
        },
        "There is no such file. Received: warmup_file={data}/none",
    ),
    "config_dir without serving_dir": matrix.Case(
        {"config_dir": "{out}"},
        "--config_dir goes with --serving_dir",
    ),
    "unknown flag": matrix.Case(
        {"output_dir": "{out}"},
        "There is no flag --output_dir. Did you mean --export_dir? python",
    ),
    "flag of run_prediction.py": matrix.Case(
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
    "head of pre-training": run(
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
    "labels of a tagger, too few": run(
        "tagger",
        "Expected at least two labels, each once. Received: labels=O",
        labels="O",
    ),
    "labels of a tagger, swapped": run(
        "tagger",
        "{data}/tagger/model.ckpt-7 names its classes O, B-X. Leave out",
        labels="B-X,O",
    ),
    "labels twice": model(
        "alone",
        "Expected at least two labels, each once. Received: labels=a,a",
        labels="a,a",
    ),
    "label empty": model(
        "alone",
        "--labels: a label must not be empty or hold a line end.",
        labels="a,",
    ),
    "labels of a quote": matrix.Case(
        {"labels": 'a,"b'},
        "--labels must be texts with commas between, in one line; one",
    ),
    "task of three classes": model(
        "alone",
        "{data}/alone/model.ckpt-7 has 2 classes, and the task MNLI names",
        task_name="MNLI",
    ),
    "labels and a task": model(
        "alone",
        "--task_name and --labels contradict each other, as MRPC has 0,",
        task_name="MRPC",
        labels="no,yes",
    ),
    "a score and a task": model(
        "alone",
        "--task_name and --regression contradict each other, as MRPC has",
        task_name="MRPC",
        regression="true",
    ),
    "no labels": model(
        "alone", "The labels are not known. Give --labels, --task_name or"
    ),
    "classes of a score": run(
        "score",
        "{data}/score/model.ckpt-7 gives a score, and has no classes, and",
        labels="a,b",
    ),
    "unknown scheme": run(
        "tagger",
        "--scheme must be one of BIO, IO, IOB1, BIOES, BILOU, none.",
        scheme="IOBES",
    ),
    "no answers of SQuAD 1.1": run(
        "span",
        "--null_score_diff_threshold goes with --version_2_with_negative,",
        null_score_diff_threshold="0",
    ),
    "threshold a word": run(
        "span",
        "--null_score_diff_threshold must be a number or auto. Received:",
        version_2_with_negative="true",
        null_score_diff_threshold="high",
    ),
    "threshold inf": run(
        "span",
        "--null_score_diff_threshold must be a number or auto. Received:",
        version_2_with_negative="true",
        null_score_diff_threshold="inf",
    ),
    "threshold never tuned": run(
        "span_auto",
        "--null_score_diff_threshold=auto needs questions with answers:",
    ),
    "no room for the context": run(
        "span",
        "max_seq_length must leave room for the context: be more than",
        max_query_length="13",
    ),
    "n_best 0": run(
        "span",
        "--n_best_size must be a whole number, at least 1. Received:",
        n_best_size="0",
    ),
    "top_k of more than all": model(
        "model",
        "`top_k` must be at least 1 and at most the number of pieces, 44.",
        top_k="45",
    ),
    "layers that are not there": model(
        "model",
        "features=concat_last_four needs a model of at least 4 layers.",
        head="encoder",
        features="concat_last_four",
    ),
    "unknown layers": model(
        "model",
        "--features must be one of embeddings, second_to_last, last,",
        head="encoder",
        features="layers",
    ),
}
