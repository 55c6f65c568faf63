"""Options: their allowed values, and dataclasses of them; needs no TensorFlow.

Flags are parsed before the modules that implement these options are imported,
which takes seconds. Those modules have tables with the same names.

A field of a dataclass that `option` returns is also a flag: see
`flags.flag_sections.Section.define`. Its bounds apply to both.
"""

import dataclasses
import math
import numbers
import typing
from collections.abc import Iterable
from typing import Any

from bert_tf.errors import InputError

# Devices to compute on, and the dtypes of activations.
STRATEGIES = ("default", "mirrored", "multi_worker_mirrored", "tpu")
DTYPES = ("float32", "bfloat16", "float16")
# What runs the training step.
RUNTIMES = ("tensorflow", "pjrt")

# Objectives on segments -> the number of segments of a sequence.
OBJECTIVES = {
    "nsp": 2,
    "sop": 2,
    "two_segments": 2,
    "none": 1,
    "full_sentences": 1,
}

# Units of text that are masked as a whole.
MASKING_POLICIES = ("token", "whole_word", "span", "ngram")

# Update rules of weights.
OPTIMIZERS = ("adamw", "adamw_bias_corrected", "lamb", "lamb_uncorrected")
SCHEDULES = (
    "linear",
    "linear_times_warmup",
    "polynomial",
    "cosine",
    "constant",
    "inverse_sqrt",
    "slanted_triangular",
)
# Which layers fine-tuning trains in each epoch.
UNFREEZING = ("none", "gradual")
# How layer decay scales the learning rate of the last layer.
LAYER_DECAY_FORMS = ("paper", "code")
CLIPPING = ("global", "per_replica")
# Max decay rate of moments; float32 cannot represent values closer to 1 well.
LARGEST_BETA = 0.999999

# Distillation methods, by who introduced them. The one for words is for
# pre-training; those for layers train no head.
DISTILLATIONS = ("logits", "distilbert", "tinybert_layers", "minilm")
DISTILLATION_OF_WORDS = DISTILLATIONS[1]
DISTILLATIONS_OF_LAYERS = DISTILLATIONS[2:]

# Checkpoints of a run.
USE_CHECKPOINT = ("best", "last")

# Heads that can be applied to raw text, and other heads that a checkpoint may
# have. Lists, as `serving.served_heads.register` adds custom heads.
SERVED_HEADS = [
    "encoder",
    "masked_lm",
    "next_sentence",
    "classification",
    "tagging",
    "span",
    "joint_span",
    "multiple_choice",
    "next_piece",
    "replaced_tokens",
    "seq2seq",
]
HEADS = [
    *("encoder", "pretraining", "both_directions"),
    *SERVED_HEADS[1:],
]

# Heads of run_squad.py, by --answer_head.
ANSWER_HEADS = {"independent": "span", "joint": "joint_span"}

# Export formats, and storage formats of their weights.
EXPORT_FORMATS = ("saved_model", "litert", "onnx")
EXPORT_WEIGHTS = ("float32", "int8")

# Of run_seq2seq.py: formats of pairs of texts, weights that both halves of a
# model share, and scores of generated texts.
TEXT_PAIR_FORMATS = ("tsv", "csv", "jsonl", "text")
SHARED_WEIGHTS = ("none", "embeddings", "all")
TEXT_METRICS = ("bleu", "chrf", "rouge1", "rouge2", "rougeL", "loss")
BLEU_TOKENIZERS = ("13a", "intl", "zh", "char", "none")

# Experiment trackers that a run can report to.
TRACKERS = ("wandb", "mlflow")

# Pruners of a hyperparameter search, which stop unpromising trials.
SEARCH_PRUNERS = ("median",)

# Which part of a text that is too long is read.
LONG_DOCUMENTS = ("head", "tail", "head_tail", "windows")

# Layers that make up a vector, units that have vectors, and output formats.
FEATURES = (
    "layers",
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_four",
    "concat_last_four",
    "concat_embeddings_last",
    "sum_all",
    "mean_all",
)
UNITS = ("token", "word", "cls", "mean")
FEATURE_FORMATS = ("jsonl", "npy", "parquet", "tfrecord")

