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


@pytest.fixture(scope="session")
def heads(tmp_path_factory):
    """Head -> SavedModel, of all heads of raw text but the pairs' above."""
    folder = tmp_path_factory.mktemp("heads")
    made = {
        "classification": models.classifier_run,
        "tagging": models.tagger_run,
        "span": models.span_run,
        "multiple_choice": models.choice_run,
        "masked_lm": models.pretrained,
    }
    found = {}
    for head, make in made.items():
        make(folder / f"run_{head}")
        found[head] = folder / head / "1"
        bert_tf.export(bert_tf.load(folder / f"run_{head}"), found[head])
    for head in ("next_sentence", "encoder"):
        found[head] = folder / head / "1"
        model = bert_tf.load(folder / "run_masked_lm", head=head)
        bert_tf.export(model, found[head])
    found["tokens"] = folder / "tokens" / "1"
    features.save(found["tokens"], modeling.Bert(test_features.CONFIG))
    return found
