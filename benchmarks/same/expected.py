"""Expected differences to the commit before, with reasons.

benchmarks/same_as_before.py counts their occurrences.
"""

from benchmarks.same import comparison

# The former location of modules that are in folders now.
_FLAT = "bert_tf"
_NGRAMS = '"ngram": 3, "favor_shorter_ngram": true'

# Names of scripts, and texts in files and on screen.
TEXTS = (
    comparison.Expected(
        "predict.py",
        "run_prediction.py",
        "the script is named as the others that run a model",
    ),
    comparison.Expected(
        "it appears when it is complete.",
        "it appears when it is complete. A TF1 checkpoint may also be named by "
        "its prefix, as the original does: "
        "--output_path=/tmp/bert_model.ckpt writes bert_model.ckpt.index and "
        "what belongs to it beside one another.",
        "a prefix is taken as what it is",
        "flags_convert_checkpoint",
    ),
    comparison.Expected(
        "The new folder to write.",
        "The new folder to write; of tf1 also a prefix that ends in .ckpt.",
        "a prefix is taken as what it is",
        "flags_convert_checkpoint",
    ),
    comparison.Expected(
        "memory allows: by trial on GPUs and TPUs, by an estimate on CPUs.",
        "memory allows, by trial: on GPUs and TPUs only.",
        "the estimate was wrong by up to 2, and is refused",
        "flags_run_pretraining",
    ),
    comparison.Expected(
        f"({_FLAT}/beam.py",
        "(bert_tf/pretraining_data/beam.py",
        "the module moved",
        "flags_create_pretraining_data",
    ),
    comparison.Expected(
        f"({_FLAT}/export_features.py)",
        "(bert_tf/tasks/features/features_model.py)",
        "the module moved",
        "flags_extract_features",
    ),
    comparison.Expected(
        f"{_FLAT}/export.py and, for each head, in {_FLAT}/export_*.py.",
        "docs/serving.md and, for each head, where it is made: in "
        "bert_tf/tasks/*/*_model.py, bert_tf/tasks/next_sentence_model.py and, "
        "for classifiers, bert_tf/exporting/saved_model.py.",
        "the modules moved",
        "flags_export_saved_model",
    ),
    comparison.Expected(
        '"mask_id": 103',
        f'"mask_id": 103, {_NGRAMS}',
        "manifests say how n-grams would be masked",
        "records_*",
    ),
    comparison.Expected(
        '"span_max_words": 10, "output_file"',
        f'"span_max_words": 10, {_NGRAMS}, "output_file"',
        "manifests say how n-grams would be masked",
        "records_*",
    ),
)
# New files.
FILES = (
    comparison.New(
        "*.serve_ids.npz",
        "every export has a signature of ids, tagging as well",
        "answers",
    ),
    comparison.New(
        "*.serve_text.npz",
        "one text has one name in all exports",
        "answers",
    ),
    comparison.New(
        "*.serve_pairs.npz",
        "two texts have one name in all exports",
        "answers",
    ),
    comparison.New(
        "*.serve_examples.npz",
        "classifiers answer serialized tf.Examples",
        "answers",
    ),
)
# Files with other contents.
CHANGED = (
    comparison.Changed(
        "*",
        "pairs are cut to length after they are swapped, so that their lengths "
        "do not tell the order",
        "records_sop_*",
    ),
)
# New flags with their defaults: in flags.txt files, in commands in logs, and in
# JSON lines.
_NEW_FLAGS = (
    ("adam_beta_1", r"0\.9"),
    ("adam_beta_2", r"0\.999"),
    ("keep_teacher_logits", "true"),
    ("poly_power", r"1\.0"),
    ("prune_every", "10"),
    ("prune_to", r"0\.0"),
    ("prune_until", r"0\.5"),
    ("save_in_background", "true"),
    ("start_warmup_step", "0"),
)
_ROWS = "exports compute few rows in seven, which rounds otherwise"
# Texts that are removed before the comparison.
TAKEN_OUT = (
    comparison.TakenOut(
        "|".join(rf"\s--{name}={value}(?=\s)" for name, value in _NEW_FLAGS),
        "*flags.txt *log.txt",
        "flags that there were not, at their defaults",
    ),
    comparison.TakenOut(
        "|".join(f'"{name}": "{value}", ' for name, value in _NEW_FLAGS),
        "*results.jsonl",
        "flags that there were not, at their defaults",
    ),
    comparison.TakenOut(r"(?<=\.\d{6})\d+", "*answers.jsonl", _ROWS),
    comparison.TakenOut(
        r"An\s+evaluation\s+reads\s+the\s+first\s[^.]*\.[^.]*max_eval_steps\.\n",
        "stderr *log.txt",
        "it is said if an evaluation leaves records out",
    ),
)
# Numbers.
ROUNDED = (comparison.Rounded("*.npz", 1e-6, _ROWS, "answers"),)
