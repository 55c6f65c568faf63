"""Baselines, compared with scikit-learn used directly."""

import logging

from bert_tf.checkpoints import word_vectors
from bert_tf.tasks import tables
from bert_tf.tasks.classification import baselines, own_files
from bert_tf.text import text_graph
from bert_tf.vocabularies import word_pieces

import numpy as np
import pytest
import scipy.stats
from sklearn import linear_model, metrics, preprocessing
from sklearn.feature_extraction import text

_WORDS = ["cat", "dog", "sees", "the", "old", "new", "red", "bird"]
_TABLE = np.random.default_rng(3).normal(size=[len(_WORDS), 5])


def _task(labels=("neg", "pos"), separator=None, is_pair=False):
    columns = own_files.Columns("t", "u" if is_pair else None, "y")
    files = {"train": "train.tsv", "dev": "dev.tsv"}
    return own_files.custom(columns, files, labels, not labels, separator)


def _texts(number, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 9, number)
    return [" ".join(rng.choice(_WORDS, size)) for size in sizes]


def _examples(texts, labels, others=None):
    others = others or [""] * len(texts)
    return [
        tables.Example(str(i), *row)
        for i, row in enumerate(zip(texts, others, labels, strict=True))
    ]


def _average(texts):
    """Averages the vectors of words, independently of the tokenizer."""
    rows = [[_TABLE[_WORDS.index(x)] for x in t.split()] for t in texts]
    return np.array([np.mean(row, axis=0) for row in rows])


# Fewer than those of users, for which the models take seconds.
_COLUMNS = 1 << 10


@pytest.fixture(autouse=True)
def _few_columns(monkeypatch):
    monkeypatch.setattr(baselines, "COLUMNS", _COLUMNS)


def _tf_idf(train, *others, columns=_COLUMNS):
    """Returns TF-IDF features by the formulas, fitted to `train`."""
    hashed = text.HashingVectorizer(
        n_features=columns, ngram_range=(1, 2), alternate_sign=False, norm=None
    )
    counts = hashed.transform(train)
    documents = np.bincount(counts.nonzero()[1], minlength=columns)
    idf = np.log((1 + len(train)) / (1 + documents)) + 1
    found = []
    for texts in (train, *others):
        x = hashed.transform(texts)
        x.data = 1 + np.log(x.data)
        found.append(preprocessing.normalize(x.multiply(idf).tocsr()))
    return found


def _measure(task, train, dev, average=None, seed=0):
    """Returns the results of each baseline, by its name."""
    rows = baselines.measure(task, train, {"dev": dev}, seed, average)["dev"]
    assert all(row.seconds >= 0 for row in rows)
    return {row.name: row.results for row in rows}


_TRAIN, _DEV = _texts(60, 0), _texts(25, 1)


def _classes(texts):
    return [("neg", "pos")["cat" in x and "old cat" not in x] for x in texts]


def _scores(gold, found):
    return {
        "accuracy": metrics.accuracy_score(gold, found),
        "macro_f1": metrics.f1_score(gold, found, average="macro"),
    }


@pytest.mark.slow
def test_classes():
    gold, own = _classes(_DEV), _classes(_TRAIN)
    train, dev = _examples(_TRAIN, own), _examples(_DEV, gold)
    found = _measure(_task(), train, dev, _average)
    assert own.count("neg") > own.count("pos")
    share = gold.count("neg") / len(gold)
    assert found.pop("majority class") == pytest.approx(
        # F1 of "pos" is 0.
        {"accuracy": share, "macro_f1": share / (1 + share)}
    )
    x, y = _tf_idf(_TRAIN, _DEV)
    model = linear_model.LogisticRegression(C=10, max_iter=1000).fit(x, own)
    assert found.pop("TF-IDF, logistic regression") == pytest.approx(
        _scores(gold, model.predict(y))
    )
    x, y = _average(_TRAIN), _average(_DEV)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    model = linear_model.LogisticRegression(max_iter=1000)
    model.fit((x - mean) / scale, own)
    assert found.pop("word vectors, logistic regression") == pytest.approx(
        _scores(gold, model.predict((y - mean) / scale))
    )
    assert not found


@pytest.mark.slow
def test_pairs():
    others = _texts(60, 2), _texts(25, 4)
    own, gold = (
        [("neg", "pos")[a.split()[0] in b] for a, b in zip(*x, strict=True)]
        for x in ((_TRAIN, others[0]), (_DEV, others[1]))
    )
    train = _examples(_TRAIN, own, others[0])
    dev = _examples(_DEV, gold, others[1])
    found = _measure(_task(is_pair=True), train, dev, _average)
    _, a, b, c, d = _tf_idf(
        [*_TRAIN, *others[0]], _TRAIN, others[0], _DEV, others[1]
    )
    vectors = [_average(x) for x in (_TRAIN, others[0], _DEV, others[1])]
    for name, (u, v, s, t) in (
        ("TF-IDF", [x.toarray() for x in (a, b, c, d)]),
        ("word vectors", vectors),
    ):
        x, y = (
            np.hstack([first, second, abs(first - second), first * second])
            for first, second in ((u, v), (s, t))
        )
        strength = 10
        if name == "word vectors":
            strength = 1
            mean, scale = x.mean(axis=0), x.std(axis=0)
            x, y = (x - mean) / scale, (y - mean) / scale
        model = linear_model.LogisticRegression(C=strength, max_iter=1000)
        model.fit(x, own)
        wanted = _scores(gold, model.predict(y))
        assert found[f"{name}, logistic regression"] == pytest.approx(wanted)


