"""A checkpoint of any format, opened: what is in it, under our names."""

import dataclasses
import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert_tf import modeling, vocabularies
from bert_tf.checkpoints import tf1_files
from bert_tf.errors import InputError
from bert_tf.storage import input_files, json_files, weight_files

import numpy as np
import tensorflow as tf

_AT_ONCE = 1 << 26  # Numbers that `digest` reads at once: 256 MB.
ADAPTER_WAY = (
    "To use it, merge it into its model with peft, by merge_and_unload, or "
    "pass its folder to load_lora() of its model in Python."
)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A BERT in a file. Reading it keeps the source's numerics.

    Attributes:
        path: Its file or folder, or its name as a preset or on the Hub.
        format: A key of `weight_files.FORMATS`, the name of a family with other
            files, or "keras" of a model in memory.
        read: Returns the named tensors; weights are float32.
        config: With the source's activation and epsilon; None if it does not
            come with the weights.
        do_lower_case: None where the source does not say.
        state: Names of what only training needs: moments, steps.
        left_over: The source library's names that are not used here.
        run: The folder of the run that trained exactly these weights, or "".
        max_seq_length: Max tokens that the source reads of a text; None where
            it does not say.
        vectors: Of a model in memory, what `sentence_transformers.settings`
            read in its folder; None if they are read at `path`.
    """

    path: str
    format: str
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[Sequence[str]], dict[str, np.ndarray]]
    config: modeling.BertConfig | None = None
    vocab: vocabularies.Files | None = None
    do_lower_case: bool | None = None
    labels: tuple[str, ...] | None = None
    state: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()
    run: str = ""
    max_seq_length: int | None = None
    vectors: Mapping[str, Any] | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether another library wrote it."""
        row = weight_files.FORMATS.get(self.format)
        return row is None or not row.is_own

    def read_vocabulary(self) -> vocabularies.Vocabulary | None:
        """Parses the vocabulary, if any."""
        if self.vocab is None:
            return None
        name = f"The vocabulary of {self.path}"
        return vocabularies.read(self.vocab, bool(self.do_lower_case), name)

    def max_length(self, config: modeling.BertConfig) -> int:
        """Returns the max tokens of a text, at most the config's positions."""
        longest = config.max_position_embeddings
        return min(self.max_seq_length or longest, longest)

    def default_labels(self, count: int) -> tuple[str, ...] | None:
        """Returns the names that its library gives `count` classes.

        transformers' Trainer saves LABEL_0, LABEL_1 and so on by default.
        None where the format has no such names.
        """
        if self.format != "hf":
            return None
        return tuple(f"LABEL_{i}" for i in range(count))


def digest(source: Checkpoint | None, parts: Iterable[bytes] = ()) -> str:
    """Returns the SHA-256 of some parts and a checkpoint's weights, if any."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    if source is not None:
        names = sorted(source.shapes)
        sizes = (math.prod(source.shapes[name]) for name in names)
        ends = zip(itertools.accumulate(sizes), names, strict=True)
        # Each read opens the files again.
        for _, some in itertools.groupby(ends, lambda x: x[0] // _AT_ONCE):
            group = [name for _, name in some]
            values = source.read(group)
            for name in group:
                total.update(name.encode() + values[name].tobytes())
    return total.hexdigest()


def check_not_quantized(value: np.ndarray, name: str, folder: str) -> None:
    """Raises UnreadableError where scales are needed to know the weights."""
    if value.dtype.kind in "iub":
        raise tf1_files.UnreadableError(
            f"{folder}: {name} holds whole numbers ({value.dtype}): the model "
            "is quantized, and its weights can't be read. Give the model that "
            "it was made from."
        )


def read_bytes(path: str) -> bytes | None:
    """Returns the content of a file; None if it is missing."""
    if path.encode("utf-8", "ignore").decode() != path:
        return None  # A path in a damaged file may not be UTF-8.
    if not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
        return None
    input_files.check_can_be_read_again(path)
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()


def read_text(path: str) -> str | None:
    """Returns the text of a file; None if it is missing."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = input_files.explain_text(data[:64]) or (
            f"{error.reason} at byte {error.start}. Convert it, as with iconv, "
            "or copy it again"
        )
        raise InputError(f"{path} is not UTF-8 text: {problem}.") from error


def read_json(folder: str, name: str, **kinds: type) -> dict[str, Any]:
    """Returns the object in a JSON file; an empty one if there is no file.

    It raises InputError for other content than JSON, and where a value that is
    there and not null is not of its kind.
    """
    path = os.path.join(folder, name)
    data = read_bytes(path)
    if data is None:
        return {}
    try:
        return json_files.parse_object(data, path, **kinds)
    except InputError as error:
        raise tf1_files.UnreadableError(str(error)) from error


def only_adapter(folder: str, name: str) -> InputError:
    """Returns the error for an adapter of PEFT without the weights of a model.

    `name` is what the user passed.
    """
    key = "base_model_name_or_path"
    base = read_json(folder, weight_files.ADAPTER, **{key: str}).get(key)
    return InputError(
        f"{name} holds an adapter ({weight_files.ADAPTER}) of "
        f"{base or 'another model'}, and no model. {ADAPTER_WAY} Received: "
        f"{folder}"
    )
