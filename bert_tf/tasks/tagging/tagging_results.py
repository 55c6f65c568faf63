"""Predicts labels, and converts them to scores, reports and files.

Shapes: N words, B batch, S sequence length, C labels.
"""

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from bert_tf import characters, files, heads, losses
from bert_tf.tasks import tables
from bert_tf.tasks.tagging import conll, schemes

import tensorflow as tf
from absl import logging


@functools.lru_cache(maxsize=1)
def best_labels(
    model: heads.BertTagger, num_labels: int, max_seq_length: int
) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Returns the function that predicts a batch, traced once for a model."""

    def outputs(batch):
        logits = model(batch)  # [B, S, C]
        is_word = batch["label_weights"] > 0
        entropy, best = (
            tf.reshape(x, tf.shape(is_word))
            for x in losses.cross_entropy(
                tf.reshape(logits, [-1, num_labels]),
                tf.reshape(batch["label_ids"], [-1]),
            )
        )
        # Replicas trim to different lengths, but gather needs equal ones.
        end = max_seq_length - tf.shape(best)[1]
        return {
            "labels": tf.pad(
                tf.where(is_word, best, -1),
                [[0, 0], [0, end]],
                constant_values=-1,
            ),
            "losses": tf.reduce_sum(tf.where(is_word, entropy, 0), axis=1),
        }

    return outputs


@dataclasses.dataclass(frozen=True)
class Score:
    """Counts of entities, of one type or of all types."""

    correct: int
    predicted: int
    labelled: int

    @property
    def precision(self) -> float:
        """Fraction of predicted entities that are correct; 0 without any."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Fraction of labelled entities that are found; 0 without any."""
        return self.correct / self.labelled if self.labelled else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.predicted + self.labelled
        return 2 * self.correct / total if total else 0.0


def by_sentence(
    sentences: Sequence[conll.Sentence], labels: Iterable[str]
) -> Iterator[list[str]]:
    """Splits the labels of a file's words, [N], by sentence."""
    remaining = iter(labels)
    for sentence in sentences:
        # Words come first, so zip consumes no extra label at their end.
        yield [x for _, x in zip(sentence.words, remaining, strict=False)]


def score(
    sentences: Sequence[conll.Sentence],
    predicted: Sequence[str],
    scheme: str,
    strict: bool = True,
) -> dict[str, Score]:
    """Compares entities: type, start and end must be correct.

    `scheme` and `strict` are as for schemes.entities. Scores are by type,
    sorted.
    """
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    labelled: Counter[str] = Counter()
    for sentence, labels in zip(
        sentences, by_sentence(sentences, predicted), strict=True
    ):
        gold = set(schemes.entities(sentence.labels, scheme, strict))
        ours = set(schemes.entities(labels, scheme, strict))
        correct.update(entity.type for entity in gold & ours)
        found.update(entity.type for entity in ours)
        labelled.update(entity.type for entity in gold)
    return {
        kind: Score(correct[kind], found[kind], labelled[kind])
        for kind in sorted({*found, *labelled})
    }


def total(scores: Iterable[Score]) -> Score:
    """Adds up counts, for the micro average."""
    scores = list(scores)
    return Score(
        sum(x.correct for x in scores),
        sum(x.predicted for x in scores),
        sum(x.labelled for x in scores),
    )


def results(
    sentences: Sequence[conll.Sentence],
    predicted: Sequence[str],
    scheme: str,
) -> dict[str, float]:
    """Returns accuracy over words and, with a scheme, scores of entities.

    Results with the prefix eval_conlleval match the script of CoNLL's shared
    tasks, and seqeval's default mode.
    """
    labels = [label for sentence in sentences for label in sentence.labels]
    equal = sum(a == b for a, b in zip(labels, predicted, strict=True))
    values = {"eval_accuracy": equal / len(labels)}
    if scheme != schemes.NO_SCHEME:
        for name, strict in (("eval", True), ("eval_conlleval", False)):
            scores = score(sentences, predicted, scheme, strict)
            overall = total(scores.values())
            values[f"{name}_precision"] = overall.precision
            values[f"{name}_recall"] = overall.recall
            values[f"{name}_f1"] = overall.f1
    return values


