"""Any trained model as a Python function of texts.

    model = bert_tf.load("/tmp/sst2_output")
    model(["what a film"])  # [{"label": "positive", "probabilities": {...}}]

Answers equal the output of run_prediction.py, value for value: both use
`bert_tf.serving`.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, Unpack, overload

from bert_tf.api import arguments, model_paths
from bert_tf.checkpoints import original
from bert_tf.errors import InputError, shortened
from bert_tf.exporting import runtimes, saved_model
from bert_tf.serving import batches, opening, serving_lines, serving_model
from bert_tf.storage import input_files

import numpy as np
import tensorflow as tf

Answer: TypeAlias = dict[str, Any]
# One text; or several in a tuple; or by name, maybe with an "id".
Input: TypeAlias = str | bytes | tuple[Any, ...] | Mapping[str, Any]

# Batches of a stream that are read, and sorted by length, together.
_BATCHES_IN_WINDOW = 32
_PATHS = [x for x, y in arguments.KEYWORDS.items() if y.kind == "path"]


class Predictor:
    """A model that answers texts, as `bert_tf.load` returns it.

    Inputs and answers, by head:

    - classification: a text, or a pair (text_a, text_b); `label` (or `labels`
      where there may be several) and `probabilities`, or `score`.
    - encoder: a text or a pair; `vector`.
    - masked_lm: a text with [MASK]; `masks`, for each a list of `piece`,
      `score` and `text`, the most likely first.
    - next_piece: a text; `pieces`, the most likely next tokens: a list of
      `piece`, `score` and `text`.
    - replaced_tokens: a text; `tokens`, a list of `token`, `start`, `end` and
      `probability` that the token was replaced.
    - next_sentence: a pair; `is_next`.
    - tagging: a text; `entities` of `type`, `start`, `end` and `text`.
    - span, joint_span: a pair (question, context); `answer`, `start`, `end`,
      `score` and `null_score`.
    - multiple_choice: a pair (prompt, list of choices); `choice` and
      `probabilities`.
    - seq2seq: a text; `target`, the text that it writes, and its `score`.

    A dictionary with these names may replace a tuple; if it has an `id`, so
    does its answer. A text may be bytes in UTF-8 or a string tensor.

    Attributes:
        path: Path that it was loaded from; the local folder of a model on the
            Hub.
        head: One of the heads above.
        labels: Labels of a classifier or tagger; empty for other heads.
        vocabulary: The tokens, in the order of their ids.
        max_seq_length: Max tokens of a sequence.
        do_lower_case: Whether it reads lower-cased text.
        description: The description that an export has of the model.
        batch_size: Inputs that are computed together.
    """

    def __init__(
        self,
        path: str,
        model: serving_model.Model,
        files: Mapping[str, bytes],
        batch_size: int,
        made: saved_model.Export | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        """Takes the results of `load`.

        Args:
            path: Path or name that it was loaded from.
            model: The function of raw text.
            files: Name -> content of an export's files next to the weights.
            batch_size: Inputs that are computed together.
            made: The model to export; None if it is an export already.
            options: The other arguments of `load`.
        """
        self.path = path
        # Pickled, they are read from another folder.
        self._source = _absolute(path)
        self._options: dict[str, Any] = {
            name: _absolute(os.fspath(x)) if name in _PATHS and x else x
            for name, x in (options or {}).items()
        }
        self.head = model.head
        self.labels = tuple(
            input_files.parse_labels(files.get(original.LABELS, b"").decode())
        )
        self.vocabulary = model_paths.vocabulary(files, path).pieces
        self.description = model_paths.description(files)
        self.max_seq_length = int(self.description["max_seq_length"])
        self.do_lower_case = bool(self.description.get("do_lower_case"))
        self.batch_size = _checked_size(batch_size)
        self._model = model
        self._made = made
        self._reader = _Reader(model)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles how it was loaded: a process that unpickles loads it."""
        return functools.partial(
            load, self._source, batch_size=self.batch_size, **self._options
        ), ()

    def __repr__(self) -> str:
        return f"<bert_tf model, head={self.head}, path={self.path}>"

    # A text is an input, though to Python it is an iterable of texts too, and
    # an iterator is an iterable: mypy warns of both overlaps. The first that
    # fits is taken, which is what the code does.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, inputs: Input, batch_size: int | None = ...
    ) -> Answer: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, inputs: Iterator[Input], batch_size: int | None = ...
    ) -> Iterator[Answer]: ...

    @overload
    def __call__(
        self, inputs: Iterable[Input], batch_size: int | None = ...
    ) -> list[Answer]: ...

    def __call__(self, inputs, batch_size=None):
        """Returns the model's answers to inputs.

        Args:
            inputs: One input (a text, a tuple or a dictionary), a list of
                them, or an iterator of them.
            batch_size: Inputs that are computed together; by default as loaded.

        Returns:
            The answer to one input; a list of answers, in order, to a list;
            an iterator of answers, in order, to an iterator, which is read a
            few batches at a time.

        Raises:
            InputError: An input does not fit the model. The inputs of a list
                are all checked before any is computed.
        """
        size = self.batch_size if batch_size is None else batch_size
        size = _checked_size(size)
        predictor = batches.Predictor(self._model, size)
        if isinstance(inputs, bytes) or getattr(inputs, "shape", None) == ():
            inputs = _as_python(inputs, "The input")
        if isinstance(inputs, str | tuple | Mapping):
            query = self._reader.take(inputs, "The input")
            return _with_id(query, predictor.answer([query])[0])
        if hasattr(inputs, "columns"):  # Its iterator is of their names.
            raise InputError(
                f"Expected {self._reader.expected}; or a list of such. Pass "
                "the rows of a table, df.itertuples(index=False, name=None), "
                'or a column, df["text"]. '
                f"Received: inputs={type(inputs).__name__}"
            )
        if not isinstance(inputs, Iterable):
            raise InputError(
                f"Expected {self._reader.expected}; or a list of such. "
                f"Received: inputs={inputs!r}"[:400]
            )
        asked = (
            self._reader.take(value, f"inputs[{i}]")
            for i, value in enumerate(inputs)
        )
        rows = size * _BATCHES_IN_WINDOW
        if isinstance(inputs, Iterator):
            return _answered(predictor, batches.windows(asked, rows))
        return list(_answered(predictor, [list(asked)]))

    def export(
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        format: str = "saved_model",
        weights: str = "float32",
    ) -> None:
        """Writes it for a runtime; see `bert_tf.export`."""
        if self._made is None:
            raise InputError(
                f"{self.path} was exported already: copy its folder, or load "
                "the checkpoint that it was made from."
            )
        runtimes.save(os.fspath(path), self._made, format, weights, overwrite)


