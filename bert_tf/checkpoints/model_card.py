"""Model cards: the README.md of a folder for Hugging Face.

A card says what the files of the model say; what they do not say is left out.
"""

import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import bert_tf
from bert_tf import modeling
from bert_tf.checkpoints import hub, huggingface_names, opened, runs
from bert_tf.encoders import families

FILE = "README.md"
# Head -> what the Hub calls its task.
_TASKS = {
    "classification": "text-classification",
    "tagging": "token-classification",
    "span": "question-answering",
    "joint_span": "question-answering",
    "multiple_choice": "multiple-choice",
    "masked_lm": "fill-mask",
    "pretraining": "fill-mask",
    "encoder": "feature-extraction",
}
# Tasks that transformers has a pipeline for, and a text for it.
_PIPELINES = {
    "text-classification": "What a wonderful film.",
    "token-classification": "Anna Smith lives in Paris.",
    "feature-extraction": "The weather is lovely today.",
}
# Flags of a run that say how the model was trained. Others are paths, or do not
# change the result.
_FLAGS = (
    *("task_name", "max_seq_length", "train_batch_size", "num_train_epochs"),
    *("num_train_steps", "gradient_accumulation_steps", "optimizer"),
    *("learning_rate", "lr_schedule", "warmup_proportion", "num_warmup_steps"),
    *("weight_decay_rate", "layer_decay", "dtype", "seed"),
)
_MOST_LABELS = 100
# Of a run, in its folder.
_RESULTS = "eval_results.txt"
_EXAMPLES = "train_examples.json"


def make_card(
    source: opened.Checkpoint,
    config: modeling.BertConfig,
    head: str,
    weights: Collection[str],
    name: str,
    has_tokenizer: bool,
) -> bytes:
    """Returns the card of a checkpoint.

    Args:
        source: The checkpoint as it is written.
        config: Its config.
        head: The head that transformers has of it.
        weights: The names of the variables that are written.
        name: The name of the folder, which the card uses as the model's.
        has_tokenizer: Whether the folder has a tokenizer.
    """
    task = _TASKS.get(head, "")
    flags = runs.flags_of(source.path) if source.run else {}
    architecture = (
        huggingface_names.find_tables(config, head).heads[head].architecture
    )
    lines = [
        *_front_matter(source, task, families.find(config).name),
        f"# {name}",
        "",
        *_facts(source, config, head, weights),
        *_labels(source),
        *_use(name, task, architecture, has_tokenizer),
        *_training(source, flags),
    ]
    return ("\n".join(lines).rstrip() + "\n").encode()


def _front_matter(
    source: opened.Checkpoint, task: str, family: str
) -> Iterator[str]:
    yield "---"
    yield "library_name: transformers"
    if task:
        yield f"pipeline_tag: {task}"
    if base := hub.repository(source.path):
        yield f"base_model: {base}"
    yield "tags:"
    yield from (f"- {tag}" for tag in ("bert_tf", family))
    yield "---"
    yield ""


def _facts(
    source: opened.Checkpoint,
    config: modeling.BertConfig,
    head: str,
    weights: Collection[str],
) -> Iterator[str]:
    encoder = families.find(config)
    size = sum(math.prod(source.shapes[name]) for name in weights)
    yield (
        f"A model of the family {encoder.name} with the head {head}, converted "
        f"by bert_tf {bert_tf.__version__}."
    )
    yield ""
    facts = {
        "parameters": f"{size:,}",
        "layers": encoder.num_layers(config),
        "hidden size": config.hidden_size,
        "vocabulary": f"{config.vocab_size:,} tokens",
        "max length": f"{source.max_length(config)} tokens",
    }
    if source.vocab is not None and source.do_lower_case is not None:
        casing = {True: "lower-cased", False: "case is kept"}
        facts["text"] = casing[source.do_lower_case]
    yield from _table("property", facts)


def _labels(source: opened.Checkpoint) -> Iterator[str]:
    if not source.labels:
        return
    more = len(source.labels) - _MOST_LABELS
    yield "## Labels"
    yield ""
    yield from (f"    {label}" for label in source.labels[:_MOST_LABELS])
    yield from [f"    ... and {more} more"] * (more > 0)
    yield ""


def _use(
    name: str, task: str, architecture: str, has_tokenizer: bool
) -> Iterator[str]:
    yield "## Use"
    yield ""
    yield "```python"
    if has_tokenizer and task in _PIPELINES:
        yield "from transformers import pipeline"
        yield f'model = pipeline("{task}", {json.dumps(name)})'
        yield f'model("{_PIPELINES[task]}")'
    else:
        yield "import transformers"
        for kind in ["AutoTokenizer"] * has_tokenizer + [architecture]:
            noun = "tokenizer" if kind == "AutoTokenizer" else "model"
            made = f"transformers.{kind}.from_pretrained"
            yield f"{noun} = {made}({json.dumps(name)})"
    yield "```"
    yield ""


def _training(
    source: opened.Checkpoint, flags: Mapping[str, str]
) -> Iterator[str]:
    """Describes the run, and how good the model is."""
    if not flags:
        return
    data = opened.read_json(source.run, _EXAMPLES)
    records = data.get("records")
    yield "## Training"
    yield ""
    if isinstance(records, int):
        yield f"Trained on {records:,} records with bert_tf."
        yield ""
    shown = {f"`--{x}`": flags[x] for x in _FLAGS if flags.get(x)}
    started_from = flags.get("init_checkpoint", "")
    if hub.repository(started_from):
        shown["`--init_checkpoint`"] = started_from
    yield from _table("flag", shown)
    scores = _scores(source)
    if scores:
        yield "## Evaluation"
        yield ""
        yield from _table("metric", scores)


def _scores(source: opened.Checkpoint) -> dict[str, str]:
    """Returns the scores of these weights; none of other steps of the run."""
    text = opened.read_text(os.path.join(source.run, _RESULTS)) or ""
    found = dict(re.findall(r"^(\w+) = (\S+)$", text, re.MULTILINE))
    step = re.search(r"-(\d+)$", source.path)
    is_same = step and found.pop("global_step", None) == step[1]
    return found if is_same else {}


def _table(name: str, rows: Mapping[str, Any]) -> Iterator[str]:
    if rows:
        yield f"{name} | value"
        yield "---|---"
        yield from (f"{row} | {value}" for row, value in rows.items())
        yield ""
