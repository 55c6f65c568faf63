"""Cuts contexts into windows that fit into the model next to the question.

A window is `[CLS] question [SEP] tokens of the context [SEP]`. The windows and
the answer's position in them are the same as in the original's
convert_examples_to_features. Each context is tokenized once for all its
questions, with character offsets, so that an answer is always a slice of the
context.

Shapes: N tokens of a context, Q tokens of a question, W windows of a question,
S sequence length.
"""

import dataclasses
import re
from collections.abc import Iterator

from bert_tf import characters, vocabularies
from bert_tf.errors import InputError
from bert_tf.tasks.squad import squad_options, squad_questions

import numpy as np

# Characters tokenized at a time: their offsets take 120 bytes each.
_PART = 1 << 16
# The first character of white space, with which tokens may begin.
_SPACE = re.compile(r"(?<!\s)[ \t\n\r]")
# Characters that end a word in the original's SQuAD reader.
_WORD_END = re.compile("[ \t\n\r\u202f]")


@dataclasses.dataclass(frozen=True)
class Pieces:
    """The tokens of a text and their character offsets: each [N] int32.

    `ends` are the offsets after each token's last character.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def split(tokenizer: vocabularies.Tokenizer, text: str) -> Pieces:
    """Tokenizes a text of any length."""
    columns: list[np.ndarray] = [np.zeros([0, 3], np.int32)]
    for offset, part in _parts(text):
        tokens = tokenizer.tokenize_with_offsets(part)
        if tokens:
            pieces, starts, ends = zip(*tokens, strict=True)
            ids = tokenizer.convert_tokens_to_ids(pieces)
            column = np.array([ids, starts, ends], np.int32).T
            columns.append(column + np.array([0, offset, offset], np.int32))
    table = np.concatenate(columns)
    return Pieces(table[:, 0], table[:, 1], table[:, 2])


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Cuts a long text before white space, which tokens may begin with."""
    start = 0
    while start < len(text):
        match = _SPACE.search(text, start + _PART)
        end = match.start() if match else len(text)
        yield start, text[start:end]
        start = end


