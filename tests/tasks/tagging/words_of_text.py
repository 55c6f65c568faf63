"""Splits raw text into words in Python: the reference of the graph's words."""

from collections.abc import Iterator

from bert_tf import characters
from bert_tf.tasks.tagging import tagging_words


def split_text(text: str, splits_cjk: bool = False) -> list[tuple[int, int]]:
    """Finds the words of raw text as ranges: `text[start:end]`.

    As in files for tagging, words are separated by white space, and punctuation
    is split off both ends. Punctuation alone, such as `:-)`, stays one word.

    If `splits_cjk`, each Chinese character and each mark of Chinese texts is a
    word, as if there were white space around it.
    """

    def is_alone(char: str) -> bool:
        is_mark = tagging_words.is_cjk_mark(char)
        return splits_cjk and (is_mark or characters.is_cjk(char))

    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        end = start + 1
        if not is_alone(text[start]):
            while end < len(text) and not text[end].isspace():
                if is_alone(text[end]):
                    break
                end += 1
        spans += _split_ends(text, start, end)
        start = end
    return spans


def _split_ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Splits punctuation off one word; `!!` stays together."""
    first, last = start, end - 1
    while first < end and tagging_words.is_edge(text[first]):
        first += 1
    if first == end:
        yield start, end
        return
    while last >= first and tagging_words.is_edge(text[last]):
        last -= 1
    for i in range(start + 1, end):
        outside = i < first or i > last
        if i == first or (outside and text[i] != text[i - 1]):
            yield start, i
            start = i
    yield start, end