def metric(scheme: str) -> str:
    """Returns the metric that selects the best checkpoint."""
    return "eval_accuracy" if scheme == schemes.NO_SCHEME else "eval_f1"


def report(scores: Mapping[str, Score]) -> str:
    """Returns a table: precision, recall and F1 of each type and of all."""
    width = max(len(name) for name in (*scores, "all"))
    lines = [f"{'':{width}}  precision  recall      f1  support"]
    for name, row in (*scores.items(), ("all", total(scores.values()))):
        lines.append(
            f"{name:{width}}  {row.precision:9.4f}  {row.recall:6.4f}  "
            f"{row.f1:6.4f}  {row.labelled:7d}"
        )
    return "\n".join(lines) + "\n"


# ---- Files ------------------------------------------------------------------


def write_report(
    path: str,
    sentences: Sequence[conll.Sentence],
    predicted: Sequence[str],
    scheme: str,
) -> None:
    """Writes the `report`, and logs it."""
    table = report(score(sentences, predicted, scheme))
    files.write_lines(path, table.splitlines())
    logging.info("%s\n%s", path, table)


def write_columns(
    path: str,
    source: str,
    columns: conll.Columns,
    sentences: Sequence[conll.Sentence],
    predicted: Sequence[str],
) -> None:
    """Copies a file line by line, and adds a column of predictions."""
    lines = (line for sentence in sentences for line in sentence.lines)
    labels = dict(zip(lines, predicted, strict=True))
    first = sentences[0].lines[0]
    text = next(text for line, text in tables.lines(source) if line == first)
    found = conll.find_separator(text, columns)
    separator = {"tab": "\t", "space": " "}[found]

    def rows() -> Iterator[str]:
        for line, text in tables.lines(source):
            text = text.rstrip("\r\n")
            is_comment = line not in labels and text.startswith("#")
            if is_comment or not text.strip(" \t"):
                yield text
                continue
            label = labels.get(line)
            if label is None:
                # The start of a document, or a row of CoNLL-U without a label.
                starts = text.split()[0] == conll.DOCUMENT_START
                label = schemes.OUTSIDE if starts else "_"
            yield f"{text}{separator}{label}"

    files.write_lines(path, rows())


def write_entities(
    path: str,
    sentences: Sequence[conll.Sentence],
    predicted: Sequence[str],
    scheme: str,
) -> None:
    """Writes a JSON object per sentence.

    `text` is its words joined by spaces (without spaces in scripts that have
    none), and `line` its first line in the file. `entities` have a type, their
    text, and their range of characters in `text`, from `start` up to, but not
    including, `end`.
    """

    def rows() -> Iterator[str]:
        by_each = by_sentence(sentences, predicted)
        for sentence, labels in zip(sentences, by_each, strict=True):
            text, starts = _joined(sentence.words)
            ends = [
                start + len(word)
                for start, word in zip(starts, sentence.words, strict=True)
            ]
            entities = [
                {
                    "type": entity.type,
                    "start": starts[entity.start],
                    "end": ends[entity.end - 1],
                    "text": text[starts[entity.start] : ends[entity.end - 1]],
                }
                for entity in schemes.entities(labels, scheme)
            ]
            row = {
                "line": sentence.lines[0],
                "text": text,
                "entities": entities,
            }
            yield json.dumps(row, ensure_ascii=False)

    files.write_lines(path, rows())


def _joined(words: Sequence[str]) -> tuple[str, list[int]]:
    """Returns the text of words, and where each word starts.

    If most words are in scripts with spaces, all words are separated by spaces.
    Otherwise only words in such scripts are, such as an English name, and
    single characters are not.
    """
    written = [word for word in words if word.isalpha()]
    unspaced = list(filter(characters.UNSPACED.search, words))
    has_spaces = 2 * len(unspaced) < len(written) or not unspaced
    text, starts = "", list[int]()
    for word in words:
        if text and (has_spaces or _is_spaced(text[starts[-1] :], word)):
            text += " "
        starts.append(len(text))
        text += word
    return text, starts


def _is_spaced(word: str, following: str) -> bool:
    """Whether a space separates two words of a text without spaces."""
    sides = word[-1] + following[0]
    are_letters = sides.isalnum() and not characters.UNSPACED.search(sides)
    return are_letters and len(word + following) > 2
