"""Scores of taggers, compared with seqeval and scikit-learn."""

import itertools
import random

from bert_tf.tasks.tagging import conll, schemes, tagging_results

import pytest
import sklearn.metrics


def sentence(labels):
    words = tuple(f"w{i}" for i in range(len(labels)))
    return conll.Sentence(words, tuple(labels), tuple(range(len(words))), 0)


def random_sentences(scheme, seed):
    """Returns gold labels, partly wrong predictions, and `results` arguments.

    The arguments are the sentences, the flat predicted labels and the scheme.
    """
    rng = random.Random(seed)
    prefixes = schemes.SCHEMES[scheme].prefixes
    labels = ["O", *(f"{p}-{t}" for p in prefixes for t in ("a", "b", "c-d"))]
    gold = [rng.choices(labels, k=rng.randint(1, 12)) for _ in range(200)]
    predicted = [
        [x if rng.random() < 0.7 else rng.choice(labels) for x in row]
        for row in gold
    ]
    flat = list(itertools.chain(*predicted))
    return gold, predicted, (list(map(sentence, gold)), flat, scheme)


# For `random_sentences(scheme, 1)`: correct, predicted and labelled entities
# by seqeval 1.2.2 in strict mode.
_SEQEVAL_COUNTS = {
    "BIO": (380, 570, 557),
    "IO": (472, 754, 746),
    "BIOES": (222, 301, 332),
    "BILOU": (224, 301, 327),
}


@pytest.mark.parametrize("scheme", list(_SEQEVAL_COUNTS))
def test_counts_are_seqevals(scheme):
    _, _, both = random_sentences(scheme, 1)
    all_ = tagging_results.total(tagging_results.score(*both).values())
    counts = (all_.correct, all_.predicted, all_.labelled)
    assert counts == _SEQEVAL_COUNTS[scheme]


# No extra installs seqeval: its source package can't be built with the current
# build tools of pip. CI installs it.
_NO_SEQEVAL = (
    "needs seqeval (pip install setuptools_scm; "
    "pip install --no-build-isolation seqeval)"
)


# seqeval's default mode lacks BILOU, and takes a chain in IOB1 as one entity.
@pytest.mark.parametrize("scheme", ["BIO", "IO", "IOB1", "BIOES"])
def test_scores_equal_seqevals_default_mode(scheme):
    seqeval = pytest.importorskip("seqeval.metrics", reason=_NO_SEQEVAL)
    for seed in range(3):
        gold, predicted, both = random_sentences(scheme, seed)
        ours = tagging_results.results(*both)
        for name in ("precision", "recall", "f1"):
            theirs = getattr(seqeval, f"{name}_score")(gold, predicted)
            assert ours[f"eval_conlleval_{name}"] == pytest.approx(theirs)


@pytest.mark.parametrize("scheme", list(_SEQEVAL_COUNTS))
def test_scores_equal_seqevals_strict_mode(scheme):
    seqeval = pytest.importorskip("seqeval.metrics", reason=_NO_SEQEVAL)
    schemes = pytest.importorskip("seqeval.scheme", reason=_NO_SEQEVAL)
    names = {"BIO": "IOB2", "IO": "IOB1", "BIOES": "IOBES", "BILOU": "BILOU"}
    theirs = getattr(schemes, names[scheme])
    for seed in range(3):
        gold, predicted, both = random_sentences(scheme, seed)
        report = seqeval.classification_report(
            gold, predicted, mode="strict", scheme=theirs, output_dict=True
        )
        ours = tagging_results.score(*both)
        rows = {**ours, "micro avg": tagging_results.total(ours.values())}
        for name, row in rows.items():
            expected = report[name]
            assert row.precision == pytest.approx(expected["precision"])
            assert row.recall == pytest.approx(expected["recall"])
            assert row.f1 == pytest.approx(expected["f1-score"])
            assert row.labelled == expected["support"]


def test_results_of_single_words_are_scikit_learns():
    rng = random.Random(3)
    gold = [rng.choices("XYZ", k=5) for _ in range(20)]
    predicted = rng.choices("XYZ", k=100)
    sentences = list(map(sentence, gold))
    flat = list(itertools.chain(*gold))
    assert tagging_results.results(sentences, predicted, "none") == {
        "eval_accuracy": sklearn.metrics.accuracy_score(flat, predicted)
    }
    assert tagging_results.metric("none") == "eval_accuracy"
    scores = tagging_results.score(sentences, predicted, "none")
    theirs = sklearn.metrics.f1_score(flat, predicted, average=None)
    assert [scores[x].f1 for x in "XYZ"] == pytest.approx(theirs)


def test_results_and_report():
    sentences = [sentence(["B-a", "I-a", "O"]), sentence(["B-b"])]
    predicted = ["B-a", "I-a", "I-b", "O"]
    assert tagging_results.metric("BIO") == "eval_f1"
    assert tagging_results.results(sentences, predicted, "BIO") == {
        "eval_accuracy": 0.5,
        "eval_precision": 1.0,
        "eval_recall": 0.5,
        "eval_f1": pytest.approx(2 / 3),
        # An entity at the position of B-b, too.
        "eval_conlleval_precision": 0.5,
        "eval_conlleval_recall": 0.5,
        "eval_conlleval_f1": 0.5,
    }
    report = tagging_results.report(
        tagging_results.score(sentences, predicted, "BIO")
    )
    assert [line.split() for line in report.splitlines()] == [
        ["precision", "recall", "f1", "support"],
        ["a", "1.0000", "1.0000", "1.0000", "1"],
        ["b", "0.0000", "0.0000", "0.0000", "1"],
        ["all", "1.0000", "0.5000", "0.6667", "2"],
    ]
    assert tagging_results.score([sentence(["O"])], ["O"], "BIO") == {}
    nothing = tagging_results.total([])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)
