"""The runs of benchmarks/same_as_before.py, the same in both checkouts.

In flags, {inputs} is the folder of inputs.py, {vocab} is the folder of
vocabularies, and {out} is the output of the run. {before[NAME]} is the output
of the run NAME in the first checkout, which both checkouts then read, so that a
difference appears in one row and not in all dependent ones; {own[NAME]} is the
output of the same checkout. {script[NAME]} is the name of a script in the
checkout.
"""

import dataclasses
import re
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Run:
    """A script that runs in both checkouts.

    Attributes:
        part: Its part, as in --parts.
        name: Unique name.
        script: Name of a script at the root in the second checkout, or of a
            script in this folder.
        flags: Flags of the script, separated by spaces.
        code: Expected exit code.
    """

    part: str
    name: str
    script: str
    flags: str
    code: int = 0

    @property
    def needs(self) -> list[tuple[str, str]]:
        """Returns (`before` or `own`, name) of each run that it reads."""
        return re.findall(r"\{(before|own)\[(\w+)\]\}", self.flags)


# ---- Records ----------------------------------------------------------------

_UNCASED = "--vocab_file={vocab}/bert_uncased.txt"
_TEXT = "--input_file={inputs}/wiki-*.txt --input_format=wikiextractor"
_WIKI = f"{_TEXT} {_UNCASED}"
_SETTINGS = {
    "nsp": f"{_UNCASED} --input_file={{inputs}}/lines-*.txt",
    "sop": f"{_WIKI} --objective=sop --masking=whole_word",
    "none": f"{_WIKI} --objective=none --masking=span",
    "dynamic": f"{_WIKI} --dynamic_masking --random_seed=7",
    "packed": f"{_WIKI} --pack --short_seq_prob=0.5 --num_shards=3",
    "words": (
        "--input_file={inputs}/chinese-*.txt --input_format=wikiextractor "
        "--language=zh --vocab_file={vocab}/bert_chinese.txt "
        "--masking=whole_word --word_list={inputs}/chinese_words.txt"
    ),
    "cased": (
        "--input_file={inputs}/articles-*.jsonl --input_format=jsonl "
        "--text_field=body --vocab_file={vocab}/bert_cased.txt "
        "--do_lower_case=false --mask_share=0.7 --random_share=0.2"
    ),
}
_RECORDS = [
    Run(
        "records",
        f"records_{name}_{workers}",
        "create_pretraining_data",
        "--output_dir={out} --max_seq_length=64 --max_predictions_per_seq=10 "
        f"--dupe_factor=2 --num_workers={workers} {flags}",
    )
    for name, flags in _SETTINGS.items()
    for workers in (1, 2)
]
_SHOWN = [
    Run(
        "records",
        f"shown_{name}",
        "create_pretraining_data",
        f"--input_file={{before[records_{name}_1]}}/part-* --show=20 "
        + _UNCASED,
    )
    for name in ("nsp", "packed")
]

# ---- Pre-training -----------------------------------------------------------

_MIRRORED = "--logical_cpus=2 --distribution_strategy=mirrored"
_PRETRAINING = [
    Run(
        "pretraining",
        f"pretraining_{name}",
        "run_pretraining",
        f"--input_file={{before[records_{records}_1]}}/part-* "
        "--output_dir={out} --bert_config_file={inputs}/config.json "
        f"{_UNCASED} --do_train --do_eval --train_batch_size=8 "
        "--num_train_steps=50 --num_warmup_steps=5 --learning_rate=1e-3 "
        f"--save_checkpoints_steps=25 --max_eval_steps=5 {flags}",
    )
    for name, records, flags in (
        ("one_replica", "nsp", "--eval_steps=20"),
        ("two_replicas", "nsp", _MIRRORED),
        ("accumulated", "nsp", "--gradient_accumulation_steps=4"),
        ("bfloat16", "sop", "--dtype=bfloat16"),
        ("packed", "packed", "--lr_schedule=cosine --clip_norm=0.5"),
        (
            "dynamic",
            "dynamic",
            "--optimizer=lamb --layer_decay=0.9 --remat --seed=3",
        ),
    )
]

