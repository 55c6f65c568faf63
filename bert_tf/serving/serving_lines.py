"""Parses input lines for a model, and formats its answers.

A line is text, with a tab between two texts, or JSON. Every error names it.
"""

import dataclasses
import difflib
import json
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.storage import json_files
from bert_tf.tasks import tables
from bert_tf.tasks.masked_words import masked_texts

INPUT_FORMATS = ("plain", "jsonl")
OUTPUT_FORMATS = ("jsonl", "tsv", "plain")


@dataclasses.dataclass(frozen=True)
class Form:
    """The form of the input lines of a head.

    Attributes:
        columns: Names of its texts.
        second_may_lack: Whether the second text, `text_b`, is optional.
        has_masks: Whether its text must contain [MASK].
        has_choices: Whether the last column is a list, `choices`.
    """

    columns: tuple[str, ...]
    second_may_lack: bool = False
    has_masks: bool = False
    has_choices: bool = False


# The forms of our heads. They are here as parsing needs no TensorFlow.
ENCODER = Form(("text_a", "text_b"), second_may_lack=True)
MASKED_LM = Form(("text",), has_masks=True)
NEXT_PIECE = Form(("text",))
SEQ2SEQ = Form(("text",))
NEXT_SENTENCE = Form(("text_a", "text_b"))
CLASSIFICATION = Form(("text_a", "text_b"), second_may_lack=True)
REPLACED_TOKENS = Form(("text",))
TAGGING = Form(("text",))
SPAN = Form(("question", "context"))
MULTIPLE_CHOICE = Form(("prompt", "choices"), has_choices=True)


@dataclasses.dataclass(frozen=True)
class Query:
    """The inputs on one line.

    Attributes:
        columns: Name -> text; choices are a tuple of texts.
        key: The "id" of its JSON object, if any.
        filled: Number of filled texts in the answer, each as long as the line.
    """

    columns: Mapping[str, Any]
    key: Any = None
    filled: int = 0

    @property
    def length(self) -> int:
        """Number of characters of all texts."""
        return sum(
            sum(map(len, x)) if isinstance(x, tuple) else len(x)
            for x in self.columns.values()
        )

    @property
    def size(self) -> int:
        """Number of characters of all texts, and of those in the answer."""
        return self.length * (1 + self.filled)

    @property
    def choices(self) -> int:
        """Number of choices; 0 if the model takes none."""
        return len(self.columns.get("choices", ()))


