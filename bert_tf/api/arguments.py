"""The keywords of `bert_tf.load`: what each is, and which head it goes with.

They are the flags of run_prediction.py under the same names. What the library
says of a flag, a program reads as a keyword.
"""

import contextlib
import dataclasses
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.tasks.classification import glue
from bert_tf.tasks.squad import squad_options
from bert_tf.tasks.tagging import schemes


class Options(TypedDict, total=False):
    """Options for loading a checkpoint, all of them optional.

    Attributes:
        use_checkpoint: "best" (the default) or "last" checkpoint of a run.
        head: Head of the checkpoint to load, such as "encoder".
        bert_config_file: The model's config if it is not next to the
            checkpoint.
        vocab_file: The model's vocabulary, likewise.
        do_lower_case: As in training; by default the setting of the run or of
            the Hugging Face folder, or else true.
        max_seq_length: Max tokens of a sequence; by default as in training or
            as the checkpoint says, or else 128, or 384 for question answering.
        task_name: Task that defines a classifier's labels, such as "MRPC".
        labels: Labels of a classifier or tagger, in the order of training.
        regression: Whether a classifier predicts a score.
        pairs: Whether a classifier takes a second text.
        scheme: How a tagger's labels spell entities, such as "BIO".
        doc_stride: For question answering, as in run_squad.py; so are the
            options up to and including null_score_diff_threshold.
        max_query_length: By default 64.
        n_best_size: By default 20.
        max_answer_length: By default 30.
        version_2_with_negative: Whether there may be no answer.
        null_score_diff_threshold: A number, or "auto" for the tuned value.
        top_k: Tokens to list for a masked word, or after a text; by default 5.
        features: Layers that an encoder's vectors are made of.
        unit: Pooling of an encoder's vectors, "mean" or "cls".
        normalize: Whether an encoder's vectors have length 1.
    """

    use_checkpoint: Literal["best", "last"]
    head: str
    bert_config_file: str | os.PathLike[str]
    vocab_file: str | os.PathLike[str]
    do_lower_case: bool
    max_seq_length: int
    task_name: str
    labels: Sequence[str]
    regression: bool
    pairs: bool
    scheme: str
    doc_stride: int
    max_query_length: int
    n_best_size: int
    max_answer_length: int
    version_2_with_negative: bool
    null_score_diff_threshold: float | str
    top_k: int
    features: str
    unit: str
    normalize: bool


@dataclasses.dataclass(frozen=True)
class _Keyword:
    """One of them.

    Attributes:
        kind: What its value is: a key of `_READ`.
        heads: Those that it goes with; none for all.
        min: Min value of a whole number.
        of: Of a choice, what there is; of a text, examples.
    """

    kind: str
    heads: tuple[str, ...] = ()
    min: int = 1
    of: Sequence[str] = ()


# Type of an option -> kind of the keyword.
_KINDS = {int: "whole", float: "number", bool: "boolean", str: "text"}


def _of_option(field: dataclasses.Field, heads: tuple[str, ...]) -> _Keyword:
    """Returns the keyword of an option, whose class checks other bounds."""
    known = field.metadata
    kind = "choice" if known["choices"] else _KINDS[options.kind(field)]
    least = known["bounds"].min or 0
    return _Keyword(kind, heads, min=least, of=known["choices"])


_CLASSIFIER = ("classification",)
_ANSWERS = tuple(options.ANSWER_HEADS.values())
KEYWORDS: Mapping[str, _Keyword] = {
    "use_checkpoint": _Keyword("choice", of=options.USE_CHECKPOINT),
    "head": _Keyword("choice", of=options.SERVED_HEADS),
    "bert_config_file": _Keyword("path"),
    "vocab_file": _Keyword("path"),
    "do_lower_case": _Keyword("boolean"),
    "max_seq_length": _Keyword("whole", min=4),
    "task_name": _Keyword("text", _CLASSIFIER, of=glue.NAMES),
    "labels": _Keyword("texts", ("classification", "tagging")),
    "regression": _Keyword("boolean", _CLASSIFIER),
    "pairs": _Keyword("boolean", _CLASSIFIER),
    "scheme": _Keyword(
        "choice", ("tagging",), of=(*schemes.SCHEMES, schemes.NO_SCHEME)
    ),
    **{
        field.name: _of_option(field, _ANSWERS)
        for kind in (squad_options.Layout, squad_options.Search)
        for field in dataclasses.fields(kind)
        if field.name != "max_seq_length"
    },
    "null_score_diff_threshold": _Keyword("number or auto", _ANSWERS),
    "top_k": _Keyword("whole", ("masked_lm", "next_piece")),
    "features": _Keyword(
        "choice",
        ("encoder",),
        of=tuple(name for name in options.FEATURES if name != "layers"),
    ),
    "unit": _Keyword("choice", ("encoder",), of=("mean", "cls")),
    "normalize": _Keyword("boolean", ("encoder",)),
}


