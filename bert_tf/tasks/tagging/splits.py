"""The files that a tagger is trained and tried on, and the labels in them."""

import dataclasses
from collections.abc import Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.tasks import labels as label_column
from bert_tf.tasks.tagging import conll, schemes

from absl import logging


@dataclasses.dataclass(frozen=True)
class Split:
    """One file of sentences."""

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
    """Returns the labels and their scheme, which fit all files.

    Labels are `given`, learnt from the split "train", or `known` from an
    earlier run; a scheme None is found by what they look like. Raises
    InputError if there is no way to know them, or they do not fit.
    """
    labels = tuple(given or known or ())
    if "train" in splits:
        train = splits["train"]
        learned = conll.known_labels(train.sentences, known)
        # B begins an entity only after another one of its type, which a small
        # file may not have.
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
    scheme = scheme or schemes.detect_scheme(labels)
    schemes.check_scheme(labels, scheme)
    logging.info("The scheme of the %d labels: %s.", len(labels), scheme)
    for split in splits.values():
        conll.check(split.path, split.sentences, labels, scheme)
    return labels, scheme