def _absolute(path: str) -> str:
    """Returns the absolute path of a local file; other names unchanged."""
    # Of a checkpoint's prefix, only PREFIX.index and others exist.
    is_local = any(map(os.path.exists, (path, f"{path}.index")))
    return os.path.abspath(path) if is_local else path


def _answered(
    predictor: batches.Predictor,
    windows: Iterable[list[serving_lines.Query]],
) -> Iterator[Answer]:
    for window in windows:
        answers = predictor.answer(window)
        yield from map(_with_id, window, answers)


def _with_id(query: serving_lines.Query, answer: Answer) -> Answer:
    return answer if query.key is None else {"id": query.key, **answer}


def _checked_size(size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InputError(
            "batch_size must be a whole number, at least 1. Pass pairs of "
            "texts as a list of tuples. "
            f"Received: batch_size={shortened(repr(size))}"
        )
    return size


# ---- Inputs -----------------------------------------------------------------

# The forms of a text, and of texts whose second is optional, of several heads.
_TAKE_EMPTY_TEXTS = (serving_lines.CLASSIFICATION, serving_lines.TAGGING)


class _Reader(serving_lines.Parser):
    """Makes of a Python value what the same line would ask."""

    def __init__(self, model: serving_model.Model):
        form, pairs = model.asks, "text_b" in model.inputs
        self._names = [name for name in form.columns if name in model.inputs]
        super().__init__(form, pairs, "jsonl", model.top_k)
        self._plain = serving_lines.Parser(form, pairs, "plain", model.top_k)
        self._is_choice = "choices" in self._names
        # Of the heads whose second text may be left out.
        self._least = 1 if form.second_may_lack else len(self._names)

    @property
    def expected(self) -> str:
        """Says what an input must be."""
        if len(self._names) == 1:
            return self._plain.expected
        listed = ", ".join(self._names)
        if self._is_choice:
            return (
                "a tuple (prompt, [choice, choice, ...]) or a dictionary with "
                "prompt and choices, two choices or more, none of them empty"
            )
        if self._least == 1:
            return (
                f"a text, a tuple ({listed}) or a dictionary with these keys "
                "(text_b may be left out)"
            )
        return f"a tuple ({listed}) or a dictionary with these keys"

    def take(self, value: Any, where: str) -> serving_lines.Query:
        """Returns what a value asks.

        Args:
            value: Of the user.
            where: Which one it is, for errors.

        Raises:
            InputError: It is not what the model takes.
        """
        row = self._row_of(_as_python(value, where))
        if row is None:
            raise InputError(
                f"{where}: expected {self.expected}. Received: {value!r}"[:400]
            )
        # Only values of keys that are texts; an error may name other keys.
        texts = {
            key: x if key in (*self._names, "text", "text_b") else None
            for key, x in row.items()
        }
        for key, x in texts.items():
            if not _is_text(x, key):
                raise InputError(
                    f"{where}: expected {self.expected}. Received: {key}={x!r}"[
                        :400
                    ]
                )
        with arguments.in_words_of_python():
            query = self.parse(json.dumps(texts), where)
        return dataclasses.replace(query, key=row.get("id"))

    def _check(self, query: serving_lines.Query, where: str) -> None:
        """Answers an empty text too, which a column of a table may have."""
        if self._form not in _TAKE_EMPTY_TEXTS:
            super()._check(query, where)

    def _row_of(self, value: Any) -> dict[str, Any] | None:
        """Returns the texts by name; None of what is no input."""
        if isinstance(value, Mapping):
            return {str(key): x for key, x in value.items()}
        parts = [value] if isinstance(value, str) else value
        if not isinstance(parts, tuple | list):
            return None
        if not self._least <= len(parts) <= len(self._names):
            return None
        return dict(zip(self._names, parts, strict=False))


def _as_python(value: Any, where: str, is_part: bool = False) -> Any:
    """Returns bytes, and texts of TensorFlow and NumPy, as Python's texts.

    Arrays have several texts inside an input only, as choices.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tf.Tensor):
        value = value.numpy()
    is_array = isinstance(value, np.ndarray | np.generic)
    if is_array and (is_part or not value.ndim):
        value = value.tolist()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where}: bytes must be text in UTF-8. Decode them first. "
                f"Received: {value!r}"[:400]
            ) from error
    if isinstance(value, Mapping):
        return {key: _as_python(x, where, True) for key, x in value.items()}
    if isinstance(value, list | tuple):
        parts = [_as_python(x, where, True) for x in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _is_text(value: Any, key: str) -> bool:
    if key == "choices":
        is_list = isinstance(value, list | tuple)
        return is_list and all(isinstance(x, str) for x in value)
    return value is None or isinstance(value, str)


# ---- Loading ----------------------------------------------------------------


def load(
    path: str | os.PathLike[str],
    *,
    batch_size: int = 32,
    allow_unsafe_ops: bool = False,
    **options: Unpack[arguments.Options],
) -> Predictor:
    """Returns a trained model as a function of texts.

    Settings of the run or the checkpoint are read from it. Pass the missing
    ones as keywords, which have the names of run_prediction.py's flags.

    Args:
        path: The folder of a run, or its `best/`; a checkpoint of the
            original, of Hugging Face or of KerasHub: its folder, prefix,
            file of weights, or name, such as google-bert/bert-base-uncased;
            or a SavedModel of `bert_tf.export`.
        batch_size: Inputs that are computed together.
        allow_unsafe_ops: Whether a SavedModel may have operations that touch
            files or the host. Only for models whose source you trust.
        **options: See `bert_tf.api.arguments.Options`.

    Returns:
        A function of texts, described at `Predictor`.

    Raises:
        InputError: There is no model, or a setting is missing.
    """
    path = model_paths.as_text(path)
    _checked_size(batch_size)
    said = arguments.check(options, "batch_size")
    with arguments.in_words_of_python():
        if model_paths.is_export(path):
            return _load_saved_model(path, batch_size, said, allow_unsafe_ops)
        made = _make(path, said)
        model = serving_model.of_export(made)
        return Predictor(path, model, made.files, batch_size, made, options)


def _load_saved_model(
    path: str,
    batch_size: int,
    said: Mapping[str, Any],
    allow_unsafe_ops: bool,
) -> Predictor:
    given = [name for name, value in said.items() if value is not None]
    if given:
        raise InputError(
            f"{', '.join(given)} can't be given of a SavedModel, which keeps "
            f"what it was exported with. Received: path={path}"
        )
    model = serving_model.load(path, allow_unsafe_ops, "allow_unsafe_ops=True")
    return Predictor(
        path,
        model,
        model_paths.export_files(path),
        batch_size,
        options={"allow_unsafe_ops": allow_unsafe_ops},
    )


def _make(path: str, said: Mapping[str, Any]) -> saved_model.Export:
    """Makes a checkpoint's model as one of raw text."""
    found = model_paths.find(path, said["use_checkpoint"])
    given = {x: value for x, value in said.items() if x != "use_checkpoint"}
    return opening.make(
        found.source,
        opening.Said(
            given,
            arguments.read,
            found.folder,
            found.texts,
            None if found.folder else path,
        ),
        lambda head: arguments.check_head(given, head),
    )