class Parser:
    """Parses the lines for one model.

    If the second text is optional, it is allowed only if the model
    `takes_pairs`. `top_k` tokens are listed for a masked word.
    """

    def __init__(
        self,
        form: Form,
        takes_pairs: bool,
        input_format: str,
        top_k: int = 0,
    ):
        self._form = form
        self._columns = form.columns
        if form.second_may_lack and not takes_pairs:
            self._columns = self._columns[:1]
        self._is_json = input_format == "jsonl"
        self._top_k = top_k

    @property
    def expected(self) -> str:
        """Describes the expected format of a line, for error messages."""
        if self._is_json:
            names = ", ".join(f'"{name}"' for name in self._columns)
            end = " (text_b may be left out)" * self._may_lack
            if self._form.has_choices:
                end = ", two choices or more, none of them empty"
            return f"a JSON object with {names}{end}"
        if self._form.has_masks:
            return f"a text with {masked_texts.MASK}"
        if self._form.has_choices:
            return (
                "a prompt and two choices or more, none of them empty, with "
                "tabs between"
            )
        if len(self._columns) == 1:
            return "a text"
        if self._may_lack:
            return "a text, or two with a tab between"
        return f"{' and '.join(self._columns)}, with a tab between"

    @property
    def _may_lack(self) -> bool:
        return self._form.second_may_lack and len(self._columns) > 1

    def parse(self, text: str, where: str) -> Query:
        """Parses a line; InputErrors begin with `where` (file and number)."""
        text = text.rstrip("\r\n")
        if not text.strip():
            raise InputError(
                f"{where}: the line is empty. Expected {self.expected}."
            )
        read = self._object if self._is_json else self._row
        query = read(text, where)
        self._check(query, where)
        if self._form.has_masks:
            query = self._masked(query, where)
        return query

    def _row(self, text: str, where: str) -> Query:
        if self._form.has_choices:
            prompt, *choices = text.split("\t")
            return Query({"prompt": prompt, "choices": tuple(choices)})
        if self._columns == ("text",):
            return Query({"text": text})  # Tabs are part of the text.
        count = len(self._columns)
        parts = text.split("\t")
        # In a table with more columns, the wrong ones would be read.
        if any(part.strip() for part in parts[count:]):
            pairs = " If it was trained on two, give --pairs." * (
                self._form.second_may_lack and count == 1
            )
            raise InputError(
                f"{where}: {len(parts)} columns with tabs between, and the "
                f"model takes {('one', 'two')[count - 1]}. Expected "
                f"{self.expected}.{pairs} A text that holds tabs is given by "
                f"--input_format=jsonl. Received: {text[:80]!r}"
            )
        parts += [""] * (count - len(parts))
        return Query(dict(zip(self._columns, parts[:count], strict=True)))

    def _object(self, text: str, where: str) -> Query:
        try:
            row = json_files.DECODER.decode(text)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        # Also raised for a number of 5,000 digits, or deeply nested lists.
        except (ValueError, RecursionError) as error:
            problem = getattr(error, "msg", error)
            raise InputError(
                f"{where}: the line is not JSON ({problem}). "
                f"Expected {self.expected}."
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: expected {self.expected}. Received: {text[:80]}"
            )
        self._refuse_second_text(row, where)
        self._refuse_misspelled(row, where)
        keys = {name: name for name in self._columns}
        # The first text may have either name.
        if "text_a" in keys and "text" in row:
            if "text_a" in row:
                raise InputError(
                    f"{where}: text is another name for text_a. Leave out one "
                    f"of them. Received: keys {', '.join(row)}"[:400]
                )
            keys["text_a"] = "text"
        columns: dict[str, Any]
        columns = {name: row.get(key) for name, key in keys.items()}
        if self._may_lack and columns["text_b"] is None:
            columns["text_b"] = ""
        for name, value in columns.items():
            is_right = isinstance(value, str)
            if name == "choices":
                is_right = isinstance(value, list) and all(
                    isinstance(x, str) for x in value
                )
                columns[name] = tuple(value) if is_right else value
            if not is_right:
                found = f"keys {', '.join(row) or 'none'}"
                if keys[name] in row:
                    found = f"{keys[name]}={json.dumps(value)}"
                raise InputError(
                    f"{where}: expected {self.expected}. Received: {found[:80]}"
                )
        query = Query(columns, row.get("id"))
        tables.check_text([query.columns, query.key], where)
        return query

    def _refuse_second_text(self, row: Mapping[str, Any], where: str) -> None:
        second = row.get("text_b")
        may_lack = self._form.second_may_lack
        is_single = may_lack and "text_b" not in self._columns
        if is_single and second is not None and str(second).strip():
            raise InputError(
                f"{where}: the model takes one text. Leave out text_b, or give "
                "--pairs if the model was trained on two. Received: "
                f"text_b={json.dumps(second)[:80]}"
            )

    def _refuse_misspelled(self, row: Mapping[str, Any], where: str) -> None:
        """Raises InputError for a key that resembles an optional column."""
        if not self._may_lack or "text_b" in row:
            return
        others = [key for key in row if key not in ("text", "text_a")]
        near = difflib.get_close_matches("text_b", others, 1, cutoff=0.8)
        if near or "text_pair" in others:
            raise InputError(
                f"{where}: there is no key text_b, and one that is nearly the "
                f"same. Rename it. Expected {self.expected}. "
                f"Received: keys {', '.join(row)}"[:400]
            )

    def _check(self, query: Query, where: str) -> None:
        """Raises InputError if a text is missing or empty."""
        columns = query.columns
        missing = [
            name
            for name, value in columns.items()
            if not _is_filled(value)
            and not (name == "text_b" and self._may_lack)
        ]
        if missing:
            raise InputError(
                f"{where}: {' and '.join(missing)} missing or empty. "
                f"Expected {self.expected}."
            )

    def _masked(self, query: Query, where: str) -> Query:
        """Sets the number of filled texts; InputError if 0 or too many."""
        text = query.columns["text"]
        masks = masked_texts.count(text)
        if not masks:
            raise InputError(
                f"{where}: there is no {masked_texts.MASK}. "
                f"Expected {self.expected}. Received: {text[:80]!r}"
            )
        filled = masks * self._top_k
        size = len(text.encode(errors="replace"))
        if filled * size > masked_texts.MAX_FILLED_BYTES:
            raise InputError(
                f"{where}: {masks} masks in {size} bytes would give "
                "too many filled texts. Cut the line, or lower --top_k. "
                f"Received: top_k={self._top_k}"
            )
        return dataclasses.replace(query, filled=filled)


