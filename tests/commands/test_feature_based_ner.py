"""The example runs, and its features are those of each word's first piece."""

from bert_tf import heads, modeling
from bert_tf.checkpoints import restoring
from bert_tf.vocabularies import word_pieces
from tests import interop_samples as samples
from tests import reference, scripts

import numpy as np
import pytest

_SCRIPT = "examples/feature_based_ner"
_LINE = "[PAD] [UNK] [CLS] [SEP] [MASK] ann ##a in rome sat"
_VOCAB = _LINE.split()
_CONFIG = modeling.BertConfig(
    vocab_size=10,
    hidden_size=12,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
)


@pytest.fixture
def folder(tmp_path):
    """A tiny BERT of random weights, and a file of entities."""
    model = heads.BertPretrainer(modeling.Bert(_CONFIG))
    reference.random_weights(model.trainable_variables, seed=0)
    samples.write_tf1(tmp_path, model, vocab=_VOCAB)
    (tmp_path / "words.conll").write_text(
        "Anna\tB-person\nsat\tO\nin\tO\nRome\tB-place\n\n"
        "Ann\tB-person\nsat\tO\n\n" * 4
    )
    return tmp_path


def _run(folder, *arguments, code=0):
    return scripts.run_checked(
        *(folder / "log", _SCRIPT, f"--init_checkpoint={folder}"),
        *(f"--train_file={folder}/words.conll", "--lstm_size=6"),
        *(f"--dev_file={folder}/words.conll", "--max_seq_length=16"),
        *arguments,
        code=code,
    )


@pytest.mark.exhaustive
def test_it_learns_words_by_heart(folder):
    done = _run(
        folder,
        *("--features=last", "--learning_rate=0.05"),
        f"--test_file={folder}/words.conll",
    )
    assert done.stdout.splitlines() == [
        "| features | dev f1 | test f1 |",
        "|---|---|---|",
        "| last | 100.0 | 100.0 |",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_a_vector_is_that_of_the_words_first_piece(folder):
    example = scripts.run_here(_SCRIPT, name="example")
    model = modeling.Bert(_CONFIG)
    source = example["formats"].open_checkpoint(str(folder))
    restoring.restore_weights(model.variables, source)
    tf = example["tf"]
    sentences = example["conll"].read(
        f"{folder}/words.conll", example["conll"].Columns()
    )[:2]
    extractor = example["extraction"].Extractor(
        *(tf.distribute.get_strategy(), model),
        *(example["feature_layers"].Choice("last"), "token", 2, 16),
    )

    def features(max_seq_length, sentences):
        vocabulary = word_pieces.WordPiece(tuple(_VOCAB), True)
        reader = example["feature_lines"].Reader(
            vocabulary, max_seq_length, by_word=True
        )
        return example["read_features"](extractor, reader, sentences)

    found = features(6, sentences)
    # [CLS] ann ##a sat in [SEP]: "Rome" has no room, and no vector.
    ids = np.array([[2, 5, 6, 9, 7, 3]])
    outputs = model(
        {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0}
    )
    expected = outputs.layers[-1].numpy()[0, [1, 3, 4]]
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    assert [len(x) for x in found] == [3, 2]
    # Words that hold spaces, or what would part the line, count as one each.
    odd = sentences[1].__class__(
        ("Ann\u00a0a", "|||", "\u00a0"), ("O",) * 3, (1, 2, 3), 0
    )
    assert len(features(6, [odd])[0]) == 3
    for bars in ("|||", "|||||", "||||||", "a|||b"):
        row = odd.__class__(("see", bars, "here"), ("O",) * 3, (1, 2, 3), 0)
        assert len(features(16, [row])[0]) == 3, bars


class _Constant:
    """A model that finds one label everywhere."""

    def __init__(self, number):
        self._number = number

    def predict_on_batch(self, x):
        return np.eye(2)[np.full(x.shape[:2], self._number)]  # [N, W, C]


@pytest.mark.parametrize(
    ("labels", "scheme", "expected"),
    [
        # Of three entities one is behind the cut; the others are found.
        (("B-x", "O"), "BIO", 2 * 2 / (3 + 2)),
        (("NN", "O"), "none", 2 / 3),
    ],
)
def test_words_behind_the_cut_are_outside(labels, scheme, expected):
    example = scripts.run_here(_SCRIPT, name="example")
    sentences = [
        example["conll"].Sentence(words, (labels[0],) * len(words), (), 0)
        for words in (("Ann", "Rome"), ("Ann",))
    ]
    vectors = [np.ones([1, 3], np.float32)] * 2
    found = example["score"](_Constant(0), vectors, sentences, labels, scheme)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "line 1: 13 of 14 entities are not spelt as BIO says"),
        # Taken; what is looked at next is wrong.
        (["--scheme=IOB1", "--max_seq_length=17"], "embeddings=16"),
    ],
)
def test_iob1_is_to_be_named(arguments, problem, folder):
    path = folder / "words.conll"
    text = path.read_text().replace("B-", "I-")
    path.write_text(text + "\nRome\tI-place\nRome\tB-place\n")
    assert problem in _run(folder, *arguments, code=1).stderr