# Runners of Apache Beam.
RUNNERS = (
    "DirectRunner",
    "DaskRunner",
    "FlinkRunner",
    "SparkRunner",
    "DataflowRunner",
)

# ---- Dataclasses of options -------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Bounds of a finite number; None for no bound."""

    min: float | None = None
    max: float | None = None
    above: float | None = None

    def __str__(self) -> str:
        return " and ".join(
            f"{word} {bound if isinstance(bound, int) else f'{bound:g}'}"
            for word, bound in (
                ("above", self.above),
                ("at least", self.min),
                ("at most", self.max),
            )
            if bound is not None
        )

    def allow(self, value: float) -> bool:
        """Whether a number is finite and within the bounds."""
        return (
            math.isfinite(value)
            and (self.min is None or value >= self.min)
            and (self.max is None or value <= self.max)
            and (self.above is None or value > self.above)
        )


def option(
    default: Any,
    text: str = "",
    *,
    min: float | None = None,
    max: float | None = None,
    above: float | None = None,
    choices: Iterable[str] = (),
    **about: Any,
) -> Any:
    """Returns a field of a dataclass that is derived from `Options`.

    Args:
        default: Its default value.
        text: Its help as a flag.
        min: Min value of a number.
        max: Max value of a number.
        above: Bound that a number must exceed.
        choices: Allowed words; by default, any.
        about: Arguments of the methods of `flag_sections.Section`, such as
            `rare`. `only_with` also applies to the dataclass if it has all
            options of the condition.
    """
    bounds = Bounds(min, max, above)
    own = {"text": text, "bounds": bounds, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata=own | {"about": about})


def names(options_class: type["Options"]) -> tuple[str, ...]:
    """Returns the names of a dataclass's options."""
    fields = dataclasses.fields(options_class)
    return tuple(field.name for field in fields if field.metadata)


def kind(field: dataclasses.Field) -> type:
    """Returns the type of an option's values, without None."""
    return (*typing.get_args(field.type), field.type)[0]


def check(field: dataclasses.Field, value: Any, name: str) -> None:
    """Raises InputError, with `name`, if an option does not allow a value."""
    known, of = field.metadata, kind(field)
    choices, bounds = known["choices"], known["bounds"]
    if choices:
        is_right = value in choices
        expected = f"one of {', '.join(choices)}"
    elif of in (str, bool):
        is_right, expected = isinstance(value, of), of.__name__
    else:
        number = numbers.Integral if of is int else numbers.Real
        is_number = isinstance(value, number)
        is_right = is_number and bounds.allow(value)
        expected = str(bounds) or "finite"
        if is_number and not math.isfinite(value):
            expected = "finite"
        if not is_number:
            expected = "a whole number" if of is int else "a number"
    if not is_right:
        raise InputError(
            f"`{name}` must be {expected}. Received: {name}={value!r}"
        )


@dataclasses.dataclass(frozen=True)
class Options:
    """Base of dataclasses of options.

    A class whose options depend on each other extends `__post_init__`.

    Raises:
        InputError: A value is not allowed, or the option has no effect.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.metadata and value != field.default:
                self._check(field, value)

    def _check(self, field: dataclasses.Field, value: Any) -> None:
        check(field, value, field.name)
        name, known, others = field.name, field.metadata, vars(self)
        terms = known["about"].get("only_with", ())
        terms = (terms,) if isinstance(terms, str) else tuple(terms)
        needed = [x.lstrip("!").partition("=")[0] for x in terms]
        is_harmless = known["about"].get("harmless", False)
        if is_harmless or not terms or not others.keys() >= set(needed):
            return
        if not any(map(self._holds, terms)):
            raise InputError(
                f"`{name}` goes with {' or '.join(terms)}. Received: "
                + ", ".join(
                    f"{x}={others[x]}" for x in dict.fromkeys((name, *needed))
                )
            )

    def _holds(self, term: str) -> bool:
        name, is_value, value = term.lstrip("!").partition("=")
        now = getattr(self, name)
        is_so = str(now) == value if is_value else bool(now)
        return is_so != term.startswith("!")