# ---- Fine-tuning ------------------------------------------------------------

_TRAINED = "{before[pretraining_one_replica]}"
_SHORT = (
    f"--init_checkpoint={_TRAINED} --output_dir={{out}} --num_train_epochs=1 "
    "--train_batch_size=8 --learning_rate=1e-3 --max_seq_length=48 "
    "--save_checkpoints_steps=10"
)
_FINE_TUNING = [
    Run("fine_tuning", name, script, f"{_SHORT} {flags}")
    for name, script, flags in (
        (
            "classifier",
            "run_classifier",
            "--task_name=MRPC --data_dir={inputs}/MRPC --do_train --do_eval "
            "--do_predict --do_export --glue_server_files "
            "--num_train_epochs=2",
        ),
        (
            "scores",
            "run_classifier",
            "--task_name=STS-B --data_dir={inputs}/STS-B --do_train --do_eval "
            "--do_predict --group_by_length --optimizer=adamw_bias_corrected "
            f"{_MIRRORED}",
        ),
        (
            "windows",
            "run_classifier",
            "--train_file={inputs}/labels_train.jsonl "
            "--dev_file={inputs}/labels_dev.jsonl "
            "--test_file={inputs}/labels_dev.jsonl --label_separator=, "
            "--long_documents=windows --do_train --do_eval --do_predict "
            "--predictions_with_texts --gradient_accumulation_steps=2",
        ),
        (
            "squad",
            "run_squad",
            "--train_file={inputs}/squad_train.json "
            "--predict_file={inputs}/squad_dev.json --version_2_with_negative "
            "--null_score_diff_threshold=auto --max_seq_length=96 "
            "--doc_stride=32 --do_train --do_eval --do_predict --do_export",
        ),
        (
            "entities",
            "run_ner",
            "--train_file={inputs}/entities_train.conll "
            "--dev_file={inputs}/entities_dev.conll "
            "--test_file={inputs}/entities_test.conll "
            "--do_train --do_eval --do_predict --do_export",
        ),
        (
            "choices",
            "run_multiple_choice",
            "--train_file={inputs}/choices_train.jsonl "
            "--dev_file={inputs}/choices_dev.jsonl "
            "--test_file={inputs}/choices_dev.jsonl "
            "--do_train --do_eval --do_predict --do_export",
        ),
        (
            "glue",
            "run_glue",
            "--data_dir={inputs} --tasks=MRPC,STS-B --seeds=1",
        ),
    )
]

# ---- Exports of every head, and their answers -------------------------------

# Export -> its head, and the run that trained the model.
_MODELS = {
    "export_encoder": ("encoder", "pretraining_one_replica"),
    "export_masked_lm": ("masked_lm", "pretraining_one_replica"),
    "export_next_sentence": ("next_sentence", "pretraining_one_replica"),
    "export_classification": ("classification", "classifier"),
    "export_tagging": ("tagging", "entities"),
    "export_span": ("span", "squad"),
    "export_multiple_choice": ("multiple_choice", "choices"),
    # Other kinds of classifiers have the same head, but another graph.
    "export_regression": ("classification", "scores"),
    "export_windows": ("classification", "windows"),
}
_EXPORTS = [
    Run(
        "exports",
        name,
        "export_saved_model",
        f"--model_dir={{before[{run}]}} --head={head} --export_dir={{out}}",
    )
    for name, (head, run) in _MODELS.items()
]
_ANSWERS = Run(
    "exports",
    "answers",
    "answers_of_exports",
    "{inputs}/questions.json {out} "
    + " ".join(f"{name}={{own[{name}]}}" for name in _MODELS)
    # Exports written by the training scripts.
    + " run_classifier={own[classifier]}/export run_squad={own[squad]}/export"
    " run_ner={own[entities]}/export run_choice={own[choices]}/export",
)

# ---- The other scripts ------------------------------------------------------

