"""The description of a model: its task, labels, max length and examples.

An exported model describes itself in `assets/export.json` and
`assets/labels.txt`. For other SavedModels, only the signatures are known.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.server import signature_defs
from bert_tf.storage import input_files

import tensorflow as tf


class _Task(NamedTuple):
    """The task of a head, and example texts for it."""

    does: str
    texts: Mapping[str, Any]


_SENTENCE = "Anna Smith lives in Paris and works for Siemens."
_PAIR = ("It is raining.", "She opens an umbrella.")
_ANSWER = _Task(
    "Finds the answer to a question in a text.",
    {"question": "Where does Anna live?", "context": _SENTENCE},
)
# By head. All signatures use these names of inputs.
_TASKS = {
    "classification": _Task(
        "Assigns one of its labels to a text",
        {"text_a": "What a wonderful film.", "text_b": "I enjoyed it."},
    ),
    "tagging": _Task("Finds entities in a text.", {"text": _SENTENCE}),
    "span": _ANSWER,
    "joint_span": _ANSWER,
    "multiple_choice": _Task(
        "Chooses the text that fits a prompt best.",
        {
            "prompt": _PAIR[0],
            "choices": [_PAIR[1], "She looks for her sunglasses."],
        },
    ),
    "masked_lm": _Task(
        "Predicts the masked words of a text.",
        {"text": "The capital of France is [MASK]."},
    ),
    "next_sentence": _Task(
        "Predicts whether the second text follows the first.",
        {"text_a": _PAIR[0], "text_b": _PAIR[1]},
    ),
    "next_piece": _Task(
        "Predicts the next token of a text.",
        {"text": "The capital of France is"},
    ),
    "replaced_tokens": _Task(
        "Predicts which tokens of a text were replaced.",
        {"text": "The chef ate the meal."},
    ),
    "seq2seq": _Task(
        "Writes a text for a text, such as its translation.",
        {"text": _SENTENCE},
    ),
    "encoder": _Task(
        "Computes a vector",
        {"text_a": "The weather is lovely today.", "text_b": ""},
    ),
}
# The first text has two names.
_OTHER_NAMES = {"text": "text_a", "text_a": "text"}
# Example ids: one sequence.
_IDS = {
    "input_ids": [1, 2, 3],
    "input_mask": [1, 1, 1],
    "segment_ids": [0, 0, 0],
    "masked_lm_positions": [1],
}


@dataclasses.dataclass(frozen=True)
class Description:
    """The description of an exported model.

    Attributes:
        values: The content of export.json, or {} without such a file.
        labels: The names of its classes; empty if it has none.
    """

    values: Mapping[str, Any]
    labels: tuple[str, ...]

    @property
    def head(self) -> str:
        """The name of its head, or ""."""
        return str(self.values.get("head", ""))

    @property
    def max_seq_length(self) -> int | None:
        """The max number of tokens in a sequence."""
        length = self.values.get("max_seq_length")
        return length if isinstance(length, int) else None

    @property
    def does(self) -> str:
        """One sentence about its task; "" if the head is unknown."""
        if self.head not in _TASKS:
            return ""
        text = _TASKS[self.head].does
        if self.head == "encoder":
            each = self.values.get("unit") == "token"
            return f"{text} for {'each token of ' if each else ''}a text."
        if self.head != "classification":
            return text
        if not self.labels:
            text = "Computes a score for a text"
        elif self.values.get("multi_label"):
            text = "Assigns any number of its labels to a text"
        return f"{text}{' or a pair of texts' * self._takes_pairs}."

    @property
    def _takes_pairs(self) -> bool:
        return bool(self.values.get("takes_pairs"))

    def row(self, signature: signature_defs.Signature) -> dict[str, Any] | None:
        """Returns an example row for `:predict`, or None if unknown."""
        if signature.method != signature_defs.PREDICT:
            return None  # It takes serialized tf.Examples.
        if signature.inputs.keys() <= _IDS.keys():
            return {
                name: _choices(_IDS[name], tensor)
                for name, tensor in signature.inputs.items()
            }
        found: dict[str, Any] = {}
        for name, text in self._texts().items():
            for key in (name, _OTHER_NAMES.get(name, name)):
                if key in signature.inputs:
                    found[key] = text
        return found if found.keys() == signature.inputs.keys() else None

    def example(self) -> dict[str, str] | None:
        """Returns an example for `:classify` and `:regress`, or None."""
        if self.head != "classification":
            return None
        texts = {**self._texts()}
        if not self._takes_pairs:
            del texts["text_b"]
        return texts

    def _texts(self) -> Mapping[str, Any]:
        task = _TASKS.get(self.head)
        return task.texts if task else {}


def _choices(ids: list[int], tensor: signature_defs.Tensor) -> list:
    """Returns a sequence of ids, or two of them for multiple choice."""
    is_row = tensor.shape is None or len(tensor.shape) == 2
    return ids if is_row else [ids, ids]


def read(path: str) -> Description:
    """Reads the description of a SavedModel."""
    assets = os.path.join(path, "assets")
    try:
        values = json.loads(_read(assets, "export.json") or "{}")
    except (ValueError, RecursionError):  # The latter if deeply nested.
        values = {}
    labels = input_files.parse_labels(_read(assets, "labels.txt"))
    return Description(
        values if isinstance(values, dict) else {},
        tuple(labels),
    )


def _read(folder: str, name: str) -> str:
    """Returns the text of a file, or "" if it does not exist."""
    path = os.path.join(folder, name)
    if not tf.io.gfile.exists(path):
        return ""
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read().decode("utf-8", errors="replace")