def check(given: Mapping[str, Any], *named: str) -> dict[str, Any]:
    """Returns the values of all keywords, None for those not passed.

    `named` are the function's other arguments, for the message.

    Raises:
        InputError: A keyword is unknown, or its value is invalid.
    """
    for name in given:
        if name not in KEYWORDS:
            raise InputError(
                f"There is no keyword {name}. Expected "
                f"{', '.join((*named, *KEYWORDS))}. "
                f"Received: {name}={given[name]!r}"
            )
    said = {name: given.get(name) for name in KEYWORDS}
    return {
        name: None if value is None else _value(name, value)
        for name, value in said.items()
    }


def check_head(given: Mapping[str, Any], head: str) -> None:
    """Raises InputError if arguments belong to another head."""
    for name, value in given.items():
        heads = KEYWORDS[name].heads
        if value is not None and heads and head not in heads:
            raise InputError(
                f"{name} goes with head={' or '.join(heads)}: leave it out. "
                f"Received: {name}={value}, head={head}"
            )


def _value(name: str, value: Any) -> Any:
    keyword = KEYWORDS[name]
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    found: Any = None
    match keyword.kind:
        case "boolean" if isinstance(value, bool):
            found = value
        case "whole" if is_whole and value >= keyword.min:
            found = value
        case "choice" if value in keyword.of:
            found = value
        case "text" if isinstance(value, str):
            found = value
        case "path" if isinstance(value, str | os.PathLike):
            found = os.fspath(value)
        case "number" if _is_number(value):
            found = float(value)
        case "number or auto" if value == "auto" or _is_number(value):
            found = str(value)
        case "texts" if _are_texts(value):
            found = list(value)
    if found is None:
        raise InputError(
            f"{name} must be {_expected(keyword)}. Received: {name}={value!r}"
        )
    return found


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _are_texts(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and len(value) > 0
    return is_list and all(isinstance(x, str) for x in value)


def _expected(keyword: _Keyword) -> str:
    return {
        "boolean": "True or False",
        "whole": f"a whole number, at least {keyword.min}",
        "number": "a number",
        "choice": f"one of {', '.join(keyword.of)}",
        "text": ", such as ".join(["a text", *keyword.of[:1]]),
        "path": "a path",
        "number or auto": "a number, or auto",
        "texts": "a list of texts, in the order of training",
    }[keyword.kind]


def read(name: str, text: str) -> Any:
    """Returns the value of what a run keeps as text.

    Raises:
        InputError: It is none.
    """
    keyword = KEYWORDS[name]
    value: Any = text
    if keyword.kind == "boolean":
        value = {"true": True, "false": False}.get(text.lower(), text)
    elif keyword.kind == "whole" and text.isdecimal():
        value = int(text)
    elif keyword.kind in ("number", "number or auto"):
        with contextlib.suppress(ValueError):
            value = float(text)
    elif keyword.kind == "texts":
        value = text.split(",")
    return _value(name, value)


@contextlib.contextmanager
def in_words_of_python() -> Iterator[None]:
    """Lets errors that name flags name the keywords that these are here."""
    try:
        yield
    except InputError as error:
        # But not in the command of a script.
        flag = r"(?<!\.py )--"
        names = "|".join(KEYWORDS)
        text = re.sub(rf"{flag}({names})\b", r"\1", str(error))
        paths = "model_dir|init_checkpoint|saved_model"
        error.args = (re.sub(rf"{flag}({paths})\b", "path", text),)
        raise