def _is_filled(value: str | tuple[str, ...]) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return len(value) > 1 and all(choice.strip() for choice in value)


# ---- Answers ----------------------------------------------------------------


def write(query: Query, answer: Mapping[str, Any], output_format: str) -> str:
    """Formats an answer as a line.

    Of OUTPUT_FORMATS, "jsonl" has all outputs, "tsv" a row of values, and
    "plain" the most important output for a reader.
    """
    if output_format == "jsonl":
        key = {} if query.key is None else {"id": query.key}
        return json.dumps({**key, **answer}, ensure_ascii=False)
    table = _plain if output_format == "plain" else _tsv
    cells = [" ".join(str(x).split()) for x in table(query, answer)]
    return "\t".join(cells)


# The columns of each element of an answer that is a list.
_LISTS = {
    "pieces": ("piece", "score"),
    "entities": ("type", "start", "end", "text"),
    "tokens": ("token", "start", "end", "probability"),
}


def _tsv(query: Query, answer: Mapping[str, Any]) -> list[Any]:
    if "masks" in answer:
        cells = [_all_filled(query, answer)]
        for best, *_ in answer["masks"]:
            cells += [best["piece"], best["score"]]
        return cells
    for name, keys in _LISTS.items():
        if name in answer:
            return [x[key] for x in answer[name] for key in keys]
    if "probabilities" in answer:
        found = answer["probabilities"]
        if isinstance(found, dict):
            return [*_labels(answer), *found.values()]
        return [answer["choice"], *found]
    if "vector" in answer:
        return answer["vector"]
    return list(answer.values())


def _plain(query: Query, answer: Mapping[str, Any]) -> list[Any]:
    if "masks" in answer:
        return [_all_filled(query, answer)]
    if "pieces" in answer:
        return [answer["pieces"][0]["text"]]
    if "entities" in answer:
        found = [f"{x['type']}: {x['text']}" for x in answer["entities"]]
        return ["; ".join(found)]
    if "tokens" in answer:
        replaced = (x for x in answer["tokens"] if x["probability"] > 0.5)
        return [" ".join(x["token"] for x in replaced)]
    if "choice" in answer:
        return [query.columns["choices"][answer["choice"]]]
    if "labels" in answer:
        return _labels(answer)
    if "vector" in answer:
        return [" ".join(map(str, answer["vector"]))]
    return list(answer.values())[:1]


def _labels(answer: Mapping[str, Any]) -> list[str]:
    """Returns the label, or a text's several labels in one cell."""
    if "labels" in answer:
        return ["; ".join(answer["labels"])]
    return [answer["label"]]


def _all_filled(query: Query, answer: Mapping[str, Any]) -> str:
    """Returns the text with each mask filled with its best token."""
    best = [mask[0]["text"] for mask in answer["masks"]]
    return masked_texts.fill_all(query.columns["text"], best)
