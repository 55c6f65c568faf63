"""Requests to warm up a model: typical shapes, or the user's own texts.

Each request has rows, by the names of a head's columns.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.serving import serving_lines
from bert_tf.tasks.masked_words import masked_texts

_SENTENCE = "the old river runs to the sea and nobody knows how far it is"
_SHORT, _ROWS, _CHOICES = 6, 8, 4

Texts = dict[str, list[Any]]


def made(
    form: serving_lines.Form, columns: Sequence[str], max_seq_length: int
) -> list[Texts]:
    """Returns a short text, one of max length, and a batch.

    Args:
        form: The head's input form.
        columns: The form's columns that the model takes.
        max_seq_length: Max number of tokens that the model reads at a time.
    """
    step = max(1, (max_seq_length - _SHORT) // (_ROWS - 1))
    mixed = [_SHORT + step * i for i in range(_ROWS)]
    return [
        _columns([_row(form, columns, words) for words in counts])
        for counts in ([_SHORT], [max_seq_length], mixed)
    ]


def _row(
    form: serving_lines.Form, columns: Sequence[str], words: int
) -> dict[str, Any]:
    """Returns a line with `words` words in its last column, few in others."""
    row: dict[str, Any] = {
        name: _text(words if name == columns[-1] else _SHORT)
        for name in columns
    }
    if form.has_masks:
        row["text"] = f"{masked_texts.MASK} {row['text']}"
    if form.has_choices:
        row["choices"] = [row["choices"]] * _CHOICES
    return row


def _text(words: int) -> str:
    return " ".join(itertools.islice(itertools.cycle(_SENTENCE.split()), words))


def of_lines(asked: Iterable[serving_lines.Query]) -> list[Texts]:
    """Returns a request for each line, and the first few as a batch."""
    queries = list(asked)
    alike = [x for x in queries if x.choices == queries[0].choices][:_ROWS]
    batches = [[query] for query in queries]
    if len(alike) > 1:
        batches.append(alike)
    return [_columns([query.columns for query in batch]) for batch in batches]


def _columns(rows: Sequence[Mapping[str, Any]]) -> Texts:
    return {name: [_listed(row[name]) for row in rows] for name in rows[0]}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
