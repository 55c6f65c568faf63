"""The rows of a tokenizer.json: what stands around texts, `post_processor`."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.errors import InputError
from bert_tf.vocabularies import tokenizer_json, vocabulary

# A token's id, or the name of a text, and the number of its segment.
_Row = list[tuple[int | str, int]]


def check(
    found: Mapping[str, Any], expected: vocabulary.Vocabulary, name: str
) -> None:
    """Compares the row layout of a tokenizer.json with the vocabulary's.

    A file without a layout is accepted. If a vocabulary gives both texts the
    same segment number, segments are not compared: its models ignore them.

    Raises:
        InputError: They differ. `name` is the path of the file.
    """
    ours = _ours(expected.template)
    has_segments = len(set(expected.template.segments)) > 1
    for step in tokenizer_json.post_processors(found):
        try:
            theirs = _theirs(step)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise InputError(
                f"{name}: the post_processor must be whole. Copy or download "
                f"the file again. Received: post_processor={str(step)[:60]}"
            ) from error
        for our, their in zip(ours, theirs, strict=False):
            is_same = [x for x, _ in our] == [x for x, _ in their]
            if has_segments:
                is_same = our == their
            if expected.may_lack_template:
                is_same |= all(isinstance(x, str) for x, _ in their)
            if not is_same:
                raise InputError(
                    f"{name} lays out rows otherwise than its kind of "
                    "vocabulary does. Give the tokenizer of a model that reads "
                    f"{_written(our, expected)}; if this one does, correct "
                    "post_processor. Received: post_processor="
                    f"{_written(their, expected)}"
                )


def has_rows(found: Mapping[str, Any]) -> bool:
    """Returns whether a tokenizer.json, already checked, lays out rows."""
    steps = tokenizer_json.post_processors(found)
    return any(_theirs(step) for step in steps)


def _ours(template: vocabulary.Template) -> tuple[_Row, _Row]:
    first, second = template.segments
    before: _Row = [*((x, first) for x in template.before), ("$A", first)]
    between: _Row = [(x, first) for x in template.between]
    single: _Row = [*before, *template.ending(first)]
    last: _Row = [("$B", second), *template.ending(second)]
    return single, [*before, *between, *last]


def _theirs(step: Mapping[str, Any]) -> Sequence[_Row]:
    """Returns the rows of one text and of two; none of other steps."""
    kind = step.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        cls, sep = step["cls"][1], step["sep"][1]
        is_bert = kind == "BertProcessing"
        last = int(is_bert)
        first: _Row = [(cls, 0), ("$A", 0), (sep, 0)]
        between: _Row = [] if is_bert else [(sep, 0)]
        return first, [*first, *between, ("$B", last), (sep, last)]
    if kind != "TemplateProcessing":
        return ()
    special = step["special_tokens"]

    def row(parts: Sequence[Mapping[str, Any]]) -> _Row:
        return list(itertools.chain.from_iterable(map(items, parts)))

    def items(part: Mapping[str, Any]) -> _Row:
        if "Sequence" in part:
            text = part["Sequence"]
            return [(f"${text['id']}", text["type_id"])]
        token = part["SpecialToken"]
        return [(x, token["type_id"]) for x in special[token["id"]]["ids"]]

    return row(step["single"]), row(step["pair"])


def _written(row: _Row, expected: vocabulary.Vocabulary) -> str:
    def word(item: int | str) -> str:
        if isinstance(item, str):
            return item
        is_there = item in range(len(expected.pieces))
        return expected.pieces[item] if is_there else str(item)

    return " ".join(f"{word(item)}:{number}" for item, number in row)
