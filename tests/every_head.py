"""A tiny export of each head, with weights that nobody trained."""

import dataclasses

from bert_tf import heads, modeling
from bert_tf.encoders import left_to_right
from bert_tf.exporting import saved_model
from bert_tf.tasks import next_piece, next_sentence
from bert_tf.tasks.features import layers as feature_layers
from bert_tf.tasks.features import saved_model as features_model
from bert_tf.tasks.masked_words import saved_model as masked_words_model
from bert_tf.tasks.multiple_choice import saved_model as choice_model
from bert_tf.tasks.squad import saved_model as squad_model
from bert_tf.tasks.tagging import saved_model as tagging_model
from bert_tf.vocabularies import word_pieces
from tests.exporting.test_saved_model import (
    CONFIG,
    LABELS,
    MAX_SEQ_LENGTH,
    VOCAB,
)
from tests.tasks.squad.test_saved_model import LAYOUT, SEARCH

_VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)


def classifier(labels=LABELS, takes_pairs=True, **settings):
    """Returns a classifier; `labels` None makes a regression."""
    model = heads.BertClassifier(modeling.Bert(CONFIG), len(labels or "1"))
    return saved_model.classifier(
        model,
        CONFIG,
        _VOCABULARY,
        labels,
        MAX_SEQ_LENGTH,
        takes_pairs,
        **settings,
    )


def _next_sentence():
    model = heads.BertNextSentence(modeling.Bert(CONFIG))
    return next_sentence.next_sentence(
        model, CONFIG, _VOCABULARY, MAX_SEQ_LENGTH
    )


def _encoder():
    model = modeling.Bert(CONFIG)
    choice = feature_layers.Choice("last")
    return features_model.extractor(
        model,
        _VOCABULARY,
        MAX_SEQ_LENGTH,
        choice,
        "mean",
    )


def _span():
    model = heads.BertSpanFinder(modeling.Bert(CONFIG))
    return squad_model.span_finder(
        model,
        CONFIG,
        _VOCABULARY,
        LAYOUT,
        SEARCH,
        None,
    )


def _multiple_choice():
    model = heads.BertMultipleChoice(modeling.Bert(CONFIG))
    return choice_model.chooser(model, CONFIG, _VOCABULARY, MAX_SEQ_LENGTH)


def _masked_lm():
    model = heads.BertMaskedLM(modeling.Bert(CONFIG))
    return masked_words_model.masked_words_finder(
        model,
        CONFIG,
        _VOCABULARY,
        MAX_SEQ_LENGTH,
        2,
    )


def _tagging():
    model = heads.BertTagger(modeling.Bert(CONFIG), len(LABELS))
    return tagging_model.tagger(
        model,
        CONFIG,
        _VOCABULARY,
        LABELS,
        "none",
        MAX_SEQ_LENGTH,
    )


def _next_piece():
    config = left_to_right.LeftToRightConfig(**dataclasses.asdict(CONFIG))
    model = heads.BertNextPiece(left_to_right.LeftToRight(config))
    return next_piece.next_piece(model, config, _VOCABULARY, MAX_SEQ_LENGTH, 2)


# By the names of the heads.
MAKERS = {
    "masked_lm": _masked_lm,
    "tagging": _tagging,
    "classification": classifier,
    "next_sentence": _next_sentence,
    "encoder": _encoder,
    "span": _span,
    "multiple_choice": _multiple_choice,
    "next_piece": _next_piece,
}
