"""Learning of sentence pieces: as the trainer on the whole text."""

import io

from bert_tf.errors import InputError
from bert_tf.text import learning_sentence_pieces as learning
from bert_tf.vocabularies import sentence_pieces
from tests.vocabularies import sentence_models

import pytest
import sentencepiece


@pytest.fixture(scope="module", name="words")
def _words():
    return learning.count_words(sentence_models.lines(), do_lower_case=True)


def test_words():
    words = learning.count_words(["The  thé\u2028end", "", "THE ¨x"], True)
    assert words == {"the": 3, "end": 1, "x": 1}
    words = learning.count_words(["The the"], do_lower_case=False)
    assert words == {"The": 1, "the": 1}
    # The rarest are forgotten.
    texts = ["a a a b b c", "a d", "b e"]
    assert learning.count_words(texts, True, max_words=2) == {"a": 4, "b": 3}


def test_a_vocabulary_of_alberts_layout(words):
    model = learning.learn(words, 1200)
    vocabulary = sentence_pieces.SentencePieces.parse(
        {"spiece.model": model}, True, "learned"
    )
    assert vocabulary.pieces[:13] == (
        *("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
        *("(", ")", '"', "-", ".", "–", "£", "€"),
    )
    assert len(vocabulary.pieces) == 1200
    assert vocabulary.missing == ()
    assert vocabulary.tokenizer().tokenize("The end") == ["▁the", "▁end"]


def test_equal_counts_give_equal_models(words):
    turned = dict(reversed(words.items()))
    assert learning.learn(words, 1000) == learning.learn(turned, 1000)


def test_counts_are_as_good_as_the_text():
    """Of the text itself the trainer makes pieces that are no better.

    Its first guesses differ, as it takes them of lines, not of counts; of so
    little text they count for more.
    """
    lines = sentence_models.pages()
    texts = [sentence_models.original_text(line, lower=True) for line in lines]
    words = learning.count_words(lines, do_lower_case=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=1000,
        minloglevel=2,
        character_coverage=0.99995,
        **sentence_models.ALBERT,
    )

    def count(model):
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        return sum(map(len, processor.encode(texts)))

    ours = count(learning.learn(words, 1000))
    assert ours < 1.02 * count(model.getvalue())


def test_bad_arguments(words):
    with pytest.raises(InputError, match="holds no words"):
        learning.learn({}, 100)
    with pytest.raises(InputError, match="Received: vocab_size=20") as error:
        learning.learn(words, 20)
    assert "\n" not in str(error.value)
    model = learning.learn({"the": 5, "end": 3}, 30000)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert len(pieces) < 100, "of a text of few words"
