"""Exports of tiny models, which the server is to serve."""

import bert_tf
from bert_tf import modeling
from tests.api import models
from tests.tasks.features import test_extraction as test_features
from tests.tasks.features import test_saved_model as features

import pytest


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    """A folder with version 1 of a classifier of pairs."""
    folder = tmp_path_factory.mktemp("pairs")
    models.classifier_run(folder / "run", pairs=True)
    bert_tf.export(bert_tf.load(folder / "run"), folder / "pairs" / "1")
    return folder / "pairs"


class _Heads(dict):
    """Head -> SavedModel, written when it is first asked for."""

    def __init__(self, folder):
        super().__init__()
        self._folder = folder

    def __missing__(self, head):
        path = self[head] = self._folder / head / "1"
        if head == "tokens":
            features.save(path, modeling.Bert(test_features.CONFIG))
        elif head in _RUNS:
            bert_tf.export(self._load(head), path)
        else:
            bert_tf.export(self._load("masked_lm", head), path)
        return path

    def _load(self, run, head=None):
        folder = self._folder / f"run_{run}"
        if not folder.exists():
            _RUNS[run](folder)
        return bert_tf.load(folder, head=head)


# Heads that have a run of their own; the others are of the pre-trained one.
_RUNS = {
    "classification": models.classifier_run,
    "tagging": models.tagger_run,
    "span": models.span_run,
    "multiple_choice": models.choice_run,
    "masked_lm": models.pretrained,
}


@pytest.fixture(scope="session")
def heads(tmp_path_factory):
    """Head -> SavedModel, of all heads of raw text but the pairs' above."""
    return _Heads(tmp_path_factory.mktemp("heads"))