@dataclasses.dataclass(frozen=True)
class Windows:
    """All windows of one question, whose tokens are `query` [Q] int32.

    `starts` and `lengths` [W] are each window's range of context tokens.
    """

    question: squad_questions.Question
    query: np.ndarray
    pieces: Pieces
    starts: np.ndarray
    lengths: np.ndarray
    template: vocabularies.Template

    @property
    def is_empty(self) -> bool:
        """Whether the context has no tokens."""
        return not len(self.pieces.ids)

    @property
    def head(self) -> int:
        """Position at which the context starts in a window."""
        return self.template.second(len(self.query))

    @property
    def used(self) -> np.ndarray:
        """Number of tokens in each window, without padding: [W]."""
        return self.head + self.lengths + len(self.template.after)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First context token and number of context tokens of each window."""
        return list(
            zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        )

    def text(self, first: int, last: int) -> str:
        """Returns the slice of the context from one token to another."""
        start, end = self.pieces.starts[first], self.pieces.ends[last]
        return self.question.context[start:end]

    def has_most_context(self) -> list[np.ndarray]:
        """Returns whether each token has its max context in this window.

        For a token in several windows, that is the window in which the shorter
        of its two sides is longest, as in the original. One [length] array for
        each window.
        """
        best = np.full(len(self.pieces.ids), -1.0)  # [N]
        owner = np.zeros(len(best), np.int64)  # [N]
        for window, (start, length) in enumerate(self.spans):
            place = np.arange(length)
            score = np.minimum(place, place[::-1]) + 0.01 * length
            here = slice(start, start + length)
            owner[here][score > best[here]] = window
            best[here] = np.maximum(score, best[here])
        return [
            owner[start : start + length] == window
            for window, (start, length) in enumerate(self.spans)
        ]


class Cutter:
    """Cuts the contexts of questions into windows.

    A layout that leaves no room for the context raises InputError.
    """

    def __init__(
        self, vocabulary: vocabularies.Vocabulary, layout: squad_options.Layout
    ):
        layout.check_room(vocabulary.template)
        self.layout = layout
        self._template = vocabulary.template
        self._pad = vocabulary.special.pad.id
        self._has_words = vocabulary.has_fixed_words
        self._tokenizer = vocabulary.tokenizer()
        self._contexts: dict[str, Pieces] = {}

    def cut(self, question: squad_questions.Question) -> Windows:
        """Returns a question's windows: an empty one of an empty context."""
        pieces = self._contexts.get(question.context)
        if pieces is None:
            pieces = split(self._tokenizer, question.context)
            self._contexts[question.context] = pieces
        query = self._tokenizer.convert_tokens_to_ids(
            self._tokenizer.tokenize(question.text)
        )[: self.layout.max_query_length]
        size = self.layout.max_seq_length - len(query)
        size -= self._template.special(2)
        step = min(size, self.layout.doc_stride)
        count = 1 + max(0, -(-(len(pieces.ids) - size) // step))
        starts = np.arange(count) * step
        return Windows(
            question,
            np.array(query, np.int32),
            pieces,
            starts,
            np.minimum(len(pieces.ids) - starts, size),
            self._template,
        )

    def features(self, windows: Windows) -> dict[str, np.ndarray]:
        """Returns `input_ids`, `input_mask` and `segment_ids`, [W, S] int32."""
        head, used = windows.head, windows.used
        template = self._template
        number_1, number_2 = template.segments
        place = np.arange(self.layout.max_seq_length)  # [S]
        shape = [len(used), len(place)]
        ids = np.full(shape, self._pad, np.int32)  # [W, S]
        ids[:, :head] = [*template.before, *windows.query, *template.between]
        for row, (start, length) in enumerate(windows.spans):
            behind = head + length
            ids[row, head:behind] = windows.pieces.ids[start : start + length]
            ids[row, behind : used[row]] = template.after
        is_used = place < used[:, np.newaxis]  # [W, S]
        is_context = is_used & (place >= head)
        return {
            "input_ids": ids,
            "input_mask": is_used.astype(np.int32),
            "segment_ids": np.where(is_context, number_2, number_1).astype(
                np.int32
            ),
        }

    def labels(self, windows: Windows) -> dict[str, np.ndarray]:
        """Returns the answer's position; the pooled token's in other windows.

        These are `start_positions`, `end_positions` and `is_impossible`, [W].
        Raises InputError if the context, or the answer, has no tokens.
        """
        question = windows.question
        if windows.is_empty:
            raise InputError(
                f"{question.where}: the context has no word. "
                f"Received: context={question.context[:80]!r}"
            )
        inside = np.zeros(len(windows.starts), bool)
        first = last = 0
        if not question.is_impossible:
            first, last = self.answer_pieces(question, windows.pieces)
            ends = windows.starts + windows.lengths
            inside = (windows.starts <= first) & (last < ends)
        shift = windows.head - windows.starts
        nowhere = self._template.pooled
        return {
            "start_positions": np.where(inside, first + shift, nowhere),
            "end_positions": np.where(inside, last + shift, nowhere),
            "is_impossible": np.full(
                len(inside), question.is_impossible, np.int64
            ),
        }

    def answer_pieces(
        self, question: squad_questions.Question, pieces: Pieces
    ) -> tuple[int, int]:
        """Returns the first and the last token of the question's answer.

        They are the tokens that cover exactly the answer. If tokens do not
        align, as for "Japan" in "Japanese", they are the original's: tokens of
        the surrounding words, or among them the tokens of the answer's text.
        In scripts without spaces, where a word may be the whole paragraph, they
        are all tokens that touch the answer, unless the vocabulary has fixed
        words, as the original's. Raises InputError if these words have no
        tokens.
        """
        (answer,) = question.answers
        margin = len(answer.text) - len(answer.text.lstrip())
        start = (answer.start or 0) + margin
        end = start + len(answer.text.strip())
        first = int(np.searchsorted(pieces.ends, start, side="right"))
        last = int(np.searchsorted(pieces.starts, end)) - 1
        if (
            first <= last
            and pieces.starts[first] == start
            and pieces.ends[last] == end
        ):
            return first, last
        start, end = _words_around(question.context, start, end)
        is_unspaced = characters.UNSPACED.search(question.context, start, end)
        if first <= last and is_unspaced and not self._has_words:
            return first, last
        first = int(np.searchsorted(pieces.starts, start))
        last = int(np.searchsorted(pieces.starts, end)) - 1
        if first > last:
            raise InputError(
                f"{question.where}: the answer has no word. "
                f"Received: {answer.text[:80]!r}"
            )
        wanted = self._tokenizer.convert_tokens_to_ids(
            self._tokenizer.tokenize(answer.text)
        )
        for place in range(first, last + 2 - len(wanted)):
            found = pieces.ids[place : place + len(wanted)].tolist()
            if wanted and found == wanted:
                return place, place + len(wanted) - 1
        return first, last


def _words_around(context: str, start: int, end: int) -> tuple[int, int]:
    while start and not _WORD_END.match(context[start - 1]):
        start -= 1
    match = _WORD_END.search(context, end)
    return start, match.start() if match else len(context)
