"""The files that a tagger is trained and evaluated on, and their labels."""

import dataclasses
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.tasks import label_column
from bert_tf.tasks.tagging import conll, schemes

from absl import logging


@dataclasses.dataclass(frozen=True)
class Split:
    """The sentences of one file."""

    path: str
    columns: conll.Columns
    sentences: Sequence[conll.Sentence]


def read(name: str, path: str, columns: conll.Columns) -> Split:
    """Reads the file of a split."""
    sentences = conll.read(path, columns)
    logging.info("Data: %d %s sentences.", len(sentences), name)
    return Split(path, columns, sentences)


def find_labels(
    given: Sequence[str] | None,
    scheme: str | None,
    splits: Mapping[str, Split],
    known: Sequence[str] | None,
) -> tuple[tuple[str, ...], str]:
    """Returns the labels and their scheme, checked against all files.

    Labels are `given`, `known` from an earlier run, or collected from the split
    "train"; if `scheme` is None, it is detected from the labels. Raises
    InputError if labels are missing or do not fit.
    """
    labels = tuple(given or known or ())
    if "train" in splits:
        train = splits["train"]
        learned = conll.known_labels(train.sentences, known)
        # In IOB1, B marks an entity only after another of its type, which may
        # not occur in a small file.
        if scheme == "IOB1" and set(learned) != set(known or ()):
            with_starts = schemes.with_starts(learned)
            learned = label_column.ordered(with_starts, known)
        labels = tuple(given or learned)
        label_column.warn_of_unseen(train.path, labels, learned)
    if not labels:
        raise InputError(
            "The labels are not known. Give --labels in the order of training, "
            "or --do_train and --train_file to learn them from."
        )
    label_column.check(labels)
    if not scheme:
        scheme = schemes.detect_scheme(labels)
        if scheme == "BIO" and "train" not in splits:
            logging.info(
                "Entities that start with I- are not counted. If the model "
                "learned such entities (IOB1, as in CoNLL-2003), pass "
                "--scheme=IOB1."
            )
    schemes.check_scheme(labels, scheme)
    logging.info("The scheme of the %d labels: %s.", len(labels), scheme)
    for split in splits.values():
        conll.check(split.path, split.sentences, labels, scheme)
    return labels, scheme
