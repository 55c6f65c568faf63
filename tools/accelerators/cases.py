"""The training steps to compile: models, batches and options."""

import ast
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Case:
    """A training step to compile.

    Attributes:
        model: Name of a model in configs/models, without the family.
        family: Its family, which determines the pre-training objective.
        layers: Replaces the number of layers of the model.
        rows: Sequences of the batch on one device.
        length: Tokens per sequence.
        predictions: Masked tokens per sequence.
        head: "pretraining", or the task to fine-tune for.
        packed: Sequences packed in a row, or 1.
        vocab_size: Replaces the vocabulary of the model.
        fused: Whether attention is cuDNN's kernel where the step allows it.
    """

    model: str = "tiny"
    family: str = "bert"
    layers: int = 2
    rows: int = 8
    length: int = 128
    predictions: int = 20
    dtype: str = "bfloat16"
    head: str = "pretraining"
    remat: bool = False
    accumulate: int = 1
    packed: int = 1
    vocab_size: int | None = None
    fused: bool = True


# Small steps for every check. Each covers other parts of the code.
SMALL = {
    "bert": Case(),
    "roberta": Case(family="roberta"),
    "albert": Case(family="albert"),
    "electra": Case(family="electra"),
    "left_to_right": Case(family="left_to_right"),
    "float32": Case(dtype="float32"),
    "remat": Case(remat=True),
    "accumulate": Case(accumulate=4),
    "packed": Case(packed=4),
    "classification": Case(head="classification"),
    "regression": Case(head="regression"),
    "tagging": Case(head="run_ner"),
    "multiple_choice": Case(head="run_multiple_choice"),
    "span": Case(head="run_squad", length=384),
}
# Steps of common sizes, for the tables of the documentation.
LARGE = {
    "base2": Case("base", layers=2, rows=32),
    "base": Case("base", layers=12, rows=256),
    "large": Case("large", layers=24, rows=128),
    "large64": Case("large", layers=24, rows=64),
    "large512": Case("large", layers=24, rows=32, length=512, predictions=76),
}
CASES = SMALL | LARGE


def find(name: str) -> Case:
    """Returns a case by name; `large/rows=32/remat=True` replaces fields.

    Raises:
        KeyError: If there is no case or no field of that name.
    """
    base, *changes = name.split("/")
    case = CASES[base]
    fields = {x.name for x in dataclasses.fields(Case)}
    for change in changes:
        field, _, text = change.partition("=")
        if field not in fields:
            raise KeyError(field)
        is_text = isinstance(getattr(case, field), str)
        value: Any = text if is_text else ast.literal_eval(text)
        case = dataclasses.replace(case, **{field: value})
    return case


def file_name(name: str) -> str:
    """Returns the name of a case's artifact."""
    return f"{name.replace('/', '-')}.bc"