def test_scores():
    own, gold = (
        [float(t.count("a") - 2 * t.count("bird")) for t in x]
        for x in (_TRAIN, _DEV)
    )
    found = _measure(
        _task(None), _examples(_TRAIN, own), _examples(_DEV, gold), _average
    )
    assert found["mean"] == pytest.approx(
        {
            "spearman": 0,
            "pearson": 0,
            "loss": np.mean((np.array(gold) - np.mean(own)) ** 2),
        }
    )
    x, y = _tf_idf(_TRAIN, _DEV)
    predicted = linear_model.Ridge().fit(x, own).predict(y)
    assert found["TF-IDF, ridge regression"] == pytest.approx(
        {
            "spearman": scipy.stats.spearmanr(gold, predicted).statistic,
            "pearson": np.corrcoef(gold, predicted)[0, 1],
            "loss": np.mean((predicted - gold) ** 2),
        },
        rel=1e-3,
    )
    assert found["word vectors, ridge regression"]["pearson"] > 0.5


@pytest.mark.slow
def test_several_labels():
    # All texts have one label, and none has another.
    names = ("the", "red", "any", "none")
    sets = [
        [("any", *(name for name in names if name in t)) for t in x]
        for x in (_TRAIN, _DEV)
    ]
    train, dev = _examples(_TRAIN, sets[0]), _examples(_DEV, sets[1])
    found = _measure(_task(names, ","), train, dev)
    own, gold = (
        np.array([[int(name in row) for name in names] for row in x])
        for x in sets
    )
    majority = np.tile(2 * own.sum(axis=0) > len(own), [len(gold), 1])
    x, y = _tf_idf(_TRAIN, _DEV)
    predicted = np.tile([0, 0, 1, 0], [len(gold), 1])
    for i in range(2):
        model = linear_model.LogisticRegression(C=10, max_iter=1000)
        predicted[:, i] = model.fit(x, own[:, i]).predict(y)
    assert list(found) == [
        "majority of each label",
        "TF-IDF, logistic regression",
    ]
    for results, values in zip(
        found.values(), (majority, predicted), strict=True
    ):
        assert results["subset_accuracy"] == (values == gold).all(axis=1).mean()
        assert results["micro_f1"] == pytest.approx(
            metrics.f1_score(gold, values, average="micro")
        )


def test_one_class_alone_is_predicted_for_all():
    train = _examples(_TRAIN, ["pos"] * len(_TRAIN))
    dev = _examples(_DEV, _classes(_DEV))
    found = _measure(_task(), train, dev, _average)
    assert len(found) == 3
    share = _classes(_DEV).count("pos") / len(_DEV)
    assert {x["accuracy"] for x in found.values()} == {share}


@pytest.mark.slow
def test_many_examples_are_sampled(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "absl")
    train = _examples(_TRAIN, _classes(_TRAIN))
    dev = _examples(_DEV, _classes(_DEV))
    everything = _measure(_task(), train, dev)
    assert "sample" not in caplog.text
    monkeypatch.setattr(baselines, "ROWS", 8)
    found = [_measure(_task(), train, dev, seed=seed) for seed in (1, 1, 2)]
    assert "random sample of 8 of the 60 training examples" in caplog.text
    assert found[0] == found[1]
    assert any(x != found[0] for x in (found[2], everything))


def test_averages_of_tokens_with_vectors():
    tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "##s", "dog")
    tokenizer = text_graph.make_tokenizer(word_pieces.WordPiece(tokens, True))
    table = np.arange(14, dtype=np.float32).reshape(7, 2)
    found = np.array([False] * 4 + [True, False, True])
    vectors = word_vectors.Vectors(table * found[:, np.newaxis], found)
    average = baselines.averages(tokenizer, vectors)
    # "##s" and [UNK] have no vectors.
    np.testing.assert_allclose(
        average(["Cats dog dog", "mouse", "", "cat"]),
        [
            [(8 + 2 * 12) / 3, (9 + 2 * 13) / 3],
            *([0.0, 0.0], [0.0, 0.0], [8.0, 9.0]),
        ],
        rtol=1e-6,
    )


def test_words_of_chinese_are_characters():
    assert text.HashingVectorizer(
        token_pattern=baselines.WORD
    ).build_tokenizer()("BERT_2是什么? über-all 日") == [
        *("BERT_2", "是", "什", "么", "über", "all", "日")
    ]


@pytest.mark.parametrize("score", [0.5, 0.75, 0.9])
def test_table_and_what_is_better(score, tmp_path, caplog):
    caplog.set_level(logging.INFO, "absl")
    rows = [
        baselines.Row("majority class", {"accuracy": 0.5, "macro_f1": 1.0}, 0),
        baselines.Row("TF-IDF", {"accuracy": 0.75, "macro_f1": 0.5}, 12.345),
    ]
    results = {"eval_accuracy": score, "eval_macro_f1": 0.25, "eval_loss": 9.0}
    path = tmp_path / "baselines.txt"
    baselines.write(str(path), _task(), results, rows)
    lines = [
        "baseline        accuracy  macro_f1  seconds",
        "majority class    0.5000    1.0000      0.0",
        "TF-IDF            0.7500    0.5000     12.3",
        f"this model        {score:.4f}    0.2500        -",
    ]
    assert path.read_text().splitlines() == lines
    assert all(line in caplog.text for line in lines)
    better = "better than the model: TF-IDF has accuracy 0.7500, the model 0.5"
    assert (better in caplog.text) == (score == 0.5)
    assert "majority class has" not in caplog.text
