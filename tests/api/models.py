"""Tiny models on disk, as runs and other programs leave them."""

from bert_tf import heads, modeling
from bert_tf.encoders import left_to_right
from bert_tf.exporting import saved_model
from bert_tf.tasks import next_piece
from bert_tf.vocabularies import word_pieces
from tests import interop_samples as samples
from tests.commands import test_run_prediction as runs
from tests.exporting import test_saved_model as classifier
from tests.tasks.masked_words import test_saved_model as gaps
from tests.tasks.multiple_choice import test_saved_model as choices
from tests.tasks.squad import test_saved_model as spans
from tests.tasks.tagging import test_saved_model as tags

import keras


def classifier_run(folder, labels=("negative", "positive"), pairs=False):
    """Writes the run of a classifier of one text, or of two."""
    keras.utils.set_random_seed(1)
    model = heads.BertClassifier(
        modeling.Bert(classifier.CONFIG), len(labels or ("",))
    )
    column = ("--text_b_column=b",) if pairs else ()
    flags = ("--max_seq_length=12", "--do_lower_case=true", *column)
    return runs.write_run(
        folder,
        model,
        classifier.VOCAB,
        classifier.CONFIG,
        *flags,
        labels=labels or (),
    )


def pretrained(folder):
    """Writes a pre-trained model."""
    keras.utils.set_random_seed(1)
    model = heads.BertPretrainer(modeling.Bert(gaps.CONFIG))
    return runs.write_run(
        folder, model, gaps.VOCAB, gaps.CONFIG, "--max_seq_length=12"
    )


def next_piece_export(folder):
    """Exports a model that tells which piece follows."""
    config = left_to_right.LeftToRightConfig(**samples.SMALL)
    model = samples.random_model("next_piece", config)
    vocabulary = word_pieces.WordPiece(tuple(samples.VOCAB), True)
    made = next_piece.next_piece(model, config, vocabulary, 9, 3)
    saved_model.save(str(folder), made)


def tagger_run(folder):
    """Writes the run of a tagger."""
    keras.utils.set_random_seed(1)
    model = heads.BertTagger(modeling.Bert(tags.CONFIG), len(tags.LABELS))
    return runs.write_run(
        folder,
        model,
        tags.VOCAB,
        tags.CONFIG,
        "--max_seq_length=12",
        labels=tags.LABELS,
    )


def span_run(folder):
    """Writes the run of a model that finds answers."""
    keras.utils.set_random_seed(1)
    model = heads.BertSpanFinder(modeling.Bert(spans.CONFIG))
    return runs.write_run(
        folder,
        model,
        spans.VOCAB,
        spans.CONFIG,
        "--max_seq_length=14",
        "--doc_stride=3",
        "--max_query_length=4",
        "--n_best_size=5",
        "--max_answer_length=3",
    )


def choice_run(folder):
    """Writes the run of a model that chooses."""
    keras.utils.set_random_seed(1)
    model = heads.BertMultipleChoice(modeling.Bert(choices.CONFIG))
    return runs.write_run(
        folder, model, choices.VOCAB, choices.CONFIG, "--max_seq_length=12"
    )