_LINES = "--input_file={inputs}/sentences.txt"
_TOOLS = [
    *(
        Run(
            "tools",
            f"converted_{kind}",
            "convert_checkpoint",
            f"--input_checkpoint={_TRAINED} --output_format={kind} "
            "--output_path={out}",
        )
        for kind in ("tf1", "hf", "keras_hub")
    ),
    *(
        Run(
            "tools",
            name,
            "extract_features",
            f"--init_checkpoint={_TRAINED} {_LINES} {flags}",
        )
        for name, flags in (
            (
                "features",
                "--output_file={out}/features.jsonl --layers=-1,-2 "
                "--max_seq_length=32",
            ),
            (
                "vectors",
                "--output_file={out}/vectors.npy --features=mean_all "
                "--unit=mean --normalize",
            ),
        )
    ),
    *(
        Run(
            "tools",
            name,
            "learn_vocabulary",
            f"{_TEXT} --vocab_file={{out}}/vocab.txt {flags}",
        )
        for name, flags in (
            ("vocabulary", "--vocab_size=2000"),
            (
                "extended_vocabulary",
                "--extend_vocab={vocab}/bert_uncased.txt --num_appended=10",
            ),
        )
    ),
    *(
        Run(
            "tools",
            f"predicted_{name}",
            "run_prediction",
            f"--{kind}={{before[{run}]}} --input_file={{inputs}}/{lines}.txt "
            "--output_file={out}/answers.jsonl",
        )
        for name, kind, run, lines in (
            ("words", "model_dir", "pretraining_one_replica", "masked"),
            ("classes", "model_dir", "windows", "sentences"),
            ("entities", "model_dir", "entities", "sentences"),
            ("scores", "saved_model", "export_regression", "sentences"),
        )
    ),
]

# ---- User errors, each reported in one line ---------------------------------

_MODEL = f"--init_checkpoint={_TRAINED} --output_dir={{out}} --do_train"
_ERRORS = [
    Run("errors", f"error_{name}", script, flags, code=1)
    for name, script, flags in (
        (
            "bytes",
            "create_pretraining_data",
            "--input_file={inputs}/no_text.txt --output_dir={out} " + _UNCASED,
        ),
        (
            "records",
            "run_pretraining",
            f"{_MODEL} --input_file={{inputs}}/none.tfrecord",
        ),
        (
            "length",
            "run_classifier",
            f"{_MODEL} --task_name=MRPC --data_dir={{inputs}}/MRPC "
            "--max_seq_length=4096",
        ),
        (
            "column",
            "run_classifier",
            f"{_MODEL} --train_file={{inputs}}/labels_train.jsonl "
            "--text_a_column=review",
        ),
        (
            "json",
            "run_squad",
            f"{_MODEL} --train_file={{inputs}}/sentences.txt "
            "--max_seq_length=96",
        ),
        (
            "label",
            "run_ner",
            f"{_MODEL} --do_eval --train_file={{inputs}}/entities_train.conll "
            "--dev_file={inputs}/entities_other.conll",
        ),
        (
            "choices",
            "run_multiple_choice",
            f"{_MODEL} --train_file={{inputs}}/labels_train.jsonl",
        ),
        (
            "head",
            "export_saved_model",
            f"--model_dir={_TRAINED} --head=span --export_dir={{out}}",
        ),
        (
            "format",
            "convert_checkpoint",
            "--input_checkpoint={inputs} --output_format=hf "
            "--output_path={out}",
        ),
        (
            "vocabulary",
            "extract_features",
            f"--init_checkpoint={_TRAINED} {_LINES} "
            "--output_file={out}/x.jsonl --vocab_file={vocab}/bert_cased.txt",
        ),
        ("flag", "learn_vocabulary", "--vocab_flie=x"),
    )
]


def of_flags(scripts: Iterable[str]) -> list[Run]:
    """Returns a run for every script, by its name without ".py"."""
    return [
        Run(
            "flags",
            f"flags_{name}",
            "flags_of_script",
            f"{{script[{name}]}} {{out}}",
        )
        for name in scripts
    ]


# In an order in which every run comes after those that it reads.
RUNS = [
    *_RECORDS,
    *_SHOWN,
    *_PRETRAINING,
    *_FINE_TUNING,
    *_EXPORTS,
    _ANSWERS,
    *_TOOLS,
    *_ERRORS,
]
PARTS = ("flags", *dict.fromkeys(run.part for run in RUNS))
